/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * --counters: performance counters of the running thread, read at the start and the end of each span. User space
 * opens one group of perf events per thread, if possible before the thread's first hit.
 */
#ifndef COUNTERS_BPF_H
#define COUNTERS_BPF_H

#include "common.bpf.h"
#include "frame.bpf.h"
#include "mxbpf_scale.h"

#define CLONE_THREAD 0x10000

const volatile __u8 cfg_counters; /* number of events in a group; 0: option off, and these maps are not created */

/* Event i of group g is at index g * MXBPF_COUNTERS_MAX + i. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, MXBPF_COUNTED_MAX *MXBPF_COUNTERS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} counter_events SEC(".maps");

/* Number of a thread's group, by tid. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MXBPF_COUNTED_MAX);
	__type(key, __u32);
	__type(value, __u32);
} counter_groups SEC(".maps");

/* Values of the events at the start of each frame, by slot. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MXBPF_SLOTS_MAX);
	__type(key, __u32);
	__type(value, struct mxbpf_counter_starts);
} counter_starts SEC(".maps");

/* Ids of processes with a new thread. User space reads them and opens events for the thread. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} counter_births SEC(".maps");

/* Returns the index of the first event in the running thread's group, or -1 if it has no group. */
static __always_inline __s32 counters_group(struct mxbpf_thread *t)
{
	__u32 tid = t->tid, *group;

	if (!t->counted_at) {
		group = bpf_map_lookup_elem(&counter_groups, &tid);
		t->counted_at = group ? *group + 1 : 0;
	}
	return t->counted_at ? (t->counted_at - 1) * MXBPF_COUNTERS_MAX : -1;
}

/* Returns the place for the start values of frame d, or NULL if there is none. */
static __always_inline struct mxbpf_counter_start *counters_start(struct mxbpf_thread *t, __u32 d)
{
	__u32 slot = frame_slot(t, d);
	struct mxbpf_counter_starts *s = bpf_map_lookup_elem(&counter_starts, &slot);

	if (!s || !slot)
		return 0;
	asm volatile(
		"%0 &= %1"
		: "+r"(d)
		: "i"(MXBPF_SLOT_FRAMES - 1)); /* keeps the bound on d for the verifier, which frame_at() explains */
	return &s->frames[d];
}

/* Reads the start values of the frame that is about to open above the present top frame. */
__noinline int counters_open(struct mxbpf_thread *t)
{
	struct mxbpf_counter_start *s;
	__s32 at;
	__u32 i;

	if (!cfg_counters || !t)
		return 0;
	s = counters_start(t, t->depth);
	if (!s)
		return 0;
	at = counters_group(t);
	s->known = at >= 0;
	/* Read the first event last, so that the reads of the others are not between its start and end. */
	for (i = MXBPF_COUNTERS_MAX; i-- > 0;)
		if (i < cfg_counters && s->known &&
		    bpf_perf_event_read_value(&counter_events, at + i, (void *)&s->at[i], sizeof(s->at[i])))
			s->known = 0;
	return 0;
}

/* Sets t->counted to the counts of the top frame, which is about to close. */
__noinline int counters_close(struct mxbpf_thread *t)
{
	struct mxbpf_counter_start *s;
	struct bpf_perf_event_value now;
	__u64 enabled, running, n;
	__u32 i;

	if (!cfg_counters || !t)
		return 0;
	t->counted.known = t->counted.scaled = 0;
	s = counters_start(t, t->depth - 1);
	if (!s || !s->known || !t->counted_at)
		return 0;
	for (i = 0; i < MXBPF_COUNTERS_MAX && i < cfg_counters; i++) {
		if (bpf_perf_event_read_value(&counter_events, (t->counted_at - 1) * MXBPF_COUNTERS_MAX + i, &now,
					      sizeof(now)))
			return 0;
		n = now.counter - s->at[i].counter;
		enabled = now.enabled - s->at[i].enabled;
		running = now.running - s->at[i].running;
		if (running != enabled) {
			if (!running)
				return 0;
			n = mxbpf_scaled(n, enabled, running);
			t->counted.scaled = MXBPF_SPAN_SCALED;
		}
		t->counted.value[i] = n;
	}
	t->counted.known = 1;
	return 0;
}

/* Copies the start values of frame i + 1 to frame i. */
__noinline int counters_move(struct mxbpf_thread *t, __u32 i)
{
	struct mxbpf_counter_start *to, *from;

	if (!cfg_counters ||
	    !t) /* Linux 6.1 verifies this function also if nobody calls it, and then its map is not there */
		return 0;
	to = counters_start(t, i);
	from = counters_start(t, i + 1);
	if (to && from)
		bpf_probe_read_kernel(to, sizeof(*to), from);
	return 0;
}

/* Copies t->counted into the span that ends now. */
static __always_inline void counters_fill(struct mxbpf_span *s, struct mxbpf_thread *t)
{
	int i;

#pragma unroll
	for (i = 0; i < MXBPF_COUNTERS_MAX; i++)
		s->counters[i] = i < cfg_counters ? t->counted.value[i] : 0;
	if (!cfg_counters || !t->counted.known)
		s->counters[0] = MXBPF_COUNTER_NONE;
	else
		s->flags |= t->counted.scaled;
}

SEC("?raw_tp/task_newtask") int on_thread_new(struct bpf_raw_tracepoint_args *ctx)
{
	struct bpf_pidns_info ids;

	if (!(ctx->args[1] & CLONE_THREAD))
		return 0;
	ids = thread_ids();
	if (target_of(ids.tgid))
		bpf_ringbuf_output(&counter_births, &ids.tgid, sizeof(ids.tgid), BPF_RB_FORCE_WAKEUP);
	return 0;
}

/* Forgets the group of a thread that ends: another thread may soon have its id. */
static __always_inline void counters_end(void)
{
	struct bpf_pidns_info ids;

	if (!cfg_counters)
		return;
	ids = thread_ids();
	bpf_map_delete_elem(&counter_groups, &ids.pid);
}

#endif
