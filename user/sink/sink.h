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

struct snk_sheet;

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
	/* Every sheet that was asked for, in the order of snk_sheets. table: see sink/sheet.h */
	int (*sheet)(struct snk *s, const struct snk_sheet *sh, const void *table);
	const struct snk_sheet *only; /* of sheets it shows this one; NULL: all */
	int (*opens)(struct snk *s, const struct mxbpf_open *rows, size_t n); /* the oldest first, if any */
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
