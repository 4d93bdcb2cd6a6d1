// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * Spans. This file pairs starts with ends, so that each record is a finished span. The open spans of a thread are a
 * stack of frames in its slot. A span that ends by key also has a copy in a map, because another thread may end it.
 */
#include "account.bpf.h"
#include "common.bpf.h"
#include "cost.bpf.h"
#include "counters.bpf.h"
#include "read/detail.bpf.h"
#include "custom.bpf.h"
#include "frame.bpf.h"
#include "inside.bpf.h"
#include "feature/life.bpf.h"
#include "feature/range.bpf.h"
#include "read/name.bpf.h"
#include "send.bpf.h"
#include "unnested.bpf.h"

#define PUSHED_MAX 16	/* words below a frame: a return address and pushed arguments */
#define NEAR_BYTES 4096 /* bytes: a return address this close to the call site is in the same function */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MXBPF_FUNCS_MAX);
	__type(key, __u32);
	__type(value, struct mxbpf_cut_check);
} cut_checks SEC(".maps");

/* Cookie of the caller's function, by the return address in the runtime's library. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MXBPF_FUNCS_MAX);
	__type(key, __u64);
	__type(value, __u64);
} callers SEC(".maps");

/* Sends the --life record of frame f, which ends. */
static __always_inline void frame_life(struct mxbpf_thread *t, struct mxbpf_frame *f, struct mxbpf_frame *parent,
				       __u64 now)
{
	if (f->cls == MXBPF_CLASS_WAIT)
		life_waited(t, f, parent ? parent->name_id : 0, now);
	else if (f->flags & MXBPF_FRAME_AT_ONCE)
		life_at_once(t, f, parent ? parent->start_ns : 0, now);
}

/*
 * Closes the top frame and adds its time to its parent's child time. The span is sent now, unless it may be its
 * parent's twin: the same call, seen twice. The parent's end decides that.
 */
__noinline int frame_close(struct mxbpf_thread *t, __u64 now, __u32 flags)
{
	struct mxbpf_frame *f, *parent;

	if (!t)
		return 0;
	f = frame_top(t);
	if (!f)
		return 0;
	if (cfg_counters)
		counters_close(t);
	detail_close(t, f, flags);
	if (f->twin.dur_ns) { /* the only child was a twin, so its own time and memory are this frame's */
		f->child_ns -= f->twin.self_ns;
		f->child_cost_ns -= (__u64)f->twin.cost.self * MXBPF_COST_UNIT_NS;
		f->self_alloc_bytes += f->twin.self_alloc_bytes;
		account_unnest(f, &f->twin);
		f->twin.dur_ns = 0;
	}
	parent = frame_off(t, f);
	if (cfg_custom && custom_is_part(f) && !(flags & MXBPF_SPAN_UNWOUND))
		t->custom_id = custom_innermost(t);
	if (cfg_life)
		frame_life(t, f, parent, now);
	if (parent) {
		parent->child_ns += now - f->start_ns;
		parent->child_cost_ns += cost_since(t, f);
		if (parent->merge && !parent->nchild && parent->name_id == f->name_id && parent->cls == f->cls) {
			parent->nchild = 1;
			span_fill(&parent->twin, t, f, now, flags);
			account_nest(parent, &parent->twin);
			return 0;
		}
		if (parent->twin.dur_ns)
			twin_emit(t, parent);
		parent->nchild = 2;
	}
	span_emit(t, f, now, flags);
	if (parent)
		account_nest(parent, &t->done);
	return 0;
}

/* Returns the entry and exit counts of a function that ends by cut, or NULL. */
static __always_inline struct mxbpf_cut_check *cut_check(__u32 func)
{
	return func ? bpf_map_lookup_elem(&cut_checks, &func) : 0;
}

static __always_inline void span_count(struct pt_regs *ctx)
{
	struct mxbpf_cut_check *c = cut_check(probe_cookie(ctx) & MXBPF_FUNC_MASK);

	if (c)
		__sync_fetch_and_add(&c->entries, 1);
}

/*
 * Copies memory and account of frame f, which leaves its thread's stack, to the map's copy. That copy was made when
 * f opened, and the record is made from it now.
 */
static __always_inline void key_keep(struct mxbpf_thread *t, struct mxbpf_frame *f, __u64 now)
{
	struct mxbpf_key key = {.key = f->key, .tgid = t->tgid, .cls = frame_key_class(f)};
	struct mxbpf_frame *open = bpf_map_lookup_elem(&open_keys, &key);

	if (!open || open->start_ns != f->start_ns)
		return;
	open->alloc_bytes = f->alloc_bytes;
	open->self_alloc_bytes = f->self_alloc_bytes;
	account_keep(open, f, now);
}

/*
 * Closes the top frame without a hit of its own end. A span that ends by key stays open in the map, because it may
 * be an asynchronous span whose function has returned. This is a global function because the verifier checks it
 * once, but checks an inlined one in each iteration of each loop.
 */
__noinline int frame_drop(struct mxbpf_thread *t, __u64 now)
{
	struct mxbpf_cut_check *c;
	struct mxbpf_frame *f;

	if (!t)
		return 0;
	f = frame_top(t);
	if (!f)
		return 0;
	t->over = 0; /* the dropped frames were nested in this one */
	switch (f->end) {
	case MXBPF_END_KEY:
		key_keep(t, f, now);
		frame_off(t, f);
		return 0;
	case MXBPF_END_PARENT:
	case MXBPF_END_NEXT:
		frame_close(t, now, 0);
		return 0;
	case MXBPF_END_CUT: /* an exception passed through it: no loss, but the end is an upper bound */
		c = cut_check(f->func);
		if (c) {
			__sync_fetch_and_add(&c->unwound, 1);
			if (f->start_ns > t->raised_ns)
				__sync_fetch_and_add(&c->lost, 1);
		}
		break;
	default:
		t->counts[MXBPF_COUNT_UNMATCHED]++;
	}
	frame_close(t, now, MXBPF_SPAN_UNWOUND);
	return 0;
}

__noinline int frame_forget(struct mxbpf_thread *t, __u32 i)
{
	struct mxbpf_cut_check *c;
	struct mxbpf_frame *f;

	if (!t)
		return 0;
	f = frame_at(t, i);
	if (!f)
		return 0;
	if (f->twin.dur_ns) /* the child has ended */
		twin_emit(t, f);
	c = f->end == MXBPF_END_CUT ? cut_check(f->func) : 0;
	if (c)
		__sync_fetch_and_add(&c->unwound, 1);
	t->counts[MXBPF_COUNT_UNMATCHED] += f->end != MXBPF_END_KEY;
	return 0;
}

__noinline int frames_forget_step(struct mxbpf_thread *t, __u32 from)
{
	__u32 i;

	for (i = 0; t && i < FRAMES_STEP && from + i < t->depth; i++)
		frame_forget(t, from + i);
	return 0;
}

/*
 * Discards all frames of t after a pause in recording: their ends may have passed unseen. Spans that end by key are
 * counted when their key is looked up.
 */
__noinline int frames_forget(struct mxbpf_thread *t)
{
	__u32 i;

	if (!t)
		return 0;
	for (i = 0; i < FRAMES_STEPS; i++)
		frames_forget_step(t, i * FRAMES_STEP);
	t->depth = 0;
	t->over = 0;
	slots_keep(t, 1);
	return 0;
}

/*
 * Discards the innermost frames of t if they are of a slice that is over, because nobody sees their ends. since_ns: of
 * the slice that is open, or 0.
 */
__noinline int frames_leave_slice(struct mxbpf_thread *t, __u64 since_ns)
{
	struct mxbpf_frame *f;
	int i;

	t = frames_of(t);
	for (i = 0; t && i < FRAMES_STEP; i++) {
		f = frame_top(t);
		if (!f || !(f->flags & MXBPF_FRAME_SLICED) || (since_ns && f->start_ns >= since_ns))
			break;
		frame_forget(t, t->depth - 1);
		t->depth--;
	}
	if (t)
		slot_release(t);
	return 0;
}

/*
 * Returns 1 if the function at ip seems to have a call under way: one of the words below sp is a return address
 * near ip. The call pushes that address below the function's frame and the arguments that were pushed.
 */
__noinline int calls_from(__u64 sp, __u64 ip)
{
	__u64 words[PUSHED_MAX];
	int i;

	if (bpf_probe_read_user(words, sizeof(words), (void *)(sp - sizeof(words))))
		return 1;
	for (i = 0; i < PUSHED_MAX; i++)
		if (words[i] - ip + NEAR_BYTES < 2 * NEAR_BYTES)
			return 1;
	return 0;
}

/*
 * Returns true if the function of a frame without an end probe has returned, although the frame lies above the
 * present stack pointer: its return address has been overwritten. The check fails if nothing has been written there
 * since, which is rare.
 */
static __always_inline bool frame_has_returned(struct mxbpf_frame *f)
{
	__u64 word;

	if (f->end != MXBPF_END_NEXT || bpf_probe_read_user(&word, sizeof(word), (void *)(f->sp + f->return_off)))
		return false;
	return word != f->key || (f->ip && !calls_from(f->sp, f->ip));
}

/*
 * Drops top frames while their own ends can no longer be seen, at most FRAMES_STEP. Returns 0 if the top frame
 * stays. Each reason has its own function, and so has each iteration, because the verifier checks a global function
 * once but follows every iteration of a loop. The reason compares with `of`.
 */
#define FRAMES_DROP(name, goes)                                                                                        \
	__noinline int name##_top(struct mxbpf_thread *t, __u64 now, __u64 of)                                         \
	{                                                                                                              \
		struct mxbpf_frame *f = t ? frame_top(t) : 0;                                                          \
                                                                                                                       \
		asm volatile("" : "+r"(of)); /* keeps `of` an argument if the reason does not read it */               \
		if (!f || !(goes))                                                                                     \
			return 0;                                                                                      \
		frame_drop(t, now);                                                                                    \
		return 1;                                                                                              \
	}                                                                                                              \
	__noinline int name(struct mxbpf_thread *t, __u64 now, __u64 of)                                               \
	{                                                                                                              \
		int i;                                                                                                 \
                                                                                                                       \
		for (i = 0; i < FRAMES_STEP; i++)                                                                      \
			if (!name##_top(t, now, of))                                                                   \
				return 0;                                                                              \
		return 1;                                                                                              \
	}

/* Drops frames whose function has returned: the stack pointer `of` is at or above them. */
FRAMES_DROP(frames_drop_left, f->sp < of || (f->sp == of && !f->tail))
/* Drops frames whose return address is no longer on the stack. */
FRAMES_DROP(frames_drop_returned, frame_has_returned(f))
/*
 * Drops the frames above one that ends later: above the one that ends by key and began at time `of`, or above the
 * innermost one of class `of` that ends by pair.
 */
FRAMES_DROP(frames_drop_above_key, f->end != MXBPF_END_KEY || f->start_ns != of)
FRAMES_DROP(frames_drop_above_pair, f->end != MXBPF_END_PAIR || f->cls != of)
/* Drops frames above the innermost range. */
FRAMES_DROP(frames_drop_above_range, f->sp != ~0ull)

#define FRAMES_ALL(drop)                                                                                               \
	do {                                                                                                           \
		int n_;                                                                                                \
                                                                                                                       \
		for (n_ = 0; n_ < FRAMES_STEPS && (drop); n_++)                                                        \
			;                                                                                              \
	} while (0)

/*
 * Ends the frames that cannot be open any more at stack pointer sp. This function is inlined because the call chain
 * from here to custom_at() already has the depth that the kernel allows.
 */
static __always_inline void frames_end(struct mxbpf_thread *t, __u64 sp)
{
	struct mxbpf_frame *f = frame_top(t);
	__u64 now;

	if (!f || (f->sp > sp && !(cfg_endless && f->end == MXBPF_END_NEXT)))
		return;
	now = bpf_ktime_get_ns();
	FRAMES_ALL(frames_drop_left(t, now, sp));
	if (cfg_endless)
		FRAMES_ALL(frames_drop_returned(t, now, 0));
}

/*
 * Stores an open span under its key. If the key exists, the end of the earlier span was missed, and that span
 * counts as lost.
 */
static __always_inline void key_put(struct mxbpf_thread *t, struct mxbpf_key *key, struct mxbpf_frame *f)
{
	int err = bpf_map_update_elem(&open_keys, key, f,
				      BPF_NOEXIST); /* Linux <= 6.3 sets only the low 32 bits of the result */

	if (err == -EEXIST) {
		t->counts[MXBPF_COUNT_UNMATCHED]++;
		err = bpf_map_update_elem(&open_keys, key, f, BPF_ANY);
	}
	if (err) {
		t->counts[MXBPF_COUNT_ATTEMPTED]++;
		t->counts[MXBPF_COUNT_DROPPED]++;
	}
}

/*
 * Sets the function of frame f and counts its entry. If the function's cut has proved wrong, the span ends at the
 * next event.
 */
static __always_inline void func_open(struct mxbpf_thread *t, struct mxbpf_frame *f,
				      const volatile struct mxbpf_row *row, __u64 cookie, __u64 sp)
{
	struct mxbpf_cut_check *c;

	f->func = cookie & MXBPF_FUNC_MASK;
	f->tail = !!(cookie & MXBPF_FUNC_TAIL);
	c = row->end == MXBPF_END_CUT ? cut_check(f->func) : 0;
	if (c && c->fallen_ns) {
		f->end = MXBPF_END_NEXT;
	} else if (c) {
		__sync_fetch_and_add(&c->entries, 1);
		if (sp > t->top_sp)
			t->top_sp = sp;
	}
}

/*
 * Returns the cookie of the call site that the return address at sp belongs to, or 0 if the site is not in the
 * plan.
 */
static __always_inline __u64 caller_cookie(struct mxbpf_thread *t, __u64 sp)
{
	__u64 word = 0, *cookie;

	if (bpf_probe_read_user(&word, sizeof(word), (void *)sp)) {
		t->counts[MXBPF_COUNT_UNREADABLE]++;
		return 0;
	}
	word -= t->static_base;
	cookie = bpf_map_lookup_elem(&callers, &word);
	return cookie ? *cookie : 0;
}

/*
 * Returns the stack pointer at the entry of a frame's function, from a cookie with its CFA: the CFA minus the
 * return address.
 */
static __always_inline __u64 cookie_sp(__u64 cookie, __u64 sp, __u64 bp)
{
	asm volatile(""
		     : "+r"(sp), "+r"(bp)); /* hides from the verifier that the pointer into the context was modified */
	return (cookie & MXBPF_CUT_RBP ? bp : sp) + ((__s64)cookie >> MXBPF_CUT_OFF_SHIFT) - 8;
}

static __always_inline bool name_hidden(__u64 id)
{
	int i;

#pragma unroll
	for (i = 0; i < MXBPF_HIDDEN_MAX; i++)
		if (cfg_hidden[i] && cfg_hidden[i] == id)
			return true;
	return false;
}

static __always_inline __u64 span_name(struct pt_regs *ctx, struct mxbpf_thread *t,
				       const volatile struct mxbpf_row *row, __u64 cookie)
{
	__u64 text;

	if (row->by_caller)
		return func_name(cookie & MXBPF_FUNC_MASK);
	if (!row->only_id)
		return name_of(ctx, t, row);
	text = fetch(ctx, t, &row->alt_name);
	return text ? name_intern(t, text, 0) : MXBPF_NAME_UNNAMED;
}

/* Returns the name of an operator that a custom operator pushed, alone or in a bulk, or 0. */
static __always_inline __u64 custom_of(struct pt_regs *ctx, struct mxbpf_thread *t,
				       const volatile struct mxbpf_row *row, __u64 name_id)
{
	const struct mxbpf_frame *top;

	if (row->renamed)
		return row->at_once ? custom_name_in(t, custom_charged(t), name_id)
				    : custom_name(t, fetch(ctx, t, &row->link), name_id);
	if (!row->inside)
		return 0;
	top = frame_top(t);
	return top && top->cls == MXBPF_CLASS_CUSTOM ? custom_name_in(t, custom_half(top->name_id, 0), name_id) : 0;
}

/* Frame f opens, and ends by key. */
static __always_inline void key_open(struct mxbpf_thread *t, struct mxbpf_frame *f,
				     const volatile struct mxbpf_row *row)
{
	struct mxbpf_key key = {};

	key.key = f->key;
	key.tgid = t->tgid;
	key.cls = row->cls; /* the class in frame_key_class() */
	key_put(t, &key, f);
	if (READS_LINES && row->link.base)
		pushed_runs(t, f->link);
}

/* Frame f, which is frame d, has opened. */
static __always_inline void span_opened(struct pt_regs *ctx, struct mxbpf_thread *t, struct mxbpf_frame *f, __u32 d,
					const volatile struct mxbpf_row *row)
{
	if (!d)
		t->removed = 0;
	if (row->end == MXBPF_END_KEY)
		key_open(t, f, row);
	if (row->span_flags & MXBPF_SPAN_USER)
		range_send(t, f, d, fetch(ctx, t, &row->range), row->range_from);
}

/* Ranges without a key have 0. A library of NVTX without a tool gives all domains the handle 0. */
static __always_inline __u64 range_key(struct pt_regs *ctx, struct mxbpf_thread *t,
				       const volatile struct mxbpf_row *row)
{
	return row->key.base == MXBPF_BASE_NONE ? 0 : fetch(ctx, t, &row->key) + 1;
}

static __always_inline void span_open(struct pt_regs *ctx, struct mxbpf_thread *t, const volatile struct mxbpf_row *row)
{
	__u64 sp = PT_REGS_SP(ctx), cookie = 0, callee_sp = sp, name_id, custom = 0;
	struct mxbpf_noted inside = {};
	struct mxbpf_frame *f;
	__u32 d;

	if (row->by_caller) {
		cookie = caller_cookie(t, sp);
		if (!cookie)
			return;
		sp = cookie_sp(cookie, sp + 8, ctx->bp);
	}
	frames_end(t, sp);
	f = frame_top(t);
	if (row->outermost && f && f->cls == row->cls)
		return;
	if (row->inside && !inside_opens(ctx, t, frame_top(t), row, &inside))
		return;
	name_id = row->inside ? inside.name_id : span_name(ctx, t, row, cookie);
	if (custom_seen)
		custom = custom_of(ctx, t, row, name_id);
	if (row->hides && name_hidden(name_id))
		return;
	d = t->depth;
	if ((row->end == MXBPF_END_PARENT && !d) ||
	    (row->unscoped && row->end == MXBPF_END_PAIR &&
	     d >= MXBPF_RANGES_DEEP)) { /* nothing would end it, or nothing ends those around it */
		t->counts[MXBPF_COUNT_UNMATCHED]++;
		return;
	}
	f = frame_new(t);
	if (!f) {
		t->over += row->end == MXBPF_END_PAIR && !row->key_later;
		t->counts[MXBPF_COUNT_ATTEMPTED]++;
		t->counts[MXBPF_COUNT_DROPPED]++;
		return;
	}
	f->child_ns = f->child_cost_ns = f->twin.dur_ns = 0;
	__builtin_memset(&f->nested, 0, sizeof(f->nested));
	f->alloc_bytes = f->self_alloc_bytes = 0;
	f->nchild = 0;
	f->merge = row->merge_same;
	f->inside = row->inside;
	f->tail = 0;
	f->func = 0;
	f->flags = row->span_flags | (row->at_once ? MXBPF_FRAME_AT_ONCE : 0) |
		   (probe_sliced(ctx) ? MXBPF_FRAME_SLICED : 0) | (row->key_later ? MXBPF_FRAME_KEYLESS : 0);
	f->end = row->end;
	if (row->end == MXBPF_END_CUT || row->end == MXBPF_END_NEXT)
		func_open(t, f, row, row->by_caller ? cookie : probe_cookie(ctx), sp);
	f->name_id = custom ? custom : name_id;
	f->key = row->inside ? 0 : row->unscoped ? range_key(ctx, t, row) : fetch(ctx, t, &row->key);
	if (cfg_endless && f->end == MXBPF_END_NEXT)
		bpf_probe_read_user(&f->key, sizeof(f->key), (void *)sp);
	f->ip = f->return_off = 0;
	if (row->by_caller) {
		f->return_off = sp - callee_sp - 8;
		bpf_probe_read_user(&f->ip, sizeof(f->ip), (void *)callee_sp);
	}
	f->link = row->inside ? 0 : fetch_link(ctx, t, &row->link);
	f->device = row->inside ? inside_device(frame_at(t, d - 1)) : fetch_device(ctx, t, &row->device);
	/* A call-site probe is in a callee, so the spanned frame starts one return address higher. */
	f->sp = row->unscoped ? ~0ull : row->at_call_site || row->by_caller ? callee_sp + 8 : sp;
	if (row->leaf && f->end == MXBPF_END_NEXT)
		f->sp = 0;
	f->cls = custom ? MXBPF_CLASS_CUSTOM : row->cls;
	if (row->cls == MXBPF_CLASS_CUSTOM)
		custom_open(ctx, t, f, row);
	f->tid = t->tid;
	detail_open(ctx, t, f, frame_at(t, d - 1), row);
	if (row->inside)
		f->layer_id = inside.layer_id;
	account_open(f, row->end == MXBPF_END_KEY);
	if (cfg_counters)
		counters_open(t);
	cost_open(t, f, d);
	f->start_ns = bpf_ktime_get_ns(); /* taken after the fetches, so the span does not include their cost */
	t->depth = d + 1;
	span_opened(ctx, t, f, d, row);
}

/*
 * Ends a range. If a span that began inside it is open, for example because coroutines of one thread have a range each,
 * the range's frame leaves the stack from below that one. An end without a start ends nothing.
 */
static __always_inline void range_pop(struct pt_regs *ctx, struct mxbpf_thread *t, const volatile struct mxbpf_row *row,
				      __u64 now)
{
	const __u64 key = range_key(ctx, t, row);
	struct mxbpf_frame *f;
	__u32 n;

	if (t->over && !row->key_later) { /* the end of a range for which there was no room */
		t->over--;
		return;
	}
	n = range_find(t, key, row->cls);
	f = n ? frame_at(t, n - 1) : 0;
	if (!f) {
		t->counts[MXBPF_COUNT_UNMATCHED] += !row->key_later;
		return;
	}
	if (n != t->depth && row->cls == MXBPF_CLASS_OPERATOR) /* an exception has left operators in it */
		FRAMES_ALL(frames_drop_above_range(t, now, 0));
	if (row->range_from)
		range_more(t, f, n - 1, fetch(ctx, t, &row->range), row->range_from);
	if (n == t->depth)
		frame_close(t, now, 0);
	else
		frame_send_inner(t, n - 1, now, MXBPF_SPAN_ASYNC);
}

/* Gives the innermost range its key, which was not known at its start. */
static __always_inline void range_keyed(struct pt_regs *ctx, struct mxbpf_thread *t,
					const volatile struct mxbpf_row *row)
{
	struct mxbpf_frame *f = frame_top(t);
	__u32 old;
	__u64 key;

	if (!f || !(f->flags & MXBPF_FRAME_KEYLESS))
		return;
	key = range_key(ctx, t, row);
	old = range_find(t, key, f->cls); /* an object at the same address, whose end was not seen */
	f->key = key;
	f->flags &= ~MXBPF_FRAME_KEYLESS;
	if (!old)
		return;
	frame_forget(t, old - 1);
	frame_remove(t, old - 1);
}

static __always_inline void span_close_pair(struct pt_regs *ctx, struct mxbpf_thread *t,
					    const volatile struct mxbpf_row *row)
{
	__u64 now = bpf_ktime_get_ns(), sp = PT_REGS_SP(ctx);
	struct mxbpf_frame *f = frame_top(t);

	/*
	 * Drop calls that a jump or an exception left, so that they do not take their caller's end. The stack
	 * pointer at an end that is reached by a jump says nothing.
	 */
	if (row->at_call_site && f && f->sp <= sp)
		FRAMES_ALL(frames_drop_left(t, now, sp));
	if (row->unscoped) {
		range_pop(ctx, t, row, now);
		return;
	}
	if (t->over) {
		t->over--;
		return;
	}
	f = frame_top(t);
	if (f && (f->end != MXBPF_END_PAIR || f->cls != row->cls)) {
		FRAMES_ALL(frames_drop_above_pair(t, now, row->cls));
		f = frame_top(t);
	}
	if (!f) {
		t->counts[MXBPF_COUNT_UNMATCHED]++;
		return;
	}
	frame_close(t, now, 0);
	f = frame_top(t);
	if (f && f->end == MXBPF_END_CHILD)
		frame_close(t, now, 0);
}

__noinline int frame_has(struct mxbpf_thread *t, __u32 i, __u64 start_ns)
{
	struct mxbpf_frame *f = t ? frame_at(t, i) : 0;

	return f && f->end == MXBPF_END_KEY && f->start_ns == start_ns;
}

/* Does frames_have() for frames d - 1 to d - FRAMES_STEP. */
__noinline int frames_have_step(struct mxbpf_thread *t, __u32 d, __u64 start_ns)
{
	__u32 i;

	for (i = 1; i <= FRAMES_STEP; i++)
		if (frame_has(t, d - i, start_ns))
			return 1;
	return 0;
}

/* Returns 1 if the span that ends by key and began at start_ns is open on the running thread. */
__noinline int frames_have(struct mxbpf_thread *t, __u64 start_ns)
{
	__u32 i;

	for (i = 0; t && i < MXBPF_FRAMES_MAX && i < t->depth; i += FRAMES_STEP)
		if (frames_have_step(t, t->depth - i, start_ns))
			return 1;
	return 0;
}

static __always_inline void span_close_key(struct pt_regs *ctx, struct mxbpf_thread *t,
					   const volatile struct mxbpf_row *row)
{
	struct mxbpf_key key = {.key = fetch(ctx, t, &row->key), .tgid = t->tgid, .cls = row->cls};
	__u64 now = bpf_ktime_get_ns();
	struct mxbpf_frame *open, *top;

	open = bpf_map_lookup_elem(&open_keys, &key);
	if (!open || open->start_ns < active_since_ns) {
		t->counts[MXBPF_COUNT_UNMATCHED]++;
		bpf_map_delete_elem(&open_keys, &key);
		return;
	}
	if (cfg_life && row->cls == MXBPF_CLASS_OPERATOR)
		life_end(t, open, now);
	if (row->range_from)
		range_more(t, open, 0, fetch(ctx, t, &row->range), row->range_from);
	top = frame_top(t);
	if (top && top->end == MXBPF_END_KEY && top->start_ns == open->start_ns) {
		frame_close(t, now, 0);
	} else if (frames_have(t, open->start_ns)) {
		FRAMES_ALL(frames_drop_above_key(t, now, open->start_ns));
		frame_close(t, now, 0);
	} else {
		t->counted.known =
			0; /* it began on another thread, or its function has returned: counters are unknown */
		span_emit(t, open, now, MXBPF_SPAN_ASYNC);
	}
	bpf_map_delete_elem(&open_keys, &key);
}

/*
 * Sends a hand-over of work to another thread. It is sent even without an open span, because the reader pairs
 * hand-overs with starts by counting.
 */
static __always_inline void edge_emit(struct pt_regs *ctx, struct mxbpf_thread *t, const volatile struct mxbpf_row *row)
{
	__u64 now = bpf_ktime_get_ns();
	struct mxbpf_frame *f;
	struct mxbpf_edge *r;

	FRAMES_ALL(frames_drop_left(t, now, PT_REGS_SP(ctx)));
	f = frame_top(t);
	r = ring_reserve(t, sizeof(*r));
	if (!r)
		return;
	r->h.kind = MXBPF_EDGE;
	r->h.size = sizeof(*r);
	r->h.tgid = t->tgid;
	r->h.ts_ns = now;
	r->link = fetch_link(ctx, t, &row->link);
	r->src_start_ns = f ? f->start_ns : 0;
	r->tid = t->tid;
	r->src_cls = f ? f->cls : MXBPF_CLASS_NONE;
	r->pad[0] = r->pad[1] = r->pad[2] = 0;
	ring_submit(t, r);
}
