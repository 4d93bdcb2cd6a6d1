/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outputs. One file each, one ops struct each, one registry: --help, suffixes of -o and the tests iterate
 * it. A sink sees the model, the session and (if it asks) the records; never a process, BPF or a file name.
 */
#ifndef SINK_SINK_H
#define SINK_SINK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/out.h"
#include "model/model.h"
#include "model/session.h"

/* Keys of --sort. By name: A to Z either way. */
enum snk_sort {
	SNK_SORT_TOTAL,
	SNK_SORT_SELF,
	SNK_SORT_COUNT,
	SNK_SORT_AVG,
	SNK_SORT_MIN,
	SNK_SORT_MAX,
	SNK_SORT_P99,
	SNK_SORT_ALLOC,
	SNK_SORT_SELF_ALLOC,
	SNK_SORT_CPU, /* these three of the account */
	SNK_SORT_RUNQ,
	SNK_SORT_BLOCKED,
	SNK_SORT_DEVICE, /* time on a GPU, which no row has yet */
	SNK_SORT_NAME,
	SNK_SORT_START, /* of events, and always the first of them first */
	SNK_SORT_NKEYS,
};
struct snk_sort_key {
	const char *name;
	const char *aliases[24]; /* what torch's sort_by calls it; NULL behind the last */
};
extern const struct snk_sort_key snk_sort_keys[SNK_SORT_NKEYS];
/* Index of a name or an alias, or -1. */
int snk_sort_find(const char *name);

/* What has a row of its own. */
enum snk_by {
	SNK_BY_NAME,
	SNK_BY_SHAPE,	/* a name with the dimensions of its tensors */
	SNK_BY_STACK,	/* a name with the top lines of its stack */
	SNK_BY_MODULE,	/* a name with the innermost nn.Module of its stack */
	SNK_BY_LAYER,	/* a layer of the model, with all of its operators, forward and backward */
	SNK_BY_DEVICE,	/* a device, whatever ran there */
	SNK_BY_PROCESS, /* a process, whatever ran in it; needs a model that tells processes apart */
	SNK_BY_THREAD,	/* a thread, likewise; needs rows of single threads */
	SNK_BY_EVENT,	/* every call: snk_table.spans; needs the records */
	SNK_BY_NWORDS,
};
#define SNK_STACK_DEPTH 5
#define SNK_EVENTS_MAX	(1u << 18)	 /* events a table, unless opts.top says otherwise: 59 MB */
extern const char *const snk_by_words[]; /* of --by, NULL behind the last */

struct snk_opts {
	enum snk_sort sort;
	enum snk_by by;
	unsigned stack_depth; /* lines that count; 0: SNK_STACK_DEPTH, of events all */
	bool ascending;
	unsigned top;	/* rows a table; 0: all */
	unsigned width; /* columns of the terminal; 0: 80 */
	bool backward;	/* forward operators with their backward time as well */
	bool no_parts;	/* without operators in segments: the segments alone */
	bool continued; /* follows another one of the same columns: no heading again */
	/* For long exports; NULL: none. */
	void (*progress)(void *ctx, uint64_t done, uint64_t of);
	void *progress_ctx;
};

/* The records of a recording, window by window, checked (kind_check()). next: 1 a window, 0 the end, -errno. */
struct snk_source {
	int (*rewind)(void *ctx);
	int (*next)(void *ctx, const void **recs, size_t *bytes);
	void *ctx;
	uint64_t total_bytes; /* for progress; 0 unknown */
};

struct snk_input {
	const struct mdl_session *session;
	struct mdl *model;	   /* rows and names of the whole window */
	struct snk_source *source; /* NULL for sinks without needs_records, unless by event */
};

struct snk_table {
	enum mxbpf_class cls;
	const char *title;
	const struct mdl_row *const *rows; /* sorted */
	size_t nrows, nrows_all;	   /* the first that are to be shown (opts.top), all */
	uint64_t self_ns;		   /* over all rows, cut ones too: time that is nested is in it once */
	bool memory;			   /* any row took or gave back bytes */
	/* By event: those that are to be shown, sorted by opts, and how many there are. Rows are then all of the class.
	 */
	const struct mxbpf_span *spans;
	size_t nspans;
	uint64_t nspans_all;
};

/* --backward: operators of one name, whatever thread. */
struct snk_join {
	const char *name;
	size_t len;
	struct mxbpf_join j;
};
struct snk_joins {
	const struct snk_join *rows; /* sorted */
	size_t nrows, nrows_all;     /* as in snk_table */
	uint64_t unjoined;	     /* nodes under their own names */
};

/* Calls that were slow, the worst first, as mdl_slow() has them. */
struct snk_slow {
	const struct mdl_slow *rows;
	size_t nrows, nrows_all; /* as in snk_table */
};

/* --sample: what ran, by innermost span. */
struct snk_sample {
	const char *name, *title; /* title of its table; NULL: outside of all that is probed */
	size_t len;
	uint32_t tgid;
	uint64_t count;
};
struct snk_samples {
	const struct snk_sample *rows; /* most first */
	size_t nrows, nrows_all;       /* as in snk_table */
	uint64_t count;		       /* of all */
};

/* --sched: off the CPU while a call was the innermost open one. */
struct snk_sched {
	const char *name;
	size_t len;
	uint32_t tgid;
	uint8_t cls; /* 0: no call was open */
	uint64_t off_ns;
	/* By enum mxbpf_sched_what: the first of so many, the longest first. */
	const struct mxbpf_agg_sched *of[MXBPF_SCHED_WHATS];
	unsigned n[MXBPF_SCHED_WHATS];
};
struct snk_scheds_table {
	struct snk_sched *rows;	       /* the longest first; owned */
	size_t nrows, nrows_all;       /* as in snk_table */
	struct mxbpf_agg_sched *items; /* owned, private */
};

/* --omp: the parallel regions of one span name. */
struct snk_team {
	const char *name;
	size_t len;
	struct mxbpf_team t;
};
struct snk_teams {
	const struct snk_team *rows; /* sorted */
	size_t nrows, nrows_all;     /* as in snk_table */
	struct mxbpf_team sum;	     /* of all */
};

/* --life: operators before they ran; what the program waited for. */
struct snk_lives {
	const struct mdl_life *const *rows; /* sorted */
	size_t nrows, nrows_all;	    /* as in snk_table */
	const struct mxbpf_wait *waits;	    /* the longest first */
	size_t nwaits, nwaits_all;
};

/* Iterations of a process, or of all as one. */
struct snk_loop {
	uint32_t tgid;
	uint8_t told;	  /* enum mxbpf_step_what */
	uint64_t count;	  /* that ended and began in the window, */
	uint64_t missing; /* of these, the first, of which nothing is known any more; in none of the others */
	uint64_t total_ns, min_ns, max_ns, p50_ns, p99_ns;
	/* Of those of which they are known. */
	uint64_t known, known_ns, busy_ns;
	struct snk_part {
		uint64_t total_ns, p50_ns, max_ns;
	} parts[MXBPF_STEP_PARTS];
	uint64_t first_p50_ns; /* of OUTSIDE, before the first call */
};
struct snk_iterations {
	const struct snk_loop *loops; /* by process */
	size_t nloops;
	const struct mxbpf_iteration *const *slowest; /* longest first, all or opts.top */
	size_t nslowest;
};

/* Calls of a store of parameters, by operation and key. */
struct snk_kv {
	char *name, *key; /* owned, private */
	size_t len, key_len;
	const struct mdl_kv *kv;
};
struct snk_kvs {
	const struct snk_kv *rows; /* sorted */
	size_t nrows, nrows_all;   /* as in snk_table */
};

/* Activities of devices of one class and name. */
struct snk_activity {
	const char *name;
	size_t len;
	struct mxbpf_agg_activity a;
};
struct snk_activities {
	const struct snk_activity *rows; /* sorted */
	size_t nrows, nrows_all;	 /* as in snk_table */
	uint64_t count, total_ns;	 /* of all rows */
	uint64_t unlaunched;		 /* of count; struct mxbpf_agg_activity */
	bool devices;			 /* rows are of several devices */
};

/* --memory: what one kind of allocations holds. Texts are "" where there is none. */
struct snk_holder {
	const char *name, *layer, *scope, *label;
	size_t len, layer_len, scope_len, label_len;
	struct mxbpf_holder h;
};
struct snk_held {
	struct mxbpf_mem_time *devices; /* owned, by device */
	size_t ndevices;
	struct snk_holder *rows; /* owned, by device, the most at its peak first */
	size_t nrows, nrows_all; /* as in snk_table */
	bool layers, scopes;	 /* any row has one */
};

/* The program's own marks that are no spans: a row has one of the two. */
struct snk_mark {
	const char *name, *domain; /* domain: "" where there is none */
	size_t len, domain_len;
	uint32_t tgid;
	uint64_t count;
	const struct mxbpf_value *value;     /* borrowed; NULL: it is an instant */
	const struct mxbpf_instant *instant; /* likewise */
};
struct snk_marks {
	struct snk_mark *values, *instants; /* sorted; owned */
	size_t nvalues, nvalues_all;	    /* as in snk_table */
	size_t ninstants, ninstants_all;
};

/* State of one run, first member of a sink's own state. */
struct snk {
	const struct snk_ops *ops;
	const struct snk_input *in;
	const struct snk_opts *opts;
	struct snk_events *events; /* private */
	struct out *out;	   /* borrowed; errors are sticky in it, so callbacks need not check every write */
	struct err *err;
};

/* All callbacks optional; 0 or -errno with err set. Called in this order. */
struct snk_ops {
	const char *name;	     /* of --format / --layout */
	const char *help;	     /* one line */
	const char *const *suffixes; /* of -o files, NULL-terminated; NULL: none */
	const char *const *magic;    /* lines that begin so are in each of its files; NULL: none that tell */
	bool needs_records;
	bool of_samples;    /* shows nothing else */
	bool of_held;	    /* shows nothing but what --memory sees */
	bool gzip;	    /* whatever the file is called */
	bool merge_names;   /* in tables, what is one by name (snk_opts.by) is one, whatever process and device */
	bool merge_users;   /* likewise, an annotation of the program's and an operator of that name are one */
	bool by_process;    /* shows each process by itself; others get the sum */
	bool details;	    /* shows what rows of one name differ in: opts.by can be other than SNK_BY_NAME */
	size_t state_bytes; /* of the sink's struct that begins with struct snk; 0: sizeof(struct snk) */
	int (*begin)(struct snk *s);
	int (*survey)(struct snk *s, const struct mxbpf_rec *r); /* every record, first pass */
	int (*surveyed)(struct snk *s);				 /* between the passes */
	int (*record)(struct snk *s, const struct mxbpf_rec *r); /* every record, second pass */
	int (*table)(struct snk *s, const struct snk_table *t);	 /* every class in use, operators first */
	int (*mem)(struct snk *s, const struct mdl_mem_row *const *rows, size_t n); /* if mem_title; sorted by device */
	int (*held)(struct snk *s, const struct snk_held *t);			    /* if session.held */
	int (*joins)(struct snk *s, const struct snk_joins *t);			    /* if opts.backward */
	int (*slow)(struct snk *s,
		    const struct snk_slow *t); /* of sessions with accounts and events, if there are any */
	int (*sched)(struct snk *s, const struct snk_scheds_table *t);	      /* if session.sched */
	int (*samples)(struct snk *s, const struct snk_samples *t);	      /* if session.sample_hz */
	int (*opens)(struct snk *s, const struct mxbpf_open *rows, size_t n); /* the oldest first, if any */
	int (*teams)(struct snk *s, const struct snk_teams *t);		      /* if session.team_cpus */
	int (*lives)(struct snk *s, const struct snk_lives *t);		      /* if session.life */
	int (*iterations)(struct snk *s, const struct snk_iterations *t);     /* if there are any */
	int (*kvs)(struct snk *s, const struct snk_kvs *t);		      /* if there are any */
	int (*activities)(struct snk *s, const struct snk_activities *t);     /* if there are any */
	int (*marks)(struct snk *s, const struct snk_marks *t);		      /* if there are any */
	int (*end)(struct snk *s);
	void (*fini)(struct snk *s); /* always */
};

extern const struct snk_ops *const snk_registry[]; /* NULL-terminated */
const struct snk_ops *snk_find(const char *name);
const struct snk_ops *snk_find_suffix(const char *path);

/* The one driver of all sinks. Does not commit `out`. */
int snk_write(const struct snk_ops *ops, const struct snk_input *in, const struct snk_opts *opts, struct out *out,
	      struct err *e);

/* Rows of a class as opts->by says, sorted by opts (ties: larger name first, as MXNet's own tables). Caller frees
 * *rows.
 */
int snk_sorted_rows(struct mdl *m, enum mxbpf_class cls, const struct snk_opts *opts, const struct mdl_row ***rows,
		    size_t *n);
/* The same as torch has them: whatever process and device, and lists of tensors have no shapes. users: annotations of
 * the program's have rows apart from operators of their name. */
int snk_merged_rows(struct mdl *m, enum mxbpf_class cls, const struct snk_opts *opts, bool users,
		    const struct mdl_row ***rows, size_t *n);

#endif
