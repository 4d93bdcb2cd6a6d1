/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/*
 * Nodes of CUDA graphs. Kernels of a graph are launched together, and a record of a kernel names its node. So a record
 * for each node says which thread captured it, and when: the operator is the one in which this thread was.
 */
#ifndef MXBPF_GRAPH_H
#define MXBPF_GRAPH_H

#include "mxbpf_track.h"

#define MXBPF_GRAPH_NODE ((enum mxbpf_kind)57) /* agent: a node was made, struct mxbpf_graph_node */
#define MXBPF_AGG_GPU_GRAPH                                                                                            \
	((enum mxbpf_kind)58) /* user: an operator's part of a graph, struct mxbpf_agg_gpu_graph                       \
			       */

/*
 * A node was captured, or copied. The graph that is executed is a copy of the one that was captured: its nodes have
 * other numbers, and it is their numbers that activities have. A node that is copied is told twice, first with
 * original = 0. Since 2.2.
 */
struct mxbpf_graph_node {
	struct mxbpf_rec h; /* ts_ns: when */
	__u64 node;	    /* its number in the process, as mxbpf_activity.graph_node */
	__u64 original;	    /* the node that it is a copy of; 0: none */
	__u32 tid;	    /* thread that made it */
	__u32 pad;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_graph_node) == 40);

/* How well the operator that captured a part of a graph is known. */
enum mxbpf_captured {
	MXBPF_CAPTURED_BY = 0,	    /* the calls of name_id, cls and user */
	MXBPF_CAPTURED_OUTSIDE = 1, /* the capture was seen, and no call enclosed it */
	MXBPF_CAPTURED_UNSEEN = 2,  /* the capture was not seen: it was before the window, or CUPTI does not tell */
};

/* Work of a graph that calls of one class and name have captured. Since 2.2. */
struct mxbpf_agg_gpu_graph {
	struct mxbpf_rec h;	   /* ts_ns: 0 */
	__u64 name_id;		   /* CAPTURED_BY: of kind MXBPF_NAME_SPAN; else 0 */
	struct mxbpf_gpu_work sum; /* launches: 0 */
	__u32 graph;
	__u8 captured; /* enum mxbpf_captured */
	__u8 cls;      /* CAPTURED_BY: enum mxbpf_class; else 0 */
	__u8 user;     /* CAPTURED_BY: 1: spans with MXBPF_SPAN_USER */
	__u8 pad;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_agg_gpu_graph) == 72);

#endif
