// SPDX-License-Identifier: Apache-2.0
/* The program's own counters and moments in a timeline. Its tasks, frames and events are spans like others there. */
#include "feature/marks/marks.h"
#include <string.h>

#include "view/timeline/trace.h"

int view_text_domain(struct view_trace *t, uint64_t id, struct buf *b)
{
	size_t len;
	const char *text = view_domain(t->s.in->model, id, &len);

	return view_text_escape(b, text, len);
}

/* Tracks of one name are one to a viewer, so counters bear their domain. */
static int text_counter(struct view_trace *t, uint64_t id, struct buf *b)
{
	int err = view_text_domain(t, id, b);

	err = err ? err : buf_put(b, ": ", 2);
	return err ? err : view_text_name(t, id, b);
}

void view_trace_value(struct view_trace *t, const struct mxbpf_value *v)
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

/* How far its line reaches in a viewer. What only its own task or marker is to have is its thread's. */
static const char *const lines[MXBPF_SCOPES] = {
	[MXBPF_SCOPE_NONE] = "t",   [MXBPF_SCOPE_GLOBAL] = "g", [MXBPF_SCOPE_PROCESS] = "p",
	[MXBPF_SCOPE_THREAD] = "t", [MXBPF_SCOPE_TASK] = "t",	[MXBPF_SCOPE_MARKER] = "t",
};

void view_trace_instant(struct view_trace *t, const struct mxbpf_instant *i)
{
	const bool marker = i->what == MXBPF_INSTANT_MARKER;
	size_t len;
	const char *text = view_instant_name(t->s.in->model, i, &len);
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
	p = put(p, view_scopes[i->scope]);
	p = put(p, "\"");
	out_filled(t->s.out, (size_t)(p - start));
	if (marker) {
		text = view_domain(t->s.in->model, i->name_id, &len);
		out_puts(t->s.out, ",\"domain\":");
		view_put_json_exact(t->s.out, text, len);
	}
	out_puts(t->s.out, "}}");
}
