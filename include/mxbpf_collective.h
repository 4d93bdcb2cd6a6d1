/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/* Collectives: calls in which processes of a job exchange data, and what mxbpf adds up of them. */
#ifndef MXBPF_COLLECTIVE_H
#define MXBPF_COLLECTIVE_H

#include "mxbpf_event.h"

/* Kinds of records, which continue enum mxbpf_kind. */
#define MXBPF_COLLECTIVE     ((enum mxbpf_kind)66) /* user: one process's part of one, struct mxbpf_collective */
#define MXBPF_AGG_COLLECTIVE ((enum mxbpf_kind)67) /* user: a row of them, struct mxbpf_agg_collective */
#define MXBPF_AGG_OVERLAP    ((enum mxbpf_kind)68) /* user: a device that exchanged, struct mxbpf_agg_overlap */

enum mxbpf_collective_backend {
	MXBPF_BACKEND_NONE = 0,
	MXBPF_BACKEND_GLOO = 1, /* a work of gloo on the CPU, from its start to its end */
	MXBPF_BACKEND_NCCL = 2, /* a kernel of NCCL on a device */
	MXBPF_BACKENDS = 3,
};

/* Recordings store these numbers. user/feature/collective/ops.c has the names and properties. */
enum mxbpf_collective_op {
	MXBPF_COLLECTIVE_OTHER = 0,
	MXBPF_COLLECTIVE_ALL_REDUCE = 1,
	MXBPF_COLLECTIVE_ALL_GATHER = 2,
	MXBPF_COLLECTIVE_REDUCE_SCATTER = 3,
	MXBPF_COLLECTIVE_ALL_TO_ALL = 4,
	MXBPF_COLLECTIVE_BROADCAST = 5,
	MXBPF_COLLECTIVE_REDUCE = 6,
	MXBPF_COLLECTIVE_GATHER = 7,
	MXBPF_COLLECTIVE_SCATTER = 8,
	MXBPF_COLLECTIVE_BARRIER = 9,
	MXBPF_COLLECTIVE_SEND_RECV = 10, /* NCCL: a kernel can send to several processes and receive from several */
	MXBPF_COLLECTIVE_SEND = 11,	 /* gloo: to one other process */
	MXBPF_COLLECTIVE_RECV = 12,
	MXBPF_COLLECTIVE_OPS = 13,
};

#define MXBPF_COLLECTIVE_UNSIZED (~0ull) /* bytes: not known */

/* Where the bytes are from. */
enum mxbpf_collective_source {
	MXBPF_COLLECTIVE_FROM_ARGS = 1 << 0, /* the arguments of the framework's call */
	MXBPF_COLLECTIVE_FROM_NVTX = 1 << 1, /* NCCL's range of NVTX */
};

enum mxbpf_collective_flag {
	/* bytes are those for each process, and a process gives so many for each of them (reduce_scatter of NCCL) */
	MXBPF_COLLECTIVE_FOR_EACH = 1 << 0,
};

/* One process's part of a collective. */
struct mxbpf_collective {
	struct mxbpf_rec h; /* ts_ns: its start in this process */
	__u64 dur_ns;
	__u64 bytes; /* of the arrays that the process gave; MXBPF_COLLECTIVE_UNSIZED */
	__u64 group; /* communicator, if a source says which: equal in all its processes; 0: not known */
	__u64 seq;   /* with group: number of the collective in it; 0: not known */
	__u64 lane;  /* the thread that ended it, or context and stream: each has the collectives of one communicator */
	__u32 tid;   /* thread that did it, or that launched it */
	__u32 device;	/* NCCL: ordinal of the device in the process */
	__u8 backend;	/* enum mxbpf_collective_backend */
	__u8 op;	/* enum mxbpf_collective_op */
	__u8 source;	/* enum mxbpf_collective_source */
	__u8 flags;	/* enum mxbpf_collective_flag */
	__u8 reduction; /* 1 + ncclRedOp_t; 0: none, or not known */
	__u8 pad[3];
	/* MXBPF_COLLECTIVE_BYTES_MIN ends here. */
	__u32 root;  /* 1 + rank in the communicator; 0: none, or not known */
	__u32 ranks; /* of the communicator; 0: not known */
};
#define MXBPF_COLLECTIVE_BYTES_MIN 72 /* records of earlier versions */
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_collective) == 80);

/*
 * Parts of one process, or of one of its devices, in collectives of one operation, size, group and communicator. Sums
 * of `matched` are of those whose parts in all processes of the group were seen.
 */
struct mxbpf_agg_collective {
	struct mxbpf_rec h; /* ts_ns: 0 */
	__u64 bytes;	    /* of the collective, as nccl-tests count them; MXBPF_COLLECTIVE_UNSIZED */
	__u64 group;	    /* the same in all processes of the group; 0: single parts */
	__u64 count, total_ns;
	__u64 matched;
	__u64 matched_ns;	 /* of total_ns */
	__u64 wait_ns;		 /* of matched_ns, until the last process began */
	__u64 move_ns;		 /* from the start of the last process to the last end: what nccl-tests measure */
	__u64 last;		 /* of matched: this process began last */
	__u64 late_ns;		 /* of these: from the median start of the others to its own */
	__u64 first_ns, last_ns; /* first start and last end */
	__u32 members;		 /* of the group; 0: not known */
	__u32 device;
	__u8 backend, op;
	__u8 source, reduction; /* as in struct mxbpf_collective */
	__u8 pad[4];
	/* MXBPF_AGG_COLLECTIVE_BYTES_MIN ends here. */
	__u64 comm;	   /* communicator, as its backend numbers it; 0: not known */
	__u32 root, ranks; /* as in struct mxbpf_collective */
};
#define MXBPF_AGG_COLLECTIVE_BYTES_MIN 128 /* records of earlier versions */
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agg_collective) == 144);

/* Kernels of communication of one device, and what else it ran meanwhile. */
struct mxbpf_agg_overlap {
	struct mxbpf_rec h;  /* ts_ns: 0 */
	__u64 ns;	     /* in which at least one kernel of communication ran */
	__u64 overlapped_ns; /* of it, while another kernel ran, too */
	__u64 compute_ns;    /* in which at least one other kernel ran */
	__u32 device;
	__u32 pad;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agg_overlap) == 48);

#endif
