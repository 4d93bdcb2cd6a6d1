// SPDX-License-Identifier: Apache-2.0
/* --memory: who holds the memory of a device. */
#include "feature/memory/memory.h"
#include "session/priv.h"

#include <errno.h>

int ses_memory(struct session *ses, const struct ses_target *of, struct err *e)
{
	const struct plan_probe *p;

	if (!ses->o->memory)
		return 0;
	for (p = of->plan.probes; p < of->plan.probes + of->plan.nprobes; p++)
		if (p->row->row.action == MXBPF_ACT_ALLOC && p->wanted && p->nendless)
			return err_set(e, ERR_TARGET, -ENOTSUP,
				       "--memory: in %s is no place at which an allocation has its address for certain",
				       p->lib->path);
	ses->about.held = true;
	return 0;
}
