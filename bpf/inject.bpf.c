// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * Finds a thread that calls a function, and stops it once, at the function's entry, for its tracer. The stop is a
 * signal that the thread ignores: if the tracer has been killed meanwhile, the signal does nothing.
 */
#include "ids.bpf.h"
#include <bpf/bpf_tracing.h>

/* The process whose threads are meant. */
const volatile __u32 cfg_tgid;

/* The thread that called last, and the first one that called twice in a row; user space clears them. */
volatile __u32 last_tid, caller_tid;
/* The thread that gets the signal at its next call, and which signal. Whoever changes it to 0 has it alone. */
__u32 armed_tid;
volatile __u32 armed_signal;

/* The call at which the signal was sent: its time, its address, and what bpf_send_signal_thread() returned. */
volatile __u64 hit_ns;
volatile __u64 hit_ip;
volatile __s64 hit_result;

SEC("uprobe") int on_call(struct pt_regs *ctx)
{
	struct bpf_pidns_info ids = thread_ids();

	if (ids.tgid != cfg_tgid)
		return 0;
	if (!caller_tid && last_tid == ids.pid)
		caller_tid = ids.pid;
	last_tid = ids.pid;
	if (*(volatile __u32 *)&armed_tid != ids.pid || __sync_val_compare_and_swap(&armed_tid, ids.pid, 0) != ids.pid)
		return 0;
	hit_ns = bpf_ktime_get_ns();
	hit_ip = PT_REGS_IP(ctx);
	hit_result = bpf_send_signal_thread(armed_signal);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
