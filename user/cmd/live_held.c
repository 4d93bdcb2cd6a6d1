// SPDX-License-Identifier: Apache-2.0
/* --memory: who holds the memory of a device. */
#include "cmd/live.h"

#include <errno.h>

int live_held(struct live *l, struct err *e)
{
	const struct plan_probe *p;

	if (!l->o->memory)
		return 0;
	for (p = l->plan.probes; p < l->plan.probes + l->plan.nprobes; p++)
		if (p->row->row.action == MXBPF_ACT_ALLOC && p->wanted && p->nendless)
			return err_set(e, ERR_TARGET, -ENOTSUP,
				       "--memory: in %s is no place at which an allocation has its address for certain",
				       p->lib->path);
	l->session.held = true;
	return 0;
}
