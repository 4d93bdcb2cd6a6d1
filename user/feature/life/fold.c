// SPDX-License-Identifier: Apache-2.0
/* --life: adds up the parts of operators' lives by name, and the time that the program waited for operators. */
#include "feature/life/life.h"

#include <errno.h>

#define ROW struct life_row
static const struct tbl_column columns[] = {
	{.stored = "name_id", .type = TBL_NAME, KEY_AT(name_id)},
	PID_COLUMN(tgid, .merge = TBL_IS_KEY),
	{.stored = "device", .type = TBL_COUNT, KEY_AT(device)},
	{.stored = "part", .type = TBL_COUNT, KEY_AT(part), .limit = MXBPF_LIFE_PARTS - 1},
	{.stored = "count", .type = TBL_COUNT, SUM_AT(count)},
	{.stored = "total_ns", .type = TBL_NS, SUM_AT(total_ns)},
	{.stored = "min_ns", .type = TBL_NS, MIN_AT(min_ns)},
	{.stored = "max_ns", .type = TBL_NS, MAX_AT(max_ns)},
	{.stored = "hist", .type = TBL_COUNT, HIST_AT(hist)},
	{0},
};
#undef ROW
static const struct tbl_def lives_table = {.name = "lives", .row_bytes = sizeof(struct life_row), .columns = columns};

static int life_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_life *l = (const void *)rec;
	struct life_row like = {.name_id = l->name_id, .tgid = l->h.tgid, .device = l->device}, *r;
	uint64_t ns;

	for (; like.part < MXBPF_LIFE_PARTS; like.part++) {
		ns = l->ns[like.part];
		if (ns == MXBPF_LIFE_UNKNOWN)
			continue;
		r = mdl_table_row(m, &feature_life, &lives_table, &like);
		if (!r)
			return -ENOMEM;
		r->min_ns = !r->count || ns < r->min_ns ? ns : r->min_ns;
		r->max_ns = ns > r->max_ns ? ns : r->max_ns;
		add_sat(&r->count, 1);
		add_sat(&r->total_ns, ns);
		add_sat(&r->hist[mxbpf_bucket(ns)], 1);
	}
	return 0;
}

const struct life_row *life_rows(const struct mdl *m, size_t *n)
{
	return mdl_table_rows(m, &feature_life, &lives_table, n);
}

const struct mxbpf_wait *life_waits(const struct mdl *m, size_t *n)
{
	return mdl_table_rows(m, &feature_life, &life_waits_table, n);
}

const struct mdl_feature feature_life = {
	.option = &life_option,
	.session = &life_session,
	.trace = &life_trace,
	.tables = {{&lives_table}, {&life_waits_table, MXBPF_WAIT}},
	.kinds = {{MXBPF_LIFE, life_fold}},
};
