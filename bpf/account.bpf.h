/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * The account of a span: its time on CPU, its run-queue wait and its blocked time, computed from fields that the
 * kernel keeps in each task. No tracepoint is used, so only threads with spans pay.
 *
 * While a thread runs, the kernel now and then adds the time since exec_start to sum_exec_runtime and moves
 * exec_start forward. Their difference does not change by this. Between two moments at which the thread runs, its
 * time on CPU is therefore the elapsed time plus the change of that difference.
 *
 * exec_start is on the clock_task clock of its CPU. This clock stops while an interrupt is handled and while the
 * hypervisor has taken the CPU. The amount that clock_task lags behind the CPU's other clock is the time taken in
 * this way.
 */
#ifndef ACCOUNT_BPF_H
#define ACCOUNT_BPF_H

#include "common.bpf.h"
#include <bpf/bpf_core_read.h>

/* A task leads to the clocks of its CPU only in kernels with group scheduling (CONFIG_FAIR_GROUP_SCHED). */
static __always_inline bool account_knows_taken(struct task_struct *p)
{
	return bpf_core_field_exists(p->se.cfs_rq) && bpf_core_field_exists(p->se.cfs_rq->rq);
}

/*
 * Returns the time taken from this CPU since boot, in ns, at the kernel's last update of its clocks. This is a
 * global function because the verifier checks such a function once per program, and for each pointer that it
 * follows it searches all types of the kernel.
 */
__noinline __u64 account_taken(void)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct rq *rq;

	if (!account_knows_taken(p))
		return 0;
	rq = p->se.cfs_rq->rq;
	return rq->clock - rq->clock_task;
}

static __always_inline void account_note(struct mxbpf_account_start *s, struct task_struct *p)
{
	s->taken_ns = account_taken();
	s->ran_ns = p->se.sum_exec_runtime - p->se.exec_start - s->taken_ns;
	s->sum_exec_ns = p->se.sum_exec_runtime;
	s->run_delay_ns = p->sched_info.run_delay;
	s->nvcsw = p->nvcsw;
	s->nivcsw = p->nivcsw;
	s->minflt = p->min_flt;
	s->majflt = p->maj_flt;
}

/* Notes the start of frame f. If by_key is set, f may end on another thread. */
static __always_inline void account_open(struct mxbpf_frame *f, bool by_key)
{
	struct task_struct *p;

	if (!cfg_account)
		return;
	if (by_key)
		__builtin_memset(&f->twin.account, 0, sizeof(f->twin.account));
	p = bpf_get_current_task_btf();
	/* User space sets cfg_account only where this field exists. Elsewhere the verifier removes the rest. */
	if (!bpf_core_field_exists(p->sched_info.run_delay))
		return;
	f->flags |= MXBPF_SPAN_ACCOUNT;
	f->cpu = bpf_get_smp_processor_id();
	account_note(&f->began, p);
}

/* Clamps a measured time to 0..high, since clocks that are read at different moments can give values outside. */
static __always_inline __s64 account_within(__s64 v, __s64 high)
{
	return v > high ? high : v < 0 ? 0 : v;
}

/*
 * Estimates the part of the CPU's taken time that was taken from this thread. It is proportional to the thread's
 * share of the time that was not taken. Microseconds keep the product within 64 bits.
 */
static __always_inline __u64 account_from_it(__u64 taken_ns, __u64 on_cpu_ns, __u64 dur_ns)
{
	const __u64 other_us = (dur_ns - taken_ns) / 1000;

	if (taken_ns >= dur_ns || !other_us)
		return 0;
	return taken_ns / 1000 * (on_cpu_ns / 1000) / other_us * 1000;
}

/* Returns the time on CPU of a thread that blocked in a span of dur_ns. */
static __always_inline __s64 account_on_cpu(const struct mxbpf_account *a, const struct mxbpf_account_start *s,
					    struct task_struct *p, __s64 dur_ns)
{
	__u64 taken = account_taken();
	__s64 on_cpu = (__s64)(p->se.sum_exec_runtime - p->se.exec_start - taken) - s->ran_ns + dur_ns;
	__s64 counted = p->se.sum_exec_runtime - s->sum_exec_ns; /* as of the last tick or switch */

	if (!(a->flags & MXBPF_ACCOUNT_MIGRATED)) {
		on_cpu = account_within(on_cpu, dur_ns);
		return on_cpu + account_from_it(taken - s->taken_ns, on_cpu, dur_ns);
	}
	/*
	 * The clocks of two CPUs seldom differ by more than the time taken from each. If they do, use the kernel's
	 * sum.
	 */
	if (!account_knows_taken(p) || on_cpu < counted - (__s64)MXBPF_ACCOUNT_SLACK_NS ||
	    on_cpu > counted + (__s64)MXBPF_ACCOUNT_SLACK_NS)
		return counted;
	return on_cpu;
}

/* Splits dur_ns for a thread that was off its CPU for a part of it. */
static __always_inline void account_times(struct mxbpf_account *a, const struct mxbpf_account_start *s,
					  struct task_struct *p, __s64 dur_ns)
{
	__s64 runq = account_within(p->sched_info.run_delay - s->run_delay_ns, dur_ns), on_cpu = dur_ns;

	if (a->nvcsw)
		on_cpu = account_on_cpu(a, s, p, dur_ns);
	on_cpu = account_within(on_cpu, dur_ns - runq);
	a->on_cpu_ns = on_cpu;
	a->runq_ns = runq;
	a->blocked_ns = dur_ns - runq - on_cpu;
}

/*
 * Fills the account of the running thread since f opened. Returns false if the thread was on its CPU all the time,
 * without page faults.
 */
static __always_inline bool account_take(struct mxbpf_account *a, const struct mxbpf_frame *f, __u64 dur_ns)
{
	struct task_struct *p = bpf_get_current_task_btf();

	if (!bpf_core_field_exists(p->sched_info.run_delay))
		return false;
	a->nvcsw = (__u32)p->nvcsw - f->began.nvcsw;
	a->nivcsw = (__u32)p->nivcsw - f->began.nivcsw;
	a->minflt = (__u32)p->min_flt - f->began.minflt;
	a->majflt = (__u32)p->maj_flt - f->began.majflt;
	if (!(a->nvcsw | a->nivcsw | a->minflt | a->majflt))
		return false;
	a->end_cpu = bpf_get_smp_processor_id();
	a->flags = a->end_cpu != f->cpu ? MXBPF_ACCOUNT_MIGRATED : 0;
	a->on_cpu_ns = dur_ns;
	a->runq_ns = a->blocked_ns = 0;
	if (a->nvcsw | a->nivcsw)
		account_times(a, &f->began, p, dur_ns);
	return true;
}

/*
 * Stores the account of f up to `now` in the map's copy. The thread leaves f, which ends by key, perhaps on another
 * thread.
 */
static __always_inline void account_keep(struct mxbpf_frame *open, const struct mxbpf_frame *f, __u64 now)
{
	struct mxbpf_account *a = &open->twin.account;

	if (!cfg_account)
		return;
	if (!account_take(a, f, now - f->start_ns))
		a->on_cpu_ns = now - f->start_ns;
	a->flags |= MXBPF_ACCOUNT_PART;
}

/* Fills the account of span s, which ends now, from frame f. */
static __always_inline void account_close(struct mxbpf_span *s, const struct mxbpf_frame *f)
{
	if (!(s->flags & MXBPF_SPAN_ASYNC)) {
		if (account_take(&s->account, f, s->dur_ns))
			s->h.size = MXBPF_SPAN_BYTES_ACCOUNT;
		return;
	}
	s->account = f->twin.account;
	/* Another thread may have ended the span before its own thread was seen to leave it. */
	s->account.on_cpu_ns = account_within(s->account.on_cpu_ns, s->dur_ns);
	s->account.runq_ns = account_within(s->account.runq_ns, s->dur_ns - s->account.on_cpu_ns);
	s->account.blocked_ns =
		account_within(s->account.blocked_ns, s->dur_ns - s->account.on_cpu_ns - s->account.runq_ns);
	s->account.end_cpu = bpf_get_smp_processor_id();
	s->account.flags |= MXBPF_ACCOUNT_PART;
	s->h.size = MXBPF_SPAN_BYTES_ACCOUNT;
}

/* Returns true if spans nested in f were off CPU or had page faults. */
static __always_inline bool account_has_nested(const struct mxbpf_frame *f)
{
	const struct mxbpf_account_nested *n = &f->nested;

	return n->nvcsw | n->nivcsw | n->minflt | n->majflt;
}

/*
 * Adds the account of span s, which is directly nested in f. Most spans have none, because they stayed on one CPU.
 */
static __always_inline void account_nest(struct mxbpf_frame *f, const struct mxbpf_span *s)
{
	if (!cfg_account || s->h.size < MXBPF_SPAN_BYTES_ACCOUNT)
		return;
	f->nested.runq_ns += s->account.runq_ns;
	f->nested.blocked_ns += s->account.blocked_ns;
	f->nested.nvcsw += s->account.nvcsw;
	f->nested.nivcsw += s->account.nivcsw;
	f->nested.minflt += s->account.minflt;
	f->nested.majflt += s->account.majflt;
}

/* Adds the account of the thread from the start of f to the start of `inner`. */
static __always_inline void account_between(struct mxbpf_account_nested *to, const struct mxbpf_frame *f,
					    const struct mxbpf_frame *inner)
{
	const __s64 dur = inner->start_ns - f->start_ns;
	const __s64 runq = account_within(inner->began.run_delay_ns - f->began.run_delay_ns, dur);
	const __s64 on_cpu = account_within(inner->began.ran_ns - f->began.ran_ns + dur, dur - runq);

	to->runq_ns += runq;
	to->blocked_ns += dur - runq - on_cpu;
	to->nvcsw += inner->began.nvcsw - f->began.nvcsw;
	to->nivcsw += inner->began.nivcsw - f->began.nivcsw;
	to->minflt += inner->began.minflt - f->began.minflt;
	to->majflt += inner->began.majflt - f->began.majflt;
}

/* Undoes account_nest() for s, which proved to be the twin of f (the same call): what is nested in s is nested in f. */
static __always_inline void account_unnest(struct mxbpf_frame *f, const struct mxbpf_span *s)
{
	if (!cfg_account || s->h.size < MXBPF_SPAN_BYTES_ACCOUNT)
		return;
	if (s->h.size == MXBPF_SPAN_BYTES_WHOLE)
		f->nested = s->nested;
	else
		__builtin_memset(&f->nested, 0, sizeof(f->nested));
}

#endif
