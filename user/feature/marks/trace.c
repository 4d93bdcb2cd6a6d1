// SPDX-License-Identifier: Apache-2.0
/* User annotations in a timeline: counters, instants, and the domain of each span. The spans themselves are like all
 * others. */
#include "feature/marks/marks.h"

#include <string.h>

#include "feature/marks/sheet.h"
#include "view/timeline/trace.h"

static int text_domain(struct view_trace *t, uint64_t id, struct buf *b)
{
	size_t len;
	const char *text = marks_domain(t->s.in->model, id, &len);

	return view_text_escape(b, text, len);
}

/* A viewer merges tracks with the same name, so the name of a counter begins with its domain. */
static int text_counter(struct view_trace *t, uint64_t id, struct buf *b)
{
	int err = text_domain(t, id, b);

	err = err ? err : buf_put(b, ": ", 2);
	return err ? err : view_text_name(t, id, b);
}

static void write_value(struct view_trace *t, const struct mxbpf_value *v)
{
	char value[24];
	const struct view_counter c = {.pid = v->h.tgid,
				       .tid = v->h.tgid,
				       .ts_ns = v->h.ts_ns,
				       .category = "counter",
				       .name = view_trace_text(t, v->name_id, text_counter),
				       .unit = "value",
				       .value = value};

	*view_put_u64(value, v->value) = '\0';
	view_counter(t, &c);
}

/* How far a viewer draws the line of an instant. The scopes of a task and a marker are drawn on their thread. */
static const char lines[MXBPF_SCOPES] = {
	[MXBPF_SCOPE_NONE] = 't',   [MXBPF_SCOPE_GLOBAL] = 'g', [MXBPF_SCOPE_PROCESS] = 'p',
	[MXBPF_SCOPE_THREAD] = 't', [MXBPF_SCOPE_TASK] = 't',	[MXBPF_SCOPE_MARKER] = 't',
};

static void write_instant(struct view_trace *t, const struct mxbpf_instant *i)
{
	const struct mxbpf_span at = {.h = i->h, .tid = i->tid, .flags = MXBPF_SPAN_USER};
	const bool marker = i->what == MXBPF_INSTANT_MARKER;
	struct view_event e = {.letter = 'i',
			       .pid = i->h.tgid,
			       .tid = i->tid,
			       .ts_ns = i->h.ts_ns,
			       .category = marker ? "marker" : "profiler",
			       .scope = lines[i->scope]};
	struct buf name = {0};
	size_t len;
	const char *text = marks_instant_name(t->s.in->model, i, &len);

	if (view_text_escape(&name, text, len)) {
		view_trace_no_memory(t);
		return;
	}
	e.name = (struct view_text){name.data, name.len};
	view_event_begin(t, &e);
	out_printf(t->s.out, "\"scope\":\"%s\"", marks_scopes[i->scope]);
	if (marker) {
		text = marks_domain(t->s.in->model, i->name_id, &len);
		out_puts(t->s.out, ",\"domain\":");
		view_put_json_exact(t->s.out, text, len);
		view_trace_args(t, VIEW_ARGS_INSTANT, &at);
	}
	view_event_end(t, &e);
	buf_fini(&name);
}

static void marks_record(struct view_trace *t, void *state, const struct mxbpf_rec *r)
{
	if (r->kind == MXBPF_VALUE)
		write_value(t, (const struct mxbpf_value *)r);
	else
		write_instant(t, (const struct mxbpf_instant *)r);
}

static void marks_args(struct view_trace *t, void *state, const struct mxbpf_span *s)
{
	struct view_text domain;

	if (!(s->flags & MXBPF_SPAN_USER))
		return;
	domain = view_trace_text(t, s->name_id, text_domain);
	if (!domain.len)
		return;
	out_puts(t->s.out, "\"domain\":\"");
	out_write(t->s.out, domain.data, domain.len);
	out_puts(t->s.out, "\",");
}

const struct view_trace_feature marks_trace = {
	.kinds = {MXBPF_VALUE, MXBPF_INSTANT}, .record = marks_record, .args = {[VIEW_ARGS_FIRST] = marks_args}};
