/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/* A parallel region of OpenMP's: what BPF sends of one, and the sum that user space makes of several. */
#ifndef MXBPF_OMP_H
#define MXBPF_OMP_H

#include "mxbpf_event.h"

/*
 * A parallel region, when it has ended, or the sum of those that spans of one name opened. Its master is the thread
 * that opened it, in the innermost span that was open there. Its threads were on their way (from the region's start
 * until they began), at work, or at the barrier at its end (from the end of their own work until the region's): late_ns
 * + work_ns + barrier_ns == threads_ns. On their way they waited for a CPU for late_runq_ns; of the work they were on
 * one for cpu_ns, waited for one for runq_ns, and were blocked for the rest. With MXBPF_TEAM_NESTED the master's own
 * time is in the region around it: it is none of the threads.
 */
struct mxbpf_team {
	struct mxbpf_rec h;  /* ts_ns: the region's start; 0 of a sum */
	__u64 regions;	     /* 1, or of how many it is the sum */
	__u64 name_id;	     /* of the span */
	__u64 span_start_ns; /* with tid and cls: which span; of a sum, and where none was open, 0 */
	__u64 dur_ns;
	__u64 threads_ns; /* threads * dur_ns */
	__u64 late_ns, work_ns, barrier_ns;
	__u64 late_runq_ns, cpu_ns, runq_ns;
	/*
	 * On a CPU without work: the master while it wakes its team and at the barrier, the others since they had ended
	 * their work before this, in whatever region that was: where they wait, they spin for a while before they
	 * sleep.
	 */
	__u64 spun_ns;
	__u32 tid;     /* of that span: the master's, or of who opened the region around it */
	__u32 threads; /* of a sum: the most */
	__u8 cls;      /* enum mxbpf_class; NONE where no span was open */
	__u8 flags;    /* enum mxbpf_team_flag */
	__u8 pad[6];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_team) == 128);

enum mxbpf_team_flag {
	MXBPF_TEAM_NESTED = 1 << 0,
	/* A thread changed its CPU at work: cpu_ns may be wrong by MXBPF_ACCOUNT_SLACK_NS. */
	MXBPF_TEAM_MIGRATED = 1 << 1,
};

#endif
