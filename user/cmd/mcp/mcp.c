// SPDX-License-Identifier: Apache-2.0
/* `mxbpf mcp`: assistants ask. */
#include "mcp/mcp.h"

#include "cmd/cmd.h"

int cmd_mcp(const struct cmd_opts *o)
{
	const struct mcp_opts opts = {.allow_agent = o->allow_agent};
	struct err e = {0};

	return mcp_serve(&opts, &e) ? cmd_fail(&e) : CMD_OK;
}
