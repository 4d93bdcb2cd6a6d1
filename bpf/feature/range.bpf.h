/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Starts of ranges: user annotations with an end. The span of a range is sent when it ends, this record when it starts.
 */
#ifndef RANGE_BPF_H
#define RANGE_BPF_H

#include "frame.bpf.h"
#include "mxbpf_range.h"
#include "read/name.bpf.h"

/* The part of NVTX's structure of an event (nvtxEventAttributes_t) that is read. */
struct range_event {
	__u32 category;
	__s32 color_type; /* 0: it has no color */
	__u32 color;
	__s32 payload_type;
	__u64 payload;
};
#define RANGE_EVENT_CATEGORY 4 /* offset of `category`, which the next three members follow */
#define RANGE_EVENT_PAYLOAD  24

static __always_inline long range_event_read(struct range_event *e, __u64 at)
{
	long err = bpf_probe_read_user(e, 16, (void *)(at + RANGE_EVENT_CATEGORY));

	return err ? err : bpf_probe_read_user(&e->payload, sizeof(e->payload), (void *)(at + RANGE_EVENT_PAYLOAD));
}

static __always_inline void range_from_event(struct mxbpf_range_data *to, const struct range_event *e)
{
	to->category = e->category;
	to->color = e->color_type ? e->color : 0;
	if (e->payload_type <= MXBPF_RANGE_NONE || e->payload_type > MXBPF_RANGE_FLOAT)
		return;
	to->type = e->payload_type;
	to->nvalues = 1;
	to->values[0] = e->payload_type == MXBPF_RANGE_I32 ? (__u64)(__s64)(__s32)e->payload
			: e->payload_type == MXBPF_RANGE_U32 || e->payload_type == MXBPF_RANGE_FLOAT ? (__u32)e->payload
												     : e->payload;
}

static __always_inline __u64 range_text(struct mxbpf_thread *t, __u64 at)
{
	return at ? name_intern(t, at, 0) : 0;
}

/* Sends the range of t->ranged. at: address of its data; from: enum mxbpf_range_from, the structure there. */
__noinline int range_emit(struct mxbpf_thread *t, __u64 at, __u32 from)
{
	struct range_event event = {};
	struct {
		__u64 domain, category, schema;
	} texts = {};
	struct mxbpf_range *r;
	long err = 0;

	t = frames_of(t);
	if (!t)
		return 0;
	if (!at)
		from = MXBPF_RANGE_FROM_NOTHING;
	if (from == MXBPF_RANGE_FROM_INFO)
		err = bpf_probe_read_user(&texts, sizeof(texts), (void *)at);
	else if (from == MXBPF_RANGE_FROM_EVENT)
		err = range_event_read(&event, at);
	t->counts[MXBPF_COUNT_UNREADABLE] += !!err;
	texts.domain = range_text(t, texts.domain);
	texts.category = range_text(t, texts.category);
	texts.schema = range_text(t, texts.schema);
	r = ring_reserve(t, sizeof(*r));
	if (!r)
		return 0;
	__builtin_memset(r, 0, sizeof(*r));
	r->h.kind = MXBPF_RANGE;
	r->h.size = sizeof(*r);
	r->h.tgid = t->tgid;
	r->h.ts_ns = t->ranged.ts_ns;
	r->name_id = t->ranged.name_id;
	r->domain_id = texts.domain;
	r->category_id = texts.category;
	r->schema_id = texts.schema;
	r->tid = t->ranged.tid;
	r->cls = t->ranged.cls;
	r->depth = t->ranged.depth;
	if (from == MXBPF_RANGE_FROM_INFO && !err) {
		bpf_probe_read_user(&r->data, sizeof(r->data),
				    (void *)(at + __builtin_offsetof(struct mxbpf_range_info, data)));
		if (r->data.nvalues > MXBPF_RANGE_VALUES) /* the target can write anything there */
			r->data.nvalues = 0;
		if (r->data.type >= MXBPF_RANGE_TYPES)
			r->data.type = MXBPF_RANGE_NONE;
	} else if (from == MXBPF_RANGE_FROM_EVENT && !err) {
		range_from_event(&r->data, &event);
	} else if (from == MXBPF_RANGE_FROM_NAME && t->seq_in_name) {
		r->data.values[0] = t->seq_in_name - 1;
		r->data.nvalues = 1;
		r->data.type = MXBPF_RANGE_SEQ;
	}
	ring_submit(t, r);
	return 0;
}

/*
 * Sends the start of the range in frame f, at depth d. The depth counts the frames that were removed below it, too, so
 * that it is larger than that of each range around it.
 */
static __always_inline void range_send(struct mxbpf_thread *t, const struct mxbpf_frame *f, __u32 d, __u64 at,
				       __u32 from)
{
	t->ranged.ts_ns = f->start_ns;
	t->ranged.name_id = f->name_id;
	t->ranged.tid = f->tid;
	t->ranged.cls = f->cls;
	d += t->removed;
	t->ranged.depth = f->end == MXBPF_END_KEY || d >= MXBPF_RANGE_MARK ? MXBPF_RANGE_APART : d;
	range_emit(t, at, from);
}

/* Sends a second record of a range that ends, if its end says more. */
static __always_inline void range_more(struct mxbpf_thread *t, const struct mxbpf_frame *f, __u32 d, __u64 at,
				       __u32 from)
{
	if (at)
		range_send(t, f, d, at, from);
}

#endif
