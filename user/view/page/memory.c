// SPDX-License-Identifier: Apache-2.0
/*
 * Memory over time and its holders at the peak. The curve is made of the recorded allocations, in the order in which
 * the model takes them, too; only recordings have them. The holders are rows of the table of --memory.
 */
#include "view/page/page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "base/json.h"
#include "feature/memory/memory.h"

#define DEVICES_MAX   64  /* devices of all processes that have a curve */
#define POINTS	      800 /* points of a curve */
#define JOINED	      (PAGE_SLICES / POINTS)
#define HOLDERS_SHOWN 10 /* holders that are shown of a device */

struct curve {
	uint32_t tgid, device;
	int64_t live;
	int64_t most[POINTS], last[POINTS]; /* most live bytes in each part of the window, and those at its end */
	bool known[POINTS];		    /* the part has an event */
};

/* A row of the table of --memory. */
struct holder {
	struct view_text name, layer, line; /* hostile */
	int64_t bytes;			    /* at the peak */
	uint32_t tgid, device;
};

static struct curve *curve_of(struct page_memory *p, uint32_t tgid, uint32_t device)
{
	uint64_t *at = hash_get(&p->places, tgid, device);
	struct curve *new;

	if (at)
		return (struct curve *)(uintptr_t)*at;
	if (p->places.len >= DEVICES_MAX)
		return NULL;
	new = calloc(1, sizeof(*new));
	at = new ? hash_put(&p->places, tgid, device) : NULL;
	if (!at) {
		free(new);
		return NULL;
	}
	new->tgid = tgid;
	new->device = device;
	*at = (uintptr_t) new;
	return new;
}

/* Without --memory it is not known whether freed memory is of the window, so the sum is never below 0, as in the table.
 */
void page_memory_take(struct page_memory *p, const struct page_strip *time, const struct mxbpf_alloc *a)
{
	const uint64_t i = a->h.ts_ns > time->start_ns ? (a->h.ts_ns - time->start_ns) / (time->slice_ns * JOINED) : 0;
	struct curve *c = i < POINTS ? curve_of(p, a->h.tgid, a->device) : NULL;

	if (!c)
		return;
	if (!c->known[i] || c->live > c->most[i])
		c->most[i] = c->live;
	c->known[i] = true;
	if (__builtin_add_overflow(c->live, a->bytes, &c->live))
		c->live = 0;
	if (c->live < 0 && a->h.size < MXBPF_ALLOC_BYTES_OWNER)
		c->live = 0;
	c->most[i] = c->live > c->most[i] ? c->live : c->most[i];
	c->last[i] = c->live;
}

static void put_peak(struct json *j, const struct view *s, const struct curve *c)
{
	const struct mxbpf_mem_time *t;
	size_t i;

	for (i = 0; (t = memory_device(s->in->processes ? s->in->processes : s->in->model, i)); i++) {
		if (t->h.tgid != c->tgid || t->device != c->device || !t->peak_ns)
			continue;
		json_i64(j, "peak_bytes", t->peak_bytes);
		json_printf(j, "peak_s", "%.6f", (double)(int64_t)(t->peak_ns - s->in->session->start_mono_ns) / 1e9);
	}
}

static void put_curve(struct json *j, const struct view *s, const struct curve *c)
{
	char name[48];
	unsigned i;
	int64_t now = 0; /* a part without an event has what the one before has left */

	mdl_device_name(s->in->session, c->device, name);
	json_line(j, 0);
	json_object(j, NULL);
	json_text(j, "name", name, strlen(name));
	json_u64(j, "pid", c->tgid);
	json_u64(j, "device", c->device);
	put_peak(j, s, c);
	json_array(j, "bytes");
	for (i = 0; i < POINTS; i++) {
		json_i64(j, NULL, c->known[i] ? c->most[i] : now);
		now = c->known[i] ? c->last[i] : now;
	}
	json_end(j);
	json_end(j);
}

void page_memory_put(struct page_memory *p, struct view *s, const struct page_strip *time)
{
	struct json j = {.out = s->out, .tight = true};
	const struct hash_entry *h;
	size_t pos = 0;

	json_object(&j, NULL);
	json_u64(&j, "slice_ns", time->slice_ns * JOINED);
	json_array(&j, "devices");
	while ((h = hash_next(&p->places, &pos)))
		put_curve(&j, s, (const struct curve *)(uintptr_t)h->val);
	json_end(&j);
	json_end(&j);
}

/* ---- holders */

static int by_size(const void *va, const void *vb)
{
	const struct holder *a = va, *b = vb;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->tgid != b->tgid)
		return a->tgid < b->tgid ? -1 : 1;
	return a->bytes > b->bytes ? -1 : a->bytes < b->bytes;
}

static void put_holder(struct view *s, const struct holder *h, int64_t all)
{
	const unsigned percent = (unsigned)(100. * (double)h->bytes / (double)all + 0.5);
	char bytes[24], width[32];

	snprintf(width, sizeof(width), "width:%u%%", percent);
	page_raw(s, "<tr><td class=\"bar\"><span style=\"");
	page_raw(s, width);
	page_raw(s, "\"></span></td><td class=\"n\">");
	out_printf(s->out, "%s, %u %%", fmt_bytes((uint64_t)h->bytes, bytes), percent);
	page_raw(s, "</td><td>");
	page_words(s, h->name);
	if (h->layer.len)
		out_puts(s->out, " in ");
	page_words(s, h->layer);
	page_raw(s, "</td><td>");
	page_words(s, h->line);
	page_raw(s, "</td></tr>\n");
}

/* The largest holders of a device, and the sum of the others. h: the first of its holders; n: their number. */
static void put_holders(struct view *s, const struct holder *h, size_t n)
{
	int64_t all = 0, shown = 0;
	char name[48], bytes[24], of[64];
	size_t i;

	for (i = 0; i < n; i++)
		all += h[i].bytes;
	if (all <= 0)
		return;
	mdl_device_name(s->in->session, h->device, name);
	snprintf(of, sizeof(of), "<div class=\"holders\" data-of=\"%" PRIu32 " %" PRIu32 "\"><h3>", h->tgid, h->device);
	page_raw(s, of);
	page_words(s, view_word(name));
	out_printf(s->out, " of process %" PRIu32 ": who holds its %s at the peak", h->tgid,
		   fmt_bytes((uint64_t)all, bytes));
	page_raw(s, "</h3>\n<table class=\"bars\"><thead><tr><td></td><th scope=\"col\" class=\"n\">at the peak</th>"
		    "<th scope=\"col\">made by</th><th scope=\"col\">line</th></tr></thead><tbody>\n");
	for (i = 0; i < n && i < HOLDERS_SHOWN && h[i].bytes > 0; i++) {
		put_holder(s, &h[i], all);
		shown += h[i].bytes;
	}
	if (shown < all)
		put_holder(s, &(struct holder){.name = view_word("others"), .bytes = all - shown}, all);
	page_raw(s, "</tbody></table></div>\n");
}

static void put_all(struct view *s, const struct view_list *rows)
{
	const struct view_sheet *sh = &sheet_memory;
	struct holder *h = calloc(rows->all + 1, sizeof(*h));
	const void *row;
	size_t i, k;

	for (i = 0; h && i < rows->all; i++) {
		row = view_row(s, sh, rows, i);
		h[i] = (struct holder){.name = page_text(sh, row, "name"),
				       .layer = page_text(sh, row, "layer"),
				       .line = page_text(sh, row, "line"),
				       .bytes = (int64_t)page_number(sh, row, "peak_bytes"),
				       .tgid = (uint32_t)page_number(sh, row, "pid"),
				       .device = (uint32_t)page_number(sh, row, "device")};
	}
	if (h)
		qsort(h, rows->all, sizeof(*h), by_size);
	for (i = 0; h && i < rows->all; i = k) {
		for (k = i + 1; k < rows->all && h[k].tgid == h[i].tgid && h[k].device == h[i].device; k++)
			;
		put_holders(s, &h[i], k - i);
	}
	free(h);
}

int page_memory_holders(struct view *s)
{
	const struct view_input *in = s->in;
	struct view_input apart = *in;
	struct view_list *table = calloc(1, sheet_memory.table_bytes);
	int err = table ? 0 : -ENOMEM;

	apart.model = in->processes ? in->processes : in->model;
	s->in = &apart;
	if (table)
		err = sheet_memory.make(s, table);
	if (!err)
		put_all(s, table);
	if (table) {
		sheet_memory.fini(table);
		free(table->rows);
	}
	free(table);
	s->in = in;
	return err;
}

void page_memory_fini(struct page_memory *p)
{
	const struct hash_entry *h;
	size_t pos = 0;

	while ((h = hash_next(&p->places, &pos)))
		free((struct curve *)(uintptr_t)h->val);
	hash_fini(&p->places);
}
