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
	MXBPF_ACTIVITY_MAX = 4,
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
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_activity) == 64);

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
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_launch) == 32);

/* Activities of one process, device, class and name, added up by user space. */
struct mxbpf_agg_activity {
	struct mxbpf_rec h; /* ts_ns: 0 */
	__u64 name_id;
	__u64 count;
	/* Sum and extremes of dur_ns. Activities of several streams overlap, so a total can exceed the window. */
	__u64 total_ns, min_ns, max_ns;
	__u64 bytes;
	__u64 unlaunched; /* of count: activities with an edge that no record seen so far began */
	__u32 device;
	__u8 cls; /* enum mxbpf_activity_class */
	__u8 pad[3];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agg_activity) == 80);

#endif
