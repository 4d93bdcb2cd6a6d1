// SPDX-License-Identifier: Apache-2.0
/* The option --raised. */
#include "cmd/option.h"
#include "feature/raised/raised.h"

const struct cmd_option raised_option = {
	.name = "raised",
	.group = "Measure",
	.commands = CMD_LIVE | CMD_BIT_TOP,
	AGENT_NO("the agent learns that a call ended, but not why"),
	.every_call = true,
	.whole_api = true,
	.help = "Count the calls that an exception left, with the times of the first and last one, and with "
		"--py-stacks "
		"the Python line",
	.set = cmd_set_feature,
	.min = RAISED_BIT,
	.after = "sched",
	.sheet = &sheet_raised,
};
