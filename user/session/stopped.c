// SPDX-License-Identifier: Apache-2.0
/* A stopped target calls nothing, and its user may not know. mxbpf says so when it attaches, and at the end. */
#include <stdio.h>

#include "session/priv.h"

bool ses_stopped(const struct session *ses, char text[SES_STOPPED_BYTES])
{
	pid_t pid = tgt_pid(ses->targets[0].tgt);
	struct tgt_stop s;
	char some[48] = "";
	int len;

	if (!tgt_peek_stop(pid, &s))
		return false;
	if (!s.stopped) {
		snprintf(text, SES_STOPPED_BYTES,
			 "process %d (%.64s) is frozen by its control group: it calls nothing until that is thawed",
			 pid, tgt_comm(ses->targets[0].tgt));
		return true;
	}
	if (s.stopped < s.threads)
		snprintf(some, sizeof(some), "%u of %u threads of ", s.stopped, s.threads);
	len = snprintf(text, SES_STOPPED_BYTES, "%sprocess %d (%.64s) %s stopped ", some, pid,
		       tgt_comm(ses->targets[0].tgt), s.stopped < s.threads ? "are" : "is");
	if (s.tracer)
		snprintf(text + len, (size_t)(SES_STOPPED_BYTES - len),
			 "by its tracer, %s (pid %d): it calls nothing until the tracer continues it",
			 s.tracer_comm[0] ? s.tracer_comm : "a process", s.tracer);
	else
		snprintf(text + len, (size_t)(SES_STOPPED_BYTES - len),
			 "by a signal (SIGSTOP, Ctrl-Z): it calls nothing until it is continued: kill -CONT %d", pid);
	return true;
}
