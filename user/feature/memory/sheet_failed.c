// SPDX-License-Identifier: Apache-2.0
/* Allocations that failed for lack of memory, each with who held the memory then. */
#include "feature/memory/failed.h"
#include "feature/memory/memory.h"

#include <errno.h>
#include <stdlib.h>

#include "base/fmt.h"
#include "feature/devmem/devmem.h"
#include "feature/lines/lines.h"
#include "view/priv.h"
#include "view/sheet.h"

#define HOLDERS_SHOWN 8	  /* to people */
#define TEXT_MAX      200 /* bytes of a name or a line in the sentences for people */

struct holder {
	struct view_text name, layer, line;
	int64_t bytes;
	uint64_t blocks;
};
struct row {
	struct mxbpf_mem_failed f;
	struct view_text name, line;
	uint64_t allocated_bytes, reserved_bytes, unused_bytes; /* TBL_UNKNOWN */
	uint64_t before_bytes;					/* TBL_UNKNOWN */
	uint64_t others_bytes, others;				/* TBL_UNKNOWN */
	struct view_list holders;
	struct holder list[MEMORY_HOLDERS_MAX];
	struct buf says; /* owned */
	struct view_text note;
};
struct table {
	struct view_list list;
	uint64_t n; /* all failures */
	bool several;
};

static struct view_text memory_name_of(const struct mdl *m, unsigned cls, uint64_t id, unsigned flags)
{
	struct view_text name = {0};

	if (!cls)
		return view_word(flags & MXBPF_MEM_OWNER_MORE ? "[more]" : "[no operator]");
	name.data = mdl_name(m, id, &name.len);
	return name;
}

static struct view_text line_of(const struct mdl *m, uint64_t stack_id)
{
	struct view_text line = {0};

	line.data = lines_of_program(m, stack_id, &line.len);
	return line;
}

static bool memory_is_same(const struct holder *a, const struct holder *b)
{
	return !view_name_cmp(a->name.data, a->name.len, b->name.data, b->name.len) &&
	       !view_name_cmp(a->layer.data, a->layer.len, b->layer.data, b->layer.len) &&
	       !view_name_cmp(a->line.data, a->line.len, b->line.data, b->line.len);
}

static int by_bytes(const void *va, const void *vb)
{
	const struct holder *a = va, *b = vb;

	return a->bytes > b->bytes ? -1 : a->bytes < b->bytes;
}

/* Owners whose stacks differ and whose line of the program does not are one holder. */
static void add_holder(const struct mdl *m, struct row *r, const struct mxbpf_mem_holder *h)
{
	struct holder one = {
		.name = memory_name_of(m, h->cls, h->name_id, h->flags),
		.line = line_of(m, h->stack_id),
		.bytes = h->bytes,
		.blocks = h->blocks,
	};
	size_t i;

	if (h->layer_id)
		one.layer.data = mdl_text(m, MXBPF_NAME_LAYER, h->layer_id, &one.layer.len);
	for (i = 0; i < r->holders.n && !memory_is_same(&r->list[i], &one); i++)
		;
	if (i == r->holders.n) {
		r->list[r->holders.n++] = one;
		return;
	}
	add_sat_any(&r->list[i].bytes, one.bytes);
	add_sat(&r->list[i].blocks, one.blocks);
}

/* A text of the target becomes part of a line, so it must not end one. */
static void memory_put_text(struct buf *b, const struct view_text *t)
{
	size_t i;

	for (i = 0; i < t->len && i < TEXT_MAX; i++)
		buf_printf(b, "%c", (unsigned char)t->data[i] < ' ' ? '?' : t->data[i]);
}

static void put_at(struct buf *b, const struct view_text *line)
{
	if (!line->len)
		return;
	buf_printf(b, " at ");
	memory_put_text(b, line);
}

static void put_holders(struct row *r)
{
	char bytes[24], n[32];
	size_t i;

	for (i = 0; i < r->holders.n && i < HOLDERS_SHOWN; i++) {
		buf_printf(&r->says, "%s%s held by ", r->says.len ? "\n" : "",
			   fmt_bytes((uint64_t)r->list[i].bytes, bytes));
		memory_put_text(&r->says, &r->list[i].name);
		put_at(&r->says, &r->list[i].line);
		buf_printf(&r->says, ", %s block%s", fmt_count(r->list[i].blocks, n),
			   r->list[i].blocks == 1 ? "" : "s");
	}
	if (r->before_bytes != TBL_UNKNOWN && r->before_bytes)
		buf_printf(&r->says, "%s%s from before the window", r->says.len ? "\n" : "",
			   fmt_bytes(r->before_bytes, bytes));
	if (r->others_bytes != TBL_UNKNOWN && r->others_bytes)
		buf_printf(&r->says, "%s%s of the GPU held by %s other process%s", r->says.len ? "\n" : "",
			   fmt_bytes(r->others_bytes, bytes), fmt_count(r->others, n), r->others == 1 ? "" : "es");
}

static void set_others(const struct view *s, struct row *r)
{
	const struct mxbpf_gpu_used *gpu =
		devmem_at(s->in->model, s->in->session, r->f.h.tgid, r->f.device, r->f.h.ts_ns);

	r->others_bytes = gpu ? gpu->others_bytes : TBL_UNKNOWN;
	r->others = gpu ? gpu->others : TBL_UNKNOWN;
}

static bool is_uncounted(const struct mxbpf_mem_failed *f)
{
	return f->flags & MXBPF_ALLOC_UNCOUNTED;
}

/* An allocator that does not count may have a pool, which does. */
static void set_totals(struct row *r, const struct mxbpf_mem_failed *f)
{
	r->allocated_bytes = is_uncounted(f) ? TBL_UNKNOWN : f->total_bytes;
	r->reserved_bytes = is_uncounted(f) && !f->pool_bytes ? TBL_UNKNOWN : f->pool_bytes;
	r->unused_bytes = is_uncounted(f)		   ? TBL_UNKNOWN
			  : f->pool_bytes > f->total_bytes ? f->pool_bytes - f->total_bytes
							   : 0;
}

/* If memory is out, a text is cut. */
static void make_row(const struct view *s, struct row *r, const struct memory_failure *f)
{
	const struct mdl *m = s->in->model;
	int64_t before;
	unsigned i;

	r->f = f->f;
	r->name = memory_name_of(m, f->f.cls, f->f.name_id, 0);
	r->line = line_of(m, f->f.stack_id);
	set_totals(r, &f->f);
	r->before_bytes = TBL_UNKNOWN;
	for (i = 0; i < f->nholders; i++)
		add_holder(m, r, &f->holders[i]);
	if (s->in->session->held && !is_uncounted(&f->f) &&
	    !__builtin_sub_overflow((int64_t)f->f.total_bytes, f->f.live_bytes, &before))
		r->before_bytes = before > 0 ? (uint64_t)before : 0;
	set_others(s, r);
	qsort(r->list, r->holders.n, sizeof(r->list[0]), by_bytes);
	r->holders.all = r->holders.n;
	r->holders.rows = r->list;
	put_at(&r->says, &r->line);
	if (r->says.len)
		memmove(r->says.data, r->says.data + 1, --r->says.len); /* the blank before "at" */
	put_holders(r);
	r->note = (struct view_text){(const char *)r->says.data, r->says.len};
}

static int memory_sheet_failed_make(const struct view *s, void *table)
{
	const struct memory_failed *all = memory_failures(s->in->model);
	struct table *t = table;
	struct row *r;
	size_t i;

	t->list.all = all ? buf_count(&all->list, struct memory_failure) : 0;
	t->n = all ? all->n : 0;
	t->list.rows = r = calloc(t->list.all + 1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	for (i = 0; i < t->list.all; i++) {
		make_row(s, &r[i], buf_at(&all->list, const struct memory_failure, i));
		t->several |= r[i].f.device != r[0].f.device;
	}
	return 0;
}

static void memory_sheet_failed_fini(void *table)
{
	struct table *t = table;
	struct row *r = t->list.rows;
	size_t i;

	for (i = 0; r && i < t->list.all; i++)
		buf_fini(&r[i].says);
}

static void memory_sheet_failed_above(struct view *s, const void *table, const char *prefix)
{
	const struct table *t = table;
	char n[32];

	out_printf(s->out, "%sOut of memory: %s allocation%s failed", prefix, fmt_count(t->n, n), t->n == 1 ? "" : "s");
	if (t->n > t->list.all)
		out_printf(s->out, "; the first %zu of them and the last one are kept", t->list.all - 1);
	out_puts(s->out, "\n");
}

static void memory_sheet_failed_below(struct view *s, const void *table, const char *prefix)
{
	(void)table;
	if (!s->in->session->held)
		out_printf(s->out, "%swho held the memory is known with --memory, the line with --py-stacks\n", prefix);
}

static bool memory_sheet_failed_when(const struct view *s)
{
	return s->in->session->mem_title;
}

#define ROW struct holder
static const struct tbl_column holder_columns[] = {
	{"name", NULL, NULL, TBL_TEXT, AT(name)},
	{"layer", NULL, NULL, TBL_TEXT, AT(layer), TBL_NULL},
	{"line", NULL, NULL, TBL_TEXT, AT(line), TBL_NULL},
	{"live_bytes", NULL, NULL, TBL_BYTES, AT(bytes), TBL_SIGNED},
	{"live_blocks", NULL, NULL, TBL_COUNT, AT(blocks)},
	{0},
};
#undef ROW

#define ROW	     struct row
#define SEEN(member) .shown = offsetof(struct table, member)
static const struct tbl_column columns[] = {
	{"name", NULL, "asked by", TBL_TEXT, AT(name),
	 .help = "innermost operator or call of the C API that needed the memory"},
	{"device", NULL, "device", TBL_DEVICE, AT(f.device), SEEN(several)},
	PID_COLUMN(f.h.tgid),
	{"tid", NULL, NULL, TBL_COUNT, AT(f.tid)},
	{"unix_ns", NULL, "at (s)", TBL_MOMENT, AT(f.h.ts_ns), TBL_TIGHT, .digits = 6},
	{"nr", NULL, NULL, TBL_COUNT, AT(f.nr), .help = "number of the failure in the window, from 1"},
	{"wanted_bytes", NULL, "wanted", TBL_BYTES, SUM_AT(f.wanted_bytes), .help = "bytes asked for"},
	{"allocated_bytes", NULL, "allocated", TBL_BYTES, AT(allocated_bytes), TBL_NULL,
	 .help = "allocated then, as the allocator says, also before the window; null: it does not count"},
	{"reserved_bytes", NULL, "reserved", TBL_BYTES, AT(reserved_bytes), TBL_NULL,
	 .help = "what the allocator had taken from the device then"},
	{"unused_bytes", NULL, "unused", TBL_BYTES, AT(unused_bytes), TBL_NULL, .name_min = 12,
	 .help = "of reserved_bytes, not allocated: in pieces that were too small or belong to another stream"},
	{"before_bytes", NULL, NULL, TBL_BYTES, AT(before_bytes), TBL_NULL,
	 .help = "of allocated_bytes, allocated before the window; null: not known without --memory"},
	{"others_bytes", NULL, NULL, TBL_BYTES, AT(others_bytes), TBL_NULL,
	 .help = "with --memory: what other processes had of the GPU, by the driver's last account before the failure, "
		 "which is about a second old at most; null: not known"},
	{"others", NULL, NULL, TBL_COUNT, AT(others), TBL_NULL, .help = "number of these processes"},
	{"line", NULL, NULL, TBL_TEXT, AT(line), TBL_NULL},
	{"holders", NULL, NULL, TBL_LIST, AT(holders), .columns = holder_columns, .item_bytes = sizeof(struct holder),
	 .help = "with --memory: who held the memory of the device then, at most 32, the one with the most first"},
	{NULL, NULL, "", TBL_LINES, AT(note)},
	{0},
};

const struct view_sheet sheet_memory_failed = {
	.title = "Out of memory",
	.help = "Allocations for which there was no memory, as the runtime's allocator reports them.",
	.list_help = "absent if none failed; the first ones and the last one",
	.member = "memory",
	.list = "failures",
	.columns = columns,
	.row_bytes = sizeof(struct row),
	.table_bytes = sizeof(struct table),
	.if_any = true,
	.whole = true,
	.first = true,
	.when = memory_sheet_failed_when,
	.make = memory_sheet_failed_make,
	.fini = memory_sheet_failed_fini,
	.above = memory_sheet_failed_above,
	.below = memory_sheet_failed_below,
};
