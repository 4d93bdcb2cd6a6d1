/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of Python that the threads of a job stood on, by the clock: user space looks at each thread several times a
 * second, whether it runs or sleeps. BPF sends none of these.
 */
#ifndef MXBPF_LINES_H
#define MXBPF_LINES_H

#include "mxbpf_event.h"

#define MXBPF_AGG_LINE ((enum mxbpf_kind)38)

/* What a thread was doing when it was sampled: it ran, or it slept for one of these reasons. */
enum mxbpf_sleep {
	MXBPF_SLEEP_NOT = 0,	 /* it ran, or waited for a CPU */
	MXBPF_SLEEP_ANY = 1,	 /* it slept; earlier versions say this of any sleep */
	MXBPF_SLEEP_STOPPED = 2, /* by a signal or a debugger */
	MXBPF_SLEEP_DISK = 3,	 /* no signal ends its sleep, mostly because it waits for a disk */
};

/* The kind of file that the thread was reading or writing while it slept. */
enum mxbpf_on {
	MXBPF_ON_NOTHING = 0, /* another one, or not known */
	MXBPF_ON_PIPE = 1,
	MXBPF_ON_NETWORK = 2, /* a socket */
	MXBPF_ON_TERMINAL = 3,
	MXBPF_ON_KINDS = 4,
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
	/* All since 3.2. Of a rank, as its launcher has numbered it; not of its workers. */
	__u16 number;	  /* 1 + its rank in the job; 0: not known */
	__u8 local_ranks; /* of the job on this machine; 0: not known */
	__u8 on;	  /* enum mxbpf_on */
	__u32 of;	  /* its parent, if that is sampled as well; 0: it is not */
	__u8 handles;	  /* number of the exception that it handled, exception_name(); 0: none, or not known */
	__u8 pad[3];
};
#define MXBPF_AGG_LINE_BYTES_MIN 56 /* records of earlier versions */
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agg_line) == 64);

/* A single look, of those that the rows above count. */
#define MXBPF_LOOK ((enum mxbpf_kind)40)

enum mxbpf_look_flag {
	MXBPF_LOOK_KNOWN = 1 << 0,  /* the other flags are known; not before version 2.3 */
	MXBPF_LOOK_SLEEPS = 1 << 1, /* it was not runnable */
	MXBPF_LOOK_LOCKED = 1 << 2, /* it slept in a futex without a time limit, as in a lock of Python */
	MXBPF_LOOK_CALL = 1 << 3,   /* it was in a call of the runtime */
	MXBPF_LOOK_RANK = 1 << 8,   /* its process is another rank of the job, which the session does not profile */
	MXBPF_LOOK_DISK = 1 << 9,   /* MXBPF_SLEEP_DISK */
	MXBPF_LOOK_MUTEX =
		1 << 10, /* LOCKED, at a line of the program, in a lock of its frames, while it has another */
	/* The system call in which it slept, plus 1, from this bit on; 0: none, or it is not known. */
	MXBPF_LOOK_SYSCALL = 16,
};

struct mxbpf_look {
	struct mxbpf_rec h;
	__u64 stack_id;
	__u32 tid;
	__u32 flags; /* enum mxbpf_look_flag */
	/*
	 * Since 3.2. When this was read, 0: not known; of the thread since it began: its CPU time, the time that it was
	 * ready to run but waited for a CPU, and the iterations that BPF has counted on it, also between slices.
	 */
	__u64 read_ns, cpu_ns, runq_ns, iterations;
};
#define MXBPF_LOOK_BYTES_MIN 32 /* records of earlier versions */
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_look) == 64);

#define MXBPF_RESIDENT ((enum mxbpf_kind)76)

/* The memory of a process of the job at a moment. Since 2.3. */
struct mxbpf_resident {
	struct mxbpf_rec h; /* ts_ns: when it was read */
	__u64 bytes;	    /* resident, without files and memory that it shares by mmap() */
	/* Since 3.2. These are read less often, and repeated in between. */
	__u64 private_bytes; /* of child processes: resident and in no other process; 0: not known */
	__u64 swapped_bytes;
	__u64 majflt;	  /* page faults with I/O so far */
	__u64 read_bytes; /* so far, from disks */
	__u8 rank;	  /* 1: the process is another rank of the job, which the session does not profile */
	__u8 pad[7];
};
#define MXBPF_RESIDENT_BYTES_MIN 24 /* up to bytes */
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_resident) == 64);

#define MXBPF_COLLECTOR	      ((enum mxbpf_kind)85)
#define MXBPF_COLLECTOR_LOOKS 64

/* Looks at Python's garbage collector of a process at equal distances, many times as often as at its lines. Since 3.2.
 */
struct mxbpf_collector {
	struct mxbpf_rec h;   /* ts_ns: of the first look */
	__u64 last_ns;	      /* of the last look */
	__u64 runs;	      /* bit i: the i-th look found a collection */
	__u64 collections[3]; /* of each generation since the interpreter began, at the last look; youngest first */
	__u64 stack_id;	      /* of the main thread when one had begun, a name of kind MXBPF_NAME_STACK; 0: not known */
	__u32 looks;	      /* 1 to MXBPF_COLLECTOR_LOOKS */
	__u8 rank;	      /* as in mxbpf_agg_line */
	__u8 pad[3];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_collector) == 72);

/* Pages that a process has touched, and that it had later. Since 3.2. */
#define MXBPF_TOUCHED ((enum mxbpf_kind)79)

struct mxbpf_touched {
	struct mxbpf_rec h;
	__u64 stack_id; /* of Python; a name of kind MXBPF_NAME_STACK */
	__u64 pages;	/* an estimate, from samples of page faults */
	__u64 gone;	/* pages that it touched and did not keep, as an estimate */
	__u64 samples;	/* of `pages` */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_touched) == 48);

#define MXBPF_NETWORK ((enum mxbpf_kind)90)

/*
 * Looks at the TCP connections of a rank to an address; of address 0, at all ranks in its network namespace, with the
 * counters of that. Since 3.2.
 */
struct mxbpf_network {
	struct mxbpf_rec h; /* ts_ns: of the first look */
	__u64 looks;
	__u64 flights;	    /* of these, those that found much data sent which had not arrived */
	__u64 sent, resent; /* TCP segments; of address 0 alone */
	__u64 bytes;	    /* that all interfaces have received; of address 0 alone */
	__u32 address;	    /* IPv4, as in /proc/net/tcp; of IPv6, its last 32 bits */
	__u32 peer;	    /* the rank at the other end, if it is in the same namespace; 0: not known */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_network) == 64);

#endif
