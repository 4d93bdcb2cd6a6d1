// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/*
 * --sched: when a thread of a target gets a CPU again, one record says how long it was off the CPU and why. Each
 * context switch on the machine pays for a check of its two threads and for one entry in the list of the CPU's last
 * switches. This list says which threads ran while another one waited, although nobody knows in advance on which
 * CPU it will run.
 *
 * The programs run with the run queue's lock held: they wake nobody, allocate no memory and do not wait.
 */
#include "common.bpf.h"
#include <bpf/bpf_core_read.h>

#define TASK_INTERRUPTIBLE   0x1
#define TASK_UNINTERRUPTIBLE 0x2
#define TASK_STOPPED	     0xc /* __TASK_STOPPED | __TASK_TRACED */
#define TASK_DEAD	     0x80

static __always_inline struct mxbpf_sched_cpu *sched_cpu(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&sched_cpus, &zero);
}

static __always_inline void comm_copy(char to[16], struct task_struct *task)
{
	((__u64 *)to)[0] = *(__u64 *)&task->comm[0];
	((__u64 *)to)[1] = *(__u64 *)&task->comm[8];
}

/*
 * Appends the thread that leaves the CPU to the CPU's list. It extends the last entry if that has the same process
 * and name and ended when this thread began.
 */
static __always_inline void cpu_keep(struct mxbpf_sched_cpu *c, struct task_struct *task, __u32 tid, __u32 tgid,
				     __u64 now)
{
	struct mxbpf_sched_slice *last = &c->kept[(c->nkept - 1) & (MXBPF_SCHED_KEPT - 1)], *s;
	char comm[16];

	comm_copy(comm, task);
	if (last->tgid == tgid && last->to_ns == c->since_ns && *(__u64 *)last->comm == *(__u64 *)comm) {
		last->to_ns = now;
		return;
	}
	s = &c->kept[c->nkept++ & (MXBPF_SCHED_KEPT - 1)];
	s->from_ns = c->since_ns;
	s->to_ns = now;
	s->tid = tid;
	s->tgid = tgid;
	__builtin_memcpy(s->comm, comm, sizeof(comm));
}

/* Copies the list of a CPU into its record, newest entry first, back to from_ns. Returns the number of entries. */
__noinline int cpu_slices(struct mxbpf_sched_cpu *c, __u64 from_ns)
{
	struct mxbpf_sched_slice *s, *to;
	__u32 i;

	if (!c)
		return 0;
	to = ((struct mxbpf_sched *)c->rec)->slices;
	for (i = 0; i < MXBPF_SCHED_SLICES_MAX; i++) {
		s = &c->kept[(c->nkept - 1 - i) & (MXBPF_SCHED_KEPT - 1)];
		if (s->to_ns <= from_ns)
			break;
		to[i] = *s;
		if (s->from_ns < from_ns)
			to[i].from_ns = from_ns;
	}
	return i;
}

static __always_inline void sched_send(struct mxbpf_sched_cpu *c, __u32 nslices)
{
	struct mxbpf_sched *r = (struct mxbpf_sched *)c->rec;

	asm volatile("%0 &= %1"
		     : "+r"(nslices)
		     : "i"(MXBPF_SCHED_SLICES_MAX)); /* does not change the value, but tells the verifier its bound */
	r->nslices = nslices;
	if (nslices == MXBPF_SCHED_SLICES_MAX && r->slices[MXBPF_SCHED_SLICES_MAX - 1].from_ns > r->woken_ns)
		r->flags |= MXBPF_SCHED_MORE;
	r->h.kind = MXBPF_SCHED;
	r->h.size = sizeof(*r) + nslices * sizeof(struct mxbpf_sched_slice);
	c->counts[MXBPF_COUNT_ATTEMPTED]++;
	if (bpf_ringbuf_output(&switches, r, sizeof(*r) + nslices * sizeof(struct mxbpf_sched_slice), BPF_RB_NO_WAKEUP))
		c->counts[MXBPF_COUNT_DROPPED]++;
}

static __always_inline void sched_fill(struct mxbpf_sched *r, struct mxbpf_sched_thread *t)
{
	r->h.tgid = t->tgid;
	r->h.ts_ns = t->left_ns;
	r->ran_ns = t->ran_ns;
	r->woken_ns = r->back_ns = t->left_ns;
	r->span_start_ns = t->span_start_ns;
	r->span_name_id = t->span_name_id;
	r->tid = t->tid;
	r->syscall = t->syscall;
	r->left_cpu = r->back_cpu = t->cpu;
	r->state = t->state;
	r->span_cls = t->span_cls;
	r->flags = t->flags | (t->between ? MXBPF_SCHED_BETWEEN : 0);
	r->by_tid = t->taker_tid;
	__builtin_memcpy(r->by_comm, t->taker_comm, sizeof(r->by_comm));
}

/* Fills in the wake-up that ended a sleep. It may have come before the thread had left the CPU. */
static __always_inline void sched_fill_waking(struct mxbpf_sched *r, struct mxbpf_sched_thread *t, __u64 now)
{
	r->woken_ns = now;
	if (!t->woken_ns) {
		r->flags |= MXBPF_SCHED_NO_WAKER;
		return;
	}
	r->woken_ns = t->woken_ns > t->left_ns ? t->woken_ns : t->left_ns;
	r->flags |= t->waker_flags;
	r->by_tid = t->waker_tid;
	__builtin_memcpy(r->by_comm, t->waker_comm, sizeof(r->by_comm));
}

/* Notes the system call and the innermost open span that the thread is in. */
static __always_inline void sched_where(struct mxbpf_sched_thread *t, struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct mxbpf_thread *th = 0;
	struct mxbpf_frame *f = 0;
	__s64 nr = regs->orig_ax;
	__u32 slot = t->slot;

	t->syscall = nr < 0 ? -1 : nr;
	t->span_start_ns = t->span_name_id = 0;
	t->span_cls = MXBPF_CLASS_NONE;
	if (cfg_spans[0] && slot)
		th = bpf_map_lookup_elem(&threads, &slot);
	t->between = between_slices(t->tgid);
	if (th && th->tid == t->tid && !t->between)
		f = frame_top(th);
	if (!f || f->start_ns < active_since_ns)
		return;
	t->span_start_ns = f->start_ns;
	t->span_name_id = f->name_id;
	t->span_cls = f->cls;
}

/* The running thread, which belongs to a target, leaves its CPU. */
static __always_inline void sched_leave(struct mxbpf_sched_thread *t, struct mxbpf_sched_cpu *c,
					struct task_struct *task, bool preempted, struct task_struct *next,
					struct mxbpf_sched_thread *taker, __u32 next_tid, __u64 now)
{
	__u32 state = task->__state;

	t->left_ns = now;
	t->ran_ns = now - c->since_ns;
	t->cpu = bpf_get_smp_processor_id();
	t->flags = 0;
	t->taker_tid = 0;
	t->taker_comm[0] = 0;
	sched_where(t, task);
	if (state & TASK_DEAD) {
		sched_fill((struct mxbpf_sched *)c->rec, t);
		((struct mxbpf_sched *)c->rec)->flags = MXBPF_SCHED_LAST;
		sched_send(c, 0);
		t->id = MXBPF_SCHED_GONE;
		return;
	}
	if (preempted || !state) {
		t->state = MXBPF_SCHED_RUNNABLE;
		t->taker_tid = taker ? taker->tid : next_tid;
		t->flags = taker ? MXBPF_SCHED_BY_OURS : 0;
		bpf_core_read(t->taker_comm, sizeof(t->taker_comm), &next->comm);
		return;
	}
	t->state = state & TASK_UNINTERRUPTIBLE ? MXBPF_SCHED_DISK
		   : state & TASK_STOPPED	? MXBPF_SCHED_STOPPED
						: MXBPF_SCHED_SLEEPING;
	t->flags = BPF_CORE_READ_BITFIELD(task, in_iowait) ? MXBPF_SCHED_IOWAIT : 0;
}

/* Sends the record of a thread that gets this CPU at `now`. */
static __noinline int sched_return(struct mxbpf_sched_thread *t, struct mxbpf_sched_cpu *c, __u64 now)
{
	struct mxbpf_sched *r = (struct mxbpf_sched *)c->rec;

	t->back_ns = now;
	if (!t->left_ns)
		return 0;
	if (t->left_ns < active_since_ns)
		t->left_ns = active_since_ns;
	sched_fill(r, t);
	if (t->state != MXBPF_SCHED_RUNNABLE)
		sched_fill_waking(r, t, now);
	r->back_ns = now;
	r->back_cpu = t->cpu = bpf_get_smp_processor_id();
	t->left_ns = 0;
	sched_send(c, cpu_slices(c, r->woken_ns));
	return 0;
}

/*
 * Handles a thread that leaves a CPU without having been seen to get it. The kernel runs no BPF program for some
 * threads (seen with process 1 in a sandbox), and such a thread has left the CPU to this one. This thread got the
 * CPU after the last switch seen here, so the time of that switch is used. The unseen thread's time on CPU then
 * counts as this thread's, and the record is counted as unmatched.
 */
static __always_inline void sched_unseen_return(struct mxbpf_sched_thread *t, struct mxbpf_sched_cpu *c)
{
	__u64 at = c->since_ns;

	if (at < t->left_ns)
		at = t->left_ns;
	if (t->state != MXBPF_SCHED_RUNNABLE && at < t->woken_ns)
		at = t->woken_ns;
	c->counts[MXBPF_COUNT_UNMATCHED]++;
	sched_return(t, c, at);
}

/*
 * Adds the running thread if it belongs to a target. It has hit no probe yet, and it did not exist when the window
 * began. Returns -1 if the table is full.
 */
static __noinline int sched_look(void)
{
	struct bpf_pidns_info ids = thread_ids();

	if (!target_of(ids.tgid))
		return 0;
	return sched_add(ids.tgid, ids.pid, slot_number()) - 1;
}

SEC("?raw_tp/sched_switch") int on_switch(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *next = (void *)ctx->args[2], *task;
	struct mxbpf_sched_thread *t, *n = 0;
	__u64 since = active_since_ns, now;
	struct mxbpf_sched_cpu *c = sched_cpu();
	__u32 tid, tgid, next_tid;

	if (!since || !c)
		return 0;
	now = bpf_ktime_get_ns();
	if (c->since_ns < since)
		c->since_ns = since;
	task = bpf_get_current_task_btf();
	tid = task->pid;
	tgid = task->tgid;
	next_tid = BPF_CORE_READ(next, pid);
	if (next_tid) /* 0: the idle thread */
		n = sched_thread(next_tid);
	if (tid) {
		t = sched_thread(tid);
		if (!t && sched_processes >> (tgid & 63) & 1) {
			if (sched_look() < 0) {
				c->counts[MXBPF_COUNT_ATTEMPTED]++;
				c->counts[MXBPF_COUNT_DROPPED]++;
			}
			t = sched_thread(tid);
		}
		if (t) {
			tid = t->tid;
			tgid = t->tgid;
			if (t->left_ns)
				sched_unseen_return(t, c);
			sched_leave(t, c, task, ctx->args[0], next, n, next_tid, now);
		}
		cpu_keep(c, task, tid, tgid, now);
	}
	if (n)
		sched_return(n, c, now);
	c->since_ns = now;
	return 0;
}

/*
 * Notes who wakes a thread. The tracepoint sched_wakeup is no use here: for a thread on another CPU it runs on that
 * CPU, where the waker is not known.
 */
SEC("?raw_tp/sched_waking") int on_waking(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *p = (void *)ctx->args[0], *task;
	struct mxbpf_sched_thread *t, *by;
	struct pt_regs *regs;
	__u32 tid;

	if (!active_since_ns)
		return 0;
	t = sched_thread(BPF_CORE_READ(p, pid));
	if (!t)
		return 0;
	task = bpf_get_current_task_btf();
	tid = task->pid;
	by = sched_thread(tid);
	t->waker_tid = by ? by->tid : tid;
	t->waker_flags = by ? MXBPF_SCHED_BY_OURS : 0;
	comm_copy(t->waker_comm, task);
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	/* Outside of system calls, only interrupts, kernel threads and exiting threads wake others. */
	if (!tid || (!(task->flags & (PF_KTHREAD | PF_EXITING)) && (__s64)regs->orig_ax < 0))
		t->waker_flags |= MXBPF_SCHED_BY_IRQ;
	t->woken_ns = bpf_ktime_get_ns();
	return 0;
}
