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
	struct view_text name = view_trace_text(t, v->name_id, text_counter);
	char *start = out_reserve(t->s.out, VIEW_EVENT_BYTES + name.len), *p;

	p = put(start, ",\n{\"ph\":\"C\",");
	p = view_put_where(t, p, v->h.tgid, v->h.tgid, v->h.ts_ns);
	p = put(p, ",\"cat\":\"counter\",\"name\":\"");
	p = put_bytes(p, name.data, name.len);
	p = put(p, "\",\"args\":{\"value\":");
	p = view_put_u64(p, v->value);
	p = put(p, "}}");
	out_filled(t->s.out, (size_t)(p - start));
}

/* How far a viewer draws the line of an instant. The scopes of a task and a marker are drawn on their thread. */
static const char *const lines[MXBPF_SCOPES] = {
	[MXBPF_SCOPE_NONE] = "t",   [MXBPF_SCOPE_GLOBAL] = "g", [MXBPF_SCOPE_PROCESS] = "p",
	[MXBPF_SCOPE_THREAD] = "t", [MXBPF_SCOPE_TASK] = "t",	[MXBPF_SCOPE_MARKER] = "t",
};

static void write_instant(struct view_trace *t, const struct mxbpf_instant *i)
{
	const struct mxbpf_span at = {.h = i->h, .tid = i->tid, .flags = MXBPF_SPAN_USER};
	const bool marker = i->what == MXBPF_INSTANT_MARKER;
	size_t len;
	const char *text = marks_instant_name(t->s.in->model, i, &len);
	char *start, *p;

	out_puts(t->s.out, ",\n{\"name\":");
	view_put_json_exact(t->s.out, text, len);
	start = out_reserve(t->s.out, VIEW_EVENT_BYTES);
	p = put(start, ",\"ph\":\"i\",");
	p = view_put_where(t, p, i->h.tgid, i->tid, i->h.ts_ns);
	p = put(p, ",\"s\":\"");
	p = put(p, lines[i->scope]);
	p = put(p, marker ? "\",\"cat\":\"marker\",\"args\":{\"scope\":\""
			  : "\",\"cat\":\"profiler\",\"args\":{\"scope\":\"");
	p = put(p, marks_scopes[i->scope]);
	p = put(p, "\"");
	out_filled(t->s.out, (size_t)(p - start));
	if (marker) {
		text = marks_domain(t->s.in->model, i->name_id, &len);
		out_puts(t->s.out, ",\"domain\":");
		view_put_json_exact(t->s.out, text, len);
		view_trace_args(t, VIEW_ARGS_INSTANT, &at);
	}
	out_puts(t->s.out, "}}");
}

static void record(struct view_trace *t, void *state, const struct mxbpf_rec *r)
{
	if (r->kind == MXBPF_VALUE)
		write_value(t, (const struct mxbpf_value *)r);
	else
		write_instant(t, (const struct mxbpf_instant *)r);
}

static void args(struct view_trace *t, void *state, const struct mxbpf_span *s)
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
	.kinds = {MXBPF_VALUE, MXBPF_INSTANT}, .record = record, .args = {[VIEW_ARGS_FIRST] = args}};
