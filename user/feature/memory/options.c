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
	{without_probes, "--memory is of the probes of mem, which --probes leaves out"},
	{with_iterations,
	 "--memory has to see every allocation and its end, and --iterations is to see little: use one of them"},
	{0},
};

const struct cmd_option memory_option = {
	.name = "memory",
	.group = "Target",
	.commands = CMD_LIVE,
	.of_events = true,
	.help = "see who holds the memory of a device: of each operator what it allocated, what of that was freed, "
		"what was alive at the peak and never freed",
	.set = cmd_set_flag,
	CMD_FIELD(ses.memory),
	.after = "life",
	.sheet = &sheet_memory,
	.conflicts = conflicts,
};
