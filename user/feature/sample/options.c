// SPDX-License-Identifier: Apache-2.0
/* The option --sample. */
#include "cmd/option.h"
#include "feature/sample/sample.h"
#include "mxbpf_sample.h"

static bool with_agent(const struct cmd_opts *o)
{
	return o->ses.sample_hz && o->ses.agent;
}

static const struct cmd_conflict conflicts[] = {
	{with_agent,
	 "--sample needs probes instead of --agent: its samples get their operators in the kernel, which does "
	 "not see the agent's"},
	{0},
};

const struct cmd_option sample_option = {
	.name = "sample",
	.arg = "HZ",
	.group = "Target",
	.commands = CMD_LIVE,
	.of_events = true,
	.help = "look HZ times a second at what runs on each CPU: 99; samples of the target's threads by operator, "
		"with their Python and machine code, for flame graphs (export -f folded, pprof)",
	.set = cmd_set_number,
	CMD_FIELD(ses.sample_hz),
	.min = 1,
	.max = MXBPF_SAMPLE_HZ_MAX,
	.after = "py-stacks",
	.conflicts = conflicts,
};
