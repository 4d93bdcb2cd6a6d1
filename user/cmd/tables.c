// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "mxbpf_config.h"

/* Between the tables of a series. */
#define SERIES_RULE "\n----------------------------------------------------------------------------\n\n"

const char *const cmd_format_words[] = {[CMD_TABLE] = "table", [CMD_JSON] = "json", [CMD_CSV] = "csv", NULL};

/* clang-format off */
static const struct {
	const char *layout; /* NULL: any */
	enum cmd_format format;
	const char *sink;
} table_sinks[] = {
	{"modern", CMD_TABLE, "modern"},
	{"modern", CMD_JSON, "json"},
	{"mxnet", CMD_TABLE, "mxnet"},
	{"mxnet", CMD_JSON, "mxnet-json"},
	{"torch", CMD_TABLE, "torch"},
	{"torch-classic", CMD_TABLE, "torch-classic"},
	{NULL, CMD_CSV, "csv"},
};
/* clang-format on */

const struct snk_ops *cmd_table_sink(const struct cmd_opts *o)
{
	size_t i;

	for (i = 0; i < sizeof(table_sinks) / sizeof(table_sinks[0]); i++)
		if ((!table_sinks[i].layout || !strcmp(table_sinks[i].layout, o->layout)) &&
		    (int)table_sinks[i].format == o->format)
			return snk_find(table_sinks[i].sink);
	return NULL;
}

int cmd_check_details(const struct cmd_opts *o, unsigned details, bool account, const char *how, struct err *e)
{
	static const struct {
		unsigned detail;
		const char *what, *option;
	} needs[] = {
		[SNK_BY_SHAPE] = {MXBPF_DETAIL_ARGS, "shapes", "--shapes"},
		[SNK_BY_STACK] = {MXBPF_DETAIL_STACK, "stacks", "--py-stacks"},
		[SNK_BY_MODULE] = {MXBPF_DETAIL_STACK, "stacks", "--py-stacks"},
		[SNK_BY_LAYER] = {MXBPF_DETAIL_LAYER, "layers", "--layers"},
		[SNK_BY_EVENT] = {0},
	};

	if (!account && o->sort >= SNK_SORT_CPU && o->sort <= SNK_SORT_BLOCKED)
		return err_set(e, ERR_USAGE, -EINVAL,
			       "--sort %s: calls have no account (--no-account, or an old recording)",
			       snk_sort_keys[o->sort].name);
	if (needs[o->by].detail & ~details)
		return err_set(e, ERR_USAGE, -EINVAL, "--by %s: %s were not asked for: %s %s", snk_by_words[o->by],
			       needs[o->by].what, how, needs[o->by].option);
	if (o->backward && !(details & MXBPF_DETAIL_SEQ))
		return err_set(e, ERR_USAGE, -EINVAL,
			       "--backward: what joins forward and backward was not asked for: "
			       "record with --backward");
	return 0;
}

unsigned cmd_columns(void)
{
	struct winsize w;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) ? 0 : w.ws_col;
}

/* r: the recording whose events are to be shown; NULL: none. */
static int print(const struct cmd_opts *o, const struct mdl_session *s, struct mdl *m, struct rec_reader *r,
		 unsigned nth)
{
	const struct snk_input in = {.session = s, .model = m, .source = r ? rec_reader_source(r) : NULL};
	const struct snk_opts opts = {
		.sort = o->sort,
		.by = o->by,
		.stack_depth = o->stack_depth,
		.backward = o->backward,
		.ascending = o->ascending,
		.top = o->top,
		.width = cmd_columns(),
		.continued = nth > 1,
	};
	bool json = o->format == CMD_JSON;
	struct err e = {0};
	struct out *out;

	if (out_open("-", false, &out, &e))
		return cmd_fail(&e);
	if (nth > 1 && o->format == CMD_TABLE)
		out_puts(out, SERIES_RULE);
	out_join_lines(out, nth && json);
	if (snk_write(cmd_table_sink(o), &in, &opts, out, &e)) {
		out_abort(out);
		/* It knows what is wrong with the recording. */
		return cmd_fail(r && rec_reader_error(r)->code ? rec_reader_error(r) : &e);
	}
	out_join_lines(out, false);
	if (nth && json)
		out_puts(out, "\n");
	return out_commit(out, &e) ? cmd_fail(&e) : CMD_OK;
}

static int print_summed(const struct cmd_opts *o, const struct mdl_session *s, struct mdl *m, struct rec_reader *r,
			unsigned nth)
{
	struct err e = {0};
	struct mdl *sum;
	int code;

	if (cmd_table_sink(o)->by_process || mdl_nprocesses(m) < 2)
		return print(o, s, m, r, nth);
	sum = mdl_sum(m);
	if (!sum) {
		err_set(&e, ERR_RUNTIME, -ENOMEM, "out of memory");
		return cmd_fail(&e);
	}
	code = print(o, s, sum, r, nth);
	mdl_free(sum);
	return code;
}

int cmd_print_tables(const struct cmd_opts *o, const struct mdl_session *s, struct mdl *m, unsigned nth)
{
	return print_summed(o, s, m, NULL, nth);
}

/* Which thread it was is known of events alone. */
static int print_threads(const struct cmd_opts *o, struct rec_reader *r, const struct mdl_session *s)
{
	struct mdl *m = mdl_new();
	struct err e = {0};
	int code;

	if (!m)
		err_set(&e, ERR_RUNTIME, -ENOMEM, "out of memory");
	else
		mdl_tell_threads(m);
	if (m && s->cut_records)
		cmd_warn("--by thread: of events that were kept; %" PRIu64 " were not", s->cut_records);
	code = !m || rec_reader_events(r, m, &e) ? cmd_fail(&e) : cmd_print_tables(o, s, m, 0);
	mdl_free(m);
	return code;
}

int cmd_print_recorded(const struct cmd_opts *o, struct rec_reader *r, struct mdl *m)
{
	const struct mdl_session *s = rec_reader_session(r);
	struct err e = {0};

	if (o->by != SNK_BY_EVENT && (o->by != SNK_BY_THREAD || s->details & MXBPF_DETAIL_THREAD))
		return cmd_print_tables(o, s, m, 0);
	if (s->stats) {
		err_set(&e, ERR_USAGE, -EINVAL, "--by %s: no events were kept: record without --stats",
			snk_by_words[o->by]);
		return cmd_fail(&e);
	}
	if (o->by == SNK_BY_THREAD)
		return print_threads(o, r, s);
	return print_summed(o, s, m, r, 0);
}
