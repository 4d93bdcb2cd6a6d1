// SPDX-License-Identifier: Apache-2.0
/* Finds calls that lasted much longer than the median of their row, and the cause. */
#include "feature/slow/slow.h"

#include "feature/slow/recent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct kept_slow {
	struct mxbpf_slow span;
	uint64_t beyond_ns; /* time beyond the median of its row when it was folded */
};

struct state {
	struct buf kept;    /* struct kept_slow, at most SLOW_MAX */
	uint64_t until_ns;  /* the latest end of a slow call */
	uint64_t least_ns;  /* when `kept` is full: the smallest beyond_ns, or less */
	struct hash recent; /* see recent.h */
};

/* Returns the shortest duration that is slow. */
static uint64_t slow_from(uint64_t median_ns)
{
	uint64_t times, more;

	times = median_ns > UINT64_MAX / SLOW_TIMES ? UINT64_MAX : SLOW_TIMES * median_ns;
	more = median_ns > UINT64_MAX - SLOW_BEYOND_NS ? UINT64_MAX : median_ns + SLOW_BEYOND_NS;
	return times > more ? times : more;
}

#define KIND_PART  20 /* a kind has at least this part of the calls of a row: 5 % */
#define KIND_BELOW 4  /* buckets below the time that a call computes: 2/3 of it */
#define KIND_ABOVE 16 /* and above: four times it, because calls of the kind also wait for CPUs */

/*
 * A row can mix several kinds of calls, for example of two shapes. Returns the median of the kind that a call belongs
 * to which is on a CPU for cpu_ns: of calls that lasted about as long, or, if they are few, of the longest kind below.
 * Kinds begin at twice the median of the row, which is returned if there is none.
 */
static uint64_t median_of_kind(const struct mdl_row *r, uint64_t median_ns, uint64_t cpu_ns)
{
	const uint64_t least = r->count / KIND_PART > SLOW_CALLS ? r->count / KIND_PART : SLOW_CALLS;
	const unsigned from = mxbpf_bucket(SLOW_TIMES * median_ns);
	unsigned at, first, last, i;
	uint64_t calls, below;

	for (at = mxbpf_bucket(cpu_ns) + 1;
	     at-- > from;) { /* `from` is 0 if calls take no time but for what watching cost */
		first = at - from > KIND_BELOW ? at - KIND_BELOW : from;
		last = at + KIND_ABOVE < MXBPF_HIST_BUCKETS ? at + KIND_ABOVE : MXBPF_HIST_BUCKETS - 1;
		for (i = first, calls = 0; i <= last; i++)
			calls += r->hist[i];
		if (calls < least)
			continue;
		for (i = first, below = r->hist[i]; below * 2 < calls; i++)
			below += r->hist[i + 1];
		return mdl_bucket_low(i);
	}
	return median_ns;
}

static int slow_keep(struct state *state, const struct mxbpf_slow *s, uint64_t median_ns)
{
	struct kept_slow new = {.beyond_ns = s->dur_ns > median_ns ? s->dur_ns - median_ns : 0}, *k, *least;
	size_t i, n = buf_count(&state->kept, new);

	memcpy(&new.span, s, sizeof(new.span));
	new.span.h.size = sizeof(new.span);
	if (s->h.ts_ns + s->dur_ns > state->until_ns)
		state->until_ns = s->h.ts_ns + s->dur_ns;
	if (n < SLOW_MAX)
		return buf_put(&state->kept, &new, sizeof(new)) ? -ENOMEM : 0;
	if (new.beyond_ns <= state->least_ns)
		return 0;
	k = least = buf_at(&state->kept, struct kept_slow, 0);
	for (i = 1; i < n; i++)
		if (k[i].beyond_ns < least->beyond_ns)
			least = &k[i];
	state->least_ns = least->beyond_ns;
	if (new.beyond_ns > least->beyond_ns)
		*least = new;
	return 0;
}

/* Slow calls name what they waited for. */
static int off_cpu(struct mdl *m, const struct mxbpf_sched *r)
{
	struct state *state = mdl_state(m, &feature_slow);
	size_t i;

	if (!state || recent_put(&state->recent, r))
		return -ENOMEM;
	/* Two sources deliver spans and switches, so the span may have been folded before the switch. */
	for (i = 0; r->h.ts_ns < state->until_ns && i < buf_count(&state->kept, struct kept_slow); i++)
		recent_late(&buf_at(&state->kept, struct kept_slow, i)->span, r);
	return 0;
}

static int slow_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_slow *s = (const void *)rec;
	const struct mdl_row *r = mdl_row_find(m, s->cls, s->name_id, s->h.tgid, s->device);
	struct state *state = mdl_state(m, &feature_slow);

	if (!state)
		return -ENOMEM;
	return r && r->count ? slow_keep(state, s, mdl_percentile(r, 0.50)) : 0;
}

static int slow_emit(const struct mdl *m, struct buf *out)
{
	const struct state *state = mdl_state_of(m, &feature_slow);
	size_t i;
	int err = 0;

	for (i = 0; !err && i < buf_count(&state->kept, struct kept_slow); i++)
		err = buf_put(out, &buf_at(&state->kept, struct kept_slow, i)->span, sizeof(struct mxbpf_slow));
	return err ? -ENOMEM : 0;
}

/*
 * Returns whether a span can be slow. The end of an unwound span is not known. API calls and waits last as long as the
 * work that they wait for.
 */
static bool may_be_slow(const struct mxbpf_span *s)
{
	return s->flags & MXBPF_SPAN_ACCOUNT && !(s->flags & MXBPF_SPAN_UNWOUND) &&
	       (s->cls == MXBPF_CLASS_OPERATOR || s->cls == MXBPF_CLASS_KERNEL);
}

static int slow_span(struct mdl *m, struct mdl_row *r, const struct mxbpf_span *s)
{
	struct mxbpf_slow slow;
	struct state *state;
	uint64_t median_ns;

	if (r->count < SLOW_CALLS || !may_be_slow(s))
		return 0;
	if (r->count >= r->slow.due) {
		/* A percentile reads all 328 buckets, and the median of many calls changes little. */
		r->slow.median_ns = mdl_percentile(r, 0.50);
		r->slow.from_ns = slow_from(r->slow.median_ns);
		r->slow.due = r->count > UINT64_MAX / 2 ? UINT64_MAX : 2 * r->count;
	}
	if (s->dur_ns < r->slow.from_ns)
		return 0;
	median_ns = median_of_kind(r, r->slow.median_ns, s->account.on_cpu_ns);
	if (s->dur_ns < slow_from(median_ns))
		return 0;
	state = mdl_state(m, &feature_slow);
	if (!state)
		return -ENOMEM;
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
	recent_during(&state->recent, &slow);
	return slow_keep(state, &slow, median_ns);
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

/* Returns whether a is nested in b and has at least 3/4 of the time that b exceeds its median by. */
static bool explains(const struct slow_call *a, const struct slow_call *b)
{
	const uint64_t from = a->span.h.ts_ns, until = b->span.h.ts_ns + b->span.dur_ns;

	return a != b && a->span.tid == b->span.tid && a->span.h.tgid == b->span.h.tgid && from >= b->span.h.ts_ns &&
	       from <= until && a->span.dur_ns <= until - from && a->span.dur_ns < b->span.dur_ns &&
	       a->span.dur_ns - a->median_ns >= (b->span.dur_ns - b->median_ns) / 4 * 3;
}

/* Removes calls that another one explains. Returns the number of those that are left. */
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

/* Takes out of a call what watching cost its row on average, as its median is without that. */
static void less_cost(struct slow_call *s)
{
	const uint64_t each = s->row && s->row->raw_total_ns > s->row->total_ns && s->row->count
				      ? (s->row->raw_total_ns - s->row->total_ns) / s->row->count
				      : 0;
	const uint64_t cpu_ns = each < s->span.account.on_cpu_ns ? each : s->span.account.on_cpu_ns;

	s->span.dur_ns -= cpu_ns < s->span.dur_ns ? cpu_ns : s->span.dur_ns;
	s->span.account.on_cpu_ns -= cpu_ns;
}

int slow_calls(const struct mdl *m, uint64_t fault_ns, struct slow_call **slow, size_t *n)
{
	const struct state *state = mdl_state_of(m, &feature_slow);
	size_t have = state ? buf_count(&state->kept, struct kept_slow) : 0, i;
	struct slow_call *all = calloc(have + 1, sizeof(*all));

	*slow = all;
	*n = 0;
	if (!all)
		return -ENOMEM;
	for (i = 0; i < have; i++) {
		struct slow_call s = {.span = buf_at(&state->kept, struct kept_slow, i)->span};

		s.row = mdl_row_find(m, s.span.cls, s.span.name_id, s.span.h.tgid, s.span.device);
		/* The median can have risen since the call was kept. */
		s.median_ns = s.row ? median_of_kind(s.row, mdl_percentile(s.row, 0.50), s.span.account.on_cpu_ns)
				    : UINT64_MAX;
		less_cost(&s);
		if (s.span.dur_ns < slow_from(s.median_ns))
			continue;
		explain(&s, fault_ns);
		all[(*n)++] = s;
	}
	*n = innermost(all, *n);
	qsort(all, *n, sizeof(*all), by_beyond);
	return 0;
}

static int slow_copy(struct mdl *to, const struct mdl *from)
{
	const struct state *f = mdl_state_of(from, &feature_slow);
	struct state *t = mdl_state(to, &feature_slow);

	if (!t || buf_put(&t->kept, f->kept.data, f->kept.len))
		return -ENOMEM;
	t->until_ns = f->until_ns;
	t->least_ns = f->least_ns;
	return recent_copy(&t->recent, &f->recent);
}

static void slow_fini(struct mdl *m)
{
	struct state *state = mdl_state(m, &feature_slow);

	buf_fini(&state->kept);
	mdl_owned_fini(&state->recent);
}

const struct mdl_feature feature_slow = {
	.state_bytes = sizeof(struct state),
	.kinds = {{MXBPF_SLOW, slow_fold}},
	.span = slow_span,
	.off_cpu = off_cpu,
	.emit = slow_emit,
	.copy = slow_copy,
	.fini = slow_fini,
};
