// SPDX-License-Identifier: Apache-2.0
/* --life in a live session. */
#include "feature/life/life.h"
#include "session/feature.h"
#include "session/priv.h"

#include <errno.h>

static bool asked(const struct ses_opts *o)
{
	return o->life;
}

/* Whether the runtime has an engine, in which operators wait before they run. */
static bool has_lives(const struct plan *p)
{
	unsigned i;

	for (i = 0; i < p->adp->nprobes; i++)
		if (p->adp->probes[i].group == PROBE_LIFE)
			return true;
	return false;
}

static int check(struct session *ses, const struct ses_target *of, struct err *e)
{
	if (!has_lives(&of->plan))
		return err_set(e, ERR_USAGE, -ENOTSUP, "--life: operators of %s run where they are called",
			       of->plan.adp->title);
	if (!(ses->want.groups & PROBE_OP))
		return err_set(e, ERR_USAGE, -EINVAL, "--life needs --probes op as well: lives end with those");
	ses->about.life = true;
	return 0;
}

const struct ses_feature life_session = {
	.asked = asked,
	.groups = PROBE_LIFE,
	.check = check,
};
