/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * The account of a span: where its thread was, by the kernel's own fields of it. No tracepoint, so that nobody pays but
 * the span. While a thread runs, the kernel adds the time since exec_start to sum_exec_runtime now and then, and moves
 * exec_start: their difference stays the same. So of two moments at which it runs, the change of that difference and
 * the time gone by are its time on a CPU.
 *
 * exec_start is on a clock of its CPU (clock_task) that stands still while an interrupt is served or the hypervisor has
 * taken the CPU. How far that clock lies behind the other one (clock) is what was taken.
 */
#ifndef ACCOUNT_BPF_H
#define ACCOUNT_BPF_H

#include "common.bpf.h"
#include <bpf/bpf_core_read.h>

/* Only kernels with groups of tasks lead from a task to the clocks of its CPU. */
static __always_inline bool account_knows_taken(struct task_struct *p)
{
	return bpf_core_field_exists(p->se.cfs_rq) && bpf_core_field_exists(p->se.cfs_rq->rq);
}

/*
 * Returns the time that was taken of this CPU since boot, as of the kernel's last update of its clocks. This is a
 * global function because the verifier checks such a function once per program. For each pointer that it sees followed,
 * it searches all types of the kernel.
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

/* by_key: f may end on another thread. */
static __always_inline void account_open(struct mxbpf_frame *f, bool by_key)
{
	struct task_struct *p;

	if (!cfg_account)
		return;
	if (by_key)
		__builtin_memset(&f->twin.account, 0, sizeof(f->twin.account));
	p = bpf_get_current_task_btf();
	/* User space has set cfg_account where they exist; where not, nothing of this is left. */
	if (!bpf_core_field_exists(p->sched_info.run_delay))
		return;
	f->flags |= MXBPF_SPAN_ACCOUNT;
	f->cpu = bpf_get_smp_processor_id();
	account_note(&f->began, p);
}

/* What can be true of what was measured. */
static __always_inline __s64 account_within(__s64 v, __s64 high)
{
	return v > high ? high : v < 0 ? 0 : v;
}

/*
 * Estimates how much of the time that was taken of the CPU was taken from the thread: the same share that the thread
 * had of the time that was not taken.
 */
static __always_inline __u64 account_from_it(__u64 taken_ns, __u64 on_cpu_ns, __u64 dur_ns)
{
	const __u64 other_us = (dur_ns - taken_ns) / 1000;

	if (taken_ns >= dur_ns || !other_us)
		return 0;
	return taken_ns / 1000 * (on_cpu_ns / 1000) / other_us * 1000;
}

/* Time on a CPU of a thread that blocked. */
static __always_inline __s64 account_on_cpu(const struct mxbpf_account *a, const struct mxbpf_account_start *s,
					    struct task_struct *p, __s64 dur_ns)
{
	__u64 taken = account_taken();
	__s64 on_cpu = (__s64)(p->se.sum_exec_runtime - p->se.exec_start - taken) - s->ran_ns + dur_ns;
	__s64 counted = p->se.sum_exec_runtime - s->sum_exec_ns; /* as old as the last tick or switch */

	if (!(a->flags & MXBPF_ACCOUNT_MIGRATED)) {
		on_cpu = account_within(on_cpu, dur_ns);
		return on_cpu + account_from_it(taken - s->taken_ns, on_cpu, dur_ns);
	}
	/* The clocks of two CPUs seldom differ by more than what was taken of each. */
	if (!account_knows_taken(p) || on_cpu < counted - (__s64)MXBPF_ACCOUNT_SLACK_NS ||
	    on_cpu > counted + (__s64)MXBPF_ACCOUNT_SLACK_NS)
		return counted;
	return on_cpu;
}

/* Of a thread that was off its CPU for some of dur_ns. */
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

/* Of the running thread, since f opened. false: it was on its CPU all the time, without a fault. */
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

/* f, which ends by key, leaves its thread at now: that side of its account, into the map's copy of it. */
static __always_inline void account_keep(struct mxbpf_frame *open, const struct mxbpf_frame *f, __u64 now)
{
	struct mxbpf_account *a = &open->twin.account;

	if (!cfg_account)
		return;
	if (!account_take(a, f, now - f->start_ns))
		a->on_cpu_ns = now - f->start_ns;
	a->flags |= MXBPF_ACCOUNT_PART;
}

/* Into s, that ends now, the account of f. */
static __always_inline void account_close(struct mxbpf_span *s, const struct mxbpf_frame *f)
{
	if (!(s->flags & MXBPF_SPAN_ASYNC)) {
		if (account_take(&s->account, f, s->dur_ns))
			s->h.size = MXBPF_SPAN_BYTES_ACCOUNT;
		return;
	}
	s->account = f->twin.account;
	/* Its own thread may have been seen to leave it only after another one had ended it. */
	s->account.on_cpu_ns = account_within(s->account.on_cpu_ns, s->dur_ns);
	s->account.runq_ns = account_within(s->account.runq_ns, s->dur_ns - s->account.on_cpu_ns);
	s->account.blocked_ns =
		account_within(s->account.blocked_ns, s->dur_ns - s->account.on_cpu_ns - s->account.runq_ns);
	s->account.end_cpu = bpf_get_smp_processor_id();
	s->account.flags |= MXBPF_ACCOUNT_PART;
	s->h.size = MXBPF_SPAN_BYTES_ACCOUNT;
}

/* What was nested in f, as the part of the account of its span. */
static __always_inline bool account_has_nested(const struct mxbpf_frame *f)
{
	const struct mxbpf_account_nested *n = &f->nested;

	return n->nvcsw | n->nivcsw | n->minflt | n->majflt;
}

/* The span is directly nested in f. Most have no account: they were on one CPU all the time. */
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

/* It is no span after all: what was nested in it is nested in f. */
static __always_inline void account_unnest(struct mxbpf_frame *f, const struct mxbpf_span *s)
{
	if (!cfg_account || s->h.size < MXBPF_SPAN_BYTES_ACCOUNT)
		return;
	if (s->h.size == sizeof(*s))
		f->nested = s->nested;
	else
		__builtin_memset(&f->nested, 0, sizeof(f->nested));
}

#endif
