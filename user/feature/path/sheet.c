// SPDX-License-Identifier: Apache-2.0
/* The critical path of an iteration, and the activities that operators launch one after another. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "feature/path/path.h"
#include "view/gpu.h"

#define NAME_BYTES 72 /* of a kernel, for people */

static const char *const kinds[MXBPF_PATH_PARTS] = {
	[MXBPF_PATH_KERNEL] = "kernel", [MXBPF_PATH_COPY] = "copy",	    [MXBPF_PATH_GAP] = "gap",
	[MXBPF_PATH_LAUNCH] = "launch", [MXBPF_PATH_OPERATOR] = "operator", [MXBPF_PATH_DATA] = "data",
	[MXBPF_PATH_OTHERS] = "others", [MXBPF_PATH_WAIT] = "wait",	    [MXBPF_PATH_PROGRAM] = "program",
};

/* For people, of rows without a name. */
static const char *const names[MXBPF_PATH_PARTS] = {
	[MXBPF_PATH_GAP] = "[between two activities of a GPU]",
	[MXBPF_PATH_PROGRAM] = "[your Python code]",
};

/* ---- the critical path */

struct row {
	struct view_text name, shown, owner; /* shown: to people */
	struct mxbpf_gpu_path a;
	uint64_t length_ns;
	double share;
	char owner_text[VIEW_LABEL_BYTES], short_text[256];
};

struct table {
	struct view_list list;
	bool processes;
	uint64_t length_ns, gpu_ns, nr; /* of the first process */
};

static int path_by_time(const void *va, const void *vb)
{
	const struct mxbpf_gpu_path *a = &((const struct row *)va)->a, *b = &((const struct row *)vb)->a;

	if (a->h.tgid != b->h.tgid)
		return a->h.tgid < b->h.tgid ? -1 : 1;
	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	if (a->part != b->part)
		return a->part - b->part;
	return a->name_id < b->name_id ? -1 : a->name_id > b->name_id;
}

static void path_fill(const struct view *s, struct row *r, const struct mxbpf_gpu_path *a)
{
	r->a = *a;
	r->length_ns = a->end_ns - a->h.ts_ns;
	r->share = r->length_ns ? (double)a->ns / (double)r->length_ns : 0;
	if (a->name_id)
		r->name.data = mdl_name(s->in->model, a->name_id, &r->name.len);
	r->shown = r->name.data ? r->name : view_word(names[a->part] ? names[a->part] : "[unknown]");
}

static int make_path(const struct view *s, void *table)
{
	struct table *t = table;
	struct buf all = {0};
	struct row *r = NULL;
	size_t i;

	if (!path_parts(s->in->model, &all))
		t->list.rows = r = calloc(buf_count(&all, r->a) + 1, sizeof(*r));
	t->list.all = r ? buf_count(&all, r->a) : 0;
	for (i = 0; i < t->list.all; i++)
		path_fill(s, &r[i], buf_at(&all, struct mxbpf_gpu_path, i));
	if (t->list.all) {
		qsort(r, t->list.all, sizeof(*r), path_by_time);
		t->length_ns = r[0].length_ns;
		t->nr = r[0].a.nr;
	}
	for (i = 0; i < t->list.all; i++) { /* sorting has moved the texts */
		if (r[i].a.part == MXBPF_PATH_KERNEL && r[i].name.data && t->list.people)
			r[i].shown = gpu_short_kernel(r[i].name, r[i].short_text, sizeof(r[i].short_text));
		t->processes |= r[i].a.h.tgid != r[0].a.h.tgid;
		add_sat(&t->gpu_ns, r[i].a.part <= MXBPF_PATH_GAP ? r[i].a.ns : 0);
		r[i].owner = view_word(gpu_owner(s, r[i].a.h.tgid, r[i].owner_text));
	}
	buf_fini(&all);
	gpu_show_empty(s, &t->list);
	return r ? 0 : -ENOMEM;
}

static void above_path(struct view *s, const void *table, const char *prefix)
{
	const struct table *t = table;
	const double part = t->length_ns ? (double)t->gpu_ns / (double)t->length_ns : 0;
	char length[24], text[160];

	if (t->processes)
		snprintf(text, sizeof(text), "Critical path of an iteration of each process:");
	else
		snprintf(text, sizeof(text), "Critical path of iteration %" PRIu64 ": %s, %.0f%% of it on the GPU, in",
			 t->nr, fmt_ns(t->length_ns, length), 100 * part);
	gpu_put_title(s, &t->list, prefix, text);
}

#define ROW	     struct row
#define SEEN(member) .shown = offsetof(struct table, member)
static const struct tbl_column path_columns[] = {
	{NULL, NULL, "on the path", TBL_TEXT, AT(shown)},
	{"name", NULL, NULL, TBL_TEXT, AT(name), TBL_NULL,
	 .help = "kernel, copy, call of CUDA that launches, or operator"},
	{"kind", NULL, "kind", TBL_WORD, AT(a.part), WORDS(kinds),
	 .help = "kernel (or set), copy; gap: between two activities of a GPU; launch: from the start of a call to "
		 "that of "
		 "its work; operator, data, others: a thread was in an operator, waited for data or for other "
		 "processes; "
		 "wait: it went on after its wait for the GPU; program: it was in no call"},
	GPU_OWNER_COLUMN,
	PID_COLUMN(a.h.tgid),
	{"total_ns", NULL, "time", TBL_NS, AT(a.ns), TBL_TIGHT,
	 .help = "the rows of a process add up to the length of its path"},
	{NULL, NULL, "share", TBL_SHARE, AT(share), .digits = 1, .help = "part of the path"},
	{"count", NULL, "times", TBL_COUNT, AT(a.count)},
	{"path_ns", NULL, NULL, TBL_NS, AT(length_ns),
	 .help = "from the start of the iteration to its end, or to the end of its last work if that is later"},
	{"iteration", NULL, NULL, TBL_COUNT, AT(a.nr),
	 .help = "number of the iteration: the median of the latest 64 of which all is known"},
	{"iteration_start", NULL, NULL, TBL_MOMENT, AT(a.h.ts_ns)},
	{0},
};

const struct view_sheet sheet_gpu_path = {
	.title = "Critical path",
	.help = "What held an iteration up, on threads and GPUs; absent without iterations that launch work, and "
		"without "
		"single calls.",
	.list_help = "parts of the path of one iteration of each process, by time",
	.member = "gpu",
	.list = "critical_path",
	.csv = "Critical path",
	.columns = path_columns,
	.row_bytes = sizeof(struct row),
	.table_bytes = sizeof(struct table),
	.if_any = true,
	.when = gpu_when,
	.make = make_path,
	.above = above_path,
	.left_out = "critical path",
};
#undef ROW

/* ---- sequences */

struct sequence {
	struct view_text name, kernels, owner; /* kernels: one a line */
	struct path_sequence of;
	uint64_t gpu_avg_ns;
	char *text; /* owned */
	char owner_text[VIEW_LABEL_BYTES];
};

struct sequences {
	struct view_list list;
	bool processes;
};

static int by_count(const void *va, const void *vb)
{
	const struct path_sequence *p = &((const struct sequence *)va)->of, *q = &((const struct sequence *)vb)->of;
	const struct mxbpf_gpu_sequence *a = &p->a, *b = &q->a;

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	if (a->gpu_ns != b->gpu_ns)
		return a->gpu_ns > b->gpu_ns ? -1 : 1;
	if (a->name_id != b->name_id)
		return a->name_id < b->name_id ? -1 : 1;
	return a->h.tgid != b->h.tgid ? (a->h.tgid < b->h.tgid ? -1 : 1) : memcmp(p->names, q->names, sizeof(p->names));
}

static bool is_inside(char c)
{
	return (c & 0xc0) == 0x80; /* of a character of several bytes */
}

/* People read a line of each kernel: of a long name the beginning and the end. */
static struct view_text shown_kernel(struct view_text name, char to[NAME_BYTES])
{
	const size_t half = NAME_BYTES / 2 - 2;
	char whole[1024];
	size_t begin = half, end;

	if (name.len < 3 || memcmp(name.data, "Mem", 3)) /* copies and sets */
		name = gpu_short_kernel(name, whole, sizeof(whole));
	if (name.len > 2 * half) {
		for (end = name.len - half; end < name.len && is_inside(name.data[end]); end++)
			;
		while (begin && is_inside(name.data[begin]))
			begin--;
		begin = (size_t)snprintf(to, NAME_BYTES, "%.*s...%.*s", (int)begin, name.data, (int)(name.len - end),
					 name.data + end);
		return (struct view_text){to, begin};
	}
	memcpy(to, name.data, name.len);
	return (struct view_text){to, name.len};
}

/* Makes the text of the row's activities. Returns 0 or -ENOMEM. */
static int put_kernels(const struct view *s, struct sequence *r, bool people)
{
	struct buf text = {0};
	struct view_text name;
	char to[NAME_BYTES];
	size_t i, k;
	int err = 0;

	for (i = 0; !err && i < r->of.a.n; i++) {
		name.data = mdl_name(s->in->model, r->of.names[i], &name.len);
		name = people ? shown_kernel(name, to) : name;
		err = (i && buf_put(&text, "\n", 1)) || buf_put(&text, name.data, name.len) ? -ENOMEM : 0;
		for (k = text.len - name.len; !err && k < text.len; k++)
			if (text.data[k] == '\n')
				text.data[k] = ' ';
	}
	r->text = text.data;
	r->kernels = (struct view_text){text.data, text.len};
	return err;
}

static int make_sequences(const struct view *s, void *table)
{
	struct sequences *t = table;
	struct sequence *r = NULL;
	struct buf all = {0};
	size_t i;
	int err = path_sequences(s->in->model, &all);

	if (!err)
		t->list.rows = r = calloc(buf_count(&all, r->of) + 1, sizeof(*r));
	t->list.all = r ? buf_count(&all, r->of) : 0;
	for (i = 0; i < t->list.all; i++)
		r[i].of = *buf_at(&all, struct path_sequence, i);
	if (t->list.all)
		qsort(r, t->list.all, sizeof(*r), by_count);
	err = r ? 0 : -ENOMEM;
	for (i = 0; !err && i < t->list.all; i++) {
		r[i].name.data = mdl_name(s->in->model, r[i].of.a.name_id, &r[i].name.len);
		r[i].gpu_avg_ns = r[i].of.a.gpu_ns / r[i].of.a.count;
		r[i].owner = view_word(gpu_owner(s, r[i].of.a.h.tgid, r[i].owner_text));
		t->processes |= r[i].of.a.h.tgid != r[0].of.a.h.tgid;
		err = put_kernels(s, &r[i], t->list.people);
	}
	buf_fini(&all);
	gpu_show_empty(s, &t->list);
	return err;
}

static void fini_sequences(void *table)
{
	struct sequences *t = table;
	struct sequence *r = t->list.rows;
	size_t i;

	for (i = 0; r && i < t->list.all; i++)
		free(r[i].text);
}

static void above_sequences(struct view *s, const void *table, const char *prefix)
{
	gpu_put_title(s, table, prefix, "Kernels that operators launch one after another:");
}

#define ROW struct sequence
#undef SEEN
#define SEEN(member) .shown = offsetof(struct sequences, member)
static const struct tbl_column sequence_columns[] = {
	{"name", NULL, "operator", TBL_TEXT, AT(name), .help = "the innermost operator that launched all of them"},
	GPU_OWNER_COLUMN,
	PID_COLUMN(of.a.h.tgid),
	{"count", NULL, "times", TBL_COUNT, AT(of.a.count),
	 .help = "calls of the operator that launched these activities"},
	{"length", NULL, "length", TBL_COUNT, AT(of.a.n), .help = "activities, from 2 to 16"},
	{"gpu_total_ns", NULL, "gpu total", TBL_NS, AT(of.a.gpu_ns), TBL_TIGHT,
	 .help = "time on the GPU of all of them"},
	{"gpu_avg_ns", NULL, "avg", TBL_NS, AT(gpu_avg_ns), TBL_TIGHT, .help = "time on the GPU of one sequence"},
	{"cpu_total_ns", NULL, "cpu total", TBL_NS, AT(of.a.cpu_ns), TBL_TIGHT, .help = "durations of these calls"},
	{"kernels", NULL, "kernels", TBL_LINES, AT(kernels), TBL_BELOW,
	 .help = "kernels, copies and sets, in the order of their launches"},
	{0},
};

const struct view_sheet sheet_gpu_sequences = {
	.title = "Sequences of kernels",
	.help = "Which kernels, copies and sets operators launch one after another, as candidates for fusion; of the "
		"latest "
		"65,536 activities. Absent without single calls.",
	.list_help = "sequences by how often they were launched",
	.member = "gpu",
	.list = "sequences",
	.csv = "Sequences of kernels",
	.columns = sequence_columns,
	.row_bytes = sizeof(struct sequence),
	.table_bytes = sizeof(struct sequences),
	.if_any = true,
	.when = gpu_when,
	.make = make_sequences,
	.fini = fini_sequences,
	.above = above_sequences,
	.left_out = "sequences",
};
