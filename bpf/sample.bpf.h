/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * --sample: records what runs when a CPU's sampling timer fires. The program runs in an interrupt. It must not
 * write to the thread's slot, because a probe's program may be changing it at that moment, and it cannot read
 * memory that is not resident.
 */
#ifndef SAMPLE_BPF_H
#define SAMPLE_BPF_H

#include "mxbpf_sample.h"
#include "common.bpf.h"
#include "frame.bpf.h"
#include "read/stack.bpf.h"
#include "feature/omp.bpf.h"

/* Scratch area of a CPU. The timer of a CPU does not fire again before its program has ended. */
struct sample_room {
	struct mxbpf_sample s; /* start of the record; its spans follow */
	struct mxbpf_sample_span spans[MXBPF_FRAMES_MAX];
	struct mxbpf_sample_where room_behind; /* space for the copy of `where`, which follows the last span */
	union {
		struct mxbpf_sample_where where;
		struct {
			char before_python[sizeof(struct mxbpf_sample_where) - sizeof(struct mxbpf_stack)];
			struct stack_room python; /* starts with the stack */
		};
	};
	__u32 nspans;
	__u32 last; /* 1 + index of the frame of the last span; 0: no span yet */
	__u32 unreadable;
};

/*
 * Samples have a ring of their own, so that bursts of samples and of calls do not evict each other. It exists only
 * with --sample.
 */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, MXBPF_RING_BYTES);
} samples SEC(".maps");

__u64 sample_counts[MXBPF_COUNT_MAX];

/* This map exists only with --sample. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sample_room);
} sample_rooms SEC(".maps");

/*
 * Adds the i-th open span of a thread to the sample, if it still runs. A frame at or below the stack pointer sp was
 * left by an exception, or has no end probe. A first child with its parent's name is left out, because it may be
 * its parent's twin.
 */
__noinline int sample_span(struct mxbpf_thread *t, struct sample_room *room, __u32 i, __u64 sp)
{
	struct mxbpf_sample_span *s;
	struct mxbpf_frame *f, *last;
	__u32 n;

	if (!t || !room)
		return 0;
	f = frame_at(t, i);
	if (!f || (f->sp && f->sp <= sp))
		return 0;
	if (room->s.flags & MXBPF_SAMPLE_BETWEEN && f->flags & MXBPF_FRAME_SLICED) /* nobody saw its end */
		return 0;
	last = frame_at(t, room->last - 1);
	if (last && last->merge && !last->nchild && last->name_id == f->name_id && last->cls == f->cls)
		return 0;
	n = room->nspans;
	if (n >= MXBPF_FRAMES_MAX)
		return 0;
	asm volatile("%0 &= %1" : "+r"(n) : "i"(MXBPF_FRAMES_MAX - 1));
	s = &room->spans[n];
	s->name_id = f->name_id;
	s->device = f->device;
	s->cls = f->cls;
	s->by_team = 0;
	room->nspans = n + 1;
	room->last = i + 1;
	return 0;
}

/* Does sample_spans() for at most FRAMES_STEP frames, starting with `from`. */
__noinline int sample_spans_step(struct mxbpf_thread *t, struct sample_room *room, __u32 from, __u64 sp)
{
	__u32 i;

	for (i = 0; t && i < FRAMES_STEP && from + i < t->depth; i++)
		sample_span(t, room, from + i, sp);
	return 0;
}

static __always_inline void sample_spans(struct mxbpf_thread *t, struct sample_room *room, __u64 sp)
{
	__u32 i, depth = t->depth;

	if (t->frames[0].start_ns < active_since_ns)
		return;
	for (i = 0; i < MXBPF_FRAMES_MAX && i < depth; i += FRAMES_STEP)
		sample_spans_step(t, room, i, sp);
}

/*
 * Adds the span that opened the OpenMP region, for a thread that works in another thread's region (--omp). With an
 * agent, the item says which thread opened the region when, and user space finds the call.
 */
static __always_inline void sample_team(struct mxbpf_thread *t, struct sample_room *room)
{
	__u32 slot = t->slot;
	struct mxbpf_team_thread *w = cfg_omp ? bpf_map_lookup_elem(&team_threads, &slot) : 0;
	struct mxbpf_team_open *o = w && w->tid == t->tid ? team_of(w) : 0;

	if (!o || (!o->cls && !cfg_agent))
		return;
	room->spans[0].name_id = o->cls ? o->name_id : o->start_ns;
	room->spans[0].device = o->cls ? 0 : o->tid;
	room->spans[0].cls = o->cls ? o->cls : MXBPF_CLASS_OPERATOR;
	room->spans[0].by_team = !o->cls;
	room->nspans = 1;
}

/* Reads the Python stack without the thread's slot, since not every thread has one. */
static __always_inline void sample_python(struct sample_room *room)
{
	__u64 state, frame;

	room->python.stack.n = 0;
	room->python.stack.cut = 0;
	if (!cfg_python.frame_bytes)
		return;
	if (!current_state(&state)) {
		room->unreadable++;
		return;
	}
	frame = state_frame(&room->python, state);
	if (!frame)
		return;
	room->python.read = 0;
	stack_walk(&room->python, frame, 0);
	room->unreadable += !!room->python.failed;
}

static __always_inline void sample_send(struct sample_room *room)
{
	__u64 n = room->python.stack.n, flags = BPF_RB_NO_WAKEUP;
	__u32 nspans = room->nspans;

	if (n > MXBPF_STACK_FRAMES_MAX || nspans > MXBPF_FRAMES_MAX)
		return;
	mxbpf_sample_set_nspans(&room->s, nspans);
	bpf_probe_read_kernel(&room->spans[nspans], MXBPF_SAMPLE_WHERE_BYTES(n), &room->where);
	if (bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA) >= cfg_wake_bytes)
		flags = BPF_RB_FORCE_WAKEUP;
	n = MXBPF_SAMPLE_BYTES(nspans) + MXBPF_SAMPLE_WHERE_BYTES(n);
	room->s.h.size = n;
	__sync_fetch_and_add(&sample_counts[MXBPF_COUNT_ATTEMPTED], 1);
	if (bpf_ringbuf_output(&samples, room, n, flags))
		__sync_fetch_and_add(&sample_counts[MXBPF_COUNT_DROPPED], 1);
	if (room->unreadable)
		__sync_fetch_and_add(&sample_counts[MXBPF_COUNT_UNREADABLE], room->unreadable);
}

/* A thread that has hit no probe has no slot, and the sample does not take one. */
SEC("?perf_event") int on_sample(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 slot = slot_number(), zero = 0;
	bool user = ctx->regs.cs & 3;
	struct mxbpf_thread *t = 0;
	struct bpf_pidns_info ids;
	struct sample_room *room;
	struct pt_regs *regs;
	long bytes;

	if (!active_since_ns)
		return 0;
	if (slot)
		t = bpf_map_lookup_elem(&threads, &slot);
	ids = thread_ids();
	if (t && t->tid != ids.pid) /* the thread ends, and another one may have its slot */
		t = 0;
	if (!t && !target_of(ids.tgid))
		return 0;
	room = bpf_map_lookup_elem(&sample_rooms, &zero);
	if (!room)
		return 0;
	room->s.h.kind = MXBPF_SAMPLE;
	room->s.h.tgid = ids.tgid;
	room->s.h.ts_ns = bpf_ktime_get_ns();
	room->s.count = 1;
	room->s.tid = ids.pid;
	room->s.cpu = bpf_get_smp_processor_id();
	room->nspans = 0;
	room->s.flags = (user ? 0 : MXBPF_SAMPLE_KERNEL) | (between_slices(ids.tgid) ? MXBPF_SAMPLE_BETWEEN : 0);
	room->where.kernel_addr = user ? 0 : ctx->regs.ip;
	room->last = room->unreadable = 0;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	if (t)
		sample_spans(t, room, regs->sp);
	if (t && !room->nspans)
		sample_team(t, room);
	bytes = bpf_get_stack(ctx, room->where.addrs, sizeof(room->where.addrs), BPF_F_USER_STACK);
	room->where.naddrs = bytes > 0 ? (__u64)bytes / 8 : 0;
	sample_python(room);
	sample_send(room);
	return 0;
}

#endif
