// SPDX-License-Identifier: Apache-2.0
#include "cmd/cmd.h"

int cmd_report(const struct cmd_opts *o)
{
	struct err e = {0};
	const struct mdl_session *s;
	struct rec_reader *r;
	struct mdl *m;
	int rc;

	if (cmd_open_recordings(o->args, (unsigned)o->nargs, &r, &m, &e))
		return cmd_fail(&e);
	s = rec_reader_session(r);
	if (cmd_check_details(o, s->details, s->account, "record with", &e))
		rc = cmd_fail(&e);
	else
		rc = cmd_print_recorded(o, r, m);
	mdl_free(m);
	rec_reader_close(r);
	return rc;
}
