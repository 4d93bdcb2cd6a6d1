// SPDX-License-Identifier: Apache-2.0
/*
 * CSV: all tables in one, for spreadsheets and data frames. Two cells of each row say which window it belongs to. Loss
 * and window are rows, too, so the file has one header and nothing but rows.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "feature/cost/cost.h"
#include "view/calls.h"

/* Columns of rows that no sheet describes. */
enum column {
	TABLE,
	NAME,
	DEVICE,
	COUNT,
	TOTAL,
	START,
	DURATION,
	PID,
	NCOLUMNS,
};
#define CSV_COLUMNS_MAX 320

struct row {
	const char *table;
	uint32_t device;
	uint32_t tgid; /* 0: the row belongs to no single process */
	struct cell {
		enum { EMPTY, NUMBER, BELOW, TEXT, LINES, REAL, SIGNIFICANT } is; /* BELOW: a magnitude below 0 */
		uint64_t n;
		double real;
		const char *text;
		size_t len;	      /* of the text; digits of a real number */
	} cells[CSV_COLUMNS_MAX + 1]; /* the last one takes what the file has no column for */
};

struct csv {
	struct view s;
	const char *heads[CSV_COLUMNS_MAX]; /* borrowed from sheets and the session */
	unsigned n;
	unsigned at[NCOLUMNS]; /* index into heads, or CSV_COLUMNS_MAX */
	/* The columns that rows were last made of, and the index of each. */
	const struct tbl_column *flat_of;
	struct view_flat flat;
	unsigned cells[VIEW_COLUMNS_MAX];
};

static void csv_fill(struct cell *c, uint64_t n)
{
	*c = (struct cell){.is = NUMBER, .n = n};
}

static void fill_signed(struct cell *c, int64_t n)
{
	*c = (struct cell){.is = n < 0 ? BELOW : NUMBER, .n = n < 0 ? -(uint64_t)n : (uint64_t)n};
}

static void fill_text(struct cell *c, const char *text, size_t len)
{
	*c = (struct cell){.is = TEXT, .text = text, .len = len};
}

static void fill_word(struct cell *c, const char *text)
{
	fill_text(c, text, strlen(text));
}

/* The headings of enum column. */
static const char *const by_hand[NCOLUMNS] = {
	[TABLE] = "table",	  [NAME] = "name",	[DEVICE] = "device",
	[COUNT] = "count",	  [TOTAL] = "total_ns", [START] = "window_start_unix_ns",
	[DURATION] = "window_ns", [PID] = "pid",
};

/*
 * Programs may count on the places of these columns. A column that only a sheet has stands behind them, in the order of
 * the sheets. A first character says which columns are meant:
 * '!' a column of every file, '@' a column of calls alone, '*' the members of that object of calls.
 */
static const char *const order[] = {
	/* clang-format off */
	"!table", "name", "device", "count", "total_ns", "self_ns", "min_ns", "max_ns", "avg_ns", "p50_ns", "p99_ns",
	"!allocs", "!frees", "alloc_bytes", "self_alloc_bytes", "!free_bytes", "!live_bytes", "!peak_bytes", "state",
	"waits_in", "!window_start_unix_ns", "!window_ns", "annotation", "pid", "backward_count", "backward_ns",
	"deeper_count", "deeper_ns", "start_unix_ns", "thread", "unwound", "on_cpu_ns", "runq_ns", "blocked_ns",
	"elsewhere_ns", "nvcsw", "nivcsw", "minflt", "majflt", "migrated", "cpu", "end_cpu", "first", "last",
	"difference", "least", "most", "mean", "off_cpu_ns", "waited_ns", "futex_ns", "io_ns", "fault_ns",
	"sleep_ns", "other_ns", "threads", "threads_ns", "team_cpu_ns", "team_runq_ns", "team_work_ns",
	"team_late_ns", "team_late_runq_ns", "team_barrier_ns", "team_spun_ns", "values", "values_unknown",
	"sent_bytes", "received_bytes", "start_bytes", "live_blocks", "mean_bytes", "peak_unix_ns", "first_unix_ns",
	"last_unix_ns", "last_value", "min_value", "max_value", "shapes", "types", "output_shapes", "output_types",
	"flops", "flops_calls", "flops_ns", "flops_unknown", "gflop_per_s", "stack", "@layer", "*counters", "group",
	"unit", "by", "layer", "scope", "array", "domain", "key", "call", "within",
	/* clang-format on */
};

/* The index of the column with this heading, or CSV_COLUMNS_MAX. */
static unsigned csv_find(const struct csv *csv, const char *head)
{
	unsigned i;

	for (i = 0; i < csv->n; i++)
		if (!strcmp(csv->heads[i], head))
			return i;
	return CSV_COLUMNS_MAX;
}

static void csv_show(struct csv *csv, const char *head)
{
	if (csv->n < CSV_COLUMNS_MAX && csv_find(csv, head) == CSV_COLUMNS_MAX)
		csv->heads[csv->n++] = head;
}

/* Calls `each` for the heading of each column that the session has. */
static void each_head(struct csv *csv, const struct view_sheet *sh, const struct tbl_column *of, const char *head,
		      void (*each)(struct csv *csv, const char *head, const char *other))
{
	const struct tbl_column *c;
	struct view_made made;

	for (c = of; c && c->bytes; c++) {
		if (!view_is_asked(&csv->s, c))
			continue;
		if (c->columns || c->generate) {
			if (view_in_csv(c))
				each_head(csv, sh, view_members(&csv->s, c, &made), head, each);
		} else if (view_csv_head(sh, c)) {
			each(csv, view_csv_head(sh, c), head);
		}
	}
}

static void show_any(struct csv *csv, const char *head, const char *other)
{
	csv_show(csv, head);
}

static void show_same(struct csv *csv, const char *head, const char *other)
{
	if (!strcmp(head, other))
		csv_show(csv, head);
}

static void show_members(struct csv *csv, const struct view_sheet *sh, const char *key)
{
	const struct tbl_column *c;
	struct view_made made;

	for (c = sh->columns; c->bytes; c++)
		if (c->key && !strcmp(c->key, key) && view_is_asked(&csv->s, c))
			each_head(csv, sh, view_members(&csv->s, c, &made), NULL, show_any);
}

/* Shows what an item of order[] stands for. */
static void show_item(struct csv *csv, const char *item)
{
	const struct view_sheet *const *sh;
	const char kind = *item;

	item += kind == '!' || kind == '@' || kind == '*';
	if (kind == '!')
		csv_show(csv, item);
	for (sh = view_sheets; *sh; sh++) {
		if (!(*sh)->when(&csv->s) || !(*sh)->csv || ((kind == '@' || kind == '*') && !(*sh)->of_class))
			continue;
		if (kind == '*')
			show_members(csv, *sh, item);
		else
			each_head(csv, *sh, (*sh)->columns, item, show_same);
	}
}

static void choose_columns(struct csv *csv)
{
	const struct view_sheet *const *sh;
	unsigned i;

	for (i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		show_item(csv, order[i]);
	for (sh = view_sheets; *sh; sh++)
		if ((*sh)->when(&csv->s))
			each_head(csv, *sh, (*sh)->columns, NULL, show_any);
	for (i = 0; i < NCOLUMNS; i++)
		csv->at[i] = csv_find(csv, by_hand[i]);
}

static struct cell *cell_of(const struct view *s, struct row *r, enum column c)
{
	return &r->cells[((const struct csv *)s)->at[c]];
}

static void csv_put_cell(struct view *s, const struct cell *cell)
{
	if (cell->is == LINES) {
		view_csv_lines(s->out, cell->text, cell->len);
		return;
	}
	out_puts(s->out, ",");
	if (cell->is == TEXT)
		view_csv_text(s->out, cell->text, cell->len);
	else if (cell->is == REAL)
		out_printf(s->out, "%.*f", (int)cell->len, cell->real);
	else if (cell->is == SIGNIFICANT)
		out_printf(s->out, "%.*g", (int)cell->len, cell->real);
	else if (cell->is)
		out_printf(s->out, "%s%" PRIu64, cell->is == BELOW ? "-" : "", cell->n);
}

/* Writes the row, with the cells that each row has. */
static void csv_put_row(struct view *s, struct row *r)
{
	const struct csv *csv = (const struct csv *)s;
	char device[48];
	unsigned i;

	csv_fill(cell_of(s, r, START), s->in->session->start_unix_ns);
	csv_fill(cell_of(s, r, DURATION), s->in->session->duration_ns);
	if (r->tgid)
		csv_fill(cell_of(s, r, PID), r->tgid);
	if (MXBPF_DEVICE_TYPE(r->device)) {
		mdl_device_name(s->in->session, r->device, device);
		fill_word(cell_of(s, r, DEVICE), device);
	}
	view_csv_table(s, r->table, r->tgid);
	for (i = 1; i < csv->n; i++)
		csv_put_cell(s, &r->cells[i]);
	out_puts(s->out, "\n");
}

static int csv_begin(struct view *s)
{
	struct csv *csv = (struct csv *)s;
	unsigned i;

	choose_columns(csv);
	for (i = 0; i < csv->n && !s->opts->continued; i++)
		out_printf(s->out, "%s%s", i ? "," : "", csv->heads[i]);
	if (!s->opts->continued)
		out_puts(s->out, "\n");
	return 0;
}

/* ---- sheets */

static void set_text(struct cell *cell, const struct tbl_column *c, struct view_text text)
{
	*cell = (struct cell){
		.is = c->type == TBL_LINES ? LINES : TEXT,
		.text = text.data,
		.len = text.data ? text.len : 0,
	};
}

static void set_real(struct cell *cell, const struct tbl_column *c, double v)
{
	*cell = (struct cell){.is = c->flags & TBL_SIGNIFICANT ? SIGNIFICANT : REAL, .real = v, .len = c->data_digits};
}

static void set_cell(struct view *s, struct row *r, unsigned cell, const struct tbl_column *c, const void *row)
{
	const struct mdl_session *ss = s->in->session;
	uint64_t n;

	if (cell == ((struct csv *)s)->at[TABLE]) {
		r->table = view_cell_text(c, row).data;
		return;
	}
	if (view_is_text(c))
		return set_text(&r->cells[cell], c, view_cell_text(c, row));
	if (view_is_double(c))
		return set_real(&r->cells[cell], c, view_cell_double(c, row));
	n = view_cell_number(c, row);
	if (c->type == TBL_DEVICE)
		r->device = (uint32_t)n;
	else if (c->type == TBL_PID)
		r->tgid = (uint32_t)n;
	else if (c->flags & TBL_NULL && n == TBL_UNKNOWN)
		return;
	else if (c->flags & TBL_SIGNED)
		fill_signed(&r->cells[cell], (int64_t)n);
	else
		csv_fill(&r->cells[cell], c->type == TBL_MOMENT ? ss->start_unix_ns + (n - ss->start_mono_ns) : n);
}

/* Totals of a table are rows of the table "window". */
static void put_totals(struct view *s, const struct view_sheet *sh, const void *table)
{
	const struct tbl_column *c;

	for (c = sh->totals; c && c->bytes; c++) {
		struct row r = {.table = "window"};

		if (!view_csv_head(sh, c))
			continue;
		fill_word(cell_of(s, &r, NAME), view_csv_head(sh, c));
		csv_fill(cell_of(s, &r, COUNT), view_cell_number(c, table));
		csv_put_row(s, &r);
	}
}

/* Finds the columns of `of` in the file once for all rows of a table. */
static void find_cells(struct csv *csv, const struct view_sheet *sh, const struct tbl_column *of)
{
	const char *head;
	unsigned i;

	if (csv->flat_of == of)
		return;
	csv->flat = (struct view_flat){0};
	view_flatten(&csv->s, &csv->flat, of, 0);
	for (i = 0; i < csv->flat.n; i++) {
		head = view_csv_head(sh, &csv->flat.columns[i]);
		csv->cells[i] = head ? csv_find(csv, head) : CSV_COLUMNS_MAX;
	}
	csv->flat_of = of;
}

static void set_cells(struct view *s, struct row *r, const struct view_sheet *sh, const struct tbl_column *of,
		      const void *row)
{
	struct csv *csv = (struct csv *)s;
	const struct tbl_column *c;

	find_cells(csv, sh, of);
	for (c = csv->flat.columns; c->bytes; c++)
		if (csv->cells[c - csv->flat.columns] < CSV_COLUMNS_MAX && view_has_value(c, row))
			set_cell(s, r, csv->cells[c - csv->flat.columns], c, row);
}

/* Writes the lists, objects and numbers of a row that have rows of their own, with the name of the row. */
static void put_own_rows(struct view *s, const struct row *of, const struct view_sheet *sh, const void *row)
{
	const struct tbl_column *c;
	size_t i;

	for (c = sh->columns; c->bytes; c++) {
		const bool is = view_has_own_row(c) && (!(c->flags & TBL_OMIT) || view_is_there(c, row));
		const struct view_list one = {.rows = (char *)row + c->at, .n = is};
		const struct view_list *list = is && c->type == TBL_LIST ? one.rows : &one;

		for (i = 0; i < list->n; i++) {
			struct row r = {.table = c->csv, .device = of->device, .tgid = of->tgid};

			*cell_of(s, &r, NAME) = of->cells[((struct csv *)s)->at[NAME]];
			if (c->columns) {
				set_cells(s, &r, sh, c->columns, (const char *)list->rows + i * c->item_bytes);
			} else {
				fill_word(cell_of(s, &r, NAME), c->key);
				csv_fill(cell_of(s, &r, COUNT), view_cell_number(c, row));
			}
			csv_put_row(s, &r);
		}
	}
}

int view_sheet_csv(struct view *s, const struct view_sheet *sh, const void *table)
{
	const struct view_list *list = table;
	size_t i;

	for (i = 0; sh->csv && i < list->n; i++) {
		const void *row = view_row(s, sh, table, i);
		struct row r = {.table = list->title ? list->title : sh->csv};

		if (!row)
			return err_set(s->err, ERR_RUNTIME, -ENOMEM, "out of memory");
		set_cells(s, &r, sh, sh->columns, row);
		if (*sh->csv)
			csv_put_row(s, &r);
		put_own_rows(s, &r, sh, row);
	}
	if (sh->csv)
		put_totals(s, sh, table);
	return 0;
}

/* ---- what no sheet describes */

static void csv_put_line(struct view *s, const char *table, const char *name, enum column c, uint64_t n)
{
	struct row r = {.table = table};

	fill_word(cell_of(s, &r, NAME), name);
	if (c != NAME)
		csv_fill(cell_of(s, &r, c), n);
	csv_put_row(s, &r);
}

static void csv_put_texts(struct view *s)
{
	const struct mdl_session *ss = s->in->session;
	size_t i;

	for (i = 0; i < ss->nnotes; i++)
		csv_put_line(s, ss->notes[i].name, ss->notes[i].text, NAME, 0);
	for (i = 0; i < ss->nprobes; i++)
		if (!strcmp(ss->probes[i].status, "refused"))
			csv_put_line(s, "refused", ss->probes[i].name, NAME, 0);
}

/* Writes the loss of each source if there are several. */
static void put_sources(struct view *s)
{
	const struct mdl_session *ss = s->in->session;
	char name[96];
	size_t i, k;

	for (i = 0; ss->nsources > 1 && i < ss->nsources; i++) {
		const struct mxbpf_loss *l = &ss->sources[i].loss;
		const struct {
			const char *what;
			uint64_t n;
		} rows[] = {{"attempted", l->attempted},  {"stored", l->stored},	 {"dropped", l->dropped},
			    {"truncated", l->truncated},  {"unreadable", l->unreadable}, {"unmatched", l->unmatched},
			    {"late", ss->sources[i].late}};

		for (k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
			snprintf(name, sizeof(name), "%s: %s", ss->sources[i].name, rows[k].what);
			csv_put_line(s, "loss", name, COUNT, rows[k].n);
		}
	}
}

static int csv_end(struct view *s)
{
	const struct mdl_session *ss = s->in->session;
	const struct mdl *m = s->in->model;
	const struct cost_iterations it = cost_of_iterations(s->in->model);
	const struct {
		const char *table, *name;
		enum column column;
		uint64_t n;
	} rows[] = {
		{"loss", "attempted", COUNT, ss->loss.attempted},
		{"loss", "stored", COUNT, ss->loss.stored},
		{"loss", "dropped", COUNT, ss->loss.dropped},
		{"loss", "truncated", COUNT, ss->loss.truncated},
		{"loss", "unreadable", COUNT, ss->loss.unreadable},
		{"loss", "unmatched", COUNT, ss->loss.unmatched},
		{"window", "paused", TOTAL, ss->paused_ns},
		{"window", "open", COUNT, ss->open_spans},
		{"window", "cut_records", COUNT, ss->cut_records},
		{"window", "incomplete", COUNT, ss->incomplete},
		{"window", "left_out", COUNT, ss->left_out},
		{"window", "iterations", COUNT, ss->iterations},
		{"window", "sampled_iterations", COUNT, ss->sampled_iterations},
		{"window", "followed", COUNT, ss->followed},
		{"window", "unfollowed", COUNT, ss->unfollowed},
		{"window", "unlabelled", COUNT, ss->unlabelled},
		{"window", "follow_lag", TOTAL, ss->follow_lag_ns},
		{"window", "stranger_hits", COUNT, ss->stranger_hits},
		{"window", "stranger_time", TOTAL, ss->stranger_ns},
		{"cost", "added_cpu", TOTAL, ss->cost.added_ns},
		{"cost", "busiest_thread", TOTAL, ss->cost.thread_ns},
		{"cost", "iteration_watched", TOTAL, it.watched_ns},
		{"cost", "iteration_unwatched", TOTAL, it.unwatched_ns},
		{"cost", "uncertainty_permille", COUNT, ss->cost.added_ns ? ss->cost.uncertain : 0},
		{"window", "late_libraries", COUNT, ss->late_libs},
		{"window", "late_refused", COUNT, ss->late_refused},
		{"window", "moments", COUNT, view_tally(m, MXBPF_TALLY_MOMENTS)},
		{"window", "unkeyed", COUNT, view_tally(m, MXBPF_TALLY_UNKEYED)},
		{"window", "late", COUNT, view_tally(m, MXBPF_TALLY_LATE)},
		{"window", "unwound", COUNT, view_tally(m, MXBPF_TALLY_UNWOUND)},
		{"window", "ungrouped", COUNT, s->opts->by == VIEW_BY_NAME ? 0 : view_tally(m, MXBPF_TALLY_UNGROUPED)},
	};
	size_t i;
	int err;

	err = view_write_sheet(s, &sheet_machine);
	csv_put_texts(s);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		csv_put_line(s, rows[i].table, rows[i].name, rows[i].column, rows[i].n);
	put_sources(s);
	if (s->opts->by == VIEW_BY_EVENT)
		csv_put_line(s, "window", "events_not_shown", COUNT, view_events_not_shown(s));
	for (i = 0; i < ss->nfallbacks; i++) {
		struct row r = {.table = "fallback"};

		fill_word(cell_of(s, &r, NAME), ss->fallbacks[i].name);
		csv_fill(cell_of(s, &r, COUNT), ss->fallbacks[i].spans);
		csv_fill(cell_of(s, &r, TOTAL), ss->fallbacks[i].at_ns);
		csv_put_row(s, &r);
	}
	return err;
}

static const char *const magic[] = {"table,name,", NULL};

const struct view_ops view_csv = {
	.name = "csv",
	.help = "one table of exact integers (ns, bytes), with the loss counts",
	.magic = magic,
	.begin = csv_begin,
	.details = true,
	.by_process = true,
	.state_bytes = sizeof(struct csv),
	.sheet = view_sheet_csv,
	.table = view_calls_table,
	.end = csv_end,
};
