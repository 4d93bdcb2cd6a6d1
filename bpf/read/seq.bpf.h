/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/* Sequence numbers, which join a node of the backward pass to the operator that created it. */
#ifndef SEQ_BPF_H
#define SEQ_BPF_H

#include "common.bpf.h"

/*
 * Layout of thread-local storage in glibc. A thread has a vector (dtv) of pairs of words, one pair for each
 * library. The first pair is a generation count, and the word before it is the length of the vector.
 */
#define TLS_DTV_OFF	  8
#define TLS_DTV_PAIR	  16
#define TLS_NO_BLOCK_YET  (~0ull)
#define TLS_THREAD_NR_MAX 0xffff

/*
 * Returns the address of a thread-local variable of the running thread. Returns 0 if the thread has not used it
 * yet, so that its value is the initial one, zero. Returns a negative number if the address cannot be found.
 */
__noinline long tls_addr(struct mxbpf_thread *t, __u32 of_thread)
{
	__u32 tgid = t ? t->tgid : 0;
	struct mxbpf_target *target = bpf_map_lookup_elem(&targets, &tgid);
	__u64 var[2] = {}, dtv = 0, block = 0, got, add;

	if (!target)
		return -1;
	got = of_thread ? target->seq_thread.got : target->seq.got;
	add = of_thread ? target->seq_thread.add : target->seq.add;
	/* The loader sets the module id when it relocates the library. */
	if (bpf_probe_read_user(var, sizeof(var), (void *)got) || !var[0] ||
	    bpf_probe_read_user(&dtv, sizeof(dtv), (void *)(bpf_get_current_task_btf()->thread.fsbase + TLS_DTV_OFF)) ||
	    bpf_probe_read_user(&block, sizeof(block), (void *)(dtv - TLS_DTV_PAIR)))
		return -1;
	if (block < var[0]) /* the vector is older than the library */
		return 0;
	if (bpf_probe_read_user(&block, sizeof(block), (void *)(dtv + TLS_DTV_PAIR * var[0])))
		return -1;
	return block && block != TLS_NO_BLOCK_YET ? (long)(block + var[1] + add) : 0;
}

/* Reads the runtime's number of the running thread, if the thread has one by now. */
static __always_inline void seq_learn_thread(struct mxbpf_thread *t)
{
	__u64 nr = 0;
	long addr;

	if (!t->seq_thread_addr) {
		addr = tls_addr(t, 1);
		t->seq_thread_addr = addr > 0 ? addr : 0;
	}
	if (t->seq_thread_addr && !bpf_probe_read_user(&nr, sizeof(nr), (void *)t->seq_thread_addr) &&
	    nr <= TLS_THREAD_NR_MAX)
		t->seq_thread = nr;
}

/* Returns the next sequence number of the running thread, or a negative number if it cannot be read. */
static __always_inline __s64 seq_next(struct mxbpf_thread *t)
{
	__u64 nr = 0;
	long addr;

	if (!t->seq_addr) {
		addr = tls_addr(t, 0);
		if (addr <= 0)
			return addr;
		t->seq_addr = addr;
	}
	return bpf_probe_read_user(&nr, sizeof(nr), (void *)t->seq_addr) ? -1 : (__s64)nr;
}

/* Sets f->seq. The flag assumes that the operator will create a node; seq_close() corrects it. */
static __always_inline void seq_open(struct pt_regs *ctx, struct mxbpf_thread *t, struct mxbpf_frame *f,
				     const volatile struct mxbpf_row *row)
{
	__u64 thread;
	__s64 nr;

	if (row->seq.base != MXBPF_BASE_NONE) {
		t->fetch_failed = 0;
		nr = fetch(ctx, t, &row->seq);
		thread = fetch(ctx, t, &row->seq_thread);
		if (nr < 0 || t->fetch_failed) /* nodes that were not created by an operator */
			return;
	} else {
		nr = seq_next(t);
		thread = t->seq_thread;
	}
	if (nr < 0 || nr != (__s64)MXBPF_SEQ_NR(nr) || thread > TLS_THREAD_NR_MAX) {
		t->counts[MXBPF_COUNT_UNREADABLE]++;
		return;
	}
	f->seq = MXBPF_SEQ(thread, nr);
	if (row->seq.base == MXBPF_BASE_NONE || (row->span_flags & MXBPF_SPAN_BACKWARD))
		f->flags |= MXBPF_SPAN_SEQ;
}

/*
 * Clears the flag if the operator created no node. Nodes that were created between operators (by a Python Function
 * or a compiled graph) must not count as the last operator's. The thread's own number may be missing so far,
 * because it comes with the thread's first node.
 */
static __always_inline void seq_close(struct mxbpf_thread *t, struct mxbpf_frame *f, __u32 flags)
{
	if ((f->flags & (MXBPF_SPAN_SEQ | MXBPF_SPAN_BACKWARD)) != MXBPF_SPAN_SEQ)
		return;
	if ((flags & MXBPF_SPAN_UNWOUND) || seq_next(t) <= (__s64)MXBPF_SEQ_NR(f->seq))
		f->flags &= ~MXBPF_SPAN_SEQ;
	if (MXBPF_SEQ_THREAD(f->seq))
		return;
	if (!t->seq_thread)
		seq_learn_thread(t);
	f->seq |= MXBPF_SEQ(t->seq_thread, 0);
}

#endif
