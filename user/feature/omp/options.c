// SPDX-License-Identifier: Apache-2.0
/* The option --omp. */
#include "cmd/option.h"
#include "feature/omp/omp.h"

const struct cmd_option omp_option = {
	.name = "omp",
	.group = "Measure",
	.commands = CMD_LIVE | CMD_BIT_TOP,
	AGENT_YES,
	.help = "Record OpenMP parallel regions: for each operator the CPU time of its OpenMP team, and what the team "
		"waited for",
	.set = cmd_set_flag,
	CMD_FIELD(ses.omp),
	.after = "counters",
	.sheet = &sheet_omp,
};
