// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/* Reads the batches that the agent inside a target hands over by calling its bell function. */
#include "ids.bpf.h"
#include "mxbpf_agent.h"
#include <bpf/bpf_tracing.h>

/* Process that the agent runs in. */
const volatile __u32 cfg_tgid;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} batches SEC(".maps"), gpu_batches SEC(".maps");

/* Calls and records of a GPU that were lost because the ring was full or the batch could not be read. */
__u64 lost_calls, lost_gpu;
/* Batches with more calls or records than a batch has. */
__u64 impossible;

static __always_inline int lose(__u32 what, __u32 n)
{
	if (what == MXBPF_AGENT_GPU)
		__sync_fetch_and_add(&lost_gpu, n);
	else
		__sync_fetch_and_add(&lost_calls, n);
	return 0;
}

/*
 * Reads only the part of the batch that holds calls or records. The pages after it may not be mapped in yet, and
 * reading such a page would fail here.
 */
SEC("uprobe") int on_bell(struct pt_regs *ctx)
{
	const struct mxbpf_agent_batch *from = (void *)PT_REGS_PARM1(ctx);
	struct mxbpf_agent_batch *b;
	struct bpf_pidns_info ids = thread_ids();
	__u32 n, what, bytes;

	if (ids.tgid != cfg_tgid)
		return 0;
	if (bpf_probe_read_user(&n, sizeof(n), &from->ncalls) || bpf_probe_read_user(&what, sizeof(what), &from->what))
		return lose(MXBPF_AGENT_CALLS, MXBPF_AGENT_BATCH);
	if (n > MXBPF_AGENT_BATCH || what > MXBPF_AGENT_GPU || (what == MXBPF_AGENT_GPU && n > MXBPF_AGENT_GPU_BATCH)) {
		__sync_fetch_and_add(&impossible, 1);
		return 0;
	}
	b = what == MXBPF_AGENT_GPU ? bpf_ringbuf_reserve(&gpu_batches, sizeof(*b), 0)
				    : bpf_ringbuf_reserve(&batches, sizeof(*b), 0);
	if (!b)
		return lose(what, n);
	bytes = n * (what == MXBPF_AGENT_GPU ? sizeof(b->gpu[0]) : sizeof(b->calls[0])) + MXBPF_AGENT_BATCH_HEAD;
	if (bytes > sizeof(*b) || bpf_probe_read_user(b, bytes, from)) {
		bpf_ringbuf_discard(b, BPF_RB_NO_WAKEUP);
		return lose(what, n);
	}
	b->ncalls = n; /* another thread may have changed them since */
	b->what = what;
	b->our_tid = ids.pid;
	bpf_ringbuf_submit(b, BPF_RB_NO_WAKEUP);
	return 0;
}

/* Time at which the program first removed all callbacks, and the agent's with them; 0: not yet. */
volatile __u64 cleared_ns;

SEC("uprobe") int on_clear(struct pt_regs *ctx)
{
	if (thread_ids().tgid == cfg_tgid && !cleared_ns)
		cleared_ns = bpf_ktime_get_ns();
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
