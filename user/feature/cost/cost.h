/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What watching costs. The costs of rows and iterations are sums of estimates. cost_take() takes them out of the times,
 * scaled by what the session has measured at its end.
 */
#ifndef FEATURE_COST_H
#define FEATURE_COST_H

#include "model/feature.h"
#include "model/session.h"
#include "mxbpf_cost.h"

extern const struct mdl_feature feature_cost;
extern const struct ses_feature cost_session;

/*
 * Takes the cost out of the times of all rows and iterations, once. Call it at the end of a window; records that are
 * folded later are not corrected. Does nothing if the cost is not known. Returns 0 or -ENOMEM.
 */
int cost_take(struct mdl *m, const struct mdl_session *s);

/* Takes the cost out of the times of a single call. */
void cost_take_span(struct mxbpf_span *span, const struct mdl_session *s);

/*
 * Returns whether a row lacks calls because --max-overhead left out probes. of_many: the row has calls of many names (a
 * thread, a device).
 */
bool cost_is_partial(const struct mdl *m, const struct mdl_row *row, bool of_many);
bool cost_has_partial(const struct mdl *m); /* such rows can exist */
/* Probes of all names of a class were left out at some time. Of operators, those that end iterations may be among them.
 */
bool cost_lacks_class(const struct mdl *m, enum mxbpf_class cls);

/* partial.c: what the feature does with struct mxbpf_partial; see struct mdl_feature. */
struct cost_state {
	struct hash index;  /* (name_id, class) -> 1 + place in partial */
	struct buf partial; /* struct mxbpf_partial */
};
int cost_partial_fold(struct mdl *m, const struct mxbpf_rec *rec);
int cost_partial_emit(const struct mdl *m, struct buf *out);
int cost_partial_copy(struct mdl *to, const struct mdl *from);
int cost_partial_move(struct mdl *to, struct mdl *from, uint64_t now_ns);
void cost_partial_fini(struct mdl *m);

/* Iterations with and without watching, of the process with the most time in iterations. */
struct cost_iterations {
	uint64_t n;
	uint64_t watched_ns, unwatched_ns; /* on average; unwatched is an estimate */
};
/* Returns n 0 if there are none, or if the cost was not taken out. Call it after cost_take(). */
struct cost_iterations cost_of_iterations(struct mdl *m);
/*
 * Returns by how much watching slows the job down: in permille of an iteration without it, or else of the time that the
 * busiest thread has without it. 0 if the cost is not known.
 */
uint32_t cost_permille(struct mdl *m, const struct mdl_session *s);

#endif
