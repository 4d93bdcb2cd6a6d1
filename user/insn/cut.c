// SPDX-License-Identifier: Apache-2.0
#include "insn/cut.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "insn/cfg.h"
#include "insn/flow.h"

#define LEVEL_MAX    4
#define ROUNDS	     4	/* rounds of merging callees */
#define EPILOGUE_MAX 30 /* limit of instructions between the last call and the return */

/*
 * The control flow in straight pieces. Nothing branches within a piece, so one point stands for all of its
 * instructions.
 */
struct pieces {
	const struct cfg *g;
	uint32_t entry_point; /* the instruction of the function's entry probe */
	uint32_t *node_of;    /* node of each instruction */
	struct buf last;      /* uint32_t: last instruction of each node */
	struct buf point;     /* uint32_t: latest instruction of each node that may be probed, or CFG_NONE */
	struct buf nodes, edges;
};

/* The entry is probed at its first instruction, or at the first emulated one. */
static uint32_t find_entry_point(const struct cfg *g)
{
	for (uint32_t i = 0; i < g->frags[0].nops; i++)
		if (cfg_op(g, i)->emulated)
			return i;
	return 0;
}

static bool may_probe(const struct pieces *p, uint32_t i)
{
	const struct cfg_op *op = cfg_op(p->g, i);
	const struct cfg_frag *frag = &p->g->frags[op->frag];
	unsigned base = cfg_cfa(frag, op->va).base;

	/* If the CFA is read from memory, no offset leads from it to the CFA of a callee's caller. */
	return op->emulated && i != p->entry_point && i != 0 && base != ELF_CFA_OTHER &&
	       (base != ELF_CFA_AT_RBP || !frag->cfa_add);
}

static bool goes_straight_on(const struct cfg_op *op, uint32_t i)
{
	return op->next == i + 1 && op->taken == CFG_NONE && op->pad == CFG_NONE && !op->ncases && !op->exit &&
	       !op->level;
}

static int cut_into_nodes(struct pieces *p)
{
	uint32_t n = (uint32_t)buf_count(&p->g->ops, struct cfg_op), point = CFG_NONE;

	for (uint32_t i = 0; i < n; i++) {
		const struct cfg_op *op = cfg_op(p->g, i);

		if (!op->reached)
			continue;
		p->node_of[i] = (uint32_t)buf_count(&p->last, uint32_t);
		if (may_probe(p, i))
			point = i;
		if (goes_straight_on(op, i) && !cfg_op(p->g, i + 1)->joined)
			continue;
		if (buf_put(&p->last, &i, sizeof(i)) || buf_put(&p->point, &point, sizeof(point)))
			return -ENOMEM;
		point = CFG_NONE;
	}
	return 0;
}

static int put_edge(struct pieces *p, uint32_t to, bool cuttable)
{
	struct flow_edge edge = {.cuttable = cuttable};

	if (to == CFG_NONE)
		return 0;
	edge.to = p->node_of[to];
	return buf_put(&p->edges, &edge, sizeof(edge));
}

/* Adds a node. Its first edge is the branch taken. */
static int add_node(struct pieces *p, uint32_t last, uint32_t point)
{
	const struct cfg_op *op = cfg_op(p->g, last);
	bool decides = op->kind == CFG_JCC && point == last && op->taken != op->next;
	struct flow_node node = {
		.first_edge = (uint32_t)buf_count(&p->edges, struct flow_edge),
		.level = op->level,
		.cuttable = point != CFG_NONE,
		.exit = op->exit,
	};
	int err = put_edge(p, op->taken, decides);

	if (!err)
		err = put_edge(p, op->next, decides);
	if (!err)
		err = put_edge(p, op->pad, false);
	for (uint32_t k = 0; !err && k < op->ncases; k++)
		err = put_edge(p, *buf_at(&p->g->cases, uint32_t, op->first_case + k), false);
	node.nedges = (uint32_t)buf_count(&p->edges, struct flow_edge) - node.first_edge;
	return err ? err : buf_put(&p->nodes, &node, sizeof(node));
}

static int make_pieces(struct pieces *p, const struct cfg *g)
{
	int err;

	memset(p, 0, sizeof(*p));
	p->g = g;
	p->entry_point = find_entry_point(g);
	p->node_of = calloc(buf_count(&g->ops, struct cfg_op), sizeof(*p->node_of));
	err = p->node_of ? cut_into_nodes(p) : -ENOMEM;
	for (size_t i = 0; !err && i < buf_count(&p->last, uint32_t); i++)
		err = add_node(p, *buf_at(&p->last, uint32_t, i), *buf_at(&p->point, uint32_t, i));
	return err;
}

static void free_pieces(struct pieces *p)
{
	free(p->node_of);
	buf_fini(&p->last);
	buf_fini(&p->point);
	buf_fini(&p->nodes);
	buf_fini(&p->edges);
}

_Static_assert((int)CUT_CFA_RSP == ELF_CFA_RSP && (int)CUT_CFA_RBP == ELF_CFA_RBP &&
		       (int)CUT_CFA_AT_RBP == ELF_CFA_AT_RBP,
	       "a CFA is told in the same way");

static struct cut_point make_point(const struct pieces *p, const struct flow_pick *pick)
{
	const struct cfg_op *op = cfg_op(p->g, *buf_at(&p->point, uint32_t, pick->node));
	const struct cfg_frag *frag = &p->g->frags[op->frag];
	struct elf_cfa cfa = cfg_cfa(frag, op->va);
	struct cut_point point = {
		.va = op->va,
		.cfa_base = cfa.base, /* the enums have the same numbers */
		.cfa_off = cfa.off + frag->cfa_add,
		.merged = frag->merged,
	};

	if (pick->edge != FLOW_NONE) {
		point.cond = (uint8_t)(1 + op->cond);
		point.cond_taken = pick->edge == buf_at(&p->nodes, struct flow_node, pick->node)->first_edge;
	}
	return point;
}

/* Returns 0 with out set, -ENOENT or -ENOMEM. */
static int find_points(const struct pieces *p, struct cut *out)
{
	struct flow_graph graph = {
		.nodes = (struct flow_node *)p->nodes.data,
		.edges = (struct flow_edge *)p->edges.data,
		.nnodes = (uint32_t)buf_count(&p->nodes, struct flow_node),
		.nedges = (uint32_t)buf_count(&p->edges, struct flow_edge),
	};
	struct flow_pick picks[CUT_POINTS_MAX];
	struct flow *flow = flow_new(&graph);
	int n = 0;

	if (!flow)
		return -ENOMEM;
	for (int mode = FLOW_NODES; !n && mode < FLOW_MODES; mode++)
		for (out->level = 0; !n && out->level <= LEVEL_MAX; out->level += !n)
			n = flow_cut(flow, out->level, mode, picks, CUT_POINTS_MAX);
	flow_free(flow);
	for (int i = 0; i < n; i++)
		out->points[i] = make_point(p, &picks[i]);
	out->npoints = (unsigned)n;
	out->tail_exit = p->g->tail_exit;
	return n ? 0 : -ENOENT;
}

/* ---- merged callees */

/* Returns true if only moves and pops follow up to the return, where nothing could be probed. */
static bool nothing_follows(const struct cfg *g, uint32_t i)
{
	i = cfg_op(g, i)->next;
	for (unsigned n = 0; i != CFG_NONE && n < EPILOGUE_MAX; n++) {
		const struct cfg_op *op = cfg_op(g, i);

		if (op->kind == CFG_RET)
			return true;
		if (op->kind != CFG_PLAIN || op->emulated)
			return false;
		i = op->next;
	}
	return false;
}

static bool is_merged(const struct buf *merges, uint64_t va)
{
	for (size_t i = 0; i < buf_count(merges, uint64_t); i++)
		if (*buf_at(merges, uint64_t, i) == va)
			return true;
	return false;
}

/* Appends branches whose callees should be merged. Returns 0, -ENOENT if there are no new ones, or -ENOMEM. */
static int collect_merges(const struct cfg *g, struct buf *merges)
{
	size_t before = merges->len;

	for (uint32_t i = 0; i < buf_count(&g->ops, struct cfg_op); i++) {
		const struct cfg_op *op = cfg_op(g, i);
		bool tail = op->kind == CFG_JMP && op->exit;

		if (!op->reached || (!tail && (op->kind != CFG_CALL || !nothing_follows(g, i) || !cfg_only_call(g, i))))
			continue;
		if (!is_merged(merges, op->va) && buf_put(merges, &op->va, sizeof(op->va)))
			return -ENOMEM;
	}
	return merges->len > before ? 0 : -ENOENT;
}

/* ---- search */

static int explain(const struct cfg *g, struct cut *out)
{
	const char *why = "it never returns";
	unsigned long long va = 0;

	for (uint32_t i = 0; i < buf_count(&g->ops, struct cfg_op); i++) {
		const struct cfg_op *op = cfg_op(g, i);

		if (!op->reached || !op->exit)
			continue;
		if (op->level >= FLOW_LEVEL_WORK) {
			va = op->va;
			break;
		}
		why = "too few instructions that may be probed lie between its work and its returns";
	}
	if (va)
		snprintf(out->why, sizeof(out->why), "its work goes on in a tail call at 0x%llx", va);
	else
		snprintf(out->why, sizeof(out->why), "%s", why);
	return -ENOENT;
}

_Static_assert(CUT_PARTS_MAX == CFG_FRAGS_MAX, "each fragment is a part");

static void tell_parts(const struct cfg *g, struct cut *out)
{
	for (unsigned i = 0; i < g->nfrags; i++)
		out->parts[i] =
			(struct cut_part){g->frags[i].fde.start_va, g->frags[i].fde.end_va - g->frags[i].fde.start_va};
	out->nparts = g->nfrags;
}

/* Makes one attempt. `merges` holds the callees to merge. If there is no cut (-EAGAIN), more are appended to it. */
static int attempt(struct elf *elf, uint64_t entry_va, struct buf *merges, struct cut *out)
{
	struct pieces p = {0};
	struct cfg g;
	int err = cfg_build(&g, elf, entry_va, merges), more;

	snprintf(out->why, sizeof(out->why), "%s", g.why);
	if (!err)
		err = make_pieces(&p, &g);
	if (!err) {
		tell_parts(&g, out);
		err = find_points(&p, out);
		if (err == -ENOENT) {
			explain(&g, out);
			more = collect_merges(&g, merges);
			err = more ? more : -EAGAIN;
		}
	}
	free_pieces(&p);
	cfg_fini(&g);
	return err;
}

int cut_find(struct elf *elf, uint64_t entry_va, struct cut *out, struct err *e)
{
	struct buf merges = {0};
	struct cut next;
	int err, again;

	memset(out, 0, sizeof(*out));
	err = again = attempt(elf, entry_va, &merges, out);
	for (unsigned round = 1; again == -EAGAIN && round < ROUNDS; round++) {
		memset(&next, 0, sizeof(next));
		again = attempt(elf, entry_va, &merges, &next);
		if (!again)
			*out = next;
	}
	buf_fini(&merges);
	if (err == -EAGAIN)
		err = again ? -ENOENT : 0;
	if (again == -ENOMEM)
		err = -ENOMEM;
	if (!err) {
		out->why[0] = '\0';
		return 0;
	}
	if (!out->why[0])
		snprintf(out->why, sizeof(out->why), "%s", strerror(-err));
	return err_set(e, ERR_TARGET, err, "no exit cut for 0x%llx: %s", (unsigned long long)entry_va, out->why);
}
