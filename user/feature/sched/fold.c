// SPDX-License-Identifier: Apache-2.0
/* Where the time of operators' threads off the CPU went, by what they were in as they left it. */
#include "feature/sched/sched.h"
#include <errno.h>
#include <string.h>

#include "model/priv.h"
#include "feature/sched/words.h"

/* Of a span's name and a process's. */
static uint64_t key_of(const struct mxbpf_agg_sched *a)
{
	uint64_t words[2], h = a->name_id ^ (uint64_t)a->own << 63;
	unsigned i;

	memcpy(words, a->comm, sizeof(words));
	for (i = 0; i < 2; i++) {
		h = (h ^ words[i]) * 0x9e3779b97f4a7c15ull;
		h ^= h >> 29;
	}
	return h;
}

static int sched_fold_agg(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_agg_sched *a = (const void *)rec;
	const uint64_t kind = (uint64_t)a->h.tgid << 32 | a->cls << 8 | a->what;
	bool added;
	struct mxbpf_agg_sched *r = mdl_item_put(&m->sched_index, &m->scheds, key_of(a), kind, sizeof(*r), &added);

	if (!r || mdl_expect_name(m, a->name_id))
		return -ENOMEM;
	if (added) {
		*r = *a;
		r->h.size = sizeof(*r);
		return 0;
	}
	add_sat(&r->count, a->count);
	add_sat(&r->total_ns, a->total_ns);
	return 0;
}

/* What follows a NUL is nobody's. */
static void set_comm(char to[16], const char from[16])
{
	memset(to, 0, 16);
	memcpy(to, from, strnlen(from, 16));
}

/* A file's times may be anything. */
static uint64_t ns_between(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? to_ns - from_ns : 0;
}

static int add(struct mdl *m, struct mxbpf_agg_sched *a, enum mxbpf_sched_what what, uint64_t ns)
{
	a->what = (__u8)what;
	a->total_ns = ns;
	return ns ? sched_fold_agg(m, &a->h) : 0;
}

static int sched_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_sched *r = (const void *)rec;
	struct mxbpf_agg_sched a = {
		.h = {.kind = MXBPF_AGG_SCHED, .size = sizeof(a), .tgid = rec->tgid},
		.name_id = r->span_name_id,
		.cls = r->span_cls,
		.count = 1,
	};
	uint64_t slept_ns = r->woken_ns - rec->ts_ns;
	int err = add(m, &a, sched_cause(r), slept_ns);
	unsigned i;

	err = err ? err : recent_put(m, r);
	err = err ? err : add(m, &a, MXBPF_SCHED_WAITED, r->back_ns - r->woken_ns);
	for (i = 0; i < r->nslices && !err; i++) {
		set_comm(a.comm, r->slices[i].comm);
		a.own = r->slices[i].tgid == rec->tgid;
		err = add(m, &a, MXBPF_SCHED_KEPT_BY, ns_between(r->slices[i].from_ns, r->slices[i].to_ns));
	}
	if (!err && r->flags & MXBPF_SCHED_MORE && r->nslices) {
		set_comm(a.comm, (const char[16]){"[not kept]"});
		a.own = 0;
		err = add(m, &a, MXBPF_SCHED_KEPT_BY, ns_between(r->woken_ns, r->slices[r->nslices - 1].from_ns));
	}
	if (err || r->state == MXBPF_SCHED_RUNNABLE || !sched_has_by(r))
		return err;
	set_comm(a.comm, r->by_comm);
	a.own = !!(r->flags & MXBPF_SCHED_BY_OURS);
	return add(m, &a, MXBPF_SCHED_WOKEN_BY, slept_ns);
}

static int sched_emit(const struct mdl *m, struct buf *out)
{
	return buf_put(out, m->scheds.data, m->scheds.len);
}

const struct mxbpf_agg_sched *sched_rows(const struct mdl *m, size_t *n)
{
	*n = buf_count(&m->scheds, struct mxbpf_agg_sched);
	return (const struct mxbpf_agg_sched *)m->scheds.data;
}

static void scheds_fini(struct mdl *m)
{
	hash_fini(&m->sched_index);
	buf_fini(&m->scheds);
}

const struct mdl_feature feature_sched = {
	.kinds = {{MXBPF_SCHED, sched_fold}, {MXBPF_AGG_SCHED, sched_fold_agg}},
	.emit = sched_emit,
	.copy = recent_copy,
	.fini = scheds_fini,
};
