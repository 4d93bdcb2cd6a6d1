// SPDX-License-Identifier: Apache-2.0
/* The option --counters. */
#include "cmd/option.h"
#include "feature/counters/counters.h"
#include "feature/counters/events.h"

#include <errno.h>

/* The hardware counts at most four events of a thread at a time. */
static int counters_set(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	int err = cmd_set_mask(opt, o, text, e);

	if (!err && __builtin_popcount(o->ses.counters) > MXBPF_COUNTERS_MAX)
		return err_set(e, ERR_USAGE, -EINVAL, "--%s: at most %d counters can be read at once", opt->name,
			       MXBPF_COUNTERS_MAX);
	return err;
}

const struct cmd_option counters_option = {
	.name = "counters",
	.arg = "LIST",
	.group = "Measure",
	.commands = CMD_LIVE,
	AGENT_NO("probes read the counters in the kernel at the start and end of each call, and the "
		 "process cannot read them without a system call for each"),
	.help = "Read performance counters (perf events) for each call, at most four, joined by commas: "
		"cycles,instructions,task-clock",
	.set = counters_set,
	CMD_FIELD(ses.counters),
	.word = ctr_name,
	.after = "layers",
};
