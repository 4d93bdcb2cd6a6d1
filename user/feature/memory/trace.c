// SPDX-License-Identifier: Apache-2.0
/* --memory in timelines: at each device's peak an instant, with what held the most of it then. */
#include "feature/memory/memory.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "view/timeline/trace.h"

#define OWNERS_SHOWN 8

static void put_owners(struct view_trace *t, const struct view_mem_owners *h, const struct mxbpf_mem_time *d)
{
	const struct view_mem_owner *r;
	unsigned n = 0;

	for (r = h->list.rows; r < (const struct view_mem_owner *)h->list.rows + h->list.all && n < OWNERS_SHOWN; r++) {
		if (r->h.device != d->device || r->h.h.tgid != d->h.tgid || r->h.peak_bytes <= 0)
			continue;
		out_puts(t->s.out, n++ ? "," : "");
		out_puts(t->s.out, "{\"name\":");
		view_put_json_exact(t->s.out, r->name.data, r->name.len);
		if (r->layer.len) {
			out_puts(t->s.out, ",\"layer\":");
			view_put_json_exact(t->s.out, r->layer.data, r->layer.len);
		}
		out_printf(t->s.out, ",\"bytes\":%" PRId64 "}", (int64_t)r->h.peak_bytes);
	}
}

static void put_peak(struct view_trace *t, const struct view_mem_owners *h, const struct mxbpf_mem_time *d)
{
	struct view_text device = view_trace_text(t, d->device, view_text_device);
	char *start = out_reserve(t->s.out, VIEW_EVENT_BYTES + device.len), *p = start;

	p = put(p, ",\n{\"ph\":\"i\",\"s\":\"p\",");
	p = view_put_where(t, p, d->h.tgid, d->h.tgid, d->peak_ns);
	p = put(p, ",\"name\":\"memory peak ");
	p = put_bytes(p, device.data, device.len);
	p = put(p, "\",\"args\":{\"bytes\":");
	p = view_put_i64(p, d->peak_bytes);
	p = put(p, ",\"held by\":[");
	out_filled(t->s.out, (size_t)(p - start));
	put_owners(t, h, d);
	out_puts(t->s.out, "]}}");
}

int view_trace_peaks(struct view_trace *t)
{
	struct view_mem_owners h = {0};
	size_t i;
	int err = view_mem_owners_make(&t->s, &h);

	for (i = 0; !err && i < h.ndevices; i++)
		if (h.devices[i].peak_ns)
			put_peak(t, &h, &h.devices[i]);
	free(h.list.rows);
	view_mem_owners_fini(&h);
	return err ? view_trace_no_memory(t) : 0;
}
