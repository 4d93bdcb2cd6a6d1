/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outputs. One file each, one ops struct each, one registry: --help, suffixes of -o and the tests iterate
 * it. A sink sees the model, the session and (if it asks) the records; never a process, BPF or a file name.
 */
#ifndef VIEW_SINK_H
#define VIEW_SINK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/out.h"
#include "model/model.h"
#include "model/session.h"

/* Keys of --sort. By name: A to Z either way. */
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
	VIEW_SORT_CPU, /* these three of the account */
	VIEW_SORT_RUNQ,
	VIEW_SORT_BLOCKED,
	VIEW_SORT_DEVICE, /* time on a GPU, which no row has yet */
	VIEW_SORT_NAME,
	VIEW_SORT_START, /* of events, and always the first of them first */
	VIEW_SORT_NKEYS,
};
struct view_sort_key {
	const char *name;
	const char *aliases[24]; /* what torch's sort_by calls it; NULL behind the last */
};
extern const struct view_sort_key view_sort_keys[VIEW_SORT_NKEYS];
/* Index of a name or an alias, or -1. */
int view_sort_find(const char *name);

/* What has a row of its own. */
enum view_by {
	VIEW_BY_NAME,
	VIEW_BY_SHAPE,	 /* a name with the dimensions of its tensors */
	VIEW_BY_STACK,	 /* a name with the top lines of its stack */
	VIEW_BY_MODULE,	 /* a name with the innermost nn.Module of its stack */
	VIEW_BY_LAYER,	 /* a layer of the model, with all of its operators, forward and backward */
	VIEW_BY_DEVICE,	 /* a device, whatever ran there */
	VIEW_BY_PROCESS, /* a process, whatever ran in it; needs a model that tells processes apart */
	VIEW_BY_THREAD,	 /* a thread, likewise; needs rows of single threads */
	VIEW_BY_EVENT,	 /* every call: view_table.spans; needs the records */
	VIEW_BY_NWORDS,
};
#define VIEW_STACK_DEPTH 5
#define VIEW_EVENTS_MAX	 (1u << 18)	  /* events a table, unless opts.top says otherwise: 59 MB */
extern const char *const view_by_words[]; /* of --by, NULL behind the last */

struct view_opts {
	enum view_sort sort;
	enum view_by by;
	unsigned stack_depth; /* lines that count; 0: VIEW_STACK_DEPTH, of events all */
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
struct view_source {
	int (*rewind)(void *ctx);
	int (*next)(void *ctx, const void **recs, size_t *bytes);
	void *ctx;
	uint64_t total_bytes; /* for progress; 0 unknown */
};

struct view_input {
	const struct mdl_session *session;
	struct mdl *model;	    /* rows and names of the whole window */
	struct view_source *source; /* NULL for sinks without needs_records, unless by event */
};

struct view_table {
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

struct view_sheet;

/* State of one run, first member of a sink's own state. */
struct view {
	const struct view_ops *ops;
	const struct view_input *in;
	const struct view_opts *opts;
	struct view_events *events; /* private */
	struct out *out;	    /* borrowed; errors are sticky in it, so callbacks need not check every write */
	struct err *err;
};

/* All callbacks optional; 0 or -errno with err set. Called in this order. */
struct view_ops {
	const char *name;	     /* of --format / --layout */
	const char *help;	     /* one line */
	const char *const *suffixes; /* of -o files, NULL-terminated; NULL: none */
	const char *const *magic;    /* lines that begin so are in each of its files; NULL: none that tell */
	bool needs_records;
	bool of_samples;    /* shows nothing else */
	bool of_memory;	    /* shows nothing but what --memory sees */
	bool gzip;	    /* whatever the file is called */
	bool merge_names;   /* in tables, what is one by name (view_opts.by) is one, whatever process and device */
	bool merge_users;   /* likewise, an annotation of the program's and an operator of that name are one */
	bool by_process;    /* shows each process by itself; others get the sum */
	bool details;	    /* shows what rows of one name differ in: opts.by can be other than VIEW_BY_NAME */
	size_t state_bytes; /* of the sink's struct that begins with struct view; 0: sizeof(struct view) */
	int (*begin)(struct view *s);
	int (*survey)(struct view *s, const struct mxbpf_rec *r); /* every record, first pass */
	int (*surveyed)(struct view *s);			  /* between the passes */
	int (*record)(struct view *s, const struct mxbpf_rec *r); /* every record, second pass */
	int (*table)(struct view *s, const struct view_table *t); /* every class in use, operators first */
	/* Every sheet that was asked for, in the order of view_sheets. table: see view/sheet.h */
	int (*sheet)(struct view *s, const struct view_sheet *sh, const void *table);
	const struct view_sheet *only; /* of sheets it shows this one; NULL: all */
	int (*opens)(struct view *s, const struct mxbpf_open *rows, size_t n); /* the oldest first, if any */
	int (*end)(struct view *s);
	void (*fini)(struct view *s); /* always */
};

extern const struct view_ops *const view_registry[]; /* NULL-terminated */
const struct view_ops *view_find(const char *name);
const struct view_ops *view_find_suffix(const char *path);

/* The one driver of all sinks. Does not commit `out`. */
int view_write(const struct view_ops *ops, const struct view_input *in, const struct view_opts *opts, struct out *out,
	       struct err *e);

/* Rows of a class as opts->by says, sorted by opts (ties: larger name first, as MXNet's own tables). Caller frees
 * *rows.
 */
int view_sorted_rows(struct mdl *m, enum mxbpf_class cls, const struct view_opts *opts, const struct mdl_row ***rows,
		     size_t *n);
/* The same as torch has them: whatever process and device, and lists of tensors have no shapes. users: annotations of
 * the program's have rows apart from operators of their name. */
int view_merged_rows(struct mdl *m, enum mxbpf_class cls, const struct view_opts *opts, bool users,
		     const struct mdl_row ***rows, size_t *n);

#endif
