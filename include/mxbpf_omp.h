/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/* OpenMP parallel regions: the record of BPF for one region, and the sum that user space makes of several. */
#ifndef MXBPF_OMP_H
#define MXBPF_OMP_H

#include "mxbpf_event.h"

/*
 * A parallel region that has ended, or the sum of the regions that spans of one name opened. The master is the
 * thread that opened the region, in its innermost open span. Each thread is first on its way (from the region's
 * start to the start of its work), then at work, then in the barrier (from the end of its work to the region's
 * end): late_ns + work_ns + barrier_ns == threads_ns. late_runq_ns is the run-queue wait on the way. Of the work,
 * cpu_ns is on CPU, runq_ns is run-queue wait, and the rest is blocked. With MXBPF_TEAM_NESTED, the master's time
 * belongs to the outer region, and the master is not among the threads.
 */
struct mxbpf_team {
	struct mxbpf_rec h;  /* ts_ns: start of the region; 0 in a sum */
	__u64 regions;	     /* 1, or the number of regions in a sum */
	__u64 name_id;	     /* name of the span */
	__u64 span_start_ns; /* identifies the span with tid and cls; 0 in a sum or without a span */
	__u64 dur_ns;
	__u64 threads_ns; /* threads * dur_ns */
	__u64 late_ns, work_ns, barrier_ns;
	__u64 late_runq_ns, cpu_ns, runq_ns;
	/*
	 * Time on CPU without work: the master's while it wakes its team and in the barrier; the workers' since
	 * they ended their previous work, in whichever region. Waiting threads spin for a while before they sleep.
	 */
	__u64 spun_ns;
	__u32 tid;     /* thread of the span: the master, or the outer region's */
	__u32 threads; /* number of threads; in a sum, the highest */
	__u8 cls;      /* enum mxbpf_class; NONE: no span was open */
	__u8 flags;    /* enum mxbpf_team_flag */
	__u8 pad[6];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_team) == 128);

enum mxbpf_team_flag {
	MXBPF_TEAM_NESTED = 1 << 0,
	/* A thread changed its CPU while at work, so cpu_ns may be wrong by MXBPF_ACCOUNT_SLACK_NS. */
	MXBPF_TEAM_MIGRATED = 1 << 1,
};

#endif
