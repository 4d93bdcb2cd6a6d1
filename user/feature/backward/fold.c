// SPDX-License-Identifier: Apache-2.0
/*
 * Joins backward nodes with the forward operators that made them. The two have the same sequence number. If several
 * nested operators have that number, the innermost one made the node: it starts last. Its span ends, and is folded,
 * before the node runs. The spans of the operators around it are folded later.
 */
#include "feature/backward/backward.h"

#include <errno.h>

/* Gradients of gradients: no program nests them so deep. A limit, because a file can contain a circle. */
#define DEPTH_MAX 256

/* The operator that made a node, or that may still make one. */
struct maker {
	uint64_t seq;
	uint64_t start_ns, dur_ns, name_id, stack_id;
	uint64_t origin; /* seq of the node in which it ran; 0: it ran in the forward pass */
	uint32_t tgid;
	bool counted; /* its row has the call */
	bool unknown; /* no operator is known: this is the node itself */
};

struct state {
	struct hash maker_index; /* (seq, tgid) -> index in makers */
	struct buf makers;	 /* struct maker; when it is full, the oldest is replaced */
	size_t oldest_maker;	 /* index */
};

static struct maker *maker_find(const struct state *m, uint64_t seq, uint32_t tgid)
{
	uint64_t *at = m->makers.len ? hash_get(&m->maker_index, seq, tgid) : NULL;

	return at ? buf_at(&m->makers, struct maker, *at) : NULL;
}

/* Returns a place for an operator, which may be that of the oldest one. NULL: out of memory. */
static struct maker *maker_add(struct state *m, uint64_t seq, uint32_t tgid)
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

static int join_operator(struct state *m, const struct mxbpf_span *s)
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

/* Returns the forward operator at the beginning of a chain of nodes, or the node that stands for it. NULL: unknown. */
static struct maker *root_of(const struct state *m, struct maker *k, unsigned *depth)
{
	unsigned steps;

	for (steps = 0; k && k->origin && steps < DEPTH_MAX; steps++)
		k = maker_find(m, k->origin, k->tgid);
	if (!k || k->origin)
		return NULL;
	*depth = steps;
	return k;
}

/*
 * Makes a node stand for its forward operator, with no forward time. The operator ran before the window, or mxbpf does
 * not see it.
 */
static struct maker *maker_unknown(struct state *m, const struct mxbpf_span *s)
{
	struct maker *k = maker_find(m, s->seq, s->h.tgid);

	k = k ? k : maker_add(m, s->seq, s->h.tgid);
	if (k)
		*k = (struct maker){
			.seq = s->seq, .tgid = s->h.tgid, .name_id = s->name_id, .unknown = true, .counted = true};
	return k;
}

static int join_node(struct mdl *m, struct state *state, const struct mxbpf_span *s)
{
	struct backward_row row = {0};
	unsigned depth = 0;
	struct maker *k;

	k = root_of(state, maker_find(state, s->seq, s->h.tgid), &depth);
	k = k ? k : maker_unknown(state, s);
	if (!k)
		return -ENOMEM;
	mdl_tally_add(m, s->cls, MXBPF_TALLY_UNJOINED, k->unknown);
	row.tgid = k->tgid;
	row.name_id = k->name_id;
	row.count = !k->counted;
	row.total_ns = k->counted ? 0 : k->dur_ns;
	k->counted = true;
	*(depth ? &row.deep_count : &row.bwd_count) = 1;
	*(depth ? &row.deep_total_ns : &row.bwd_total_ns) = s->dur_ns;
	return mdl_table_add(m, &feature_backward, &backward_table, &row);
}

int backward_follow(struct mdl *m, struct mxbpf_span *s)
{
	const uint64_t node = s->flags & MXBPF_SPAN_BACKWARD ? s->seq : s->origin;
	const struct maker *k;
	struct state *state;

	if (!node && !(s->flags & MXBPF_SPAN_SEQ))
		return 0;
	state = mdl_state(m, &feature_backward);
	if (!state)
		return -ENOMEM;
	k = node ? maker_find(state, node, s->h.tgid) : NULL;
	if (k && k->stack_id)
		s->stack_id = k->stack_id;
	if (!(s->flags & MXBPF_SPAN_SEQ))
		return 0;
	return s->flags & MXBPF_SPAN_BACKWARD ? join_node(m, state, s) : join_operator(state, s);
}

/* A copy lacks the operators that may still make nodes. */
static int backward_move(struct mdl *to, struct mdl *from, uint64_t now_ns)
{
	struct state *t = mdl_state(to, &feature_backward), *f = mdl_state(from, &feature_backward);

	if (!t)
		return -ENOMEM;
	mdl_items_fini(&t->maker_index, &t->makers);
	t->makers = f->makers;
	t->maker_index = f->maker_index;
	t->oldest_maker = f->oldest_maker;
	f->makers = (struct buf){0};
	f->maker_index = (struct hash){0};
	f->oldest_maker = 0;
	return 0;
}

static void backward_fini(struct mdl *m)
{
	struct state *state = mdl_state(m, &feature_backward);

	mdl_items_fini(&state->maker_index, &state->makers);
}

const struct mdl_feature feature_backward = {
	.option = &backward_option,
	.state_bytes = sizeof(struct state),
	.tables = {{&backward_table}},
	.before_row = backward_follow,
	.move = backward_move,
	.fini = backward_fini,
};
