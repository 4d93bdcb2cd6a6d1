// SPDX-License-Identifier: Apache-2.0
/* The program's own counters and moments in a timeline. Its tasks, frames and events are spans like others there. */
#include <string.h>

#include "sink/trace.h"

int snk_text_domain(struct snk_trace *t, uint64_t id, struct buf *b)
{
	size_t len;
	const char *text = snk_domain(t->s.in->model, id, &len);

	return snk_text_escape(b, text, len);
}

/* Tracks of one name are one to a viewer, so counters bear their domain. */
static int text_counter(struct snk_trace *t, uint64_t id, struct buf *b)
{
	int err = snk_text_domain(t, id, b);

	err = err ? err : buf_put(b, ": ", 2);
	return err ? err : snk_text_name(t, id, b);
}

void snk_trace_value(struct snk_trace *t, const struct mxbpf_value *v)
{
	struct snk_text name = snk_trace_text(t, v->name_id, text_counter);
	char *start = out_reserve(t->s.out, SNK_EVENT_BYTES + name.len), *p;

	p = put(start, ",\n{\"ph\":\"C\",");
	p = snk_put_where(t, p, v->h.tgid, v->h.tgid, v->h.ts_ns);
	p = put(p, ",\"cat\":\"counter\",\"name\":\"");
	p = put_bytes(p, name.data, name.len);
	p = put(p, "\",\"args\":{\"value\":");
	p = snk_put_u64(p, v->value);
	p = put(p, "}}");
	out_filled(t->s.out, (size_t)(p - start));
}

/* How far its line reaches in a viewer. What only its own task or marker is to have is its thread's. */
static const char *const lines[MXBPF_SCOPES] = {
	[MXBPF_SCOPE_NONE] = "t",   [MXBPF_SCOPE_GLOBAL] = "g", [MXBPF_SCOPE_PROCESS] = "p",
	[MXBPF_SCOPE_THREAD] = "t", [MXBPF_SCOPE_TASK] = "t",	[MXBPF_SCOPE_MARKER] = "t",
};

void snk_trace_instant(struct snk_trace *t, const struct mxbpf_instant *i)
{
	const bool marker = i->what == MXBPF_INSTANT_MARKER;
	size_t len;
	const char *text = snk_instant_name(t->s.in->model, i, &len);
	char *start, *p;

	out_puts(t->s.out, ",\n{\"name\":");
	snk_put_json_exact(t->s.out, text, len);
	start = out_reserve(t->s.out, SNK_EVENT_BYTES);
	p = put(start, ",\"ph\":\"i\",");
	p = snk_put_where(t, p, i->h.tgid, i->tid, i->h.ts_ns);
	p = put(p, ",\"s\":\"");
	p = put(p, lines[i->scope]);
	p = put(p, marker ? "\",\"cat\":\"marker\",\"args\":{\"scope\":\""
			  : "\",\"cat\":\"profiler\",\"args\":{\"scope\":\"");
	p = put(p, snk_scopes[i->scope]);
	p = put(p, "\"");
	out_filled(t->s.out, (size_t)(p - start));
	if (marker) {
		text = snk_domain(t->s.in->model, i->name_id, &len);
		out_puts(t->s.out, ",\"domain\":");
		snk_put_json_exact(t->s.out, text, len);
	}
	out_puts(t->s.out, "}}");
}
