/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outputs. Each is a struct view_ops in the registry, which --help, the suffixes of -o and the tests iterate. An output
 * gets the model, the session and, if it asks for them, the records. It never gets a process, BPF or a file name.
 */
#ifndef VIEW_VIEW_H
#define VIEW_VIEW_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/out.h"
#include "model/model.h"
#include "model/session.h"

/* Keys of --sort. VIEW_SORT_NAME sorts from A to Z, also without --ascending. */
enum view_sort {
	VIEW_SORT_TOTAL,
	VIEW_SORT_SELF,
	VIEW_SORT_COUNT,
	VIEW_SORT_AVG,
	VIEW_SORT_MIN,
	VIEW_SORT_MAX,
	VIEW_SORT_P99,
	VIEW_SORT_ALLOC,
	VIEW_SORT_SELF_ALLOC,
	VIEW_SORT_CPU, /* CPU, RUNQ and BLOCKED sort by times of the account */
	VIEW_SORT_RUNQ,
	VIEW_SORT_BLOCKED,
	VIEW_SORT_DEVICE, /* DEVICE, SELF_DEVICE and AVG_DEVICE sort by time on a GPU, in the layout torch */
	VIEW_SORT_NAME,
	VIEW_SORT_START, /* of events; the first one comes first, also without --ascending */
	VIEW_SORT_SELF_DEVICE,
	VIEW_SORT_AVG_DEVICE,
	VIEW_SORT_NKEYS,
};
struct view_sort_key {
	const char *name;
};
extern const struct view_sort_key view_sort_keys[VIEW_SORT_NKEYS];
/* Aliases of keys, from the profilers of the runtimes. Ends with a NULL name. */
struct view_sort_alias {
	const char *name;
	enum view_sort sort;
};
extern const struct view_sort_alias view_sort_aliases[];
/* Returns the key with this name or alias, or -1. */
int view_sort_find(const char *name);

/* Keys of --by: rows are grouped by KEY. */
enum view_by {
	VIEW_BY_NAME,
	VIEW_BY_SHAPE,	 /* a name with the dimensions of its tensors */
	VIEW_BY_STACK,	 /* a name with the top lines of its stack */
	VIEW_BY_MODULE,	 /* a name with the innermost nn.Module of its stack */
	VIEW_BY_RANGE,	 /* a name with the innermost range around its calls; needs a model with rows for each range */
	VIEW_BY_LAYER,	 /* a layer of the model, with all of its operators, forward and backward */
	VIEW_BY_DEVICE,	 /* a device */
	VIEW_BY_PROCESS, /* a process; needs a model with rows for each process */
	VIEW_BY_RANK,	 /* processes of one rank; needs a model with rows for each process, and so does the next */
	VIEW_BY_JOB,	 /* processes of one job */
	VIEW_BY_HOST,	 /* processes of one host */
	VIEW_BY_THREAD,	 /* a thread; needs a model with rows for each thread */
	VIEW_BY_EVENT,	 /* a call: view_table.spans; needs the records */
	VIEW_BY_NWORDS,
};
#define VIEW_STACK_DEPTH 5
#define VIEW_EVENTS_MAX	 (1u << 18)	  /* events in a table without opts.top; they need 59 MB */
extern const char *const view_by_words[]; /* words of --by; ends with NULL */
/* Returns whether rows are those of processes, alone or added up by a label. */
bool view_by_processes(enum view_by by);

#define VIEW_BRIEF_LINES 50 /* of a short output, without tables of options */
#define VIEW_BRIEF_ROWS	 10 /* of each table, if the output fits on these lines */
#define VIEW_BRIEF_LEAST 4  /* rows that a table has although it does not fit */
#define VIEW_BRIEF_WORST 2  /* of tables of the worst calls */

struct view_opts {
	enum view_sort sort;
	enum view_by by;
	unsigned stack_depth; /* lines that tell stacks apart; 0: VIEW_STACK_DEPTH, or all lines by event */
	bool ascending;
	unsigned top;	/* most rows of a table; 0: all */
	unsigned width; /* columns of the terminal; 0: 100 */
	bool backward;	/* also show forward operators with their backward time */
	/*
	 * People get the largest rows of each table, VIEW_BRIEF_ROWS or fewer, no tables without rows, and only tables
	 * that add to the others. The output says what it leaves out.
	 */
	bool brief;
	bool advice;	/* findings have a paragraph each */
	bool no_parts;	/* show segments, but not the operators in them */
	bool continued; /* no heading: an output with the same columns precedes this one */
	/* Called during long exports; NULL: nothing is called. */
	void (*progress)(void *ctx, uint64_t done, uint64_t of);
	void *progress_ctx;
	const struct out_dir *dir; /* where an output with a mark writes its files; else NULL */
};

/*
 * The records of a recording, in chunks that kind_check() has checked. next returns 1 and a chunk, 0 at the end, or
 * -errno.
 */
struct view_source {
	int (*rewind)(void *ctx);
	int (*next)(void *ctx, const void **recs, size_t *bytes);
	void *ctx;
	uint64_t total_bytes; /* for progress; 0: unknown */
};

struct view_input {
	const struct mdl_session *session;
	struct mdl *model;	    /* rows and names of the whole window */
	struct view_source *source; /* NULL only for outputs without needs_records, and not by event */
	struct mdl *processes;	    /* if model adds processes up: the one that keeps them apart; else NULL */
};

struct view_table {
	enum mxbpf_class cls;
	const char *title;
	const struct mdl_row *const *rows; /* sorted */
	size_t nrows, nrows_all;	   /* the number of rows to show (opts.top), and of all */
	uint64_t self_ns;		   /* sum of all rows, also of those not shown; nested time counts once */
	bool memory;			   /* some row allocated or freed bytes */
	/* By event: the events to show, sorted by opts. rows then has all rows of the class. */
	const struct mxbpf_span *spans;
	size_t nspans;
	uint64_t nspans_all;
};

struct view_sheet;

/* State of one run. First member of an output's own state. */
struct view {
	const struct view_ops *ops;
	const struct view_input *in;
	const struct view_opts *opts;
	struct view_events *events; /* private */
	struct out *out;	    /* borrowed; it keeps the first error, so callbacks need not check each write */
	struct err *err;
	bool parts_said; /* the first line for people has the parts of an iteration */
	bool hinted;	 /* people have read how many rows of this table are left out */
	unsigned rows;	 /* of each table of a short output; 0: not short */
	char more[320];	 /* what a short output leaves out, joined by commas; "": nothing */
};

/* All callbacks are optional. They return 0 or -errno with err set, and are called in this order. */
struct view_ops {
	const char *name;	     /* of --format / --layout */
	const char *help;	     /* one line */
	const char *const *suffixes; /* of -o files; ends with NULL. NULL: none */
	const char *const *magic;    /* each of its files has a line that begins with one of these; NULL: unknown */
	bool binary;		     /* its files have no lines: `magic` may be anywhere at their start or end */
	bool layout; /* of tables, for --layout; its JSON, if it has a layout of its own, is the output NAME-json */
	bool needs_records;
	bool reads_records; /* gets the records if there is a source; else it does without */
	bool of_samples;    /* shows only samples */
	bool of_memory;	    /* shows only results of --memory */
	const char *mark;   /* it writes several files into opts.dir, which has a file of this name; NULL: one file */
	bool gzip;	    /* compress, whatever the suffix of the file */
	bool merge_names;   /* in tables, merge rows that differ only in process and device */
	bool merge_users;   /* in tables, merge user annotations with operators of the same name */
	bool by_process;    /* shows processes one by one; other outputs get their sum */
	bool people;	    /* its tables are for people, not for programs */
	bool details;	    /* can group by other keys than VIEW_BY_NAME */
	size_t state_bytes; /* of the output's struct, which begins with struct view; 0: sizeof(struct view) */
	int (*begin)(struct view *s);
	int (*survey)(struct view *s, const struct mxbpf_rec *r); /* every record, first pass */
	int (*surveyed)(struct view *s);			  /* between the passes */
	int (*record)(struct view *s, const struct mxbpf_rec *r); /* every record, second pass */
	int (*table)(struct view *s, const struct view_table *t); /* every class in use, operators first */
	/* Every sheet that was asked for, in the order of view_sheets[]. For table see view/sheet.h. */
	int (*sheet)(struct view *s, const struct view_sheet *sh, const void *table);
	const struct view_sheet *only; /* the only sheet that it shows; NULL: all */
	int (*end)(struct view *s);
	void (*fini)(struct view *s); /* called even after an error */
};

extern const struct view_ops *const view_registry[]; /* ends with NULL */
const struct view_ops *view_find(const char *name);
const struct view_ops *view_find_suffix(const char *path);
/* Words of options, by number; NULL after the last: layouts, what they are, and outputs that are made from records. */
const char *view_layout_name(unsigned i);
const char *view_layout_help(unsigned i);
const char *view_export_name(unsigned i);

/* Writes one output. Does not commit `out`, which is NULL for an output with a mark. */
int view_write(const struct view_ops *ops, const struct view_input *in, const struct view_opts *opts, struct out *out,
	       struct err *e);

/* Rows of a class grouped by opts->by and sorted by opts; of equal rows the larger name comes first. Free *rows. */
int view_sorted_rows(const struct view_input *in, enum mxbpf_class cls, const struct view_opts *opts,
		     const struct mdl_row ***rows, size_t *n);
/*
 * Rows of a class, merged over processes and devices, where lists of tensors have no shapes (view_flat_shapes()).
 * users: user annotations and operators of the same name have different rows. Free *rows.
 */
int view_merged_rows(const struct view_input *in, enum mxbpf_class cls, const struct view_opts *opts, bool users,
		     const struct mdl_row ***rows, size_t *n);

#endif
