// SPDX-License-Identifier: Apache-2.0
/* The option --sched. */
#include "cmd/option.h"
#include "feature/sched/sched.h"

static bool with_iterations(const struct cmd_opts *o)
{
	return o->ses.sched && o->ses.iterations;
}

static const struct cmd_conflict conflicts[] = {
	{with_iterations, "--sched records every context switch, and --iterations leaves most out; remove one of them"},
	{0},
};

const struct cmd_option sched_option = {
	.name = "sched",
	.group = "Measure",
	.commands = CMD_LIVE | CMD_BIT_TOP,
	AGENT_YES,
	.help = "Record why threads are off the CPU: who preempted them, what they waited for, who woke them. Every "
		"context switch on this machine then costs a little more",
	.set = cmd_set_flag,
	CMD_FIELD(ses.sched),
	.after = "memory",
	.conflicts = conflicts,
};
