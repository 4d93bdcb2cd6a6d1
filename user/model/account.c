// SPDX-License-Identifier: Apache-2.0
/* Where the time of spans went, added up. */
#include "model/priv.h"

uint64_t mdl_on_cpu_ns(const struct mdl_row *r)
{
	uint64_t off = r->account.runq_ns;

	add_sat(&off, r->account.blocked_ns);
	add_sat(&off, r->account.elsewhere_ns);
	return off < r->total_ns ? r->total_ns - off : 0;
}

void mdl_account_add(struct mxbpf_account_sum *to, const struct mxbpf_span *s)
{
	const struct mxbpf_account *a = &s->account;
	uint64_t here = a->on_cpu_ns;

	if (!(s->flags & MXBPF_SPAN_ACCOUNT))
		return;
	add_sat(&to->runq_ns, a->runq_ns);
	add_sat(&to->blocked_ns, a->blocked_ns);
	add_sat(&to->nvcsw, a->nvcsw);
	add_sat(&to->nivcsw, a->nivcsw);
	add_sat(&to->minflt, a->minflt);
	add_sat(&to->majflt, a->majflt);
	add_sat(&to->migrated, a->flags & MXBPF_ACCOUNT_MIGRATED && a->nvcsw);
	add_sat(&here, a->runq_ns);
	add_sat(&here, a->blocked_ns);
	if (a->flags & MXBPF_ACCOUNT_PART && here < s->dur_ns)
		add_sat(&to->elsewhere_ns, s->dur_ns - here);
}

/* They are sums alone, of one type. */
void account_merge(struct mxbpf_account_sum *to, const struct mxbpf_account_sum *from)
{
	uint64_t *sums = (uint64_t *)to;
	const uint64_t *more = (const uint64_t *)from;
	unsigned i;

	for (i = 0; i < sizeof(*to) / sizeof(*sums); i++)
		add_sat(&sums[i], more[i]);
}
