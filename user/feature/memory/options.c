// SPDX-License-Identifier: Apache-2.0
/* The option --memory. */
#include "cmd/option.h"
#include "feature/memory/memory.h"

static bool without_probes(const struct cmd_opts *o)
{
	return o->ses.memory && !(o->ses.probes & PROBE_MEM);
}

static bool with_iterations(const struct cmd_opts *o)
{
	return o->ses.memory && o->ses.iterations;
}

static const struct cmd_conflict conflicts[] = {
	{without_probes, "--memory needs the probes of allocations, which --probes leaves out; add mem to --probes"},
	{with_iterations,
	 "--memory needs every allocation and every free, and --iterations leaves most out; remove one of them"},
	{0},
};

const struct cmd_option memory_option = {
	.name = "memory",
	.group = "Measure",
	.commands = CMD_LIVE | CMD_BIT_TOP,
	AGENT_BUT("the agent sees allocators through import tables, probes see the others"),
	.whole_api = true,
	.help = "Attribute memory to operators, with --py-stacks also to lines of Python: for each, what it allocated, "
		"freed and never freed, and what was alive at the peak",
	.set = cmd_set_flag,
	CMD_FIELD(ses.memory),
	.after = "life",
	.sheet = &sheet_memory,
	.conflicts = conflicts,
};
