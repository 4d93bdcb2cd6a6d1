/* SPDX-License-Identifier: Apache-2.0 */
/* A row of the one table, for the files that write it. */
#ifndef VIEW_CSV_H
#define VIEW_CSV_H

#include <string.h>

#include "view/sheet.h"
#include "view/priv.h"

/* What is filled by hand. Cells are empty where a table has no such column. */
enum column {
	TABLE,
	NAME,
	DEVICE,
	COUNT,
	TOTAL,
	SELF,
	MIN,
	MAX,
	AVG,
	P50,
	P99,
	ALLOCS,
	FREES,
	ALLOC_BYTES,
	SELF_ALLOC_BYTES,
	FREE_BYTES,
	LIVE_BYTES,
	PEAK_BYTES,
	STATE,
	WAITS_IN,
	START,
	DURATION,
	ANNOTATION,
	PID,
	EVENT_START,
	EVENT_THREAD,
	EVENT_UNWOUND,
	ON_CPU,
	RUNQ,
	BLOCKED,
	ELSEWHERE,
	NVCSW,
	NIVCSW,
	MINFLT,
	MAJFLT,
	MIGRATED,
	CPU,
	END_CPU,
	FIRST,
	LAST,
	DIFFERENCE,
	LEAST,
	MOST,
	MEAN,
	MARK_FIRST,
	MARK_LAST,
	SHAPES, /* in the order of enum view_args_line without strides */
	TYPES,
	OUT_SHAPES,
	OUT_TYPES,
	FLOPS, /* several columns */
	STACK,
	LAYER,
	COUNTERS, /* several columns */
	GROUP,
	UNIT,
	DOMAIN,
	NCOLUMNS,
};
#define CSV_NEW_MAX 96 /* columns that sheets alone have */
#define CSV_CELLS   (NCOLUMNS + CSV_NEW_MAX)

struct row {
	const char *table;
	uint32_t device;
	uint32_t tgid; /* PID; 0: the row is no single process's */
	struct cell {
		enum { EMPTY, NUMBER, BELOW, TEXT, LINES } is; /* BELOW: a magnitude below 0 */
		uint64_t n;
		const char *text;
		size_t len;
	} cells[CSV_CELLS];
	struct mdl_flops flops;
	struct mxbpf_counter_sum counters; /* spans 0: none */
};

static inline void fill(struct row *r, unsigned c, uint64_t n)
{
	r->cells[c] = (struct cell){.is = NUMBER, .n = n};
}

static inline void fill_signed(struct row *r, unsigned c, int64_t n)
{
	r->cells[c] = (struct cell){.is = n < 0 ? BELOW : NUMBER, .n = n < 0 ? -(uint64_t)n : (uint64_t)n};
}

static inline void fill_text(struct row *r, unsigned c, const char *text, size_t len)
{
	r->cells[c] = (struct cell){.is = TEXT, .text = text, .len = len};
}

static inline void fill_word(struct row *r, unsigned c, const char *text)
{
	fill_text(r, c, text, strlen(text));
}

/* Its last cells, of the window, are filled in. */
void csv_put(struct view *s, struct row *r);

/* First and last moment of what has them. */
void csv_fill_extent(const struct view *s, struct row *r, uint64_t first_ns, uint64_t last_ns);

#endif
