// SPDX-License-Identifier: Apache-2.0
/* The system calls to which a command is limited. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmd/opts.h"
#include "sandbox/sandbox.h"

static unsigned permitted; /* needs that the filter permits, of enum sbx_need */
static bool limited;	   /* mxbpf has the filter */

bool cmd_is_session(const struct cmd *c)
{
	return c->bit &
	       (CMD_LIVE | CMD_WATCH | CMD_BIT_NOW | CMD_BIT_MCP); /* children of mcp would inherit the filter */
}

static bool enters(const struct cmd_opts *o)
{
	return (o->ses.agent || o->ses.gpu) && !o->ses.no_bpf;
}

/* Returns why mxbpf is not limited, or NULL. */
static const char *unlimited(const struct cmd_opts *o)
{
	if (o->no_seccomp)
		return "--no-seccomp";
	return sbx_disturbs() ? "a sanitizer or valgrind runs it" : NULL;
}

int cmd_limit_check(const struct cmd_opts *o, struct err *e)
{
	if (!limited || !enters(o) || permitted & SBX_TRACE)
		return 0;
	return err_set(e, ERR_USAGE, -EPERM,
		       "--agent and --gpu need another start, because mxbpf has limited itself without them");
}

static void say_limited(void)
{
	char needs[512] = "";
	size_t len = 0;
	unsigned i;

	for (i = 0; i < SBX_NEEDS && len < sizeof(needs); i++)
		if (permitted & 1u << i)
			len += (size_t)snprintf(needs + len, sizeof(needs) - len, "; it %s", sbx_need_words(1u << i));
	cmd_say(CMD_DEBUG, "seccomp limits mxbpf to files, memory, threads, waiting%s", needs);
}

void cmd_limit(const struct cmd_opts *o)
{
	const char *why = unlimited(o);
	static bool done;
	struct err e = {0};

	if (done)
		return;
	done = true;
	permitted = o->needs | (o->drop ? SBX_USER : 0) | (enters(o) ? SBX_TRACE : 0);
	if (!why && sbx_enter(permitted, o->ses.verbose, &e))
		cmd_warn("%s", e.why);
	limited = !why && !e.code;
	if (!o->ses.verbose || e.code)
		return;
	if (why)
		cmd_say(CMD_DEBUG, "seccomp does not limit mxbpf: %s", why);
	else
		say_limited();
}

/* Prints the calls of rows that share their reason. Returns the row behind them. */
static const struct sbx_row *print_rows(const struct sbx_row *r)
{
	const struct sbx_row *first = r;

	printf("| %s | ", sbx_need_words(first->need));
	for (; r->name && r->need == first->need && !strcmp(r->why, first->why); r++)
		printf("%s`%s`%s", r == first ? "" : ", ", r->name, r->nvalues || r->without ? " (some)" : "");
	printf(" | %s |\n", first->why);
	return r;
}

int cmd_print_seccomp(const struct cmd *c)
{
	const struct sbx_never *n;
	const struct sbx_row *r = sbx_rows;
	bool some;
	unsigned i;

	printf("| command | %s |\n|---|---|\n", "what it does beside reading and writing files");
	for (c = cmd_table; c->run; c++) {
		printf("| `mxbpf%s%s` |", c->name ? " " : "", c->name ? c->name : "");
		for (some = false, i = 0; i < SBX_NEEDS; i++)
			if (c->needs & 1u << i) {
				printf("%s %s", some ? ";" : "", sbx_need_words(1u << i));
				some = true;
			}
		printf("%s |\n", some ? "" : " nothing");
	}
	printf("\n| needed by what | system calls | why |\n|---|---|---|\n");
	while (r->name)
		r = print_rows(r);
	printf("\nThese end mxbpf:");
	for (n = sbx_never; n->name; n++)
		printf("%s `%s`", n == sbx_never ? "" : ",", n->name);
	printf(".\n");
	return CMD_OK;
}
