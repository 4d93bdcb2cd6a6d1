// SPDX-License-Identifier: Apache-2.0
/*
 * The trace that EventList.export_chrome_trace() of torch.autograd.profiler wrote from 2018 on: an array of spans, all
 * in one process "CPU functions", with the index of the thread as its id. It has no arrows and no memory; form chrome
 * has them. Two things differ from the original. Spans stand in order of their ends, which makes no difference to
 * viewers. And the target, the window, the loss and the counters of the machine stand before the spans.
 */
#include "view/timeline/trace.h"

#define PROCESS "\"pid\":\"CPU functions\",\"tid\":"

struct classic {
	struct view_trace t;
	struct hash index; /* (tgid, tid) -> index of the thread or lane, counted from 1 */
};

static void write_span(struct view_trace *t, const struct mxbpf_span *s, const struct view_place *place)
{
	const uint64_t *index = hash_get(&((struct classic *)t)->index, s->h.tgid, place->tid);
	struct view_text name = view_trace_text(t, s->name_id, view_text_name);
	char *start, *p;

	out_puts(t->s.out, ",\n{\"name\":\"");
	out_write(t->s.out, name.data, name.len);
	start = out_reserve(t->s.out, VIEW_EVENT_BYTES);
	p = put(start, "\",\"ph\":\"X\",\"ts\":");
	p = view_put_us(p, s->h.ts_ns - t->base_ns);
	p = put(p, ",\"dur\":");
	p = view_put_us(p, s->dur_ns);
	p = put(p, "," PROCESS);
	p = view_put_u64(p, index ? *index - 1 : 0);
	p = put(p, ",\"args\":{}}");
	out_filled(t->s.out, (size_t)(p - start));
}

static const struct view_form form = {.span = write_span, .process_json = "\"CPU functions\""};

static int classic_begin(struct view *s)
{
	return view_trace_begin(s, &form);
}

static int classic_surveyed(struct view *s)
{
	struct classic *c = (struct classic *)s;
	const struct buf *tracks = &c->t.plan.tracks;
	int ret = view_trace_plan(&c->t);
	uint64_t *index;
	size_t i;

	for (i = 0; i < buf_count(tracks, struct view_plan_track) && !ret; i++) {
		const struct view_plan_track *k = buf_at(tracks, struct view_plan_track, i);

		index = hash_put(&c->index, k->tgid, k->tid);
		if (index)
			*index = i + 1;
		else
			ret = view_trace_no_memory(&c->t);
	}
	if (ret)
		return ret;
	out_puts(s->out, "[\n{\"name\":\"process_name\",\"ph\":\"M\",\"ts\":0.000," PROCESS
			 "0,\"args\":{\"name\":\"CPU functions\",");
	view_trace_about(&c->t);
	out_puts(s->out, "}}");
	c->t.begun = true;
	return view_trace_before(&c->t);
}

static int classic_end(struct view *s)
{
	int ret = view_trace_late((struct view_trace *)s);

	out_puts(s->out, "\n]\n");
	return ret;
}

static void classic_fini(struct view *s)
{
	hash_fini(&((struct classic *)s)->index);
	view_trace_fini(s);
}

static const char *const magic[] = {"{\"name\":\"process_name\",\"ph\":\"M\",\"ts\":0.000," PROCESS
				    "0,\"args\":{\"name\":\"CPU functions\",",
				    NULL};

const struct view_ops view_chrome_classic = {
	.name = "chrome-classic",
	.help = "what torch.autograd.profiler's export_chrome_trace() wrote in 2018: spans alone",
	.magic = magic,
	.needs_records = true,
	.by_process = true,
	.state_bytes = sizeof(struct classic),
	.begin = classic_begin,
	.survey = view_trace_survey,
	.surveyed = classic_surveyed,
	.record = view_trace_record,
	.end = classic_end,
	.fini = classic_fini,
};
