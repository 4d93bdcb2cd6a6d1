/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live view: rates of the last second and of the last minute, the sentence that bounds a job, and rows of
 * operators, threads, processes, jobs and any other table. rates.c, jobs.c and table.c keep what each second was;
 * columns.c and frame.c make the text of a screen from it; screen.c shows it on a terminal by ncurses, and keys.c says
 * what keys do. Scripts get the text alone.
 */
#ifndef TOP_TOP_H
#define TOP_TOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "model/model.h"
#include "model/session.h"
#include "mxbpf_step.h"

#define TOP_SECONDS  60
#define TOP_ROWS_MAX 8192 /* rows of a view; calls of further rows are in no row, and are counted */
#define TOP_JOBS_MAX 64	  /* processes of further jobs are in the last one */

enum top_view { TOP_OPERATORS, TOP_THREADS, TOP_PROCESSES, TOP_JOBS, TOP_TABLE, TOP_VIEWS };
extern const char *const top_view_words[TOP_VIEWS];

/* Rates of a row over some seconds. A share of 1 means that one thread did nothing else. */
struct top_rates {
	double calls, iterations, share, cpu; /* cpu: CPUs that were used, of processes and jobs */
	uint64_t avg_ns;		      /* mean self time of a call */
};

/* The calls and the time of a row in a second. */
struct top_part {
	uint32_t calls, iterations;
	uint64_t self_ns, cpu_ns;
	bool known; /* in a second of top.sliced: a slice of its process ended, so the calls are known */
};

#define TOP_VALUE_BYTES 160
struct top_value {
	double number;
	char text[TOP_VALUE_BYTES];
};

struct top_row {
	uint64_t id;   /* not 0, and no other row has it */
	uint64_t a, b; /* its key in the table */
	char *name;    /* owned, untrusted */
	uint32_t job;  /* place in top.jobs */
	uint32_t tgid, tid;
	uint8_t cls;
	char kind[32]; /* of operators: title of their class */
	bool partial;  /* calls are missing, because --max-overhead left out probes */
	/* Of a process; a job has the sums of its processes. */
	bool alive;
	uint32_t rank, processes; /* rank: MDL_NO_NUMBER: not known */
	uint64_t started, cpu_ns, resident_bytes;
	int64_t live_bytes; /* allocated less freed since the start, when the last iteration ended */
	char line[200]; /* of Python, where most looks of the last second found the thread, untrusted; "": unknown */
	uint64_t line_looks;
	struct top_part parts[TOP_SECONDS];
	struct top_rates second, minute; /* of the second that is shown, and of the last seconds */
	struct top_value *values;	 /* of TOP_TABLE: owned, one for each column */
};

/* A second of a job. */
struct top_second {
	uint64_t window_ns, iterations, iteration_ns;
	uint64_t part_ns[MXBPF_STEP_PARTS]; /* in iterations whose parts are known */
	uint64_t known_ns;
};

#define TOP_LOOPS_MAX 8

/* Iterations of a thread in the last second, if its process has several such threads. */
struct top_loop {
	uint32_t job, tid; /* job: 1 + place of its row */
	uint64_t iterations, iteration_ns;
};

struct top_table {
	struct hash places; /* key -> 1 + place in rows */
	struct buf rows;    /* struct top_row */
};

#define TOP_TABLE_COLUMNS    24
#define TOP_TABLE_NAME_BYTES 48
struct top_table_columns {
	unsigned n;
	struct {
		char head[24];
		unsigned width;	    /* of its texts in the second that is shown */
		bool number, below; /* below: only the details have it */
	} of[TOP_TABLE_COLUMNS];
};

/* The table that the view TOP_TABLE shows. */
struct top_any {
	const struct view_sheet *of; /* NULL: none was chosen yet */
	bool shown;		     /* it is made in each second */
	bool rates;		     /* it has some, so its rows stay for a minute */
	int step;		     /* 1: the next second goes to the next table with rows; -1: to the one before */
	unsigned sort;		     /* a column */
	uint64_t left_out;	     /* rows of the second for which there was no place */
	struct top_table_columns columns;
};

/* Calls of one operator on one thread in the second that is shown. */
struct top_cell {
	uint32_t rows[TOP_VIEWS]; /* 1 + place of its row; 0: none */
	uint64_t calls, self_ns, total_ns, p50_ns, max_ns;
	uint64_t runq_ns, blocked_ns; /* of self_ns */
};

struct top {
	bool one_job; /* all processes are of one job; set it before the first second */
	bool frozen;  /* seconds are taken, but what is shown stays */
	uint64_t n;   /* seconds that were taken */
	uint64_t at;  /* number of the second that is shown, from 1 */
	struct top_table tables[TOP_VIEWS];
	struct top_any table;
	struct top_second
		*jobs[TOP_JOBS_MAX + 1]; /* owned rings of TOP_SECONDS; 0: the sum; i: of the job in row i - 1 */
	uint32_t job;			 /* whose rows and finding are shown; 0: all */
	struct top_loop loops[TOP_LOOPS_MAX];
	unsigned nloops;
	struct buf cells;	/* struct top_cell */
	uint64_t ids, left_out; /* left_out: calls without a row in the second that is shown */
	uint64_t lost[TOP_SECONDS];
	bool sliced[TOP_SECONDS]; /* calls were recorded in slices */
	uint64_t shown_lost, minute_lost;
	bool partial;		       /* there are partial rows */
	bool account;		       /* cells have runq_ns and blocked_ns */
	char title[160], finding[512]; /* untrusted */
	bool python;		       /* the program is in Python */
	unsigned gpus;		       /* GPUs that had work; 0: none is known */
	double gpu;		       /* share of the time in which they were busy */
	uint64_t added_ns, own_ns;     /* CPU time in the last second: added by watching, and of mxbpf itself */
	uint64_t own_before_ns;
};

/* Adds an interval. 0 or -ENOMEM. */
int top_take(struct top *t, const struct mdl_interval *in);
void top_fini(struct top *t);

/* ---- rates.c */
#define top_rows(t, view) buf_count(&(t)->tables[view].rows, struct top_row)
static inline struct top_row *top_row(const struct top *t, enum top_view v, size_t place)
{
	return buf_at(&t->tables[v].rows, struct top_row, place);
}
/* Finds a row, or adds one without a name. NULL: out of memory, or there are too many. */
struct top_row *top_row_put(struct top *t, enum top_view v, uint64_t a, uint64_t b);
struct top_row *top_row_find(const struct top *t, enum top_view v, uint64_t a, uint64_t b);
static inline struct top_part *top_part_now(const struct top *t, struct top_row *row)
{
	return &row->parts[t->n % TOP_SECONDS];
}

void top_rows_clear(struct top *t, enum top_view v);

/* ---- table.c. Makes the table that is shown, as far as one is. 0 or -ENOMEM. */
int top_take_table(struct top *t, const struct mdl_interval *in);
const char *top_table_name(const struct top *t, char name[TOP_TABLE_NAME_BYTES]); /* "": none was chosen */
bool top_table_has(const struct top *t, const struct top_row *r);		  /* the row is shown */
/* Writes the line of a row; of the headings if r is NULL. */
void top_table_line(const struct top *t, const struct top_row *r, char *to, size_t max);
int top_table_compare(const struct top *t, const struct top_row *a, const struct top_row *b);

/* ---- jobs.c. They return 0 or -ENOMEM. */
int top_take_processes(struct top *t, const struct mdl_interval *in);
/* The row of a process, also of one that has ended meanwhile. NULL: no memory or too many. */
struct top_row *top_process_put(struct top *t, const struct mdl_session *s, uint32_t tgid);
int top_take_iterations(struct top *t, const struct mdl_interval *in);
int top_take_finding(struct top *t, const struct mdl_interval *in);
/* The second of a job that is shown. NULL: none was taken yet. */
const struct top_second *top_second(const struct top *t, uint32_t job);
/* Iterations per second over the k seconds up to that which is shown; 0: none. */
double top_iterations(const struct top *t, uint32_t job, unsigned k);
/* The sum over the processes of a job, in struct top_row. alive: there are any. */
struct top_row top_job_sum(const struct top *t, uint32_t job);

/* ---- what the user wants to see */

struct top_choice {
	enum top_view view;
	unsigned sort[TOP_VIEWS]; /* places in top_columns */
	bool ascending, typing;	  /* typing: keys go into the filter */
	bool marks;		  /* the chosen row is marked; not in text for scripts */
	bool bare;		  /* the table alone */
	char filter[64];
	unsigned first, chosen;	    /* rows: at the top of the table, and the chosen one */
	uint64_t chosen_id, opened; /* ids of rows; opened: with its details; 0: none */
	unsigned width, height;
	const char *said;	 /* the last message of the session; NULL: none */
	const struct buf *popup; /* text that is shown instead of the table; NULL: none */
	unsigned popup_first;	 /* its first line */
};
void top_choice_init(struct top_choice *c);

/* A column of tables. */
struct top_column {
	const char *word, *head;
	unsigned width;				  /* at least; 0: the rest of the line */
	unsigned least;				  /* columns of a screen that has it */
	unsigned views;				  /* bits of enum top_view */
	bool of_jobs;				  /* only if there are several jobs */
	double (*value)(const struct top_row *r); /* NULL: it is sorted by the text */
	const char *(*text)(const struct top *t, const struct top_row *r, char buf[64]);
};
extern const struct top_column top_columns[]; /* ends with word NULL */
bool top_column_shows(const struct top *t, const struct top_choice *c, const struct top_column *column);
bool top_view_shows(const struct top *t, enum top_view v);
/* Sorts rows. */
void top_sort(const struct top *t, const struct top_choice *c, const struct top_row **rows, size_t n);

/* The text of a screen: lines, each with a line feed, without colours. */
struct top_page {
	struct buf text;
	unsigned head;	 /* the line with the headings of the table; 0: none */
	unsigned chosen; /* the line of the chosen row; 0: none */
	unsigned rows;	 /* that fit the filter, or lines of the popup */
	unsigned fit;	 /* of them, so many are on the screen at once */
};
/* Makes the page anew, and moves the choice to rows that still exist. 0 or -ENOMEM. */
int top_frame(const struct top *t, struct top_choice *c, struct top_page *page);

/* ---- the terminal, which has a thread of its own: one that takes no output delays nothing */

/* A key that needs the session. run() makes text for a popup, or none. pid: process of the chosen row; 0: all.
 */
struct top_action {
	int key;
	const char *word, *help;
	void (*run)(void *ctx, uint32_t pid, struct buf *text);
};

struct top_screen;
/*
 * Takes over the terminal. actions end with key 0; they and t are borrowed. ERR_RUNTIME if it cannot move the cursor.
 */
int top_screen_open(struct top_screen **out, struct top *t, const struct top_action *actions, struct err *e);
int top_screen_fd(const struct top_screen *s); /* readable if top_screen_serve() has something to do */
/* Runs the action whose key was pressed. Returns true if the user wants to leave. */
bool top_screen_serve(struct top_screen *s, void *ctx);
/*
 * Call them around changes of *t, which only the holder of the lock reads or changes. top_screen_unlock() draws the
 * screen.
 */
void top_screen_lock(struct top_screen *s);
void top_screen_unlock(struct top_screen *s);
/* A message of the session: a warning stays, others until the first second is over. Called from any thread. */
void top_screen_say(struct top_screen *s, bool warning, const char *text);
void top_screen_close(struct top_screen *s); /* gives the terminal back; NULL is legal */

/* ---- keys.c, for screen.c */

struct top_keys {
	struct top *t;
	struct top_choice *c;
	const struct top_page *page;
	const struct top_action *actions;
	const struct top_action *asked; /* the action whose key was pressed; NULL: none */
	struct buf *popup;		/* text that a key shows at once */
	bool leave;
};
void top_press(struct top_keys *k, int key);

#endif
