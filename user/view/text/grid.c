// SPDX-License-Identifier: Apache-2.0
#include "view/priv.h"

#include "base/fmt.h"
#include "view/text/grid.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_MIN   8 /* columns that the first column keeps on any terminal */
#define NOTE_INDENT 4
#define NOTE_MIN    12 /* columns that a note has on any terminal */

struct note {
	size_t row;
	char *text; /* owned */
};

static char *safe(const char *text, size_t len)
{
	size_t cap = fmt_safe(NULL, 0, text, len) + 1;
	char *copy = malloc(cap);

	if (copy)
		fmt_safe(copy, cap, text, len);
	return copy;
}

int view_grid_add(struct view_grid *g, const char *text, size_t len)
{
	char *cell = safe(text, len);

	if (!cell || buf_put(&g->cells, &cell, sizeof(cell))) {
		free(cell);
		return -ENOMEM;
	}
	return 0;
}

int view_grid_note(struct view_grid *g, const char *text, size_t len)
{
	struct note note = {.row = buf_count(&g->cells, char *) / g->ncols - 1};
	const char *line;
	size_t n;

	while (view_next_line(&text, &len, &line, &n)) {
		note.text = safe(line, n);
		if (!note.text || buf_put(&g->notes, &note, sizeof(note))) {
			free(note.text);
			return -ENOMEM;
		}
	}
	return 0;
}

static const char *cell_at(const struct view_grid *g, size_t row, unsigned col)
{
	return *buf_at(&g->cells, char *, row * g->ncols + col);
}

static size_t nrows(const struct view_grid *g)
{
	return g->ncols ? buf_count(&g->cells, char *) / g->ncols : 0;
}

static size_t widest(const struct view_grid *g, unsigned col)
{
	size_t max = fmt_columns(g->cols[col].head), n, i;

	for (i = 0; i < nrows(g); i++) {
		n = fmt_columns(cell_at(g, i, col));
		max = n > max ? n : max;
	}
	return max;
}

/* Width that the other columns leave to the first one. */
static size_t first_room(const struct view_grid *g, const size_t *widths, unsigned width)
{
	size_t used = 0;
	unsigned i;

	for (i = 1; i < g->ncols; i++)
		if (!g->cols[i].hidden)
			used += widths[i] + 1;
	return width > used + FIRST_MIN ? width - used : FIRST_MIN;
}

static void fit(struct view_grid *g, size_t *widths, unsigned width)
{
	unsigned i, want;
	size_t room;

	for (i = 0; i < g->ncols; i++)
		widths[i] = widest(g, i);
	for (want = VIEW_GRID_NAME_MIN_MAX; want; want--) {
		for (i = 1; i < g->ncols; i++)
			if (g->cols[i].name_min == want &&
			    first_room(g, widths, width) < (widths[0] < want ? widths[0] : want))
				g->cols[i].hidden = true;
	}
	room = first_room(g, widths, width);
	if (widths[0] > room)
		widths[0] = room;
}

static void put_pad(struct out *o, size_t n)
{
	out_printf(o, "%*s", (int)n, "");
}

/* Writes the beginning of a text in `head` columns, and its end in what is left of `width`. */
static void put_ends(struct out *o, const char *text, size_t head, size_t width)
{
	const char *end = fmt_head(text, head);
	const char *tail = fmt_tail(text, width - head - 1);

	out_write(o, text, (size_t)(end - text));
	out_puts(o, fmt_ellipsis());
	out_puts(o, tail);
	put_pad(o, width - (fmt_columns(text) - fmt_columns(end)) - 1 - fmt_columns(tail));
}

#define SHORT_BEGINNING 3 /* a shared beginning up to a third of the width, such as "aten::", is kept */

/*
 * Writes a name, with one gap at most if it is too long: "_backward_Fully…nected". If another long name shares much of
 * its beginning, it loses that, because its end tells the two apart: "…AddmmBackward0".
 */
static void grid_put_name(struct out *o, const char *text, size_t shared, size_t width)
{
	const size_t all = fmt_columns(text), rest = fmt_columns(text + shared);

	if (all <= width) {
		out_puts(o, text);
		put_pad(o, width - all);
	} else if (all - rest <= width / SHORT_BEGINNING) {
		put_ends(o, text, width / 2, width);
	} else {
		put_ends(o, rest < width ? text + shared : text, 0, width);
	}
}

#define DIFFERENCE_MIN 8 /* columns by which people see that two names differ */

/*
 * Writes a name that keeps its beginning, such as the function of a kernel. If its difference from other names would be
 * cut off, up to a half of the width is for that: "vectorized_elem…CUDAFunctor_add…".
 */
static void put_beginning(struct out *o, const char *text, size_t shared, size_t width)
{
	size_t rest = fmt_columns(text + shared), before = fmt_columns(text) - rest, room = width;
	const char *end;

	if (before + rest > width && shared && before + DIFFERENCE_MIN > width) {
		end = fmt_head(text, width - (rest < width / 2 ? rest : width / 2) - 1);
		out_write(o, text, (size_t)(end - text));
		out_puts(o, fmt_ellipsis());
		room -= fmt_columns(text) - fmt_columns(end) + 1;
		text += shared;
	}
	end = fmt_columns(text) > room ? fmt_head(text, room - 1) : text + strlen(text);
	out_write(o, text, (size_t)(end - text));
	room -= fmt_columns(text) - fmt_columns(end);
	if (*end) {
		out_puts(o, fmt_ellipsis());
		room--;
	}
	put_pad(o, room);
}

/* Bytes of the longest beginning that two names share, up to a character that separates parts of names. */
static size_t shared_part(const char *a, const char *b, const char *separators)
{
	size_t i, end = 0;

	for (i = 0; a[i] && a[i] == b[i]; i++)
		if (strchr(separators, a[i]))
			end = i + 1;
	return a[end] ? end : 0;
}

static int grid_by_text(const void *a, const void *b)
{
	return strcmp(**(char *const *const *)a, **(char *const *const *)b);
}

/* For each first cell that is too long: bytes of its beginning that another such cell shares. NULL: out of memory. */
static size_t *shared_parts(const struct view_grid *g, size_t width)
{
	char **cells = (char **)g->cells.data, ***longs = calloc(nrows(g) + 1, sizeof(*longs));
	size_t *shared = calloc(nrows(g) + 1, sizeof(*shared)), n = 0, i, part;

	for (i = 0; longs && i < nrows(g); i++)
		if (fmt_columns(cells[i * g->ncols]) > width)
			longs[n++] = &cells[i * g->ncols];
	if (n)
		qsort(longs, n, sizeof(*longs), grid_by_text);
	for (i = 1; shared && i < n; i++) { /* sorted: the name that shares most is a neighbour */
		part = shared_part(*longs[i - 1], *longs[i], g->begins ? ":<(, _" : ":/#.] ");
		for (size_t j = i - 1; j <= i; j++) {
			size_t *most = &shared[(size_t)(longs[j] - cells) / g->ncols];

			*most = part > *most ? part : *most;
		}
	}
	free(longs);
	return shared;
}

static void grid_put_cell(const struct view_grid *g, unsigned col, const char *text, size_t width, struct out *o)
{
	size_t n = fmt_columns(text);

	put_pad(o, 1 + (g->cols[col].left ? 0 : width - n));
	out_puts(o, text);
	if (g->cols[col].left)
		put_pad(o, width - n);
}

static void put_prefix(const struct view_grid *g, struct out *o)
{
	if (g->prefix)
		out_puts(o, g->prefix);
}

static void grid_put_row(const struct view_grid *g, const char *const *cells, size_t shared, const size_t *widths,
			 struct out *o)
{
	unsigned i;

	put_prefix(g, o);
	(g->begins ? put_beginning : grid_put_name)(o, cells[0], shared, widths[0]);
	for (i = 1; i < g->ncols; i++)
		if (!g->cols[i].hidden)
			grid_put_cell(g, i, cells[i], widths[i], o);
	out_puts(o, "\n");
}

/* Returns the last blank within the first n columns, or NULL. */
static const char *line_break(const char *text, size_t n)
{
	const char *end = fmt_head(text, n), *p;

	for (p = end; p > text; p--)
		if (*p == ' ')
			return p;
	return NULL;
}

/* Writes a note, on several lines if it is too long. A line without a blank to break it at loses its middle. */
static void put_note(const struct view_grid *g, const char *text, size_t room, struct out *o)
{
	const char *end;
	size_t indent = NOTE_INDENT;

	for (;; text = end + 1, indent = NOTE_INDENT + NOTE_INDENT) {
		size_t left = room - (indent - NOTE_INDENT);

		put_prefix(g, o);
		put_pad(o, indent);
		end = fmt_columns(text) > left ? line_break(text, left) : NULL;
		if (!end)
			break;
		out_write(o, text, (size_t)(end - text));
		out_puts(o, "\n");
	}
	room -= indent - NOTE_INDENT;
	grid_put_name(o, text, 0, fmt_columns(text) < room ? fmt_columns(text) : room);
	out_puts(o, "\n");
}

static void grid_put_notes(const struct view_grid *g, size_t row, size_t *next, unsigned width, struct out *o)
{
	size_t room = width > NOTE_INDENT + NOTE_MIN ? width - NOTE_INDENT : NOTE_MIN;
	const struct note *note;

	for (; *next < buf_count(&g->notes, struct note); ++*next) {
		note = buf_at(&g->notes, struct note, *next);
		if (note->row != row)
			break;
		put_note(g, note->text, room, o);
	}
}

void view_grid_print(struct view_grid *g, unsigned width, struct out *o)
{
	size_t widths[VIEW_GRID_COLS_MAX] = {0}, note = 0, *shared, i;
	const char *heads[VIEW_GRID_COLS_MAX] = {""};

	fit(g, widths, width);
	shared = shared_parts(g, widths[0]);
	for (i = 0; i < g->ncols; i++)
		heads[i] = g->cols[i].head;
	grid_put_row(g, heads, 0, widths, o);
	for (i = 0; i < nrows(g); i++) {
		grid_put_row(g, (const char *const *)buf_at(&g->cells, char *, i * g->ncols), shared ? shared[i] : 0,
			     widths, o);
		grid_put_notes(g, i, &note, width, o);
	}
	free(shared);
}

void view_grid_fini(struct view_grid *g)
{
	size_t i;

	for (i = 0; i < buf_count(&g->cells, char *); i++)
		free(*buf_at(&g->cells, char *, i));
	for (i = 0; i < buf_count(&g->notes, struct note); i++)
		free(buf_at(&g->notes, struct note, i)->text);
	buf_fini(&g->cells);
	buf_fini(&g->notes);
}
