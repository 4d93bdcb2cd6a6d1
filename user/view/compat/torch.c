// SPDX-License-Identifier: Apache-2.0
/*
 * The tables of torch.profiler (layout torch) and of torch.autograd.profiler in 2017 (layout torch-classic). Columns,
 * widths, arithmetic and cuts are the same, so that scripts can parse them. What mxbpf adds stands behind them in lines
 * that begin with '#'.
 */
#include "feature/backward/backward.h"
#include "view/compat/torch_gpu.h"
#include "view/priv.h"
#include "view/sheet.h"

#include "base/fmt.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define CELL_BYTES 64
#define NAME_PAD   4
#define NAME_BYTES (4 * MXBPF_NAME_BYTES_MAX + NAME_PAD + 1) /* one byte becomes at most \xNN */
#define COLS_MAX   12
#define SHAPES_MAX 80 /* columns */
#define SOURCE_MAX 75
#define GAP	   "  "
#define ELLIPSIS   "..."

/* The sums of all rows. */
struct sums {
	struct mdl_row r;
	uint64_t gpu_self_ns, gpu_total_ns; /* also of rows that count the same work */
	uint64_t device_ns;		    /* of kernels, copies and sets */
	bool gpu;
};

typedef void (*cell_fn)(const struct torch_row *row, const struct sums *sum, char cell[CELL_BYTES]);

struct layout {
	size_t name_cut; /* columns that remain of a longer name; 0: all */
	bool name_left;
	size_t width;	    /* of each column but the first */
	bool event_details; /* shows shapes and stacks of single events */
	bool end_gap;	    /* a gap also stands behind the last column */
	bool devices;	    /* has rows of kernels, copies and sets */
	/* Text behind the rows and their rule; NULL: no rule either. */
	void (*footer)(struct out *o, const struct sums *sum);
	void (*repr)(struct out *o, const struct sums *sum); /* the text of total_average() */
	struct {
		const char *head;
		cell_fn put;
		bool memory; /* only if some span allocated memory */
		bool gpu;    /* only if some row has work on a GPU */
	} cols[COLS_MAX];
};

struct table {
	const struct layout *l;
	struct out *out;
	struct sums sum;
	size_t name_width;
	size_t shapes_width, source_width; /* of the columns that --by adds; 0: no such column */
	bool memory;
};

/* Texts of one line, in the order of the layout's columns. */
struct line {
	char name[NAME_BYTES];
	char cells[COLS_MAX][CELL_BYTES];
	char shapes[SHAPES_MAX + 1];
	char source[NAME_BYTES];
};

/* ---- numbers in the format of PyTorch */

static double us(uint64_t ns)
{
	return (double)ns / 1000;
}

static double avg_us(const struct mdl_row *r)
{
	return us(r->total_ns) / (double)r->count;
}

static void scaled(double t_us, char cell[CELL_BYTES])
{
	if (t_us >= 1e6)
		snprintf(cell, CELL_BYTES, "%.3fs", t_us / 1e6);
	else if (t_us >= 1e3)
		snprintf(cell, CELL_BYTES, "%.3fms", t_us / 1e3);
	else
		snprintf(cell, CELL_BYTES, "%.3fus", t_us);
}

static void share(uint64_t ns, uint64_t of_ns, char cell[CELL_BYTES])
{
	if (of_ns)
		snprintf(cell, CELL_BYTES, "%.2f%%", us(ns) * 100 / us(of_ns));
	else
		snprintf(cell, CELL_BYTES, "NaN");
}

static void bytes(int64_t n, char cell[CELL_BYTES])
{
	static const struct {
		double size;
		const char *unit;
	} units[] = {{1 << 30, "GB"}, {1 << 20, "MB"}, {1 << 10, "KB"}};
	size_t i;

	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (fabs((double)n) < units[i].size)
			continue;
		snprintf(cell, CELL_BYTES, "%.2f %s", (double)n / units[i].size, units[i].unit);
		return;
	}
	snprintf(cell, CELL_BYTES, "%" PRId64 " B", n);
}

/* ---- layout torch */

static void self_share(const struct torch_row *row, const struct sums *sum, char cell[CELL_BYTES])
{
	share(row->r.self_ns, sum->r.self_ns, cell);
}

static void self_time(const struct torch_row *row, const struct sums *sum, char cell[CELL_BYTES])
{
	scaled(us(row->r.self_ns), cell);
}

static void total_share(const struct torch_row *row, const struct sums *sum, char cell[CELL_BYTES])
{
	share(row->r.total_ns, sum->r.self_ns, cell);
}

static void total_time(const struct torch_row *row, const struct sums *sum, char cell[CELL_BYTES])
{
	scaled(us(row->r.total_ns), cell);
}

static void avg_time(const struct torch_row *row, const struct sums *sum, char cell[CELL_BYTES])
{
	scaled(avg_us(&row->r), cell);
}

static void total_mem(const struct torch_row *row, const struct sums *sum, char cell[CELL_BYTES])
{
	bytes(row->r.alloc_bytes, cell);
}

static void self_mem(const struct torch_row *row, const struct sums *sum, char cell[CELL_BYTES])
{
	bytes(row->r.self_alloc_bytes, cell);
}

static void calls(const struct torch_row *row, const struct sums *sum, char cell[CELL_BYTES])
{
	snprintf(cell, CELL_BYTES, "%" PRIu64, row->r.count);
}

static void gpu_self(const struct torch_row *row, const struct sums *sum, char cell[CELL_BYTES])
{
	scaled(us(row->gpu_self_ns), cell);
}

static void gpu_self_share(const struct torch_row *row, const struct sums *sum, char cell[CELL_BYTES])
{
	share(row->gpu_self_ns, sum->device_ns, cell);
}

static void gpu_total(const struct torch_row *row, const struct sums *sum, char cell[CELL_BYTES])
{
	scaled(us(row->gpu_total_ns), cell);
}

static void gpu_avg(const struct torch_row *row, const struct sums *sum, char cell[CELL_BYTES])
{
	scaled(us(row->gpu_total_ns) / (double)row->r.count, cell);
}

static void self_total(struct out *o, const struct sums *sum)
{
	char cell[CELL_BYTES];

	scaled(us(sum->r.self_ns), cell);
	out_printf(o, "Self CPU time total: %s\n", cell);
	scaled(us(sum->device_ns), cell);
	if (sum->gpu)
		out_printf(o, "Self CUDA time total: %s\n", cell);
}

static void repr(struct out *o, const struct sums *sum)
{
	char self[CELL_BYTES], avg[CELL_BYTES], self_cuda[CELL_BYTES], cuda[CELL_BYTES];

	scaled(us(sum->r.self_ns), self);
	scaled(avg_us(&sum->r), avg);
	scaled(us(sum->gpu_self_ns), self_cuda);
	scaled(us(sum->gpu_total_ns) / (double)sum->r.count, cuda);
	out_printf(o,
		   "<FunctionEventAvg key=Total self_cpu_time=%s cpu_time=%s  self_cuda_time=%s "
		   "cuda_time=%s input_shapes= cpu_memory_usage=%" PRId64 " cuda_memory_usage=0>\n",
		   self, avg, self_cuda, cuda, sum->r.alloc_bytes);
}

static const struct layout today = {
	.name_cut = 52,
	.width = 12,
	.event_details = true,
	.end_gap = true,
	.devices = true,
	.footer = self_total,
	.repr = repr,
	.cols = {{"Self CPU %", self_share},
		 {"Self CPU", self_time},
		 {"CPU total %", total_share},
		 {"CPU total", total_time},
		 {"CPU time avg", avg_time},
		 {"Self CUDA", gpu_self, .gpu = true},
		 {"Self CUDA %", gpu_self_share, .gpu = true},
		 {"CUDA total", gpu_total, .gpu = true},
		 {"CUDA time avg", gpu_avg, .gpu = true},
		 {"CPU Mem", total_mem, .memory = true},
		 {"Self CPU Mem", self_mem, .memory = true},
		 {"# of Calls", calls}},
};

/* ---- layout torch-classic */

static void avg_us_text(const struct torch_row *row, const struct sums *sum, char cell[CELL_BYTES])
{
	snprintf(cell, CELL_BYTES, "%.3fus", avg_us(&row->r));
}

static void total_us_text(const struct torch_row *row, const struct sums *sum, char cell[CELL_BYTES])
{
	snprintf(cell, CELL_BYTES, "%.3fus", us(row->r.total_ns));
}

static void gpu_avg_us_text(const struct torch_row *row, const struct sums *sum, char cell[CELL_BYTES])
{
	snprintf(cell, CELL_BYTES, "%.3fus", us(row->gpu_total_ns) / (double)row->r.count);
}

static void gpu_us_text(const struct torch_row *row, const struct sums *sum, char cell[CELL_BYTES])
{
	snprintf(cell, CELL_BYTES, "%.3fus", us(row->gpu_total_ns));
}

static void classic_repr(struct out *o, const struct sums *sum)
{
	out_printf(o, "<FunctionEventAvg cpu_time=%.3fus cuda_time=%.3fus key=Total>\n", avg_us(&sum->r),
		   us(sum->gpu_total_ns) / (double)sum->r.count);
}

static const struct layout classic = {
	.name_left = true,
	.width = 15,
	.repr = classic_repr,
	.cols = {{"CPU time", avg_us_text},
		 {"CUDA time", gpu_avg_us_text},
		 {"Calls", calls},
		 {"CPU total", total_us_text},
		 {"CUDA total", gpu_us_text}},
};

/* ---- lines */

static void put_padded(struct out *o, const char *text, size_t width, bool left)
{
	size_t n = fmt_chars(text);
	int pad = n < width ? (int)(width - n) : 0;

	out_printf(o, "%*s%s%*s", left ? 0 : pad, "", text, left ? pad : 0, "");
}

static void torch_put_line(const struct table *t, const struct line *line)
{
	size_t i;

	put_padded(t->out, line->name, t->name_width, t->l->name_left);
	for (i = 0; i < COLS_MAX && t->l->cols[i].head; i++) {
		if ((t->l->cols[i].memory && !t->memory) || (t->l->cols[i].gpu && !t->sum.gpu))
			continue;
		out_puts(t->out, GAP);
		put_padded(t->out, line->cells[i], t->l->width, false);
	}
	if (t->shapes_width) {
		out_puts(t->out, GAP);
		put_padded(t->out, line->shapes, t->shapes_width, false);
	}
	if (t->source_width) {
		out_puts(t->out, GAP);
		put_padded(t->out, line->source, t->source_width, true);
	}
	out_puts(t->out, t->l->end_gap ? GAP "\n" : "\n");
}

static void dashes(char *text, size_t n)
{
	memset(text, '-', n);
	text[n] = 0;
}

static void put_rule(const struct table *t, struct line *line)
{
	size_t i;

	dashes(line->name, t->name_width);
	for (i = 0; i < COLS_MAX; i++)
		dashes(line->cells[i], t->l->width);
	dashes(line->shapes, t->shapes_width);
	dashes(line->source, t->source_width);
	torch_put_line(t, line);
}

static void put_heads(const struct table *t, struct line *line)
{
	size_t i;

	put_rule(t, line);
	snprintf(line->name, sizeof(line->name), "Name");
	for (i = 0; i < COLS_MAX && t->l->cols[i].head; i++)
		snprintf(line->cells[i], CELL_BYTES, "%s", t->l->cols[i].head);
	snprintf(line->shapes, sizeof(line->shapes), "Input Shapes");
	snprintf(line->source, sizeof(line->source), "Source Location");
	torch_put_line(t, line);
	put_rule(t, line);
}

/* Fills line->name. Returns its width in columns. */
static size_t torch_name_of(const struct view *s, const struct mdl_row *r, struct line *line)
{
	char label[VIEW_LABEL_BYTES];
	size_t len;
	const char *text = view_row_name(s, r, label, &len);

	fmt_utf8(line->name, sizeof(line->name), text, len);
	return fmt_chars(line->name);
}

/* Formats a list as Python prints it. Returns its width in columns without a limit. */
static size_t shapes_of(const struct view *s, const struct mdl_row *r, char text[SHAPES_MAX + 1])
{
	char shapes[MXBPF_TEXT_BYTES_MAX];
	const char *structured;
	size_t len, n = 0, i;

	structured = view_shapes(s->in->model, r->args_id, &len);
	len = view_flat_shapes(structured, len, shapes);
	for (i = 0; i < len; i++) {
		if (n < SHAPES_MAX)
			text[n] = shapes[i];
		n++;
		if (shapes[i] != ',')
			continue;
		if (n < SHAPES_MAX)
			text[n] = ' ';
		n++;
	}
	text[n < SHAPES_MAX ? n : SHAPES_MAX] = 0;
	return n;
}

/* Moves the first line of a stack to line->source. Returns its width in columns. */
static size_t next_source(struct line *line, const char **stack, size_t *len)
{
	const char *source = "";
	size_t n = 0;

	view_next_line(stack, len, &source, &n);
	fmt_utf8(line->source, sizeof(line->source), source, n);
	return fmt_chars(line->source);
}

/* Cut the beginning of a path, because its end tells more. */
static void cut_source(struct line *line, size_t width)
{
	size_t n = fmt_chars(line->source), dots = width < strlen(ELLIPSIS) ? width : strlen(ELLIPSIS);
	const char *end;

	if (n <= width)
		return;
	end = fmt_skip_chars(line->source, n - width + dots);
	memmove(line->source + dots, end, strlen(end) + 1);
	memcpy(line->source, ELLIPSIS, dots);
}

/* The other lines of a stack stand below its row, and an empty line follows. */
static void put_stack(const struct table *t, const char *stack, size_t len, struct line *line)
{
	size_t i;

	line->name[0] = line->shapes[0] = 0;
	for (i = 0; i < COLS_MAX; i++)
		line->cells[i][0] = 0;
	while (len) {
		next_source(line, &stack, &len);
		cut_source(line, t->source_width);
		torch_put_line(t, line);
	}
	line->source[0] = 0;
	torch_put_line(t, line);
}

static void torch_put_row(const struct table *t, const struct view *s, const struct torch_row *row, struct line *line)
{
	const struct mdl_row *r = &row->r;
	size_t columns = torch_name_of(s, r, line), len = 0, i;
	const char *stack = "";

	/* PyTorch also cuts a name of exactly this length. */
	if (t->l->name_cut && columns >= t->l->name_cut)
		strcpy(line->name + (fmt_skip_chars(line->name, t->l->name_cut) - line->name), ELLIPSIS);
	for (i = 0; i < COLS_MAX && t->l->cols[i].head; i++)
		t->l->cols[i].put(row, &t->sum, line->cells[i]);
	if (t->shapes_width)
		shapes_of(s, r, line->shapes);
	if (t->source_width)
		stack = view_stack(s->in->model, s->opts, r->stack_id, &len);
	next_source(line, &stack, &len);
	cut_source(line, t->source_width);
	torch_put_line(t, line);
	if (t->source_width)
		put_stack(t, stack, len, line);
}

static size_t widest_of_stack(const struct view *s, const struct mdl_row *r, struct line *line)
{
	const char *stack;
	size_t len, n, max = 0;

	stack = view_stack(s->in->model, s->opts, r->stack_id, &len);
	while (len) {
		n = next_source(line, &stack, &len) + NAME_PAD;
		max = n > max ? n : max;
	}
	return max;
}

static void widen(size_t *width, size_t n, size_t max)
{
	n = max && n > max ? max : n;
	*width = n > *width ? n : *width;
}

static void survey_details(struct table *t, const struct view *s, const struct mdl_row *r, struct line *line)
{
	if (view_shows_shapes(s))
		widen(&t->shapes_width, shapes_of(s, r, line->shapes) + NAME_PAD, SHAPES_MAX);
	if (view_shows_stack(s))
		widen(&t->source_width, widest_of_stack(s, r, line), SOURCE_MAX);
}

/* The width of names and the sum for shares come from all rows, also from those that --top leaves out. */
static void torch_survey(struct table *t, const struct view *s, const struct torch_rows *rows, struct line *line)
{
	uint64_t over_ns;
	size_t i;

	t->sum.gpu = rows->gpu;
	t->sum.device_ns = rows->device_ns;
	/* What nested calls take twice is negative in its rows, which say 0 here, and not in its sum. */
	over_ns = s->opts->by == VIEW_BY_NAME ? s->in->session->over_ns : 0;
	for (i = 0; i < rows->n; i++) {
		const struct torch_row *r = &rows->rows[i];

		mdl_row_merge(&t->sum.r, &r->r);
		t->sum.gpu_self_ns += r->gpu_self_ns;
		t->sum.gpu_total_ns += r->gpu_total_ns;
		widen(&t->name_width, torch_name_of(s, &r->r, line) + NAME_PAD,
		      t->l->name_cut ? t->l->name_cut + strlen(ELLIPSIS) : 0);
		if (s->opts->by != VIEW_BY_EVENT)
			survey_details(t, s, &r->r, line);
	}
	t->sum.r.self_ns -= over_ns < t->sum.r.self_ns ? over_ns : 0;
}

/* Rows of one name are merged here, so details of single calls come from the rows of the model. */
static void survey_events(struct table *t, const struct view *s, enum mxbpf_class cls, struct line *line)
{
	const struct mdl_row *const *all;
	size_t n, i;

	all = mdl_rows(s->in->model, cls, &n);
	for (i = 0; i < n; i++)
		survey_details(t, s, all[i], line);
}

static void torch_put_rows(struct table *t, struct view *s, const struct view_table *of, const struct torch_rows *rows,
			   struct line *line)
{
	const bool event = s->opts->by == VIEW_BY_EVENT;
	const size_t n = event ? of->nspans : rows->shown;
	const uint64_t all = event ? of->nspans_all : rows->n;
	struct torch_row one;
	size_t i;

	if (n)
		put_heads(t, line);
	for (i = 0; i < n; i++) {
		if (event) {
			one = (struct torch_row){0};
			one.r = view_event_row(&of->spans[i]);
		} else {
			one = rows->rows[i];
		}
		torch_put_row(t, s, &one, line);
	}
	if (n && t->l->footer) {
		put_rule(t, line);
		t->l->footer(s->out, &t->sum);
	}
	out_puts(s->out, "\n"); /* of Python's print() */
	if (n) {
		out_puts(s->out, "# total    ");
		t->l->repr(s->out, &t->sum);
	}
	if (n < all)
		out_printf(s->out, "# rows     %" PRIu64 ", of which %zu are shown\n", all, n);
}

static int torch_put_table(struct view *s, const struct view_table *of, const struct layout *l)
{
	struct table t = {.l = l, .out = s->out, .memory = of->memory};
	struct torch_rows rows;
	struct line line;
	int err;

	if (of->cls != MXBPF_CLASS_OPERATOR)
		return 0;
	err = torch_rows_make(&rows, s, of, l->devices);
	if (!err) {
		torch_survey(&t, s, &rows, &line);
		if (s->opts->by == VIEW_BY_EVENT && l->event_details)
			survey_events(&t, s, of->cls, &line);
		torch_put_rows(&t, s, of, &rows, &line);
	}
	torch_rows_fini(&rows);
	return err ? err_set(s->err, ERR_RUNTIME, err, "out of memory") : 0;
}

static int table_today(struct view *s, const struct view_table *rows)
{
	return torch_put_table(s, rows, &today);
}

static int table_classic(struct view *s, const struct view_table *rows)
{
	return torch_put_table(s, rows, &classic);
}

static int sheet(struct view *s, const struct view_sheet *sh, const void *table)
{
	return view_sheet_print(s, sh, table, "# ");
}

static int end(struct view *s)
{
	view_footer(s, "# ");
	return 0;
}

const struct view_ops view_torch = {
	.name = "torch",
	.layout = true,
	.help = "the text of torch.profiler's key_averages().table(), with lines about loss behind it",
	.magic = view_text_magic,
	.merge_names = true,
	.details = true,
	.people = true,
	.table = table_today,
	.sheet = sheet,
	.only = &sheet_backward,
	.end = end,
};

const struct view_ops view_torch_classic = {
	.name = "torch-classic",
	.layout = true,
	.help = "the text of torch.autograd.profiler in 2017",
	.magic = view_text_magic,
	.merge_names = true,
	.merge_users = true,
	.details = true,
	.people = true,
	.table = table_classic,
	.sheet = sheet,
	.only = &sheet_backward,
	.end = end,
};
