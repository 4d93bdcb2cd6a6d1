// SPDX-License-Identifier: Apache-2.0
/* --omp: adds parallel regions up by the name of the span that opened them. */
#include "feature/omp/omp.h"

#include <errno.h>

struct state {
	struct hash index; /* (name_id, tgid and class) -> struct mxbpf_team * */
	struct buf rows;   /* struct mxbpf_team *, owned */
};

static struct mxbpf_team *team_row(struct mdl *m, const struct mxbpf_team *like)
{
	const uint64_t process = (uint64_t)like->h.tgid << 32 | like->cls;
	struct state *state = mdl_state(m, &feature_omp);
	struct mxbpf_team *t;
	bool added;

	if (!state)
		return NULL;
	t = mdl_row_put(&state->index, &state->rows, like->name_id, process, sizeof(*t), &added);
	if (!added)
		return t;
	*t = (struct mxbpf_team){.h = {.kind = MXBPF_TEAM, .size = sizeof(*t), .tgid = like->h.tgid},
				 .name_id = like->name_id,
				 .cls = like->cls};
	return mdl_expect_name(m, like->name_id) ? NULL : t;
}

void omp_team_merge(struct mxbpf_team *to, const struct mxbpf_team *from)
{
	add_sat(&to->regions, from->regions);
	add_sat(&to->dur_ns, from->dur_ns);
	add_sat(&to->threads_ns, from->threads_ns);
	add_sat(&to->late_ns, from->late_ns);
	add_sat(&to->late_runq_ns, from->late_runq_ns);
	add_sat(&to->work_ns, from->work_ns);
	add_sat(&to->barrier_ns, from->barrier_ns);
	add_sat(&to->cpu_ns, from->cpu_ns);
	add_sat(&to->runq_ns, from->runq_ns);
	add_sat(&to->spun_ns, from->spun_ns);
	to->threads = from->threads > to->threads ? from->threads : to->threads;
	to->flags |= from->flags;
}

static int team_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_team *from = (const void *)rec;
	struct mxbpf_team *t = team_row(m, from);

	if (!t)
		return -ENOMEM;
	omp_team_merge(t, from);
	return 0;
}

const struct mxbpf_team *const *omp_teams(const struct mdl *m, size_t *n)
{
	const struct state *state = mdl_state_of(m, &feature_omp);

	*n = state ? buf_count(&state->rows, void *) : 0;
	return state ? (const void *)state->rows.data : NULL;
}

static int omp_emit(const struct mdl *m, struct buf *out)
{
	const struct state *state = mdl_state_of(m, &feature_omp);

	return mdl_rows_emit(&state->rows, sizeof(struct mxbpf_team), out);
}

static int omp_copy(struct mdl *to, const struct mdl *from)
{
	const struct state *f = mdl_state_of(from, &feature_omp);
	struct state *t = mdl_state(to, &feature_omp);

	return t ? mdl_rows_copy(&t->index, &t->rows, &f->index, &f->rows, sizeof(struct mxbpf_team)) : -ENOMEM;
}

static void omp_fini(struct mdl *m)
{
	struct state *state = mdl_state(m, &feature_omp);

	mdl_rows_fini(&state->index, &state->rows);
}

const struct mdl_feature feature_omp = {
	.option = &omp_option,
	.session = &omp_session,
	.trace = &omp_trace,
	.state_bytes = sizeof(struct state),
	.kinds = {{MXBPF_TEAM, team_fold}},
	.emit = omp_emit,
	.copy = omp_copy,
	.fini = omp_fini,
};
