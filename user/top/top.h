/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live view: rates of the last second and of the last minute, the sentence that bounds the job, and the rows with
 * the most time. rates.c keeps what each second was; frame.c makes the text of a screen from it; screen.c shows it on a
 * terminal by ncurses. Scripts get the text alone.
 */
#ifndef TOP_TOP_H
#define TOP_TOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "model/model.h"
#include "model/session.h"
#include "mxbpf_step.h"

#define TOP_SECONDS  60
#define TOP_ROWS_MAX 8192 /* names that are kept; further ones are in no row, and are counted */

/* Rates of a row over some seconds. A share of 1 means that one thread did nothing else. */
struct top_rates {
	double calls, share;
	uint64_t avg_ns; /* of its own time */
};

struct top_row {
	char *name; /* owned, untrusted */
	uint8_t cls;
	uint32_t calls[TOP_SECONDS];
	uint64_t self_ns[TOP_SECONDS];
	struct top_rates second, minute; /* of the last seconds that were taken */
};

/* A second of the job. */
struct top_second {
	uint64_t window_ns, iterations, iteration_ns, added_ns, lost;
	uint64_t part_ns[MXBPF_STEP_PARTS]; /* of iterations whose parts are known */
	uint64_t known_ns;
};

struct top {
	struct top_second seconds[TOP_SECONDS]; /* a ring: the last one is at (n - 1) % TOP_SECONDS */
	uint64_t n;				/* seconds that were taken */
	struct hash places;			/* (class, name id) -> 1 + place in rows */
	struct buf rows;			/* struct top_row */
	uint64_t left_out;			/* calls of names beyond TOP_ROWS_MAX, in the last second */
	int64_t live_bytes;			/* of the last iteration; 0: not known */
	char title[160], finding[512];		/* untrusted */
	uint64_t own_ns;			/* CPU time of mxbpf in the last second */
	uint64_t own_before_ns;
};

/* Takes the model of an interval. 0 or -ENOMEM. */
int top_take(struct top *t, const struct mdl_session *s, struct mdl *m);
void top_fini(struct top *t);
const struct top_second *top_last(const struct top *t); /* NULL: none was taken yet */
/* Iterations per second over the last k seconds; 0: none. */
double top_iterations(const struct top *t, unsigned k);

enum top_sort { TOP_BY_SHARE, TOP_BY_CALLS, TOP_BY_AVG, TOP_BY_MINUTE, TOP_BY_NAME, TOP_SORTS };
extern const char *const top_sort_words[TOP_SORTS];

/* How the user wants to see the rows. */
struct top_choice {
	enum top_sort sort;
	bool ascending, help, frozen, typing; /* typing: keys go into the filter */
	char filter[64];
	unsigned first; /* row at the top of the table */
	unsigned width, height;
	const char *said; /* the last message of the session; NULL: none */
};

/*
 * Appends the lines of a screen to out, each with a line feed, without colours; *head is the line with the headings of
 * the table, and *rows the number of rows that fit the filter. 0 or -ENOMEM.
 */
int top_frame(struct top *t, const struct top_choice *c, struct buf *out, unsigned *head, unsigned *rows);

/* ---- the terminal */

struct top_screen;
/* Takes over the terminal. ERR_RUNTIME if it cannot move the cursor. */
int top_screen_open(struct top_screen **out, struct err *e);
void top_screen_draw(struct top_screen *s, struct top *t);
/* Takes the keys that were typed. Returns true if the user wants to leave. */
bool top_screen_keys(struct top_screen *s, struct top *t);
/* A message of the session: a warning stays, others until the first second is over. */
void top_screen_say(struct top_screen *s, struct top *t, bool warning, const char *text);
void top_screen_close(struct top_screen *s); /* gives the terminal back; NULL is legal */

#endif
