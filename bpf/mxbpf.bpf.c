// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * The BPF object. One file per event source; they share the maps and helpers of common.bpf.h, so they are one
 * translation unit. Each row of the plan has its own program, on_probe_K, which reads cfg_rows[K]: the verifier knows
 * these constants and removes every branch and fetch that the row does not use.
 */
#include "common.bpf.h"
#include "name.bpf.h"
#include "iter.bpf.h"
#include "span.bpf.c"
#include "cut.bpf.c"
#include "mem.bpf.c"
#include "team.bpf.h"
#include "proc.bpf.c"
#include "sample.bpf.h"
#include "sched.bpf.c"

static __always_inline int on_probe(struct pt_regs *ctx, __u32 k)
{
	const volatile struct mxbpf_row *row = &cfg_rows[k];
	struct mxbpf_thread *t;

	if (!active_since_ns && !row->mark[0])
		return 0;
	t = thread_get();
	if (!t)
		return 0;
	t->counts[MXBPF_COUNT_HITS]++;
	if (row->mark[0] && iteration_marked(ctx, t, row))
		iteration_end(t, bpf_ktime_get_ns());
	if (row->mark[0] && !active_since_ns)
		return 0;
	if (t->depth && t->frames[0].start_ns < active_since_ns)
		frames_forget(t);
	if (row->only_id && name_of(ctx, t, row) != row->only_id)
		return 0;
	if (row->action == MXBPF_ACT_OPEN)
		span_open(ctx, t, row);
	else if (row->action == MXBPF_ACT_CLOSE_PAIR)
		span_close_pair(ctx, t, row);
	else if (row->action == MXBPF_ACT_CLOSE_KEY)
		span_close_key(ctx, t, row);
	else if (row->action == MXBPF_ACT_CLOSE_CUT)
		span_close_cut(ctx, t);
	else if (row->action == MXBPF_ACT_RAISE)
		t->raised_ns = bpf_ktime_get_ns();
	else if (row->action == MXBPF_ACT_TICK)
		frames_end(t, PT_REGS_SP(ctx));
	else if (row->action == MXBPF_ACT_EDGE)
		edge_emit(ctx, t, row);
	else if (row->action == MXBPF_ACT_ALLOC || row->action == MXBPF_ACT_FREE)
		mem_emit(ctx, t, row);
	else if (row->action >= MXBPF_ACT_TEAM_OPEN && row->action <= MXBPF_ACT_TEAM_LEAVE)
		on_team(ctx, t, row->action);
	return 0;
}

#define ON_PROBE(k)                                                                                                    \
	SEC("?uprobe") int on_probe_##k(struct pt_regs *ctx)                                                           \
	{                                                                                                              \
		return on_probe(ctx, k);                                                                               \
	}

/* As many as MXBPF_ROWS_MAX; user space finds them by name. */
ON_PROBE(0)
ON_PROBE(1)
ON_PROBE(2)
ON_PROBE(3)
ON_PROBE(4)
ON_PROBE(5)
ON_PROBE(6)
ON_PROBE(7)
ON_PROBE(8)
ON_PROBE(9)
ON_PROBE(10)
ON_PROBE(11)
ON_PROBE(12)
ON_PROBE(13)
ON_PROBE(14)
ON_PROBE(15)
ON_PROBE(16)
ON_PROBE(17)
ON_PROBE(18)
ON_PROBE(19)
ON_PROBE(20)
ON_PROBE(21)
ON_PROBE(22)
ON_PROBE(23)
ON_PROBE(24)
ON_PROBE(25)
ON_PROBE(26)
ON_PROBE(27)
ON_PROBE(28)
ON_PROBE(29)
ON_PROBE(30)
ON_PROBE(31)
ON_PROBE(32)
ON_PROBE(33)
ON_PROBE(34)
ON_PROBE(35)
ON_PROBE(36)
ON_PROBE(37)
ON_PROBE(38)
ON_PROBE(39)
ON_PROBE(40)
ON_PROBE(41)
ON_PROBE(42)
ON_PROBE(43)
ON_PROBE(44)
ON_PROBE(45)
ON_PROBE(46)
ON_PROBE(47)
ON_PROBE(48)
ON_PROBE(49)
ON_PROBE(50)
ON_PROBE(51)
ON_PROBE(52)
ON_PROBE(53)
ON_PROBE(54)
ON_PROBE(55)
ON_PROBE(56)
ON_PROBE(57)
ON_PROBE(58)
ON_PROBE(59)
ON_PROBE(60)
ON_PROBE(61)
ON_PROBE(62)
ON_PROBE(63)

char LICENSE[] SEC("license") = "Dual BSD/GPL";
