// SPDX-License-Identifier: Apache-2.0
#include "plan/ability.h"

#include "adapter/adapter.h"
#include "plan/plan.h"

bool plan_has_api(const struct adp *a)
{
	return plan_groups_of(a, true) & PROBE_API;
}

bool plan_has_lives(const struct adp *a)
{
	return plan_groups_of(a, true) & PROBE_LIFE;
}

bool plan_has_layers(const struct adp *a)
{
	unsigned i = 0;

	while (i < a->nprobes && !(a->probes[i].row.details & MXBPF_DETAIL_LAYER))
		i++;
	return i < a->nprobes;
}

bool plan_has_agent(const struct adp *a)
{
	return a->agent.add_callback;
}

bool plan_has_profiler(const struct adp *a)
{
	return a->marks.profiler;
}

bool plan_has_roles(const struct adp *a)
{
	return a->roles;
}

const char *plan_role_name(unsigned i)
{
	const struct adp *const *a;
	const struct adp_role *r;

	for (a = adapters; *a; a++)
		for (r = (*a)->roles; r && r->role; r++)
			if (!i--)
				return r->role;
	return NULL;
}
