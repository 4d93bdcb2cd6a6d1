// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/* The life of threads: a slot goes back when its thread ends or becomes another program. */
#include "common.bpf.h"
#include "omp.bpf.h"

/* Nothing will close the top frame any more. 0: there is none. */
__noinline int frame_abandon(struct mxbpf_thread *t, __u64 now)
{
	struct mxbpf_frame *f = t ? frame_top(t) : 0;

	if (!f)
		return 0;
	if (f->end != MXBPF_END_PAIR) {
		frame_drop(t, now);
		return 1;
	}
	if (f->twin.dur_ns) /* it ended before */
		twin_emit(t, f);
	t->counts[MXBPF_COUNT_UNMATCHED]++;
	frame_off(t, f);
	return 1;
}

/* All of them, FRAMES_STEP at a time. 0: no frame is left. */
__noinline int frames_abandon(struct mxbpf_thread *t, __u64 now)
{
	int i;

	for (i = 0; i < FRAMES_STEP; i++)
		if (!frame_abandon(t, now))
			return 0;
	return 1;
}

static __always_inline int slot_give_back(void)
{
	struct mxbpf_thread *t;
	__u32 *stored, slot;

	stored = bpf_task_storage_get(&thread_slots, bpf_get_current_task_btf(), 0, 0);
	if (!stored || !*stored)
		return 0;
	slot = *stored;
	*stored = 0;
	t = bpf_map_lookup_elem(&threads, &slot);
	if (!t)
		return 0;
	/* What ends by key another thread may still end. */
	t->raised_ns = bpf_ktime_get_ns();
	if (cfg_spans[0])
		FRAMES_ALL(frames_abandon(t, t->raised_ns));
	else
		t->counts[MXBPF_COUNT_UNMATCHED] += t->depth;
	team_gone(slot);
	t->depth = 0;
	slots_keep(t, 1);
	t->slot = 0;
	bpf_map_push_elem(&free_slots, &slot, BPF_ANY);
	return 0;
}

/*
 * A thread ends, or its process becomes another program. One program for both tracepoints: it is large, and the
 * verifier's time is that until the first event. When the last thread has ended there is room for another process at
 * once. After exec the process is none that is looked at until user space says where things lie in the program that it
 * is now.
 */
SEC("?raw_tp/sched_process_exit") int on_thread_gone(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	bool exits = task->flags & PF_EXITING;
	struct bpf_pidns_info ids = thread_ids();

	slot_give_back();
	counters_end();
	if (cfg_sched && !exits)
		sched_forget();
	if (!exits || !BPF_CORE_READ(task, signal, live.counter))
		bpf_map_delete_elem(&targets, &ids.tgid);
	return 0;
}
