// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * Copies a seccomp filter of a thread. ptrace() would do that only for a tracer that has CAP_SYS_ADMIN and no filter of
 * its own. The kernel keeps the text of filters if it was built with CONFIG_CHECKPOINT_RESTORE.
 */
#include "mxbpf_filters.h"
#include "ids.bpf.h"

/* User space sets these: the thread, and the number of its filter. The newest filter has number 0. */
volatile __u32 asked_tid, asked_filter;

/* The answer: its instructions, and their number. 0: there is no such filter. -1: there is, and it cannot be read. */
volatile __s32 ninsns;
__u64 insns[MXBPF_FILTER_INSNS_MAX];

static __always_inline int copy_text(struct seccomp_filter *filter)
{
	struct sock_fprog_kern *text = BPF_CORE_READ(filter, prog, orig_prog);
	__u32 n = BPF_CORE_READ(text, len);

	if (!text || !n || n > MXBPF_FILTER_INSNS_MAX)
		return -1;
	return bpf_probe_read_kernel(insns, n * sizeof(insns[0]), BPF_CORE_READ(text, filter)) ? -1 : (int)n;
}

SEC("iter/task") int copy_filter(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct seccomp_filter *filter;
	__u32 i;

	if (!task || task_number(task) != asked_tid)
		return 0;
	filter = BPF_CORE_READ(task, seccomp.filter);
	for (i = 0; i < asked_filter && i < MXBPF_FILTERS_MAX && filter; i++)
		filter = BPF_CORE_READ(filter, prev);
	ninsns = filter ? copy_text(filter) : 0;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
