/* SPDX-License-Identifier: Apache-2.0 */
/* Compares flow_cut() on random graphs with a search of all subsets of their points. */
#include "unit.h"

#include "insn/flow.h"

#define GRAPHS	   3000
#define NODES_MAX  9
#define EDGES_MAX  24
#define POINTS_MAX 11
#define PICKS_MAX  4

struct graph {
	struct flow_graph g;
	struct flow_node nodes[NODES_MAX];
	struct flow_edge edges[EDGES_MAX];
	uint8_t level[NODES_MAX]; /* after loops are taken into account */
	bool reach[NODES_MAX][NODES_MAX];
};

/* Node i is point i; edge i is point NODES_MAX + i. */
struct set {
	uint64_t points;
	unsigned cost;
	uint32_t after; /* nodes that come after the set or are in it */
};

static unsigned rnd(unsigned n)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state >> 33) % n;
}

static void put_edge(struct graph *t, uint32_t to, bool cuttable)
{
	t->edges[t->g.nedges++] = (struct flow_edge){to, cuttable};
}

/* Makes mostly forward edges, as in real code; calls that throw go to later nodes; every node should be reachable. */
static void make_nodes(struct graph *t, unsigned n)
{
	static const uint8_t levels[] = {0, 0, 0, 0, 1, 3, 5, 9};

	t->g = (struct flow_graph){t->nodes, t->edges, n, 0};
	for (unsigned i = 0; i < n; i++) {
		struct flow_node *node = &t->nodes[i];

		*node = (struct flow_node){.first_edge = t->g.nedges,
					   .level = levels[rnd(8)],
					   .cuttable = rnd(2),
					   .exit = i + 1 == n || !rnd(6)};
		if (i + 1 < n && !(node->exit && rnd(2)))
			put_edge(t, i + 1, false);
		if (rnd(2) && t->g.nedges + 2 < EDGES_MAX) {
			uint32_t to = rnd(5) ? i + rnd(n - i) : rnd(n);
			bool decides = node->cuttable && t->g.nedges > node->first_edge && to != i + 1 && !node->level;

			put_edge(t, to, decides);
			if (decides)
				t->edges[node->first_edge].cuttable = true;
		}
		node->nedges = t->g.nedges - node->first_edge;
	}
}

static void find_reach(struct graph *t)
{
	unsigned n = t->g.nnodes;

	memset(t->reach, 0, sizeof(t->reach));
	for (unsigned i = 0; i < n; i++)
		for (unsigned e = 0; e < t->nodes[i].nedges; e++)
			t->reach[i][t->edges[t->nodes[i].first_edge + e].to] = true;
	for (unsigned k = 0; k < n; k++)
		for (unsigned i = 0; i < n; i++)
			for (unsigned j = 0; j < n; j++)
				t->reach[i][j] |= t->reach[i][k] && t->reach[k][j];
}

static void find_levels(struct graph *t)
{
	for (unsigned i = 0; i < t->g.nnodes; i++) {
		unsigned most = t->nodes[i].level;

		for (unsigned j = 0; j < t->g.nnodes; j++)
			if (t->reach[i][j] && t->reach[j][i] && t->nodes[j].level > most)
				most = t->nodes[j].level;
		if (t->reach[i][i])
			most = !most ? FLOW_LEVEL_WORK : most < FLOW_LEVEL_LOOP ? FLOW_LEVEL_LOOP : most;
		t->level[i] = (uint8_t)most;
	}
}

static bool all_reached(const struct graph *t)
{
	for (unsigned i = 1; i < t->g.nnodes; i++)
		if (!t->reach[0][i])
			return false;
	return true;
}

static unsigned cost_of(const struct graph *t, unsigned point, enum flow_mode mode)
{
	if (point < NODES_MAX)
		return point < t->g.nnodes && t->nodes[point].cuttable ? 10 : 0;
	point -= NODES_MAX;
	if (point >= t->g.nedges || !t->edges[point].cuttable || mode == FLOW_NODES)
		return 0;
	for (unsigned i = 0; i < t->g.nnodes; i++)
		if (point >= t->nodes[i].first_edge && point < t->nodes[i].first_edge + t->nodes[i].nedges &&
		    t->reach[i][i])
			return mode == FLOW_LOOP_EXITS ? 60 : 0;
	return 11;
}

static bool in_set(uint64_t points, unsigned point)
{
	return points >> point & 1;
}

struct walk {
	const struct graph *t;
	uint64_t points;
	unsigned level;
	bool seen[NODES_MAX][2]; /* [node][number of points passed before it] */
	bool ok;
};

static void walk_from(struct walk *w, unsigned i, unsigned passed)
{
	const struct flow_node *node = &w->t->nodes[i];

	if (w->seen[i][passed])
		return;
	w->seen[i][passed] = true;
	passed += in_set(w->points, i);
	if (passed > 1 || (passed && w->t->level[i] > w->level) || (!passed && node->exit)) {
		w->ok = false;
		return;
	}
	for (unsigned e = node->first_edge; e < node->first_edge + node->nedges; e++) {
		unsigned there = passed + in_set(w->points, NODES_MAX + e);

		if (there > 1)
			w->ok = false;
		else
			walk_from(w, w->t->edges[e].to, there);
	}
}

/* Returns true if every path to an exit passes exactly one point and no node above the level comes after it. */
static bool is_cut(const struct graph *t, uint64_t points, unsigned level, uint32_t *after)
{
	struct walk w = {.t = t, .points = points, .level = level, .ok = true};

	walk_from(&w, 0, 0);
	*after = 0;
	for (unsigned i = 0; i < t->g.nnodes; i++)
		*after |= (uint32_t)(w.seen[i][1] || in_set(points, i)) << i;
	return w.ok;
}

/* Finds all cuts of the least cost, of any size. */
static unsigned try_all(const struct graph *t, unsigned level, enum flow_mode mode, struct set *best, unsigned max)
{
	unsigned points[NODES_MAX + EDGES_MAX], n = 0, found = 0;

	for (unsigned p = 0; p < NODES_MAX + EDGES_MAX; p++)
		if (cost_of(t, p, mode))
			points[n++] = p;
	for (uint32_t choice = 1; choice < 1u << n; choice++) {
		struct set s = {0};

		for (unsigned i = 0; i < n; i++) {
			s.points |= (uint64_t)(choice >> i & 1) << points[i];
			s.cost += choice >> i & 1 ? cost_of(t, points[i], mode) : 0;
		}
		if (found && s.cost > best[0].cost)
			continue;
		if (!is_cut(t, s.points, level, &s.after))
			continue;
		if (found && s.cost < best[0].cost)
			found = 0;
		if (found < max)
			best[found++] = s;
	}
	return found;
}

static struct set set_of(const struct graph *t, const struct flow_pick *picks, int n, enum flow_mode mode)
{
	struct set s = {0};

	for (int i = 0; i < n; i++) {
		unsigned p = picks[i].edge == FLOW_NONE ? picks[i].node : NODES_MAX + picks[i].edge;

		s.points |= (uint64_t)1 << p;
		s.cost += cost_of(t, p, mode);
	}
	return s;
}

static bool has_exit(const struct graph *t)
{
	for (unsigned i = 0; i < t->g.nnodes; i++)
		if (t->nodes[i].exit)
			return true;
	return false;
}

static struct {
	unsigned graphs, cuts, none, wrong, dear, early, hidden;
} seen;

static void judge(struct graph *t, struct flow *f, unsigned level, enum flow_mode mode)
{
	struct flow_pick picks[PICKS_MAX];
	static struct set best[256];
	unsigned nbest = try_all(t, level, mode, best, 256);
	int n = flow_cut(f, level, mode, picks, PICKS_MAX);
	struct set s = set_of(t, picks, n, mode);

	if (!n) {
		seen.none++;
		/* Then no cut exists, or none with at most PICKS_MAX points at that cost. */
		for (unsigned i = 0; i < nbest; i++)
			seen.hidden += __builtin_popcountll(best[i].points) <= PICKS_MAX && nbest == 1;
		return;
	}
	seen.cuts++;
	seen.wrong += !is_cut(t, s.points, level, &s.after);
	seen.dear += !nbest || s.cost != best[0].cost;
	for (unsigned i = 0; i < nbest; i++)
		seen.early += (s.after & ~best[i].after) != 0;
}

static void try_graph(void)
{
	static const unsigned levels[] = {0, 1, 2, 4};
	unsigned points = 0;
	struct graph t;
	struct flow *f;

	make_nodes(&t, 1 + rnd(NODES_MAX));
	find_reach(&t);
	for (unsigned p = 0; p < NODES_MAX + EDGES_MAX; p++)
		points += cost_of(&t, p, FLOW_LOOP_EXITS) > 0;
	if (!all_reached(&t) || !has_exit(&t) || points > POINTS_MAX)
		return;
	seen.graphs++;
	find_levels(&t);
	f = flow_new(&t.g);
	for (unsigned i = 0; f && i < sizeof(levels) / sizeof(*levels); i++)
		for (int mode = FLOW_NODES; mode < FLOW_MODES; mode++)
			judge(&t, f, levels[i], mode);
	flow_free(f);
}

int main(void)
{
	for (unsigned i = 0; i < GRAPHS; i++)
		try_graph();
	printf("# %u graphs, %u cuts, %u times none\n", seen.graphs, seen.cuts, seen.none);
	TEST("every path to an exit passes exactly one point of a cut, and no node above the level follows it")
	{
		CHECK(seen.graphs > GRAPHS / 2 && seen.cuts > GRAPHS);
		CHECK(seen.wrong == 0);
	}
	TEST("no other cut is cheaper, and none of the same cost is later")
	{
		CHECK(seen.dear == 0);
		CHECK(seen.early == 0);
	}
	TEST("flow_cut() fails only if no cut exists") CHECK(seen.hidden == 0);
	UNIT_MAIN_END;
}
