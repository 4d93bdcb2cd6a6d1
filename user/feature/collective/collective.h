/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of NCCL and gloo: their size and bandwidth, who came last, and what overlapped them. */
#ifndef FEATURE_COLLECTIVE_H
#define FEATURE_COLLECTIVE_H

#include "model/feature.h"
#include "mxbpf_collective.h"
#include "mxbpf_track.h"

extern const struct mdl_feature feature_collective;
extern const struct view_sheet sheet_collective, sheet_collective_ranks, sheet_collective_overlap;
extern const struct view_trace_feature collective_trace;

/* Append struct mxbpf_agg_collective and struct mxbpf_agg_overlap in no order. Return 0 or -ENOMEM. */
int collective_rows(const struct mdl *m, struct buf *out);
int collective_overlaps(const struct mdl *m, struct buf *out);

/* One process's part of a collective, as it was matched with those of others. */
struct collective_part {
	const struct mxbpf_collective *c;
	uint64_t group;	  /* of its processes; 0: no other part was found */
	uint64_t seq;	  /* number of the collective in the group since the window began, from 1 on */
	uint32_t members; /* of the group */
	uint32_t last;	  /* the process that began last; 0 in operations that do not wait for all */
	bool is_last;	  /* this part began last */
	uint64_t wait_ns; /* until that one began; 0 in operations that do not wait for all */
	uint64_t late_ns; /* is_last: from the median start of the others to its own */
	uint64_t move_ns; /* from the last start to the last end */
	uint64_t bytes;	  /* as nccl-tests count them */
	/* What one of the parts says, as in struct mxbpf_agg_collective. */
	uint64_t comm;
	uint32_t root, ranks;
	uint8_t reduction, source;
};
/*
 * Appends struct collective_part of the last collectives. Their `c` are in `events`, which the caller frees behind
 * them. Returns 0 or -ENOMEM.
 */
int collective_parts(const struct mdl *m, struct buf *events, struct buf *out);

/*
 * ---- fold_sums.c: what tables and findings show. The functions that return int sort the rows of collective_rows(),
 * and append. They return 0 or -ENOMEM.
 */

/* Collectives of one operation, size and group. */
struct collective_sum {
	struct mxbpf_agg_collective all; /* of all processes; h.tgid is one of them, the only one without a group */
	uint64_t calls;
	uint64_t each_ns, wait_ns, move_ns; /* of a part, on average; wait and move of matched parts */
	double algorithm, bus;		    /* bytes per second; 0: not known */
	uint32_t last_tgid;		    /* the process that began last most often; 0: not known */
	uint64_t last, late_ns;		    /* of that process */
};
int collective_sums(struct buf *rows, struct buf *out);
/* Adds what is summed. The other members stay. */
void collective_merge(struct mxbpf_agg_collective *to, const struct mxbpf_agg_collective *from);
/* Struct mxbpf_agg_collective with the sums of all operations of a group that wait for all, for each part of it. */
int collective_ranks(struct buf *rows, struct buf *out);
/* The processes of a group, uint32_t each, in the order of their numbers. */
int collective_members(const struct buf *rows, uint64_t group, struct buf *out);

/* ---- names.c: who it was */

/*
 * Returns the number of processes in a communicator, by what a source says (ranks) and by those that were seen
 * (members). 0: it is not known, because processes of the job that were not recorded may be in it.
 */
uint32_t collective_size(const struct mdl_session *ss, uint32_t ranks, uint32_t members);

#define COLLECTIVE_TEXT 64
/* Writes "rank 3", "worker 3", or "process 1234" if it has no rank. Returns text. */
const char *collective_process(const struct mdl_session *ss, uint32_t tgid, char text[COLLECTIVE_TEXT]);
/* Writes the processes of a row's group: "ranks 0-3,8", or "4 processes". Returns 0 or -ENOMEM. */
int collective_group(const struct mdl_session *ss, const struct buf *rows, const struct mxbpf_agg_collective *row,
		     char text[COLLECTIVE_TEXT]);

/* ---- ops.c */

extern const char *const collective_backends[MXBPF_BACKENDS];
extern const char *const collective_ops[MXBPF_COLLECTIVE_OPS];
/* Returns "sum" of what mxbpf_agg_collective.reduction says; NULL: none. */
const char *collective_reduction(unsigned reduction);
/* Returns the operation that a call ("gloo:all_reduce") or a kernel (with kernel set) does; *backend 0: none. */
enum mxbpf_collective_op collective_op(const char *name, size_t len, bool kernel, uint8_t *backend);
/* Each process waits for all others, so that no part can end before the last has begun. */
bool collective_waits(unsigned op);
/* A part of it does not say which process has the other one. */
bool collective_is_apart(unsigned op);
/* Bytes of a collective as nccl-tests count them, from those of one process. */
uint64_t collective_bytes(unsigned op, uint64_t bytes, uint32_t members);
/* What the algorithm bandwidth is multiplied with to give the bus bandwidth. */
double collective_bus_factor(unsigned op, uint32_t members);
/* Bytes of the arrays of a call, by the text of its arguments; MXBPF_COLLECTIVE_UNSIZED if a part is not known. */
uint64_t collective_args_bytes(const char *args, size_t len);

#endif
