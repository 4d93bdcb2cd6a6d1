// SPDX-License-Identifier: Apache-2.0
#include "feature/raised/raised.h"
#include "sink/trace.h"

/* A moment on the thread, where the exception was seen to have left the call. */
static void span(struct snk_trace *t, const struct mxbpf_span *s, uint32_t tid)
{
	struct snk_text name;
	char *start, *p;

	if (!raised_left(s))
		return;
	name = snk_trace_text(t, s->name_id, snk_text_name);
	start = out_reserve(t->s.out, SNK_EVENT_BYTES + name.len);
	p = put(start, ",\n{\"ph\":\"i\",");
	p = snk_put_where(t, p, s->h.tgid, tid, s->h.ts_ns + s->dur_ns);
	p = put(p, ",\"s\":\"t\",\"cat\":\"exception\",\"name\":\"exception left ");
	p = put_bytes(p, name.data, name.len);
	p = put(p, "\"}");
	out_filled(t->s.out, (size_t)(p - start));
}

const struct snk_trace_feature raised_trace = {.span = span};
