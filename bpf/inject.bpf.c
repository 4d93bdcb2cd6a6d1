// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * Stops a thread of the target at the entry of a function, so that mxbpf can trace it. The program finds a thread
 * that calls the function, and sends it a signal at its next call, once. The thread ignores this signal, so it has
 * no effect if mxbpf has been killed in between.
 *
 * A process that mxbpf has launched is stopped as a whole at its first call, because mxbpf does not know which
 * thread will call. If mxbpf has been killed in between, the guard of user/attach/watch.c continues the process.
 */
#include "ids.bpf.h"
#include "own_stack.bpf.h"
#include <bpf/bpf_tracing.h>

#define SIGSTOP 19

/* The target process. */
const volatile __u32 cfg_tgid;

/* Wakes user space. The content of the record has no meaning. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} firsts SEC(".maps");

/* The thread that called last, and the first thread that called twice in a row. User space clears both. */
volatile __u32 last_tid, caller_tid;
/* The thread that gets armed_signal at its next call. Whoever changes it to 0 owns the stop. */
__u32 armed_tid;
volatile __u32 armed_signal;

/* 1: the next call of any thread stops the process. Whoever changes it to 0 owns the stop. */
__u32 armed_any;
/* The thread whose call stopped the process, set after the signal was sent; 0: none yet. */
volatile __u32 hit_tid;
/* Calls of other threads since then, which the agent misses because it is not loaded yet. */
__u64 others;

/* Calls of any thread. */
__u64 calls;

/* The call at which the signal was sent: its time, its address, and the result of bpf_send_signal_thread(). */
volatile __u64 hit_ns;
volatile __u64 hit_ip;
volatile __s64 hit_result;

static __always_inline void stop_all(struct pt_regs *ctx, __u32 tid)
{
	__u64 none = 0;

	if (hit_tid && hit_tid != tid)
		__sync_fetch_and_add(&others, 1);
	if (!*(volatile __u32 *)&armed_any || __sync_val_compare_and_swap(&armed_any, 1, 0) != 1)
		return;
	hit_ns = bpf_ktime_get_ns();
	hit_ip = PT_REGS_IP(ctx);
	hit_result = bpf_send_signal_thread(SIGSTOP);
	hit_tid = tid;
	bpf_ringbuf_output(&firsts, &none, sizeof(none), BPF_RB_FORCE_WAKEUP);
}

SEC("uprobe") int on_call(struct pt_regs *ctx)
{
	struct bpf_pidns_info ids = thread_ids();

	own_stack(ctx);
	if (ids.tgid != cfg_tgid)
		return 0;
	__sync_fetch_and_add(&calls, 1);
	if (!caller_tid && last_tid == ids.pid)
		caller_tid = ids.pid;
	last_tid = ids.pid;
	stop_all(ctx, ids.pid);
	if (*(volatile __u32 *)&armed_tid != ids.pid || __sync_val_compare_and_swap(&armed_tid, ids.pid, 0) != ids.pid)
		return 0;
	hit_ns = bpf_ktime_get_ns();
	hit_ip = PT_REGS_IP(ctx);
	hit_result = bpf_send_signal_thread(armed_signal);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
