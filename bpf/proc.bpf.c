// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/* The life of threads: a slot goes back when its thread ends or becomes another program. */
#include "common.bpf.h"
#include "team.bpf.h"

/* Nothing will close the top frames any more; FRAMES_STEP of them. */
__noinline int frames_abandon_step(struct mxbpf_thread *t, __u64 now)
{
	struct mxbpf_frame *f;
	int i;

	t = frames_of(t);
	for (i = 0; t && i < FRAMES_STEP; i++) {
		f = frame_top(t);
		if (!f)
			break;
		if (f->end != MXBPF_END_PAIR) {
			frame_drop(t, now);
			continue;
		}
		if (f->twin.dur_ns) /* it ended before */
			twin_emit(t, f);
		t->counts[MXBPF_COUNT_UNMATCHED]++;
		frame_off(t, f);
	}
	return 0;
}

static __always_inline int slot_give_back(void)
{
	struct mxbpf_thread *t;
	__u32 *stored, slot, i;

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
	for (i = 0; i < FRAMES_STEPS && t->depth; i++)
		frames_abandon_step(t, t->raised_ns);
	team_gone(slot);
	t->depth = 0;
	slots_keep(t, 1);
	t->slot = 0;
	bpf_map_push_elem(&free_slots, &slot, BPF_ANY);
	return 0;
}

SEC("?raw_tp/sched_process_exit") int on_thread_exit(void *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct bpf_pidns_info ids = thread_ids();

	slot_give_back();
	counters_end();
	if (!BPF_CORE_READ(task, signal, live.counter)) /* the last one: room for another process at once */
		bpf_map_delete_elem(&targets, &ids.tgid);
	return 0;
}

/* The process is none that is looked at until user space says where things lie in the program that it is now. */
SEC("?raw_tp/sched_process_exec") int on_thread_exec(void *ctx)
{
	struct bpf_pidns_info ids = thread_ids();

	slot_give_back();
	counters_end();
	bpf_map_delete_elem(&targets, &ids.tgid);
	if (cfg_sched)
		sched_forget();
	return 0;
}
