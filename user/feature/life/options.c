// SPDX-License-Identifier: Apache-2.0
/* The option --life. */
#include "cmd/option.h"
#include "feature/life/life.h"

const struct cmd_option life_option = {
	.name = "life",
	.group = "Target",
	.commands = CMD_LIVE,
	.of_events = true,
	.help = "see operators from being pushed on: what each waited for before it ran, and which of them the program "
		"waited for; MXNet",
	.set = cmd_set_flag,
	CMD_FIELD(ses.life),
	.after = "omp",
	.sheet = &sheet_life,
};
