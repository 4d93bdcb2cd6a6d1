// SPDX-License-Identifier: Apache-2.0
/* Spans that lasted much longer than their like, and what kept them. */
#include "feature/slow/slow.h"
#include "model/priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct kept_slow {
	struct mxbpf_slow span;
	uint64_t beyond_ns; /* the median of its row when it came */
};

/* From which duration on a span is slow. */
static uint64_t slow_from(uint64_t median_ns)
{
	uint64_t times, more;

	times = median_ns > UINT64_MAX / SLOW_TIMES ? UINT64_MAX : SLOW_TIMES * median_ns;
	more = median_ns > UINT64_MAX - SLOW_BEYOND_NS ? UINT64_MAX : median_ns + SLOW_BEYOND_NS;
	return times > more ? times : more;
}

static int slow_keep(struct mdl *m, const struct mxbpf_slow *s, uint64_t median_ns)
{
	struct kept_slow new = {.beyond_ns = s->dur_ns > median_ns ? s->dur_ns - median_ns : 0}, *k, *least;
	size_t i, n = buf_count(&m->slow, new);

	memcpy(&new.span, s, sizeof(new.span));
	new.span.h.size = sizeof(new.span);
	if (s->h.ts_ns + s->dur_ns > m->slow_until_ns)
		m->slow_until_ns = s->h.ts_ns + s->dur_ns;
	if (n < SLOW_MAX)
		return buf_put(&m->slow, &new, sizeof(new)) ? -ENOMEM : 0;
	if (new.beyond_ns <= m->slow_least_ns)
		return 0;
	k = least = buf_at(&m->slow, struct kept_slow, 0);
	for (i = 1; i < n; i++)
		if (k[i].beyond_ns < least->beyond_ns)
			least = &k[i];
	m->slow_least_ns = least->beyond_ns;
	if (new.beyond_ns > least->beyond_ns)
		*least = new;
	return 0;
}

struct mxbpf_slow *slow_at(struct mdl *m, size_t i)
{
	return i < buf_count(&m->slow, struct kept_slow) ? &buf_at(&m->slow, struct kept_slow, i)->span : NULL;
}

static int slow_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_slow *s = (const void *)rec;
	const struct mdl_row *r = row_find(m, s->cls, s->name_id, s->h.tgid, s->device);

	return r && r->count ? slow_keep(m, s, mdl_percentile(r, 0.50)) : 0;
}

static int slow_emit(const struct mdl *m, struct buf *out)
{
	size_t i;
	int err = 0;

	for (i = 0; !err && i < buf_count(&m->slow, struct kept_slow); i++)
		err = buf_put(out, &buf_at(&m->slow, struct kept_slow, i)->span, sizeof(struct mxbpf_slow));
	return err ? -ENOMEM : 0;
}

/* An end that was not seen is no news of its operator; calls of an API and waits are as long as what they wait for. */
static bool may_be_slow(const struct mxbpf_span *s)
{
	return s->flags & MXBPF_SPAN_ACCOUNT && !(s->flags & MXBPF_SPAN_UNWOUND) &&
	       (s->cls == MXBPF_CLASS_OPERATOR || s->cls == MXBPF_CLASS_KERNEL);
}

static int slow_span(struct mdl *m, struct mdl_row *r, const struct mxbpf_span *s)
{
	struct mxbpf_slow slow;

	if (r->count < SLOW_CALLS || !may_be_slow(s))
		return 0;
	if (r->count >= r->slow_due) {
		r->median_ns = mdl_percentile(r, 0.50); /* 328 buckets: seldom, as it moves little */
		r->slow_ns = slow_from(r->median_ns);
		r->slow_due = r->count > UINT64_MAX / 2 ? UINT64_MAX : 2 * r->count;
	}
	if (s->dur_ns < r->slow_ns)
		return 0;
	slow = (struct mxbpf_slow){
		.h = {.kind = MXBPF_SLOW, .size = sizeof(slow), .tgid = s->h.tgid, .ts_ns = s->h.ts_ns},
		.name_id = r->id,
		.dur_ns = s->dur_ns,
		.tid = s->tid,
		.device = s->device,
		.cls = s->cls,
		.cpu = s->cpu,
		.account = s->account,
	};
	recent_during(m, &slow);
	return slow_keep(m, &slow, r->median_ns);
}

static void explain(struct slow_call *s, uint64_t fault_ns)
{
	const struct mxbpf_account *a = &s->span.account;
	const uint64_t computed = a->on_cpu_ns > s->median_ns ? a->on_cpu_ns - s->median_ns : 0;
	uint64_t faults_ns, here = a->on_cpu_ns;
	unsigned i;

	add_sat(&here, a->runq_ns);
	add_sat(&here, a->blocked_ns);
	if (__builtin_mul_overflow(fault_ns, a->minflt, &faults_ns))
		faults_ns = UINT64_MAX;
	const uint64_t ns[SLOW_NCAUSES] = {
		[SLOW_COMPUTED] = computed,
		[SLOW_RUNNABLE] = a->runq_ns,
		[SLOW_BLOCKED] = a->blocked_ns,
		[SLOW_ELSEWHERE] = here < s->span.dur_ns ? s->span.dur_ns - here : 0,
	};

	for (i = 0; i < SLOW_NCAUSES; i++) {
		if (ns[i] > s->cause_ns) {
			s->cause = i;
			s->cause_ns = ns[i];
		}
	}
	if (s->cause == SLOW_COMPUTED && faults_ns >= computed / 2 && a->minflt)
		s->cause = SLOW_FAULTED;
	if (s->cause == SLOW_BLOCKED && a->majflt)
		s->cause = SLOW_READ;
}

static int by_beyond(const void *va, const void *vb)
{
	const struct slow_call *a = va, *b = vb;
	uint64_t na = a->span.dur_ns - a->median_ns, nb = b->span.dur_ns - b->median_ns;

	if (na != nb)
		return na > nb ? -1 : 1;
	return a->span.h.ts_ns < b->span.h.ts_ns ? -1 : a->span.h.ts_ns > b->span.h.ts_ns;
}

/* Whether a lies in b, of the same thread, and is nearly all that b has beyond its median. */
static bool explains(const struct slow_call *a, const struct slow_call *b)
{
	const uint64_t from = a->span.h.ts_ns, until = b->span.h.ts_ns + b->span.dur_ns;

	return a != b && a->span.tid == b->span.tid && a->span.h.tgid == b->span.h.tgid && from >= b->span.h.ts_ns &&
	       from <= until && a->span.dur_ns <= until - from && a->span.dur_ns < b->span.dur_ns &&
	       a->span.dur_ns - a->median_ns >= (b->span.dur_ns - b->median_ns) / 4 * 3;
}

/* Leaves out those that another one explains. */
static size_t innermost(struct slow_call *all, size_t n)
{
	bool outer[SLOW_MAX] = {false};
	size_t i, k, kept = 0;

	for (i = 0; i < n; i++)
		for (k = 0; k < n && !outer[i]; k++)
			outer[i] = explains(&all[k], &all[i]);
	for (i = 0; i < n; i++)
		if (!outer[i])
			all[kept++] = all[i];
	return kept;
}

int slow_calls(const struct mdl *m, uint64_t fault_ns, struct slow_call **slow, size_t *n)
{
	size_t have = buf_count(&m->slow, struct kept_slow), i;
	struct slow_call *all = calloc(have + 1, sizeof(*all));

	*slow = all;
	*n = 0;
	if (!all)
		return -ENOMEM;
	for (i = 0; i < have; i++) {
		struct slow_call s = {.span = buf_at(&m->slow, struct kept_slow, i)->span};

		s.row = row_find(m, s.span.cls, s.span.name_id, s.span.h.tgid, s.span.device);
		/* What was slow among the first may be as good as any by now. */
		s.median_ns = s.row ? mdl_percentile(s.row, 0.50) : UINT64_MAX;
		if (s.span.dur_ns < slow_from(s.median_ns))
			continue;
		explain(&s, fault_ns);
		all[(*n)++] = s;
	}
	*n = innermost(all, *n);
	qsort(all, *n, sizeof(*all), by_beyond);
	return 0;
}

static void slow_fini(struct mdl *m)
{
	buf_fini(&m->slow);
}

const struct mdl_feature feature_slow = {
	.kinds = {{MXBPF_SLOW, slow_fold}},
	.span = slow_span,
	.emit = slow_emit,
	.fini = slow_fini,
};
