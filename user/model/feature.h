/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Features of the model, and the functions that their folds may use. The fold of a feature turns records into a state
 * of its own. Its tables and its records in a recording come from that state. The model calls the functions of struct
 * mdl_feature and knows no feature by name.
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
#include "table/table.h"

/* Folds one record. Returns 0 or -ENOMEM. */
typedef int (*mdl_fold_fn)(struct mdl *m, const struct mxbpf_rec *rec);
/* An iteration that has ended. */
struct mdl_ended {
	uint32_t tgid;
	uint64_t start_ns, end_ns;
};

/* Takes the number of a process. Returns 0 or -ENOMEM. */
typedef int (*mdl_process_fn)(void *ctx, uint32_t tgid);

struct session;
struct ses_feature;    /* session/feature.h */
struct cmd_option;     /* cmd/option.h */
struct mxbpf_activity; /* mxbpf_track.h */
struct mxbpf_launch;
struct mxbpf_sched;	   /* mxbpf_sched.h */
struct view_trace_feature; /* view/timeline/trace.h */
struct win_work;	   /* window/window.h */

#define MDL_FEATURE_KINDS  11
#define MDL_FEATURE_TABLES 4
#define MDL_KIND_BITS	   7 /* the model has a table of all kinds: their numbers fit into so many bits */

/*
 * A feature. A function that is NULL is not called. Functions that return int return 0 or -ENOMEM. The model calls
 * window(), emit(), copy(), move(), sum(), processes() and fini() only for a model in which mdl_state() has made the
 * state; move() also for one that has rows of its tables.
 */
struct mdl_feature {
	/*
	 * Set in mdl_session.features if the user asked for it. Recordings keep it, so it is never reused for another
	 * feature. 0: another member of struct mdl_session says so, or it needs no asking.
	 */
	uint32_t bit;
	const struct cmd_option *option;	/* options.c; NULL: none */
	const struct ses_feature *session;	/* load.c: its part in a live session; NULL: none */
	const struct view_trace_feature *trace; /* its part of timelines; NULL: none */
	size_t state_bytes;			/* size of mdl_state(); 0: the feature keeps no state */
	bool of_devices;			/* `span` is for devices only, see mdl_without_devices() */
	bool by_process; /* sums of processes keep its rows apart if mdl_tell_processes() was called */

	/* The kinds of records that it folds, at most MDL_FEATURE_KINDS; kind 0 ends the list. */
	struct {
		unsigned kind : MDL_KIND_BITS; /* enum mxbpf_kind */
		mdl_fold_fn fold;
	} kinds[MDL_FEATURE_KINDS];

	/*
	 * Its tables. The model stores their rows, copies, sums and frees them, and writes and reads them in
	 * recordings. row_of: a kind of records that are rows themselves.
	 */
	struct {
		const struct tbl_def *def;	 /* NULL ends the list */
		unsigned row_of : MDL_KIND_BITS; /* enum mxbpf_kind; 0: none */
	} tables[MDL_FEATURE_TABLES];

	/* Sees a record that waits until the ranges around it are known. It is folded later. */
	void (*held)(struct mdl *m, const struct mxbpf_rec *rec);
	/* Changes a span before the model chooses the row for it. */
	int (*before_row)(struct mdl *m, struct mxbpf_span *s);
	/* Sees each span. `row` does not contain the span yet. */
	int (*span)(struct mdl *m, struct mdl_row *row, const struct mxbpf_span *s);
	/* See each device, each activity of one and each launch: feature/activity calls mdl_see_device() and so on. */
	int (*device)(struct mdl *m);
	int (*activity)(struct mdl *m, const struct mxbpf_activity *a);
	int (*launch)(struct mdl *m, const struct mxbpf_launch *l);
	/*
	 * Sees kernels, copies and sets that start before until_ns, in order: no such one is missing any more.
	 * UINT64_MAX: all that is known, because another model goes on from here.
	 */
	int (*settled)(struct mdl *m, const struct win_work *work, size_t n, uint64_t until_ns);
	/* Sees when a thread was off the CPU: feature/sched calls mdl_see_off_cpu(). */
	int (*off_cpu)(struct mdl *m, const struct mxbpf_sched *r);
	/* Sees each iteration in the window in which it ended: feature/steps calls mdl_see_iteration(). */
	int (*iteration)(struct mdl *m, const struct mdl_ended *it);
	/* Is called at the end of each window of records. */
	int (*window)(struct mdl *m);
	/* Sees each allocation that says who made it. Within a window they come in the order of time. */
	int (*alloc)(struct mdl *m, const struct mxbpf_alloc *a);

	/* The columns of a row that the feature fills: appends records, adds two rows, keeps the row's self part. */
	int (*emit_row)(const struct mdl_row *row, struct buf *out);
	void (*merge_row)(struct mdl_row *to, const struct mdl_row *from);
	void (*own_row)(struct mdl_row *row);

	/* Adds what is pending to copies of its tables, which outputs and recordings get. They are in the order of
	 * `tables`. */
	int (*finish)(const struct mdl *m, struct tbl *copies);
	/* Appends records that make the same state when they are folded into an empty model. */
	int (*emit)(const struct mdl *m, struct buf *out);
	/* Copies the state into a new model. docs/internals.md says what a copy may lack. */
	int (*copy)(struct mdl *to, const struct mdl *from);
	/* Moves what is not finished into a new model, which goes on with it from now_ns (CLOCK_MONOTONIC) on. */
	int (*move)(struct mdl *to, struct mdl *from, uint64_t now_ns);
	/* Adds the states of all processes. If it is NULL, sums fold the feature's records with process 0. */
	int (*sum)(struct mdl *sum, const struct mdl *m);
	/* Calls fn() for the process of each row. */
	int (*processes)(const struct mdl *m, mdl_process_fn fn, void *ctx);
	/* Frees what the state owns. The model frees the state itself. */
	void (*fini)(struct mdl *m);
};

/* Returns whether the user requested the feature. The feature must have a bit. */
bool mdl_asked(const struct mdl_session *s, const struct mdl_feature *f);

/* user/feature/registry.c: all features, in the order of their records in a recording. NULL ends the list. */
#define MDL_FEATURES_MAX 32
extern const struct mdl_feature *const mdl_features[];

/* Returns the feature's state in a model; it is zero-filled at first. Returns NULL if out of memory. */
void *mdl_state(struct mdl *m, const struct mdl_feature *f);
/* Returns the feature's state, or NULL if mdl_state() was never called for this model. */
const void *mdl_state_of(const struct mdl *m, const struct mdl_feature *f);

/* Returns a table of the feature, or NULL if it has no rows. `def` is one of f->tables. */
const struct tbl *mdl_table_of(const struct mdl *m, const struct mdl_feature *f, const struct tbl_def *def);
/* Returns the rows of a table in no order, *n their number, borrowed until the next is added. NULL: it has none. */
const void *mdl_table_rows(const struct mdl *m, const struct mdl_feature *f, const struct tbl_def *def, size_t *n);
/* Adds a row to the row with its keys. Ids of names in its keys get a placeholder. 0 or -ENOMEM. */
int mdl_table_add(struct mdl *m, const struct mdl_feature *f, const struct tbl_def *def, const void *row);
/*
 * Adds a row as mdl_table_add() does. Returns 1 + its index in the table, which does not change, or 0 if out of memory.
 */
uint32_t mdl_table_place(struct mdl *m, const struct mdl_feature *f, const struct tbl_def *def, const void *row);
/*
 * Returns the row with the keys of another one, borrowed until the next one is added. Its other values are 0 if there
 * was none. NULL: out of memory.
 */
void *mdl_table_row(struct mdl *m, const struct mdl_feature *f, const struct tbl_def *def, const void *like);
/* Copies the tables of a feature, which has no rows in `to`. 0 or -ENOMEM. */
int mdl_tables_copy(struct mdl *to, const struct mdl *from, const struct mdl_feature *f);

/*
 * Returns the tables of a feature with what is pending: the feature's own, or copies, if something can be. A table
 * without rows has def NULL. NULL: out of memory. The caller frees the copies in any case.
 */
const struct tbl *mdl_tables_finished(const struct mdl *m, const struct mdl_feature *f,
				      struct tbl copies[MDL_FEATURE_TABLES]);
void mdl_tables_fini(struct tbl copies[MDL_FEATURE_TABLES]);

/* Call these functions of all features. Return 0 or -ENOMEM. */
int mdl_see_device(struct mdl *m);
int mdl_see_off_cpu(struct mdl *m, const struct mxbpf_sched *r);
int mdl_see_iteration(struct mdl *m, const struct mdl_ended *it);
int mdl_see_activity(struct mdl *m, const struct mxbpf_activity *a);
int mdl_see_launch(struct mdl *m, const struct mxbpf_launch *l);
int mdl_see_settled(struct mdl *m, const struct win_work *work, size_t n, uint64_t until_ns);

/* In before_row(): the row of the span is that of the range with this name, if the model tells ranges apart. */
void mdl_in_range(struct mdl *m, uint64_t name_id);

/* Makes a placeholder text for an id of a span's name that has no text yet. Returns 0 or -ENOMEM. */
int mdl_expect_name(struct mdl *m, uint64_t id);

/* Adds n to what mdl_tally() returns. */
void mdl_tally_add(struct mdl *m, unsigned cls, enum mxbpf_tally_id id, uint64_t n);

/* Returns the row of a class by the id that mdl_group_id() gives, or NULL if no call was folded into it yet. */
struct mdl_row *mdl_row_find(const struct mdl *m, unsigned cls, uint64_t id, uint32_t tgid, uint32_t device);
/* Widens min_ns and max_ns of a row. Call it before the new calls are added to `count`. */
void mdl_row_widen(struct mdl_row *r, uint64_t min_ns, uint64_t max_ns);

/*
 * Stores. A store is a hash, which finds by two words, and a buffer. There are three forms:
 *
 * rows   The buffer has addresses of rows, and owns the rows. An address stays valid while the store lives. The hash
 *        has addresses, too.
 * items  The buffer has the items one behind the other. An address is valid until the next item is added. The hash has
 *        1 + the index of an item.
 * owned  A hash alone, which owns what its values are addresses of.
 */

/*
 * Returns the row or item for two words. If there is none, these functions add one of zeros and set *added. They return
 * NULL if out of memory.
 */
void *mdl_row_put(struct hash *index, struct buf *rows, uint64_t a, uint64_t b, size_t bytes, bool *added);
void *mdl_item_put(struct hash *index, struct buf *items, uint64_t a, uint64_t b, size_t bytes, bool *added);
/* Appends rows that are records of `bytes` bytes. Returns 0 or -ENOMEM. */
int mdl_rows_emit(const struct buf *rows, size_t bytes, struct buf *out);
/* Calls fn() for the process of each item. Items have `bytes` bytes and begin with struct mxbpf_rec. */
int mdl_items_processes(const struct buf *items, size_t bytes, mdl_process_fn fn, void *ctx);
/*
 * Copy a store into an empty one, in the same order. After -ENOMEM the copy is incomplete, but it can be freed.
 * mdl_owned_copy: dup returns a new item, or NULL if out of memory.
 */
int mdl_rows_copy(struct hash *to_index, struct buf *to, const struct hash *index, const struct buf *rows,
		  size_t bytes);
int mdl_items_copy(struct hash *to_index, struct buf *to, const struct hash *index, const struct buf *items);
int mdl_owned_copy(struct hash *to, const struct hash *from, void *(*dup)(const void *item));
/* Free a store, which is then empty. mdl_owned_fini: items are freed by free(). */
void mdl_rows_fini(struct hash *index, struct buf *rows);
void mdl_items_fini(struct hash *index, struct buf *items);
void mdl_owned_fini(struct hash *h);

/*
 * Histograms in records: the buckets that are not empty stand behind the head of the record. mdl_hist_fold() adds them.
 * mdl_hist_emit() appends a record: `head` begins with struct mxbpf_rec, and `nbuckets` is a member of the head. It
 * returns 0 or -ENOMEM.
 */
void mdl_hist_fold(uint64_t hist[MXBPF_HIST_BUCKETS], const struct mxbpf_bucket *buckets, unsigned n);
int mdl_hist_emit(const uint64_t hist[MXBPF_HIST_BUCKETS], void *head, size_t head_bytes, uint16_t *nbuckets,
		  struct buf *out);

/*
 * Sums that stop at the largest value instead of wrapping, because numbers of a file can be anything. These are macros
 * because the members of records are __u64, and those of rows are uint64_t.
 */
#define add_sat(sum, n)                                                                                                \
	do {                                                                                                           \
		if (__builtin_add_overflow(*(sum), n, sum))                                                            \
			*(sum) = UINT64_MAX;                                                                           \
	} while (0)

/* Adds a signed number to a signed sum of any 64-bit type. */
#define add_sat_any(sum, n)                                                                                            \
	do {                                                                                                           \
		const int64_t add_n = (n);                                                                             \
		if (__builtin_add_overflow(*(sum), add_n, sum))                                                        \
			*(sum) = add_n < 0 ? INT64_MIN : INT64_MAX;                                                    \
	} while (0)

static inline void add_sat_signed(int64_t *sum, int64_t n)
{
	if (__builtin_add_overflow(*sum, n, sum))
		*sum = n < 0 ? INT64_MIN : INT64_MAX;
}

#endif
