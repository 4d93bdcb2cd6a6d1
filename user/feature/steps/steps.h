/* SPDX-License-Identifier: Apache-2.0 */
/* Iterations of the training loop. */
#ifndef FEATURE_STEPS_H
#define FEATURE_STEPS_H

#include "model/feature.h"
#include "model/session.h"
#include "mxbpf_gauge.h"
#include "mxbpf_step.h"

extern const struct mdl_feature feature_steps;
extern const struct ses_feature steps_session;
extern const struct cmd_option steps_option;
extern const struct view_sheet sheet_steps_loops, sheet_steps_slowest;
extern const struct view_trace_feature steps_trace;

/*
 * Returns the *n latest iterations, ordered by process, thread and time; at least the last 65,536. Call it at the end
 * of a window: it ends an iteration at the last call that can be its end.
 */
const struct mxbpf_iteration *steps_iterations(struct mdl *m, size_t *n);
/*
 * Appends struct mxbpf_iteration of each iteration that has ended, in no order, and does not change the model. pending:
 * also those that steps_iterations() would end. Returns 0 or -ENOMEM.
 */
int steps_list(const struct mdl *m, bool pending, struct buf *out);
/* The moment at which an iteration ended, also after the cost was taken out of its duration. ns of CLOCK_MONOTONIC. */
static inline uint64_t steps_end_ns(const struct mxbpf_iteration *it)
{
	return it->h.ts_ns + (it->raw_ns ? it->raw_ns : it->dur_ns);
}
/* Returns the iteration in which a moment lies, of n that are in order of time; NULL: in none. */
const struct mxbpf_iteration *steps_at(const struct mxbpf_iteration *it, size_t n, uint64_t ns);
/* Number of the first iteration of a loop in this model: those before belong to an earlier interval. */
uint64_t steps_begun(const struct mdl *m, uint32_t tgid, uint32_t tid);
/* Takes the cost of watching out of the iterations that have ended. Returns 0 or -ENOMEM. */
int steps_take_cost(struct mdl *m, const struct mdl_cost *cost);
/*
 * From now on operators are recorded in slices only, or all of them again. Optimizers that are such operators do not
 * end iterations then; backward passes do.
 */
void steps_sliced(struct mdl *m, bool sliced);
/*
 * What ends iterations of a process is not seen for a while, so its next one begins with the first end after that.
 * Iterations with a part of this time are not kept: what made them much longer was recorded, or the end of the one
 * before was not seen.
 */
void steps_gap(struct mdl *m, uint32_t tgid, uint64_t from_ns, uint64_t to_ns);
/* Notes a time in which all calls of a process were recorded. Returns 0 or -ENOMEM. */
int steps_seen(struct mdl *m, uint32_t tgid, uint64_t from_ns, uint64_t to_ns);
/* Iterations that do not lie in such a time have no parts: what their calls took is not known. Returns 0 or -ENOMEM. */
int steps_only_seen(struct mdl *m);
/* What spans with this name say about iterations. */
enum steps_sign {
	STEPS_NO_SIGN,
	STEPS_ENDS,	/* the end of an optimizer's step */
	STEPS_CONFIRMS, /* the next backward pass */
};
enum steps_sign steps_sign_of(const char *name);
/* Returns whether spans with this name exchange data with other processes, from start to end. */
bool steps_is_exchange(const struct mdl *m, uint64_t name_id);
/* Returns whether spans with this name wait for data. */
bool steps_is_data(const struct mdl *m, uint64_t name_id);
/* The parts of an iteration for programs: "data", "wait", "kvstore", "inline", "api", "outside". */
extern const char *const steps_parts[MXBPF_STEP_PARTS];
/* A part of an iteration for people: "waiting for data", "in operators". python: the program is in Python. */
const char *steps_part_words(unsigned part, bool python);
/* Sorts the parts that make up at least a hundredth of all_ns, the largest first. Returns how many they are. */
unsigned steps_large_parts(const uint64_t part_ns[MXBPF_STEP_PARTS], uint64_t all_ns, uint8_t order[MXBPF_STEP_PARTS]);
/* Notes where a pause of the session ended, as a reading of the machine says. Returns 0 or -ENOMEM. */
int steps_resumed(struct mdl *m, const struct mxbpf_gauge *g);

#endif
