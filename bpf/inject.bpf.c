// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * Finds a thread that calls a function, and stops it once, at the function's entry, for its tracer. The stop is a
 * signal that the thread ignores: if the tracer has been killed meanwhile, the signal does nothing. A process that
 * mxbpf has launched is stopped as a whole at the first call, as no tracer knows which thread will call; if mxbpf has
 * been killed meanwhile, the guard of user/attach/watch.c lets the process go on.
 */
#include "ids.bpf.h"
#include <bpf/bpf_tracing.h>

#define SIGSTOP 19

/* The process whose threads are meant. */
const volatile __u32 cfg_tgid;

/* Wakes user space: its one record says nothing. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} firsts SEC(".maps");

/* The thread that called last, and the first one that called twice in a row; user space clears them. */
volatile __u32 last_tid, caller_tid;
/* The thread that gets the signal at its next call, and which signal. Whoever changes it to 0 has it alone. */
__u32 armed_tid;
volatile __u32 armed_signal;

/* 1: the next call of any thread stops the process. Whoever changes it to 0 has it alone. */
__u32 armed_any;
/* The thread that made that call, once the signal was sent; 0: none has. */
volatile __u32 hit_tid;
/* Calls of other threads since then: the agent is not in yet. */
__u64 others;

/* The call at which the signal was sent: its time, its address, and what bpf_send_signal_thread() returned. */
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

	if (ids.tgid != cfg_tgid)
		return 0;
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
