// SPDX-License-Identifier: Apache-2.0
/*
 * Forward operators and the backward nodes that they made. The operator that made a node is the last to begin with the
 * node's number; its span comes before the node runs, that of an operator around it later, and with an earlier start.
 */
#include "feature/backward/backward.h"
#include "model/priv.h"

#include <errno.h>
#include <stdlib.h>

/* Deeper than anybody differentiates; a file can say anything. */
#define DEPTH_MAX 256

static struct maker *maker_find(const struct mdl *m, uint64_t seq, uint32_t tgid)
{
	uint64_t *at = m->makers.len ? hash_get(&m->maker_index, seq, tgid) : NULL;

	return at ? buf_at(&m->makers, struct maker, *at) : NULL;
}

/* A place for one; the oldest gives way. NULL: -ENOMEM. */
static struct maker *maker_add(struct mdl *m, uint64_t seq, uint32_t tgid)
{
	size_t n = buf_count(&m->makers, struct maker), place = n < BACKWARD_MAKERS_MAX ? n : m->oldest_maker;
	struct maker *old = buf_at(&m->makers, struct maker, place);
	uint64_t *at;

	if (place < n) {
		hash_del(&m->maker_index, old->seq, old->tgid, NULL);
		m->oldest_maker = (place + 1) % n;
	} else if (!buf_add(&m->makers, sizeof(struct maker))) {
		return NULL;
	}
	at = hash_put(&m->maker_index, seq, tgid);
	if (!at)
		return NULL;
	*at = place;
	return buf_at(&m->makers, struct maker, place);
}

static int join_operator(struct mdl *m, const struct mxbpf_span *s)
{
	struct maker *k = maker_find(m, s->seq, s->h.tgid);

	if (k && k->start_ns >= s->h.ts_ns)
		return 0;
	k = k ? k : maker_add(m, s->seq, s->h.tgid);
	if (!k)
		return -ENOMEM;
	*k = (struct maker){.seq = s->seq,
			    .tgid = s->h.tgid,
			    .start_ns = s->h.ts_ns,
			    .dur_ns = s->dur_ns,
			    .name_id = s->name_id,
			    .origin = s->origin,
			    .stack_id = s->stack_id};
	return 0;
}

static struct mxbpf_join *join_row(struct mdl *m, uint64_t name_id, uint32_t tgid)
{
	bool added;
	struct mxbpf_join *j = mdl_row_put(&m->join_index, &m->joins, name_id, tgid, sizeof(*j), &added);

	if (!added)
		return j;
	*j = (struct mxbpf_join){.h = {.kind = MXBPF_JOIN, .size = sizeof(*j), .tgid = tgid}, .name_id = name_id};
	return mdl_expect_name(m, name_id) ? NULL : j;
}

/* Where it all began: the forward operator, or a node of which no operator is known. NULL: not even that. */
static struct maker *root_of(const struct mdl *m, struct maker *k, unsigned *depth)
{
	unsigned steps;

	for (steps = 0; k && k->origin && steps < DEPTH_MAX; steps++)
		k = maker_find(m, k->origin, k->tgid);
	if (!k || k->origin)
		return NULL;
	*depth = steps;
	return k;
}

/* Of an operator that cannot be seen, or from before the window: the node stands for it, with no forward time. */
static struct maker *maker_unknown(struct mdl *m, const struct mxbpf_span *s)
{
	struct maker *k = maker_find(m, s->seq, s->h.tgid);

	k = k ? k : maker_add(m, s->seq, s->h.tgid);
	if (k)
		*k = (struct maker){
			.seq = s->seq, .tgid = s->h.tgid, .name_id = s->name_id, .unknown = true, .counted = true};
	return k;
}

static int join_node(struct mdl *m, const struct mxbpf_span *s)
{
	unsigned depth = 0;
	struct mxbpf_join *j;
	struct maker *k;

	k = root_of(m, maker_find(m, s->seq, s->h.tgid), &depth);
	k = k ? k : maker_unknown(m, s);
	j = k ? join_row(m, k->name_id, k->tgid) : NULL;
	if (!j)
		return -ENOMEM;
	m->counters[s->cls][MXBPF_TALLY_UNJOINED] += k->unknown;
	if (!k->counted) {
		k->counted = true;
		add_sat(&j->count, 1);
		add_sat(&j->total_ns, k->dur_ns);
	}
	add_sat(depth ? &j->deep_count : &j->bwd_count, 1);
	add_sat(depth ? &j->deep_total_ns : &j->bwd_total_ns, s->dur_ns);
	return 0;
}

int backward_follow(struct mdl *m, struct mxbpf_span *s)
{
	uint64_t node = s->flags & MXBPF_SPAN_BACKWARD ? s->seq : s->origin;
	const struct maker *k = node ? maker_find(m, node, s->h.tgid) : NULL;

	if (k && k->stack_id)
		s->stack_id = k->stack_id;
	if (!(s->flags & MXBPF_SPAN_SEQ))
		return 0;
	return s->flags & MXBPF_SPAN_BACKWARD ? join_node(m, s) : join_operator(m, s);
}

void backward_join_merge(struct mxbpf_join *to, const struct mxbpf_join *from)
{
	add_sat(&to->count, from->count);
	add_sat(&to->total_ns, from->total_ns);
	add_sat(&to->bwd_count, from->bwd_count);
	add_sat(&to->bwd_total_ns, from->bwd_total_ns);
	add_sat(&to->deep_count, from->deep_count);
	add_sat(&to->deep_total_ns, from->deep_total_ns);
}

static int join_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_join *from = (const void *)rec;
	struct mxbpf_join *j = join_row(m, from->name_id, from->h.tgid);

	if (!j)
		return -ENOMEM;
	backward_join_merge(j, from);
	return 0;
}

static int join_emit(const struct mdl *m, struct buf *out)
{
	size_t i;
	int err = 0;

	for (i = 0; !err && i < buf_count(&m->joins, void *); i++)
		err = buf_put(out, *buf_at(&m->joins, void *, i), sizeof(struct mxbpf_join));
	return err;
}

const struct mxbpf_join *const *backward_joins(struct mdl *m, size_t *n)
{
	*n = buf_count(&m->joins, void *);
	return (const void *)m->joins.data;
}

static void makers_fini(struct mdl *m)
{
	buf_fini(&m->makers);
	hash_fini(&m->maker_index);
}

static void joins_move(struct mdl *to, struct mdl *from)
{
	makers_fini(to);
	to->makers = from->makers;
	to->maker_index = from->maker_index;
	to->oldest_maker = from->oldest_maker;
	from->makers = (struct buf){0};
	from->maker_index = (struct hash){0};
	from->oldest_maker = 0;
}

static void joins_fini(struct mdl *m)
{
	size_t i;

	for (i = 0; i < buf_count(&m->joins, void *); i++)
		free(*buf_at(&m->joins, void *, i));
	buf_fini(&m->joins);
	hash_fini(&m->join_index);
	makers_fini(m);
}

const struct mdl_feature feature_backward = {
	.kinds = {{MXBPF_JOIN, join_fold}},
	.emit = join_emit,
	.move = joins_move,
	.fini = joins_fini,
};
