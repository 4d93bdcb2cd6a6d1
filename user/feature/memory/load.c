// SPDX-License-Identifier: Apache-2.0
/* --memory in a live session. */
#include "feature/memory/memory.h"
#include "session/feature.h"
#include "session/priv.h"

#include <errno.h>

static bool memory_asked(const struct ses_opts *o)
{
	return o->memory;
}

static void leave_out(struct ses_opts *o)
{
	o->memory = false;
}

/* An allocation without a certain end would leave memory without an owner. */
static int memory_check(struct session *ses, const struct ses_target *of, struct err *e)
{
	const struct plan_probe *p;

	for (p = of->plan.probes; p < of->plan.probes + of->plan.nprobes; p++)
		if (p->row->row.action == MXBPF_ACT_ALLOC && p->wanted && p->nendless)
			return err_set(e, ERR_TARGET, -ENOTSUP,
				       "--memory: no instruction in %s was found at which the address of an allocation "
				       "is known for certain",
				       p->lib->path);
	ses->about.held = true;
	return 0;
}

const struct ses_feature memory_session = {
	.asked = memory_asked,
	.groups = PROBE_POOL,
	.stack_groups = PROBE_OUTPUT,
	.of_calls = true,
	.check = memory_check,
	.leave_out = leave_out,
};
