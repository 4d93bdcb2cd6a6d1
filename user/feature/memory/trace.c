// SPDX-License-Identifier: Apache-2.0
/*
 * Live memory of each device, as a counter. With --memory there is also an instant at its peak, with the largest owners
 * then. Such instants have a track of their own in each process.
 */
#include "feature/memory/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "feature/memory/sheet.h"
#include "view/timeline/trace.h"

#define OWNERS_SHOWN 8

static void put_owners(struct view_trace *t, const struct memory_owners *h, const struct mxbpf_mem_time *d)
{
	const struct memory_owners_row *r;
	unsigned n = 0;

	for (r = h->list.rows; r < (const struct memory_owners_row *)h->list.rows + h->list.all && n < OWNERS_SHOWN;
	     r++) {
		if (r->h.device != d->device || r->h.h.tgid != d->h.tgid || r->h.peak_bytes <= 0)
			continue;
		out_puts(t->s.out, n++ ? "," : "");
		out_puts(t->s.out, "{\"name\":");
		view_put_json_exact(t->s.out, r->name.data, r->name.len);
		if (r->layer.len) {
			out_puts(t->s.out, ",\"layer\":");
			view_put_json_exact(t->s.out, r->layer.data, r->layer.len);
		}
		if (r->line.len) {
			out_puts(t->s.out, ",\"line\":");
			view_put_json_exact(t->s.out, r->line.data, r->line.len);
		}
		out_printf(t->s.out, ",\"bytes\":%" PRId64 "}", (int64_t)r->h.peak_bytes);
	}
}

static int text_peak(struct view_trace *t, uint64_t device, struct buf *b)
{
	return buf_printf(b, "memory peak ") ? -ENOMEM : view_text_device(t, device, b);
}

static void put_peak(struct view_trace *t, const struct memory_owners *h, const struct mxbpf_mem_time *d, uint32_t tid)
{
	const struct view_event e = {.letter = 'i',
				     .pid = d->h.tgid,
				     .tid = tid,
				     .ts_ns = d->peak_ns,
				     .name = view_trace_text(t, d->device, text_peak),
				     .scope = t->form->memory_in_process ? 'p' : 't'};

	view_event_begin(t, &e);
	out_printf(t->s.out, "\"bytes\":%" PRId64 ",\"held by\":[", (int64_t)d->peak_bytes);
	put_owners(t, h, d);
	out_puts(t->s.out, "]");
	view_event_end(t, &e);
}

/* A block that was allocated before the window can be freed in it, so the counter does not go below 0. */
static int put_allocs(struct view_trace *t)
{
	const struct buf *b = &t->plan.allocs;
	struct hash live = {0};
	size_t i, n = buf_count(b, struct view_plan_alloc);

	for (i = 0; i < n; i++) {
		const struct view_plan_alloc *a = buf_at(b, struct view_plan_alloc, i);
		uint64_t *bytes = hash_put(&live, a->tgid, a->device), freed = 0 - (uint64_t)a->bytes;

		if (!bytes)
			break;
		if (a->bytes >= 0)
			*bytes += (uint64_t)a->bytes;
		else
			*bytes = *bytes > freed ? *bytes - freed : 0;
		t->form->alloc(t, a, *bytes);
		if (a->counted) { /* what the allocator says, also of memory from before the window */
			view_trace_memory(t, a, "allocated", a->total_bytes);
			view_trace_memory(t, a, "reserved", a->pool_bytes);
		}
	}
	hash_fini(&live);
	return i < n ? -ENOMEM : 0;
}

/*
 * Sets the track of the process, which is named when it is first needed. *ntracks: those named so far. Returns 0 or
 * -ENOMEM.
 */
static int track_of(struct view_trace *t, struct hash *tracks, uint32_t tgid, uint32_t *ntracks, uint32_t *tid)
{
	uint64_t *at;

	*tid = tgid; /* 0 in a recording that says so */
	if (t->form->memory_in_process)
		return 0;
	at = hash_put(tracks, tgid, 0);
	if (!at)
		return -ENOMEM;
	if (!*at) {
		*at = VIEW_MEMORY_TID + (*ntracks)++;
		view_trace_name_track(t, tgid, (uint32_t)*at, "memory events", UINT32_MAX);
	}
	*tid = (uint32_t)*at;
	return 0;
}

static int put_peaks(struct view_trace *t)
{
	struct memory_owners h = {0};
	struct hash tracks = {0};
	uint32_t ntracks = 0, tid;
	size_t i;
	int err = memory_owners_make(&t->s, &h);

	for (i = 0; !err && i < h.ndevices; i++) {
		if (!h.devices[i].peak_ns)
			continue;
		err = track_of(t, &tracks, h.devices[i].h.tgid, &ntracks, &tid);
		if (!err)
			put_peak(t, &h, &h.devices[i], tid);
	}
	hash_fini(&tracks);
	free(h.list.rows);
	memory_owners_fini(&h);
	return err;
}

static int before(struct view_trace *t, void *state)
{
	int err = t->form->alloc ? put_allocs(t) : 0;

	return !err && t->form->alloc && !t->error && t->s.in->session->held ? put_peaks(t) : err;
}

const struct view_trace_feature memory_trace = {.before = before};
