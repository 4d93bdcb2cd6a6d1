// SPDX-License-Identifier: Apache-2.0
/* Iterations as rows. */
#include "sink/csv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void put_loop(struct snk *s, const struct snk_loop *l)
{
	struct row r = {.table = "iterations", .name = snk_tolds[l->told], .name_len = strlen(snk_tolds[l->told])};
	unsigned i;

	r.tgid = l->tgid;
	fill(&r, COUNT, l->count - l->missing);
	fill(&r, TOTAL, l->total_ns);
	fill(&r, MIN, l->min_ns);
	fill(&r, MAX, l->max_ns);
	fill(&r, AVG, l->total_ns / (l->count - l->missing));
	fill(&r, P50, l->p50_ns);
	fill(&r, P99, l->p99_ns);
	csv_put(s, &r);
	if (l->missing) { /* the first, of which nothing else is known */
		struct row missing = {
			.table = "iterations.missing", .name = r.name, .name_len = r.name_len, .tgid = l->tgid};

		fill(&missing, COUNT, l->missing);
		csv_put(s, &missing);
	}
	for (i = 0; i <= MXBPF_STEP_PARTS && l->known; i++) {
		const char *name = i < MXBPF_STEP_PARTS ? snk_parts[i] : "operators";
		struct row part = {.table = "iterations.part", .name = name, .name_len = strlen(name), .tgid = l->tgid};

		fill(&part, COUNT, l->known);
		fill(&part, TOTAL, i < MXBPF_STEP_PARTS ? l->parts[i].total_ns : l->busy_ns);
		if (i < MXBPF_STEP_PARTS) {
			fill(&part, P50, l->parts[i].p50_ns);
			fill(&part, MAX, l->parts[i].max_ns);
		}
		csv_put(s, &part);
	}
}

/* The table is "iterations.slowest" and what of it was the longest beyond its median; its name is its number. */
int csv_iterations(struct snk *s, const struct snk_iterations *t)
{
	char table[64], nr[24];
	size_t i;

	for (i = 0; i < t->nloops; i++)
		put_loop(s, &t->loops[i]);
	for (i = 0; i < t->nslowest; i++) {
		const struct mxbpf_iteration *it = t->slowest[i];
		const struct snk_loop *l = snk_loop_of(t, it);
		struct row r = {.table = table, .name = nr, .tgid = it->h.tgid};
		uint64_t ns;
		int part = snk_longer(l, it, &ns);

		snprintf(table, sizeof(table), "iterations.slowest%s%s", part < 0 ? "" : ".",
			 part < 0 ? "" : snk_parts[part]);
		r.name_len = (size_t)snprintf(nr, sizeof(nr), "%" PRIu64, (uint64_t)it->nr);
		fill(&r, COUNT, 1);
		fill(&r, TOTAL, it->dur_ns);
		fill(&r, P50, l->p50_ns);
		fill(&r, EVENT_START, s->in->session->start_unix_ns + (it->h.ts_ns - s->in->session->start_mono_ns));
		fill(&r, EVENT_THREAD, it->tid);
		csv_put(s, &r);
	}
	return 0;
}
