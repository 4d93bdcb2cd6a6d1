/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of an iteration: how its thread spent the time. */
#ifndef FEATURE_STEPS_PARTS_H
#define FEATURE_STEPS_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "model/session.h"
#include "mxbpf_event.h"
#include "mxbpf_step.h"

/* What a thread may wait for, while it is in no call. */
enum awaited {
	AWAITS_NOTHING,
	AWAITS_EXCHANGE, /* with other processes */
	AWAITS_PASS,	 /* a backward pass on other threads */
	AWAITED_MAX
};

/* A span that lies in an iteration, or a part of it does. */
struct piece {
	uint64_t start_ns, end_ns;
	uint32_t tid;	 /* 0: asynchronous, it does not occupy its thread */
	uint8_t part;	 /* enum mxbpf_step_part; MXBPF_STEP_PARTS: only its cost counts */
	uint8_t awaited; /* enum awaited */
	bool loader, busy;
	/* What watching cost it, by the estimates, without calls in it; and what it cost before it, see
	 * mxbpf_span_cost. */
	uint64_t self_cost_ns, before_cost_ns;
	uint64_t self_runq_ns; /* waiting for a CPU, without calls in it */
};

/* An iteration without its record. */
struct extent {
	uint64_t start_ns, end_ns;
	uint32_t tid;
	uint8_t told; /* enum mxbpf_step_what: what ended it */
	bool full;    /* pieces are missing, because there were too many */
	bool lost;    /* or because records are lost */
};

/*
 * Makes the record of an iteration from its spans. `pieces` has struct piece in any order, and may have pieces outside
 * the iteration. Returns 0 or -ENOMEM.
 */
int parts_make(const struct buf *pieces, uint32_t tgid, const struct extent *x, uint64_t nr,
	       struct mxbpf_iteration *it);

/* Returns what watching cost the iteration, by estimates; 0 if it is taken out already. */
uint64_t parts_cost(const struct mxbpf_iteration *it, const struct mdl_cost *cost);
/* Takes `factor` times as much out of the iteration's time and its parts, once. None of them becomes negative. */
void parts_take_cost(struct mxbpf_iteration *it, const struct mdl_cost *cost, double factor);

#endif
