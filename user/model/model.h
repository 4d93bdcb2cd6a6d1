/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records -> aggregates. Pure functions of records: no BPF, no target, no clock. Live use, `report` and
 * (later) stats mode all end here; tables consume rows and nothing else.
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "feature/machine/gauge.h"
#include "mxbpf_life.h"
#include "mxbpf_step.h"
#include "mxbpf_memory.h"
#include "mxbpf_mark.h"
#include "mxbpf_omp.h"
#include "mxbpf_track.h"
#include "records/kinds.h"

struct mdl;

/* The span classes, in the order of their tables. Titles are the runtime's own: struct mdl_session. */
#define MDL_NCLASSES (MXBPF_CLASS_MAX - 1)
struct mdl_class {
	enum mxbpf_class cls;
	const char *category; /* in traces */
	bool rare;	      /* only what uses it has a table of it */
};
extern const struct mdl_class mdl_classes[MDL_NCLASSES];
const char *mdl_category(unsigned cls);

/* Of calls that there is an estimate for: how many, their time, their floating-point operations. And those that there
 * is none for although there should be. */
struct mdl_flops {
	uint64_t calls, ns, ops, unknown;
};

/* One row of a class table; borrowed, valid until the next mdl_feed(). */
struct mdl_row {
	uint32_t tgid;
	uint32_t device;
	uint32_t tid; /* 0: of all threads */
	uint8_t cls;
	uint64_t id; /* mdl_group_id() */
	uint64_t name_id, args_id, stack_id, layer_id;
	uint8_t traits;		 /* enum mxbpf_trait; of rows that were merged, the first one's */
	uint64_t nparts, nbulks; /* of its calls, those with that trait */
	uint64_t count, total_ns, self_ns, min_ns, max_ns;
	uint64_t nested_ns;	    /* of a row that mdl_row_own() was called for: what it took off the total */
	uint64_t first_ns, last_ns; /* of the program's own marks: the first start, the last end; 0: not known */
	int64_t alloc_bytes, self_alloc_bytes; /* taken less given back; 0 in recordings that do not say */
	struct mxbpf_account_sum account;      /* of sessions with mdl_session.account; mdl_on_cpu_ns() */
	uint64_t median_ns, slow_ns,
		slow_due;		   /* private to slow.c: as they were when it last looked, and when it will */
	struct mxbpf_counter_sum counters; /* of the events that mdl_session.counters names */
	struct mdl_flops flops;		   /* only in rows that flops_add() added to */
	uint64_t hist[MXBPF_HIST_BUCKETS];
};

/* The mean of the durations that min_ns, max_ns and hist are of. */
uint64_t mdl_row_avg(const struct mdl_row *r);

/* What its spans were on a CPU, which is what nothing else accounts for. */
uint64_t mdl_on_cpu_ns(const struct mdl_row *r);
void mdl_account_add(struct mxbpf_account_sum *to, const struct mxbpf_span *s);
void counters_add(struct mxbpf_counter_sum *to, const struct mxbpf_span *s);

/* Rows with details take 2.7 KB each: calls that would need more of them are counted, in the row of their name alone.
 */
#define MDL_GROUPED_MAX (1u << 14)
/* Of all but h and id; name_id if the others are 0. */
uint64_t mdl_group_id(const struct mxbpf_group *g);

/*
 * A row of several names (a thread's, a device's, a layer's) is of self time, since of a call that is nested in another
 * one the total is in both: its total, its account and its memory become what its calls had of their own. Its counters
 * are none, as nobody knows which part of them is of nested calls.
 */
void mdl_row_own(struct mdl_row *r);
/* What calls of such a row are is what ran: of a bulk it has the time that is in none of its operators, but no call. */
void mdl_row_merge_time(struct mdl_row *to, const struct mdl_row *bulk);

/* One row of two: sums, extremes and histogram over both; `to` keeps its name and place. */
void mdl_row_merge(struct mdl_row *to, const struct mdl_row *from);

/*
 * Floating-point operations of a call, by the operator's name and the text of its args_id (NULL: none), which ends with
 * a NUL. A multiplication with the addition behind it is two.
 */
enum flops_estimate {
	FLOPS_OTHER,   /* it is none of the operators that there are estimates for */
	FLOPS_UNKNOWN, /* it is, but its shapes do not say */
	FLOPS_KNOWN,
};
enum flops_estimate flops_estimate(const char *name, size_t name_len, const char *args, size_t len, uint64_t *flops);
/* Of one call; and of all calls of a model's row, added to what is there. */
struct mdl_flops flops_of(const struct mdl *m, const struct mxbpf_span *s);
void flops_add(const struct mdl *m, struct mdl_flops *to, const struct mdl_row *from);

/* Running account of one device; borrowed likewise. */
struct mdl_mem_row {
	uint32_t tgid;
	uint32_t device;
	uint64_t allocs, frees, alloc_bytes, free_bytes;
	uint64_t live_bytes, peak_bytes, low_bytes;
};

/* What of a span's time is the most beyond the median of its row. */
enum slow_cause {
	SLOW_COMPUTED,	/* on its CPU: more to do, or a slower CPU */
	SLOW_FAULTED,	/* on its CPU, of which page faults may be the most */
	SLOW_RUNNABLE,	/* could have run, but waited for a CPU */
	SLOW_BLOCKED,	/* slept, or waited for a lock */
	SLOW_READ,	/* the same, and pages had to be read from a disk */
	SLOW_ELSEWHERE, /* its own thread had nothing to do with it any more */
	SLOW_NCAUSES,
};

/* A span that lasted at least SLOW_TIMES the median of its row, and SLOW_BEYOND_NS more. */
#define SLOW_TIMES     2
#define SLOW_BEYOND_NS 50000
#define SLOW_CALLS     16  /* of a row; those before its 17th are not looked at */
#define SLOW_MAX       256 /* that are kept: those with the most time beyond their median */
struct slow_call {
	struct mxbpf_slow span;
	const struct mdl_row *row; /* borrowed */
	uint64_t median_ns;	   /* of its row */
	enum slow_cause cause;
	uint64_t cause_ns; /* what it had of that; of computing and faults, what is beyond the median */
};

/* Samples whose innermost span this was; cls 0: outside of all. */
struct sample_row {
	uint64_t name_id, count;
	uint32_t tgid;
	uint8_t cls;
};

/* Calls of a store of parameters that had a key. One with several is in the row of each, with all its time. */
struct kv_row {
	struct mdl_row calls; /* tgid, name_id, count, times */
	uint64_t key;
	uint8_t flags;		  /* enum mxbpf_kv_flag */
	uint64_t values, unknown; /* of the values, those whose bytes are not known */
	uint64_t sent_bytes, received_bytes;
};

struct mdl *mdl_new(void);		       /* NULL: out of memory */
struct mdl *mdl_new_like(const struct mdl *m); /* that tells the same apart; likewise */
void mdl_tell_threads(struct mdl *m);	       /* from now on, spans of each thread have rows of their own */
void mdl_free(struct mdl *m);

/*
 * Copies a model between two windows. The copy has the same tables and can be fed on. It lacks three stores that no
 * table reads and that may take some 140 MB: the operators that made backward nodes (BACKWARD_MAKERS_MAX), single
 * allocations (MEMORY_BLOCKS_MAX), and launches with the activities that wait for one. So the copy does not join a
 * later backward node with an earlier operator, takes the free of an earlier allocation for one of memory from before
 * the window, and does not join an earlier launch with a later activity.
 *
 * `to` is new. If a lock protects `from`, call mdl_reserve() before taking it, with the number that mdl_nrows() has
 * returned: most of the time goes into pages for new rows. After an error `to` is for mdl_free(). 0 or -ENOMEM.
 */
size_t mdl_nrows(const struct mdl *m);
int mdl_reserve(struct mdl *to, size_t nrows);
int mdl_copy_to(struct mdl *to, const struct mdl *from);
/* Copies all names that `to` lacks. A thread gets the name that it has in `from`. 0, -ENOMEM. */
int mdl_copy_names(struct mdl *to, const struct mdl *from);

/*
 * Folds one drain window: whole records in any order (allocations are put in order of time within the window,
 * what comes later than a folded window counts as late). Accepts every kind: AGG (and what belongs to it), MEM, JOIN,
 * COUNTER, GAUGE merge into the same rows, NAME and GROUP define, EDGE is skipped. 0, -EBADMSG on a malformed record
 * (what was before it is folded), -ENOMEM.
 */
int mdl_feed(struct mdl *m, const void *recs, size_t bytes);

/* The records that follow are of this source: what is late is judged by those of the same one. At first it is 0. */
#define MDL_SOURCES_MAX 8
void mdl_begin(struct mdl *m, unsigned source);
/* Fold a window of checked records one by one: call mdl_fold() for each record, then mdl_fold_end().
 */
int mdl_fold(struct mdl *m, const struct mxbpf_rec *r);
int mdl_fold_end(struct mdl *m);
/* Folds a whole window of checked records. */
int mdl_fold_all(struct mdl *m, const void *recs, size_t bytes);

/* Rows of a class, in no order. *n their number. Borrowed array of borrowed rows, valid until the next call. */
const struct mdl_row *const *mdl_rows(struct mdl *m, enum mxbpf_class cls, size_t *n);
const struct mdl_mem_row *const *mdl_mem_rows(struct mdl *m, size_t *n);

/*
 * Slow operators and compiled kernels, that which is the most beyond its median first; of those that lie in one another
 * the innermost that explains it. fault_ns: what a page fault may take there. For free(). -ENOMEM.
 */
int slow_calls(const struct mdl *m, uint64_t fault_ns, struct slow_call **slow, size_t *n);

/* Spans that were open when the window ended, as their records, the oldest first; borrowed likewise. */
const struct mxbpf_open *mdl_opens(struct mdl *m, size_t *n);

/* Spans with MXBPF_SPAN_SEQ, joined, as their records; borrowed likewise. */
const struct mxbpf_join *const *backward_joins(struct mdl *m, size_t *n);
/* One of two: sums; `to` keeps its name and process. */
void backward_join_merge(struct mxbpf_join *to, const struct mxbpf_join *from);
/* --omp: parallel regions, those of one span name (and class) added up, as their records; borrowed likewise. */
const struct mxbpf_team *const *omp_teams(struct mdl *m, size_t *n);
void omp_team_merge(struct mxbpf_team *to, const struct mxbpf_team *from); /* as backward_join_merge() */
/* --life. A part of the lives of an operator: those in which it is known. */
struct life_part {
	uint64_t count, total_ns, min_ns, max_ns;
	uint64_t hist[MXBPF_HIST_BUCKETS];
};
struct life_row {
	uint32_t tgid, device;
	uint64_t name_id;
	struct life_part parts[MXBPF_LIFE_PARTS];
};
/* In no order; borrowed likewise. */
const struct life_row *const *life_rows(struct mdl *m, size_t *n);
uint64_t life_percentile(const struct life_part *p, double fraction); /* as mdl_percentile(); 0 of none */
/* What the program waited for, as its records, of each process, call and operator one; borrowed likewise. */
const struct mxbpf_wait *life_waits(const struct mdl *m, size_t *n);
/* Iterations that have ended, by process and time, the last 65,536 at least; borrowed likewise. For the end of a
 * window: what may be the end of one is. */
const struct mxbpf_iteration *steps_iterations(struct mdl *m, size_t *n);
/* The store of parameters, by operation and key, in no order; borrowed likewise. */
const struct kv_row *const *kv_rows(const struct mdl *m, size_t *n);
/*
 * --memory. Devices and holders of what is alive, as their records, in no order; NULL behind the last; borrowed
 * likewise. The mean of a device between two moments. Allocations that are alive, where the model had their records, in
 * no order from *pos 0 on.
 */
#define MEMORY_BLOCKS_MAX (1u << 20) /* alive at the same time; 56 bytes each */
#define MEMORY_OWNERS_MAX (1u << 14)
struct memory_block {
	uint64_t addr, bytes;
	const struct mxbpf_mem_owner *holder; /* borrowed */
};
const struct mxbpf_mem_time *memory_device(const struct mdl *m, size_t i);
const struct mxbpf_mem_owner *memory_owner(const struct mdl *m, size_t i);
int64_t memory_mean(const struct mxbpf_mem_time *t, uint64_t start_ns, uint64_t end_ns);
bool memory_block(const struct mdl *m, size_t *pos, struct memory_block *out);
/* What is alive in `from` at a moment is what an empty `to` begins with; `from` can be read, not fed, from now on. 0,
 * -ENOMEM. */
int memory_move(struct mdl *to, struct mdl *from, uint64_t now_ns);
/* Operators whose nodes may still run are remembered, the last so many. */
#define BACKWARD_MAKERS_MAX (1u << 17)
/*
 * For who reads records beside the model: in the backward pass a span gets the stack of its forward operator, of those
 * that came this way before. 0, -ENOMEM.
 */
int backward_follow(struct mdl *m, struct mxbpf_span *s);
/* What `from` remembers of them and of launches, and iterations that are under way, are `to`'s from now on. */
void mdl_move(struct mdl *to, struct mdl *from);

/*
 * The program's own marks: its counters and what it marked at a moment, those of one name added up, as their records;
 * borrowed likewise. What domain they are of is their text of kind MXBPF_NAME_DOMAIN.
 */
const struct mxbpf_value *const *marks_values(const struct mdl *m, size_t *n);
const struct mxbpf_instant *const *marks_instants(const struct mdl *m, size_t *n);
void marks_value_merge(struct mxbpf_value *to, const struct mxbpf_value *from);
void marks_instant_merge(struct mxbpf_instant *to, const struct mxbpf_instant *from);
/* Of a row with first_ns and last_ns: how many a second there were in between. 0: not known. */
double marks_rate(const struct mdl_row *r);

/* Borrowed likewise, in the order of their first readings. *n their number. */
const struct machine_row *machine_rows(const struct mdl *m, size_t *n);
/* NULL: it was not read. */
const struct machine_row *machine_row(const struct mdl *m, uint16_t id, uint16_t scope);
/* What MXBPF_SCHED records say of operators, in no order: each (process, class, name, what, comm) once. Borrowed
 * likewise.
 */
const struct mxbpf_agg_sched *sched_rows(const struct mdl *m, size_t *n);

/* Activities of devices, as their records, in no order. Borrowed until the next mdl_feed(). */
const struct mxbpf_agg_activity *activity_rows(const struct mdl *m, size_t *n);

/*
 * Text of a name, NUL-terminated, hostile; *len its bytes if not NULL. "[unreadable]" for id 0, "[0x...]" for one never
 * defined. Borrowed until the next mdl_feed(), of an id that no row has: until this thread's next call.
 */
const char *mdl_name(const struct mdl *m, uint64_t name_id, size_t *len);
/* The same of any kind but MXBPF_NAME_THREAD; NULL for one never defined. */
const char *mdl_text(const struct mdl *m, enum mxbpf_name_kind kind, uint64_t id, size_t *len);
bool mdl_has_name(const struct mdl *m, uint64_t name_id);
const char *mdl_thread_name(const struct mdl *m, uint32_t tgid, uint32_t tid); /* NULL if unknown */

/* In no order, *n of them; borrowed until the next mdl_feed(). */
const struct sample_row *sample_rows(const struct mdl *m, size_t *n);

uint64_t mdl_tally(const struct mdl *m, enum mxbpf_class cls, enum mxbpf_tally_id id);

/* Duration below which `fraction` of the row's spans lie: the middle of its bucket, within [min, max]. */
uint64_t mdl_percentile(const struct mdl_row *r, double fraction);

/* From now on, mdl_sum() keeps the rows of calls and of memory apart by process. */
void mdl_tell_processes(struct mdl *m);
/* Processes that have rows; of a sum, those that it was made of. */
unsigned mdl_nprocesses(const struct mdl *m);
/* All processes as one, with tgid 0 but for rows of threads (and where mdl_tell_processes() said so); a peak is the sum
 * of peaks, hence an upper bound. For mdl_free(); NULL: -ENOMEM.
 */
struct mdl *mdl_sum(const struct mdl *m);
/* The same of some of them; what is of no process is there as well. */
struct mdl *mdl_sum_of(const struct mdl *m, bool (*of)(void *ctx, uint32_t tgid), void *ctx);
/* Likewise, each of them as it is. */
struct mdl *mdl_only(const struct mdl *m, bool (*of)(void *ctx, uint32_t tgid), void *ctx);

/* Appends NAME, GROUP, AGG, MEM, JOIN, COUNTER and GAUGE records that, fed to an empty model, make an equal one. 0,
 * -ENOMEM.
 */
int mdl_emit(const struct mdl *m, struct buf *out);

/* Those of a single row, or of one account. 0, -ENOMEM. */
int mdl_emit_row(const struct mdl_row *r, struct buf *out);
int mdl_emit_mem(const struct mdl_mem_row *r, struct buf *out);

/* Lower bound of a bucket of the histogram: what mxbpf_bucket() gives. */
uint64_t mdl_bucket_low(unsigned index);

#endif
