// SPDX-License-Identifier: Apache-2.0
/* --memory: who holds the memory of each device, and what it held when it held the most. */
#include "sink/priv.h"

#include "base/fmt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CELL_BYTES 64

static int by_name(const struct snk_holder *a, const struct snk_holder *b)
{
	int order = snk_name_cmp(a->name, a->len, b->name, b->len);

	order = order ? order : snk_name_cmp(a->layer, a->layer_len, b->layer, b->layer_len);
	order = order ? order : snk_name_cmp(a->scope, a->scope_len, b->scope, b->scope_len);
	order = order ? order : snk_name_cmp(a->label, a->label_len, b->label, b->label_len);
	if (order)
		return order;
	return a->h.h.tgid < b->h.h.tgid ? -1 : a->h.h.tgid > b->h.h.tgid;
}

/* What was there before stands last: it is nobody's. */
static int by_size(const void *va, const void *vb)
{
	const struct snk_holder *a = va, *b = vb;

	if (a->h.device != b->h.device)
		return a->h.device < b->h.device ? -1 : 1;
	if (a->h.flags != b->h.flags)
		return a->h.flags < b->h.flags ? -1 : 1;
	if (a->h.peak_bytes != b->h.peak_bytes)
		return a->h.peak_bytes > b->h.peak_bytes ? -1 : 1;
	if (a->h.alloc_bytes != b->h.alloc_bytes)
		return a->h.alloc_bytes > b->h.alloc_bytes ? -1 : 1;
	return by_name(a, b);
}

static int by_device(const void *va, const void *vb)
{
	const struct mxbpf_mem_time *a = va, *b = vb;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	return a->h.tgid < b->h.tgid ? -1 : a->h.tgid > b->h.tgid;
}

/* Of an id that is none, none. */
static const char *text_of(const struct mdl *m, enum mxbpf_name_kind kind, uint64_t id, size_t *len)
{
	const char *text = NULL;

	*len = 0;
	if (id && kind == MXBPF_NAME_SPAN && id != MXBPF_NAME_UNNAMED)
		text = mdl_name(m, id, len);
	else if (id && kind != MXBPF_NAME_SPAN)
		text = mdl_text(m, kind, id, len);
	return text ? text : "";
}

static struct snk_holder holder_of(const struct mdl *m, const struct mxbpf_holder *h)
{
	struct snk_holder r = {.h = *h};

	if (h->cls) {
		r.name = mdl_name(m, h->name_id, &r.len);
	} else {
		r.name = h->flags & MXBPF_HOLDER_BEFORE ? "[before]"
			 : h->flags & MXBPF_HOLDER_MORE ? "[more]"
							: "[no operator]";
		r.len = strlen(r.name);
	}
	r.layer = text_of(m, MXBPF_NAME_LAYER, h->layer_id, &r.layer_len);
	r.scope = text_of(m, MXBPF_NAME_SPAN, h->scope_id, &r.scope_len);
	r.label = text_of(m, MXBPF_NAME_SPAN, h->label_id, &r.label_len);
	return r;
}

int snk_held_make(const struct snk *s, struct snk_held *t)
{
	const struct mdl *m = s->in->model;
	const struct mxbpf_mem_time *d;
	const struct mxbpf_holder *h;
	size_t i;

	*t = (struct snk_held){0};
	while (mdl_mem_time(m, t->ndevices))
		t->ndevices++;
	while (mdl_holder(m, t->nrows_all))
		t->nrows_all++;
	t->devices = calloc(t->ndevices + 1, sizeof(*t->devices));
	t->rows = calloc(t->nrows_all + 1, sizeof(*t->rows));
	if (!t->devices || !t->rows)
		return -ENOMEM;
	for (i = 0; (d = mdl_mem_time(m, i)); i++)
		t->devices[i] = *d;
	for (i = 0; (h = mdl_holder(m, i)); i++) {
		t->rows[i] = holder_of(m, h);
		t->layers |= !!t->rows[i].layer_len;
		t->scopes |= t->rows[i].scope_len || t->rows[i].label_len;
	}
	qsort(t->devices, t->ndevices, sizeof(*t->devices), by_device);
	qsort(t->rows, t->nrows_all, sizeof(*t->rows), by_size);
	t->nrows = s->opts->top && s->opts->top < t->nrows_all ? s->opts->top : t->nrows_all;
	return 0;
}

void snk_held_free(struct snk_held *t)
{
	free(t->devices);
	free(t->rows);
}

int64_t snk_mem_mean(const struct snk *s, const struct mxbpf_mem_time *t)
{
	const struct mdl_session *ss = s->in->session;

	return mdl_mem_mean(t, ss->start_mono_ns, ss->start_mono_ns + ss->duration_ns + ss->paused_ns);
}

/* Allocated less freed is what the window added to it. */
int64_t snk_start_bytes(const struct mxbpf_holder *h)
{
	return (int64_t)((uint64_t)h->live_bytes - h->alloc_bytes + h->free_bytes);
}

/* What was there before and is freed counts below 0. */
static const char *signed_bytes(int64_t bytes, char buf[32])
{
	char text[24];

	fmt_bytes(bytes < 0 ? -(uint64_t)bytes : (uint64_t)bytes, text);
	snprintf(buf, 32, "%s%s", bytes < 0 ? "-" : "", text);
	return buf;
}

static void put_count(struct snk *s, uint64_t n, const char *prefix, const char *what)
{
	char text[32];

	if (n)
		out_printf(s->out, "%s         %s %s\n", prefix, fmt_count(n, text), what);
}

/* Of all of a device, or (NULL) whether any has some. */
static int64_t start_bytes(const struct snk_held *held, const struct mxbpf_mem_time *t)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < held->nrows_all; i++)
		if (!t)
			sum |= (uint64_t)snk_start_bytes(&held->rows[i].h);
		else if (t->device == held->rows[i].h.device && t->h.tgid == held->rows[i].h.h.tgid)
			sum += (uint64_t)snk_start_bytes(&held->rows[i].h);
	return (int64_t)sum;
}

static void put_device(struct snk *s, const struct snk_held *held, const struct mxbpf_mem_time *t, const char *prefix)
{
	const struct mdl_session *ss = s->in->session;
	const int64_t start = start_bytes(held, t);
	char dev[48], bytes[3][32];

	out_printf(s->out, "%s", prefix);
	mdl_device_name(ss, t->device, dev);
	snk_put_safe(s->out, dev, strlen(dev));
	out_printf(s->out, ": peak %s", signed_bytes(t->peak_bytes, bytes[0]));
	if (t->peak_ns)
		out_printf(s->out, " at %.6f s", (double)(int64_t)(t->peak_ns - ss->start_mono_ns) / 1e9);
	if (start)
		out_printf(s->out, ", %s at the start", signed_bytes(start, bytes[1]));
	out_printf(s->out, ", mean %s, %s at the end\n", signed_bytes(snk_mem_mean(s, t), bytes[1]),
		   signed_bytes(t->live_bytes, bytes[2]));
	if (t->pool_peak_bytes)
		out_printf(s->out, "%s         its pool took %s at most, of which %s were asked for then\n", prefix,
			   signed_bytes((int64_t)t->pool_peak_bytes, bytes[0]),
			   signed_bytes((int64_t)t->pool_used_bytes, bytes[1]));
	put_count(s, t->unsized, prefix, "frees of what was there before are of unknown size");
	put_count(s, t->missed, prefix, "frees were not seen: their addresses were given out again");
	put_count(s, t->untracked, prefix, "allocations were not kept: what of them was freed is not known");
}

static int add_bytes(struct snk_grid *g, int64_t bytes)
{
	char cell[32];

	signed_bytes(bytes, cell);
	return snk_grid_add(g, cell, strlen(cell));
}

static int add_count(struct snk_grid *g, uint64_t n)
{
	char cell[CELL_BYTES];

	snprintf(cell, sizeof(cell), "%" PRIu64, n);
	return snk_grid_add(g, cell, strlen(cell));
}

static int add_row(struct snk *s, struct snk_grid *g, const struct snk_holder *r)
{
	char dev[48];
	int err = snk_grid_add(g, r->name, r->len);

	mdl_device_name(s->in->session, r->h.device, dev);
	err = err ? err : snk_grid_add(g, dev, strlen(dev));
	err = err ? err : snk_grid_add(g, r->layer, r->layer_len);
	err = err ? err : snk_grid_add(g, r->scope, r->scope_len);
	err = err ? err : snk_grid_add(g, r->label, r->label_len);
	err = err ? err : add_count(g, r->h.allocs);
	err = err ? err : add_bytes(g, snk_start_bytes(&r->h));
	err = err ? err : add_bytes(g, (int64_t)r->h.alloc_bytes);
	err = err ? err : add_bytes(g, (int64_t)r->h.free_bytes);
	err = err ? err : add_bytes(g, r->h.peak_bytes);
	err = err ? err : add_bytes(g, r->h.live_bytes);
	return err ? err : add_count(g, r->h.live_blocks);
}

/* at start + allocated - freed = not freed: where something was there at the start (--reset), all four are shown. */
int snk_put_held(struct snk *s, const struct snk_held *t, const char *prefix)
{
	const bool carried = start_bytes(t, NULL);
	struct snk_grid g = {
		.cols = {{"made by", .left = true},
			 {"device", .left = true, .hidden = t->ndevices < 2},
			 {"layer", .left = true, .hidden = !t->layers},
			 {"scope", .left = true, .hidden = !t->scopes},
			 {"array", .left = true, .hidden = !t->scopes, .name_min = 20},
			 {"allocs"},
			 {"at start", .hidden = !carried},
			 {"allocated"},
			 {"freed", .name_min = carried ? 0 : 16},
			 {"at peak", .name_min = carried ? 16 : 0},
			 {"not freed"},
			 {"blocks", .name_min = 12}},
		.ncols = 12,
		.prefix = prefix,
	};
	unsigned width = (s->opts->width ? s->opts->width : SNK_WIDTH) - (unsigned)strlen(prefix);
	int err = 0;
	size_t i;

	out_printf(s->out, "%sMemory held", prefix);
	out_puts(s->out, !t->ndevices ? ": nothing seen\n"
			 : carried    ? ", beyond what was there when the session began\n"
				      : ", beyond what was there when the window began\n");
	if (carried)
		out_printf(s->out, "%sat the start of this window + allocated - freed in it = not freed\n", prefix);
	for (i = 0; i < t->ndevices; i++)
		put_device(s, t, &t->devices[i], prefix);
	for (i = 0; !err && i < t->nrows; i++)
		err = add_row(s, &g, &t->rows[i]);
	if (!err && t->nrows)
		snk_grid_print(&g, width, s->out);
	if (t->nrows < t->nrows_all)
		out_printf(s->out, "%s%zu rows more are not shown\n", prefix, t->nrows_all - t->nrows);
	snk_grid_fini(&g);
	return err ? err_set(s->err, ERR_RUNTIME, err, "out of memory") : 0;
}
