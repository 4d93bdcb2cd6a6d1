// SPDX-License-Identifier: Apache-2.0
/* --life: operators from being pushed on, and what the program waits for. */
#include "feature/life/life.h"
#include <errno.h>

#include "session/priv.h"

/* Whether the runtime has an engine whose operators wait before they run. */
static bool has_lives(const struct plan *p)
{
	unsigned i;

	for (i = 0; i < p->adp->nprobes; i++)
		if (p->adp->probes[i].group == PROBE_LIFE)
			return true;
	return false;
}

int ses_life(struct session *ses, const struct ses_target *of, struct err *e)
{
	if (!ses->o->life)
		return 0;
	if (!has_lives(&of->plan))
		return err_set(e, ERR_USAGE, -ENOTSUP, "--life: operators of %s run where they are called",
			       of->plan.adp->title);
	if (!(ses->want.groups & PROBE_OP))
		return err_set(e, ERR_USAGE, -EINVAL, "--life needs --probes op as well: lives end with those");
	ses->about.life = true;
	return 0;
}
