// SPDX-License-Identifier: Apache-2.0
/* `mxbpf trace --via kineto`: a trace by PyTorch's own profiler, of a process that was started to take such requests.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fmt.h"
#include "cmd/run.h"
#include "kineto/kineto.h"

#define DURATION_NS 1000000000ull

static void on_tell(void *ctx, const char *text)
{
	const struct cmd_opts *o = ctx;

	if (!o->quiet)
		fprintf(stderr, "%s\n", text);
}

/* Several processes have a file each, with the number of the process in its name. Owned. NULL: out of memory. */
static char *path_of(const struct cmd_opts *o, const struct kineto *k, unsigned i)
{
	char own[CMD_NAME_BYTES];

	cmd_own_name(o, "json", own);
	if (!kin_pid(k, 1))
		return strdup(o->output ? o->output : own);
	return cmd_trace_numbered(o->output ? o->output : own, (unsigned)kin_pid(k, i));
}

static int check_path(const struct cmd_opts *o, const char *path, bool several, struct err *e)
{
	if (several && o->output && !strcmp(o->output, "-"))
		return err_set(e, ERR_USAGE, -EINVAL,
			       "--output: several traces cannot go to standard output; name a file");
	if (strcmp(path, "-") && !fmt_ends_with(path, ".json") && !fmt_ends_with(path, ".json.gz"))
		return err_set(e, ERR_USAGE, -EINVAL,
			       "--output: Kineto writes JSON; give a name that ends with .json or .json.gz");
	return cmd_check_output(path, view_find("chrome"), o->force, e);
}

static int write_one(const struct cmd_opts *o, const struct kineto *k, unsigned i, const char *path, struct err *e)
{
	char safe[1024], bytes[24];
	struct out *out;

	if (out_open(path, fmt_ends_with(path, ".gz"), &out, e))
		return e->code;
	if (kin_copy(k, i, out, e)) {
		out_abort(out);
		return e->code;
	}
	if (out_commit(out, e))
		return e->code;
	fmt_safe(safe, sizeof(safe), path, strlen(path));
	if (!o->quiet && strcmp(path, "-"))
		fprintf(stderr, "wrote %s: Kineto's trace of process %d, %s\n", safe, kin_pid(k, i),
			fmt_bytes(kin_bytes(k, i), bytes));
	return 0;
}

/* Checks the names of all files (write: false), or writes the traces that there are. */
static int each_file(const struct cmd_opts *o, const struct kineto *k, bool write, struct err *e)
{
	char *path;
	unsigned i;

	for (i = 0; kin_pid(k, i) && !e->code; i++) {
		path = path_of(o, k, i);
		if (!path)
			err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
		else if (!write)
			check_path(o, path, kin_pid(k, 1), e);
		else if (kin_bytes(k, i))
			write_one(o, k, i, path, e);
		free(path);
	}
	return e->code;
}

int cmd_trace(const struct cmd_opts *o)
{
	struct kin_opts ko = {.pid = o->ses.choice.pids[0],
			      .descendants = o->ses.choice.job,
			      .duration_ns = o->ses.duration_ns ? o->ses.duration_ns : DURATION_NS,
			      .steps = o->steps,
			      .with = o->with,
			      .tell = on_tell,
			      .ctx = (void *)o};
	struct kineto *k = NULL;
	struct err e = {0};
	int code;

	ko.signals = signals_open(false, &e);
	signals_hold();
	if (e.code || kin_open(&ko, &k, &e) || each_file(o, k, false, &e) || kin_run(k, &e) ||
	    each_file(o, k, true, &e))
		code = cmd_fail(&e);
	else
		code = CMD_OK;
	kin_close(k);
	if (ko.signals >= 0)
		close(ko.signals);
	return e.code == -EINTR ? CMD_NOTHING_SEEN : code;
}
