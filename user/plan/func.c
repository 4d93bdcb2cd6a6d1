// SPDX-License-Identifier: Apache-2.0
/* Turns a function into probes: its entry and, for spans that end by a cut, its exits. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "insn/cut.h"
#include "mxbpf_name.h"
#include "mxbpf_table.h"
#include "plan/priv.h"

static const struct mxbpf_row cut_row = {.action = MXBPF_ACT_CLOSE_CUT},
			      allocated_row = {.action = MXBPF_ACT_ALLOCATED};

static int add_site(struct plan *plan, const struct plan_probe *p, const struct mxbpf_row *row, uint64_t off,
		    uint64_t cookie)
{
	struct plan_site site = {p, row, p->lib, off, cookie};

	return p->wanted ? buf_put(&plan->sites, &site, sizeof(site)) : 0;
}

int plan_add_site(struct plan *plan, const struct plan_probe *p, uint64_t off)
{
	return add_site(plan, p, &plan->rows[p - plan->probes], off, 0);
}

uint64_t plan_cut_cookie(uint64_t func, const struct cut_point *c)
{
	return func | (uint64_t)c->cond << MXBPF_CUT_COND_SHIFT | (c->cond_taken ? MXBPF_CUT_TAKEN : 0) |
	       (c->merged ? MXBPF_CUT_MERGED : 0) | (c->cfa_base != CUT_CFA_RSP ? MXBPF_CUT_RBP : 0) |
	       (c->cfa_base == CUT_CFA_AT_RBP ? MXBPF_CUT_AT : 0) |
	       (uint64_t)(int64_t)c->cfa_off << MXBPF_CUT_OFF_SHIFT;
}

/* Returns true if one of these offsets is taken by a function that shares code. A link accepts an offset only once. */
static bool taken(const struct plan *plan, const struct plan_probe *p, const uint64_t *offs, unsigned n)
{
	const struct plan_site *sites = (const struct plan_site *)plan->sites.data;
	size_t i, k;

	/* Shared code is close by, so a function that was planned long ago does not reach here. */
	for (i = buf_count(&plan->sites, struct plan_site); i-- > 0;)
		for (k = 0; k < n; k++)
			if (sites[i].off == offs[k] && sites[i].lib == p->lib && sites[i].row == &cut_row)
				return true;
	return false;
}

/* Adds the probes of a cut. Returns -ENOENT if the function has no cut of its own. */
static int add_cut(struct plan *plan, struct plan_probe *p, struct elf *elf, uint64_t va, uint64_t func, bool *tail)
{
	const struct mxbpf_row *row = p->row->row.action == MXBPF_ACT_ALLOC ? &allocated_row : &cut_row;
	uint64_t offs[CUT_POINTS_MAX];
	struct cut cut;
	unsigned i;
	int err = func >= MXBPF_FUNCS_MAX ? -ENOENT : plan_cut(plan, elf, va, &cut);

	if (err)
		return err == -ENOMEM ? err : -ENOENT;
	for (i = 0; i < cut.npoints; i++)
		if (elf_exec_off(elf, cut.points[i].va, &offs[i]))
			return -ENOENT;
	if (taken(plan, p, offs, cut.npoints))
		return -ENOENT;
	for (i = 0; !err && i < cut.npoints; i++)
		err = add_site(plan, p, row, offs[i], plan_cut_cookie(func, &cut.points[i]));
	*tail = cut.tail_exit;
	return err;
}

/*
 * Adds a return probe. The kernel runs it when the function has returned, so the frame address is the stack pointer. A
 * call may have no frame, because it was nested in another one (row.outermost).
 */
static int add_return(struct plan *plan, const struct plan_probe *p, uint64_t off, uint64_t func)
{
	struct plan_site site = {p, &cut_row, p->lib, off, func | MXBPF_CUT_MERGED};

	if (func >= MXBPF_FUNCS_MAX)
		return -ENOENT;
	return buf_put(&plan->sites, &site, sizeof(site));
}

uint64_t plan_text_id(unsigned tag, const char *text, size_t len)
{
	__u64 words[MXBPF_NAME_PART_BYTES / 8] = {0}, h = MXBPF_NAME_SEED + tag;
	size_t n;

	for (; len; text += n, len -= n) {
		n = len < MXBPF_NAME_TEXT_MAX ? len : MXBPF_NAME_TEXT_MAX;
		memcpy(words, text, n);
		h = mxbpf_name_fold(h, words, (uint32_t)n);
	}
	return mxbpf_name_id(h);
}

uint64_t plan_hash(const char *name)
{
	return plan_text_id(0, name, strlen(name));
}

/*
 * Returns the id of a planned name, or 0 without memory. Overloads of an operator have one text, so they share an id.
 */
static uint64_t name_id(struct plan *plan, const char *name)
{
	struct plan_name n = {.id = plan_hash(name)};

	if (plan_span_name(plan, n.id))
		return n.id;
	n.text = strdup(name);
	if (n.text && !buf_put(&plan->names, &n, sizeof(n)))
		return n.id;
	free(n.text);
	return 0;
}

/* Gives a function its number. Returns 0 or -ENOMEM. */
static int func_number(struct plan *plan, const char *name, const struct mxbpf_func_args *args, uint64_t *func)
{
	const struct mxbpf_func_args no_args = {0};
	uint64_t id = name ? name_id(plan, name) : 0, none = 0;

	if (!plan->funcs.len && !plan->first_func && /* number 0 means no function */
	    (buf_put(&plan->funcs, &none, sizeof(none)) || buf_put(&plan->args, &no_args, sizeof(no_args))))
		return -ENOMEM;
	*func = plan->first_func + buf_count(&plan->funcs, uint64_t);
	return (name && !id) || buf_put(&plan->funcs, &id, sizeof(id)) ||
			       buf_put(&plan->args, args ? args : &no_args, sizeof(*args))
		       ? -ENOMEM
		       : 0;
}

static struct mxbpf_func_args args_of(const struct plan *plan, const struct adp_probe *row, const struct plan_func *f)
{
	struct mxbpf_func_args args = {.n = 1};

	if (row->tensors_arg)
		args.args[0] = (struct mxbpf_arg){.kind = MXBPF_ARG_VECTOR,
						  .slot = row->tensors_arg - 1,
						  .opt = row->tensors_opt ? MXBPF_ARG_IF_THERE : MXBPF_ARG_ALWAYS,
						  .opt_off = row->tensors_opt};
	else if (row->values_arg && plan->version)
		args.args[0] = (struct mxbpf_arg){.kind = MXBPF_ARG_STACK, .slot = row->values_arg - 1};
	else
		return plan_args(plan->adp, f);
	return args;
}

int plan_add_caller(struct plan *plan, const struct plan_probe *p, const struct caller *c, const char *name)
{
	struct cut_point frame = {.cfa_base = c->cfa_base, .cfa_off = c->cfa_off};
	struct plan_caller caller = {.return_va = c->return_va};
	uint64_t func;

	if (!p->wanted)
		return 0;
	if (func_number(plan, name, NULL, &func))
		return -ENOMEM;
	caller.cookie = plan_cut_cookie(func, &frame);
	return buf_put(&plan->callers, &caller, sizeof(caller));
}

int plan_add_func(struct plan *plan, struct plan_probe *p, struct elf *elf, const struct plan_func *f)
{
	const struct mxbpf_func_args args = args_of(plan, p->row, f);
	const struct mxbpf_row *row = &plan->rows[p - plan->probes];
	struct mxbpf_row *endless = &plan->endless[p - plan->probes];
	uint64_t func;
	bool tail = false;
	int err;

	if (func_number(plan, f->name, &args, &func))
		return -ENOMEM;
	plan->nargless += (row->details & MXBPF_DETAIL_ARGS) && !args.n;
	if (!p->wanted) {
		p->nfuncs++;
		return 0;
	}
	*endless = *row;
	endless->end = MXBPF_END_NEXT;
	err = row->end != MXBPF_END_CUT ? 0
	      : p->returns		? add_return(plan, p, f->entry_off, func)
					: add_cut(plan, p, elf, f->va, func, &tail);
	if (err == -ENOENT && p->row->ended)
		return 0;
	if (err == -ENOENT) {
		row = endless;
		p->nendless++;
	} else if (err) {
		return err;
	}
	p->nfuncs++;
	return add_site(plan, p, row, f->entry_off, func | (tail ? MXBPF_FUNC_TAIL : 0));
}

void plan_merge_iteration_ends(struct plan *plan)
{
	struct plan_site *sites = (struct plan_site *)plan->sites.data, *s, *m;
	size_t i, k, kept = 0, n = buf_count(&plan->sites, struct plan_site);

	for (i = 0; i < n; i++) {
		m = &sites[i];
		for (k = 0; m->row && m->row->iteration_end[0] && m->row->action == MXBPF_ACT_NONE && k < n; k++) {
			struct mxbpf_row *shared, row;

			s = &sites[k];
			if (!s->row || s->row->action != MXBPF_ACT_OPEN || s->off != m->off || s->lib != m->lib)
				continue;
			shared = &plan->iteration_ends[s->probe - plan->probes];
			row = *s->row;
			memcpy(row.iteration_end, m->row->iteration_end, sizeof(row.iteration_end));
			/*
			 * A function with a cut and one without need different rows, so the second one keeps its own
			 * probe.
			 */
			if (shared->action && memcmp(shared, &row, sizeof(row)))
				break;
			*shared = row;
			s->row = shared;
			m->row = NULL;
			break;
		}
	}
	for (i = 0; i < n; i++)
		if (sites[i].row)
			sites[kept++] = sites[i];
	plan->sites.len = kept * sizeof(*sites);
}

static int ends_first(const void *a, const void *b)
{
	const struct plan_site *x = a, *y = b;
	bool ex = x->row->action == MXBPF_ACT_OPEN, ey = y->row->action == MXBPF_ACT_OPEN;

	return ex != ey ? ex - ey : x->off < y->off ? -1 : x->off > y->off;
}

void plan_order_sites(struct plan *plan)
{
	if (plan->sites.len)
		qsort(plan->sites.data, buf_count(&plan->sites, struct plan_site), sizeof(struct plan_site),
		      ends_first);
}
