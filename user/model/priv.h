/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share. */
#ifndef MODEL_PRIV_H
#define MODEL_PRIV_H

#include "base/hash.h"
#include "model/feature.h"
#include "model/model.h"
#include "mxbpf_sample.h"
#include "mxbpf_sched.h"

#define TALLY_IDS (MXBPF_TALLY_UNKEYED + 1)

/* Something that happened at a moment; what window_sort() sorts. */
struct moment {
	uint64_t ns;
	uint64_t what;
};

/* Spans and allocations of the window being fed, and room to sort them; kept from window to window. */
struct window {
	struct buf opens, closes; /* struct moment; what: class * 2 + closes */
	struct buf allocs;	  /* struct moment; what: address of the record */
	struct buf spare;
	uint64_t newest_ns[MXBPF_CLASS_MAX]; /* of this window, by class; allocations at CLASS_NONE */
};

/* The operator that made a node, or may have. */
struct maker {
	uint64_t seq;
	uint64_t start_ns, dur_ns, name_id, stack_id;
	uint64_t origin; /* seq of the node in which it ran; 0: it is a forward one */
	uint32_t tgid;
	bool counted; /* in its row */
	bool unknown; /* it is a node that stands for it */
};

/* held.c */
struct mem_device {
	struct mxbpf_mem_time t;
	uint64_t peaks;	      /* that there were: the number of the last */
	int64_t largest_peak; /* of a sum: of one of its processes */
	bool later_peak;      /* of records that are merged: the peak is the later one's */
};
struct mem_owner {
	struct mxbpf_mem_owner h;
	uint64_t stamp; /* h.peak_bytes is of the peak of this number; what is live now is of all later ones */
};
struct mem_block {
	uint64_t bytes;
	uint32_t owner; /* place in owners */
	uint32_t next;	/* of those that are none: 1 + place */
};
struct held {
	struct hash device_index; /* (tgid, device) -> 1 + place in devices */
	struct hash owner_index;  /* (what it is of, tgid and device) -> place in owners */
	struct hash block_index;  /* (address, tgid and device) -> place in blocks */
	struct buf devices;	  /* struct mem_device */
	struct buf owners;	  /* struct mem_owner */
	struct buf blocks;	  /* struct mem_block */
	uint32_t free_block;	  /* 1 + place; 0: none */
};

/* activity.c */
struct activities {
	struct hash index[MXBPF_ACTIVITY_MAX]; /* (name_id, tgid and device) -> 1 + place in rows */
	struct buf rows;		       /* struct mxbpf_agg_activity, as its records */
	struct hash launches, older;	       /* (id, tgid and domain) of edges that have begun */
	struct hash waiting;		       /* the same key -> 1 + place in waiters */
	struct buf waiters;		       /* struct waiter */
	uint32_t free_waiter;		       /* 1 + place; 0: none */
};

#define MDL_KINDS 64

struct mdl {
	void *states[MDL_FEATURES_MAX];		/* of features, by their places in mdl_features[]; owned */
	mdl_fold_fn folds[MDL_KINDS];		/* by kind; NULL: records of that are skipped */
	struct hash row_index[MXBPF_CLASS_MAX]; /* (row id, tgid and device) -> struct mdl_row * */
	struct buf rows[MXBPF_CLASS_MAX];	/* struct mdl_row *, owned */
	struct buf reserved;			/* memory of rows that will be copied into it, owned */
	struct hash group_index;		/* row id -> place in groups */
	struct buf groups;			/* struct mxbpf_group, as its records */
	size_t ngrouped;			/* rows that are of one */
	bool tells_threads;			/* each thread's spans are groups of their own */
	bool tells_processes;			/* in a sum of processes, rows of spans and memory stay apart */
	struct hash maker_index;		/* (seq, tgid) -> place in makers */
	struct buf makers;			/* struct maker, a ring once it is full */
	size_t oldest_maker;
	struct hash join_index;			/* (name_id, tgid) -> struct mxbpf_join * */
	struct buf joins;			/* struct mxbpf_join *, owned */
	struct hash team_index;			/* (name_id, tgid and class) -> struct mxbpf_team * */
	struct buf teams;			/* struct mxbpf_team *, owned */
	struct hash life_index;			/* (name_id, tgid and device) -> struct life_row * */
	struct buf lives;			/* struct life_row *, owned */
	struct hash wait_index;			/* (hash of the ids, tgid) -> place in waits + 1 */
	struct buf waits;			/* struct mxbpf_wait, as its records */
	struct hash value_index, instant_index; /* (name_id, tgid; what, scope) -> the row */
	struct buf values;			/* struct mxbpf_value *, owned */
	struct buf instants;			/* struct mxbpf_instant *, owned */
	struct hash mem_index;			/* (tgid, device) -> struct mdl_mem_row * */
	struct buf mem_rows;			/* struct mdl_mem_row *, owned */
	struct buf opens;			/* struct mxbpf_open */
	struct hash kv_index;			/* (name_id and key, tgid and flags) -> place in kvs + 1 */
	struct buf kvs;				/* struct kv_row *, owned */
	struct hash kv_begun;	  /* (start, tid) -> struct mxbpf_kv *, owned, of calls that have not ended */
	struct hash names;	  /* (id, enum mxbpf_name_kind) -> struct name *, owned */
	struct hash threads;	  /* (tgid, tid) -> struct name *, owned */
	struct hash recent;	  /* (tid, tgid) -> struct recent *, owned */
	struct buf slow;	  /* struct kept_slow, no more than SLOW_MAX */
	uint64_t slow_until_ns;	  /* when the last of them ended */
	uint64_t slow_least_ns;	  /* none of a full list has less beyond its median */
	struct hash sample_index; /* (name_id, class and tgid) -> 1 + place in samples */
	struct buf samples;	  /* struct sample_row */
	struct hash sched_index;  /* (name and comm, tgid with class and what) -> place in scheds + 1 */
	struct buf scheds;	  /* struct mxbpf_agg_sched, as its records */
	uint64_t counters[MXBPF_CLASS_MAX][TALLY_IDS];
	unsigned source; /* that the records of the window being fed are of */
	/* Newest moment in windows folded before, as newest_ns, by source. */
	uint64_t folded_ns[MDL_SOURCES_MAX][MXBPF_CLASS_MAX];
	struct window window;
	struct held held;
	struct activities activities;
	unsigned summed; /* processes that this is the sum of; 0: it is none */

	struct hash step_index; /* tgid -> struct process * of steps.c, owned */
	struct hash step_roles; /* name_id -> what its spans are for iterations */
	struct buf iterations;	/* struct mxbpf_iteration */
	uint64_t resumed_ns;	/* when the last pause had ended */

	struct hash gauge_index; /* (id, scope) -> index in gauges, from 1 */
	struct buf gauges;	 /* struct machine_row */
};

/* window.c */
int window_span(struct mdl *m, const struct mxbpf_span *s);
int window_alloc(struct mdl *m, const struct mxbpf_alloc *a);
/* Folds what the two above collected; the records must still be there. */
int window_fold(struct mdl *m);
void window_fini(struct window *w);
/* Stable, linear. -ENOMEM. */
int window_sort(struct buf *moments, struct buf *spare);

/*
 * copy.c. Copies a hash whose values are addresses of items that it owns; dup returns a new item, or NULL if it is out
 * of memory. After -ENOMEM, the values that are left are 0. The other functions named _copy fill a new model, too: what
 * they have copied before -ENOMEM is for mdl_free().
 */
int copy_owned(struct hash *to, const struct hash *from, void *(*dup)(const void *item));

/* names.c */
int names_define(struct mdl *m, const struct mxbpf_name *n);
int names_emit(const struct mdl *m, struct buf *out);
int names_copy(struct mdl *to, const struct mdl *from);
void names_fini(struct mdl *m);

/* group.c */
int group_define(struct mdl *m, const struct mxbpf_group *g);		/* of any size that fits its kind */
const struct mxbpf_group *group_find(const struct mdl *m, uint64_t id); /* NULL: it is a name's */
void groups_fini(struct mdl *m);

/* account.c */
void account_merge(struct mxbpf_account_sum *to, const struct mxbpf_account_sum *from);

/* recent.c: where threads were off the CPU lately. recent_during: for a slow span. */
int recent_put(struct mdl *m, const struct mxbpf_sched *r);
void recent_during(const struct mdl *m, struct mxbpf_slow *s);
int recent_copy(struct mdl *to, const struct mdl *from);
void recent_fini(struct mdl *m);

/* model.c */
void row_widen(struct mdl_row *r, uint64_t min_ns, uint64_t max_ns);

/* slow.c */
struct mxbpf_slow *slow_at(struct mdl *m, size_t i); /* NULL: there are no more */

/* counters.c */
void counters_merge(struct mxbpf_counter_sum *to, const struct mxbpf_counter_sum *from);

/* held.c. In order of time. */
int memory_alloc(struct mdl *m, const struct mxbpf_alloc *a);
int memory_sum(struct mdl *sum, const struct mdl *m);

/* marks.c */
void extent_add(struct mdl_row *r, uint64_t first_ns, uint64_t last_ns);
int extent_emit(const struct mdl_row *r, struct buf *out);

/*
 * hist.c: a histogram as a record has it behind its head: the buckets that are not empty. hist_fold adds these.
 * hist_emit writes the record: a head, which begins with struct mxbpf_rec and has room for their number, and the
 * buckets. 0 or -ENOMEM.
 */
void hist_fold(uint64_t hist[MXBPF_HIST_BUCKETS], const struct mxbpf_bucket *buckets, unsigned n);
int hist_emit(const uint64_t hist[MXBPF_HIST_BUCKETS], void *head, size_t head_bytes, uint16_t *nbuckets,
	      struct buf *out);

/* steps.c: a reading of the machine says where a pause ended. */
void steps_resumed(struct mdl *m, const struct mxbpf_gauge *g);

/* model.c; NULL: -ENOMEM */
struct mdl_row *row_find(const struct mdl *m, unsigned cls, uint64_t id, uint32_t tgid, uint32_t device);
struct mdl_mem_row *mem_row(struct mdl *m, uint32_t tgid, uint32_t device);

#endif
