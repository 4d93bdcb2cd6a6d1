// SPDX-License-Identifier: Apache-2.0
/* Writes traces of parts of the window. With --trace-every each part has a file, and --keep deletes the oldest. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "cmd/run.h"

char *cmd_trace_numbered(const char *path, unsigned nth)
{
	const struct view_ops *view = view_find_suffix(path);
	const char *const *suffix;
	size_t longest = 0, len = strlen(path);
	char *out;

	for (suffix = view ? view->suffixes : NULL; suffix && *suffix; suffix++)
		if (fmt_ends_with(path, *suffix) && strlen(*suffix) > longest)
			longest = strlen(*suffix);
	return asprintf(&out, "%.*s-%06u%s", (int)(len - longest), path, nth, path + len - longest) < 0 ? NULL : out;
}

int run_open_events(int fd, struct rec_reader **r, struct err *e)
{
	struct err why = {0};
	const int err = rec_reader_open(fd, r, &why);

	return err ? err_set(e, why.cls, err, "cannot read the events of the session: %s", why.why) : 0;
}

int run_trace_to(const struct run *r, int fd, const char *path, struct err *e)
{
	struct cmd_opts silent = *r->o;
	struct rec_reader *events = NULL;
	struct mdl *m = mdl_new();

	silent.quiet = true; /* no bar of progress beside the line of the session */
	if (!m)
		err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	else if (!cmd_check_output(path, cmd_trace_view(NULL, path), r->o->force, e) &&
		 !run_open_events(fd, &events, e) && !rec_reader_events(events, m, e))
		cmd_trace_to(&silent, path, events, m, e);
	rec_reader_close(events);
	mdl_free(m);
	return e->code;
}

/* Deletes the file that is one too many, unless somebody else has put another one there, or has deleted it already. */
static void forget_part(const struct run *r)
{
	const unsigned keep = r->o->keep;
	char *old = keep && r->ntraces > keep ? cmd_trace_numbered(r->so.trace, r->ntraces - keep) : NULL;
	struct err e = {0};

	if (old && !cmd_check_output(old, cmd_trace_view(NULL, old), false, &e) && out_remove(old, &e) &&
	    e.code != -ENOENT)
		cmd_warn("%s", e.why);
	free(old);
}

int run_trace_part(struct run *r, int fd)
{
	char *path = cmd_trace_numbered(r->so.trace, r->ntraces + 1);
	struct err e = {0};

	if (!path)
		err_set(&e, ERR_RUNTIME, -ENOMEM, "out of memory");
	else
		run_trace_to(r, fd, path, &e);
	r->ntraces++;
	r->nwritten += !e.code;
	forget_part(r);
	free(path);
	return e.code ? cmd_fail(&e) : CMD_OK;
}

void run_say_traces(const struct run *r)
{
	const unsigned keep = r->o->keep, first = keep && r->ntraces > keep ? r->ntraces - keep + 1 : 1;
	char *from = cmd_trace_numbered(r->so.trace, first), *to = cmd_trace_numbered(r->so.trace, r->ntraces);
	char safe[2][1024];

	if (from && to && r->nwritten && !r->o->quiet) {
		fmt_safe(safe[0], sizeof(safe[0]), from, strlen(from));
		fmt_safe(safe[1], sizeof(safe[1]), to, strlen(to));
		fprintf(stderr, "wrote %u traces; the last are %s to %s\n", r->nwritten, safe[0], safe[1]);
	}
	free(from);
	free(to);
}
