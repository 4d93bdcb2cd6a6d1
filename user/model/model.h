/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model turns records into rows of tables. It works on records alone: it needs no BPF, no target process and no
 * clock. Live sessions and `report` both use it. The rows of a feature are in user/feature/NAME/NAME.h.
 *
 * All times are in ns. Unless a comment says otherwise, times are CLOCK_MONOTONIC, and a pointer that a function
 * returns is borrowed: it is valid until records are folded into the model again.
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "mxbpf_event.h"
#include "mxbpf_table.h"
#include "records/kinds.h"

struct mdl;
struct mdl_session;
struct nvml_list;

/* A finding: what limits the speed of a job in an interval. */
struct mdl_found {
	const char *job; /* its labels, as in metrics */
	const char *key; /* of the finding, as in struct finding */
	double share;	 /* share of the interval's time that it explains */
	const char *text;
};

/* An interval of a session: its model, and the processes that are watched at its end. */
struct mdl_interval {
	const struct mdl_session *session;
	struct mdl *model;
	const pid_t *pids;
	size_t npids;
	uint64_t now_ns;	       /* its end */
	const struct nvml_list *gpus;  /* what the driver says of this interval; NULL: it was not asked */
	const struct mdl_found *found; /* findings of each job; NULL: nobody has looked for them */
	size_t nfound;
};

/* Classes of spans in the order of their tables. The titles of the tables are in struct mdl_session. */
#define MDL_NCLASSES (MXBPF_CLASS_MAX - 1)
struct mdl_class {
	enum mxbpf_class cls;
	const char *category; /* the category of its events in traces */
	bool rare;	      /* its table is shown only if it has rows */
	const char *title;    /* title of the table of a class that belongs to no runtime; NULL: the session has it */
};
extern const struct mdl_class mdl_classes[MDL_NCLASSES];
const char *mdl_category(unsigned cls);
/* Returns the title of the table of a class, or NULL if neither the runtime nor mxbpf has one. */
const char *mdl_class_title(const struct mdl_session *s, unsigned cls);

/* A column that feature/flops fills: estimates of floating-point operations. */
struct mdl_flops {
	uint64_t calls, ns, ops; /* calls with an estimate, their total time, their operations */
	uint64_t unknown;	 /* calls of an operator with a formula, but without an estimate */
};

/* A column that feature/slow fills, see there. */
struct mdl_slow_limit {
	uint64_t median_ns; /* of the row, when it was computed last */
	uint64_t from_ns;   /* a call of at least this duration is slow */
	uint64_t due;	    /* both are computed again when the row has so many calls */
};

/* Columns that feature/cost fills for calls in slices: sums over slices, updated at the end of each. */
struct mdl_sampled {
	uint64_t count, self_ns; /* of the row when the last slice ended */
	double count_squares, self_squares;
	/* Products with the slice's iterations, and with its time. */
	double count_bases[2], self_bases[2];
};

/* What was added to a row for the calls between slices. All 0: the row has what was recorded. */
struct mdl_estimate {
	uint64_t count, total_ns, self_ns;
	uint64_t count_error, self_error_ns; /* half the 95 % confidence intervals of the row's count and self_ns */
};

/* A row of calls of one class. */
struct mdl_row {
	uint32_t tgid;
	uint32_t device; /* MXBPF_DEVICE_TYPE(), MXBPF_DEVICE_ID() */
	uint32_t tid;	 /* 0: calls of all threads */
	uint8_t cls;	 /* enum mxbpf_class */
	uint64_t id;	 /* mdl_group_id() */
	uint64_t name_id, args_id, stack_id, layer_id, range_id;
	uint8_t traits;		 /* enum mxbpf_trait; a merged row has those of the first row */
	uint64_t nparts, nbulks; /* calls with MXBPF_TRAIT_PART, with MXBPF_TRAIT_BULK */
	uint64_t count, total_ns, self_ns, min_ns, max_ns;
	bool many; /* mdl_row_own() was called: min_ns, max_ns and hist are of calls that can be nested in one another
		    */
	uint64_t first_ns,
		last_ns; /* user annotations: first start and last end; 0: not known. feature/marks fills them. */
	int64_t alloc_bytes, self_alloc_bytes; /* allocated less freed; 0 in recordings that do not have it */
	struct mxbpf_account_sum account;      /* if mdl_session.account is set; see mdl_on_cpu_ns() */
	struct mxbpf_counter_sum counters;     /* of the events in mdl_session.counters; feature/counters fills it */
	/* The cost of watching these calls, and their times before it was subtracted; feature/cost fills them. */
	uint64_t cost_ns, self_cost_ns;	    /* of total_ns and self_ns, by the estimates of the session */
	uint64_t raw_total_ns, raw_self_ns; /* 0: nothing was subtracted */
	struct mdl_sampled sampled;
	struct mdl_estimate estimate; /* the histogram and raw times are without it, everything else is with it */
	struct mdl_flops flops;	      /* only in rows that flops_add() was called for */
	struct mdl_slow_limit slow;
	uint64_t hist[MXBPF_HIST_BUCKETS]; /* number of calls by duration, see mxbpf_bucket() */
};

/* Returns the mean duration of a call, if the row has not `many`. */
uint64_t mdl_row_avg(const struct mdl_row *r);
/* Returns the time on CPU: the total time without run-queue wait, blocked time and time of other threads. */
uint64_t mdl_on_cpu_ns(const struct mdl_row *r);
/* Adds the account of a span, if it has one. */
void mdl_account_add(struct mxbpf_account_sum *to, const struct mxbpf_span *s);
/* Returns a percentile of durations: the middle of a bucket, within min_ns and max_ns. `fraction` is 0.5 for p50. */
uint64_t mdl_percentile(const struct mdl_row *r, double fraction);
/* Returns false if only sums and extremes of the row are known: then its percentiles say nothing. */
bool mdl_has_spread(const struct mdl_row *r);
/* Returns a percentile of a histogram of durations. */
struct mdl_extent {
	uint64_t count, min_ns, max_ns;
};
uint64_t mdl_hist_percentile(const uint64_t hist[MXBPF_HIST_BUCKETS], const struct mdl_extent *of, double fraction);
/* Returns the lower bound of a bucket, in ns. */
uint64_t mdl_bucket_low(unsigned index);

/*
 * A row with details (shapes, stack, layer or thread) takes 2.7 KB. Calls that need more than MDL_GROUPED_MAX such rows
 * go into the row of their name, and MXBPF_TALLY_UNGROUPED counts them.
 */
#define MDL_GROUPED_MAX (1u << 14)
/* A process that has more rows than this has one row of each class for all further names, "[more names]". */
#define MDL_ROWS_MAX (1u << 15)
/* Bytes of texts of a process that are kept. Rows of other texts have a number for a name. */
#define MDL_TEXT_BYTES_MAX (64u << 20)
/* Computes the id of a row from all members but h and id. It is name_id if the others are 0. */
uint64_t mdl_group_id(const struct mxbpf_group *g);

/* Adds `from` to `to`, which keeps its name and its process. */
void mdl_row_merge(struct mdl_row *to, const struct mdl_row *from);
/*
 * Keeps only the self part of a row. A row of several names (of a thread, a device or a layer) needs it, because the
 * total time of nested calls would be counted twice. The total time becomes self_ns, the account and the memory become
 * those outside nested calls, and the performance counters become 0, because nobody knows their self part.
 */
void mdl_row_own(struct mdl_row *r);
/* Adds the time of a bulk that is in none of its operators, without counting a call. For rows of several names. */
void mdl_row_merge_time(struct mdl_row *to, const struct mdl_row *bulk);

/* Allocations of one device in one process, in bytes and calls. */
struct mdl_mem_row {
	uint32_t tgid;
	uint32_t device;
	uint64_t allocs, frees, alloc_bytes, free_bytes;
	uint64_t live_bytes, peak_bytes, low_bytes; /* at the end, largest and smallest; 0 at the start */
};

struct mdl *mdl_new(void);		       /* NULL: out of memory */
struct mdl *mdl_new_like(const struct mdl *m); /* a new model with the settings below; NULL: out of memory */
void mdl_free(struct mdl *m);
/* Settings. Spans that are folded later have rows of their own for each thread. */
void mdl_tell_threads(struct mdl *m);
/* Spans that are folded later have rows of their own for each range around them. */
void mdl_tell_ranges(struct mdl *m);
bool mdl_tells_ranges(const struct mdl *m);
/* No device is recorded: features that see spans for the sake of devices only do not see them. */
void mdl_without_devices(struct mdl *m);
bool mdl_sees_devices(const struct mdl *m);
/*
 * With mdl_tell_ranges(), spans wait until the ranges around them are known. Call this before the rows are read.
 * Returns 0 or -ENOMEM.
 */
int mdl_settle(struct mdl *m);
/* mdl_sum() will keep the rows of calls and of memory apart by process. */
void mdl_tell_processes(struct mdl *m);

/*
 * Copies a model between two windows. The copy has the same tables, and records can be folded into it. The copy lacks
 * three stores that no table reads and that can take 140 MB: the operators that made backward nodes, single live
 * allocations, and launches with the activities that wait for one. So the copy does not join a later backward node with
 * an earlier operator, takes the free of an earlier allocation for one of memory from before the window, and does not
 * join an earlier launch with a later activity.
 *
 * `to` is a new model. If a lock protects `from`, call mdl_reserve() before taking the lock, with the number that
 * mdl_nrows() returned: most of the time is spent on pages for new rows. After an error, `to` can only be freed.
 * These functions return 0 or -ENOMEM.
 */
size_t mdl_nrows(const struct mdl *m);
int mdl_reserve(struct mdl *to, size_t nrows);
int mdl_copy_to(struct mdl *to, const struct mdl *from);
/* Copies all names that `to` lacks. Threads get the names that they have in `from`. Returns 0 or -ENOMEM. */
int mdl_copy_names(struct mdl *to, const struct mdl *from);
/*
 * Names that m lacks are those of the lender: a model that begins later needs them to know which operators end an
 * iteration. Borrowed; NULL ends it.
 */
void mdl_lend_names(struct mdl *m, const struct mdl *lender);
/*
 * Moves what is not finished at now_ns into a new model: operators whose backward nodes may still run, launches,
 * iterations, live allocations. Tables of `from` can be read afterwards. Returns 0 or -ENOMEM.
 */
int mdl_move(struct mdl *to, struct mdl *from, uint64_t now_ns);

/*
 * Folds one window of records and checks each record. Records come in any order; the model puts allocations of a window
 * in the order of time. A record from before an earlier window counts as late (MXBPF_TALLY_LATE). Returns 0, -ENOMEM,
 * or -EBADMSG for a malformed record; records before that are folded.
 */
int mdl_feed(struct mdl *m, const void *recs, size_t bytes);

/* The next records come from this source. Records are late only relative to their own source. 0 is the default. */
#define MDL_SOURCES_MAX 16
void mdl_begin(struct mdl *m, unsigned source);
/* Fold a window of checked records: call mdl_fold() for each record, then mdl_fold_end(). They return 0 or -ENOMEM. */
int mdl_fold(struct mdl *m, const struct mxbpf_rec *r);
int mdl_fold_end(struct mdl *m);
/* Folds a whole window of checked records. Returns 0 or -ENOMEM. */
int mdl_fold_all(struct mdl *m, const void *recs, size_t bytes);

/* Return arrays of *n rows, in no order. */
const struct mdl_row *const *mdl_rows(struct mdl *m, enum mxbpf_class cls, size_t *n);
const struct mdl_mem_row *const *mdl_mem_rows(struct mdl *m, size_t *n);
/* Returns the *n spans that were open when the window ended, the oldest first. */
const struct mxbpf_open *mdl_opens(struct mdl *m, size_t *n);
/* Returns a number of a class over the whole window. */
uint64_t mdl_tally(const struct mdl *m, enum mxbpf_class cls, enum mxbpf_tally_id id);

/*
 * Returns the text of a name. It ends with NUL, and it may contain any bytes, because the target process controls it.
 * `len`: receives the number of bytes, if not NULL. The text is "[unreadable]" for id 0 and "[0x...]" for an id that
 * was never defined. The text of an id that no row has is valid until the next call in this thread.
 */
const char *mdl_name(const struct mdl *m, uint64_t name_id, size_t *len);
uint64_t mdl_texts_left_out(const struct mdl *m); /* texts beyond MDL_TEXT_BYTES_MAX */
/* Returns a text of any kind but MXBPF_NAME_THREAD, or NULL if it was never defined. */
const char *mdl_text(const struct mdl *m, enum mxbpf_name_kind kind, uint64_t id, size_t *len);
bool mdl_has_name(const struct mdl *m, uint64_t name_id);
/* Returns the name of a thread, or NULL if it is not known. */
const char *mdl_thread_name(const struct mdl *m, uint32_t tgid, uint32_t tid);

/* Returns the number of processes that have rows. For a sum: of the processes that were added. */
unsigned mdl_nprocesses(const struct mdl *m);
/*
 * Add all processes up, or those for which of() returns true. Rows have tgid 0, except rows of threads, and all rows
 * after mdl_tell_processes(). Peaks of memory are added, so a peak is an upper bound. Rows without a process are kept.
 * The caller frees the result with mdl_free(). NULL: out of memory.
 */
struct mdl *mdl_sum(const struct mdl *m);
struct mdl *mdl_sum_of(const struct mdl *m, bool (*of)(void *ctx, uint32_t tgid), void *ctx);
/* Returns a copy with the processes for which of() returns true, without adding them up. NULL: out of memory. */
struct mdl *mdl_only(const struct mdl *m, bool (*of)(void *ctx, uint32_t tgid), void *ctx);

/* Appends records from which an empty model makes the same tables. Returns 0 or -ENOMEM. */
int mdl_emit(const struct mdl *m, struct buf *out);
/* Append the records of one row. Return 0 or -ENOMEM. */
int mdl_emit_row(const struct mdl_row *r, struct buf *out);
int mdl_emit_mem(const struct mdl_mem_row *r, struct buf *out);

#endif
