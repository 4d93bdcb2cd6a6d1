/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of Python that the threads of a job stood on, by the clock: user space looks at each thread several times a
 * second, whether it runs or sleeps. BPF sends none of these.
 */
#ifndef MXBPF_LINES_H
#define MXBPF_LINES_H

#include "mxbpf_event.h"

#define MXBPF_AGG_LINE ((enum mxbpf_kind)38)

/* Whether a thread could run when it was looked at. */
enum mxbpf_sleep {
	MXBPF_SLEEP_NOT = 0,	 /* it ran, or waited for a CPU */
	MXBPF_SLEEP_ANY = 1,	 /* it slept; earlier versions say this of any sleep */
	MXBPF_SLEEP_STOPPED = 2, /* by a signal or a debugger */
	MXBPF_SLEEP_DISK = 3,	 /* no signal ends its sleep, mostly because it waits for a disk */
};

/* Looks at one thread that found the same stack, in the same call of the runtime, in the same state. */
struct mxbpf_agg_line {
	struct mxbpf_rec h; /* ts_ns: of the first look */
	__u64 stack_id;	    /* a name of kind MXBPF_NAME_STACK */
	__u64 name_id;	    /* innermost span that was open on the thread; with cls 0: none was */
	__u64 count;	    /* looks */
	__u32 tid;	    /* 0: not known */
	__s32 syscall;	    /* in which it slept; -1: it ran, or slept elsewhere */
	__u8 cls;	    /* enum mxbpf_class */
	__u8 sleeps;	    /* enum mxbpf_sleep */
	__u8 main;	    /* 1: the main thread of its process */
	__u8 rank;	    /* 1: its process is another rank of the job, which the session does not profile */
	__u8 pad[4];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agg_line) == 56);

/* A single look, of those that the rows above count. */
#define MXBPF_LOOK ((enum mxbpf_kind)40)

struct mxbpf_look {
	struct mxbpf_rec h;
	__u64 stack_id;
	__u32 tid;
	__u32 pad;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_look) == 32);

#endif
