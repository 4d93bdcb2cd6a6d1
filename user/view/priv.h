/* SPDX-License-Identifier: Apache-2.0 */
/* What the sinks share. */
#ifndef VIEW_PRIV_H
#define VIEW_PRIV_H

#include "view/view.h"
#include "mxbpf_life.h"
#include "mxbpf_mark.h"
#include "mxbpf_step.h"

extern const struct view_ops view_modern, view_mxnet, view_mxnet_json, view_json, view_csv, view_chrome, view_kineto,
	view_chrome_classic, view_torch, view_torch_classic, view_folded, view_pprof, view_mxnet_memory;

/* registry.c: the sink that writes this session for `ops`: itself, or one of another form. */
const struct view_ops *view_for(const struct view_ops *ops, const struct mdl_session *s);

/* text.c: hostile text of any length. For people (see fmt_safe()), and for programs and the compatible layouts. */
void view_put_safe(struct out *o, const char *text, size_t len);
void view_put_utf8(struct out *o, const char *text, size_t len);
void view_put_json(struct out *o, const char *text, size_t len);       /* with its quotes */
void view_put_json_exact(struct out *o, const char *text, size_t len); /* see fmt_json_exact(); with its quotes */
void view_put_csv(struct out *o, const char *text, size_t len);	       /* without them */
/* The next line of *rest, which loses it. False: there is none. */
bool view_next_line(const char **rest, size_t *left, const char **line, size_t *len);
/* Whether it is a list of whole numbers, such lists and, if they may be, plain words, in JSON without blanks: it may
 * come from a file that is anybody's. */
bool view_is_list(const char *text, size_t len, bool words);
/* std::string order, which is that of MXNet's tables. */
int view_name_cmp(const char *a, size_t alen, const char *b, size_t blen);

/* detail.c: what tells rows of one name apart. Borrowed from the model as its texts, of *len bytes, not NUL-terminated.
 */
const char *view_detail(const struct mdl *m, const struct view_opts *opts, const struct mdl_row *r, size_t *len);
#define VIEW_LABEL_BYTES 96 /* of a row, see view_row_name() */
/* A row is a device, a process or a thread, whatever ran there. */
bool view_by_place(enum view_by by);
/* "4711 python3", "4711 worker 0". Returns buf. */
const char *view_process_label(const struct view *s, uint32_t tgid, char buf[VIEW_LABEL_BYTES]);
/* What rows have to show: as --by says, events all that the session has. */
bool view_shows_shapes(const struct view *s);
bool view_shows_stack(const struct view *s);
/* Dimensions as JSON without blanks; "[]" where they are not known. */
const char *view_shapes(const struct mdl *m, uint64_t args_id, size_t *len);
/* The lines of a text of MXBPF_NAME_ARGS; the last two only where view_shows_outputs(). */
enum view_args_line {
	VIEW_ARGS_DIMS,
	VIEW_ARGS_TYPES,
	VIEW_ARGS_STRIDES,
	VIEW_ARGS_OUT_DIMS,
	VIEW_ARGS_OUT_TYPES,
	VIEW_ARGS_LINES,
};
/* As view_shapes(). */
const char *view_args_line(const struct mdl *m, uint64_t args_id, enum view_args_line i, size_t *len);
bool view_shows_outputs(const struct view *s); /* what comes out, and types */
/* As torch's tables have them: a list of tensors has none. To `to`, which takes len bytes; returns what it got. */
size_t view_flat_shapes(const char *shapes, size_t len, char *to);
const char *view_stack(const struct mdl *m, const struct view_opts *opts, uint64_t stack_id, size_t *len);
bool view_shows_layer(const struct view *s);
/* NULL: none, or its name was lost. By layer without what its forward and backward operators add to it. */
const char *view_layer(const struct mdl *m, const struct view_opts *opts, uint64_t layer_id, size_t *len);
/* What a row is called: its operator, its layer, device or thread, as --by says. Returns buf or a borrowed text. */
const char *view_row_name(const struct view *s, const struct mdl_row *r, char buf[VIEW_LABEL_BYTES], size_t *len);
/* The same where rows are put in order: "" of devices and threads, whose numbers tell. */
const char *view_row_key(const struct mdl *m, const struct view_opts *opts, const struct mdl_row *r, size_t *len);

/* flops.c. Where calls have outputs, there are estimates. For people: operations, and billions of them in a second. */
bool view_shows_flops(const struct view *s);
#define VIEW_FLOPS_BYTES 32
void view_flops_cell(const struct mdl_flops *f, char cell[VIEW_FLOPS_BYTES]);
void view_flops_rate_cell(const struct mdl_flops *f, char cell[VIEW_FLOPS_BYTES]);
/* How many calls it is of: a line or two, if there are such. */
void view_put_flops_footer(const struct view *s, const struct mdl_flops *sum);
/* Behind other members of an object, and other cells of a line; NULL: of the heading. Nothing where none are shown. */
void view_put_flops_json(const struct view *s, const struct mdl_flops *f);
void view_put_flops_csv(const struct view *s, const struct mdl_flops *f);

/* counters.c: what --counters counted. How many counters a session has, and their names, which are words. */
unsigned view_ncounters(const struct mdl_session *s);
const char *view_counter_name(const struct mdl_session *s, unsigned i);
/* What follows from two of them. The i-th that the session has both of; NULL: no more. */
struct view_ratio {
	const char *name, *head; /* for programs, for people */
	const char *over, *under;
	double factor;
};
const struct view_ratio *view_ratio(const struct mdl_session *s, unsigned i);
/* False where nothing was counted that it could be made of. */
bool view_ratio_of(const struct mdl_session *s, const struct view_ratio *ratio, const struct mxbpf_counter_sum *c,
		   double *v);
/* Behind other members of a row: ", "counters": {...}" if the session has any. */
void view_put_counters_json(const struct view *s, const struct mxbpf_counter_sum *c);
/* Cells behind the others of a line; NULL: of the heading. */
void view_put_counters_csv(const struct view *s, const struct mxbpf_counter_sum *c);
/* The same of one span, for traces. Returns the end; VIEW_EVENT_BYTES / 2 at most. */
char *view_put_counters(const struct mdl_session *s, char *p, const struct mxbpf_span *span);
/* The table for people below that of a class. 0, -ENOMEM. */
int view_counter_table(struct view *s, const struct view_table *t);

/* sink.c: one pass over the records; *done counts bytes over all passes, of `of`. */
int view_pass(struct view *s, int (*each)(struct view *s, const struct mxbpf_rec *r), uint64_t *done, uint64_t of);

/* events.c */
int view_events_read(struct view *s); /* 0 or -errno with s->err set */
void view_events_table(const struct view *s, struct view_table *t);
uint64_t view_events_not_shown(const struct view *s); /* of classes that have a table */
void view_events_fini(struct view *s);
struct mdl_row view_event_row(const struct mxbpf_span *s); /* of one call; without a histogram */

/* footer.c: window, events and loss, a line each behind `prefix`. */
void view_footer(struct view *s, const char *prefix);
extern const char *const view_text_magic[]; /* view_ops.magic of what ends with that */
/* The six counters as the inside of a JSON object on one line. */
void view_put_loss_json(struct out *o, const struct mxbpf_loss *l);
/* `before` and "sources": [...], the loss of each; nothing for recordings that have the sum alone. */
void view_put_sources_json(struct out *o, const struct mdl_session *s, const char *before);
/* Of all classes. */
uint64_t view_tally(const struct mdl *m, enum mxbpf_tally_id id);
/* Behind another member of the window: what is not in the numbers, and functions that fell back, if there are such. */
void view_put_window_json(struct out *o, const struct mdl_session *ss);

/* machine.c. What explains slow calls, a line each; as the last member of an object, if the machine was read. */
void view_put_machine(struct view *s, const char *prefix);
void view_put_machine_json(struct view *s);
/* A control group's limit took CPUs from the target, so much of the window that it is said. */
bool view_throttled(const struct mdl *m);
/* The hypervisor took so much CPU time in the window that the outputs say so. */
bool view_stolen(const struct mdl *m);
/* Whose a gauge is; "" for the machine's. Hostile. */
const char *view_scope_name(const struct mdl *m, uint16_t scope, size_t *len);

/* open.c */
#define VIEW_WAITS_BYTES 128
const char *view_open_state(const struct mxbpf_open *o); /* a word; "" where it is not known */
/* In which system call and function of the kernel: "futex: futex_do_wait". Returns buf. */
const char *view_open_waits(const struct mdl *m, const struct mxbpf_open *o, char buf[VIEW_WAITS_BYTES]);
/* As a table for people, of those that were open for long. 0 or -errno with s->err set. */
int view_put_opens(struct view *s, const struct mxbpf_open *rows, size_t n);

/* steps.c */
extern const char *const view_parts[MXBPF_STEP_PARTS]; /* words for programs */
extern const char *const view_tolds[MXBPF_STEP_WHATS];

#define VIEW_NO_OPERATOR "[no operator]"

/* lives.c */
extern const char *const view_life_parts[MXBPF_LIFE_PARTS]; /* words for programs */
extern const char *const view_wait_whats[MXBPF_WAIT_WHATS]; /* likewise */

/* marks.c */
extern const char *const view_scopes[MXBPF_SCOPES]; /* "": not known */
const char *view_instant_name(const struct mdl *m, const struct mxbpf_instant *i, size_t *len);
/* What a mark of the program's belongs to; "" where there is none. Hostile. */
const char *view_domain(const struct mdl *m, uint64_t name_id, size_t *len);

/* csv_text.c: a cell with text, or none; one cell more, of lines; the first, which says whose rows they are. */
void view_csv_table(struct view *s, const char *table, uint32_t tgid); /* tgid 0: of no process alone */
void view_csv_text(struct out *o, const char *text, size_t len);
void view_csv_lines(struct out *o, const char *text, size_t len);

#define VIEW_WIDTH 80 /* columns of a terminal that is none */

/* grid.c: rows of text in columns. The first column is left-aligned and gives way when the line is too long. */
#define VIEW_GRID_COLS_MAX     18
#define VIEW_GRID_NAME_MIN_MAX 32

struct view_grid_col {
	const char *head;
	bool left;
	bool hidden;
	unsigned name_min; /* hidden when the first column has less than this and needs it, the largest first; 0: never
			    */
};

struct view_grid {
	struct view_grid_col cols[VIEW_GRID_COLS_MAX];
	unsigned ncols;
	const char *prefix; /* of each line; NULL: none */
	struct buf cells;   /* char *, owned, row after row */
	struct buf notes;   /* lines below rows; private */
};

/* The next cell. 0, -ENOMEM. */
int view_grid_add(struct view_grid *g, const char *text, size_t len);
/* Lines that stand below the row whose cells were added last. 0, -ENOMEM. */
int view_grid_note(struct view_grid *g, const char *text, size_t len);
/* detail.c: it is of an annotation of the program's in the table of the runtime's operators, and of nothing else. */
bool view_is_annotation(const struct view *s, const struct mdl_row *r);
/* detail.c: all that is known of an args_id's arrays, if anything is: "[[2,3]] -> [[2,4]] float32". 0, -ENOMEM. */
int view_grid_shapes(const struct view *s, struct view_grid *g, uint64_t args_id);
void view_grid_print(struct view_grid *g, unsigned width, struct out *o);
void view_grid_fini(struct view_grid *g);

/* mxnet.c: the tables of mxnet.profiler.dumps(). */
struct view_mxnet_row {
	char *name; /* owned */
	size_t len;
	bool counter; /* a value that went up and down, not durations */
	uint64_t count;
	double total, self, p99, min, max; /* us; bytes in a memory category */
};

struct view_mxnet_category {
	char *title; /* owned */
	bool memory;
	bool bare;	 /* has no rows, and is there all the same */
	struct buf rows; /* struct view_mxnet_row, sorted, cut to opts.top */
};

struct view_mxnet_tables {
	struct buf categories; /* struct view_mxnet_category, sorted by title, without empty ones */
};

int view_mxnet_make(const struct view *s, struct view_mxnet_tables *t); /* 0, -ENOMEM; to be freed either way */
void view_mxnet_fini(struct view_mxnet_tables *t);
double view_mxnet_avg(const struct view_mxnet_row *r);
/* us to ms, bytes to kB: float, as the original computes it, so that the same digits come out. */
float view_mxnet_thousandth(double v);

#endif
