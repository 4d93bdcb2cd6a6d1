// SPDX-License-Identifier: Apache-2.0
/*
 * Finds a minimum cut by augmenting paths. Each node becomes two vertices with its point between them. An arc that may
 * not be cut has infinite capacity. The reverse of every arc is infinite too, so that the far side contains all
 * successors: no path returns over the cut, each path crosses it once, and no instruction of a loop can be in it.
 */
#include "insn/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define INFINITE       (1 << 28)
#define COST_NODE      10
#define COST_EDGE      11
#define COST_LOOP_EXIT 60

struct arc {
	uint32_t to, next; /* `next` is the next arc of the same vertex */
	int32_t cap;
};

struct flow {
	struct flow_graph *g;
	uint32_t *loop; /* of each node: 0, or the number of its loop */
	/* The network of one question. Arcs come in pairs, forward and backward. */
	struct arc *arcs;
	uint32_t narcs, nverts;
	uint32_t *head; /* first arc of each vertex */
	uint32_t *via;	/* the arc by which a search reached each vertex */
	uint32_t *queue;
};

/* ---- loops: strongly connected components by Tarjan's algorithm, without recursion */

struct tarjan {
	struct flow_graph *g;
	uint32_t *loop, *index, *low, *stack, *path, *at;
	uint32_t count, nstack, npath, nloops;
};

static bool has_edge_to_itself(const struct flow_graph *g, uint32_t v)
{
	for (uint32_t i = 0; i < g->nodes[v].nedges; i++)
		if (g->edges[g->nodes[v].first_edge + i].to == v)
			return true;
	return false;
}

static void close_component(struct tarjan *t, uint32_t root)
{
	uint32_t first = t->nstack;
	bool loop;

	while (t->stack[--first] != root)
		;
	loop = t->nstack - first > 1 || has_edge_to_itself(t->g, root);
	t->nloops += loop;
	for (uint32_t i = first; i < t->nstack; i++) {
		t->loop[t->stack[i]] = loop ? t->nloops : 0;
		t->low[t->stack[i]] = FLOW_NONE; /* done */
	}
	t->nstack = first;
}

static void enter_node(struct tarjan *t, uint32_t v)
{
	t->index[v] = t->low[v] = ++t->count;
	t->at[v] = 0;
	t->stack[t->nstack++] = v;
	t->path[t->npath++] = v;
}

static void find_loops(struct tarjan *t)
{
	enter_node(t, 0);
	while (t->npath) {
		uint32_t v = t->path[t->npath - 1], w;
		const struct flow_node *n = &t->g->nodes[v];

		if (t->at[v] < n->nedges) {
			w = t->g->edges[n->first_edge + t->at[v]++].to;
			if (!t->index[w])
				enter_node(t, w);
			else if (t->low[w] != FLOW_NONE && t->index[w] < t->low[v])
				t->low[v] = t->index[w];
			continue;
		}
		t->npath--;
		if (t->npath) {
			w = t->path[t->npath - 1];
			if (t->low[v] < t->low[w])
				t->low[w] = t->low[v];
		}
		if (t->low[v] == t->index[v])
			close_component(t, v);
	}
}

/* Raises the levels of loops. A loop without calls is work by itself. A loop with calls frees something many times. */
static int raise_levels(struct flow_graph *g, const uint32_t *loop, uint32_t nloops)
{
	uint8_t *highest = calloc(nloops + 1, 1);

	if (!highest)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->nnodes; i++)
		if (g->nodes[i].level > highest[loop[i]])
			highest[loop[i]] = g->nodes[i].level;
	for (uint32_t i = 1; i <= nloops; i++) {
		if (!highest[i])
			highest[i] = FLOW_LEVEL_WORK;
		else if (highest[i] < FLOW_LEVEL_LOOP)
			highest[i] = FLOW_LEVEL_LOOP;
	}
	for (uint32_t i = 0; i < g->nnodes; i++)
		if (loop[i])
			g->nodes[i].level = highest[loop[i]];
	free(highest);
	return 0;
}

static int mark_loops(struct flow *f)
{
	uint32_t n = f->g->nnodes;
	uint32_t *words = calloc(n, 5 * sizeof(*words));
	struct tarjan t = {.g = f->g, .loop = f->loop};
	int err;

	if (!words)
		return -ENOMEM;
	t.index = words;
	t.low = words + n;
	t.stack = words + 2 * (size_t)n;
	t.path = words + 3 * (size_t)n;
	t.at = words + 4 * (size_t)n;
	find_loops(&t);
	err = raise_levels(f->g, f->loop, t.nloops);
	free(words);
	return err;
}

struct flow *flow_new(struct flow_graph *g)
{
	struct flow *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->g = g;
	f->nverts = 2 * g->nnodes + 2;
	f->loop = calloc(g->nnodes, sizeof(*f->loop));
	/* Each node has its own pair and one pair to an end, each edge has a pair, and the entry has one. */
	f->arcs = calloc(6 * (size_t)g->nnodes + 2 * (size_t)g->nedges + 2, sizeof(*f->arcs));
	f->head = calloc(f->nverts, 3 * sizeof(*f->head));
	if (!f->loop || !f->arcs || !f->head || mark_loops(f)) {
		flow_free(f);
		return NULL;
	}
	f->via = f->head + f->nverts;
	f->queue = f->via + f->nverts;
	return f;
}

void flow_free(struct flow *f)
{
	if (!f)
		return;
	free(f->loop);
	free(f->arcs);
	free(f->head);
	free(f);
}

/* ---- the network */

static uint32_t vert_in(uint32_t node)
{
	return 2 * node;
}

static uint32_t vert_out(uint32_t node)
{
	return 2 * node + 1;
}

static uint32_t source(const struct flow *f)
{
	return f->nverts - 2;
}

static uint32_t sink(const struct flow *f)
{
	return f->nverts - 1;
}

static void add_arc(struct flow *f, uint32_t from, uint32_t to, int32_t cap, int32_t back)
{
	f->arcs[f->narcs] = (struct arc){to, f->head[from], cap};
	f->head[from] = f->narcs++;
	f->arcs[f->narcs] = (struct arc){from, f->head[to], back};
	f->head[to] = f->narcs++;
}

static int32_t edge_cost(const struct flow *f, uint32_t from, const struct flow_edge *e, enum flow_mode mode)
{
	if (!e->cuttable || mode == FLOW_NODES)
		return INFINITE;
	if (!f->loop[from])
		return COST_EDGE;
	return mode == FLOW_LOOP_EXITS ? COST_LOOP_EXIT : INFINITE;
}

/* Builds the network. Arc pair 2i belongs to node i, pair 2(nnodes + i) to edge i. */
static void build_network(struct flow *f, unsigned level, enum flow_mode mode)
{
	const struct flow_graph *g = f->g;

	f->narcs = 0;
	memset(f->head, 0xff, f->nverts * sizeof(*f->head));
	for (uint32_t i = 0; i < g->nnodes; i++)
		add_arc(f, vert_in(i), vert_out(i), g->nodes[i].cuttable ? COST_NODE : INFINITE, INFINITE);
	for (uint32_t i = 0; i < g->nnodes; i++) {
		const struct flow_node *n = &g->nodes[i];

		for (uint32_t j = n->first_edge; j < n->first_edge + n->nedges; j++)
			add_arc(f, vert_out(i), vert_in(g->edges[j].to), edge_cost(f, i, &g->edges[j], mode), INFINITE);
	}
	add_arc(f, source(f), vert_in(0), INFINITE, 0);
	for (uint32_t i = 0; i < g->nnodes; i++) {
		/* Nodes above the level must be before the cut. */
		if (g->nodes[i].level > level)
			add_arc(f, source(f), vert_out(i), INFINITE, 0);
		if (g->nodes[i].exit)
			add_arc(f, vert_out(i), sink(f), INFINITE, 0);
	}
}

/*
 * Searches breadth first along arcs with capacity left. Sets via[] of the vertices it reaches. Returns true if it
 * reaches the sink.
 */
static bool search(struct flow *f)
{
	uint32_t first = 0, last = 0;

	memset(f->via, 0xff, f->nverts * sizeof(*f->via));
	f->queue[last++] = source(f);
	while (first < last) {
		uint32_t v = f->queue[first++];

		for (uint32_t a = f->head[v]; a != FLOW_NONE; a = f->arcs[a].next) {
			uint32_t to = f->arcs[a].to;

			if (f->arcs[a].cap <= 0 || f->via[to] != FLOW_NONE || to == source(f))
				continue;
			f->via[to] = a;
			if (to == sink(f))
				return true;
			f->queue[last++] = to;
		}
	}
	return false;
}

/* Augments one path and returns its capacity. INFINITE means that no cut exists. */
static int32_t augment(struct flow *f)
{
	int32_t room = INFINITE;

	for (uint32_t v = sink(f); v != source(f); v = f->arcs[f->via[v] ^ 1].to)
		if (f->arcs[f->via[v]].cap < room)
			room = f->arcs[f->via[v]].cap;
	for (uint32_t v = sink(f); v != source(f); v = f->arcs[f->via[v] ^ 1].to) {
		f->arcs[f->via[v]].cap -= room;
		f->arcs[f->via[v] ^ 1].cap += room;
	}
	return room;
}

/*
 * Marks in via[] the vertices that still reach the sink. This is the smallest far side, and therefore the latest cut.
 */
static void mark_far_side(struct flow *f)
{
	uint32_t first = 0, last = 0;

	memset(f->via, 0, f->nverts * sizeof(*f->via));
	f->via[sink(f)] = 1;
	f->queue[last++] = sink(f);
	while (first < last) {
		uint32_t v = f->queue[first++];

		for (uint32_t a = f->head[v]; a != FLOW_NONE; a = f->arcs[a].next) {
			uint32_t from = f->arcs[a].to;

			if (f->arcs[a ^ 1].cap <= 0 || f->via[from])
				continue;
			f->via[from] = 1;
			f->queue[last++] = from;
		}
	}
}

static bool crosses(const struct flow *f, uint32_t pair)
{
	return f->via[f->arcs[2 * pair].to] && !f->via[f->arcs[2 * pair + 1].to];
}

static int flow_collect(struct flow *f, struct flow_pick *picks, unsigned max)
{
	const struct flow_graph *g = f->g;
	uint32_t pair = g->nnodes;
	unsigned n = 0;

	mark_far_side(f);
	for (uint32_t i = 0; i < g->nnodes; i++) {
		if (crosses(f, i)) {
			if (n == max)
				return 0;
			picks[n++] = (struct flow_pick){i, FLOW_NONE};
		}
		for (uint32_t j = 0; j < g->nodes[i].nedges; j++, pair++) {
			if (!crosses(f, pair))
				continue;
			if (n == max)
				return 0;
			picks[n++] = (struct flow_pick){i, g->nodes[i].first_edge + j};
		}
	}
	return (int)n;
}

int flow_cut(struct flow *f, unsigned level, enum flow_mode mode, struct flow_pick *picks, unsigned max)
{
	int32_t total = 0, most = (int32_t)max * (mode == FLOW_LOOP_EXITS ? COST_LOOP_EXIT : COST_EDGE);

	build_network(f, level, mode);
	while (search(f)) {
		int32_t room = augment(f);

		total += room;
		if (room >= INFINITE / 2 || total > most)
			return 0;
	}
	return total ? flow_collect(f, picks, max) : 0;
}
