// SPDX-License-Identifier: Apache-2.0
#include "feature/raised/raised.h"
#include "view/timeline/trace.h"

/* An instant at the end of the call. That is when mxbpf noticed that an exception had left it. */
static void span(struct view_trace *t, void *state, const struct mxbpf_span *s, const struct view_place *place)
{
	struct view_text name;
	char *start, *p;

	if (!raised_left(s))
		return;
	name = view_trace_text(t, s->name_id, view_text_name);
	start = out_reserve(t->s.out, VIEW_EVENT_BYTES + name.len);
	p = put(start, ",\n{\"ph\":\"i\",");
	p = view_put_where(t, p, s->h.tgid, place->tid, s->h.ts_ns + s->dur_ns);
	p = put(p, ",\"s\":\"t\",\"cat\":\"exception\",\"name\":\"exception left ");
	p = put_bytes(p, name.data, name.len);
	p = put(p, "\"}");
	out_filled(t->s.out, (size_t)(p - start));
}

static bool when(const struct view *s)
{
	return mdl_asked(s->in->session, &feature_raised);
}

const struct view_trace_feature raised_trace = {.when = when, .span = span};
