/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the outputs share. */
#ifndef VIEW_PRIV_H
#define VIEW_PRIV_H

#include "base/hash.h"
#include "view/view.h"
#include "mxbpf_life.h"
#include "mxbpf_mark.h"
#include "mxbpf_step.h"

struct view_grid; /* in view/text/grid.h */

extern const struct view_ops view_modern, view_json, view_csv, view_page, view_chrome, view_pftrace, view_folded,
	view_pprof, view_arrow;

/* registry.c: returns the output that writes this session for `ops`: `ops` itself or another form of it. */
const struct view_ops *view_for(const struct view_ops *ops, const struct mdl_session *s);

/* escape.c: writes untrusted text of any length. view_put_safe() is for people, the other functions are for programs.
 */
void view_put_safe(struct out *o, const char *text, size_t len);
void view_put_utf8(struct out *o, const char *text, size_t len);
void view_put_json_exact(struct out *o, const char *text, size_t len); /* with quotes; escapes by fmt_json_exact() */
void view_put_csv(struct out *o, const char *text, size_t len);	       /* without quotes */
/* Takes the next line from *rest. Returns false if there is none. */
bool view_next_line(const char **rest, size_t *left, const char **line, size_t *len);
/*
 * Returns whether the text is a JSON list without blanks that has only whole numbers, such lists and, if `words` is
 * set, plain words. A text from a file can be anything.
 */
bool view_is_list(const char *text, size_t len, bool words);
/* Compares bytes, as std::string does. */
int view_name_cmp(const char *a, size_t alen, const char *b, size_t blen);

/* detail.c: returns the text that distinguishes rows of one name. Borrowed from the model; *len bytes without a NUL. */
const char *view_detail(const struct mdl *m, const struct view_opts *opts, const struct mdl_row *r, size_t *len);
#define VIEW_LABEL_BYTES 96 /* of a row, see view_row_name() */
/* Returns whether a row is a device, a process or a thread. */
bool view_by_place(enum view_by by);
/* labels.c: returns whether a row is all processes with one label. */
bool view_by_label(enum view_by by);
/* Writes "rank 3", "worker 0", "no rank" or the job. labels: of a process; NULL: there are none. */
void view_label(const struct mdl_labels *labels, enum view_by by, char buf[VIEW_LABEL_BYTES]);
/* Texts to group and sort processes by their labels, found by pid. Zero-initialise it, and call view_labels_fini() at
 * the end. */
struct view_labels {
	struct hash at; /* pid -> index into texts, plus 1 */
	char (*texts)[VIEW_LABEL_BYTES];
	char none[VIEW_LABEL_BYTES];
};
/* Returns 0 or -ENOMEM. */
int view_labels_init(struct view_labels *l, const struct mdl_session *s, enum view_by by);
void view_labels_fini(struct view_labels *l);
const char *view_labels_of(const struct view_labels *l, uint32_t pid);

/* Writes "4711 python3", "4711 rank 3 python3" or "4711 worker 0". Returns buf. */
const char *view_process_label(const struct view *s, uint32_t tgid, char buf[VIEW_LABEL_BYTES]);
/* Return whether rows show this detail: --by asks for it, or rows are events and the session has recorded it. */
bool view_shows_shapes(const struct view *s);
bool view_shows_stack(const struct view *s);
/* Returns the dimensions as JSON without blanks, or "[]" if they are unknown. */
const char *view_shapes(const struct mdl *m, uint64_t args_id, size_t *len);
/* Lines of a text of MXBPF_NAME_ARGS. The last two exist only if view_shows_outputs() is true. */
enum view_args_line {
	VIEW_ARGS_DIMS,
	VIEW_ARGS_TYPES,
	VIEW_ARGS_STRIDES,
	VIEW_ARGS_OUT_DIMS,
	VIEW_ARGS_OUT_TYPES,
	VIEW_ARGS_LINES,
};
/* Returns a line as JSON without blanks, or "[]" if it is unknown. */
const char *view_args_line(const struct mdl *m, uint64_t args_id, enum view_args_line i, size_t *len);
bool view_shows_outputs(const struct view *s); /* the session has output shapes and types */
/* Copies shapes to `to`, without the shapes within lists of tensors. `to` has len bytes. Returns the bytes used. */
size_t view_flat_shapes(const char *shapes, size_t len, char *to);
/* Returns the first line of a Python stack that names a module, and its length; "" and 0 if there is none. */
const char *view_module_line(const char *text, size_t *len);
const char *view_stack(const struct mdl *m, const struct view_opts *opts, uint64_t stack_id, size_t *len);
bool view_shows_layer(const struct view *s);
/* Returns NULL if there is no layer or its name was lost. Rows by layer drop the suffixes of forward and backward. */
bool view_shows_range(const struct view *s);
const char *view_layer(const struct mdl *m, const struct view_opts *opts, uint64_t layer_id, size_t *len);
/* Returns the name of a row by --by: operator, layer, device or thread. The text is buf or borrowed. */
const char *view_row_name(const struct view *s, const struct mdl_row *r, char buf[VIEW_LABEL_BYTES], size_t *len);
/* Returns the name to sort a row by, or "" for devices and threads, which sort by number. */
const char *view_row_key(const struct mdl *m, const struct view_opts *opts, const struct mdl_row *r, size_t *len);

/* feature/flops/sheet.c: returns whether the session has estimates, which need the output shapes of calls. */
bool view_shows_flops(const struct view *s);
/* Writes one or two lines on the number of estimated calls, or nothing if there are none. */
void view_put_flops_footer(const struct view *s, const struct mdl_flops *sum);

/* feature/counters/sheet.c: the number of performance counters (--counters) of a session, and their names. */
unsigned view_ncounters(const struct mdl_session *s);
const char *view_counter_name(const struct mdl_session *s, unsigned i);
/* A ratio of two counters. Returns the i-th whose counters the session has, or NULL if there are no more. */
struct view_ratio {
	const char *name, *head; /* for programs, for people */
	const char *over, *under;
	double factor;
};
const struct view_ratio *view_ratio(const struct mdl_session *s, unsigned i);
/* Returns false if the counts give no ratio. */
bool view_ratio_of(const struct mdl_session *s, const struct view_ratio *ratio, const struct mxbpf_counter_sum *c,
		   double *v);

/* view.c: makes one pass over the records. *done counts the bytes of all passes; `of` is their sum. */
int view_pass(struct view *s, int (*each)(struct view *s, const struct mxbpf_rec *r), uint64_t *done, uint64_t of);

/* events.c */
int view_events_read(struct view *s); /* 0 or -errno with s->err set */
/* view.c: how many of n rows are shown. */
size_t view_rows_max(const struct view *s, size_t n);
/* sort.c: the value that a key compares; 0 if rows do not have it, or for a name. */
long double view_sort_value(const struct mdl_row *r, enum view_sort by);
void view_events_table(const struct view *s, struct view_table *t);
uint64_t view_events_not_shown(const struct view *s); /* events of classes that have a table */
void view_events_fini(struct view *s);
struct mdl_row view_event_row(const struct mxbpf_span *s); /* a row of one call, without a histogram */

/* Notes that a short output leaves this out. The footer names it. */
void view_leave_out(struct view *s, const char *what);
/* text/footer.c: writes window, events and loss, each on a line that begins with `prefix`. */
void view_footer(struct view *s, const char *prefix);
extern const char *const view_text_magic[]; /* view_ops.magic of outputs with this footer */
/* Returns the sum over all classes. */
uint64_t view_tally(const struct mdl *m, enum mxbpf_tally_id id);
/* data/about.c: members of the object that is open in the JSON of a document or a trace. */
struct json;
/* Writes what watching cost the job. m: its iterations are those of the output; NULL: none. */
void view_json_cost(struct json *j, const struct mdl_session *s, struct mdl *m);
/* The six counters of records. */
void view_json_loss(struct json *j, const struct mxbpf_loss *l);
/* "sources": the loss of each source. Recordings of older versions have only the sum. */
void view_json_sources(struct json *j, const struct mdl_session *s);
/* What the numbers of the window do not contain, and functions that fell back. Writes only members with a value. */
void view_json_window(struct json *j, const struct mdl_session *s);

/* feature/machine/sheet.c: writes one line for each reading that explains slow calls. */
void view_put_machine(struct view *s, const char *prefix);

/* opens.c */
#define VIEW_WAITS_BYTES 128
const char *view_open_state(const struct mxbpf_open *o); /* returns a word, or "" if it is unknown */
/* Writes the system call and the kernel function: "futex: futex_do_wait". Returns buf. */
const char *view_open_waits(const struct mdl *m, const struct mxbpf_open *o, char buf[VIEW_WAITS_BYTES]);
/* The name of a row for time outside all operators. */
#define VIEW_NO_OPERATOR "[no operator]"
/* And for time in which no call was recorded. */
#define VIEW_BETWEEN_SLICES "[between slices]"

/* data/csv_text.c: write the first cell of a row (table and process), a cell with text, and a cell with lines. */
void view_csv_table(struct view *s, const char *table, uint32_t tgid); /* tgid 0: not of one process */
void view_csv_text(struct out *o, const char *text, size_t len);
void view_csv_lines(struct out *o, const char *text, size_t len);

/* detail.c: returns whether the row is a user annotation among the operators of the runtime. */
bool view_is_annotation(const struct view *s, const struct mdl_row *r);
/* detail.c: adds the shapes and types of an args_id: "[[2,3]] -> [[2,4]] float32", or "[]". Returns 0 or -ENOMEM. */
int view_shapes_note(const struct mdl *m, uint64_t args_id, struct buf *note);

/* stored.c: fills the table of a sheet that has one stored. 0 or -ENOMEM. */
int view_make_stored(const struct view *s, const struct view_sheet *sh, void *table);

#endif
