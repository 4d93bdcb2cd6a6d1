// SPDX-License-Identifier: Apache-2.0
#include "feature/raised/raised.h"

#include <errno.h>

#include "view/timeline/trace.h"

static int text_left(struct view_trace *t, uint64_t id, struct buf *b)
{
	return buf_printf(b, "exception left ") ? -ENOMEM : view_text_name(t, id, b);
}

/* An instant at the end of the call. That is when mxbpf noticed that an exception had left it. */
static void raised_trace_span(struct view_trace *t, void *state, const struct mxbpf_span *s,
			      const struct view_place *place)
{
	struct view_event e = {.letter = 'i',
			       .pid = s->h.tgid,
			       .tid = place->tid,
			       .ts_ns = s->h.ts_ns + s->dur_ns,
			       .category = "exception",
			       .scope = 't'};

	if (!raised_left(s))
		return;
	e.name = view_trace_text(t, s->name_id, text_left);
	view_event(t, &e);
}

static bool raised_trace_when(const struct view *s)
{
	return mdl_asked(s->in->session, &feature_raised);
}

const struct view_trace_feature raised_trace = {.when = raised_trace_when, .span = raised_trace_span};
