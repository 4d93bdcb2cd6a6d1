/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of a timeline: what must be known of the whole recording before the first event can be written. It has the
 * threads, the spans that need a lane, the arrows from spans to operators, and the allocations in order of time. The
 * first pass over the records collects it, and the second pass, in the same order, uses it.
 *
 * It needs at most this much memory, and twice that while a buffer grows: 100 bytes for an edge and its operator (40
 * after they are joined), 72 for an allocation, 32 for a span in a lane, and 32 for each of the last VIEW_PLAN_OPEN_MAX
 * spans of a thread that are not nested in another span. Each span that has not ended needs 80 bytes more. With
 * `reorder`, each span needs 32 bytes more until view_plan_opens().
 */
#ifndef VIEW_CHROME_PLAN_H
#define VIEW_CHROME_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/hash.h"
#include "mxbpf_mark.h"
#include "mxbpf_table.h"

#define VIEW_PLAN_OPEN_MAX (1u << 18)

/* Lanes have thread ids above those of the kernel, which end at 2^22, and below 2^32, because Perfetto needs that. */
#define VIEW_PLAN_LANE_TID 1000000000u

/* A thread, or a lane: a track for spans that overlap other spans of their thread. */
struct view_plan_track {
	uint32_t tgid, tid;
	uint32_t lane;	   /* number of the lane in its process, from 1 on; 0: a thread */
	uint64_t busy_ns;  /* of a lane: the end of its last span */
	uint64_t known_ns; /* of a thread: spans that end before this time are forgotten */
	struct buf done;   /* of a thread, in the survey: struct done, spans that are not nested so far */
};

struct view_plan_alloc {
	uint64_t ts_ns, ordinal, addr;
	int64_t bytes;
	uint64_t total_bytes, pool_bytes; /* allocated and reserved after this, as the allocator says */
	uint32_t tgid, tid, device;
	bool counted; /* these are known */
};

struct view_plan {
	uint64_t first_ns; /* earliest record, 0 if none */
	uint64_t nspans;
	struct buf tracks;	    /* struct view_plan_track; after view_plan_finish() by pid, the main thread first */
	struct buf allocs;	    /* struct view_plan_alloc, by time after view_plan_finish() */
	uint64_t narrows;	    /* arrows: edges with both ends. Their ids are 1 to narrows. */
	uint64_t nedges, nrootless; /* all edges; those that began outside any span, which have no arrow */
	/* Set before the survey: spans of a thread do not come in the order of their ends, as calls of CUDA from CUPTI.
	 */
	bool reorder;

	/* private */
	struct hash track_of, waiting;
	size_t last_track;
	struct buf unordered, moments, edges, sources, arrows_in, moved, trims, opens;
	uint64_t nops;
	size_t source_pos, op_pos, moved_pos, trim_pos;
	uint64_t pos;
};

/* Each record of the first pass. Returns 0 or -ENOMEM. */
int view_plan_survey(struct view_plan *p, const struct mxbpf_rec *r);
/* Between the passes, before view_plan_finish(): the spans that have not ended. Returns 0 or -ENOMEM. */
int view_plan_opens(struct view_plan *p, const struct mxbpf_open *rows, size_t n);
/* Between the passes: joins edges, assigns lanes, sorts. Returns 0 or -ENOMEM. */
int view_plan_finish(struct view_plan *p);

/* The start of an arrow: a span and the id of an arrow that starts there. */
struct view_plan_source {
	uint64_t ordinal;
	uint64_t arrow; /* 0: no operator was found, so there is no arrow */
};

struct view_place {
	uint64_t ordinal; /* number of the span in the recording */
	uint32_t tid;	  /* thread or lane to draw on */
	bool late;	  /* starts together with an enclosing span that comes later: write it behind all other spans */
	/* The span must end this much earlier for readers that compute ends with doubles: before the end of the span
	 * that encloses it, and before the start of the next one. Other readers get the measured duration. */
	uint64_t back_ns;
	uint64_t arrow_in;			   /* id of the arrow that ends here; 0: none */
	const struct view_plan_source *arrows_out; /* borrowed from the plan */
	size_t narrows_out;
};

/* Returns where to draw the next span of the second pass. Call it once for each span, in order. */
struct view_place view_plan_place(struct view_plan *p, const struct mxbpf_span *s);

/*
 * Returns the i-th span that has not ended, with an outer span before those nested in it; NULL behind the last one. Of
 * *place, tid and back_ns are set. Write these spans before those that are late.
 */
const struct mxbpf_open *view_plan_open(const struct view_plan *p, size_t i, struct view_place *place);

void view_plan_fini(struct view_plan *p);

#endif
