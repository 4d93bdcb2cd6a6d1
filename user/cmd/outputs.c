// SPDX-License-Identifier: Apache-2.0
/* Output files: the meaning of suffixes, and which existing files may be replaced. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fmt.h"
#include "cmd/opts.h"
#include "mxbpf_file.h"

/* The suffix of a device or pipe means nothing. A directory counts here as well; opening it fails later. */
static bool is_stream(const char *path)
{
	struct stat st;

	return !strcmp(path, "-") || (!stat(path, &st) && !S_ISREG(st.st_mode));
}

const char *cmd_table_suffix(unsigned i)
{
	static const char *const suffixes[] = {".txt", ".json", ".html", ".csv", NULL}; /* by enum cmd_format */

	return suffixes[i];
}

int cmd_settle_format(struct cmd_opts *o, const char *(*suffix)(unsigned), struct err *e)
{
	char gz[16], all[200];

	for (o->format = 0; o->output && suffix((unsigned)o->format); o->format++) {
		snprintf(gz, sizeof(gz), "%s.gz", suffix((unsigned)o->format));
		if (fmt_ends_with(o->output, suffix((unsigned)o->format)) || fmt_ends_with(o->output, gz))
			return 0;
	}
	o->format = CMD_TABLE;
	if (!o->output || is_stream(o->output))
		return 0;
	return err_set(e, ERR_USAGE, -EINVAL,
		       "--output: the suffix of '%.60s' sets no format (%s, each also with .gz); rename it, or add "
		       "-f FORMAT",
		       o->output, cmd_join_words(suffix, all));
}

void cmd_stamp(char stamp[CMD_STAMP_BYTES])
{
	const time_t now = time(NULL);
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(stamp, CMD_STAMP_BYTES, "%Y%m%dT%H%M%SZ", &tm);
}

void cmd_own_name(const struct cmd_opts *o, const char *suffix, char name[CMD_NAME_BYTES])
{
	char stamp[CMD_STAMP_BYTES];

	cmd_stamp(stamp);
	snprintf(name, CMD_NAME_BYTES, "mxbpf-%d-%s.%s", o->ses.choice.npids ? o->ses.choice.pids[0] : getpid(), stamp,
		 suffix);
}

int cmd_check_suffix(const char *option, const char *path, struct err *e)
{
	const struct view_ops *of = view_find_suffix(path);
	const struct view_ops *const *s;
	const char *const *suffix;
	char known[200] = "";
	size_t len = 0;

	if (of && of->mark && strcmp(option, "output"))
		return err_set(e, ERR_USAGE, -EINVAL,
			       "--%s: '%.60s' is a data set, which is made of a recording: record, then mxbpf export "
			       "RECORDING -o DIR%s",
			       option, path, of->suffixes[0]);
	if (of || is_stream(path) || fmt_ends_with(path, "/"))
		return 0;
	if (fmt_ends_with(path, ".parquet"))
		return err_set(e, ERR_USAGE, -EINVAL,
			       "--%s: mxbpf writes no Parquet; export to DIR.arrow, and convert that with the "
			       "statement on the page docs/dataset.md",
			       option);
	for (s = view_registry; *s; s++)
		for (suffix = (*s)->suffixes; suffix && *suffix && len < sizeof(known); suffix++)
			len += snprintf(known + len, sizeof(known) - len, "%s%s", len ? ", " : "", *suffix);
	return err_set(e, ERR_USAGE, -EINVAL, "--%s: the suffix of '%.60s' sets no format; use one of %s", option, path,
		       known);
}

/* Returns true if a line begins with the magic text, or if it is in a binary file. */
static bool has_magic(const char *text, size_t len, const char *magic, bool binary)
{
	const char *at = text, *end = text + len;

	while ((at = memmem(at, (size_t)(end - at), magic, strlen(magic)))) {
		if (binary || at == text || at[-1] == '\n')
			return true;
		at++;
	}
	return false;
}

/* A format without a magic line has suffixes that no other program uses. */
static bool is_own(const char *path, const struct out_parts *p, const struct view_ops *view)
{
	const char *const *text;

	for (text = view->magic; text && *text; text++)
		if (has_magic(p->head, p->head_len, *text, view->binary) ||
		    has_magic(p->tail, p->tail_len, *text, view->binary))
			return true;
	for (text = view->suffixes; !view->magic && text && *text; text++)
		if (fmt_ends_with(path, *text))
			return true;
	return false;
}

static bool is_recording(const struct out_parts *p)
{
	const size_t len = strlen(MXBPF_FILE_MAGIC);

	return p->head_len >= len && !memcmp(p->head, MXBPF_FILE_MAGIC, len);
}

int cmd_check_output(const char *path, const struct view_ops *view, bool force, struct err *e)
{
	struct out_parts *p;
	bool ours;
	int ret;

	if (view && view->mark && !strcmp(path, "-"))
		return err_set(e, ERR_USAGE, -EINVAL, "--format %s writes a directory: name it with -o DIR%s",
			       view->name, view->suffixes[0]);
	if (view && view->mark)
		return out_dir_check(path, view->mark, e);
	ret = out_check(path, e);
	if (ret || force)
		return ret;
	p = malloc(sizeof(*p));
	if (!p)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	ours = !out_read_existing(path, p) || (view ? is_own(path, p, view) : is_recording(p));
	free(p);
	if (ours)
		return 0;
	return err_set(e, ERR_RUNTIME, -EEXIST,
		       "%s exists and is not %s%s that mxbpf wrote; give another name, or replace it with --force",
		       path, view ? "a file of format " : "a recording", view ? view->name : "");
}

int cmd_check_outputs(const struct cmd_opts *o, const char *recording, struct err *e)
{
	char *first = o->ses.trace_part_ns ? cmd_trace_numbered(o->ses.trace, 1) : NULL;
	const char *trace = first ? first : o->ses.trace;
	int ret = 0;

	if (recording)
		ret = cmd_check_output(recording, NULL, o->force, e);
	else
		ret = cmd_check_output(o->output ? o->output : "-", cmd_table_view(o), o->force, e);
	if (!ret && o->html)
		ret = cmd_check_output(o->html, view_find("html"), o->force, e);
	if (!ret && trace)
		ret = cmd_check_output(trace, cmd_trace_view(NULL, trace), o->force, e);
	free(first);
	return ret;
}
