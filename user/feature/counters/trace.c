// SPDX-License-Identifier: Apache-2.0
/* Performance counters of each call, as args of its span (--counters). */
#include "feature/counters/counters.h"
#include "view/timeline/trace.h"

static bool counters_when(const struct view *s)
{
	return view_ncounters(s->in->session);
}

static void counters_args(struct view_trace *t, void *state, const struct mxbpf_span *s)
{
	const struct mdl_session *session = t->s.in->session;
	unsigned i, n = view_ncounters(session);
	char *start, *p;

	if (s->counters[0] == MXBPF_COUNTER_NONE)
		return;
	start = p = out_reserve(t->s.out, VIEW_EVENT_BYTES);
	for (i = 0; i < n; i++) {
		p = put(p, ",\"");
		p = put(p, view_counter_name(session, i));
		p = put(p, "\":");
		p = view_put_u64(p, s->counters[i]);
	}
	if (s->flags & MXBPF_SPAN_SCALED)
		p = put(p, ",\"scaled\":true");
	out_filled(t->s.out, (size_t)(p - start));
}

const struct view_trace_feature counters_trace = {.when = counters_when, .args = {[VIEW_ARGS_NUMBERS] = counters_args}};
