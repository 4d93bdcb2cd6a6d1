// SPDX-License-Identifier: Apache-2.0
/* The option --life. */
#include "cmd/option.h"
#include "feature/life/life.h"

const struct cmd_option life_option = {
	.name = "life",
	.group = "Measure",
	.commands = CMD_LIVE,
	.every_call = true,
	.help = "Track each operator from push to completion: dependency wait, queue wait, run, and which operators "
		"the "
		"program waited for",
	.supports = plan_has_lives,
	.set = cmd_set_flag,
	CMD_FIELD(ses.life),
	.after = "omp",
	.sheet = &sheet_life,
};
