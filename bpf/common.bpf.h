/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Maps, the rows of the plan, and the helpers of every event source: thread slots, argument fetches, the ring
 * buffer.
 */
#ifndef COMMON_BPF_H
#define COMMON_BPF_H

#include "mxbpf_config.h"
#include "mxbpf_thread.h"
#include "ids.bpf.h"
#include "sched.bpf.h"
#include "targets.bpf.h"
#include <bpf/bpf_tracing.h>

#define EEXIST 17

const volatile struct mxbpf_row cfg_rows[MXBPF_ROWS_MAX];
const volatile __u64 cfg_wake_bytes; /* bytes in the ring at which the consumer is woken */
const volatile __u64
	cfg_hidden[MXBPF_HIDDEN_MAX]; /* name ids of operators whose hits have no effect; 0: unused entry */
const volatile __u8 cfg_endless;      /* some rows have spans without an end probe (MXBPF_END_NEXT) */
const volatile __u8 cfg_custom;	      /* some rows probe custom operators, which are written in Python */
const volatile __u8 cfg_details;      /* enum mxbpf_detail: the details that the user asked for */
const volatile __u8 cfg_sliced;	      /* the session can have slices: see struct mxbpf_slice */
const volatile __u8 cfg_agent;	      /* an agent records calls, which no program knows */
const volatile __u32 cfg_build;	      /* number of this object: it watches targets with this number */
const volatile __u8 cfg_account;      /* spans carry on-CPU, run-queue and blocked time */

/*
 * Nonzero if spans can be open while a program runs. Programs that are loaded at the start read [0]. Programs for
 * libraries that the process maps later read [1] (user/attach/rows.c).
 */
const volatile __u8 cfg_spans[2];

/*
 * Start of the present activation in ns of CLOCK_MONOTONIC, or 0 while no events are recorded. User space sets it
 * after all probes are attached, so no event comes from a half-attached state. A frame that began earlier belongs
 * to an earlier activation, and its end may have passed unseen.
 */
volatile __u64 active_since_ns;
volatile __u8 activation; /* number of the present activation, counted from 0 */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, MXBPF_RING_BYTES);
} calls SEC(".maps");

/*
 * Per-thread state, by slot. Slot 0 belongs to no thread: it counts the events of threads that have no slot. Slots
 * from MXBPF_THREADS_MAX on hold the frames of threads with deeply nested calls (frame.bpf.h).
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MXBPF_SLOTS_MAX);
	__type(key, __u32);
	__type(value, struct mxbpf_thread);
} threads SEC(".maps");

/* Free slots. User space fills this stack before the programs run. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, MXBPF_THREADS_MAX);
	__uint(key_size, 0);
	__uint(value_size, sizeof(__u32));
} free_slots SEC(".maps");

/*
 * The slot of each thread that has one, by the address of its task_struct. The same is kept in the storage of the task,
 * which is faster. But the kernel refuses storage while a thread that was preempted uses some on the same CPU: Linux
 * 6.18 makes none then, and up to 6.1 it does not find any either. Programs at uprobes can be preempted.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MXBPF_THREADS_MAX);
	__type(key, __u64);
	__type(value, __u32);
} slots_of_tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u32);
} thread_slots SEC(".maps");

/*
 * Hits of shared links in processes that are not targets, per CPU. They cost those processes time, so they are
 * reported.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} strangers SEC(".maps");

/*
 * Processes of the session that are no targets yet, because their probes are being attached. That takes seconds, in
 * which they run into the shared links.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MXBPF_TARGETS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} joining SEC(".maps");

/* Returns the target if this object watches the process. */
static __always_inline struct mxbpf_target *target_of(__u32 tgid)
{
	struct mxbpf_target *target = bpf_map_lookup_elem(&targets, &tgid);

	return target && target->build == cfg_build ? target : 0;
}

static __always_inline void stranger_count(__u32 tgid)
{
	__u32 zero = 0;
	__u64 *hits = bpf_map_lookup_elem(&strangers, &zero);

	/* A target of another object is no stranger, although its hits are of no use here. */
	if (hits && !bpf_map_lookup_elem(&targets, &tgid) && !bpf_map_lookup_elem(&joining, &tgid))
		__sync_fetch_and_add(hits,
				     1); /* atomic, because a thread that preempts this one may also be a stranger */
}

/* Counts a stranger's hit while no events are recorded. The process pays for the hit in that case too. */
static __noinline __attribute__((unused)) int stranger_rests(void)
{
	struct bpf_pidns_info ids = thread_ids();

	if (!target_of(ids.tgid))
		stranger_count(ids.tgid);
	return 0;
}

/*
 * Returns the cookie as the plan made it. Bits 62 and 63 carry properties of the link, so the sign is restored from bit
 * 61.
 */
static __always_inline __u64 probe_cookie(struct pt_regs *ctx)
{
	return (__s64)(bpf_get_attach_cookie(ctx) << 2) >> 2;
}

/* Returns true if the probe records only while a slice is open. */
static __always_inline bool probe_sliced(struct pt_regs *ctx)
{
	return cfg_sliced && bpf_get_attach_cookie(ctx) & MXBPF_COOKIE_SLICED;
}

static __always_inline bool probe_shared(struct pt_regs *ctx)
{
	return bpf_get_attach_cookie(ctx) >> 63;
}

/* Returns the number of the running thread's slot, or 0 if it has none. */
static __always_inline __u32 slot_number(void)
{
	__u32 *slot = bpf_task_storage_get(&thread_slots, bpf_get_current_task_btf(), 0, 0);
	__u64 task;

	if (slot && *slot)
		return *slot;
	task = bpf_get_current_task();
	slot = bpf_map_lookup_elem(&slots_of_tasks, &task);
	return slot ? *slot : 0;
}

/* Keeps the slot in the storage of the running thread. If the kernel refuses, the next hit tries again. */
static __always_inline void slot_store(__u32 slot)
{
	__u32 *stored =
		bpf_task_storage_get(&thread_slots, bpf_get_current_task_btf(), &slot, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (stored) /* 0: the thread gave its slot back when it called exec */
		*stored = slot;
}

/* Takes a free slot. Returns 0, and counts a dropped hit, if there is none. */
static __always_inline __u32 slot_take(void)
{
	__u64 task = bpf_get_current_task();
	struct mxbpf_thread *t;
	__u32 slot;

	if (!bpf_map_pop_elem(&free_slots, &slot)) {
		if (!bpf_map_update_elem(&slots_of_tasks, &task, &slot, BPF_ANY))
			return slot;
		bpf_map_push_elem(&free_slots, &slot, BPF_ANY);
	}
	slot = 0;
	t = bpf_map_lookup_elem(&threads, &slot);
	if (t) {
		__sync_fetch_and_add(&t->counts[MXBPF_COUNT_ATTEMPTED], 1);
		__sync_fetch_and_add(&t->counts[MXBPF_COUNT_DROPPED], 1);
	}
	return 0;
}

/*
 * Finds or takes a slot for a thread without one in its storage, if its process is a target and uses links of this
 * kind. Returns 0 without a slot.
 */
static __noinline __u32 thread_slot_new(bool shared)
{
	struct bpf_pidns_info ids = thread_ids();
	struct mxbpf_target *target = target_of(ids.tgid);
	struct mxbpf_thread *t;
	__u32 slot;

	if (!target && shared)
		stranger_count(ids.tgid);
	if (!target || !!target->own == shared)
		return 0;
	slot = slot_number();
	t = slot ? bpf_map_lookup_elem(&threads, &slot) : 0;
	if (t && t->tid == ids.pid && t->tgid == ids.tgid) {
		slot_store(slot);
		return slot;
	}
	if (!t) /* else the slot is that of an earlier thread at this address, whose end was not seen */
		slot = slot_take();
	t = slot ? bpf_map_lookup_elem(&threads, &slot) : 0;
	if (!t)
		return 0;
	slot_store(slot);
	t->tgid = ids.tgid;
	t->tid = ids.pid;
	t->iterations = 0;
	t->static_base = target->static_base;
	t->undefined = target->undefined;
	t->own = target->own;
	t->seq_addr = t->seq_thread_addr = t->seq_thread = 0;
	t->module_code = t->wake = 0;
	t->counted_at = 0;
	t->depth = 0;
	t->over = 0;
	t->raised_ns = 0;
	t->top_sp = 0;
	t->noted_since = 0;
	t->custom_id = 0;
	t->pushed_stack = 0;
	t->apart_ns = t->cost_ns; /* those were hits of the thread that had the slot before */
	t->slot = t->slots[0] = slot;
	t->nslots = 1;
	if (cfg_sched)
		sched_add(ids.tgid, ids.pid, slot);
	return slot;
}

/*
 * Returns the slot of the running thread. Returns NULL if its process is no target, if no slot is left, or if the
 * hit came through a link of the other kind. A process with links of its own uses only their hits, although shared
 * links may hit in it too.
 */
static __always_inline struct mxbpf_thread *thread_get(bool shared)
{
	struct mxbpf_thread *t;
	__u32 *stored, slot;

	stored = bpf_task_storage_get(&thread_slots, bpf_get_current_task_btf(), 0, 0);
	slot = stored && *stored ? *stored : thread_slot_new(shared);
	if (!slot)
		return 0;
	t = bpf_map_lookup_elem(&threads, &slot);
	return t && !!t->own != shared ? t : 0;
}

/*
 * Reads a C string of up to size bytes with its NUL. Returns its length with the NUL, or -errno. Linux 6.1 returns
 * 0 for an empty string, which is 1 here.
 */
static __always_inline long cstr_read(char *to, __u32 size, __u64 addr)
{
	long n = bpf_probe_read_user_str(to, size, (void *)addr);

	return n + !n;
}

/* Follows one fetch recipe. `row` is constant at load time, so the verifier keeps only the loads of this row. */
static __always_inline __u64 fetch(struct pt_regs *ctx, struct mxbpf_thread *t, const volatile struct mxbpf_fetch *f)
{
	__u64 v = 0, word;
	int i;

	switch (f->base) {
	case MXBPF_BASE_NONE:
		return 0;
	case MXBPF_BASE_ARG1:
		v = PT_REGS_PARM1(ctx);
		break;
	case MXBPF_BASE_ARG2:
		v = PT_REGS_PARM2(ctx);
		break;
	case MXBPF_BASE_ARG3:
		v = PT_REGS_PARM3(ctx);
		break;
	case MXBPF_BASE_ARG4:
		v = PT_REGS_PARM4(ctx);
		break;
	case MXBPF_BASE_ARG5:
		v = PT_REGS_PARM5(ctx);
		break;
	case MXBPF_BASE_ARG6:
		v = ctx->r9;
		break;
	case MXBPF_BASE_STACK:
		v = PT_REGS_SP(ctx);
		break;
	case MXBPF_BASE_COOKIE:
		v = probe_cookie(ctx);
		break;
	}
#pragma unroll
	for (i = 0; i < MXBPF_DEREFS_MAX; i++) {
		if (i >= f->nderef)
			break;
		word = 0;
		if (bpf_probe_read_user(&word, f->last_bytes && i == f->nderef - 1 ? f->last_bytes : 8,
					(void *)(v + f->off[i]))) {
			t->counts[MXBPF_COUNT_UNREADABLE]++;
			t->fetch_failed = 1;
			return 0;
		}
		v = word;
	}
	return v;
}

/*
 * Returns the address that links a hand-over to its start. The reader pairs the two by counting, so links of
 * different activations must differ: bits 56 to 63, which no user address uses, hold the activation.
 */
static __always_inline __u64 fetch_link(struct pt_regs *ctx, struct mxbpf_thread *t,
					const volatile struct mxbpf_fetch *f)
{
	__u64 v = fetch(ctx, t, f);

	return v ? v ^ (__u64)activation << 56 : 0;
}

static __always_inline __u32 fetch_device(struct pt_regs *ctx, struct mxbpf_thread *t,
					  const volatile struct mxbpf_fetch *f)
{
	__u64 v = fetch(ctx, t, f);

	return MXBPF_DEVICE((__u32)v, (__u32)(v >> 32));
}

/* Reserves a record in the ring. Returns NULL and counts a drop if the ring is full. */
static __always_inline void *ring_reserve(struct mxbpf_thread *t, __u64 size)
{
	void *r;

	t->counts[MXBPF_COUNT_ATTEMPTED]++;
	r = bpf_ringbuf_reserve(&calls, size, 0);
	if (!r)
		t->counts[MXBPF_COUNT_DROPPED]++;
	return r;
}

/*
 * Returns the flags for submitting a record. The consumer polls on a timer, because a wake-up for each record would
 * triple the cost of a probe hit. It is woken early for a new Python stack and for a ring that fills up.
 */
static __always_inline __u64 ring_flags(struct mxbpf_thread *t)
{
	__u64 flags = BPF_RB_NO_WAKEUP;

	if ((cfg_details & MXBPF_DETAIL_STACK) && t->wake) {
		t->wake--;
		flags = BPF_RB_FORCE_WAKEUP;
	}
	if ((t->counts[MXBPF_COUNT_ATTEMPTED] & 63) == 0 &&
	    bpf_ringbuf_query(&calls, BPF_RB_AVAIL_DATA) >= cfg_wake_bytes)
		flags = BPF_RB_FORCE_WAKEUP;
	return flags;
}

static __always_inline void ring_submit(struct mxbpf_thread *t, void *r)
{
	bpf_ringbuf_submit(r, ring_flags(t));
}

#endif
