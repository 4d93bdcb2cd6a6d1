// SPDX-License-Identifier: Apache-2.0
/* `mxbpf diff`: compares recordings. */
#include "compare/show.h"
#include "compare/tables.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fmt.h"
#include "cmd/cmd.h"
#include "import/import.h"

/* Lines by which a file is known as a result of this command, so that it may be replaced. */
static const char *const magic[] = {"  \"diff_version\":", "~: not certain.",
				    "<meta name=\"generator\" content=\"mxbpf\">", CMP_MARKDOWN_MAGIC, NULL};
static const struct view_ops own = {.name = "diff", .magic = magic};

/* A run with what it borrows. */
struct opened {
	struct rec_reader *r; /* NULL: a JSON result */
	struct mdl *m;
	struct mdl_session s; /* of a JSON result */
};

struct diff {
	const struct cmd_opts *o;
	struct cmp_sides sides;
	struct opened *opened[CMP_SIDES];
	struct cmp_result result;
	struct cmp_tables tables;
	bool damaged;
};

static int each(void *source, cmp_batch_fn fn, void *ctx)
{
	struct err e = {0};
	const struct opened *of = source;

	return rec_reader_each(of->r, true, of->m, fn, ctx, &e);
}

/* Traces of other profilers are JSON, too. */
static bool is_result(const char *path)
{
	char first = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0 && (read(fd, &first, 1) != 1 || import_format(fd)))
		first = 0;
	if (fd >= 0)
		close(fd);
	return first == '{';
}

static int open_run(struct diff *d, const char *path, struct cmp_run *run, struct opened *of, struct err *e)
{
	int opened;

	run->path = path;
	if (is_result(path)) {
		run->s = &of->s;
		run->m = of->m = mdl_new();
		return of->m ? 0 : -ENOMEM;
	}
	opened = cmd_open_recordings(d->o, (char **)&path, 1, true, &of->r, &of->m, e);
	if (opened < 0)
		return opened;
	d->damaged |= opened;
	run->m = of->m;
	run->s = rec_reader_session(of->r);
	return 0;
}

static int take_run(struct cmp_run *run, struct opened *of, bool slices, struct err *e)
{
	int err = of->r ? cmp_run_take(run, slices, each, of) : cmp_json_take(run, &of->s, slices, e);

	if (!err || !of->r)
		return err;
	if (err == -ENOMEM)
		return err_set(e, ERR_RUNTIME, err, "out of memory");
	return err_set(e, ERR_RUNTIME, err, "cannot read the events of %s: %s", run->path, strerror(-err));
}

static int open_side(struct diff *d, enum cmp_which side, const char *const *paths, unsigned n, struct err *e)
{
	unsigned i;
	int err = 0;

	d->sides.run[side] = calloc(n, sizeof(*d->sides.run[side]));
	d->opened[side] = calloc(n, sizeof(*d->opened[side]));
	if (!d->sides.run[side] || !d->opened[side])
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	d->sides.n[side] = n;
	for (i = 0; i < n && !err; i++)
		err = open_run(d, paths[i], &d->sides.run[side][i], &d->opened[side][i], e);
	return err ? err_set(e, ERR_RUNTIME, err, "%s", strerror(-err)) : 0;
}

static int take_all(struct diff *d, struct err *e)
{
	const bool recordings = d->opened[CMP_A][0].r;
	unsigned side, i;
	int err = 0;

	for (side = 0; side < CMP_SIDES; side++)
		for (i = 0; i < d->sides.n[side]; i++)
			if (!d->opened[side][i].r == recordings)
				return err_set(e, ERR_RUNTIME, -EINVAL,
					       "%s: recordings cannot be compared with JSON results; mxbpf report "
					       "RECORDING -f json makes a result of a recording",
					       d->sides.run[side][i].path);
	for (side = 0; side < CMP_SIDES && recordings; side++)
		for (i = 0; i < d->sides.n[side]; i++)
			if (d->sides.run[side][i].s->stats && d->sides.run[side][i].s->profiler)
				return err_set(e, ERR_RUNTIME, -ENODATA,
					       "%s is a table, without single calls; mxbpf report FILE -f json makes a "
					       "result of each side, and mxbpf diff compares results",
					       d->sides.run[side][i].path);
	if (recordings)
		cmp_share_scale(&d->sides);
	for (side = 0; side < CMP_SIDES; side++)
		for (i = 0; i < d->sides.n[side] && !err; i++)
			err = take_run(&d->sides.run[side][i], &d->opened[side][i], false, e);
	return err;
}

/* Iterations and slices of time do not compare, so one recording without iterations makes slices of all. */
static int make_alike(struct diff *d, struct err *e)
{
	unsigned side, i, without = 0;
	int err = 0;

	for (side = 0; side < CMP_SIDES; side++)
		for (i = 0; i < d->sides.n[side]; i++)
			without += !d->sides.run[side][i].x.iterations;
	for (side = 0; side < CMP_SIDES && without; side++)
		for (i = 0; i < d->sides.n[side] && !err; i++)
			if (d->sides.run[side][i].x.iterations) {
				cmp_run_fini(&d->sides.run[side][i]);
				err = take_run(&d->sides.run[side][i], &d->opened[side][i], true, e);
			}
	return err;
}

/* JSON results have no model to make tables of. */
static int compare_tables(struct diff *d, struct err *e)
{
	if (d->result.sums)
		return d->o->table ? err_set(e, ERR_RUNTIME, -EINVAL,
					     "--table: %s is a JSON result, and tables of recordings alone compare",
					     d->sides.run[CMP_A][0].path)
				   : 0;
	d->result.tables = &d->tables;
	return cmp_tables_make(&d->tables, &d->sides, &d->result, d->o->table, e);
}

static int open_all(struct diff *d, struct err *e)
{
	const struct cmd_opts *o = d->o;
	const char *const *operands = (const char *const *)o->args;
	int err;

	if (!o->nbase && o->nargs != 2)
		return err_set(e, ERR_USAGE, -EINVAL,
			       "mxbpf diff compares two recordings, not %d; name several of a side with --base A1.mxd "
			       "--base A2.mxd B1.mxd B2.mxd",
			       o->nargs);
	err = open_side(d, CMP_A, o->nbase ? o->base : operands, o->nbase ? o->nbase : 1, e);
	if (!err)
		err = open_side(d, CMP_B, o->nbase ? operands : operands + 1, o->nbase ? (unsigned)o->nargs : 1, e);
	if (!err)
		err = take_all(d, e);
	if (!err)
		err = make_alike(d, e);
	if (!err && cmp_compare(&d->sides, &d->result))
		err = err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	return err ? err : compare_tables(d, e);
}

static int print(const struct diff *d, const struct cmd_opts *o)
{
	const struct cmp_form *form = &cmp_forms[o->format];
	struct err e = {0};
	struct out *out;
	int code = cmd_open_tables(o, false, &out);

	if (code)
		return code;
	code = form->put(out, &d->result, &d->sides, o->top || o->all ? o->top : form->top, &e) ? cmd_fail(&e) : CMD_OK;
	return cmd_close_tables(o, out, code);
}

/* Prints the result in the format of -f, and writes the page of --html. */
static int print_all(const struct diff *d)
{
	struct cmd_opts page = *d->o;
	int code = print(d, d->o);

	page.format = CMP_FORM_HTML;
	page.output = page.html;
	return code || !page.html ? code : print(d, &page);
}

/* Says which limits are broken. A limit that cannot be judged fails, so that nobody takes it for kept. */
static int check_limits(const struct diff *d)
{
	char name[CMP_NAME_BYTES], percent[24];
	const struct cmp_row *row;
	struct cmp_limit limit;
	struct err e;
	int code = CMD_OK;
	unsigned i;
	bool known;

	for (i = 0; i < d->o->nfail_on; i++) {
		e = (struct err){0};
		if (cmp_limit_parse(d->o->fail_on[i], &limit, &e))
			return cmd_fail(&e);
		row = cmp_limit_broken(&limit, &d->result, &known);
		if (!known) {
			err_set(&e, ERR_RUNTIME, -ENOENT,
				"--fail-on '%s': the recordings have nothing of that kind, so it cannot be judged",
				limit.text);
			return cmd_fail(&e);
		}
		if (!row)
			continue;
		fprintf(stderr, "mxbpf: --fail-on '%s' is broken: %s changed by %s\n", limit.text, cmp_name(row, name),
			row->verdict == CMP_NEW	   ? "being new"
			: row->verdict == CMP_GONE ? "being gone"
						   : cmp_percent(row->own, percent));
		code = CMD_LIMIT_BROKEN;
	}
	return code;
}

static void close_all(struct diff *d)
{
	unsigned side, i;

	cmp_tables_fini(&d->tables);
	cmp_result_fini(&d->result);
	for (side = 0; side < CMP_SIDES; side++) {
		for (i = 0; i < d->sides.n[side]; i++) {
			cmp_run_fini(&d->sides.run[side][i]);
			mdl_free(d->opened[side][i].m);
			rec_reader_close(d->opened[side][i].r);
			mdl_session_fini(&d->opened[side][i].s);
		}
		free(d->sides.run[side]);
		free(d->opened[side]);
	}
}

int cmd_diff(const struct cmd_opts *o)
{
	struct diff d = {.o = o};
	struct err e = {0};
	int code;

	if (cmd_check_output(o->output ? o->output : "-", &own, o->force, &e) ||
	    (o->html && cmd_check_output(o->html, view_find("html"), o->force, &e)))
		return cmd_fail(&e);
	code = open_all(&d, &e) ? cmd_fail(&e) : print_all(&d);
	if (!code)
		code = check_limits(&d);
	if (!code && d.damaged)
		code = CMD_FAILED;
	close_all(&d);
	return code;
}
