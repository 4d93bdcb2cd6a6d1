/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the files of user/model/ share. Other rooms may not include this header. */
#ifndef MODEL_PRIV_H
#define MODEL_PRIV_H

#include "base/hash.h"
#include "base/timed.h"
#include "model/feature.h"
#include "model/model.h"

#define TALLY_IDS (MXBPF_TALLY_UNKEYED + 1)

/* Spans and allocations of the window that is being fed. The buffers are kept from window to window. */
struct window {
	struct buf opens, closes;	     /* struct timed: a start and an end of each span; what: its class */
	struct buf allocs;		     /* struct timed; what: address of the record */
	struct buf spare;		     /* for timed_sort() */
	uint64_t newest_ns[MXBPF_CLASS_MAX]; /* latest end of a span by class; allocations are at CLASS_NONE */
};

/* The compiler refuses a larger kind: in folds[] of model.c as an index, and in struct mdl_feature as a bit-field. */
#define MDL_KINDS (1u << MDL_KIND_BITS)

/* The fold of a kind of records. fold NULL: the model skips the kind. */
struct kind_fold {
	mdl_fold_fn fold;
	const struct mdl_feature *feature; /* NULL: the fold is in model.c */
	const struct tbl_def *table;	   /* its records are rows of it; NULL: they are not */
};

/* Twice as many slots as features, so that a search ends soon. */
#define MDL_SLOT_BITS 6
#define MDL_SLOTS     (1u << MDL_SLOT_BITS)
_Static_assert(MDL_SLOTS >= 2 * MDL_FEATURES_MAX, "half of the slots stay empty");

struct feature_slot {
	const struct mdl_feature *feature;     /* NULL: the slot is empty */
	void *state;			       /* owned; NULL until mdl_state() makes it */
	struct tbl tables[MDL_FEATURE_TABLES]; /* def NULL: no rows yet */
};

struct mdl {
	struct feature_slot slots[MDL_SLOTS]; /* by the address of the feature */
	struct kind_fold kinds[MDL_KINDS];    /* by kind */

	/* The functions of features that are called for each span, without the features that have none. */
	int (*before_row[MDL_FEATURES_MAX])(struct mdl *m, struct mxbpf_span *s);
	int (*span[MDL_FEATURES_MAX])(struct mdl *m, struct mdl_row *row, const struct mxbpf_span *s);
	unsigned nbefore_row, nspan;

	struct hash row_index[MXBPF_CLASS_MAX]; /* (row id, tgid and device) -> struct mdl_row * */
	struct buf rows[MXBPF_CLASS_MAX];	/* struct mdl_row *, owned */
	struct buf reserved;			/* void *: memory for rows of mdl_copy_to(), owned */
	struct hash group_index;		/* row id -> index in groups */
	struct buf groups;			/* struct mxbpf_group */
	struct hash nrows;			/* tgid -> number of rows, see MDL_ROWS_MAX */
	struct hash text_bytes;			/* tgid -> bytes of texts, see MDL_TEXT_BYTES_MAX */
	uint64_t texts_left_out;
	size_t ngrouped;	  /* number of rows that have details, see MDL_GROUPED_MAX */
	bool tells_threads;	  /* each thread has rows of its own */
	bool tells_ranges;	  /* each range has rows of its own */
	uint64_t range_id;	  /* of the span that is folded, see mdl_in_range() */
	struct buf held;	  /* hold.c: records that wait, each behind a struct held */
	uint64_t held_newest_ns;  /* latest end of a record that was held */
	bool releases;		  /* hold_release() runs */
	bool without_devices;	  /* see mdl_without_devices() */
	bool tells_processes;	  /* a sum of processes keeps the rows of each process apart */
	struct hash mem_index;	  /* (tgid, device) -> struct mdl_mem_row * */
	struct buf mem_rows;	  /* struct mdl_mem_row *, owned */
	struct buf opens;	  /* struct mxbpf_open */
	struct hash names;	  /* (id, enum mxbpf_name_kind) -> struct name *, owned */
	struct hash threads;	  /* (tgid, tid) -> struct name *, owned */
	const struct mdl *lender; /* knows the names that this model lacks; borrowed, NULL: none does */
	uint64_t tallies[MXBPF_CLASS_MAX][TALLY_IDS];
	unsigned source; /* where the records of this window come from, see mdl_begin() */
	/* The newest moment in windows that are folded, as window.newest_ns, by source. */
	uint64_t folded_ns[MDL_SOURCES_MAX][MXBPF_CLASS_MAX];
	struct window window;
	unsigned summed; /* number of processes that this model is the sum of; 0: it is not a sum */
};

/* window.c. The records must stay valid until window_fold(). These functions return 0 or -ENOMEM. */
int window_span(struct mdl *m, const struct mxbpf_span *s);
int window_alloc(struct mdl *m, const struct mxbpf_alloc *a);
int window_fold(struct mdl *m);
void window_fini(struct window *w);

/*
 * features.c: calls the function of the same name of each feature. features_sum_kind() returns whether a feature adds
 * up its records of this kind itself. features_keep_process() returns whether the feature of a record has by_process.
 * features_fold_table() folds a record of kind MXBPF_TABLE, and features_fold_row() one that is a row of a table.
 */
void features_init(struct mdl *m);
void features_fini(struct mdl *m);
int features_window(struct mdl *m);
int features_fold_table(struct mdl *m, const struct mxbpf_rec *r);
/* Returns NULL if no feature has the table of a record of kind MXBPF_TABLE. */
const struct mdl_feature *features_of_table(const struct mxbpf_rec *r, const struct tbl_def **def);
int features_fold_row(struct mdl *m, const struct mxbpf_rec *r);
int features_alloc(struct mdl *m, const struct mxbpf_alloc *a);
int features_emit(const struct mdl *m, struct buf *out);
int features_emit_row(const struct mdl_row *row, struct buf *out);
void features_merge_row(struct mdl_row *to, const struct mdl_row *from);
void features_own_row(struct mdl_row *row);
int features_copy(struct mdl *to, const struct mdl *from);
bool features_sum_kind(const struct mdl *sum, const struct mxbpf_rec *r);
bool features_keep_process(const struct mdl *sum, const struct mxbpf_rec *r);
int features_sum(struct mdl *sum, const struct mdl *m);
int features_processes(const struct mdl *m, mdl_process_fn fn, void *ctx);

/* store.c: mdl_rows_copy() with memory for rows, which is used up first. NULL: there is none. */
int store_copy(struct hash *to_index, struct buf *to, const struct hash *index, const struct buf *rows, size_t bytes,
	       struct buf *reserved);

/* hold.c. hold_release() folds the records that are old enough, or all. 0, -ENOMEM. */
bool hold_wants(const struct mdl *m, const struct mxbpf_rec *r);
int hold_put(struct mdl *m, const struct mxbpf_rec *r);
int hold_release(struct mdl *m, bool all);

/* names.c. The functions that return int return 0 or -ENOMEM. */
int names_define(struct mdl *m, const struct mxbpf_name *n);
int names_emit(const struct mdl *m, struct buf *out);
int names_copy(struct mdl *to, const struct mdl *from);
void names_fini(struct mdl *m);

/* group.c. group_define() accepts a record of any version. group_find() returns NULL for the id of a name. */
int group_define(struct mdl *m, const struct mxbpf_group *g);
const struct mxbpf_group *group_find(const struct mdl *m, uint64_t id);
void groups_fini(struct mdl *m);

/* account.c */
void account_merge(struct mxbpf_account_sum *to, const struct mxbpf_account_sum *from);

/* row.c. The functions that return a pointer return NULL if out of memory. */
struct mdl_row *row_get(struct mdl *m, unsigned cls, uint64_t id, uint32_t tgid, uint32_t device);
struct mdl_row *row_of_span(struct mdl *m, const struct mxbpf_span *s);
/* Counts n calls of a row by its traits. */
void row_count_traits(struct mdl_row *r, uint64_t n);
struct mdl_mem_row *mem_row(struct mdl *m, uint32_t tgid, uint32_t device);

#endif
