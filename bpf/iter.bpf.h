/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * --iterations: a window opens and closes at the very hit that ends an iteration, so that each holds whole ones.
 * User space attaches and detaches everything else meanwhile, and says when a window may open.
 */
#ifndef ITER_BPF_H
#define ITER_BPF_H

#include "common.bpf.h"
#include "step.bpf.h"

struct mxbpf_sampling sampling; /* shared with user space; whoever takes active_since_ns away accounts for its window */

/* Wakes user space; what it is about stands in `sampling`. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} marks SEC(".maps");

/* Whether a hit is of a call that ends an iteration: its name begins with the row's mark. */
static __always_inline bool iteration_marked(struct pt_regs *ctx, struct mxbpf_thread *t,
					     const volatile struct mxbpf_row *row)
{
	char name[MXBPF_MARK_BYTES] = {};
	int i;

	if (row->mark[0] == '*')
		return true;
	if (cstr_read(name, sizeof(name), fetch(ctx, t, &row->name)) < 0)
		return false;
#pragma unroll
	for (i = 0; i < MXBPF_MARK_BYTES - 1; i++)
		if (row->mark[i] && name[i] != row->mark[i])
			return false;
	return true;
}

/* Iterations are those of the first process to end one, until it is gone; others are seen while its windows are open.
 */
__noinline int iteration_end(struct mxbpf_thread *t, __u64 now)
{
	__u64 since = active_since_ns, n;
	bool wake;

	if (!t || !sampling.on)
		return 0;
	if (!sampling.tgid)
		__sync_val_compare_and_swap(&sampling.tgid, 0, t->tgid);
	if (sampling.tgid != t->tgid)
		return 0;
	n = __sync_fetch_and_add(&sampling.iterations, 1) + 1;
	wake = n == sampling.wake_at;
	if (since) {
		__sync_fetch_and_add(&sampling.sampled, 1);
		step_send(t, now, 0, MXBPF_STEP_SAMPLED, 0);
		if (__sync_fetch_and_add(&sampling.left, -1) == 1 &&
		    __sync_val_compare_and_swap(&active_since_ns, since, 0) == since) {
			activation++;
			__sync_fetch_and_add(&sampling.window_ns, now - since);
			__sync_fetch_and_add(&sampling.closed, 1);
			wake = true;
		}
	} else if (__sync_val_compare_and_swap(&sampling.armed, 1, 0) == 1) {
		sampling.left = sampling.each;
		sampling.opened_at = n;
		__sync_fetch_and_add(&sampling.opened, 1);
		active_since_ns = now;
		step_send(t, now, 0, MXBPF_STEP_SAMPLED, MXBPF_STEP_OPENS);
	}
	if (wake)
		bpf_ringbuf_output(&marks, &n, sizeof(n), BPF_RB_FORCE_WAKEUP);
	return 0;
}

#endif
