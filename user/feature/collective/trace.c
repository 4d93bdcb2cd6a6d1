// SPDX-License-Identifier: Apache-2.0
/* What is known of a collective, as args of gloo's spans: its number, its processes, and whom it waited for. */
#include "feature/collective/collective.h"

#include <errno.h>
#include <inttypes.h>

#include "view/timeline/trace.h"

struct state {
	struct buf events, parts;
	struct hash at; /* (start, process and thread) -> 1 + index in parts */
};

static int plan(struct view_trace *t, void *vstate)
{
	struct state *state = vstate;
	const struct collective_part *p;
	uint64_t *at;
	size_t i;
	int err = collective_parts(t->s.in->model, &state->events, &state->parts);

	for (i = 0; !err && i < buf_count(&state->parts, *p); i++) {
		p = buf_at(&state->parts, struct collective_part, i);
		at = hash_put(&state->at, p->c->h.ts_ns, (uint64_t)p->c->h.tgid << 32 | p->c->tid);
		if (at)
			*at = i + 1;
		err = at ? 0 : -ENOMEM;
	}
	return err;
}

static void collective_args(struct view_trace *t, void *vstate, const struct mxbpf_span *s)
{
	const struct state *state = vstate;
	const struct collective_part *p;
	const uint64_t *at = NULL;
	double factor;

	if (s->flags & MXBPF_SPAN_USER && state->parts.len)
		at = hash_get(&state->at, s->h.ts_ns, (uint64_t)s->h.tgid << 32 | s->tid);
	if (!at || !*at)
		return;
	p = buf_at(&state->parts, struct collective_part, *at - 1);
	if (p->bytes != MXBPF_COLLECTIVE_UNSIZED)
		out_printf(t->s.out, ",\"bytes\":%" PRIu64, p->bytes);
	if (!p->group)
		return;
	out_printf(t->s.out, ",\"group\":\"%" PRIx64 "\",\"Group size\":%" PRIu32 ",\"Seq\":%" PRIu64, p->group,
		   p->members, p->seq);
	if (p->last)
		out_printf(t->s.out, ",\"wait_us\":%.3f,\"last_pid\":%" PRIu32, (double)p->wait_ns / 1e3, p->last);
	factor = collective_bus_factor(p->c->op, collective_size(t->s.in->session, p->ranks, p->members));
	if (p->move_ns && p->bytes != MXBPF_COLLECTIVE_UNSIZED && factor > 0)
		out_printf(t->s.out, ",\"busbw (GB/s)\":%.6g", (double)p->bytes / (double)p->move_ns * factor);
}

static void collective_trace_fini(void *vstate)
{
	struct state *state = vstate;

	hash_fini(&state->at);
	buf_fini(&state->parts);
	buf_fini(&state->events);
}

const struct view_trace_feature collective_trace = {
	.state_bytes = sizeof(struct state),
	.plan = plan,
	.args = {[VIEW_ARGS_NUMBERS] = collective_args},
	.fini = collective_trace_fini,
};
