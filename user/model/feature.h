/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a feature of the model is, and what it may use. A feature folds records into a state of its own, from which its
 * sheets and its part of a recording are made.
 */
#ifndef MODEL_FEATURE_H
#define MODEL_FEATURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/hash.h"
#include "model/model.h"
#include "model/session.h"

typedef int (*mdl_fold_fn)(struct mdl *m, const struct mxbpf_rec *rec);

/*
 * What a feature makes of records, and what becomes of that. A function that is NULL does nothing. int: 0 or -ENOMEM.
 */
#define MDL_FEATURE_KINDS 4

/* The option that asks for a feature. Whether it was given is a bit of mdl_session.features. */
struct mdl_feature_option {
	const char *name;      /* "raised" */
	const char *help;      /* for --help and the manual */
	uint32_t bit;	       /* never another feature's, also of old recordings */
	bool of_events;	       /* it means nothing with --stats, which keeps no events */
	const char *not_agent; /* why it cannot be used with --agent; NULL: it can */
};

struct view_trace_feature; /* view/timeline/trace.h */

struct mdl_feature {
	const struct mdl_feature_option *option; /* NULL: it has none, or its row is in user/cmd/opts.c */
	const struct view_trace_feature *trace;	 /* its part of timelines; NULL: none, or in user/view/timeline/ */
	size_t state_bytes; /* of mdl_state(); 0: its state is in struct mdl, as that of the first features */
	struct {
		enum mxbpf_kind kind;
		mdl_fold_fn fold;
	} kinds[MDL_FEATURE_KINDS];						     /* of its own; kind 0: no more */
	int (*span)(struct mdl *m, struct mdl_row *row, const struct mxbpf_span *s); /* before it is in its row */
	int (*emit)(const struct mdl *m, struct buf *out);			     /* as records */
	int (*copy)(struct mdl *to, const struct mdl *from); /* what the tables of copy.c do not have */
	void (*move)(struct mdl *to, struct mdl *from);	     /* what is under way goes on in `to`, a new model */
	void (*fini)(struct mdl *m);			     /* not if the feature has no state yet */
};
/* Whether the user asked for it. */
bool mdl_asked(const struct mdl_session *s, const struct mdl_feature *f);

/* user/feature/registry.c: in the order in which their records stand in recordings; ends with NULL. */
#define MDL_FEATURES_MAX 32
extern const struct mdl_feature *const mdl_features[];

/* The feature's state in a model: zeros at first. NULL: there is none yet, and no memory for it. */
void *mdl_state(struct mdl *m, const struct mdl_feature *f);
const void *mdl_state_of(const struct mdl *m, const struct mdl_feature *f); /* NULL: nothing was folded */

/* Gives an id that has no text yet something to be shown as. 0 or -ENOMEM. */
int mdl_expect_name(struct mdl *m, uint64_t id);

/*
 * The row that is found by two words. If there is none, one of zeros is added, and *added says so. mdl_row_put:
 * `rows` owns rows by their addresses, which stay as they are. mdl_item_put: `items` has the rows one behind the other,
 * so an address holds until the next one is added. NULL: -ENOMEM.
 */
void *mdl_row_put(struct hash *index, struct buf *rows, uint64_t a, uint64_t b, size_t bytes, bool *added);
void *mdl_item_put(struct hash *index, struct buf *items, uint64_t a, uint64_t b, size_t bytes, bool *added);

/* Sums of numbers from a file, which may be anything: they stop at the top. Of rows and of records, whose __u64 is
 * another type than uint64_t. */
#define add_sat(sum, n)                                                                                                \
	do {                                                                                                           \
		if (__builtin_add_overflow(*(sum), n, sum))                                                            \
			*(sum) = UINT64_MAX;                                                                           \
	} while (0)

#define add_sat_any(sum, n)                                                                                            \
	do {                                                                                                           \
		const int64_t add_n = (n);                                                                             \
		if (__builtin_add_overflow(*(sum), add_n, sum))                                                        \
			*(sum) = add_n < 0 ? INT64_MIN : INT64_MAX;                                                    \
	} while (0)

/* The same of what has a sign. */
static inline void add_sat_signed(int64_t *sum, int64_t n)
{
	if (__builtin_add_overflow(*sum, n, sum))
		*sum = n < 0 ? INT64_MIN : INT64_MAX;
}

#endif
