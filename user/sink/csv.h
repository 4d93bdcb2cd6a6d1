/* SPDX-License-Identifier: Apache-2.0 */
/* A row of the one table, for the files that write it. */
#ifndef SINK_CSV_H
#define SINK_CSV_H

#include "sink/priv.h"

/* Cells are empty where a table has no such column. */
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
	BACKWARD_COUNT,
	BACKWARD,
	DEEPER_COUNT,
	DEEPER,
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
	OFF_CPU, /* then enum mxbpf_sched_what */
	OFF_LAST = OFF_CPU + MXBPF_SCHED_OTHER + 1,
	TEAM_THREADS,
	TEAM_THREADS_NS,
	TEAM_CPU,
	TEAM_RUNQ,
	TEAM_WORK,
	TEAM_LATE,
	TEAM_LATE_RUNQ,
	TEAM_BARRIER,
	TEAM_SPUN,
	KV_VALUES,
	KV_UNKNOWN,
	KV_SENT,
	KV_RECEIVED,
	START_BYTES,
	LIVE_BLOCKS,
	MEAN_BYTES,
	PEAK_UNIX,
	MARK_FIRST,
	MARK_LAST,
	VALUE_LAST,
	VALUE_MIN,
	VALUE_MAX,
	NCOLUMNS,
};

struct row {
	const char *table, *name;
	size_t name_len;
	uint32_t device;
	uint32_t tgid; /* PID; 0: the row is no single process's */
	uint64_t n[NCOLUMNS];
	bool filled[NCOLUMNS]; /* the number is there */
	bool below[NCOLUMNS];  /* below 0: what stands there is its magnitude */
	struct {
		const char *text;
		size_t len;
	} shapes[SNK_ARGS_LINES], stack, layer, group, unit, by, domain, call, within,
		key;			 /* by: of whom a row of kept_by and woken_by is */
	const struct snk_holder *holder; /* its scope and array; NULL */
	const char *state, *waits;	 /* STATE, WAITS_IN: of calls that are open; NULL */
	struct mdl_flops flops;
	struct mxbpf_counter_sum counters; /* spans 0: none */
};

static inline void fill(struct row *r, enum column c, uint64_t n)
{
	r->n[c] = n;
	r->filled[c] = true;
}

static inline void fill_signed(struct row *r, enum column c, int64_t n)
{
	fill(r, c, n < 0 ? -(uint64_t)n : (uint64_t)n);
	r->below[c] = n < 0;
}

/* Its last cells, of the window, are filled in. */
void csv_put(struct snk *s, struct row *r);

/* First and last moment of what has them. */
void csv_fill_extent(const struct snk *s, struct row *r, uint64_t first_ns, uint64_t last_ns);

/* csv_runtime.c */
int csv_lives(struct snk *s, const struct snk_lives *t);
int csv_kvs(struct snk *s, const struct snk_kvs *t);
int csv_held(struct snk *s, const struct snk_held *t);
int csv_marks(struct snk *s, const struct snk_marks *t);

/* csv_steps.c */
int csv_iterations(struct snk *s, const struct snk_iterations *t);

#endif
