// SPDX-License-Identifier: Apache-2.0
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cmd/cmd.h"

static const struct {
	const char *layout; /* NULL: any */
	const char *format, *sink;
} table_sinks[] = {
	{"modern", "table", "modern"},	 {"modern", "json", "json"}, {"mxnet", "table", "mxnet"},
	{"mxnet", "json", "mxnet-json"}, {NULL, "csv", "csv"},
};

const struct snk_ops *cmd_table_sink(const struct cmd_opts *o)
{
	const char *format = o->format ? o->format : "table";
	size_t i;

	for (i = 0; i < sizeof(table_sinks) / sizeof(table_sinks[0]); i++)
		if ((!table_sinks[i].layout || !strcmp(table_sinks[i].layout, o->layout)) &&
		    !strcmp(table_sinks[i].format, format))
			return snk_find(table_sinks[i].sink);
	return NULL;
}

unsigned cmd_columns(void)
{
	struct winsize w;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) ? 0 : w.ws_col;
}

int cmd_print_tables(const struct cmd_opts *o, const struct mdl_session *s, struct mdl *m)
{
	const struct snk_input in = {.session = s, .model = m};
	const struct snk_opts opts = {
		.sort = o->sort,
		.ascending = o->ascending,
		.top = o->top,
		.width = cmd_columns(),
	};
	struct err e = {0};
	struct out *out;

	if (out_open("-", false, &out, &e))
		return cmd_fail(&e);
	if (snk_write(cmd_table_sink(o), &in, &opts, out, &e)) {
		out_abort(out);
		return cmd_fail(&e);
	}
	return out_commit(out, &e) ? cmd_fail(&e) : CMD_OK;
}
