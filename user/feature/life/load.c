// SPDX-License-Identifier: Apache-2.0
/* --life in a live session. */
#include "feature/life/life.h"
#include "session/feature.h"
#include "session/priv.h"

#include <errno.h>

static bool life_asked(const struct ses_opts *o)
{
	return o->life;
}

/* Returns true if the runtime has an engine, in which operators wait before they run. */
static bool has_lives(const struct plan *p)
{
	unsigned i;

	for (i = 0; i < p->adp->nprobes; i++)
		if (p->adp->probes[i].group == PROBE_LIFE)
			return true;
	return false;
}

static int life_check(struct session *ses, const struct ses_target *of, struct err *e)
{
	if (!has_lives(&of->plan))
		return err_set(
			e, ERR_USAGE, -ENOTSUP,
			"--life: %s has no queue of operators: it runs them where they are called; remove --life",
			of->plan.adp->title);
	if (!(ses->want.groups & PROBE_OP))
		return err_set(e, ERR_USAGE, -EINVAL,
			       "--life needs the probes of operators, which --probes leaves out; add op to --probes");
	ses->about.life = true;
	return 0;
}

const struct ses_feature life_session = {
	.asked = life_asked,
	.groups = PROBE_LIFE,
	.check = life_check,
};
