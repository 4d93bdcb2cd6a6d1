/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of text in columns. The first column is left-aligned, and is cut if the line is too long. */
#ifndef VIEW_GRID_H
#define VIEW_GRID_H

#include "base/buf.h"
#include "base/out.h"

#define VIEW_WIDTH 100 /* columns, if the output is not a terminal */

#define VIEW_GRID_COLS_MAX     32
#define VIEW_GRID_NAME_MIN_MAX 40

struct view_grid_col {
	const char *head;
	bool left;
	bool hidden;
	/* The column is hidden if the first one needs more room and has less than this; the largest first. 0: never. */
	unsigned name_min;
};

struct view_grid {
	struct view_grid_col cols[VIEW_GRID_COLS_MAX];
	unsigned ncols;
	bool begins;	    /* a name that is too long keeps its beginning, as in "gemm<float, 1…" */
	const char *prefix; /* before each line; NULL: none */
	struct buf cells;   /* char *, owned, row after row */
	struct buf notes;   /* private: lines below rows */
};

/* Adds the next cell. Returns 0 or -ENOMEM. */
int view_grid_add(struct view_grid *g, const char *text, size_t len);
/* Adds lines below the row whose cells were added last. Returns 0 or -ENOMEM. */
int view_grid_note(struct view_grid *g, const char *text, size_t len);
void view_grid_print(struct view_grid *g, unsigned width, struct out *o);
void view_grid_fini(struct view_grid *g);

#endif
