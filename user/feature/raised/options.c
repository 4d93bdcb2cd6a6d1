// SPDX-License-Identifier: Apache-2.0
/* The option --raised. */
#include "cmd/option.h"
#include "feature/raised/raised.h"

static bool with_agent(const struct cmd_opts *o)
{
	return o->ses.features & RAISED_BIT && o->ses.agent;
}

static const struct cmd_conflict conflicts[] = {
	{with_agent, "--raised needs probes instead of --agent: PyTorch tells the agent that a call ends, and not why"},
	{0},
};

const struct cmd_option raised_option = {
	.name = "raised",
	.group = "Target",
	.commands = CMD_LIVE,
	.of_events = true,
	.help = "see which calls an exception left, how often, and when first and last; with --py-stacks from which "
		"line",
	.set = cmd_set_feature,
	.min = RAISED_BIT,
	.after = "agent",
	.sheet = &sheet_raised,
	.conflicts = conflicts,
};
