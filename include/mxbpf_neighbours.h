/* SPDX-License-Identifier: Apache-2.0 */
/* CPU time of the processes of a machine in the window: user space reads /proc at its edges. BPF sends none of these.
 */
#ifndef MXBPF_NEIGHBOURS_H
#define MXBPF_NEIGHBOURS_H

#include "mxbpf_event.h"

#define MXBPF_NEIGHBOUR ((enum mxbpf_kind)39)

/* A process that ran at both edges of the window, or began in it. What ended before its end is not known. */
struct mxbpf_neighbour {
	struct mxbpf_rec h; /* ts_ns: the end of the time that cpu_ns is of */
	__u64 cpu_ns;	    /* user and system time of all its threads, in steps of 10 ms */
	__u64 elapsed_ns;   /* between the two readings */
	__u8 job;	    /* 1: the target or a descendant of it */
	char comm[15];	    /* name of its main thread, hostile, ends with NUL */
	__u64 runq_ns; /* of such processes, and of those named as one of them: how long their threads were runnable and
			  waited for a CPU */
	__u32 cpus;    /* of the same: on which their main thread may run; 0: not known */
	__u32 root;    /* the eldest process of the job from which it descends, or itself; 0: not known */
	__u64 throttled_ns; /* of a process named as one of the job: for how long its control group was, over all CPUs
			     */
	__u32 rank;	    /* of such a process: its number in a distributed job, plus 1; 0: not known */
	__u32 cpu;	    /* on which it ran last, plus 1; 0: not known */
	__u32 only_cpu;	    /* of any process: 1 + the CPU, if its main thread may run on no other one; 0 */
	__u32 pad;
};
#define MXBPF_NEIGHBOUR_BYTES_MIN 48 /* up to comm */
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_neighbour) == 88);

#endif
