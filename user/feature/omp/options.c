// SPDX-License-Identifier: Apache-2.0
/* The option --omp. */
#include "cmd/option.h"
#include "feature/omp/omp.h"

const struct cmd_option omp_option = {
	.name = "omp",
	.group = "Target",
	.commands = CMD_LIVE,
	.of_events = true,
	.help = "look at OpenMP's parallel regions as well: of each operator the CPU time of its team, and what it "
		"waited for",
	.set = cmd_set_flag,
	CMD_FIELD(ses.omp),
	.after = "counters",
	.sheet = &sheet_omp,
};
