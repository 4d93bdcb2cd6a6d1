/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/*
 * --sched: the record of a thread's time off the CPU, and the maps in which BPF keeps threads and CPUs. User space
 * reads these maps at the end of a window.
 */
#ifndef MXBPF_SCHED_H
#define MXBPF_SCHED_H

#include "mxbpf_event.h"
#include "mxbpf_thread.h"

/* State of a thread when it left its CPU. */
enum mxbpf_sched_state {
	MXBPF_SCHED_RUNNABLE = 0, /* ready to run: another thread took its CPU */
	MXBPF_SCHED_SLEEPING = 1,
	MXBPF_SCHED_DISK = 2,	 /* asleep, not woken by signals: mostly for a disk */
	MXBPF_SCHED_STOPPED = 3, /* stopped by a signal or a debugger */
	MXBPF_SCHED_STATES = 4,
};

enum mxbpf_sched_flag {
	MXBPF_SCHED_IOWAIT = 1 << 0,	/* the kernel counts its sleep as waiting for I/O */
	MXBPF_SCHED_BY_OURS = 1 << 1,	/* by_tid is a thread of a target process */
	MXBPF_SCHED_BY_IRQ = 1 << 2,	/* an interrupt woke it: by_tid is only the interrupted thread */
	MXBPF_SCHED_NO_WAKER = 1 << 3,	/* its wake-up was not seen: woken_ns is back_ns */
	MXBPF_SCHED_MORE = 1 << 4,	/* some slices did not fit: the earliest are missing */
	MXBPF_SCHED_STILL_OFF = 1 << 5, /* the window ended first, at back_ns */
	/* On CPU until ts_ns, where the thread or the window ended. woken_ns and back_ns equal ts_ns. */
	MXBPF_SCHED_LAST = 1 << 6,
	MXBPF_SCHED_BETWEEN = 1 << 7, /* it left the CPU between slices: its open call is unknown. Since 2.2. */
};

/* A thread that ran on back_cpu while this one was ready: a part of [woken_ns, back_ns]. */
struct mxbpf_sched_slice {
	__u64 from_ns, to_ns;
	__u32 tid,
		tgid; /* tid: the first of several threads of one name; outside targets: in the initial pid namespace */
	char comm[16]; /* untrusted text; NUL-terminated unless full */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_sched_slice) == 40);

#define MXBPF_SCHED_SLICES_MAX 15 /* a power of two minus 1 */

/*
 * A thread's time off the CPU. It ran for ran_ns before ts_ns, slept until woken_ns (if that is ts_ns, it did not
 * sleep), and waited for a CPU until back_ns. span_start_ns and tid identify its innermost open span.
 */
struct mxbpf_sched {
	struct mxbpf_rec h; /* ts_ns: when it left the CPU */
	__u64 ran_ns;	    /* time on left_cpu, within the window */
	__u64 woken_ns, back_ns;
	__u64 span_start_ns, span_name_id; /* 0: no span was open */
	__u32 tid;
	__u32 by_tid;	  /* RUNNABLE: thread that took its CPU; else its waker. 0: none, or the idle thread */
	char by_comm[16]; /* name of that thread; untrusted text */
	__s32 syscall;	  /* number of its system call; -1: none */
	__u16 left_cpu, back_cpu;
	__u8 state; /* enum mxbpf_sched_state */
	__u8 span_cls;
	__u8 flags;   /* enum mxbpf_sched_flag */
	__u8 nslices; /* newest first */
	__u32 pad;
	struct mxbpf_sched_slice slices[];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_sched) == 96);

#define MXBPF_OFF_CPU                                                                                                  \
	((enum mxbpf_kind)70) /* user: a thread's time off the CPU without --sched, struct mxbpf_off_cpu */

/* The part of struct mxbpf_sched that divides the idle time of GPUs. Since 2.2. */
struct mxbpf_off_cpu {
	struct mxbpf_rec h; /* ts_ns: when it left the CPU */
	__u64 woken_ns, back_ns;
	__u32 tid;
	__u32 pad;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_off_cpu) == 40);

#define MXBPF_SCHED_RING_BYTES	(8u << 20)
#define MXBPF_SCHED_THREADS_MAX 8192 /* a power of two */
#define MXBPF_SCHED_KEPT	32   /* a power of two */

/*
 * A thread of a target, in array map `sched_threads`, which user space maps. Its index is its id in the initial pid
 * namespace, modulo the map's size, or one of the next few indexes. A lookup in a hash map would be most of a
 * context switch's cost.
 */
#define MXBPF_SCHED_TRIES 4
#define MXBPF_SCHED_FREE  0u
#define MXBPF_SCHED_GONE  (~0u) /* free entry; the search goes on behind it */
struct mxbpf_sched_thread {
	__u32 id;      /* id in the initial pid namespace, or FREE or GONE */
	__u32 slot;    /* slot of its struct mxbpf_thread; 0: none */
	__u64 back_ns; /* when it last got a CPU */
	__u64 left_ns; /* when it left the CPU; 0: it is on the CPU, or this is unknown */
	__u64 ran_ns;  /* time on CPU before that */
	__u64 span_start_ns, span_name_id;
	__u64 woken_ns; /* last wake-up; 0: not seen */
	__u32 tgid, tid;
	__s32 syscall;
	__u32 taker_tid, waker_tid;
	char taker_comm[16], waker_comm[16];
	__u16 cpu;
	__u8 state, span_cls;
	__u8 flags;	  /* enum mxbpf_sched_flag of leaving the CPU */
	__u8 waker_flags; /* enum mxbpf_sched_flag of the wake-up */
	__u8 between;	  /* it left the CPU between slices */
	__u8 pad[5];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_sched_thread) == 120);

/* Value of map `sched_cpus`: the last threads that ran on a CPU. */
struct mxbpf_sched_cpu {
	__u64 since_ns; /* time of the last switch */
	__u64 nkept;	/* entries ever written to `kept` */
	__u64 counts[MXBPF_COUNT_MAX];
	struct mxbpf_sched_slice kept[MXBPF_SCHED_KEPT];
	/* Scratch: a struct mxbpf_sched with its slices. */
	__u64 rec[(sizeof(struct mxbpf_sched) + MXBPF_SCHED_SLICES_MAX * sizeof(struct mxbpf_sched_slice)) / 8];
};

#endif
