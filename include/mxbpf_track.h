/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/*
 * Activities of a device, and the calls that launched them. The agent makes these records of what CUPTI reports; user
 * space adds activities up. All times are CLOCK_MONOTONIC in ns: the agent converts those of CUPTI.
 *
 * An edge leads from a moment in a thread to activities. Its key is (process, domain, id). One key can lead to any
 * number of activities: a launch of a CUDA graph runs many kernels. The two ends are records of their own, because the
 * agent gets them in different buffers: a launch when its call ends, an activity when the device reports it, often
 * seconds later. So either end can come first.
 *
 * MXBPF_EDGE is another thing: its link is an address that the runtime uses again, so the first hand-over belongs to
 * the first operator with that link, and to no other.
 */
#ifndef MXBPF_TRACK_H
#define MXBPF_TRACK_H

#include "mxbpf_event.h"

/* Who numbers the edges. The model and the outputs only compare domains, so a reader takes unknown ones as they are. */
enum mxbpf_edge_domain {
	MXBPF_DOMAIN_NONE = 0,	/* the activity has no edge, or CUPTI did not report one */
	MXBPF_DOMAIN_CUPTI = 1, /* correlationId of CUPTI's records */
};

/* Classes of activities of a device. Recordings store these numbers, so a new class needs a new number. */
enum mxbpf_activity_class {
	MXBPF_ACTIVITY_NONE = 0,
	MXBPF_ACTIVITY_KERNEL = 1, /* CONCURRENT_KERNEL */
	MXBPF_ACTIVITY_COPY = 2,   /* MEMCPY, MEMCPY2: between host and device, or between devices */
	MXBPF_ACTIVITY_SET = 3,	   /* MEMSET */
	/*
	 * SYNCHRONIZATION: the host waited for the device, or a stream for an event. It is no work of the device, so it
	 * counts for no busy time. Since 1.5.
	 */
	MXBPF_ACTIVITY_SYNC = 4,
	MXBPF_ACTIVITY_MAX = 5,
};

/* Direction of a COPY: CUpti_ActivityMemcpyKind. Stored as it comes, so a newer driver may report others. */
enum mxbpf_copy {
	MXBPF_COPY_UNKNOWN = 0,
	MXBPF_COPY_HTOD = 1,
	MXBPF_COPY_DTOH = 2,
	MXBPF_COPY_HTOA = 3,
	MXBPF_COPY_ATOH = 4,
	MXBPF_COPY_ATOA = 5,
	MXBPF_COPY_ATOD = 6,
	MXBPF_COPY_DTOA = 7,
	MXBPF_COPY_DTOD = 8,
	MXBPF_COPY_HTOH = 9,
	MXBPF_COPY_PTOP = 10,
};

/* Kind of a memory that a copy reads or writes, or that a set writes: CUpti_ActivityMemoryKind. */
enum mxbpf_memory_kind {
	MXBPF_MEMORY_UNKNOWN = 0,
	MXBPF_MEMORY_PAGEABLE = 1,
	MXBPF_MEMORY_PINNED = 2,
	MXBPF_MEMORY_DEVICE = 3,
	MXBPF_MEMORY_ARRAY = 4,
	MXBPF_MEMORY_MANAGED = 5,
};

/* The sync_type of a SYNC says what the host or the stream waited for: CUpti_ActivitySynchronizationType. */
enum mxbpf_sync_type {
	MXBPF_SYNC_UNKNOWN = 0,
	MXBPF_SYNC_EVENT = 1,	     /* the host waited for an event */
	MXBPF_SYNC_STREAM_WAITS = 2, /* a stream waits for an event; the host does not wait */
	MXBPF_SYNC_STREAM = 3,	     /* the host waited for a stream */
	MXBPF_SYNC_CONTEXT = 4,	     /* the host waited for the whole device */
};

/* A queue of a device, in which activities run one after another. The numbers are those of CUPTI. */
struct mxbpf_track {
	__u32 device;  /* deviceId: the ordinal in the process, not MXBPF_DEVICE() */
	__u32 context; /* contextId */
	__u32 stream;  /* streamId */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_track) == 12);

/* Something that ran on a device. The agent drops activities that CUPTI did not measure (start or end 0). */
struct mxbpf_activity {
	struct mxbpf_rec h; /* ts_ns: start on the device; tgid: the process that launched it */
	__u64 dur_ns;	    /* end - start on the device */
	__u64 name_id;	    /* a name of kind MXBPF_NAME_SPAN: the demangled kernel; "Memcpy HtoD" as Kineto says */
	__u64 bytes;	    /* COPY and SET: bytes moved or set; KERNEL: 0 */
	__u64 edge_id;	    /* with h.tgid and domain: the edge that launched it; 0 if domain is NONE */
	struct mxbpf_track track;
	__u16 domain; /* enum mxbpf_edge_domain */
	__u8 cls;     /* enum mxbpf_activity_class */
	__u8 pad;
	/* Since 1.5; a record of MXBPF_ACTIVITY_BYTES_MIN lacks these members, and they count as 0. */
	__u64 graph_node;		     /* node of the CUDA graph */
	__u32 graph;			     /* the CUDA graph that ran it; 0: none */
	__u32 grid[3];			     /* KERNEL: blocks in each dimension */
	__u32 static_shared, dynamic_shared; /* KERNEL: shared memory of a block in bytes */
	__u16 block[3];			     /* KERNEL: threads in each dimension of a block */
	__u16 registers;		     /* KERNEL: of a thread */
	__u8 copy;			     /* COPY: enum mxbpf_copy */
	__u8 from, to;			     /* COPY: enum mxbpf_memory_kind; SET: only `to` */
	__u8 sync_type;			     /* SYNC: enum mxbpf_sync_type */
	__u8 pad2[4];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_activity) == 112);
#define MXBPF_ACTIVITY_BYTES_MIN 64

/*
 * A thread began an edge: the innermost span that was open in the thread at this moment launched the activities of the
 * edge. There is one record per edge. Of calls that nest and share an id (a call of the CUDA runtime and the driver's
 * call in it), the agent sends the outermost. If an id is used again, an activity belongs to the last launch that is
 * not later than its start.
 */
struct mxbpf_launch {
	struct mxbpf_rec h; /* ts_ns: start of the call; tgid: process of the thread */
	__u64 edge_id;
	__u32 tid; /* thread of the call, as other records have it */
	__u16 domain;
	__u16 pad;
	/* Since 1.5; a record of MXBPF_LAUNCH_BYTES_MIN lacks these members, and they count as 0. */
	__u64 dur_ns;  /* of the call */
	__u64 call_id; /* its name, of kind MXBPF_NAME_SPAN: "cudaLaunchKernel" */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_launch) == 48);
#define MXBPF_LAUNCH_BYTES_MIN 32

/* Parts of a kernel's shape that differ between the calls of a row. */
enum mxbpf_shape_part {
	MXBPF_SHAPE_GRID = 1 << 0,
	MXBPF_SHAPE_BLOCK = 1 << 1,
	MXBPF_SHAPE_REGISTERS = 1 << 2,
	MXBPF_SHAPE_SHARED = 1 << 3, /* static or dynamic shared memory */
};

/*
 * Activities of one process, device, class and name, added up by user space. Copies of different directions or memory
 * kinds have different rows. nbuckets structs mxbpf_bucket follow: how many activities took how long.
 */
struct mxbpf_agg_activity {
	struct mxbpf_rec h; /* ts_ns: 0 */
	__u64 name_id;
	__u64 count;
	/* Sum and extremes of dur_ns. Activities of several streams overlap, so a total can exceed the window. */
	__u64 total_ns, min_ns, max_ns;
	__u64 bytes;
	__u64 unlaunched; /* of count: activities with an edge that no record seen so far began; 0 of SYNC */
	__u32 device;
	__u8 cls; /* enum mxbpf_activity_class */
	__u8 pad[3];
	/* Since 1.5; a record of MXBPF_AGG_ACTIVITY_BYTES_MIN lacks these members, and they count as 0. */
	__u64 shape_ns; /* KERNEL: start of the last one, which has the shape below; 0: unknown */
	__u32 grid[3];
	__u32 static_shared, dynamic_shared;
	__u16 block[3];
	__u16 registers;
	__u8 copy, from, to, sync_type; /* as in struct mxbpf_activity */
	__u8 varies;			/* enum mxbpf_shape_part */
	__u8 pad2[5];
	__u16 nbuckets;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agg_activity) == 128);
#define MXBPF_AGG_ACTIVITY_BYTES_MIN 80

/* Kinds of records, which continue enum mxbpf_kind. */
#define MXBPF_GPU_DEVICE  ((enum mxbpf_kind)41) /* agent: a device that a process can use, struct mxbpf_gpu_device */
#define MXBPF_GPU_ACCOUNT ((enum mxbpf_kind)42) /* user: what became of CUPTI's records, struct mxbpf_gpu_account */

#define MXBPF_AGG_GPU_WORK   ((enum mxbpf_kind)43) /* user: a row of work for GPUs, struct mxbpf_agg_gpu_work */
#define MXBPF_AGG_GPU_STREAM ((enum mxbpf_kind)44) /* user: how busy a stream was, struct mxbpf_agg_gpu_stream */

#define MXBPF_AGG_GPU_IDLE ((enum mxbpf_kind)50) /* user: why a device ran nothing, struct mxbpf_agg_gpu_idle */
#define MXBPF_GPU_IDLE	   ((enum mxbpf_kind)55) /* user: a piece of that time, struct mxbpf_gpu_idle */
#define MXBPF_GPU_STEP	   ((enum mxbpf_kind)56) /* user: a device in an iteration, struct mxbpf_gpu_step */

/* A device that the process can use, once per session before its first activity. Since 1.5. The agent asks libcuda. */
struct mxbpf_gpu_device {
	struct mxbpf_rec h; /* ts_ns: 0 */
	__u64 name_id;	    /* a name of kind MXBPF_NAME_SPAN: "NVIDIA H200" */
	__u64 memory_bytes;
	__u32 device; /* ordinal in the process */
	__u32 multiprocessors;
	__u16 major, minor;   /* compute capability */
	__u32 threads_per_mp; /* most threads, blocks, registers and shared bytes of a multiprocessor; 0: unknown */
	__u32 blocks_per_mp, registers_per_mp, shared_per_mp;
	__u32 warp;	  /* threads of a warp */
	__u32 clock_khz;  /* highest clock of the multiprocessors */
	__u32 pci_domain; /* place on the PCI bus */
	__u8 pci_bus, pci_device;
	__u8 pad[2];
	/* Since 2.2; a record of MXBPF_GPU_DEVICE_BYTES_MIN lacks these members, and they count as 0. */
	__u8 uuid[16];	     /* of the device, which is that of the instance with MIG; 0: not known */
	__u8 whole_uuid[16]; /* of the whole GPU */
	__u8 mps;	     /* 1: MPS shares the device among processes, as CUDA 12.3 and later tell */
	__u8 pad2[7];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_gpu_device) == 120);
#define MXBPF_GPU_DEVICE_BYTES_MIN 80

/*
 * Account of the records of CUPTI of a process, at the end of each interval: sums since the session's start. Since 1.5.
 * Nothing is left over: records = activities + calls + nested + overheads + outside + unmeasured + queries + memory +
 * unsent.
 */
struct mxbpf_gpu_account {
	struct mxbpf_rec h;	/* ts_ns: 0 */
	__u64 records;		/* records that the agent read, without `unknown` */
	__u64 activities;	/* of records: they became MXBPF_ACTIVITY */
	__u64 calls;		/* of records: they became spans, and MXBPF_LAUNCH if they launch something */
	__u64 nested;		/* of records: calls of the driver inside a call of the runtime */
	__u64 overheads;	/* of records: CUPTI's own work */
	__u64 outside;		/* of records: they began before the window, or their launch did */
	__u64 dropped;		/* CUPTI had no buffer (cuptiActivityGetNumDroppedRecords) */
	__u64 scrapped;		/* CUPTI wrote them into the agent's last-resort buffer: none of its buffers was free */
	__u64 unsent;		/* of records: the ring buffer was full */
	__u64 unmeasured;	/* of records: without times (start or end 0), or with times that cannot be */
	__u64 early;		/* of activities: they begin before their launch, after the conversion of times */
	__u64 threadless;	/* launches with a thread number that is no thread of the process: no record */
	__u64 unnamed;		/* of records: their name did not fit into the agent's memory */
	__u64 unknown;		/* records of a kind that the agent did not enable */
	__u64 subscriptions;	/* times that the agent has held CUPTI */
	__u64 held_ns;		/* how long it has held CUPTI in all */
	__u64 counted_launches; /* launches that probes on CUDA's libraries counted meanwhile; 0: not probed */
	/* A record of MXBPF_GPU_ACCOUNT_BYTES_MIN lacks these members, and they count as 0. */
	__u64 unreadable; /* CUPTI had to hand over a buffer with incomplete records; an estimate */
	__u64 unjoined;	  /* of activities: work of graphs whose launch CUPTI names wrongly */
	__u64 queries;	  /* of records: queries of streams and events, which CUPTI takes for waits */
	__u64 memory;	  /* of records: they became MXBPF_GPU_ALLOC */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_gpu_account) == 184);
#define MXBPF_GPU_ACCOUNT_BYTES_MIN 152

/* A row of work for GPUs belongs to one of these. */
enum mxbpf_gpu_work_of {
	MXBPF_WORK_OF_CALLS = 0,   /* calls of one class and name */
	MXBPF_WORK_OF_LAYER = 1,   /* spans with this layer_id */
	MXBPF_WORK_OF_GRAPH = 2,   /* a CUDA graph */
	MXBPF_WORK_OF_OUTSIDE = 3, /* launches that no span enclosed */
	MXBPF_WORK_OF_UNKNOWN = 4, /* activities whose launch was not seen */
	/* launches whose owner has this Python stack, name and class; only `self` counts */
	MXBPF_WORK_OF_STACK = 5,
	MXBPF_WORK_OFS = 6,
};

/* Work for devices: launches, and the activities that they caused. */
struct mxbpf_gpu_work {
	__u64 launches;
	__u64 kernels, copies; /* SETs are neither */
	__u64 gpu_ns;	       /* sum of the activities' durations; those of several streams overlap */
	__u64 bytes;	       /* of COPY */
};

/*
 * Work that calls launched on devices. A launch belongs to the spans of its thread that enclose its start. One of them
 * has it as its own (`self`): the innermost operator, else the innermost call of another class, else the innermost
 * user annotation. nbuckets structs mxbpf_bucket follow: launches by latency. Since 1.5.
 */
struct mxbpf_agg_gpu_work {
	struct mxbpf_rec h;	     /* ts_ns: 0 */
	__u64 name_id;		     /* OF_CALLS, OF_STACK: of kind MXBPF_NAME_SPAN; else 0 */
	__u64 layer_id;		     /* OF_LAYER: of kind MXBPF_NAME_LAYER; else 0 */
	__u64 stack_id;		     /* OF_STACK: of kind MXBPF_NAME_STACK; else 0 */
	struct mxbpf_gpu_work total; /* of all launches that a span of the row encloses; each counts once */
	struct mxbpf_gpu_work self;
	/* Latency: from the start of a launch to the start of its first activity; of the launches in `self`. */
	__u64 latencies, latency_ns, latency_max_ns;
	__u32 graph; /* OF_GRAPH; else 0 */
	__u8 of;     /* enum mxbpf_gpu_work_of */
	__u8 cls;    /* OF_CALLS, OF_STACK: enum mxbpf_class; else 0 */
	__u8 user;   /* OF_CALLS, OF_STACK: 1: spans with MXBPF_SPAN_USER */
	__u8 pad[3];
	__u16 nbuckets;
	__u32 pad2;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agg_gpu_work) == 160);

/*
 * How busy a stream or a whole device was: lengths of unions of intervals. Copies and other work overlapped for
 * compute_ns + copy_ns - busy_ns. Since 1.5.
 */
struct mxbpf_agg_gpu_stream {
	struct mxbpf_rec h;		    /* ts_ns: 0 */
	__u64 count;			    /* activities without SYNC */
	__u64 busy_ns, compute_ns, copy_ns; /* compute: KERNEL and SET */
	__u64 first_ns, last_ns;	    /* start of the first activity, end of the last one */
	__u64 late; /* activities that came so late that the part of them before the end of others counts as idle */
	struct mxbpf_track track;
	__u8 whole; /* 1: the device; context and stream are 0 */
	__u8 pad[3];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agg_gpu_stream) == 88);

/* Why a device ran neither a kernel nor a set. Recordings store these numbers, so a new cause needs a new number. */
enum mxbpf_idle_cause {
	MXBPF_IDLE_BUSY = 0,   /* no cause: it ran a kernel or a set */
	MXBPF_IDLE_DATA = 1,   /* nothing was launched: the program waited for data */
	MXBPF_IDLE_PYTHON = 2, /* nothing was launched: the program was in no call of the runtime; 12 to 14 say more */
	MXBPF_IDLE_OPERATOR = 3,   /* nothing was launched: the program was in an operator or another call */
	MXBPF_IDLE_BLOCKED = 4,	   /* the same, and its thread slept: a lock, a disk, a page */
	MXBPF_IDLE_RUNQ = 5,	   /* the same, and its thread waited for a CPU */
	MXBPF_IDLE_LAUNCH = 6,	   /* a launch was under way: the call had begun, the work had not */
	MXBPF_IDLE_COPY = 7,	   /* only copies ran */
	MXBPF_IDLE_EVENT = 8,	   /* the work was launched into a stream that waited for an event */
	MXBPF_IDLE_COLLECTIVE = 9, /* the program waited for other processes */
	MXBPF_IDLE_HOST = 10,	   /* the program had waited for the device instead of launching more */
	MXBPF_IDLE_UNKNOWN = 11,   /* the launch or the calls of that time are not known */
	/* The program was in no call of the runtime, and: */
	MXBPF_IDLE_OWN_CPU = 12,     /* its thread was on a CPU */
	MXBPF_IDLE_OWN_BLOCKED = 13, /* its thread slept: a lock, a file, a pipe, the time it asked for */
	MXBPF_IDLE_OWN_RUNQ = 14,    /* its thread waited for a CPU */
	MXBPF_IDLE_CAUSES = 15,
};

/*
 * Time of a device by cause, and by the operator or call that the program was in. The rows of a device add up to
 * last_ns - first_ns. A row with `looks` and without a time tells the Python line of a cause. Since 2.1.
 */
struct mxbpf_agg_gpu_idle {
	struct mxbpf_rec h;	 /* ts_ns: 0 */
	__u64 name_id;		 /* of kind MXBPF_NAME_SPAN; 0: none */
	__u64 stack_id;		 /* of kind MXBPF_NAME_STACK; 0: unknown */
	__u64 ns, count;	 /* count: pieces of time */
	__u64 looks;		 /* looks at the thread that found it on this stack */
	__u64 first_ns, last_ns; /* BUSY: start of the first work, end of the last one; else 0 */
	__u32 device;
	__u8 cause; /* enum mxbpf_idle_cause */
	__u8 pad[3];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agg_gpu_idle) == 80);

/* A piece of time in which a device ran neither a kernel nor a set. The latest ones, for timelines. Since 2.2. */
struct mxbpf_gpu_idle {
	struct mxbpf_rec h; /* ts_ns: its start */
	__u64 dur_ns;
	__u64 name_id;	/* of kind MXBPF_NAME_SPAN; 0: none */
	__u64 stack_id; /* of kind MXBPF_NAME_STACK; 0: unknown */
	__u32 device;
	__u8 cause; /* enum mxbpf_idle_cause, not BUSY */
	__u8 pad[3];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_gpu_idle) == 48);

/* The time of a device in an iteration of its process. Since 2.2. */
struct mxbpf_gpu_step {
	struct mxbpf_rec h;	     /* ts_ns: start of the iteration, as in struct mxbpf_iteration */
	__u64 ns[MXBPF_IDLE_CAUSES]; /* less than the iteration, if that began before the first work of the window */
	__u32 device;
	__u32 pad;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_gpu_step) == 144);

#endif
