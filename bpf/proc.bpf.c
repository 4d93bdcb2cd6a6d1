// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/* The end of threads. A thread gives its slot back when it ends or calls exec. */
#include "common.bpf.h"
#include "feature/omp.bpf.h"

/* Closes the top frame of a thread that is gone. Returns 0 if there is none. */
__noinline int frame_abandon(struct mxbpf_thread *t, __u64 now)
{
	struct mxbpf_frame *f = t ? frame_top(t) : 0;

	if (!f)
		return 0;
	if (f->end != MXBPF_END_PAIR) {
		frame_drop(t, now);
		return 1;
	}
	if (f->twin.dur_ns) /* the child has ended */
		twin_emit(t, f);
	t->counts[MXBPF_COUNT_UNMATCHED]++;
	frame_off(t, f);
	return 1;
}

/* Closes at most FRAMES_STEP frames. Returns 0 if none is left. */
__noinline int frames_abandon(struct mxbpf_thread *t, __u64 now)
{
	int i;

	for (i = 0; i < FRAMES_STEP; i++)
		if (!frame_abandon(t, now))
			return 0;
	return 1;
}

/*
 * Gives back the slot of the running thread. A thread that calls exec keeps its slot if the storage does not have it:
 * the kernel may only refuse to say. Such a slot begins anew, because no thread has the number 0.
 */
static __always_inline int slot_give_back(bool exits)
{
	__u32 slot = slot_number(), *stored;
	__u64 task = bpf_get_current_task();
	struct mxbpf_thread *t;
	bool keeps;

	if (!slot)
		return 0;
	stored = bpf_task_storage_get(&thread_slots, bpf_get_current_task_btf(), 0, 0);
	keeps = !stored && !exits;
	if (stored)
		*stored = 0;
	if (!keeps)
		bpf_map_delete_elem(&slots_of_tasks, &task);
	t = bpf_map_lookup_elem(&threads, &slot);
	if (!t)
		return 0;
	/* A span that ends by key stays open: another thread may end it. */
	t->raised_ns = bpf_ktime_get_ns();
	if (cfg_spans[0])
		FRAMES_ALL(frames_abandon(t, t->raised_ns));
	else
		t->counts[MXBPF_COUNT_UNMATCHED] += t->depth;
	team_gone(slot);
	t->depth = 0;
	slots_keep(t, 1);
	t->slot = t->tid = 0;
	if (!keeps)
		bpf_map_push_elem(&free_slots, &slot, BPF_ANY);
	return 0;
}

/*
 * Runs when a thread ends or its process calls exec. Both tracepoints share one program, because it is large, and
 * its verification delays the first event. When the last thread has ended, another process can take the target's
 * place at once. After exec the process is no target until user space has located the libraries of the new program.
 */
SEC("?raw_tp/sched_process_exit") int on_thread_gone(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	bool exits = task->flags & PF_EXITING;
	struct bpf_pidns_info ids = thread_ids();

	slot_give_back(exits);
	counters_end();
	if (cfg_sched && !exits)
		sched_forget();
	if (!exits || !BPF_CORE_READ(task, signal, live.counter)) {
		bpf_map_delete_elem(&targets, &ids.tgid);
		bpf_map_delete_elem(&joining, &ids.tgid);
	}
	return 0;
}
