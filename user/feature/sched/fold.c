// SPDX-License-Identifier: Apache-2.0
/* --sched: adds up the time off the CPU by the span that was open when a thread left the CPU. */
#include "feature/sched/sched.h"
#include "feature/sched/words.h"

#include <string.h>

#define ROW struct sched_row
static const struct tbl_column stored[] = {
	{.stored = "name_id", .type = TBL_NAME, KEY_AT(name_id)},
	{.stored = "pid", .type = TBL_PID, KEY_AT(tgid)},
	{.stored = "class", .type = TBL_COUNT, KEY_AT(cls), .limit = MXBPF_CLASS_MAX - 1},
	{.stored = "what", .type = TBL_COUNT, KEY_AT(what), .limit = MXBPF_SCHED_WHATS - 1},
	{.stored = "own", .type = TBL_BOOL, KEY_AT(own)},
	{.stored = "between", .type = TBL_BOOL, KEY_AT(between)},
	{.stored = "comm", .type = TBL_COUNT, KEY_AT(comm)},
	{.stored = "count", .type = TBL_COUNT, SUM_AT(count)},
	{.stored = "total_ns", .type = TBL_NS, SUM_AT(total_ns)},
	{0},
};
#undef ROW
static const struct tbl_def table = {.name = "off_cpu", .row_bytes = sizeof(struct sched_row), .columns = stored};

/* Copies a comm and clears what follows its NUL, because all 16 bytes are a key. */
static void set_comm(char to[16], const char from[16])
{
	memset(to, 0, 16);
	memcpy(to, from, strnlen(from, 16));
}

/* Times from a file can be in any order. */
static uint64_t ns_between(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? to_ns - from_ns : 0;
}

static int sched_fold_add(struct mdl *m, struct sched_row *a, enum mxbpf_sched_what what, uint64_t ns)
{
	a->what = (__u8)what;
	a->total_ns = ns;
	return ns ? mdl_table_add(m, &feature_sched, &table, a) : 0;
}

static int sched_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_sched *r = (const void *)rec;
	struct sched_row a = {
		.tgid = rec->tgid,
		.name_id = r->span_name_id,
		.cls = r->span_cls,
		.between = !!(r->flags & MXBPF_SCHED_BETWEEN),
		.count = 1,
	};
	uint64_t slept_ns = r->woken_ns - rec->ts_ns;
	int err = sched_fold_add(m, &a, sched_cause(r), slept_ns);
	unsigned i;

	err = err ? err : mdl_see_off_cpu(m, r);
	err = err ? err : sched_fold_add(m, &a, MXBPF_SCHED_WAITED, r->back_ns - r->woken_ns);
	for (i = 0; i < r->nslices && !err; i++) {
		set_comm(a.comm, r->slices[i].comm);
		a.own = r->slices[i].tgid == rec->tgid;
		err = sched_fold_add(m, &a, MXBPF_SCHED_KEPT_BY, ns_between(r->slices[i].from_ns, r->slices[i].to_ns));
	}
	if (!err && r->flags & MXBPF_SCHED_MORE && r->nslices) {
		set_comm(a.comm, (const char[16]){"[not kept]"});
		a.own = 0;
		err = sched_fold_add(m, &a, MXBPF_SCHED_KEPT_BY,
				     ns_between(r->woken_ns, r->slices[r->nslices - 1].from_ns));
	}
	if (err || r->state == MXBPF_SCHED_RUNNABLE || !sched_has_by(r))
		return err;
	set_comm(a.comm, r->by_comm);
	a.own = !!(r->flags & MXBPF_SCHED_BY_OURS);
	return sched_fold_add(m, &a, MXBPF_SCHED_WOKEN_BY, slept_ns);
}

const struct sched_row *sched_rows(const struct mdl *m, size_t *n)
{
	return mdl_table_rows(m, &feature_sched, &table, n);
}

const struct mdl_feature feature_sched = {
	.option = &sched_option,
	.session = &sched_session,
	.trace = &sched_trace,
	.kinds = {{MXBPF_SCHED, sched_fold}},
	.tables = {{&table}},
};
