/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/*
 * --sched: what BPF sends of a thread that was off its CPU, and the maps in which it keeps threads and CPUs until then,
 * which user space reads at a window's end.
 */
#ifndef MXBPF_SCHED_H
#define MXBPF_SCHED_H

#include "mxbpf_event.h"
#include "mxbpf_thread.h"

/* What a thread was as it left its CPU. */
enum mxbpf_sched_state {
	MXBPF_SCHED_RUNNABLE = 0, /* it could have gone on: another took its CPU */
	MXBPF_SCHED_SLEEPING = 1,
	MXBPF_SCHED_DISK = 2,	 /* likewise, and no signal wakes it: mostly for a disk */
	MXBPF_SCHED_STOPPED = 3, /* by a signal or a debugger */
	MXBPF_SCHED_STATES = 4,
};

enum mxbpf_sched_flag {
	MXBPF_SCHED_IOWAIT = 1 << 0,	/* the kernel counts its sleep as waiting for input or output */
	MXBPF_SCHED_BY_OURS = 1 << 1,	/* by_tid is a thread of a process that is looked at */
	MXBPF_SCHED_BY_IRQ = 1 << 2,	/* it was woken by an interrupt: by_tid has nothing to do with it */
	MXBPF_SCHED_NO_WAKER = 1 << 3,	/* its waking was not seen: woken_ns is back_ns */
	MXBPF_SCHED_MORE = 1 << 4,	/* there were more slices than there is room for: the first are missing */
	MXBPF_SCHED_STILL_OFF = 1 << 5, /* the window ended first, at back_ns */
	MXBPF_SCHED_LAST = 1 << 6,	/* it was on the CPU until ts_ns, where it or the window ended: woken_ns and
					 * back_ns are the same */
};

/* What ran on back_cpu while the thread could have: pieces of [woken_ns, back_ns]. */
struct mxbpf_sched_slice {
	__u64 from_ns, to_ns;
	__u32 tid, tgid; /* tid: the first, if threads of one name took turns. Of a target as in other records, else in
			    the machine's first pid namespace */
	char comm[16];	 /* hostile; NUL-terminated unless it is full */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_sched_slice) == 40);

#define MXBPF_SCHED_SLICES_MAX 15 /* a power of two less 1 */

/*
 * A thread off its CPU: before ts_ns it ran for ran_ns, then slept until woken_ns (ts_ns: it did not sleep), then
 * waited for a CPU until back_ns. The innermost span that was open names what it was in: with tid.
 */
struct mxbpf_sched {
	struct mxbpf_rec h; /* ts_ns: when it left */
	__u64 ran_ns;	    /* on left_cpu, not counted from before the window */
	__u64 woken_ns, back_ns;
	__u64 span_start_ns, span_name_id; /* 0: none was open */
	__u32 tid;
	__u32 by_tid;	  /* RUNNABLE: who took its CPU; else who woke it. 0: none, or the idle CPU's */
	char by_comm[16]; /* of that; hostile */
	__s32 syscall;	  /* number of the system call it was in; -1: none */
	__u16 left_cpu, back_cpu;
	__u8 state; /* enum mxbpf_sched_state */
	__u8 span_cls;
	__u8 flags;   /* enum mxbpf_sched_flag */
	__u8 nslices; /* newest first */
	__u32 pad;
	struct mxbpf_sched_slice slices[];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_sched) == 96);

#define MXBPF_SCHED_RING_BYTES	(8u << 20)
#define MXBPF_SCHED_THREADS_MAX 8192 /* a power of two */
#define MXBPF_SCHED_KEPT	32   /* a power of two */

/*
 * A thread of a target, in array map `sched_threads`, mapped into user space: it stands at its id in the machine's
 * first pid namespace, modulo the size, or a little behind. A hash map's look-ups would be most of what a switch costs.
 */
#define MXBPF_SCHED_TRIES 4
#define MXBPF_SCHED_FREE  0u
#define MXBPF_SCHED_GONE  (~0u) /* free, and what is looked for may stand behind it */
struct mxbpf_sched_thread {
	__u32 id;      /* that one, or one of the two */
	__u32 slot;    /* of struct mxbpf_thread; 0: it has none */
	__u64 back_ns; /* when it got the CPU that it has or had */
	__u64 left_ns; /* 0: it has it, or nobody knows */
	__u64 ran_ns;  /* before that */
	__u64 span_start_ns, span_name_id;
	__u64 woken_ns; /* the last time; 0: not seen */
	__u32 tgid, tid;
	__s32 syscall;
	__u32 taker_tid, waker_tid;
	char taker_comm[16], waker_comm[16];
	__u16 cpu;
	__u8 state, span_cls;
	__u8 flags;	  /* enum mxbpf_sched_flag, of leaving */
	__u8 waker_flags; /* of waking */
	__u8 pad[6];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_sched_thread) == 120);

/* Value of map `sched_cpus`: what ran there lately. */
struct mxbpf_sched_cpu {
	__u64 since_ns; /* of the last switch */
	__u64 nkept;	/* ever */
	__u64 counts[MXBPF_COUNT_MAX];
	struct mxbpf_sched_slice kept[MXBPF_SCHED_KEPT];
	/* Scratch: a struct mxbpf_sched with its slices. */
	__u64 rec[(sizeof(struct mxbpf_sched) + MXBPF_SCHED_SLICES_MAX * sizeof(struct mxbpf_sched_slice)) / 8];
};

#endif
