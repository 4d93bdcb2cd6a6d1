// SPDX-License-Identifier: Apache-2.0
/* Sums of on-CPU, run-queue and blocked time of spans. */
#include "model/priv.h"

uint64_t mdl_on_cpu_ns(const struct mdl_row *r)
{
	uint64_t off = r->account.runq_ns;

	add_sat(&off, r->account.blocked_ns);
	add_sat(&off, r->account.elsewhere_ns);
	return off < r->total_ns ? r->total_ns - off : 0;
}

/* Adds the part of an account that is not in the self time: that of nested spans, or all of an asynchronous span. */
static void nested_add(struct mxbpf_account_sum *to, const struct mxbpf_span *s)
{
	const struct mxbpf_account *a = &s->account;
	const struct mxbpf_account_nested all = {a->runq_ns, a->blocked_ns, a->nvcsw, a->nivcsw, a->minflt, a->majflt};
	const struct mxbpf_account_nested *n = s->flags & MXBPF_SPAN_ASYNC ? &all : &s->nested;

	add_sat(&to->nested_runq_ns, n->runq_ns);
	add_sat(&to->nested_blocked_ns, n->blocked_ns);
	add_sat(&to->nested_nvcsw, n->nvcsw);
	add_sat(&to->nested_nivcsw, n->nivcsw);
	add_sat(&to->nested_minflt, n->minflt);
	add_sat(&to->nested_majflt, n->majflt);
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
	nested_add(to, s);
}

/* All members of the struct are 64-bit sums. */
void account_merge(struct mxbpf_account_sum *to, const struct mxbpf_account_sum *from)
{
	uint64_t *sums = (uint64_t *)to;
	const uint64_t *more = (const uint64_t *)from;
	unsigned i;

	for (i = 0; i < sizeof(*to) / sizeof(*sums); i++)
		add_sat(&sums[i], more[i]);
}

/* Subtracts n from a sum, which stays within 0 and high, and clears n. */
static void take_off(__u64 *from, __u64 *n, uint64_t high)
{
	*from = *from > *n ? *from - *n : 0;
	*from = *from < high ? *from : high;
	*n = 0;
}

void mdl_row_own(struct mdl_row *r)
{
	struct mxbpf_account_sum *a = &r->account;

	r->many = true;
	r->total_ns = r->self_ns;
	r->alloc_bytes = r->self_alloc_bytes;
	take_off(&a->runq_ns, &a->nested_runq_ns, r->self_ns);
	take_off(&a->blocked_ns, &a->nested_blocked_ns, r->self_ns - a->runq_ns);
	take_off(&a->nvcsw, &a->nested_nvcsw, UINT64_MAX);
	take_off(&a->nivcsw, &a->nested_nivcsw, UINT64_MAX);
	take_off(&a->minflt, &a->nested_minflt, UINT64_MAX);
	take_off(&a->majflt, &a->nested_majflt, UINT64_MAX);
	a->elsewhere_ns = 0;
	features_own_row(r);
}
