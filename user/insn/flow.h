/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graph side of the exit cut, free of code and files: the cheapest set of nodes and edges that every path from
 * node 0 to an exit passes exactly once, with nothing heavier than a level behind it.
 */
#ifndef INSN_FLOW_H
#define INSN_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#define FLOW_NONE UINT32_MAX

#define FLOW_LEVEL_LOOP	 2 /* the least level of a loop that calls anything */
#define FLOW_LEVEL_WORK	 5 /* work, or what may throw: never behind a cut */
#define FLOW_LEVEL_THROW 9 /* leaves by an exception */

struct flow_edge {
	uint32_t to;
	bool cuttable; /* a jcc whose condition tells this edge from the other */
};

/* The point of a node lies before its level: a call is cut at the call instruction. */
struct flow_node {
	uint32_t first_edge, nedges;
	uint8_t level;
	bool cuttable;
	bool exit; /* a normal return */
};

struct flow_graph {
	struct flow_node *nodes;
	struct flow_edge *edges;
	uint32_t nnodes, nedges;
};

/* In the order in which they are preferred. */
enum flow_mode {
	FLOW_NODES,	 /* exactly one hit a call */
	FLOW_EDGES,	 /* edges too: hits that do not count */
	FLOW_LOOP_EXITS, /* edges out of loops too: a hit an iteration */
	FLOW_MODES,
};

struct flow_pick {
	uint32_t node;
	uint32_t edge; /* index into edges; FLOW_NONE: the node itself */
};

struct flow; /* a graph and what was found out about it */

/* Raises the levels of nodes in loops; borrows g until flow_free(). NULL: -ENOMEM. */
struct flow *flow_new(struct flow_graph *g);
void flow_free(struct flow *f);

/* The latest of the cheapest. Number of picks, at most max; 0: no such set, or only larger ones; -ENOMEM. */
int flow_cut(struct flow *f, unsigned level, enum flow_mode mode, struct flow_pick *picks, unsigned max);

#endif
