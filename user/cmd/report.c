// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/fmt.h"
#include "cmd/cmd.h"

/* Checks that a process of the recording has the role. */
static int check_role(const char *role, const struct mdl_session *s, struct err *e)
{
	size_t i;

	for (i = 0; role && i < s->nprocesses; i++)
		if (!strcmp(s->processes[i].role, role))
			return 0;
	return role ? err_set(e, ERR_USAGE, -ENOENT, "--role %s: no process of the recording has this role", role) : 0;
}

/* "job.mxd" becomes "job.html". */
static void page_path(const char *recording, char path[PATH_MAX])
{
	const size_t len = strlen(recording), suffix = strlen(".mxd");

	snprintf(path, PATH_MAX, "%.*s.html", (int)(fmt_ends_with(recording, ".mxd") ? len - suffix : len), recording);
}

static int report(const struct cmd_opts *o)
{
	struct err e = {0};
	const struct mdl_session *s;
	struct rec_reader *r;
	struct mdl *m;
	int rc, opened;

	if (cmd_check_outputs(o, NULL, &e))
		return cmd_fail(&e);
	opened = cmd_open_recordings(o, o->args, (unsigned)o->nargs, o->by == VIEW_BY_EVENT, &r, &m, &e);
	if (opened < 0)
		return cmd_fail(&e);
	s = rec_reader_session(r);
	if (check_role(o->ses.role, s, &e) || cmd_check_details(o, s->details, s->account, "record with", &e))
		rc = cmd_fail(&e);
	else
		rc = cmd_print_recorded(o, r, m);
	mdl_free(m);
	rec_reader_close(r);
	return rc ? rc : opened ? CMD_FAILED : CMD_OK;
}

int cmd_report(const struct cmd_opts *o)
{
	struct cmd_opts own = *o;
	char path[PATH_MAX];
	int code;

	if (!o->open)
		return report(o);
	if (!o->output) {
		page_path(o->args[0], path);
		own.output = path;
	}
	own.format = CMD_HTML;
	own.quiet = true;
	code = report(&own);
	if (!code)
		puts(own.output);
	return code;
}
