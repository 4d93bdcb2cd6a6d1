// SPDX-License-Identifier: Apache-2.0
/* The option --backward. */
#include "cmd/option.h"
#include "feature/backward/backward.h"

/* `report` takes the option as well: so it asks for a table and, in a live session, for what the table is made of. */
static int backward_set(const struct cmd_option *opt, struct cmd_opts *o, const char *text, struct err *e)
{
	o->backward = true;
	o->ses.details |= MXBPF_DETAIL_SEQ;
	return 0;
}

static bool with_ops(const struct cmd_opts *o)
{
	return o->backward && o->ses.ops;
}

static const struct cmd_conflict conflicts[] = {
	{with_ops,
	 "--backward needs all operators, because any of them may have created a backward node; remove --ops"},
	{0},
};

const struct cmd_option backward_option = {
	.name = "backward",
	.group = "Tables",
	.commands = CMD_LIVE | CMD_BIT_REPORT,
	AGENT_YES,
	.help = "Print another table: forward operators with the time of the backward nodes that they created",
	.set = backward_set,
	.after = "stack-depth",
	.sheet = &sheet_backward,
	.conflicts = conflicts,
};
