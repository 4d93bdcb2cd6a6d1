// SPDX-License-Identifier: Apache-2.0
/* --sched: adds up the time off the CPU by the span that was open when a thread left the CPU. */
#include "feature/sched/sched.h"
#include "feature/sched/words.h"
#include "feature/idle/idle.h"
#include "feature/slow/slow.h"

#include <errno.h>
#include <string.h>

struct state {
	struct hash index; /* (name and comm, tgid with class and what) -> 1 + index in rows */
	struct buf rows;   /* struct mxbpf_agg_sched */
};

/* Returns a hash of the name of the span, the comm of the other process, `own` and `between`. */
static uint64_t key_of(const struct mxbpf_agg_sched *a)
{
	uint64_t words[2], h = a->name_id ^ (uint64_t)a->own << 63 ^ (uint64_t)a->between << 62;
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
	struct state *state = mdl_state(m, &feature_sched);
	struct mxbpf_agg_sched *r;
	bool added;

	if (!state)
		return -ENOMEM;
	r = mdl_expect_name(m, a->name_id)
		    ? NULL
		    : mdl_item_put(&state->index, &state->rows, key_of(a), kind, sizeof(*r), &added);
	if (!r)
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

/* Copies a comm and clears what follows its NUL, because key_of() hashes all 16 bytes. */
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
		.between = !!(r->flags & MXBPF_SCHED_BETWEEN),
		.count = 1,
	};
	uint64_t slept_ns = r->woken_ns - rec->ts_ns;
	int err = add(m, &a, sched_cause(r), slept_ns);
	unsigned i;

	err = err ? err : slow_off_cpu(m, r);
	err = err ? err : idle_off_cpu(m, r);
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

const struct mxbpf_agg_sched *sched_rows(const struct mdl *m, size_t *n)
{
	const struct state *state = mdl_state_of(m, &feature_sched);

	*n = state ? buf_count(&state->rows, struct mxbpf_agg_sched) : 0;
	return state ? (const void *)state->rows.data : NULL;
}

static int sched_emit(const struct mdl *m, struct buf *out)
{
	const struct state *state = mdl_state_of(m, &feature_sched);

	return buf_put(out, state->rows.data, state->rows.len);
}

static int sched_copy(struct mdl *to, const struct mdl *from)
{
	const struct state *f = mdl_state_of(from, &feature_sched);
	struct state *t = mdl_state(to, &feature_sched);

	return t ? mdl_items_copy(&t->index, &t->rows, &f->index, &f->rows) : -ENOMEM;
}

static void sched_fini(struct mdl *m)
{
	struct state *state = mdl_state(m, &feature_sched);

	mdl_items_fini(&state->index, &state->rows);
}

const struct mdl_feature feature_sched = {
	.option = &sched_option,
	.session = &sched_session,
	.trace = &sched_trace,
	.state_bytes = sizeof(struct state),
	.kinds = {{MXBPF_SCHED, sched_fold}, {MXBPF_AGG_SCHED, sched_fold_agg}},
	.emit = sched_emit,
	.copy = sched_copy,
	.fini = sched_fini,
};
