// SPDX-License-Identifier: Apache-2.0
/* Times of the OpenMP team, as args of the span that opened its parallel regions (--omp). */
#include "feature/omp/omp.h"

#include <errno.h>

#include "view/timeline/trace.h"

struct state {
	struct hash at;	  /* (start of a span, thread) -> 1 + place in teams */
	struct buf teams; /* struct mxbpf_team: one for each span, the sum of its regions */
};

/* The region of a span stands before the span in the recording. */
static int omp_survey(struct view_trace *t, void *vstate, const struct mxbpf_rec *r)
{
	const struct mxbpf_team *k = (const void *)r;
	struct state *state = vstate;
	uint64_t *at = k->span_start_ns ? hash_put(&state->at, k->span_start_ns, k->tid) : NULL;

	if (!k->span_start_ns)
		return 0;
	if (!at)
		return -ENOMEM;
	if (*at) {
		tbl_merge(&omp_teams, buf_at(&state->teams, struct mxbpf_team, *at - 1), k);
		return 0;
	}
	if (buf_put(&state->teams, k, sizeof(*k)))
		return -ENOMEM;
	*at = buf_count(&state->teams, struct mxbpf_team);
	return 0;
}

static void write_team(struct view_trace *t, const struct mxbpf_team *k)
{
	const struct {
		const char *key;
		uint64_t v;
	} args[] = {
		{",\"team_threads\":", k->threads},	  {",\"team_regions\":", k->regions},
		{",\"team_threads_ns\":", k->threads_ns}, {",\"team_cpu_ns\":", k->cpu_ns},
		{",\"team_runq_ns\":", k->runq_ns},	  {",\"team_late_ns\":", k->late_ns},
		{",\"team_barrier_ns\":", k->barrier_ns}, {",\"team_spun_ns\":", k->spun_ns},
	};
	char *start = out_reserve(t->s.out, VIEW_EVENT_BYTES), *p = start;
	size_t i;

	for (i = 0; i < sizeof(args) / sizeof(args[0]); i++)
		p = view_put_u64(put(p, args[i].key), args[i].v);
	out_filled(t->s.out, (size_t)(p - start));
}

static void args(struct view_trace *t, void *vstate, const struct mxbpf_span *s)
{
	const struct state *state = vstate;
	const uint64_t *at = state->teams.len ? hash_get(&state->at, s->h.ts_ns, s->tid) : NULL;

	if (at)
		write_team(t, buf_at(&state->teams, struct mxbpf_team, *at - 1));
}

static void omp_fini(void *vstate)
{
	struct state *state = vstate;

	hash_fini(&state->at);
	buf_fini(&state->teams);
}

const struct view_trace_feature omp_trace = {
	.state_bytes = sizeof(struct state),
	.kinds = {MXBPF_TEAM},
	.survey = omp_survey,
	.args = {[VIEW_ARGS_NUMBERS] = args},
	.fini = omp_fini,
};
