// SPDX-License-Identifier: Apache-2.0
/*
 * Work of CUDA graphs by the operators that captured it. The graph's launch says nothing of these, but each activity
 * names its node, and a record of the node says which thread made it, and when. So a node looks for spans as a launch
 * does, and its work is that of all launches of the graph.
 *
 * An activity has a launch and a node, and a row can enclose both: then it has the work once. So activities wait until
 * the end of the window, when the spans around both are known.
 */
#include <errno.h>
#include <string.h>

#include "feature/activity/join.h"

#define NODES_MAX (1u << 17) /* 38 MiB; those of later captures are not seen */
#define ROWS_MAX  (1u << 14)
#define WORKS_MAX (1u << 16)	 /* 6 MiB, and as many that are not placed: 5 MiB */
#define LATE_NS	  10000000000ull /* so long an activity waits for the operator that captured its node */

/* ---- nodes */

/* A copy belongs to the spans of its original, whose moment it has, too. */
static void copy_node(struct node *to, const struct node *from)
{
	to->l = from->l;
	to->tid = from->tid;
	memset(&to->l.work, 0, sizeof(to->l.work));
	memset(&to->l.self, 0, sizeof(to->l.self));
}

static int add_node(struct join *j, const struct mxbpf_graph_node *from, uint64_t *number)
{
	struct graphs *g = &j->graphs;
	const uint64_t *original = from->original ? hash_get(&g->node_index, from->original, from->h.tgid) : NULL;
	const uint64_t copied = original ? *original : 0;
	uint64_t *at = hash_put(&g->node_index, from->node, from->h.tgid);
	uint64_t *captured;
	bool made; /* it was told as one that was made, before it was told as a copy */
	struct node *n;

	if (!at || (!*at && !buf_add(&g->nodes, sizeof(*n))))
		return -ENOMEM;
	made = *at && from->original && node_at(j, *at - 1)->l.ts_ns != NONE;
	*at = *at ? *at : buf_count(&g->nodes, struct node);
	*number = *at - 1;
	n = node_at(j, *number);
	*n = (struct node){.since = j->nlaunches,
			   .tid = from->tid,
			   .l = {.edge_of = (uint64_t)from->h.tgid << 16,
				 .ts_ns = from->original ? NONE : from->h.ts_ns,
				 .latency_ns = NONE,
				 .node = true}};
	if (copied)
		copy_node(n, node_at(j, copied - 1));
	captured = hash_put(&g->captured, from->h.tgid, 0);
	if (captured)
		*captured = from->original ? work_less(*captured, made) : *captured + 1;
	return captured ? 0 : -ENOMEM;
}

int join_node(struct mdl *m, struct join *j, const struct mxbpf_graph_node *from)
{
	const bool known = hash_get(&j->graphs.node_index, from->node, from->h.tgid);
	struct moment moment;
	struct thread *t;
	uint64_t number;

	if (join_on(m, j))
		return -ENOMEM;
	if (!known && buf_count(&j->graphs.nodes, struct node) >= NODES_MAX)
		return 0;
	if (add_node(j, from, &number) || join_thread(j, from->h.tgid, node_at(j, number)->tid, &t))
		return -ENOMEM;
	moment = (struct moment){node_at(j, number)->l.ts_ns, number | NODE_BIT};
	return t && moment.ns != NONE ? join_fresh(j, t, &moment) : 0;
}

/* ---- rows */

static struct mxbpf_agg_gpu_graph *activity_fold_graphs_row_of(struct mdl *m, struct graphs *g,
							       const struct mxbpf_agg_gpu_graph *like)
{
	const uint64_t what = (uint64_t)like->captured << 16 | (uint64_t)like->cls << 8 | like->user;
	const uint64_t a = like->name_id ^ what * 0x9e3779b97f4a7c15ull, b = (uint64_t)like->h.tgid << 32 | like->graph;
	struct mxbpf_agg_gpu_graph *r;
	bool added;

	if ((buf_count(&g->rows, *r) >= ROWS_MAX && !hash_get(&g->row_index, a, b)) ||
	    (like->name_id && mdl_expect_name(m, like->name_id)))
		return NULL;
	r = mdl_item_put(&g->row_index, &g->rows, a, b, sizeof(*r), &added);
	if (r && added)
		*r = (struct mxbpf_agg_gpu_graph){
			.h = {.kind = MXBPF_AGG_GPU_GRAPH, .size = sizeof(*r), .tgid = like->h.tgid},
			.name_id = like->name_id,
			.graph = like->graph,
			.captured = like->captured,
			.cls = like->cls,
			.user = like->user};
	return r;
}

/* Work for which there is no row is in the table of operators alone. */
int graphs_fold(struct mdl *m, struct graphs *g, const struct mxbpf_agg_gpu_graph *from)
{
	struct mxbpf_agg_gpu_graph *r = activity_fold_graphs_row_of(m, g, from);

	if (r)
		work_add(&r->sum, &from->sum);
	return r || buf_count(&g->rows, *r) >= ROWS_MAX ? 0 : -ENOMEM;
}

/* Moves the work of a node to the row of the operator that has it now. */
static int settle_node(struct mdl *m, struct join *j, struct node *n)
{
	struct mxbpf_agg_gpu_graph like = {.h.tgid = tgid_of(&n->l), .graph = n->graph}, *r;
	const struct mxbpf_agg_gpu_work *by = n->l.own ? &work_row_at(j, n->l.own)->a : NULL;

	like.captured = by ? MXBPF_CAPTURED_BY : n->l.ts_ns == NONE ? MXBPF_CAPTURED_UNSEEN : MXBPF_CAPTURED_OUTSIDE;
	if (by) {
		like.name_id = by->name_id;
		like.cls = by->cls;
		like.user = by->user;
	}
	n->changed = false;
	if (!n->row && !n->l.work.gpu_ns && !n->l.work.kernels && !n->l.work.copies)
		return 0;
	if (n->row)
		work_sub(&buf_at(&j->graphs.rows, struct mxbpf_agg_gpu_graph, n->row - 1)->sum, &n->put);
	r = activity_fold_graphs_row_of(m, &j->graphs, &like);
	if (!r && buf_count(&j->graphs.rows, *r) < ROWS_MAX)
		return -ENOMEM;
	n->row = r ? (uint32_t)(r - buf_at(&j->graphs.rows, struct mxbpf_agg_gpu_graph, 0)) + 1 : 0;
	n->put = n->l.work;
	if (r)
		work_add(&r->sum, &n->put);
	return 0;
}

int graphs_touch(struct join *j, struct launch *of_node)
{
	struct node *n = (struct node *)of_node; /* its first member */
	const uint32_t index = (uint32_t)(n - node_at(j, 0));

	if (n->changed)
		return 0;
	n->changed = true;
	return buf_put(&j->graphs.changed, &index, sizeof(index));
}

/* ---- work */

static bool has_credit(const struct launch *l, uint32_t place)
{
	unsigned i;

	for (i = 0; l && i < l->ncredits; i++)
		if (l->credits[i] == place)
			return true;
	return false;
}

/* Gives an activity to the spans around the capture. Rows that enclose the launch as well have it from the launch. */
static void place(struct join *j, struct launch *n, const struct launch *launch, const struct mxbpf_gpu_work *sum)
{
	unsigned i;

	for (i = 0; i < n->ncredits; i++)
		if (!has_credit(launch, n->credits[i]))
			work_add(&work_row_at(j, n->credits[i])->a.total, sum);
	join_give_self(j, n, sum);
}

/* The spans around a node may come later than its first activities. */
static int leave_unplaced(struct join *j, const struct graph_work *w, uint64_t node, const struct launch *l)
{
	const struct unplaced u = {.sum = w->work.sum,
				   .edge_id = l->edge_id,
				   .ts_ns = l->ts_ns,
				   .node = node,
				   .launch = (uint32_t)(l - buf_at(&j->launches, struct launch, 0))};

	if (buf_count(&j->graphs.unplaced, u) >= WORKS_MAX)
		return 0;
	return buf_put(&j->graphs.unplaced, &u, sizeof(u));
}

/* Moves activities to the operators that have come since. */
static void place_late(struct join *j)
{
	struct buf *all = &j->graphs.unplaced;
	struct unplaced *u;
	struct launch *l;
	struct node *n;
	const uint64_t last_ns = all->len ? launch_at(j, j->nlaunches - 1)->ts_ns : 0;
	size_t i, kept = 0;

	for (i = 0; i < buf_count(all, *u); i++) {
		u = buf_at(all, struct unplaced, i);
		l = buf_at(&j->launches, struct launch, u->launch);
		n = node_at(j, u->node);
		if (l->edge_id != u->edge_id || l->ts_ns != u->ts_ns)
			continue;
		if (n->l.own) {
			join_take_self(j, l, &u->sum);
			place(j, &n->l, l, &u->sum);
		} else if (last_ns < u->ts_ns + LATE_NS) {
			*buf_at(all, struct unplaced, kept++) = *u;
		}
	}
	all->len = kept * sizeof(*u);
}

bool graphs_full(const struct join *j)
{
	return buf_count(&j->graphs.works, struct graph_work) >= WORKS_MAX;
}

int graphs_take(struct mdl *m, struct join *j, const struct graph_work *w)
{
	const struct mxbpf_agg_gpu_graph unseen = {
		.h.tgid = w->tgid, .sum = w->work.sum, .graph = w->work.graph, .captured = MXBPF_CAPTURED_UNSEEN};

	if (!hash_get(&j->graphs.node_index, w->work.node, w->tgid))
		return graphs_fold(m, &j->graphs, &unseen);
	return buf_put(&j->graphs.works, w, sizeof(*w)) ? -ENOMEM : 1;
}

static int settle_work(struct mdl *m, struct join *j, const struct graph_work *from)
{
	const uint64_t *at = hash_get(&j->graphs.node_index, from->work.node, from->tgid);
	struct node *n = at ? node_at(j, *at - 1) : NULL;
	struct graph_work w = *from;
	struct launch *l = join_launch_of(j, &w);
	int err = 0;

	if (n) {
		w.work.placed = n->l.own;
		n->graph = w.work.graph;
		err = graphs_touch(j, &n->l);
		work_add(&n->l.work, &w.work.sum);
		if (n->l.own)
			place(j, &n->l, l, &w.work.sum);
		else if (!err && l && n->l.ts_ns != NONE)
			err = leave_unplaced(j, &w, *at - 1, l);
	}
	return err ? err : join_work(m, j, &w);
}

/* A launch that made a node has no activity, and lacks none. */
static int count_captured(struct mdl *m, struct join *j)
{
	struct activity_join *c;
	struct hash_entry *e;
	uint64_t n;
	size_t pos = 0;

	while ((e = hash_next(&j->graphs.captured, &pos))) {
		c = work_counts(m, (uint32_t)e->a);
		if (!c)
			return -ENOMEM;
		n = c->without_work < e->val ? c->without_work : e->val;
		c->without_work -= n;
		e->val -= n;
	}
	return 0;
}

int graphs_settle(struct mdl *m, struct join *j)
{
	struct graphs *g = &j->graphs;
	size_t i;
	int err = count_captured(m, j);

	place_late(j);
	for (i = 0; !err && i < buf_count(&g->works, struct graph_work); i++)
		err = settle_work(m, j, buf_at(&g->works, struct graph_work, i));
	g->works.len = 0;
	for (i = 0; !err && i < buf_count(&g->changed, uint32_t); i++)
		err = settle_node(m, j, node_at(j, *buf_at(&g->changed, uint32_t, i)));
	g->changed.len = 0;
	return err;
}

/* ---- the state */

int graphs_copy(struct graphs *to, const struct graphs *from)
{
	return mdl_items_copy(&to->row_index, &to->rows, &from->row_index, &from->rows);
}

void graphs_clear(struct graphs *g)
{
	struct mxbpf_gpu_work none = {.launches = 0};
	size_t i;

	for (i = 0; i < buf_count(&g->rows, struct mxbpf_agg_gpu_graph); i++)
		buf_at(&g->rows, struct mxbpf_agg_gpu_graph, i)->sum = none;
}

void graphs_move(struct graphs *to, struct graphs *from)
{
	struct node *n;
	size_t i;

	MOVE(node_index);
	MOVE(nodes);
	MOVE(captured);
	for (i = 0; i < buf_count(&to->nodes, *n); i++) {
		n = buf_at(&to->nodes, struct node, i);
		memset(&n->l.work, 0, sizeof(n->l.work));
		memset(&n->l.self, 0, sizeof(n->l.self));
		memset(&n->put, 0, sizeof(n->put));
	}
}

void graphs_fini(struct graphs *g)
{
	mdl_items_fini(&g->node_index, &g->nodes);
	mdl_items_fini(&g->row_index, &g->rows);
	hash_fini(&g->captured);
	buf_fini(&g->unplaced);
	buf_fini(&g->changed);
	buf_fini(&g->works);
}
