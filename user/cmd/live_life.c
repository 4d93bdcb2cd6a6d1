// SPDX-License-Identifier: Apache-2.0
/* --life: operators from being pushed on, and what the program waits for. */
#include <errno.h>

#include "cmd/live.h"

/* Whether the runtime has an engine whose operators wait before they run. */
static bool has_lives(const struct plan *p)
{
	unsigned i;

	for (i = 0; i < p->adp->nprobes; i++)
		if (p->adp->probes[i].group == PROBE_LIFE)
			return true;
	return false;
}

int live_life(struct live *l, struct err *e)
{
	if (!l->o->life)
		return 0;
	if (!has_lives(&l->plan))
		return err_set(e, ERR_USAGE, -ENOTSUP, "--life: operators of %s run where they are called",
			       l->plan.adp->title);
	if (!(l->want.groups & PROBE_OP))
		return err_set(e, ERR_USAGE, -EINVAL, "--life needs --probes op as well: lives end with those");
	l->session.life = true;
	return 0;
}
