// SPDX-License-Identifier: Apache-2.0
/* The machine around the target: read at the edges of the window, and about once a second in it. */
#include "feature/machine/machine.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fmt.h"
#include "session/priv.h"
#include "feature/machine/read.h"

static void on_absent(void *ctx, const char *gauge, const char *why)
{
	ses_detail(ctx, "not read: %s: %s", gauge, why);
}

int ses_machine_start(struct session *ses, struct err *e)
{
	ses->machine = mach_open(tgt_pid(ses->targets[0].tgt), ses->o->verbose ? on_absent : NULL, ses);
	if (!ses->machine)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	ses_machine_read(ses, false);
	return 0;
}

void ses_machine_read(struct session *ses, bool resumed)
{
	uint64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int err;

	ses->readings.len = 0;
	err = mach_read(ses->machine, resumed, &ses->readings);
	ses->reading_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
	ses->nreadings++;
	ses_keep(ses, ses->readings.data, ses->readings.len, err);
}

void ses_machine_end(struct session *ses)
{
	char ns[24];

	if (!ses->paused_at_ns)
		ses_machine_read(ses, false);
	ses_detail(ses, "the machine was read %llu times, in %s of CPU time each", (unsigned long long)ses->nreadings,
		   fmt_ns(ses->reading_ns / ses->nreadings, ns));
}
