/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * --iterations: a window opens and closes at the hit that ends an iteration, so each window holds complete
 * iterations. User space attaches and detaches all other probes in between, and sets `armed` when a window may
 * open.
 */
#ifndef ITER_BPF_H
#define ITER_BPF_H

#include "common.bpf.h"
#include "step.bpf.h"

/* Shared with user space. The thread that sets active_since_ns to 0 counts the window's time. */
struct mxbpf_iteration_window iteration_window;

/* Wakes user space when a window opens or closes, or at the iteration that it waits for. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} windows SEC(".maps");

/*
 * Returns true if this call ends an iteration: its name begins with the row's text, or the row accepts every call.
 */
static __always_inline bool iteration_ended(struct pt_regs *ctx, struct mxbpf_thread *t,
					    const volatile struct mxbpf_row *row)
{
	char name[MXBPF_ITERATION_END_BYTES] = {};
	int i;

	if (row->iteration_end[0] == '*')
		return true;
	if (cstr_read(name, sizeof(name), fetch(ctx, t, &row->name)) < 0)
		return false;
#pragma unroll
	for (i = 0; i < MXBPF_ITERATION_END_BYTES - 1; i++)
		if (row->iteration_end[i] && name[i] != row->iteration_end[i])
			return false;
	return true;
}

struct mxbpf_slice slice; /* shared with user space */
/* Set by user space: calls are recorded in slices alone. */
volatile __u8 calls_in_slices;

/* Returns true if no call of the process is recorded now, so that nobody knows which calls are open. */
static __always_inline bool between_slices(__u32 tgid)
{
	return cfg_sliced && calls_in_slices && (!slice.since_ns || slice.tgid != tgid);
}

/* Returns true if this call closed the slice that is open since then. */
static __always_inline bool slice_close(__u64 since, __u64 now)
{
	if (__sync_val_compare_and_swap(&slice.since_ns, since, 0) != since)
		return false;
	slice.to_ns = now;
	return true;
}

/* Counts an iteration, which can open or close a slice. */
__noinline int slice_step(struct mxbpf_thread *t, __u64 now)
{
	__u64 since = slice.since_ns;

	if (!t)
		return 0;
	t->iterations++;
	if (slice.tgid != t->tgid)
		return 0;
	if (!since) {
		if (__sync_val_compare_and_swap(&slice.armed, 1, 0) != 1)
			return 0;
		slice.from_ns = now;
		slice.since_ns = now;
		return 0;
	}
	__sync_fetch_and_add(&slice.iterations, 1);
	if (__sync_fetch_and_add(&slice.left, -1) == 1 && slice_close(since, now))
		bpf_ringbuf_output(&windows, &now, sizeof(now), BPF_RB_FORCE_WAKEUP);
	return 0;
}

/*
 * Counts iterations of one process: the first one that ends an iteration, until it exits. Other processes are
 * recorded while its windows are open.
 */
__noinline int iteration_end(struct mxbpf_thread *t, __u64 now)
{
	__u64 since = active_since_ns, n;
	bool wake;

	if (cfg_sliced)
		slice_step(t, now);
	if (!t || !iteration_window.on)
		return 0;
	if (!iteration_window.tgid)
		__sync_val_compare_and_swap(&iteration_window.tgid, 0, t->tgid);
	if (iteration_window.tgid != t->tgid)
		return 0;
	n = __sync_fetch_and_add(&iteration_window.iterations, 1) + 1;
	wake = n == iteration_window.wake_at;
	if (since) {
		__sync_fetch_and_add(&iteration_window.sampled, 1);
		step_send(t, now, 0, MXBPF_STEP_COUNTED, 0);
		if (__sync_fetch_and_add(&iteration_window.left, -1) == 1 &&
		    __sync_val_compare_and_swap(&active_since_ns, since, 0) == since) {
			activation++;
			__sync_fetch_and_add(&iteration_window.window_ns, now - since);
			__sync_fetch_and_add(&iteration_window.closed, 1);
			wake = true;
		}
	} else if (__sync_val_compare_and_swap(&iteration_window.armed, 1, 0) == 1) {
		iteration_window.left = iteration_window.each;
		iteration_window.opened_at = n;
		__sync_fetch_and_add(&iteration_window.opened, 1);
		active_since_ns = now;
		step_send(t, now, 0, MXBPF_STEP_COUNTED, MXBPF_STEP_OPENS);
	}
	if (wake)
		bpf_ringbuf_output(&windows, &n, sizeof(n), BPF_RB_FORCE_WAKEUP);
	return 0;
}

#endif
