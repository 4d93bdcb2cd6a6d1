// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * Events of watched processes that change where probes belong: fork, exec, exit, and new code mapped by the loader.
 * A process that mxbpf launched is stopped at such an event until user space has attached its probes, so nothing is
 * missed. Other processes are not stopped.
 */
#include "mxbpf_watch.h"
#include "ids.bpf.h"
#include "own_stack.bpf.h"
#include "targets.bpf.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define SIGSTOP 19

/*
 * Minimum growth of mapped code, in pages, that is reported. A library with a runtime has megabytes of code. A
 * smaller library is examined together with the next larger one.
 */
const volatile __u64 cfg_code_pages;

/* User space clears this before it reads the last event, so that no process is stopped without being continued. */
volatile __u32 watching = 1;

/*
 * Set while the probes of all targets are in shared links. A child process is then a target from its first
 * instruction on.
 */
volatile __u32 covering;

/* Set while the session selects processes by name or control group, so each new program may be selected. */
volatile __u32 telling_all;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MXBPF_WATCHED_MAX); /* user space sets it */
	__type(key, __u32);
	__type(value, struct mxbpf_watched);
} watched SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, MXBPF_SIGHTINGS_BYTES);
} sightings SEC(".maps");

/* Child processes and events lost because a map or the ring was full. */
__u64 missed;

static __always_inline int tell(__u32 kind, __u32 tgid, __u32 parent, __u32 stop, __u32 covered)
{
	struct mxbpf_sighting *s = bpf_ringbuf_reserve(&sightings, sizeof(*s), 0);

	if (!s) {
		__sync_fetch_and_add(&missed, 1);
		return 0;
	}
	s->ts_ns = bpf_ktime_get_ns();
	s->kind = kind;
	s->tgid = tgid;
	s->parent = parent;
	s->stopped = stop && !bpf_send_signal(SIGSTOP);
	s->covered = covered;
	s->pad = 0;
	bpf_ringbuf_submit(s, BPF_RB_FORCE_WAKEUP);
	return 0;
}

/*
 * Makes a child process a target if its parent is one. The child has a copy of the parent's memory, so all
 * libraries are at the same addresses. Returns true if the child is a target now.
 */
static __always_inline bool cover(__u32 child, __u32 parent)
{
	struct mxbpf_target *of_parent = covering ? bpf_map_lookup_elem(&targets, &parent) : 0, target;

	if (!of_parent)
		return false;
	target = *of_parent;
	target.own = 0;
	return !bpf_map_update_elem(&targets, &child, &target, BPF_ANY);
}

SEC("raw_tp/sched_process_fork") int on_fork(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *parent = (void *)ctx->args[0], *child = (void *)ctx->args[1];
	struct mxbpf_watched *p, w = {};
	struct bpf_pidns_info ids;
	__u32 tgid;

	if (!watching || BPF_CORE_READ(parent, tgid) == BPF_CORE_READ(child, tgid))
		return 0;
	ids = thread_ids();
	p = bpf_map_lookup_elem(&watched, &ids.tgid);
	tgid = task_number(child);
	if (!p || !tgid)
		return 0;
	w = *p;
	w.execs = 0;
	if (bpf_map_update_elem(&watched, &tgid, &w, BPF_ANY)) {
		__sync_fetch_and_add(&missed, 1);
		return 0;
	}
	/* After vfork() the child uses the parent's memory until it calls exec. */
	if (BPF_CORE_READ(parent, mm) == BPF_CORE_READ(child, mm))
		return 0;
	return tell(MXBPF_SIGHT_FORK, tgid, ids.tgid, 0, cover(tgid, ids.tgid));
}

SEC("raw_tp/sched_process_exec") int on_exec(void *ctx)
{
	struct bpf_pidns_info ids = thread_ids();
	struct mxbpf_watched *w = bpf_map_lookup_elem(&watched, &ids.tgid);

	if (!watching || (!w && !telling_all))
		return 0;
	if (!w)
		return ids.tgid ? tell(MXBPF_SIGHT_NEW, ids.tgid, 0, 0, 0) : 0;
	w->code_pages = 0;
	w->any = 0;
	w->execs++;
	return tell(MXBPF_SIGHT_EXEC, ids.tgid, 0, w->stop, 0);
}

/*
 * Probe in the loader's debugger hook. The loader calls it before and after it maps or unmaps a library, and before
 * it runs the library's code.
 */
SEC("uprobe") int on_loader(struct pt_regs *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct bpf_pidns_info ids = thread_ids();
	struct mxbpf_watched *w = bpf_map_lookup_elem(&watched, &ids.tgid);
	__u64 pages = BPF_CORE_READ(task, mm, exec_vm);

	own_stack(ctx);
	if (!watching || !w)
		return 0;
	if (pages < w->code_pages + (w->any ? 1 : cfg_code_pages)) {
		if (pages < w->code_pages)
			w->code_pages = pages;
		return 0;
	}
	w->code_pages = pages;
	return tell(MXBPF_SIGHT_MAPPED, ids.tgid, 0, w->stop, 0);
}

SEC("raw_tp/sched_process_exit") int on_exit(void *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct bpf_pidns_info ids;

	if (BPF_CORE_READ(task, signal, live.counter))
		return 0;
	ids = thread_ids();
	if (bpf_map_delete_elem(&watched, &ids.tgid))
		return 0;
	return tell(MXBPF_SIGHT_EXIT, ids.tgid, 0, 0, 0);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
