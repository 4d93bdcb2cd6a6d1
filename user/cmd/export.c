// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fmt.h"
#include "cmd/bar.h"
#include "cmd/cmd.h"
#include "feature/cost/cost.h"

const struct view_ops *cmd_trace_view(const char *form, const char *path)
{
	const struct view_ops *by_suffix = view_find_suffix(path);

	if (form)
		return view_find(form);
	if (by_suffix && by_suffix->needs_records)
		return by_suffix;
	return view_find("chrome");
}

static int check_recorded(const struct view_ops *view, const struct mdl_session *s, struct err *e)
{
	if (view->of_samples && !s->sample_hz)
		return err_set(e, ERR_USAGE, -ENODATA,
			       "--format %s needs samples, and the recording has none: record with --sample HZ",
			       view->name);
	if (view->of_memory && !s->held)
		return err_set(e, ERR_USAGE, -ENODATA,
			       "--format %s needs memory attribution, and the recording has none: record with --memory",
			       view->name);
	return 0;
}

static int write_file(const char *path, const struct view_ops *view, const struct view_input *in,
		      const struct view_opts *opts, struct err *e)
{
	struct out *out;

	if (out_open(path, view->gzip || fmt_ends_with(path, ".gz"), &out, e))
		return e->code;
	if (view_write(view, in, opts, out, e))
		out_abort(out);
	else
		out_commit(out, e);
	return e->code;
}

/* Like tables, a data set has times without the cost of watching. */
static int write_directory(const char *path, const struct view_ops *view, const struct view_input *in,
			   const struct view_opts *opts, struct err *e)
{
	static const char mark[] = "A data set of mxbpf, version 1.\n";
	struct view_opts own = *opts;
	struct out_dir *dir;

	if (cost_take(in->model, in->session))
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	if (out_dir_open(path, view->mark, mark, &dir, e))
		return e->code;
	own.dir = dir;
	view_write(view, in, &own, NULL, e);
	out_dir_close(dir);
	return e->code;
}

int cmd_trace_to(const struct cmd_opts *o, const char *path, struct rec_reader *r, struct mdl *m, struct err *e)
{
	const struct mdl_session *s = rec_reader_session(r);
	const struct view_input in = {.session = s, .model = m, .source = rec_reader_source(r)};
	const struct view_ops *view = cmd_trace_view(o->form, path);
	struct bar bar = bar_start(o, "writing");
	struct view_opts opts = {.progress = bar.shown ? bar_draw : NULL, .progress_ctx = &bar};

	if (check_recorded(view, s, e))
		return e->code;
	if ((view->mark ? write_directory : write_file)(path, view, &in, &opts, e) && rec_reader_error(r)->code)
		*e = *rec_reader_error(r); /* the reader's error is more precise */
	bar_clear(&bar);
	return e->code;
}

int cmd_write_trace(const struct cmd_opts *o, const char *path, struct rec_reader *r, struct mdl *m)
{
	const uint64_t cut = rec_reader_session(r)->cut_records;
	struct err e = {0};

	if (cmd_trace_to(o, path, r, m, &e))
		return cmd_fail(&e);
	if (cut)
		cmd_warn("the trace lacks the oldest %llu records: --max-size was reached", (unsigned long long)cut);
	return CMD_OK;
}

/* Fails early, before anything large is read. */
static int check_output(const struct cmd_opts *o, const char *path, const char *recording, struct err *e)
{
	struct stat a, b;

	if (!strcmp(path, "-") && isatty(STDOUT_FILENO))
		return err_set(e, ERR_USAGE, -EINVAL, "cannot write a trace to a terminal; name a file with -o");
	if (!stat(path, &a) && !stat(recording, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
		return err_set(e, ERR_USAGE, -EINVAL, "--output: %s is the recording itself; give another name", path);
	return cmd_check_output(path, cmd_trace_view(o->form, path), o->force, e);
}

/* Exports one recording, or several as one, into one file. */
static int export_to(const struct cmd_opts *o, const char *path, char *const *inputs, unsigned n)
{
	struct err e = {0};
	struct rec_reader *r;
	struct mdl *m;
	int rc, opened;
	unsigned i;

	for (i = 0; i < n; i++)
		if (check_output(o, path, inputs[i], &e))
			return cmd_fail(&e);
	opened = cmd_open_recordings(o, inputs, n, true, &r, &m, &e);
	if (opened < 0)
		return cmd_fail(&e);
	if (rec_reader_session(r)->stats) {
		err_set(&e, ERR_RUNTIME, -ENODATA, "cannot export %s: %s", inputs[0],
			rec_reader_session(r)->profiler ? "it is a table, without single calls"
							: "an older mxbpf recorded it with --stats, so it has no "
							  "events; record it again");
		rc = cmd_fail(&e);
	} else {
		rc = cmd_write_trace(o, path, r, m);
	}
	mdl_free(m);
	rec_reader_close(r);
	return rc ? rc : opened ? CMD_FAILED : CMD_OK;
}

/* The last suffix of an output is that of its compressed form. */
static const char *suffix_of(const char *form)
{
	const char *const *suffix = form ? view_find(form)->suffixes : NULL;

	while (suffix && suffix[1])
		suffix++;
	return suffix ? *suffix : ".json.gz";
}

/* A file in a directory is named by the rank of the process, or by the number of the recording if it has no rank. */
static int export_name_of(const struct cmd_opts *o, const char *dir, unsigned nth, char **path, struct err *e)
{
	struct rec_reader *r;
	struct mdl *m;
	const struct mdl_session *s;

	if (cmd_open_recordings(o, &o->args[nth], 1, true, &r, &m, e) < 0)
		return e->code;
	s = rec_reader_session(r);
	if (asprintf(path, "%s%s-%u%s", dir, s->world_size ? "rank" : "recording", s->world_size ? s->rank : nth,
		     suffix_of(o->form)) < 0)
		err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	mdl_free(m);
	rec_reader_close(r);
	return e->code;
}

static int export_each(const struct cmd_opts *o, const char *dir)
{
	char **paths = calloc((size_t)o->nargs, sizeof(*paths));
	struct err e = {0};
	int i, j, rc = CMD_OK;

	if (!paths)
		err_set(&e, ERR_RUNTIME, -ENOMEM, "out of memory");
	else
		out_dir_make(dir, &e);
	for (i = 0; paths && i < o->nargs && !e.code; i++) {
		if (export_name_of(o, dir, (unsigned)i, &paths[i], &e) || !paths[i])
			break;
		for (j = 0; j < i && !e.code; j++)
			if (!strcmp(paths[i], paths[j]))
				err_set(&e, ERR_USAGE, -EEXIST,
					"%s and %s have the same rank, so their traces would have the same name; "
					"export them one by one",
					o->args[j], o->args[i]);
	}
	if (e.code)
		rc = cmd_fail(&e);
	for (i = 0; paths && i < o->nargs && paths[i] && !rc; i++)
		rc = export_to(o, paths[i], &o->args[i], 1);
	for (i = 0; paths && i < o->nargs; i++)
		free(paths[i]);
	free(paths);
	return rc;
}

/*
 * Each recording has files of its own in a data set, so that it does not matter which ones are exported together. A
 * damaged recording does not keep the others from being exported.
 */
static int export_into(const struct cmd_opts *o, const char *dir)
{
	int i, code, rc = CMD_OK;

	for (i = 0; i < o->nargs; i++) {
		code = export_to(o, dir, &o->args[i], 1);
		rc = rc ? rc : code;
	}
	return rc;
}

int cmd_export(const struct cmd_opts *o)
{
	const char *path = o->output ? o->output : "-";
	char plain[PATH_MAX]; /* a shell completes the name of a directory with a slash */
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		len--;
	snprintf(plain, sizeof(plain), "%.*s", (int)len, path);
	if (cmd_trace_view(o->form, plain)->mark)
		return export_into(o, plain);
	if (fmt_ends_with(path, "/"))
		return export_each(o, path);
	return export_to(o, path, o->args, (unsigned)o->nargs);
}
