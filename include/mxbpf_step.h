/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/* Iterations of a training loop: the events that mark them, and the iterations that user space finds. */
#ifndef MXBPF_STEP_H
#define MXBPF_STEP_H

#include "mxbpf_event.h"

/* Kind of an event, and of the event that ended an iteration. */
enum mxbpf_step_what {
	MXBPF_STEP_NONE = 0,
	MXBPF_STEP_BACKWARD = 1,  /* a backward pass begins */
	MXBPF_STEP_KVSTORE = 2,	  /* parameters were sent to or received from a store, which may update them */
	MXBPF_STEP_UPDATE = 3,	  /* an optimizer's operator is called; key: the weight that it updates */
	MXBPF_STEP_OPTIMIZER = 4, /* an optimizer's step ended (key: its name) or, in C++, began (key: the object) */
	MXBPF_STEP_COUNTED = 5,	  /* --iterations counted an iteration */
	MXBPF_STEP_WHATS = 6,
};

enum mxbpf_step_flag {
	MXBPF_STEP_OPENS = 1 << 0, /* with COUNTED: a window opens here, so the iteration before it was not seen */
};

/* Sent by BPF. */
struct mxbpf_step {
	struct mxbpf_rec h;
	__u64 key;
	__u32 tid;
	__u8 what;  /* enum mxbpf_step_what */
	__u8 flags; /* enum mxbpf_step_flag */
	__u8 pad[2];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_step) == 32);

/* Where the time of an iteration went on its own thread. The parts add up to dur_ns. */
enum mxbpf_step_part {
	MXBPF_PART_DATA = 0,	 /* waiting for an iterator or a loader's workers */
	MXBPF_PART_WAIT = 1,	 /* waiting for the engine, or for a backward pass on other threads */
	MXBPF_PART_KVSTORE = 2,	 /* in a call of the parameter store, or waiting for an exchange with other processes */
	MXBPF_PART_OPERATOR = 3, /* in an operator on this thread */
	MXBPF_PART_API = 4,	 /* in another call of the C API */
	MXBPF_PART_OUTSIDE = 5,	 /* outside the runtime: the program itself */
	MXBPF_STEP_PARTS = 6,
};

enum mxbpf_iteration_flag {
	MXBPF_ITERATION_PARTS = 1 << 0, /* the parts and busy_ns are known */
	MXBPF_ITERATION_GPU = 1 << 1,	/* gpu_ns and kernels are known */
	MXBPF_ITERATION_COST = 1 << 2,	/* cost_ns and runq_ns are known */
	MXBPF_ITERATION_WAITS = 1 << 3, /* waits outside calls are not in OUTSIDE; old recordings lack this */
	MXBPF_ITERATION_LOST = 1 << 4,	/* records of its time are lost; its start and its end are right */
};

/* Made by user space when an iteration has ended. Iterations are numbered from 0 in each process. */
struct mxbpf_iteration {
	struct mxbpf_rec h; /* ts_ns: its start, which is the end of the iteration before */
	__u64 dur_ns;
	__u64 nr;
	__u64 part_ns[MXBPF_STEP_PARTS];
	__u64 first_ns; /* part of OUTSIDE before the first call of the runtime */
	__u64 busy_ns;	/* time with at least one operator running on any thread */
	__u32 tid;
	__u8 told;  /* enum mxbpf_step_what */
	__u8 flags; /* enum mxbpf_iteration_flag */
	__u8 pad[2];
	__s64 live_bytes; /* allocated less freed since the window began, at its end; not before version 1.3 */
	/*
	 * Only with MXBPF_ITERATION_GPU (size MXBPF_ITERATION_BYTES_PLAIN without), since version 1.5: what the process
	 * launched on GPUs in this time, on any thread. gpu_ns is the sum of durations; those of several streams
	 * overlap.
	 */
	__u64 gpu_ns;
	__u64 kernels;
	/*
	 * Only with MXBPF_ITERATION_COST (size MXBPF_ITERATION_BYTES_GPU without), since version 2.0: what watching
	 * cost its thread, by the estimates of the session, in the parts of its time.
	 */
	__u64 cost_ns[MXBPF_STEP_PARTS];
	__u64 runq_ns[MXBPF_STEP_PARTS]; /* of its parts: ready to run, but waiting for a CPU, as far as calls say */
	__u64 raw_ns; /* dur_ns before the cost was taken out; 0: it is not taken out. Recordings have 0. */
};
#define MXBPF_ITERATION_BYTES_MIN   104
#define MXBPF_ITERATION_BYTES_PLAIN 112
#define MXBPF_ITERATION_BYTES_GPU   128
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_iteration) == 232);

#endif
