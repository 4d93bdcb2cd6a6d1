// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/* Reads the batches that the agent inside a target hands over by calling its bell function. */
#include "ids.bpf.h"
#include "mxbpf_agent.h"
#include "own_stack.bpf.h"
#include <bpf/bpf_tracing.h>

/*
 * All agents of a session share these programs and rings. The cookie of a link says for which process it was made: its
 * id in the lower 32 bits, its number in the session in the upper ones. A probe may hit in other processes, too.
 */
static __always_inline __u32 number_of(struct pt_regs *ctx, const struct bpf_pidns_info *ids)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);

	return (__u32)cookie == ids->tgid ? cookie >> 32 : MXBPF_AGENT_PROCESSES;
}

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} batches SEC(".maps"), gpu_batches SEC(".maps");

/*
 * Numbers of calls and of GPU records that were lost, because the ring was full or a batch could not be read. Those of
 * GPU records stand at the number of their process.
 */
__u64 lost_calls, lost_gpu[MXBPF_AGENT_PROCESSES];
/* Batches of each process, by its number, that claim more calls or records than a batch can have. */
__u64 impossible[MXBPF_AGENT_PROCESSES];

static __always_inline int lose(__u32 number, __u32 what, __u32 n)
{
	if (what == MXBPF_AGENT_GPU)
		__sync_fetch_and_add(&lost_gpu[number], n);
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
	__u32 number = number_of(ctx, &ids);
	__u32 n, bytes;
	__u16 what;

	own_stack(ctx);
	if (number >= MXBPF_AGENT_PROCESSES)
		return 0;
	if (bpf_probe_read_user(&n, sizeof(n), &from->ncalls) || bpf_probe_read_user(&what, sizeof(what), &from->what))
		return lose(number, MXBPF_AGENT_CALLS, MXBPF_AGENT_BATCH);
	if (n > MXBPF_AGENT_BATCH || what > MXBPF_AGENT_GPU || (what == MXBPF_AGENT_GPU && n > MXBPF_AGENT_GPU_BATCH)) {
		__sync_fetch_and_add(&impossible[number], 1);
		return 0;
	}
	b = what == MXBPF_AGENT_GPU ? bpf_ringbuf_reserve(&gpu_batches, sizeof(*b), 0)
				    : bpf_ringbuf_reserve(&batches, sizeof(*b), 0);
	if (!b)
		return lose(number, what, n);
	bytes = n * (what == MXBPF_AGENT_GPU ? sizeof(b->gpu[0]) : sizeof(b->calls[0])) + MXBPF_AGENT_BATCH_HEAD;
	if (bytes > sizeof(*b) || bpf_probe_read_user(b, bytes, from)) {
		bpf_ringbuf_discard(b, BPF_RB_NO_WAKEUP);
		return lose(number, what, n);
	}
	b->ncalls = n; /* another thread may have changed them since */
	b->what = what;
	b->process = number;
	b->our_tid = ids.pid;
	bpf_ringbuf_submit(b, BPF_RB_NO_WAKEUP);
	return 0;
}

/* By the number of the process: when it first removed all callbacks, and the agent's with them; 0: not yet. */
__u64 cleared_ns[MXBPF_AGENT_PROCESSES];

SEC("uprobe") int on_clear(struct pt_regs *ctx)
{
	struct bpf_pidns_info ids = thread_ids();
	__u32 number = number_of(ctx, &ids);

	own_stack(ctx);
	if (number < MXBPF_AGENT_PROCESSES && !cleared_ns[number])
		cleared_ns[number] = bpf_ktime_get_ns();
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
