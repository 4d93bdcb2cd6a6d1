// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * Spans that end at a cut: an instruction inside a function that every normal return passes exactly once. A hit
 * ends only the frame that lies exactly at the hit's CFA. Frames below it were left by an exception.
 */
#include "common.bpf.h"
#include "frame.bpf.h"

/* Returns whether the condition of a conditional jump holds; code is the low four bits of its opcode. */
static __always_inline bool condition(__u32 code, __u64 flags)
{
	bool cf = flags & 1, pf = flags >> 2 & 1, zf = flags >> 6 & 1, sf = flags >> 7 & 1, of = flags >> 11 & 1, holds;

	switch (code >> 1) {
	case 0:
		holds = of;
		break;
	case 1:
		holds = cf;
		break;
	case 2:
		holds = zf;
		break;
	case 3:
		holds = cf | zf;
		break;
	case 4:
		holds = sf;
		break;
	case 5:
		holds = pf;
		break;
	case 6:
		holds = sf != of;
		break;
	default:
		holds = zf | (sf != of);
	}
	return (code & 1) ? !holds : holds;
}

/* Checks frame i for frame_is_open(). Returns -1 if the search has to go on in the next outer frame. */
__noinline int frame_is_open_at(struct mxbpf_thread *t, __u32 i, __u64 sp, __u32 func)
{
	struct mxbpf_frame *f = t ? frame_at(t, i) : 0;

	if (!f || (f->sp > sp && f->sp != ~0ull))
		return 0;
	return f->sp == sp && f->end == MXBPF_END_CUT && (!func || f->func == func) ? 1 : -1;
}

/* Does frame_is_open() for frames d - 1 to d - FRAMES_STEP, innermost first. */
__noinline int frame_is_open_step(struct mxbpf_thread *t, __u32 d, __u64 sp, __u32 func)
{
	int open = -1;
	__u32 i;

	for (i = 1; i <= FRAMES_STEP && open < 0; i++)
		open = frame_is_open_at(t, d - i, sp, func);
	return open;
}

/*
 * Returns 1 if a frame that ends by cut is open at exactly sp. With a nonzero func, the frame must also be of that
 * function. Usually it is the top frame.
 */
__noinline int frame_is_open(struct mxbpf_thread *t, __u64 sp, __u32 func)
{
	int i, open;

	if (!t)
		return 0;
	open = frame_is_open_at(t, t->depth - 1, sp, func);
	for (i = 0; i < MXBPF_FRAMES_MAX && open < 0; i += FRAMES_STEP)
		open = frame_is_open_step(t, t->depth - i, sp, func);
	return open > 0;
}

/*
 * Ends the inner of two spans of one C API call. Calls of the classes data and kvstore have two spans, and the end
 * of the inner one follows the cut of the outer one.
 */
__noinline int frame_end_inner(struct mxbpf_thread *t, __u64 sp, __u64 now)
{
	struct mxbpf_frame *f, *outer;

	if (!t)
		return 0;
	f = frame_top(t);
	outer = frame_at(t, t->depth - 2);
	if (!f || !outer || f->end != MXBPF_END_PAIR || outer->sp != sp || outer->end != MXBPF_END_CUT ||
	    (outer->cls != MXBPF_CLASS_DATA && outer->cls != MXBPF_CLASS_KVSTORE))
		return 0;
	frame_close(t, now, 0);
	t->over++; /* so that the inner span's own end, which comes later, is ignored */
	return 1;
}

/* Ends the top frame if it lies below sp, or at sp and ends by cut. Returns 0 if it stays. */
__noinline int frames_end_top(struct mxbpf_thread *t, __u64 sp, __u64 now)
{
	struct mxbpf_frame *f = t ? frame_top(t) : 0;
	struct mxbpf_cut_check *c;

	if (!f || f->sp > sp || (f->sp == sp && f->end != MXBPF_END_CUT))
		return 0;
	if (f->sp < sp) {
		if (!frame_end_inner(t, sp, now))
			frame_drop(t, now);
		return 1;
	}
	c = cut_check(f->func);
	if (c)
		__sync_fetch_and_add(&c->matched, 1);
	frame_close(t, now, 0);
	return 1;
}

/*
 * Ends frame i, below a range that the call has pushed and not popped, if it lies at or below sp. Returns 0 if the
 * frame stays open, and then all frames around it do.
 */
__noinline int frame_end_below(struct mxbpf_thread *t, __u32 i, __u64 sp, __u64 now)
{
	struct mxbpf_frame *f = t ? frame_at(t, i) : 0;
	struct mxbpf_cut_check *c;
	bool ends;

	if (!f || (f->sp > sp && f->sp != ~0ull))
		return 0;
	if (f->sp == ~0ull) { /* a range */
		f->flags |= MXBPF_SPAN_ASYNC;
		return 1;
	}
	ends = f->sp == sp && f->end == MXBPF_END_CUT;
	c = ends ? cut_check(f->func) : 0;
	if (c)
		__sync_fetch_and_add(&c->matched, 1);
	frame_send_inner(t, i, now, ends ? 0 : MXBPF_SPAN_UNWOUND);
	return 1;
}

/* Does frame_end_below() for at most FRAMES_STEP frames, outwards from the top frame, which is a range. */
__noinline int frames_end_below(struct mxbpf_thread *t, __u64 sp, __u64 now)
{
	__u32 i, depth, kept = 1;

	for (i = 0; t && i < FRAMES_STEP; i++) {
		depth = t->depth;
		if (!frame_end_below(t, depth - kept, sp, now))
			break;
		kept += t->depth == depth; /* else the frame has been removed */
	}
	return 0;
}

/* Ends at most FRAMES_STEP frames. Returns 0 if the top frame stays. */
__noinline int frames_end_step(struct mxbpf_thread *t, __u64 sp, __u64 now)
{
	int i;

	for (i = 0; i < FRAMES_STEP; i++)
		if (!frames_end_top(t, sp, now))
			return 0;
	return 1;
}

/*
 * Ends all frames up to sp. Those below sp were left by an exception. Those at sp, a chain of tail calls, all end
 * now.
 */
static __always_inline void frames_end_at(struct mxbpf_thread *t, __u64 sp, __u64 now)
{
	struct mxbpf_frame *f = frame_top(t);

	t->over = 0; /* the dropped frames were nested in the frame that ends now */
	if (f && f->sp == ~0ull)
		frames_end_below(t, sp, now);
	else
		FRAMES_ALL(frames_end_step(t, sp, now));
}

/*
 * Counts an end without a frame as a sign of a wrong cut. Two kinds are no such sign: ends before the entry of the
 * function is probed, and the end of a call that was in progress when the probes became active. The latter is
 * higher on the stack than all spans that the thread has begun since.
 */
static __always_inline void cut_foreign(struct mxbpf_thread *t, struct mxbpf_cut_check *c, __u64 sp)
{
	if (!t->top_sp || !c->entries)
		return;
	if (sp > t->top_sp)
		t->top_sp = sp;
	else
		__sync_fetch_and_add(&c->foreign, 1);
}

static __always_inline void span_close_cut(struct pt_regs *ctx, struct mxbpf_thread *t)
{
	__u64 now = bpf_ktime_get_ns(), cookie = probe_cookie(ctx), flags = ctx->flags;
	__u64 sp = cookie_sp(cookie, PT_REGS_SP(ctx), ctx->bp);
	__u32 code = cookie >> MXBPF_CUT_COND_SHIFT & 31, func = cookie & MXBPF_FUNC_MASK;
	struct mxbpf_cut_check *c = cut_check(func);

	if (!c || c->fallen_ns)
		return;
	if (code && condition(code - 1, flags) != !!(cookie & MXBPF_CUT_TAKEN))
		return;
	if (cookie & MXBPF_CUT_AT) { /* sp is the address of the word that holds the CFA, minus 8 */
		if (bpf_probe_read_user(&sp, sizeof(sp), (void *)(sp + 8))) {
			t->counts[MXBPF_COUNT_UNREADABLE]++;
			return;
		}
		sp -= 8;
	}
	/* All callers of a shared function hit a cut in it, so its hits need a frame of this very function. */
	if (frame_is_open(t, sp, cookie & MXBPF_CUT_MERGED ? func : 0))
		frames_end_at(t, sp, now);
	else if (!(cookie & MXBPF_CUT_MERGED) &&
		 frame_at(t, t->depth)) /* the next frame had room, so the entry was not dropped */
		cut_foreign(t, c, sp);
}
