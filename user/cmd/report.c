// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

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

int cmd_report(const struct cmd_opts *o)
{
	struct err e = {0};
	const struct mdl_session *s;
	struct rec_reader *r;
	struct mdl *m;
	int rc, opened;

	if (cmd_check_output(o->output ? o->output : "-", cmd_table_view(o), o->force, &e))
		return cmd_fail(&e);
	opened = cmd_open_recordings(o->args, (unsigned)o->nargs, o->by == VIEW_BY_EVENT, &r, &m, &e);
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
