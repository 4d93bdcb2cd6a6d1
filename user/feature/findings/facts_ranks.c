// SPDX-License-Identifier: Apache-2.0
/* The rank of a job that lags, so that the others wait for it. */
#include "feature/findings/findings.h"
#include "feature/steps/steps.h"

#define LAST_TIMES 2 /* the last rank waits for less than a half of what the others wait for */

/* The profiled rank that spends the least in exchanges, if the others spend much more. */
static void find_last(struct facts *f)
{
	uint64_t others[FACTS_LOOPS_MAX];
	unsigned k, n = 0, least = 0;

	for (k = 0; k < FACTS_LOOPS_MAX && f->loops[k].tid; k++) {
		if (f->loops[k].tgid == f->loop.tgid)
			f->exchange_ns = f->loops[k].exchange_ns;
		least = f->loops[k].exchange_ns < f->loops[least].exchange_ns ? k : least;
	}
	for (k = 0; k < FACTS_LOOPS_MAX && f->loops[k].tid; k++)
		if (k != least)
			others[n++] = f->loops[k].exchange_ns;
	if (f->loops[least].exchange_ns < facts_median(others, n) / LAST_TIMES)
		f->last_rank = f->loops[least].tgid;
}

/* The time that the last rank spends in an operator beyond the median of the others. */
static uint64_t excess(const struct mdl *m, const struct facts *f, const struct mdl_row *r)
{
	uint64_t others[FACTS_LOOPS_MAX], usual;
	const struct mdl_row *of;
	unsigned k, n = 0;

	for (k = 0; k < FACTS_LOOPS_MAX && f->loops[k].tid; k++) {
		if (f->loops[k].tgid == f->last_rank)
			continue;
		of = mdl_row_find(m, r->cls, r->id, f->loops[k].tgid, r->device);
		others[n++] = of ? of->self_ns : 0;
	}
	usual = facts_median(others, n);
	return r->self_ns > usual ? r->self_ns - usual : 0;
}

static void find_more(struct mdl *m, struct facts *f)
{
	size_t n, i;
	const struct mdl_row *const *rows = mdl_rows(m, MXBPF_CLASS_OPERATOR, &n);
	struct fact_operator more[FACTS_OPERATORS_MAX] = {{0}};

	for (i = 0; i < n; i++)
		if (rows[i]->tgid == f->last_rank && !steps_is_exchange(m, rows[i]->name_id))
			facts_keep_operator(more, m, rows[i]->name_id, excess(m, f, rows[i]));
	f->last_more = more[0];
}

void facts_ranks(struct mdl *m, struct facts *f)
{
	find_last(f);
	if (f->last_rank)
		find_more(m, f);
}
