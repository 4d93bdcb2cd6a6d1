// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fmt.h"
#include "cmd/cmd.h"
#include "feature/cost/cost.h"
#include "source/recording.h"

/* Separates the tables of a series. */
#define SERIES_RULE "\n----------------------------------------------------------------------------\n\n"

const char *const cmd_format_words[] = {
	[CMD_TABLE] = "table", [CMD_JSON] = "json", [CMD_HTML] = "html", [CMD_CSV] = "csv", NULL};

const struct view_ops *cmd_table_view(const struct cmd_opts *o)
{
	const char *prefix = !strcmp(o->layout, CMD_LAYOUT) ? "" : o->layout;
	char name[64];

	if (o->format == CMD_TABLE)
		return view_find(o->layout);
	if (o->format == CMD_CSV || o->format == CMD_HTML) /* the same in every layout */
		return view_find(cmd_format_words[o->format]);
	snprintf(name, sizeof(name), "%s%sjson", prefix, *prefix ? "-" : "");
	return view_find(name);
}

int cmd_check_details(const struct cmd_opts *o, unsigned details, bool account, const char *how, struct err *e)
{
	static const struct {
		unsigned detail;
		const char *what, *option;
	} needs[] = {
		[VIEW_BY_SHAPE] = {MXBPF_DETAIL_ARGS, "shapes", "--shapes"},
		[VIEW_BY_STACK] = {MXBPF_DETAIL_STACK, "stacks", "--py-stacks"},
		[VIEW_BY_MODULE] = {MXBPF_DETAIL_STACK, "stacks", "--py-stacks"},
		[VIEW_BY_LAYER] = {MXBPF_DETAIL_LAYER, "layers", "--layers"},
		[VIEW_BY_PROCESS] = {0},
		[VIEW_BY_RANK] = {0},
		[VIEW_BY_JOB] = {0},
		[VIEW_BY_HOST] = {0},
		[VIEW_BY_EVENT] = {0},
	};

	if (!account && o->sort >= VIEW_SORT_CPU && o->sort <= VIEW_SORT_BLOCKED)
		return err_set(e, ERR_USAGE, -EINVAL,
			       "--sort %s needs on-CPU, run-queue and blocked times, which --no-account and old "
			       "recordings leave out",
			       view_sort_keys[o->sort].name);
	if (needs[o->by].detail & ~details)
		return err_set(e, ERR_USAGE, -EINVAL, "--by %s: %s were not read: %s %s", view_by_words[o->by],
			       needs[o->by].what, how, needs[o->by].option);
	if (o->backward && !(details & MXBPF_DETAIL_SEQ))
		return err_set(e, ERR_USAGE, -EINVAL,
			       "--backward: sequence numbers of operators were not read: record with --backward");
	return 0;
}

unsigned cmd_columns(void)
{
	struct winsize w;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) ? 0 : w.ws_col;
}

int cmd_open_tables(const struct cmd_opts *o, bool series, struct out **out)
{
	const char *path = o->output ? o->output : "-";
	bool gzip = fmt_ends_with(path, ".gz");
	struct err e = {0};

	if (series ? out_open_growing(path, gzip, out, &e) : out_open(path, gzip, out, &e))
		return cmd_fail(&e);
	return CMD_OK;
}

int cmd_close_tables(const struct cmd_opts *o, struct out *out, int code)
{
	struct err e = {0};

	if (code) {
		out_abort(out);
		return code;
	}
	if (out_commit(out, &e))
		return cmd_fail(&e);
	if (o->output && !o->quiet)
		fprintf(stderr, "wrote %s\n", o->output);
	return CMD_OK;
}

/* A printing of tables: the data and where it goes. */
struct job {
	const struct cmd_opts *o;
	struct rec_reader *r; /* the recording whose events are shown; NULL: there is none */
	struct out *out;
	bool ruled; /* the line between two parts is printed already */
};

/*
 * People get a short output, on a terminal, in a pipe and in a file alike. Single calls, data and the layouts of other
 * profilers are whole.
 */
static bool is_brief(const struct cmd_opts *o)
{
	return o->format == CMD_TABLE && !o->all && o->by != VIEW_BY_EVENT && !strcmp(o->layout, CMD_LAYOUT);
}

static void put_rule(const struct job *j, unsigned nth)
{
	if (nth > 1 && j->o->format == CMD_TABLE)
		out_puts(j->out, SERIES_RULE);
}

/* processes: if m adds processes up, the model that keeps them apart; else NULL. */
static int print(const struct job *j, const struct mdl_session *s, struct mdl *m, struct mdl *processes, unsigned nth)
{
	const struct cmd_opts *o = j->o;
	const struct view_input in = {
		.session = s,
		.model = m,
		.processes = processes,
		.source = j->r ? rec_reader_source(j->r) : NULL,
	};
	const struct view_opts opts = {
		.sort = is_brief(o) && o->sort == VIEW_SORT_TOTAL && !o->sorted ? VIEW_SORT_SELF : o->sort,
		.by = o->by,
		.stack_depth = o->stack_depth,
		.backward = o->backward,
		.ascending = o->ascending,
		.top = o->top,
		.brief = is_brief(o),
		.advice = o->advice,
		.width = o->output ? 0 : cmd_columns(),
		.continued = nth > 1,
	};
	bool json = o->format == CMD_JSON;
	struct err e = {0};

	if (!j->ruled)
		put_rule(j, nth);
	out_join_lines(j->out, nth && json);
	if (view_write(cmd_table_view(o), &in, &opts, j->out, &e)) /* the reader's error is more precise */
		return cmd_fail(j->r && rec_reader_error(j->r)->code ? rec_reader_error(j->r) : &e);
	out_join_lines(j->out, false);
	if (nth && json)
		out_puts(j->out, "\n");
	return out_flush(j->out, &e) ? cmd_fail(&e) : CMD_OK;
}

static bool is_shown(void *session, uint32_t tgid)
{
	return mdl_shows(session, tgid);
}

/* "worker: 0 (pid 12), 1 (pid 13 of b)" */
static void put_members(struct out *out, const struct mdl_session *s)
{
	const struct mdl_process *p;
	size_t i;
	bool first = true, by_order = false;

	out_printf(out, "%s: ", *s->shown_role ? s->shown_role : "processes without a role");
	for (i = 0; i < s->nprocesses; i++) {
		p = &s->processes[i];
		if (strcmp(p->role, s->shown_role))
			continue;
		out_printf(out, "%s%u (pid %u", first ? "" : ", ", p->rank, p->pid & MDL_PID_MASK);
		if (p->pid & ~MDL_PID_MASK || strcmp(p->hostname, s->hostname)) {
			char safe[256];

			fmt_safe(safe, sizeof(safe), p->hostname, strlen(p->hostname));
			out_printf(out, " of %s", safe);
		}
		out_printf(out, ")");
		first = false;
		by_order |= p->by_order;
	}
	out_printf(out, "%s\n\n",
		   by_order ? "; numbered in the order of arrival, because their environment does not tell their ranks"
			    : "");
}

#define PIDS_SHOWN 8

/* "MXNet 1.9.1: process 12, 13" */
static void put_runtime(struct out *out, const struct mdl_session *s)
{
	unsigned n = 0;
	size_t i;

	out_printf(out, "%s: process", s->shown_runtime);
	for (i = 0; i < s->nlabels; i++)
		if (mdl_shows(s, s->labels[i].pid) && n++ < PIDS_SHOWN)
			out_printf(out, "%s %u", n > 1 ? "," : "", s->labels[i].pid & MDL_PID_MASK);
	if (n > PIDS_SHOWN)
		out_printf(out, " and %u more", n - PIDS_SHOWN);
	out_puts(out, "\n\n");
}

/* Returns true for the first process of a role. */
static bool is_first(const struct mdl_session *s, size_t i)
{
	size_t j;

	for (j = 0; j < i; j++)
		if (!strcmp(s->processes[j].role, s->processes[i].role))
			return false;
	return true;
}

/* Says whose tables follow. */
static void put_heading(const struct job *j, const struct mdl_session *of, unsigned nth)
{
	put_rule(j, nth);
	if (j->o->format != CMD_TABLE)
		return;
	if (of->shown_runtime)
		put_runtime(j->out, of);
	if (of->shown_role)
		put_members(j->out, of);
}

/*
 * Prints the tables of the processes with of->shown_role and of->shown_runtime; role "": of those without a role.
 * Prints nothing if there are none of these.
 */
static int print_part(const struct job *j, struct mdl_session *of, struct mdl *m, unsigned nth)
{
	struct mdl *sum = mdl_sum_of(m, is_shown, of), *some = mdl_only(m, is_shown, of);
	struct job part = *j;
	struct err e = {0};
	int code = CMD_OK;

	part.ruled = true;
	if (!sum || !some) {
		err_set(&e, ERR_RUNTIME, -ENOMEM, "out of memory");
		code = cmd_fail(&e);
	} else if ((of->shown_role && *of->shown_role && !of->shown_runtime) || mdl_nprocesses(sum)) {
		put_heading(j, of, nth);
		code = print(&part, of, sum, some, nth);
	}
	mdl_free(some);
	mdl_free(sum);
	return code;
}

/* Each role has its own tables, because servers and workers do different things. */
static int print_parts(const struct job *j, const struct mdl_session *s, struct mdl *m, unsigned nth)
{
	struct mdl_session of = *s; /* a shallow copy */
	unsigned n = nth ? nth : 1;
	int code = CMD_OK;
	size_t i;

	for (i = 0; i < s->nprocesses && !code; i++) {
		of.shown_role = s->processes[i].role;
		if (is_first(s, i) && (!j->o->ses.role || !strcmp(j->o->ses.role, of.shown_role)))
			code = print_part(j, &of, m, n++);
	}
	of.shown_role = (char *)"";
	return code || j->o->ses.role ? code : print_part(j, &of, m, n);
}

/* --role where each process has its own rows: leaves out processes of other roles. */
static int print_role(const struct job *j, const struct mdl_session *s, struct mdl *m, unsigned nth)
{
	struct mdl_session of = *s; /* a shallow copy except for its processes */
	struct err e = {0};
	struct mdl *some;
	size_t i;
	int code;

	of.shown_role = (char *)j->o->ses.role;
	some = mdl_only(m, is_shown, &of);
	of.processes = calloc(s->nprocesses, sizeof(*of.processes));
	for (i = of.nprocesses = 0; of.processes && i < s->nprocesses; i++)
		if (!strcmp(s->processes[i].role, j->o->ses.role))
			of.processes[of.nprocesses++] = s->processes[i];
	if (!some || !of.processes)
		err_set(&e, ERR_RUNTIME, -ENOMEM, "out of memory");
	code = e.code ? cmd_fail(&e) : print(j, &of, some, NULL, nth);
	mdl_free(some);
	free(of.processes);
	return code;
}

static bool has_roles(const struct mdl_session *s)
{
	size_t i;

	for (i = 1; i < s->nprocesses; i++)
		if (is_first(s, i) && mdl_shows(s, s->processes[i].pid))
			return true;
	return false;
}

/* Each runtime has its own tables, because its operators have their own names. */
static int print_runtimes(const struct job *j, const struct mdl_session *s, struct mdl *m, unsigned nth)
{
	const char *runtimes[MDL_RUNTIMES_MAX];
	const unsigned n = mdl_runtimes(s, runtimes);
	struct mdl_session of = *s; /* a shallow copy */
	int code = CMD_OK;
	unsigned i;

	for (i = 0; i < n && !code; i++) {
		of.shown_runtime = (char *)runtimes[i];
		code = has_roles(&of) || j->o->ses.role ? print_parts(j, &of, m, (nth ? nth : 1) + i)
							: print_part(j, &of, m, (nth ? nth : 1) + i);
	}
	return code;
}

static int print_corrected(const struct job *j, const struct mdl_session *s, struct mdl *m, unsigned nth)
{
	const char *runtimes[MDL_RUNTIMES_MAX];
	const struct cmd_opts *o = j->o;
	struct err e = {0};
	struct mdl *sum;
	int code;

	if (!cmd_table_view(o)->by_process && mdl_runtimes(s, runtimes) > 1)
		return print_runtimes(j, s, m, nth);
	if (!cmd_table_view(o)->by_process && (has_roles(s) || (o->ses.role && s->nprocesses)))
		return print_parts(j, s, m, nth);
	if (o->ses.role && s->nprocesses)
		return print_role(j, s, m, nth);
	if (cmd_table_view(o)->by_process || mdl_nprocesses(m) < 2)
		return print(j, s, m, NULL, nth);
	sum = mdl_sum(m);
	if (!sum) {
		err_set(&e, ERR_RUNTIME, -ENOMEM, "out of memory");
		return cmd_fail(&e);
	}
	code = print(j, s, sum, m, nth);
	mdl_free(sum);
	return code;
}

static int print_page(const struct job *j, const struct mdl_session *s, struct mdl *m)
{
	struct cmd_opts own = *j->o;
	struct job page = {.o = &own, .r = j->r};
	int code;

	own.format = CMD_HTML;
	own.output = own.html;
	code = cmd_open_tables(&own, false, &page.out);
	return code ? code : cmd_close_tables(&own, page.out, print_corrected(&page, s, m, 0));
}

/* Takes the cost of watching out of the model, which is not used for anything else afterwards. */
static int print_summed(const struct job *j, const struct mdl_session *s, struct mdl *m, unsigned nth)
{
	struct mdl_session of = *s; /* a shallow copy */
	struct err e = {0};
	int code;

	if (j->o->raw)
		of.cost.scale = 0;
	if (!cost_take(m, &of) && !cost_estimate(m, &of)) {
		code = print_corrected(j, &of, m, nth);
		return code || !j->o->html ? code : print_page(j, &of, m);
	}
	err_set(&e, ERR_RUNTIME, -ENOMEM, "out of memory");
	return cmd_fail(&e);
}

int cmd_print_tables(const struct cmd_opts *o, const struct mdl_session *s, struct mdl *m, unsigned nth,
		     struct out *out)
{
	return print_summed(&(struct job){.o = o, .out = out}, s, m, nth);
}

static int tables_settle(struct mdl *m, struct err *e)
{
	return mdl_settle(m) ? err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory") : 0;
}

/* Only events tell the thread and the range of a call, so this folds them into a model of its own. */
static int print_apart(const struct job *j, struct rec_reader *r, const struct mdl_session *s)
{
	const enum view_by by = j->o->by;
	struct mdl *m = mdl_new();
	struct err e = {0};
	int code;

	if (!m)
		err_set(&e, ERR_RUNTIME, -ENOMEM, "out of memory");
	else if (by == VIEW_BY_THREAD)
		mdl_tell_threads(m);
	else
		mdl_tell_ranges(m);
	if (m && s->cut_records)
		cmd_warn("--by %s covers only events that were kept; %" PRIu64 " were deleted (--max-size)",
			 view_by_words[by], s->cut_records);
	code = !m || src_read_recording(r, true, m, &e) || tables_settle(m, &e) ? cmd_fail(&e)
										: print_summed(j, s, m, 0);
	mdl_free(m);
	return code;
}

static int print_recorded(struct job *j, struct rec_reader *r, struct mdl *m)
{
	const struct mdl_session *s = rec_reader_session(r);
	const int by = j->o->by;
	struct err e = {0};

	if (by == VIEW_BY_THREAD)
		mdl_tell_threads(m);
	if (view_by_processes(by))
		mdl_tell_processes(m);
	if (!s->stats && (j->o->html || cmd_table_view(j->o)->reads_records))
		j->r = r;
	if (by != VIEW_BY_EVENT && by != VIEW_BY_RANGE && (by != VIEW_BY_THREAD || s->details & MXBPF_DETAIL_THREAD))
		return print_summed(j, s, m, 0);
	if (s->stats) {
		err_set(&e, ERR_USAGE, -EINVAL, "--by %s needs events, and the recording has none (%s)",
			view_by_words[by],
			s->profiler ? "it is a table" : "--stats of an older mxbpf: record it again");
		return cmd_fail(&e);
	}
	if (by == VIEW_BY_THREAD || by == VIEW_BY_RANGE)
		return print_apart(j, r, s);
	j->r = r;
	return print_summed(j, s, m, 0);
}

int cmd_print_recorded(const struct cmd_opts *o, struct rec_reader *r, struct mdl *m)
{
	struct job j = {.o = o};
	int code = cmd_open_tables(o, false, &j.out);

	return code ? code : cmd_close_tables(o, j.out, print_recorded(&j, r, m));
}
