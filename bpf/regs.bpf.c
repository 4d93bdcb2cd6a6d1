// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * Lists the saved user registers of each thread of a process, without stopping any thread. The registers of a
 * thread that is blocked in the kernel are current. The registers of a running thread are those of its last entry
 * into the kernel.
 */
#include "mxbpf_regs.h"
#include "ids.bpf.h"
#include <bpf/bpf_tracing.h>

const volatile __u32 cfg_tgid;

/* Since Linux 5.16 the state has a struct of its own, and since 6.16 it is behind the task. */
static __always_inline __u32 task_mxcsr(struct task_struct *task)
{
	struct fpu *fpu;

	if (!bpf_core_type_exists(struct fpstate))
		return 0;
	if (bpf_core_field_exists(task->thread.fpu))
		fpu = (void *)task + bpf_core_field_offset(task->thread.fpu);
	else
		fpu = (void *)task + bpf_core_type_size(struct task_struct);
	return BPF_CORE_READ(fpu, fpstate, regs.fxsave.mxcsr);
}

SEC("iter/task") int each_task(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct mxbpf_regs o = {};
	struct pt_regs r;
	void *at;

	if (!task || task_number(BPF_CORE_READ(task, group_leader)) != cfg_tgid)
		return 0;
	at = (void *)bpf_task_pt_regs(task);
	if (!at || bpf_probe_read_kernel(&r, sizeof(r), at))
		return 0;
	o.tid = task_number(task);
	o.mxcsr = task_mxcsr(task);
	o.fs_base = BPF_CORE_READ(task, thread.fsbase);
	o.r[0] = r.ax;
	o.r[1] = r.dx;
	o.r[2] = r.cx;
	o.r[3] = r.bx;
	o.r[4] = r.si;
	o.r[5] = r.di;
	o.r[6] = r.bp;
	o.r[7] = r.sp;
	o.r[8] = r.r8;
	o.r[9] = r.r9;
	o.r[10] = r.r10;
	o.r[11] = r.r11;
	o.r[12] = r.r12;
	o.r[13] = r.r13;
	o.r[14] = r.r14;
	o.r[15] = r.r15;
	o.r[16] = r.ip;
	bpf_seq_write(ctx->meta->seq, &o, sizeof(o));
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
