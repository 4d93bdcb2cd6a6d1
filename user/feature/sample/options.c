// SPDX-License-Identifier: Apache-2.0
/* The option --sample. */
#include "cmd/option.h"
#include "feature/sample/sample.h"
#include "mxbpf_sample.h"

const struct cmd_option sample_option = {
	.name = "sample",
	.arg = "HZ",
	.group = "Measure",
	.commands = CMD_LIVE,
	AGENT_YES,
	.help = "Sample the target's threads on each CPU HZ times a second (99 is a good rate): operators with Python "
		"and native stacks, for flame graphs (export -f folded, pprof)",
	.set = cmd_set_number,
	CMD_FIELD(ses.sample_hz),
	.min = 1,
	.max = MXBPF_SAMPLE_HZ_MAX,
	.after = "py-stacks",
};
