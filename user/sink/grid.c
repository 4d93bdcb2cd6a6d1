// SPDX-License-Identifier: Apache-2.0
#include "sink/priv.h"

#include "base/fmt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_MIN   8 /* columns that the first column keeps on any terminal */
#define NOTE_INDENT 4

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

int snk_grid_add(struct snk_grid *g, const char *text, size_t len)
{
	char *cell = safe(text, len);

	if (!cell || buf_put(&g->cells, &cell, sizeof(cell))) {
		free(cell);
		return -ENOMEM;
	}
	return 0;
}

int snk_grid_note(struct snk_grid *g, const char *text, size_t len)
{
	struct note note = {.row = buf_count(&g->cells, char *) / g->ncols - 1};
	const char *line;
	size_t n;

	while (snk_next_line(&text, &len, &line, &n)) {
		note.text = safe(line, n);
		if (!note.text || buf_put(&g->notes, &note, sizeof(note))) {
			free(note.text);
			return -ENOMEM;
		}
	}
	return 0;
}

static const char *cell_at(const struct snk_grid *g, size_t row, unsigned col)
{
	return *buf_at(&g->cells, char *, row * g->ncols + col);
}

static size_t nrows(const struct snk_grid *g)
{
	return buf_count(&g->cells, char *) / g->ncols;
}

static size_t widest(const struct snk_grid *g, unsigned col)
{
	size_t max = fmt_columns(g->cols[col].head), n, i;

	for (i = 0; i < nrows(g); i++) {
		n = fmt_columns(cell_at(g, i, col));
		max = n > max ? n : max;
	}
	return max;
}

/* What is left for the first column when every other one has what it needs. */
static size_t first_room(const struct snk_grid *g, const size_t *widths, unsigned width)
{
	size_t used = 0;
	unsigned i;

	for (i = 1; i < g->ncols; i++)
		if (!g->cols[i].hidden)
			used += widths[i] + 1;
	return width > used + FIRST_MIN ? width - used : FIRST_MIN;
}

static void fit(struct snk_grid *g, size_t *widths, unsigned width)
{
	unsigned i, want;
	size_t room;

	for (i = 0; i < g->ncols; i++)
		widths[i] = widest(g, i);
	for (want = SNK_GRID_NAME_MIN_MAX; want; want--) {
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

/* A name is known by both of its ends: "_backward_Fully…nected" loses its middle. */
static void put_first(struct out *o, const char *text, size_t width)
{
	size_t n = fmt_columns(text), head = width / 2;

	if (n <= width) {
		out_puts(o, text);
		put_pad(o, width - n);
		return;
	}
	out_write(o, text, (size_t)(fmt_skip_columns(text, head) - text));
	out_puts(o, "…");
	out_puts(o, fmt_skip_columns(text, n - (width - head - 1)));
}

static void put_cell(const struct snk_grid *g, unsigned col, const char *text, size_t width, struct out *o)
{
	size_t n = fmt_columns(text);

	put_pad(o, 1 + (g->cols[col].left ? 0 : width - n));
	out_puts(o, text);
	if (g->cols[col].left)
		put_pad(o, width - n);
}

static void put_prefix(const struct snk_grid *g, struct out *o)
{
	if (g->prefix)
		out_puts(o, g->prefix);
}

static void put_row(const struct snk_grid *g, const char *const *cells, const size_t *widths, struct out *o)
{
	unsigned i;

	put_prefix(g, o);
	put_first(o, cells[0], widths[0]);
	for (i = 1; i < g->ncols; i++)
		if (!g->cols[i].hidden)
			put_cell(g, i, cells[i], widths[i], o);
	out_puts(o, "\n");
}

static void put_notes(const struct snk_grid *g, size_t row, size_t *next, unsigned width, struct out *o)
{
	size_t room = width > NOTE_INDENT + FIRST_MIN ? width - NOTE_INDENT : FIRST_MIN, n;
	const struct note *note;

	for (; *next < buf_count(&g->notes, struct note); ++*next) {
		note = buf_at(&g->notes, struct note, *next);
		if (note->row != row)
			break;
		n = fmt_columns(note->text);
		put_prefix(g, o);
		put_pad(o, NOTE_INDENT);
		put_first(o, note->text, n < room ? n : room);
		out_puts(o, "\n");
	}
}

void snk_grid_print(struct snk_grid *g, unsigned width, struct out *o)
{
	size_t widths[SNK_GRID_COLS_MAX] = {0}, note = 0, i;
	const char *heads[SNK_GRID_COLS_MAX];

	fit(g, widths, width);
	for (i = 0; i < g->ncols; i++)
		heads[i] = g->cols[i].head;
	put_row(g, heads, widths, o);
	for (i = 0; i < nrows(g); i++) {
		put_row(g, (const char *const *)buf_at(&g->cells, char *, i * g->ncols), widths, o);
		put_notes(g, i, &note, width, o);
	}
}

void snk_grid_fini(struct snk_grid *g)
{
	size_t i;

	for (i = 0; i < buf_count(&g->cells, char *); i++)
		free(*buf_at(&g->cells, char *, i));
	for (i = 0; i < buf_count(&g->notes, struct note); i++)
		free(buf_at(&g->notes, struct note, i)->text);
	buf_fini(&g->cells);
	buf_fini(&g->notes);
}
