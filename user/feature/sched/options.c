// SPDX-License-Identifier: Apache-2.0
/* The option --sched. */
#include "cmd/option.h"
#include "feature/sched/sched.h"

static bool with_iterations(const struct cmd_opts *o)
{
	return o->ses.sched && o->ses.iterations;
}

static const struct cmd_conflict conflicts[] = {
	{with_iterations, "--sched sees every switch, and --iterations is to see little: use one of them"},
	{0},
};

const struct cmd_option sched_option = {
	.name = "sched",
	.group = "Target",
	.commands = CMD_LIVE,
	.of_events = true,
	.help = "see what becomes of threads off the CPU: who preempted them, what they waited for, who woke them; "
		"each switch of a thread on this machine costs a little more",
	.set = cmd_set_flag,
	CMD_FIELD(ses.sched),
	.after = "memory",
	.conflicts = conflicts,
};
