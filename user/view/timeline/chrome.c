// SPDX-License-Identifier: Apache-2.0
/*
 * The timeline for Perfetto, HTA and TensorBoard: Chrome's JSON, as an object. The tests say what viewers require
 * (tests/unit/test_chrome.c, tests/perfetto). One requirement shapes this file: both ends of an arrow have the start
 * times of their spans.
 */
#include "view/compat/kineto_text.h"
#include "view/timeline/trace.h"

/* ---- events */

static void write_arrow(struct view_trace *t, char letter, uint64_t id, const struct mxbpf_span *s, uint32_t tid)
{
	const struct view_event e = {.letter = letter,
				     .pid = s->h.tgid,
				     .tid = tid,
				     .ts_ns = s->h.ts_ns,
				     .category = "flow",
				     .name = view_text_of("starts"),
				     .id = id};

	view_event(t, &e);
}

static char *put_args(char *p, const struct mxbpf_span *s, struct view_text device)
{
	p = put(p, "\"self_ns\":");
	p = view_put_u64(p, s->self_ns);
	if (s->device) {
		p = put(p, ",\"device\":\"");
		p = put_bytes(p, device.data, device.len);
		*p++ = '"';
	}
	if (s->link) {
		p = put(p, ",\"link\":\"0x");
		p = view_put_hex(p, s->link);
		*p++ = '"';
	}
	if (s->flags & MXBPF_SPAN_PART)
		p = put(p, ",\"in_segment\":true");
	return p;
}

/* Texts of any length: the layer and the arguments. */
static void write_details(struct view_trace *t, const struct mxbpf_span *s)
{
	struct view_text text = {"", 0};

	if (s->layer_id)
		text = view_trace_text(t, s->layer_id, view_text_layer);
	out_write(t->s.out, text.data, text.len);
	text.len = 0;
	if (s->args_id)
		text = view_trace_text(t, s->args_id, view_text_args);
	out_write(t->s.out, text.data, text.len);
}

static void write_span(struct view_trace *t, const struct mxbpf_span *s, const struct view_place *place)
{
	struct view_text name, device = {"", 0};
	char *start = out_reserve(t->s.out, VIEW_EVENT_BYTES), *p;
	size_t i;

	p = put(start, ",\n{\"ph\":\"X\",");
	p = view_put_where(t, p, s->h.tgid, place->tid, s->h.ts_ns);
	p = put(p, ",\"dur\":");
	p = view_put_us(p, s->dur_ns);
	p = put(p, ",\"cat\":\"");
	p = put(p, view_trace_category(t, s));
	p = put(p, "\",\"name\":\"");
	out_filled(t->s.out, (size_t)(p - start));
	name = view_trace_text(t, s->name_id, view_text_name);
	out_write(t->s.out, name.data, name.len);
	out_puts(t->s.out, "\",\"args\":{");
	view_trace_args(t, VIEW_ARGS_FIRST, s);

	/* Made after the name has been written, because a text is borrowed until the next one. */
	if (s->device)
		device = view_trace_text(t, s->device, view_text_device);
	start = out_reserve(t->s.out, VIEW_EVENT_BYTES + device.len);
	p = put_args(start, s, device);
	out_filled(t->s.out, (size_t)(p - start));
	view_trace_args(t, VIEW_ARGS_NUMBERS, s);
	write_details(t, s);
	view_trace_args(t, VIEW_ARGS_CALL, s);
	start = out_reserve(t->s.out, VIEW_EVENT_BYTES);
	p = view_put_account(view_put_threads(start, s, place->tid), s);
	out_filled(t->s.out, (size_t)(p - start));
	view_trace_args(t, VIEW_ARGS_LAST, s);
	out_puts(t->s.out, "}}");

	/* Arrows stand behind their span, so that a viewer has opened it when it reads an arrow with the same time. */
	if (place->arrow_in)
		write_arrow(t, 'f', place->arrow_in, s, place->tid);
	for (i = 0; i < place->narrows_out; i++)
		if (place->arrows_out[i].arrow)
			write_arrow(t, 's', place->arrows_out[i].arrow, s, place->tid);
}

/* ---- before the events */

static void write_head(struct view_trace *t)
{
	out_puts(t->s.out, "{\"displayTimeUnit\":\"ns\",\"schemaVersion\":1");
	view_trace_rank(t);
	if (t->ndevices) {
		out_puts(t->s.out, ",\n");
		view_trace_devices(t);
	}
	out_printf(t->s.out, ",\"baseTimeNanoseconds\":%llu,\n", (unsigned long long)view_trace_base_unix_ns(t));
	view_trace_about(t);
	out_puts(t->s.out, ",\n\"traceEvents\":[");
}

static void write_process(struct view_trace *t, uint32_t tgid)
{
	char name[VIEW_PROCESS_BYTES];
	const struct view_track k = {.pid = tgid, .name = view_trace_process_name(t, tgid, name)};

	view_track(t, &k);
}

static void write_thread(struct view_trace *t, const struct view_plan_track *k, size_t place)
{
	char lane[32];

	view_trace_name_track(t, k->tgid, k->tid, view_trace_track_name(t, k, lane), (int64_t)place);
}

static void write_alloc(struct view_trace *t, const struct view_plan_alloc *a, uint64_t live_bytes)
{
	view_trace_memory(t, a, "bytes", live_bytes);
}

/* ---- the output */

const struct view_form view_chrome_form = {
	.head = write_head, .process = write_process, .thread = write_thread, .alloc = write_alloc, .span = write_span};

static int chrome_begin(struct view *s)
{
	return view_trace_begin(s, &view_chrome_form);
}

static int chrome_surveyed(struct view *s)
{
	struct view_trace *t = (struct view_trace *)s;
	int ret = view_trace_plan(t);

	if (ret)
		return ret;
	t->form->head(t);
	view_trace_tracks(t);
	return view_trace_before(t);
}

static int chrome_end(struct view *s)
{
	int ret = view_trace_late((struct view_trace *)s);

	view_trace_after((struct view_trace *)s);
	out_puts(s->out, "\n]}\n");
	return ret;
}

static const char *const suffixes[] = {".json", ".json.gz", NULL};
/* The second one begins files in the form of Kineto. */
static const char *const magic[] = {"{\"displayTimeUnit\":\"ns\",\"schemaVersion\":1,",
				    "{\"schemaVersion\":1,\"deviceProperties\":[", NULL};

const struct view_ops view_chrome = {
	.name = "chrome",
	.help = "timeline in Chrome's JSON, for Perfetto",
	.suffixes = suffixes,
	.magic = magic,
	.needs_records = true,
	.by_process = true,
	.state_bytes = sizeof(struct view_trace),
	.begin = chrome_begin,
	.survey = view_trace_survey,
	.surveyed = chrome_surveyed,
	.record = view_trace_record,
	.end = chrome_end,
	.fini = view_trace_fini,
};
