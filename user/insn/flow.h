/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graph algorithm of the exit cut. It knows no code and no files. It finds the cheapest set of nodes and edges that
 * every path from node 0 to an exit passes exactly once, with nothing above a level after it.
 */
#ifndef INSN_FLOW_H
#define INSN_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#define FLOW_NONE UINT32_MAX

#define FLOW_LEVEL_LOOP	 2 /* the least level of a loop with calls */
#define FLOW_LEVEL_WORK	 5 /* work, or anything that may throw: never after a cut */
#define FLOW_LEVEL_THROW 9 /* leaves by an exception */

struct flow_edge {
	uint32_t to;
	bool cuttable; /* a jcc whose condition selects this edge */
};

/* A node's point is before its level counts: a call is cut at the call instruction. */
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

/* In order of preference. */
enum flow_mode {
	FLOW_NODES,	 /* exactly one hit per call */
	FLOW_EDGES,	 /* also edges: some hits do not count */
	FLOW_LOOP_EXITS, /* also edges out of loops: one hit per iteration */
	FLOW_MODES,
};

struct flow_pick {
	uint32_t node;
	uint32_t edge; /* index into edges; FLOW_NONE: the node itself */
};

struct flow; /* a graph and the results for it */

/* Raises the levels of nodes in loops. Borrows g until flow_free(). NULL: out of memory. */
struct flow *flow_new(struct flow_graph *g);
void flow_free(struct flow *f);

/*
 * Finds the latest of the cheapest cuts. Returns the number of picks (at most max), 0 if there is no cut or only larger
 * ones, or -ENOMEM.
 */
int flow_cut(struct flow *f, unsigned level, enum flow_mode mode, struct flow_pick *picks, unsigned max);

#endif
