/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * The cost of watching: the time that hits take from the job. Each hit adds the estimate of its row to a sum of its
 * thread. The cost of a span is the growth of this sum from its start to its end. User space makes the estimates. It
 * also compares the time between two hits of one place (a beat) while the job is watched with that while it is not.
 */
#ifndef COST_BPF_H
#define COST_BPF_H

#include "account.bpf.h"
#include "common.bpf.h"
#include "mxbpf_cost.h"

const volatile __u8 cfg_nr[MXBPF_ROWS_MAX]; /* [K] is K: a program learns the number of its row (user/attach/rows.c) */

volatile struct mxbpf_hit_cost hit_costs[MXBPF_ROWS_MAX];
struct mxbpf_beat beats[MXBPF_BEATS_MAX];
volatile __u32 beats_used;   /* nonzero: some entries of `beats` are in use */
volatile __u32 places_asked; /* nonzero: about one in this many hits of a thread is counted by its place; 0: none is */

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MXBPF_PLACES_MAX);
	__type(key, struct mxbpf_place);
	__type(value, __u64);
} places SEC(".maps");

__noinline int place_count(__u64 ip)
{
	struct bpf_pidns_info ids = thread_ids();
	struct mxbpf_place place = {.ip = ip, .tgid = ids.tgid, .tid = ids.pid};
	__u64 one = 1, *n = bpf_map_lookup_elem(&places, &place);

	if (n)
		__sync_fetch_and_add(n, 1);
	else
		bpf_map_update_elem(&places, &place, &one, BPF_NOEXIST);
	return 0;
}

/*
 * Chooses one in places_asked hits. The hits of a loop have a period, which every N-th hit would always meet at the
 * same place, so the choice is by multiples of the golden ratio.
 */
static __always_inline bool place_counts(__u64 hit)
{
	return (__u64)((__u32)hit * 2654435769u) * places_asked >> 32 == 0;
}

/* Adds the interval since the last hit of the place. cost_ns: the sum of the thread. */
static __always_inline void beat_add(struct mxbpf_beat *b, __u64 now, __u64 cost_ns)
{
	struct mxbpf_account_start s = {};
	__u64 ns, cpu_ns;

	if (cfg_account && bpf_core_field_exists(((struct task_struct *)0)->sched_info.run_delay))
		account_note(&s, bpf_get_current_task_btf());
	ns = now - b->last_ns;
	cpu_ns = cfg_account ? ns + s.ran_ns - b->last_ran_ns : ns;
	if (b->last_ns) {
		b->runq_ns += s.run_delay_ns - b->last_runq_ns;
		b->cost_ns += cost_ns - b->last_cost_ns;
		mxbpf_beat_add(b, ns, cpu_ns);
	}
	b->last_ns = now;
	b->last_ran_ns = s.ran_ns;
	b->last_runq_ns = s.run_delay_ns;
	b->last_cost_ns = cost_ns;
}

/* Adds a hit to the beat of its place, if there is one. */
__noinline int beat_hit(__u64 ip, __u64 now, __u64 cost_ns)
{
	struct bpf_pidns_info ids;
	struct mxbpf_beat *b;
	int i;

	for (i = 0; i < MXBPF_BEATS_MAX; i++) {
		b = &beats[i];
		if (b->ip != ip)
			continue;
		ids = thread_ids();
		if (b->tid == ids.pid && b->tgid == ids.tgid)
			beat_add(b, now, cost_ns);
	}
	return 0;
}

/* Adds what this hit costs to the sum of its thread. */
static __always_inline void cost_hit(struct pt_regs *ctx, struct mxbpf_thread *t, const volatile __u8 *nr)
{
	const volatile struct mxbpf_hit_cost *cost = &hit_costs[*nr & (MXBPF_ROWS_MAX - 1)];
	const __u64 now = bpf_ktime_get_ns();
	const __s64 gap_ns = now - t->hit_over_ns;
	const __u32 part = gap_ns < MXBPF_WARM_NS ? MXBPF_WARM_COST : MXBPF_COLD_COST;
	const __u64 all = cost->all * part / MXBPF_COLD_COST;

	t->hit_over_ns = now + all;
	t->cost_ns += all;
	t->behind_start_ns = cost->behind_start * part / MXBPF_COLD_COST;
	t->behind_end_ns = cost->behind_end * part / MXBPF_COLD_COST;
	if (places_asked && place_counts(t->counts[MXBPF_COUNT_HITS]))
		place_count(PT_REGS_IP(ctx));
	if (beats_used)
		beat_hit(PT_REGS_IP(ctx), now, t->cost_ns);
}

/* A hit while nothing is recorded. It counts in a beat only, so that beats show the job without other probes. */
static __always_inline void cost_rest(struct pt_regs *ctx)
{
	if (beats_used)
		beat_hit(PT_REGS_IP(ctx), bpf_ktime_get_ns(), 0);
}

/* Notes the cost of the hits on the thread before frame f, which opens in this hit. */
static __always_inline void cost_open(struct mxbpf_thread *t, struct mxbpf_frame *f, bool nested)
{
	f->cost_ns = t->cost_ns - t->behind_start_ns;
	if (!nested)
		t->before_ns = f->cost_ns - t->apart_ns;
}

/* Returns the cost of the hits since frame f opened, up to a moment at the beginning of this hit. */
static __always_inline __u64 cost_since(const struct mxbpf_thread *t, const struct mxbpf_frame *f)
{
	const __s64 ns = t->cost_ns - t->behind_end_ns - f->cost_ns;

	return ns < 0 ? 0 : ns;
}

/* Fills the cost of span s of frame f, which ends in this hit. The frame is off the stack already. */
static __always_inline void cost_fill(struct mxbpf_span *s, struct mxbpf_thread *t, const struct mxbpf_frame *f)
{
	const __u64 all = s->flags & MXBPF_SPAN_ASYNC ? 0 : cost_since(t, f);

	s->cost.all = mxbpf_cost_units(all);
	s->cost.self = mxbpf_cost_units(all > f->child_cost_ns ? all - f->child_cost_ns : 0);
	s->cost.before = s->cost.pad = 0;
	if (t->depth || s->flags & MXBPF_SPAN_ASYNC)
		return;
	s->cost.before = mxbpf_cost_units(t->before_ns);
	t->apart_ns = t->cost_ns - t->behind_end_ns;
}

#endif
