// SPDX-License-Identifier: Apache-2.0
/* Explains the state of probes in words. */
#include <stdio.h>

#include "plan/plan.h"

const char *plan_why(const struct plan_probe *p, char buf[PLAN_WHY_BYTES])
{
	if (p->spare)
		return p->reason[0] ? p->reason : "not needed";
	if (!p->wanted)
		return "not selected by the options";
	if (p->stand_in) {
		snprintf(buf, PLAN_WHY_BYTES, "%s; %s is probed instead", p->reason, p->stand_in);
		return buf;
	}
	if (!p->reason[0] && p->nfuncs && p->nendless == p->nfuncs)
		return "its times are upper bounds: they last until the thread's next event";
	return p->reason;
}

unsigned plan_ops_matched(const struct plan *p, unsigned *left)
{
	unsigned n = 0;
	size_t i;

	*left = 0;
	for (i = 0; i < p->nprobes; i++) {
		n += p->probes[i].nleft ? p->probes[i].nfuncs : 0;
		*left += p->probes[i].nleft;
	}
	return n;
}

unsigned plan_api_probed(const struct plan *p, unsigned *left)
{
	unsigned n = 0;
	size_t i;

	for (i = 0; i < p->nprobes; i++)
		n += p->probes[i].row->group == PROBE_WORK && p->probes[i].wanted ? p->probes[i].nfuncs : 0;
	*left = p->napi > n ? p->napi - n : 0;
	return n;
}

const struct plan_probe *plan_teams(const struct plan *p)
{
	size_t i;

	for (i = 0; i < p->nprobes; i++)
		if (p->probes[i].row->group == PROBE_OMP)
			return &p->probes[i];
	return NULL;
}
