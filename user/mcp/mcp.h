/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server of the Model Context Protocol on stdin and stdout. Assistants call its tools, and each tool runs mxbpf with
 * an ordinary command line. An assistant can therefore start nothing that the command line refuses, and has the rights
 * of whoever started the server. The server itself opens no socket, loads no BPF, and looks at no process.
 */
#ifndef MCP_MCP_H
#define MCP_MCP_H

#include <stdbool.h>

#include "base/err.h"

struct mcp_opts {
	bool allow_agent; /* calls may ask for --agent and --gpu, which load a library into the job */
};

/* Answers requests until stdin ends or a signal arrives. Returns 0, or -errno with e set. */
int mcp_serve(const struct mcp_opts *o, struct err *e);

#endif
