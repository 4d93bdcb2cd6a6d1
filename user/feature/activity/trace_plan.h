/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of the devices in a timeline: processes, tracks, and the launch of each activity. The first pass over the
 * records collects it. Records of devices and of threads come in any order, so the spans of a launch are known only
 * when all spans have been read: activity_plan_span() gets each span of the second pass.
 *
 * It needs 80 bytes for an activity, 72 for a launch or a node of a graph, and 48 for each different set of grid,
 * block, registers, shared memory and node of a graph, and twice that while a buffer grows.
 */
#ifndef FEATURE_ACTIVITY_TRACE_PLAN_H
#define FEATURE_ACTIVITY_TRACE_PLAN_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/hash.h"
#include "view/timeline/gpu_idle.h"
#include "mxbpf_graph.h"
#include "view/timeline/trace.h"

/* What many activities have in common. */
struct activity_shape {
	uint64_t graph_node;
	uint32_t graph, grid[3], static_shared, dynamic_shared;
	uint16_t block[3], registers;
	uint32_t tgid;	   /* 0: of no graph */
	uint32_t captured; /* 1 + place in launches, where it is the node that was captured; 0: unknown */
};

struct activity_slice {
	uint64_t start_ns, dur_ns, name_id, bytes, edge_id;
	struct mxbpf_track track;
	uint32_t tgid;
	uint32_t launch; /* 1 + place in launches; 0: none */
	uint32_t tid;	 /* in the timeline */
	uint32_t shape;	 /* place in shapes */
	uint16_t gpu;	 /* place in gpus */
	uint16_t domain;
	uint8_t cls, copy, from, to; /* SYNC: copy is enum mxbpf_sync_type */
};
_Static_assert(sizeof(struct activity_slice) == 80, "as documented above");

struct activity_launch {
	uint64_t ts_ns, edge_id;
	uint64_t span_start_ns; /* of the innermost span found so far; if span_tid is 0, there is none */
	uint64_t op_start_ns;	/* of the innermost span found so far that is no call of CUDA */
	uint32_t tgid, tid;
	uint32_t span_tid;    /* thread or lane on which the innermost span is drawn */
	uint32_t external_id; /* of the span of op_start_ns in the timeline; 0: none */
	uint16_t domain;      /* ACTIVITY_NODE: no launch, but a node of a graph, whose number is edge_id */
	/* ACTIVITY_NODE: the innermost operator of this thread, which begins at op_start_ns. */
	uint64_t name_id, stack_id;
};
#define ACTIVITY_NODE UINT16_MAX
_Static_assert(sizeof(struct activity_launch) == 72, "as documented above");

/* A device that a process used. */
struct activity_gpu {
	uint32_t tgid, device;
	uint32_t pid;	/* in the timeline */
	bool contexts;	/* the process used several contexts of the device */
	uint32_t about; /* 1 + place in abouts; 0: nothing is known */
};

struct activity_plan {
	struct buf slices;   /* struct activity_slice; after activity_plan_finish() by track and time */
	struct buf launches; /* struct activity_launch; after activity_plan_finish() by thread and time */
	struct buf shapes;   /* struct activity_shape */
	struct buf gpus;     /* struct activity_gpu, after activity_plan_finish() */
	const struct mxbpf_gpu_device *abouts; /* all devices that the processes can use; borrowed from the model */
	size_t nabouts;
	struct hash original_of; /* (node of a graph, tgid) -> the node that it is a copy of */
	struct hash shape_of;	 /* (graph node, hash of the others) -> 1 + place in shapes */
	uint64_t nunlaunched;	 /* activities with an edge whose launch is unknown */
	struct idle_trace idle;
};

/* Each record of MXBPF_ACTIVITY, MXBPF_LAUNCH and MXBPF_GRAPH_NODE. Returns 0 or -ENOMEM. */
int activity_plan_survey(struct activity_plan *p, const struct mxbpf_rec *r);
/* Between the passes. Returns 0 or -ENOMEM. */
int activity_plan_finish(struct activity_plan *p, const struct view_trace *t);
/* Each span of the second pass. external_id: see struct view_form. */
void activity_plan_span(struct activity_plan *p, const struct mxbpf_span *s, uint32_t drawn_tid, uint32_t external_id);
/* Returns the launch whose call is this span, or NULL. Borrowed. */
const struct activity_launch *activity_plan_launch(const struct activity_plan *p, const struct mxbpf_span *s);
/* Whether two activities share a stream and its track. Waits have tracks of their own, because they overlap kernels. */
bool activity_plan_same_track(const struct activity_slice *a, const struct activity_slice *b);
void activity_plan_fini(struct activity_plan *p);
/* trace_counters.c: writes counters of queues and of bytes that are moved. Returns 0 or -ENOMEM. */
int activity_counters(struct view_trace *t, const struct activity_plan *p);

#endif
