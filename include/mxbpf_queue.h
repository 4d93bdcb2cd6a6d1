/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How launches became work of devices, what types of work ran at once, and what held an iteration up. User space makes
 * these records of MXBPF_SPAN, MXBPF_LAUNCH and MXBPF_ACTIVITY (mxbpf_track.h).
 */
#ifndef MXBPF_QUEUE_H
#define MXBPF_QUEUE_H

#include "mxbpf_track.h"

#define MXBPF_AGG_GPU_LAUNCH ((enum mxbpf_kind)51) /* user: launches into a stream, struct mxbpf_agg_gpu_launch */
#define MXBPF_AGG_GPU_TYPES  ((enum mxbpf_kind)52) /* user: time of a device by type, struct mxbpf_agg_gpu_types */
#define MXBPF_GPU_PATH	     ((enum mxbpf_kind)53) /* user: part of a critical path, struct mxbpf_gpu_path */
#define MXBPF_GPU_SEQUENCE   ((enum mxbpf_kind)54) /* user: work launched in a row, struct mxbpf_gpu_sequence */

/*
 * Launches by one call of CUDA into one stream whose work was recorded. Of a CUDA graph, the stream is that of its
 * first work. The delay is the time from the end of the call to the start of its first work; 0 if that began before.
 * nbuckets structs mxbpf_bucket follow: launches by delay. Since 2.2.
 */
struct mxbpf_agg_gpu_launch {
	struct mxbpf_rec h;	    /* ts_ns: 0 */
	__u64 call_id;		    /* of kind MXBPF_NAME_SPAN: "cudaLaunchKernel" */
	__u64 count;		    /* launches */
	__u64 call_ns, call_max_ns; /* durations of the calls */
	__u64 slow_calls;	    /* calls longer than MXBPF_SLOW_CALL_NS */
	__u64 shorter;		    /* launches of one activity that took less time than the call */
	__u64 delay_ns, delay_max_ns;
	__u64 delayed;	 /* delays longer than MXBPF_LONG_DELAY_NS */
	__u64 queued_ns; /* from the starts of the calls to the ends of their work */
	__u64 queue_max; /* most launches of the stream whose work had not ended, at a launch of this row, with it */
	__u64 full_ns;	 /* time in which the stream had MXBPF_QUEUE_FULL of them or more, counted at these launches */
	struct mxbpf_track track;
	__u16 nbuckets;
	__u8 pad[2];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agg_gpu_launch) == 128);

/* HolisticTraceAnalysis has the same limits by default. */
#define MXBPF_SLOW_CALL_NS  50000u
#define MXBPF_LONG_DELAY_NS 100000u
#define MXBPF_QUEUE_FULL    1024u /* a launch waits while its stream has so many */

/* Types of work of a device. A mask of them says which ones ran at once. Recordings store these numbers. */
enum mxbpf_gpu_type {
	MXBPF_TYPE_COMPUTE = 0,	 /* kernels that are no exchange */
	MXBPF_TYPE_EXCHANGE = 1, /* kernels that exchange data with other devices: NCCL's */
	MXBPF_TYPE_MEMORY = 2,	 /* copies and sets */
	MXBPF_TYPES = 3,
};

/* Time of a device by the types of work that ran. Since 2.2. */
struct mxbpf_agg_gpu_types {
	struct mxbpf_rec h;	    /* ts_ns: 0 */
	__u64 ns[1 << MXBPF_TYPES]; /* by mask: 1 << type. [0]: nothing ran, between the first and the last work */
	__u64 count[MXBPF_TYPES];
	__u64 total_ns[MXBPF_TYPES]; /* sums of durations; those of several streams overlap */
	__u64 first_ns, last_ns;     /* start of the first work, end of the last one */
	__u32 device;
	__u32 pad;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agg_gpu_types) == 152);

/* Kinds of pieces of a critical path. Recordings store these numbers. */
enum mxbpf_path_part {
	MXBPF_PATH_NONE = 0,
	MXBPF_PATH_KERNEL = 1,	 /* a kernel ran, or a set */
	MXBPF_PATH_COPY = 2,	 /* a copy ran */
	MXBPF_PATH_GAP = 3,	 /* work began later than what it had waited for on the device had ended */
	MXBPF_PATH_LAUNCH = 4,	 /* a launch was under way: from the start of its call to the start of its work */
	MXBPF_PATH_OPERATOR = 5, /* a thread was in an operator or another call */
	MXBPF_PATH_DATA = 6,	 /* it waited for data */
	MXBPF_PATH_OTHERS = 7,	 /* it waited for other processes */
	MXBPF_PATH_WAIT = 8,	 /* it waited for a device whose work had ended, or is not known */
	MXBPF_PATH_PROGRAM = 9,	 /* it was in no call */
	MXBPF_PATH_PARTS = 10,
};

/*
 * All pieces of the critical path of an iteration with one name. There is one path for each process. Its parts add up
 * to end_ns - h.ts_ns. Since 2.2.
 */
struct mxbpf_gpu_path {
	struct mxbpf_rec h; /* ts_ns: start of the iteration */
	__u64 name_id;	    /* of kind MXBPF_NAME_SPAN; 0: none */
	__u64 ns, count;
	__u64 end_ns; /* of the iteration, or of the last work that was launched in it, if that is later */
	__u64 nr;     /* of the iteration */
	__u8 part;    /* enum mxbpf_path_part */
	__u8 pad[7];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_gpu_path) == 64);

/*
 * Activities that calls of one operator launched one after another: n names of kind MXBPF_NAME_SPAN follow, in the
 * order of the launches. Since 2.2.
 */
struct mxbpf_gpu_sequence {
	struct mxbpf_rec h; /* ts_ns: 0 */
	__u64 name_id;	    /* of the operator, of kind MXBPF_NAME_SPAN */
	__u64 count;	    /* calls */
	__u64 cpu_ns;	    /* durations of these calls */
	__u64 gpu_ns;	    /* sums of the durations of the activities */
	__u32 n;
	__u32 pad;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_gpu_sequence) == 56);
#define MXBPF_SEQUENCE_MIN 2u
#define MXBPF_SEQUENCE_MAX 16u /* longer ones are left out */

#endif
