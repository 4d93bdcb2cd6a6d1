// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * Samples page faults of threads with their Python stacks. An event per thread fires for one of so many faults, as the
 * kernel chooses for a rate. The program runs before the kernel handles the fault, without preemption.
 */
#include "mxbpf_faults.h"
#include "read/stack.bpf.h"

struct fault_room {
	struct {
		__u64 ts_ns, addr, weight;
		__u32 tgid, tid;
	} head; /* start of a struct mxbpf_fault, whose stack follows */
	struct stack_room python;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fault_room);
} fault_rooms SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 19);
} faults SEC(".maps");

/* Those that are watched: a number can be that of another process by now. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 96);
	__type(key, __u32);
	__type(value, __u8);
} fault_processes SEC(".maps");

SEC("perf_event") int on_fault(struct bpf_perf_event_data *ctx)
{
	struct bpf_pidns_info ids = thread_ids();
	struct fault_room *room;
	__u64 state, frame, n;
	__u32 zero = 0;

	room = bpf_map_lookup_elem(&fault_rooms, &zero);
	if (!room || !bpf_map_lookup_elem(&fault_processes, &ids.tgid) || !current_state(&state))
		return 0;
	frame = state_frame(&room->python, state);
	if (!frame)
		return 0;
	room->head.ts_ns = bpf_ktime_get_ns();
	room->head.addr = ctx->addr;
	room->head.weight = ctx->sample_period;
	room->head.tgid = ids.tgid;
	room->head.tid = ids.pid;
	room->python.read = 0;
	stack_walk(&room->python, frame, 0);
	n = room->python.stack.n;
	if (n && n <= MXBPF_STACK_FRAMES_MAX)
		bpf_ringbuf_output(&faults, room, sizeof(room->head) + 8 + n * sizeof(struct mxbpf_stack_frame),
				   BPF_RB_NO_WAKEUP);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
