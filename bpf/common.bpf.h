/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* Maps, the plan's rows, and what every source needs: the thread's slot, fetches, the way into the ring. */
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
const volatile __u64 cfg_wake_bytes;		   /* fill of the ring at which the consumer is woken */
const volatile __u64 cfg_hidden[MXBPF_HIDDEN_MAX]; /* name ids; 0: none */
const volatile __u8 cfg_endless;		   /* some spans have no end of their own */
const volatile __u8 cfg_custom;			   /* there are rows of operators that are written in Python */
const volatile __u8 cfg_details;		   /* enum mxbpf_detail: what was asked for */
const volatile __u8 cfg_stats;			   /* enum mxbpf_stats */
const volatile __u8 cfg_account;		   /* spans bear MXBPF_SPAN_ACCOUNT */

/*
 * Whether spans can be open while a program runs. Programs that are loaded at once read [0]. Programs of late libraries
 * read [1] (user/attach/rows.c).
 */
const volatile __u8 cfg_spans[2];

/*
 * When events began to be taken; 0: none are. Set once everything is attached: no event comes from a half-attached
 * state. What was open before it began in an earlier activation, and its end may have passed unseen since.
 */
volatile __u64 active_since_ns;
volatile __u8 activation; /* which one, from 0 */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, MXBPF_RING_BYTES);
} calls SEC(".maps");

/*
 * Slot 0 belongs to no thread: its counters take what threads without a slot lose. Slots from MXBPF_THREADS_MAX on have
 * frames of threads whose calls nest deep (frame.bpf.h).
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MXBPF_SLOTS_MAX);
	__type(key, __u32);
	__type(value, struct mxbpf_thread);
} threads SEC(".maps");

/* Free slots, filled by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, MXBPF_THREADS_MAX);
	__uint(key_size, 0);
	__uint(value_size, sizeof(__u32));
} free_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u32);
} thread_slots SEC(".maps");

/* Hits of shared links in processes that are no targets. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} strangers SEC(".maps");

static __always_inline void stranger_count(void)
{
	__u32 zero = 0;
	__u64 *hits = bpf_map_lookup_elem(&strangers, &zero);

	if (hits)
		__sync_fetch_and_add(hits, 1); /* a thread that preempts this one may be a stranger too */
}

/* While no events are taken, the hits of strangers are counted all the same: they pay for them. */
static __noinline int stranger_rests(void)
{
	struct bpf_pidns_info ids = thread_ids();

	if (!bpf_map_lookup_elem(&targets, &ids.tgid))
		stranger_count();
	return 0;
}

/* The cookie as the plan made it: MXBPF_COOKIE_SHARED replaces the copy of a sign. */
static __always_inline __u64 probe_cookie(struct pt_regs *ctx)
{
	return (__s64)(bpf_get_attach_cookie(ctx) << 1) >> 1;
}

static __always_inline bool probe_shared(struct pt_regs *ctx)
{
	return bpf_get_attach_cookie(ctx) >> 63;
}

/* A thread's first hit: take a slot if its process is a target, and is probed by links of this kind. */
static __noinline __u32 thread_slot_new(bool shared)
{
	struct bpf_pidns_info ids = thread_ids();
	struct mxbpf_target *target = bpf_map_lookup_elem(&targets, &ids.tgid);
	__u32 slot = 0, *stored;
	struct mxbpf_thread *t;

	if (!target && shared)
		stranger_count();
	if (!target || !!target->own == shared)
		return 0;
	if (bpf_map_pop_elem(&free_slots, &slot))
		goto none;
	stored = bpf_task_storage_get(&thread_slots, bpf_get_current_task_btf(), &slot, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!stored) {
		bpf_map_push_elem(&free_slots, &slot, BPF_ANY);
		goto none;
	}
	if (!*stored) /* it gave one back when it became another program */
		*stored = slot;
	if (*stored != slot) { /* it had one: on Linux <= 6.1 the lookup fails while another on this CPU is under way */
		bpf_map_push_elem(&free_slots, &slot, BPF_ANY);
		return *stored;
	}
	t = bpf_map_lookup_elem(&threads, &slot);
	if (!t)
		return 0;
	t->tgid = ids.tgid;
	t->tid = ids.pid;
	t->static_base = target->static_base;
	t->undefined = target->undefined;
	t->own = target->own;
	t->seq_addr = t->seq_thread_addr = t->seq_thread = 0;
	t->py_state = t->module_code = t->wake = 0;
	t->counted_at = 0;
	t->depth = 0;
	t->over = 0;
	t->raised_ns = 0;
	t->top_sp = 0;
	t->noted_since = 0;
	t->custom_id = 0;
	t->slot = t->slots[0] = slot;
	t->nslots = 1;
	if (cfg_sched)
		sched_add(ids.tgid, ids.pid, slot);
	return slot;
none:
	slot = 0;
	t = bpf_map_lookup_elem(&threads, &slot);
	if (t) {
		__sync_fetch_and_add(&t->counts[MXBPF_COUNT_ATTEMPTED], 1);
		__sync_fetch_and_add(&t->counts[MXBPF_COUNT_DROPPED], 1);
	}
	return 0;
}

/*
 * The slot of the running thread; NULL if it is no target's, there is none left, or the hit came by a link of the other
 * kind. A process that has links of its own has hits from these alone, although shared ones may be there as well.
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

/* A C string, up to size bytes with its end: how many, or -errno. Linux 6.1 says 0 where an empty one is 1. */
static __always_inline long cstr_read(char *to, __u32 size, __u64 addr)
{
	long n = bpf_probe_read_user_str(to, size, (void *)addr);

	return n + !n;
}

/* Follows one recipe. `row` is constant, so what is left of this is the row's own loads. */
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

/* Hand-overs and starts are paired by counting, so those of two activations must not meet. No address is as high. */
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

/* Room for a record, or NULL and one more drop. */
static __always_inline void *ring_reserve(struct mxbpf_thread *t, __u64 size)
{
	void *r;

	t->counts[MXBPF_COUNT_ATTEMPTED]++;
	r = bpf_ringbuf_reserve(&calls, size, 0);
	if (!r)
		t->counts[MXBPF_COUNT_DROPPED]++;
	return r;
}

/* The consumer polls on a timer. A wake-up for each record would triple the cost of a probe hit. */
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
