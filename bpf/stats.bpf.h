/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * --stats: the kernel sums finished spans and allocations instead of sending them. No locks are used: sums are
 * atomic additions, and minimum and maximum are updated by compare-and-swap. Rows are striped by CPU, so that two
 * CPUs seldom share one. User space takes the rows by putting an empty map in the place of the full one. The kernel
 * returns from this update when no program uses the old map any more.
 */
#ifndef STATS_BPF_H
#define STATS_BPF_H

#include "common.bpf.h"
#include "counters.bpf.h"
#include "mxbpf_hist.h"
#include "mxbpf_stats.h"

#define STATS_TRIES 64 /* compare-and-swap attempts; each failure is another CPU's success */

const volatile __u32 cfg_stripe_mask;

/* Sizes instead of types, because clang 14 emits no type information for a map in a map. */
struct stat_rows {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MXBPF_STATS_ROWS_MAX);
	__uint(key_size, sizeof(struct mxbpf_stat_key));
	__uint(value_size, sizeof(struct mxbpf_stat));
};

struct stat_mems {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MXBPF_STATS_DEVICES_MAX);
	__uint(key_size, sizeof(struct mxbpf_stat_mem_key));
	__uint(value_size, sizeof(struct mxbpf_stat_mem));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct stat_rows);
} stat_rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct stat_mems);
} stat_mems SEC(".maps");

/* Initial value of a row, which is too large for the BPF stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct mxbpf_stat);
} stat_blank SEC(".maps");

/* Raises *p to at least v. Returns 0 if other CPUs changed *p in each of STATS_TRIES attempts. */
__noinline int stats_raise(__u64 *p, __u64 v)
{
	__u64 old, seen;
	int i;

	if (!p)
		return 0;
	old = *p;
	for (i = 0; i < STATS_TRIES; i++) {
		if (old >= v)
			return 1;
		seen = __sync_val_compare_and_swap(p, old, v);
		if (seen == old)
			return 1;
		old = seen;
	}
	return 0;
}

#define STATS_NO_TRY (~0ull)

/*
 * Returns the live bytes after an allocation or a free. They never fall below 0, because memory allocated before
 * the window is not known. Returns STATS_NO_TRY if every attempt failed.
 */
__noinline __u64 stats_live(__u64 *live, __s64 bytes)
{
	__u64 old, now, seen;
	int i;

	if (!live)
		return STATS_NO_TRY;
	old = *live;
	for (i = 0; i < STATS_TRIES; i++) {
		now = bytes < 0 && old < -(__u64)bytes ? 0 : old + bytes;
		seen = __sync_val_compare_and_swap(live, old, now);
		if (seen == old)
			return now;
		old = seen;
	}
	return STATS_NO_TRY;
}

/*
 * Returns the histogram bucket of a duration. This is a global function so that the verifier checks its branches
 * once.
 */
__noinline __u64 stats_bucket(__u64 ns)
{
	return mxbpf_bucket(ns);
}

/*
 * Sends the ids of a new row, so that user space can resolve its names while the process is alive. If the ring is
 * full, user space resolves them when it takes the row.
 */
static __always_inline void stats_announce(const struct mxbpf_stat_key *key)
{
	struct mxbpf_group *r = bpf_ringbuf_reserve(&calls, sizeof(*r), 0);

	if (!r)
		return;
	r->h.kind = MXBPF_GROUP;
	r->h.size = sizeof(*r);
	r->h.tgid = key->tgid;
	r->h.ts_ns = 0;
	r->id = 0;
	r->name_id = key->name_id;
	r->args_id = key->args_id;
	r->stack_id = key->stack_id;
	r->layer_id = key->layer_id;
	r->traits = key->traits;
	r->tid = key->tid;
	r->range_id = 0;
	bpf_ringbuf_submit(r, BPF_RB_FORCE_WAKEUP);
}

/* Creates a row. If two threads create the same row, both find it afterwards. */
static __noinline int stats_row_new(void *rows, const struct mxbpf_stat_key *key)
{
	__u32 zero = 0;
	struct mxbpf_stat *blank = bpf_map_lookup_elem(&stat_blank, &zero);

	if (blank && !(int)bpf_map_update_elem(rows, key, blank, BPF_NOEXIST) && cfg_stats == MXBPF_STATS_ON)
		stats_announce(key);
	return 0;
}

static __always_inline void stats_account(struct mxbpf_account_sum *sum, const struct mxbpf_span *v)
{
	const struct mxbpf_account *a = &v->account;

	if (a->nvcsw | a->nivcsw) {
		__sync_fetch_and_add(&sum->runq_ns, a->runq_ns);
		__sync_fetch_and_add(&sum->blocked_ns, a->blocked_ns);
		__sync_fetch_and_add(&sum->nvcsw, a->nvcsw);
		__sync_fetch_and_add(&sum->nivcsw, a->nivcsw);
	}
	if (a->minflt | a->majflt) {
		__sync_fetch_and_add(&sum->minflt, a->minflt);
		__sync_fetch_and_add(&sum->majflt, a->majflt);
	}
	if (a->flags & MXBPF_ACCOUNT_PART)
		__sync_fetch_and_add(&sum->elsewhere_ns, v->dur_ns - a->on_cpu_ns - a->runq_ns - a->blocked_ns);
	if ((a->flags & MXBPF_ACCOUNT_MIGRATED) && a->nvcsw)
		__sync_fetch_and_add(&sum->migrated, 1);
}

/*
 * Sums the part of the account that belongs to nested spans, so that user space can subtract it from the row's self
 * time.
 */
__noinline int stats_nested(struct mxbpf_account_sum *sum, const struct mxbpf_span *v)
{
	bool whole = v && v->flags & MXBPF_SPAN_ASYNC;

	if (!sum || !v)
		return 0;
	__sync_fetch_and_add(&sum->nested_runq_ns, whole ? v->account.runq_ns : v->nested.runq_ns);
	__sync_fetch_and_add(&sum->nested_blocked_ns, whole ? v->account.blocked_ns : v->nested.blocked_ns);
	__sync_fetch_and_add(&sum->nested_nvcsw, whole ? v->account.nvcsw : v->nested.nvcsw);
	__sync_fetch_and_add(&sum->nested_nivcsw, whole ? v->account.nivcsw : v->nested.nivcsw);
	__sync_fetch_and_add(&sum->nested_minflt, whole ? v->account.minflt : v->nested.minflt);
	__sync_fetch_and_add(&sum->nested_majflt, whole ? v->account.majflt : v->nested.majflt);
	return 0;
}

static __always_inline void stats_counters(struct mxbpf_counter_sum *sum, const struct mxbpf_span *v)
{
	int i;

	__sync_fetch_and_add(&sum->spans, 1);
	if (v->flags & MXBPF_SPAN_SCALED)
		__sync_fetch_and_add(&sum->scaled, 1);
#pragma unroll
	for (i = 0; i < MXBPF_COUNTERS_MAX; i++)
		if (i < cfg_counters && v->counters[i])
			__sync_fetch_and_add(&sum->value[i], v->counters[i]);
}

/* Keeps the first start and the last end, for rates. */
static __always_inline bool stats_extent(struct mxbpf_stat *s, const struct mxbpf_span *v)
{
	return stats_raise(&s->first_ns_inv, ~v->h.ts_ns) && stats_raise(&s->last_ns, v->h.ts_ns + v->dur_ns);
}

static __always_inline bool stats_add(const struct mxbpf_stat_key *key, const struct mxbpf_span *v)
{
	__u32 zero = 0;
	void *rows = bpf_map_lookup_elem(&stat_rows, &zero);
	struct mxbpf_stat *s;
	__u64 bucket;

	if (!rows)
		return false;
	s = bpf_map_lookup_elem(rows, key);
	if (!s) {
		stats_row_new(rows, key);
		s = bpf_map_lookup_elem(rows, key);
	}
	if (!s)
		return false;
	if (s->max_ns < v->dur_ns && !stats_raise(&s->max_ns, v->dur_ns))
		return false;
	if (s->min_ns_inv < ~v->dur_ns && !stats_raise(&s->min_ns_inv, ~v->dur_ns))
		return false;
	__sync_fetch_and_add(&s->total_ns, v->dur_ns);
	__sync_fetch_and_add(&s->self_ns, v->self_ns);
	if (v->alloc_bytes)
		__sync_fetch_and_add(&s->alloc_bytes, v->alloc_bytes);
	__sync_fetch_and_add(&s->cost_units, v->cost.all);
	__sync_fetch_and_add(&s->self_cost_units, v->cost.self);
	if (v->self_alloc_bytes)
		__sync_fetch_and_add(&s->self_alloc_bytes, v->self_alloc_bytes);
	if (v->flags & MXBPF_SPAN_UNWOUND)
		__sync_fetch_and_add(&s->unwound, 1);
	if (cfg_account && v->h.size >= MXBPF_SPAN_BYTES_ACCOUNT)
		stats_account(&s->account, v);
	if (cfg_account && (v->h.size == MXBPF_SPAN_BYTES_WHOLE || v->flags & MXBPF_SPAN_ASYNC))
		stats_nested(&s->account, v);
	if (cfg_counters && v->counters[0] != MXBPF_COUNTER_NONE)
		stats_counters(&s->counters, v);
	if ((v->flags & MXBPF_SPAN_USER) && !stats_extent(s, v))
		return false;
	bucket = stats_bucket(v->dur_ns); /* not inside the if, so that the verifier sees the bound where it is used */
	if (bucket < MXBPF_HIST_BUCKETS)
		__sync_fetch_and_add(&s->hist[bucket], 1);
	return true;
}

/* Counts a sum as a record. In the CHECK mode the record is also sent, and the ring counts it as attempted. */
static __always_inline void stats_count(struct mxbpf_thread *t, bool added)
{
	if (cfg_stats == MXBPF_STATS_ON)
		t->counts[MXBPF_COUNT_ATTEMPTED]++;
	if (!added)
		t->counts[MXBPF_COUNT_DROPPED]++;
}

/* Adds a finished span to its row. */
__noinline int stats_span(struct mxbpf_thread *t, struct mxbpf_span *v)
{
	struct mxbpf_stat_key key = {};

	if (!cfg_stats || !t || !v)
		return 0;
	if (v->cls == MXBPF_CLASS_CUSTOM && v->flags & MXBPF_SPAN_UNWOUND)
		return 0;
	key.name_id = v->name_id;
	key.tgid = v->h.tgid;
	key.device = v->device;
	key.cls = v->cls;
	key.traits = mxbpf_traits(v);
	key.stripe = bpf_get_smp_processor_id() & cfg_stripe_mask;
	if (cfg_details) {
		key.args_id = v->args_id;
		key.stack_id = v->stack_id;
	}
	if (cfg_details & MXBPF_DETAIL_LAYER)
		key.layer_id = v->layer_id;
	if (cfg_details & MXBPF_DETAIL_THREAD)
		key.tid = v->tid;
	stats_count(t, stats_add(&key, v));
	return 0;
}

static __always_inline bool stats_mem_add(const struct mxbpf_stat_mem_key *key, __s64 bytes)
{
	struct mxbpf_stat_mem blank = {}, *m;
	__u32 zero = 0;
	void *mems = bpf_map_lookup_elem(&stat_mems, &zero);
	__u64 live;

	if (!mems)
		return false;
	m = bpf_map_lookup_elem(mems, key);
	if (!m) {
		bpf_map_update_elem(mems, key, &blank, BPF_NOEXIST);
		m = bpf_map_lookup_elem(mems, key);
	}
	if (!m)
		return false;
	if (!bytes) {
		__sync_fetch_and_add(&m->empty, 1);
		return true;
	}
	live = stats_live(&m->live_bytes, bytes);
	if (live == STATS_NO_TRY || !stats_raise(&m->peak_bytes, live) || !stats_raise(&m->low_bytes_inv, ~live))
		return false;
	__sync_fetch_and_add(bytes > 0 ? &m->allocs : &m->frees, 1);
	__sync_fetch_and_add(bytes > 0 ? &m->alloc_bytes : &m->free_bytes, bytes > 0 ? bytes : -bytes);
	return true;
}

/* Adds an allocation of bytes on a device; bytes < 0: memory is freed. */
__noinline int stats_alloc(struct mxbpf_thread *t, __u32 device, __s64 bytes)
{
	struct mxbpf_stat_mem_key key = {.device = device};

	if (!cfg_stats || !t)
		return 0;
	key.tgid = t->tgid;
	stats_count(t, stats_mem_add(&key, bytes));
	return 0;
}

#endif
