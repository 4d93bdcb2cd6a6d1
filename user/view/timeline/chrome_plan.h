/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must be known of a whole recording before a timeline of it can be written: threads, which spans need a lane of
 * their own, which span caused which operator, allocations in order of time. Learnt in the survey, asked in the second
 * pass over the same records in the same order.
 *
 * Memory, at worst and twice that while a buffer grows: 100 bytes an edge with its operator (40 once they are joined),
 * 48 an allocation, 32 a span in a lane, 32 a span for the last VIEW_PLAN_OPEN_MAX spans of a thread that lie in no
 * other.
 */
#ifndef VIEW_CHROME_PLAN_H
#define VIEW_CHROME_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/hash.h"
#include "mxbpf_mark.h"

#define VIEW_PLAN_OPEN_MAX (1u << 18)

/* Lanes have thread ids that no kernel gives (the largest is 2^22) and that Perfetto takes (below 2^32). */
#define VIEW_PLAN_LANE_TID 1000000000u

/* A thread, or a lane for spans that overlap those of their thread. */
struct view_plan_track {
	uint32_t tgid, tid;
	uint32_t lane;	   /* 1, 2, ... within its process; 0: a thread */
	uint64_t busy_ns;  /* lanes: until when taken */
	uint64_t known_ns; /* threads: spans that end before it are forgotten */
	struct buf done;   /* threads: struct done of the survey, spans that lie in no other so far */
};

struct view_plan_alloc {
	uint64_t ts_ns, ordinal, addr;
	int64_t bytes;
	uint32_t tgid, tid, device;
};

struct view_plan {
	uint64_t first_ns; /* earliest record, 0 if none */
	uint64_t nspans;
	struct buf tracks; /* struct view_plan_track; after view_plan_finish() processes by pid, main thread first */
	struct buf allocs; /* struct view_plan_alloc, by time after view_plan_finish() */
	uint64_t narrows;  /* edges that have both ends: their ids are 1..narrows */
	uint64_t nedges, nrootless; /* all; those handed over outside any span, which make no arrow */

	/* private */
	struct hash track_of, waiting;
	size_t last_track;
	struct buf moments, edges, sources, arrows_in, moved, trims;
	uint64_t nops;
	size_t source_pos, op_pos, moved_pos, trim_pos;
	uint64_t pos;
};

/* 0, -ENOMEM. */
int view_plan_survey(struct view_plan *p, const struct mxbpf_rec *r);
/* Between the passes: joins, assigns, sorts. 0, -ENOMEM. */
int view_plan_finish(struct view_plan *p);

/* One end of an arrow: the span at `ordinal` begins arrow `arrow`. */
struct view_plan_source {
	uint64_t ordinal;
	uint64_t arrow; /* 0: its operator is missing */
};

struct view_place {
	uint64_t ordinal;  /* of the span in the recording */
	uint32_t tid;	   /* thread or lane to draw on */
	bool late;	   /* begins with a span around it that comes later: to be written behind all others */
	uint64_t back_ns;  /* that its end is to be shown earlier, to be before that of one around it and the start of
			      the next: to Kineto's readers, who nest by doubles; others get durations as measured */
	uint64_t arrow_in; /* id of the arrow that ends here; 0 none */
	const struct view_plan_source *arrows_out; /* borrowed from the plan */
	size_t narrows_out;
};

/* Where the next span of the second pass goes: to be called for every span, in order. */
struct view_place view_plan_place(struct view_plan *p, const struct mxbpf_span *s);

void view_plan_fini(struct view_plan *p);

#endif
