/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * --sched: the threads of the target processes, as the scheduler's tracepoints identify them, and a scratch area
 * per CPU.
 */
#ifndef SCHED_BPF_H
#define SCHED_BPF_H

#include "mxbpf_sched.h"
#include "ids.bpf.h"

const volatile __u8 cfg_sched; /* --sched was given */

/* Scheduling records have a ring of their own, so that bursts of spans and of switches do not evict each other. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} switches SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct mxbpf_sched_thread);
} sched_threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct mxbpf_sched_cpu);
} sched_cpus SEC(".maps");

/* One bit per process in the table, at its id modulo 64. A clear bit rejects most other processes at once. */
__u64 sched_processes;

static __always_inline struct mxbpf_sched_thread *sched_thread_at(__u32 i)
{
	i &= MXBPF_SCHED_THREADS_MAX - 1;
	return bpf_map_lookup_elem(&sched_threads, &i);
}

static __always_inline struct mxbpf_sched_thread *sched_thread(__u32 id)
{
	struct mxbpf_sched_thread *t;
	int i;

#pragma unroll
	for (i = 0; i < MXBPF_SCHED_TRIES; i++) {
		t = sched_thread_at(id + i);
		if (!t || t->id == MXBPF_SCHED_FREE)
			return 0;
		if (t->id == id)
			return t;
	}
	return 0;
}

/* Adds the running thread, which belongs to a target. Returns 0 if the table is full. */
static __noinline int sched_add(__u32 tgid, __u32 tid, __u32 slot)
{
	__u64 ids = bpf_get_current_pid_tgid();
	__u32 id = ids, was;
	struct mxbpf_sched_thread *t = sched_thread(id);
	int i;

	__sync_fetch_and_or(&sched_processes, 1ull << (ids >> 32 & 63));
	for (i = 0; i < MXBPF_SCHED_TRIES && !t; i++) {
		t = sched_thread_at(id + i);
		if (!t)
			return 0;
		was = t->id;
		if ((was != MXBPF_SCHED_FREE && was != MXBPF_SCHED_GONE) ||
		    __sync_val_compare_and_swap(&t->id, was, id) != was) {
			t = 0;
			continue;
		}
		t->left_ns = t->back_ns = t->woken_ns = 0;
		t->tgid = tgid;
		t->tid = tid;
	}
	if (t)
		t->slot = slot;
	return !!t;
}

/* Removes the running thread after its process called exec. */
static __always_inline void sched_forget(void)
{
	struct mxbpf_sched_thread *t = sched_thread(bpf_get_current_pid_tgid());

	if (t)
		t->id = MXBPF_SCHED_GONE;
}

#endif
