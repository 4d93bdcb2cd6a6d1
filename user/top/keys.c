// SPDX-License-Identifier: Apache-2.0
/* The keys. Each is a row of a table, which the help lists. */
#include "top/top.h"

#include <ncurses.h>
#include <stdio.h>
#include <string.h>

#define ESCAPE 27
#define DELETE 127

struct key {
	int key, other;		 /* other: does the same; 0: none */
	const char *word, *help; /* word NULL: the row before explains it */
	void (*press)(struct top_keys *k);
};

static const struct key keys[];

static void set_popup(struct top_keys *k)
{
	k->c->popup = k->popup;
	k->c->popup_first = 0;
}

/* ---- views and rows */

static void next_view(struct top_keys *k)
{
	do
		k->c->view = (k->c->view + 1) % TOP_VIEWS;
	while (!top_view_shows(k->t, k->c->view));
	k->t->table.shown = false;
	k->c->first = k->c->chosen = 0;
	k->c->opened = 0;
}

/* Shows the table that was shown last, else the next one. */
static void keys_go(struct top_keys *k, int step)
{
	k->t->table.step = k->t->table.shown || !k->t->table.of ? step : 0;
	k->t->table.shown = true;
	k->c->view = TOP_TABLE;
	k->c->first = k->c->chosen = 0;
	k->c->opened = 0;
}

static void next_table(struct top_keys *k)
{
	keys_go(k, 1);
}

static void table_before(struct top_keys *k)
{
	keys_go(k, -1);
}

static void open_row(struct top_keys *k)
{
	k->c->opened = k->c->opened == k->c->chosen_id ? 0 : k->c->chosen_id;
}

/* Shows the job of the chosen row alone, or all jobs again. */
static void choose_job(struct top_keys *k)
{
	const struct top_row *row;
	size_t i;

	if (k->t->job || !top_view_shows(k->t, TOP_JOBS)) {
		k->t->job = 0;
		return;
	}
	for (i = 0; i < top_rows(k->t, k->c->view); i++) {
		row = top_row(k->t, k->c->view, i);
		if (row->id == k->c->chosen_id)
			k->t->job = row->job;
	}
	k->t->finding[0] = '\0'; /* the finding of the chosen job comes with the next second */
}

static void move_by(struct top_keys *k, long by)
{
	unsigned *at = k->c->popup ? &k->c->popup_first : &k->c->chosen;
	const long last = k->page->rows ? (long)k->page->rows - 1 : 0, to = (long)*at + by;

	*at = (unsigned)(to < 0 ? 0 : to > last ? last : to);
	k->c->opened = k->c->popup ? k->c->opened : 0;
}

static void down(struct top_keys *k)
{
	move_by(k, 1);
}

static void up(struct top_keys *k)
{
	move_by(k, -1);
}

static void page_down(struct top_keys *k)
{
	move_by(k, k->page->fit);
}

static void page_up(struct top_keys *k)
{
	move_by(k, -(long)k->page->fit);
}

static void home(struct top_keys *k)
{
	move_by(k, -(long)k->page->rows);
}

static void keys_end(struct top_keys *k)
{
	move_by(k, k->page->rows);
}

/* ---- order and filter */

static void sort_by(struct top_keys *k, int step)
{
	const bool table = k->c->view == TOP_TABLE;
	unsigned *at = table ? &k->t->table.sort : &k->c->sort[k->c->view], n = 1; /* one at least */

	while (table ? n < k->t->table.columns.n : top_columns[n].word != NULL)
		n++;
	do
		*at = (*at + n + (unsigned)step) % n;
	while (table ? k->t->table.columns.of[*at].below : !top_column_shows(k->t, k->c, &top_columns[*at]));
}

static void sort_next(struct top_keys *k)
{
	sort_by(k, 1);
}

static void sort_before(struct top_keys *k)
{
	sort_by(k, -1);
}

static void turn(struct top_keys *k)
{
	k->c->ascending = !k->c->ascending;
}

static void begin_filter(struct top_keys *k)
{
	k->c->typing = true;
	k->c->popup = NULL;
}

static void type(struct top_choice *c, int key)
{
	const size_t len = strlen(c->filter);

	if (key == '\n' || key == KEY_ENTER || key == '\r')
		c->typing = false;
	else if (key == ESCAPE)
		*c->filter = '\0', c->typing = false;
	else if ((key == KEY_BACKSPACE || key == DELETE || key == '\b') && len)
		c->filter[len - 1] = '\0';
	else if (key >= ' ' && key < DELETE && len + 1 < sizeof(c->filter))
		snprintf(c->filter + len, sizeof(c->filter) - len, "%c", key);
	c->first = c->chosen = 0;
}

/* ---- the screen */

static void freeze(struct top_keys *k)
{
	k->t->frozen = !k->t->frozen;
}

/* Closes what lies on top: the popup, the opened row, the filter, and then the view of one job. */
static void escape(struct top_keys *k)
{
	if (k->c->popup)
		k->c->popup = NULL;
	else if (k->c->opened)
		k->c->opened = 0;
	else if (k->c->filter[0])
		k->c->filter[0] = '\0';
	else
		k->t->job = 0;
}

static void keys_leave(struct top_keys *k)
{
	k->leave = true;
}

static void help(struct top_keys *k)
{
	const struct top_action *a;
	const struct key *key;

	if (k->c->popup) {
		k->c->popup = NULL;
		return;
	}
	k->popup->len = 0;
	for (key = keys; key->press; key++)
		if (key->word)
			buf_printf(k->popup, "  %-12s %s\n", key->word, key->help);
	for (a = k->actions; a->key; a++)
		buf_printf(k->popup, "  %-12s %s\n", a->word, a->help);
	buf_printf(k->popup, "\n"
			     "share: a row's own time, without calls in it, of one thread's time\n"
			     "mean: of its own time in a call; CPU: 100%% is one CPU; memory: resident\n"
			     "tables: counts and bytes in a second, times as a share of it\n"
			     "1m: in the last minute; *: --max-overhead left out some of its calls\n");
	buf_put(k->popup, "", 1);
	set_popup(k);
}

static const struct key keys[] = {
	{'v', '\t', "v, Tab", "the next view: operators, threads, processes, jobs", next_view},
	{'n', 0, "n, N", "the next table that has rows, the one before: all that mxbpf records", next_table},
	{'N', 0, NULL, NULL, table_before},
	{'s', 0, "s, S", "sort by the next column, by the one before; r turns the order around", sort_next},
	{'S', 0, NULL, NULL, sort_before},
	{'r', 0, NULL, NULL, turn},
	{'/', 0, "/", "type a part of a name; Enter keeps the filter, Escape removes it", begin_filter},
	{KEY_DOWN, 0, "up, down", "choose a row; page up, page down, Home, End", down},
	{KEY_UP, 0, NULL, NULL, up},
	{KEY_NPAGE, 0, NULL, NULL, page_down},
	{KEY_PPAGE, 0, NULL, NULL, page_up},
	{KEY_HOME, 0, NULL, NULL, home},
	{KEY_END, 0, NULL, NULL, keys_end},
	{'\n', KEY_ENTER, "Enter", "details of the chosen row, or no more", open_row},
	{'j', 0, "j", "only the job of the chosen row; again: all jobs", choose_job},
	{' ', 0, "space", "freeze the screen; the job is measured meanwhile", freeze},
	{ESCAPE, 0, "Escape", "close what was opened, drop the filter", escape},
	{'?', 'h', "?", "this help", help},
	{'q', 0, "q", "leave; nothing stays in the job", keys_leave},
	{0},
};

void top_press(struct top_keys *k, int key)
{
	const struct top_action *a;
	const struct key *row;

	k->asked = NULL;
	if (k->c->typing) {
		type(k->c, key);
		return;
	}
	for (row = keys; row->press; row++)
		if (row->key == key || (row->other && row->other == key)) {
			row->press(k);
			return;
		}
	for (a = k->actions; a->key; a++)
		if (a->key == key)
			k->asked = a;
}
