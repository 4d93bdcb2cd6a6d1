// SPDX-License-Identifier: Apache-2.0
/* Parallel regions: those that spans of one name opened, added up. */
#include "feature/omp/omp.h"
#include "model/priv.h"

#include <errno.h>
#include <stdlib.h>

static struct mxbpf_team *team_row(struct mdl *m, const struct mxbpf_team *like)
{
	uint64_t process = (uint64_t)like->h.tgid << 32 | like->cls;
	bool added;
	struct mxbpf_team *t = mdl_row_put(&m->team_index, &m->teams, like->name_id, process, sizeof(*t), &added);

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

static int team_emit(const struct mdl *m, struct buf *out)
{
	size_t i;
	int err = 0;

	for (i = 0; !err && i < buf_count(&m->teams, void *); i++)
		err = buf_put(out, *buf_at(&m->teams, void *, i), sizeof(struct mxbpf_team));
	return err;
}

const struct mxbpf_team *const *omp_teams(struct mdl *m, size_t *n)
{
	*n = buf_count(&m->teams, void *);
	return (const void *)m->teams.data;
}

static void teams_fini(struct mdl *m)
{
	size_t i;

	for (i = 0; i < buf_count(&m->teams, void *); i++)
		free(*buf_at(&m->teams, void *, i));
	buf_fini(&m->teams);
	hash_fini(&m->team_index);
}

const struct mdl_feature feature_omp = {
	.kinds = {{MXBPF_TEAM, team_fold}},
	.emit = team_emit,
	.fini = teams_fini,
};
