// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * The main BPF object. Each event source has a file. All files share the maps and helpers of common.bpf.h, so they
 * are compiled as one translation unit.
 *
 * Each action has a program here, which is never loaded itself. User space makes a copy of it for each row of the
 * plan, and the copy reads cfg_rows[K] where the original reads cfg_rows[0] (user/attach/rows.c). The verifier
 * knows these constants and removes every branch and fetch that the row does not use.
 */
#include "common.bpf.h"
#include "own_stack.bpf.h"
#include "read/name.bpf.h"
#include "step.bpf.h"
#include "iter.bpf.h"
#include "span.bpf.c"
#include "cut.bpf.c"
#include "life.bpf.c"
#include "feature/kv.bpf.h"
#include "mem.bpf.c"
#include "feature/omp.bpf.h"
#include "feature/mark.bpf.h"
#include "proc.bpf.c"
#include "sample.bpf.h"
#include "sched.bpf.c"

/*
 * Runs at the start of every hit. Returns the thread if the action has to run, else NULL. A program's call of its
 * profiler counts even while nothing is recorded, because it can start the recording.
 */
static __always_inline struct mxbpf_thread *hit(struct pt_regs *ctx, const volatile struct mxbpf_row *row,
						const volatile __u8 *nr)
{
	bool decides = row->action == MXBPF_ACT_APP && app.tgid;
	bool shared = probe_shared(ctx), sliced = probe_sliced(ctx);
	struct mxbpf_thread *t;

	own_stack(ctx);
	if ((!active_since_ns || (sliced && !slice.since_ns)) && !row->iteration_end[0] && !decides) {
		cost_rest(ctx);
		if (shared)
			stranger_rests();
		return 0;
	}
	t = thread_get(shared);
	if (!t)
		return 0;
	t->counts[MXBPF_COUNT_HITS]++;
	cost_hit(ctx, t, nr);
	if (row->iteration_end[0] && iteration_ended(ctx, t, row))
		iteration_end(t, bpf_ktime_get_ns());
	if ((!active_since_ns || (sliced && !slice.since_ns)) && !decides)
		return 0;
	if (cfg_spans[0] && t->depth && t->frames[0].start_ns < active_since_ns)
		frames_forget(t);
	if (cfg_spans[0] && cfg_sliced && t->depth)
		frames_leave_slice(t, slice.since_ns);
	if (row->only_id && name_of(ctx, t, row) != row->only_id)
		return 0;
	return t;
}

/* A new action needs a line here and a row in names[] of user/attach/rows.c. */
#define ON_HIT(name, act)                                                                                              \
	SEC("?row") int name(struct pt_regs *ctx)                                                                      \
	{                                                                                                              \
		const volatile struct mxbpf_row *row = &cfg_rows[0];                                                   \
		struct mxbpf_thread *t = hit(ctx, row, &cfg_nr[0]);                                                    \
                                                                                                                       \
		if (t)                                                                                                 \
			act;                                                                                           \
		return 0;                                                                                              \
	}

ON_HIT(on_nothing, (void)0)
ON_HIT(on_open, row->kv ? kv_open(ctx, t, row) : span_open(ctx, t, row))
ON_HIT(on_close_pair, span_close_pair(ctx, t, row))
ON_HIT(on_close_key, span_close_key(ctx, t, row))
ON_HIT(on_close_cut, span_close_cut(ctx, t))
ON_HIT(on_keyed, range_keyed(ctx, t, row))
ON_HIT(on_raise, t->raised_ns = bpf_ktime_get_ns())
ON_HIT(on_count, span_count(ctx))
ON_HIT(on_tick, frames_end(t, PT_REGS_SP(ctx)))
ON_HIT(on_edge, edge_emit(ctx, t, row))
ON_HIT(on_memory, mem_emit(ctx, t, row))
ON_HIT(on_failed, mem_failed(ctx, t))
ON_HIT(on_thrown, mem_thrown(ctx, t))
ON_HIT(on_note, inside_note(ctx, t, row))
ON_HIT(on_custom_push, custom_push(ctx, t, row))
ON_HIT(on_allocated, alloc_end(ctx, t))
ON_HIT(on_output, on_pushed(ctx, t, row))
ON_HIT(on_pool, alloc_pool(ctx, t, row))
ON_HIT(on_region, on_team(ctx, t, row->action))
ON_HIT(on_life_push, on_writes(ctx, t, row))
ON_HIT(on_life_ready, on_ready(ctx, t, row))
ON_HIT(on_step, on_step_hit(ctx, t, row))
ON_HIT(on_mark_start, mark_start(ctx, t, row))
ON_HIT(on_mark_stop, mark_stop(ctx, t, row))
ON_HIT(on_mark_value, mark_value(ctx, t, row))
ON_HIT(on_mark_instant, mark_instant(ctx, t, row))
ON_HIT(on_mark_end, mark_end(ctx, t, row))
ON_HIT(on_app, app_call(ctx, t, row))

/*
 * Hits by the number of the site, while mxbpf finds out which sites a process passes. Two simultaneous hits may count
 * as one.
 */
volatile __u32 place_hits[MXBPF_SITES_MAX];

SEC("?row") int on_seen(struct pt_regs *ctx)
{
	place_hits[bpf_get_attach_cookie(ctx) & (MXBPF_SITES_MAX - 1)]++;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
