// SPDX-License-Identifier: Apache-2.0
/*
 * Answers requests of an assistant, a line each, as `mxbpf mcp` does. What stands behind the first NUL is what a child
 * prints: no child is started.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mcp/priv.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int __wrap_mcp_spawn(struct mcp *m, struct mcp_call *c, struct err *e);

static struct {
	const uint8_t *data;
	size_t size;
} printed;

/* The answers go to stdout and are not needed. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	int fd = open("/dev/null", O_WRONLY);

	return dup2(fd, STDOUT_FILENO) < 0;
}

/* Stands for a child that has ended. If its output begins with "!", it failed, and the output is what it said on
 * stderr. */
int __wrap_mcp_spawn(struct mcp *m, struct mcp_call *c, struct err *e)
{
	const bool fails = printed.size && printed.data[0] == '!';

	c->pid = -1;
	c->status = fails ? 1 << 8 : 0;
	buf_put(fails ? &c->errors : &c->output, printed.data, printed.size);
	return 0;
}

static void finish_calls(struct mcp *m)
{
	struct mcp_call *c;
	int i;

	for (i = 0; i < 2; i++) /* a look with a recording has two children, one after the other */
		for (c = m->calls; c < m->calls + MCP_CALLS; c++)
			if (c->tool && c->pid) {
				c->pid = 0;
				mcp_finish(m, c);
			}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = size ? memchr(data, '\0', size) : NULL;
	const size_t lines = end ? (size_t)(end - data) : size;
	const struct mcp_opts opts = {.allow_agent = size & 1};
	struct mcp *m = calloc(1, sizeof(*m));
	char *copy = malloc(lines + 1), *at = copy, *next;
	unsigned i;

	if (!m || !copy)
		abort();
	m->o = &opts;
	strcpy(m->dir, "/nonexistent");
	for (i = 0; i < MCP_CALLS; i++)
		m->calls[i].out = m->calls[i].err = -1;
	printed.data = end ? end + 1 : NULL;
	printed.size = end ? size - lines - 1 : 0;
	memcpy(copy, data, lines);
	copy[lines] = '\0';
	for (; at; at = next) {
		next = strchr(at, '\n');
		mcp_take_line(m, at, next ? (size_t)(next++ - at) : strlen(at));
		finish_calls(m);
	}
	m->dir[0] = '\0'; /* nothing was made there */
	mcp_forget_all(m);
	free(copy);
	free(m);
	return 0;
}
