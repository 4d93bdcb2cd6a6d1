/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * --life: follows operators from push to completion, and records what the program waits for. The runtime creates
 * the block that it executes only after the push, so a push and the ready event are joined by the operator's
 * address, and later events by the block's address. The maps have their full size only with --life.
 */
#ifndef LIFE_BPF_H
#define LIFE_BPF_H

#include "common.bpf.h"
#include "read/name.bpf.h"
#include "mxbpf_life.h"

#define MXBPF_WRITES_MAX 512 /* variables written by one operator whose last writer is kept */

/* How many times an operator was pushed and how many times it became ready. Pushes become ready in their order. */
struct mxbpf_life_turns {
	__u64 pushed, ready;
};

struct mxbpf_life_open {
	__u64 pushed_ns, dispatch_ns, ready_ns; /* not seen: 0 for times, MXBPF_LIFE_UNKNOWN for dispatch_ns */
	__u32 push_tid, ready_tid;
};

/* Operator that writes a variable last. */
struct mxbpf_writer {
	__u64 op_id, within_id;
	__u32 slot;    /* of the thread that pushed it */
	__u32 claimed; /* 1: the operator is known, but not pushed yet */
};

/* The operator of a process that ended last. */
struct mxbpf_life_last {
	__u64 end_ns, op_id;
};

/* State of a thread, by its slot. */
struct mxbpf_life_thread {
	__u64 pushed_ns;	    /* time of its last push */
	__u64 wait_ns;		    /* start of the wait that `writer` belongs to */
	struct mxbpf_writer writer; /* op_id 0: not seen */
	struct mxbpf_life rec;	    /* scratch for a record */
	struct mxbpf_wait wait;	    /* scratch for a record */
};

const volatile __u8 cfg_life;

/* By operator. The runtime takes operators from a pool, so addresses repeat. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct mxbpf_life_key);
	__type(value, struct mxbpf_life_turns);
} life_turns SEC(".maps");

/* Pushed operators, by address and turn. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct mxbpf_life_key);
	__type(value, struct mxbpf_life_open);
} life_pushed SEC(".maps");

/* Ready operators, by the address of their block. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct mxbpf_life_key);
	__type(value, struct mxbpf_life_open);
} life_ready SEC(".maps");

/* Last writers, by the address of the variable. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct mxbpf_life_key);
	__type(value, struct mxbpf_writer);
} life_writers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MXBPF_TARGETS_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct mxbpf_life_last);
} life_last SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct mxbpf_life_thread);
} life_threads SEC(".maps");

static __always_inline struct mxbpf_life_thread *life_thread(__u32 slot)
{
	return bpf_map_lookup_elem(&life_threads, &slot);
}

static __always_inline void life_lost(__u32 slot, enum mxbpf_count what)
{
	struct mxbpf_thread *t = bpf_map_lookup_elem(&threads, &slot);

	if (t)
		t->counts[what]++;
}

/* ---- writers of variables */

__noinline int life_write(__u32 slot, __u64 at, __u64 op_id, __u32 claim)
{
	struct mxbpf_thread *t = bpf_map_lookup_elem(&threads, &slot);
	struct mxbpf_writer w = {.op_id = op_id, .slot = slot, .claimed = claim}, *old;
	struct mxbpf_life_key key = {};

	if (!t)
		return 0;
	key.tgid = t->tgid;
	if (bpf_probe_read_user(&key.object, sizeof(key.object), (void *)at)) {
		life_lost(slot, MXBPF_COUNT_UNREADABLE);
		return 0;
	}
	old = claim ? 0 : bpf_map_lookup_elem(&life_writers, &key);
	if (old && old->claimed &&
	    old->slot == slot) { /* this push is the claimed operator, or the bulk that contains it */
		old->claimed = 0;
		old->within_id = old->op_id == op_id ? 0 : op_id;
		return 0;
	}
	if (bpf_map_update_elem(&life_writers, &key, &w, BPF_ANY))
		life_lost(slot, MXBPF_COUNT_TRUNCATED);
	return 0;
}

__noinline int life_writes(__u32 slot, __u64 at, __u64 end, __u64 op_id, __u32 claim)
{
	__u32 i;

	for (i = 0; i < MXBPF_WRITES_MAX; i++) {
		if (at >= end)
			return 0;
		life_write(slot, at, op_id, claim);
		at += 8;
	}
	if (at < end)
		life_lost(slot, MXBPF_COUNT_TRUNCATED);
	return 0;
}

/*
 * Notes the operator that a wait is for. A wait for a variable pushes an operation that writes nothing, to run
 * after all operations that write the variable.
 */
__noinline int life_wait_for(__u32 slot, __u32 tgid, __u64 var, __u64 wait_ns)
{
	struct mxbpf_life_key key = {.object = var, .tgid = tgid};
	struct mxbpf_life_thread *l = life_thread(slot);
	struct mxbpf_writer *w = bpf_map_lookup_elem(&life_writers, &key);

	if (!l)
		return 0;
	l->wait_ns = wait_ns;
	l->writer.op_id = l->writer.within_id = 0;
	if (w)
		l->writer = *w;
	return 0;
}

/* ---- push and ready */

/*
 * Returns the dispatch time: from the start of the innermost open call, or from this thread's last push if that is
 * later, to `now`.
 */
static __always_inline __u64 life_dispatch(struct mxbpf_life_thread *l, __u64 call_ns, __u64 now)
{
	__u64 from = call_ns && l->pushed_ns > call_ns ? l->pushed_ns : call_ns;

	return from && from <= now ? now - from : MXBPF_LIFE_UNKNOWN;
}

__noinline int life_push(__u32 slot, __u32 tgid, __u32 tid, __u64 opr, __u64 call_ns)
{
	__u64 now = bpf_ktime_get_ns();
	struct mxbpf_life_key key = {.object = opr, .tgid = tgid};
	struct mxbpf_life_turns none = {}, *turns;
	struct mxbpf_life_open open = {.pushed_ns = now, .push_tid = tid};
	struct mxbpf_life_thread *l = life_thread(slot);

	if (!l)
		return 0;
	open.dispatch_ns = life_dispatch(l, call_ns, now);
	l->pushed_ns = now;
	turns = bpf_map_lookup_elem(&life_turns, &key);
	if (!turns) {
		bpf_map_update_elem(&life_turns, &key, &none, BPF_NOEXIST);
		turns = bpf_map_lookup_elem(&life_turns, &key);
	}
	if (!turns)
		return 0;
	key.turn = turns->pushed;
	__sync_fetch_and_add(&turns->pushed, 1);
	if (bpf_map_update_elem(&life_pushed, &key, &open, BPF_ANY))
		life_lost(slot, MXBPF_COUNT_UNMATCHED);
	return 0;
}

/* Notes that an operator is ready. If it was pushed before the window, the time before is unknown. */
__noinline int life_readied(__u32 slot, __u32 tgid, __u32 tid, __u64 opr, __u64 block)
{
	struct mxbpf_life_open open = {.dispatch_ns = MXBPF_LIFE_UNKNOWN}, *pushed;
	struct mxbpf_life_key key = {.object = opr, .tgid = tgid};
	struct mxbpf_life_turns *turns = bpf_map_lookup_elem(&life_turns, &key);

	if (turns && turns->ready < turns->pushed) {
		key.turn = turns->ready;
		__sync_fetch_and_add(&turns->ready, 1);
		pushed = bpf_map_lookup_elem(&life_pushed, &key);
		if (pushed)
			open = *pushed;
		bpf_map_delete_elem(&life_pushed, &key);
	}
	open.ready_ns = bpf_ktime_get_ns();
	open.ready_tid = tid;
	key.object = block;
	key.turn = 0;
	if (bpf_map_update_elem(&life_ready, &key, &open, BPF_ANY))
		life_lost(slot, MXBPF_COUNT_UNMATCHED);
	return 0;
}

/* ---- records */

__noinline int life_send(struct mxbpf_thread *t, __u32 wait)
{
	struct mxbpf_life_thread *l;
	long err;

	if (!t)
		return 0;
	l = life_thread(t->slot);
	if (!l)
		return 0;
	t->counts[MXBPF_COUNT_ATTEMPTED]++;
	err = wait ? bpf_ringbuf_output(&calls, &l->wait, sizeof(l->wait), ring_flags(t))
		   : bpf_ringbuf_output(&calls, &l->rec, sizeof(l->rec), ring_flags(t));
	t->counts[MXBPF_COUNT_DROPPED] += !!err;
	return 0;
}

static __always_inline void life_rec(struct mxbpf_thread *t, struct mxbpf_life *r, struct mxbpf_frame *f, __u64 now)
{
	r->h.kind = MXBPF_LIFE;
	r->h.size = sizeof(*r);
	r->h.tgid = t->tgid;
	r->h.ts_ns = f->start_ns;
	r->name_id = f->name_id;
	r->ns[MXBPF_LIFE_RUN] = now - f->start_ns;
	r->device = f->device;
	r->tid = f->tid;
}

/* Sends the record of an operator whose span ends. */
__noinline int life_end(struct mxbpf_thread *t, struct mxbpf_frame *f, __u64 now)
{
	struct mxbpf_life_key key = {};
	struct mxbpf_life_last last = {}, *at;
	struct mxbpf_life_open open = {.dispatch_ns = MXBPF_LIFE_UNKNOWN}, *o;
	struct mxbpf_life_thread *l;
	__u32 tgid;

	if (!t || !f)
		return 0;
	l = life_thread(t->slot);
	if (!l)
		return 0;
	key.tgid = tgid = t->tgid;
	key.object = f->key ^ (__u64)activation << 56;
	o = bpf_map_lookup_elem(&life_ready, &key);
	if (o)
		open = *o;
	bpf_map_delete_elem(&life_ready, &key);
	life_rec(t, &l->rec, f, now);
	l->rec.ns[MXBPF_LIFE_DISPATCH] = open.dispatch_ns;
	l->rec.ns[MXBPF_LIFE_DEPENDENCIES] = open.pushed_ns ? open.ready_ns - open.pushed_ns : MXBPF_LIFE_UNKNOWN;
	l->rec.ns[MXBPF_LIFE_QUEUE] = open.ready_ns ? f->start_ns - open.ready_ns : MXBPF_LIFE_UNKNOWN;
	l->rec.push_tid = open.push_tid;
	l->rec.ready_tid = open.ready_tid;
	life_send(t, 0);
	last.end_ns = now;
	last.op_id = f->name_id;
	at = bpf_map_lookup_elem(&life_last, &tgid);
	if (at)
		*at = last;
	else
		bpf_map_update_elem(&life_last, &tgid, &last, BPF_ANY);
	return 0;
}

/* Sends the record of an operator that ran synchronously in its push. */
__noinline int life_at_once(struct mxbpf_thread *t, struct mxbpf_frame *f, __u64 call_ns, __u64 now)
{
	struct mxbpf_life_thread *l;

	if (!t || !f)
		return 0;
	l = life_thread(t->slot);
	if (!l)
		return 0;
	life_rec(t, &l->rec, f, now);
	l->rec.ns[MXBPF_LIFE_DISPATCH] = life_dispatch(l, call_ns, f->start_ns);
	l->rec.ns[MXBPF_LIFE_DEPENDENCIES] = l->rec.ns[MXBPF_LIFE_QUEUE] = 0;
	l->rec.push_tid = l->rec.ready_tid = f->tid;
	l->pushed_ns = now;
	life_send(t, 0);
	return 0;
}

/* Sends the record of a wait whose span ends. call_id is the name of the call that waits. */
__noinline int life_waited(struct mxbpf_thread *t, struct mxbpf_frame *f, __u64 call_id, __u64 now)
{
	struct mxbpf_life_last *last;
	struct mxbpf_life_thread *l;
	struct mxbpf_wait *w;
	__u32 tgid;

	if (!t || !f)
		return 0;
	l = life_thread(t->slot);
	if (!l)
		return 0;
	tgid = t->tgid;
	w = &l->wait;
	w->h.kind = MXBPF_WAIT;
	w->h.size = sizeof(*w);
	w->h.tgid = t->tgid;
	w->h.ts_ns = f->start_ns;
	w->name_id = f->name_id;
	w->call_id = call_id;
	w->op_id = w->within_id = 0;
	w->count = 1;
	w->total_ns = w->max_ns = now - f->start_ns;
	w->tid = t->tid;
	w->what = MXBPF_WAIT_NOTHING;
	last = bpf_map_lookup_elem(&life_last, &tgid);
	if (f->key && l->wait_ns == f->start_ns) {
		w->op_id = l->writer.op_id;
		w->within_id = l->writer.within_id;
		w->what = w->op_id ? MXBPF_WAIT_OPERATOR : MXBPF_WAIT_UNSEEN;
	} else if (!f->key && last && last->end_ns >= f->start_ns) {
		w->op_id = last->op_id;
		w->what = MXBPF_WAIT_OPERATOR;
	}
	life_send(t, 1);
	return 0;
}

#endif
