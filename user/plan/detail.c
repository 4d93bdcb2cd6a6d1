// SPDX-License-Identifier: Apache-2.0
/* Finds the places that details read in this build and process. Details without a known place are removed. */
#include <errno.h>
#include <string.h>

#include "elf/unwind.h"
#include "insn/layout.h"
#include "plan/priv.h"

/* Calls fn for the rows of functions with a cut and of those without. */
static void each_row(struct plan *plan, void (*fn)(struct mxbpf_row *row, const void *arg), const void *arg)
{
	size_t i;

	for (i = 0; i < plan->nprobes; i++) {
		fn(&plan->rows[i], arg);
		if (plan->endless[i].action != MXBPF_ACT_NONE)
			fn(&plan->endless[i], arg);
	}
}

static void take_out(struct mxbpf_row *row, const void *detail)
{
	row->details &= (__u8) ~*(const unsigned *)detail;
}

struct node_offs {
	int32_t number, thread;
};

static void set_node_offs(struct mxbpf_row *row, const void *arg)
{
	const struct node_offs *offs = arg;

	if (row->seq.base == MXBPF_BASE_NONE)
		return;
	row->seq.off[row->seq.nderef - 1] = offs->number;
	row->seq_thread.off[row->seq_thread.nderef - 1] = offs->thread;
}

static int thread_variable(struct plan *plan, const char *symbol, struct mxbpf_tls *out, struct err *e)
{
	struct layout_tls tls;
	struct elf_sym sym;
	int err = elf_find_sym(plan->lib->elf, symbol, &sym, e);

	if (!err)
		err = layout_tls(plan->lib->elf, &sym, &tls, e);
	if (err)
		return err;
	*out = (struct mxbpf_tls){plan->lib->load_bias + tls.got_va, tls.add};
	return 0;
}

/* Reads the offsets of an autograd node from the code of the function that runs nodes. */
static int node_offsets(struct plan *plan, struct node_offs *offs, struct err *e)
{
	const struct plan_probe *p = plan->probes;
	struct elf_fde fde;
	struct elf_sym sym;
	int err;

	while (p < plan->probes + plan->nprobes &&
	       (!(p->row->row.span_flags & MXBPF_SPAN_BACKWARD) || p->spare || p->reason[0]))
		p++;
	if (p == plan->probes + plan->nprobes)
		return err_set(e, ERR_TARGET, -ENOENT, "backward nodes are not probed");
	err = elf_off_va(p->lib->elf, p->off - p->entry.delta_bytes, &sym.va);
	if (!err)
		err = elf_fde_find(p->lib->elf, sym.va, &fde, e);
	sym.size_bytes = err ? 0 : fde.end_va - sym.va;
	return err ? err : layout_node(p->lib->elf, &sym, &offs->number, &offs->thread, e);
}

/* Enables the join of forward and backward only if both ends are found. */
static void find_seq(struct plan *plan)
{
	const struct adp_seq *seq = &plan->adp->seq;
	const unsigned detail = MXBPF_DETAIL_SEQ;
	struct err *e = &plan->no_seq;
	struct node_offs offs = {0};

	if (thread_variable(plan, seq->next_symbol, &plan->target.seq, e) ||
	    thread_variable(plan, seq->thread_symbol, &plan->target.seq_thread, e) || node_offsets(plan, &offs, e))
		each_row(plan, take_out, &detail);
	else
		each_row(plan, set_node_offs, &offs);
}

/* Finds the sequence number for the agent. The code around the calls of two functions shows its offsets. */
static void find_seq_of_agent(struct plan *plan)
{
	const struct adp_agent *agent = &plan->adp->agent;
	struct elf *elf = plan->lib->elf;
	struct err *e = &plan->no_seq;
	struct elf_sym constructor, before, sym;
	unsigned i = 0;

	while (i < ADP_AGENT_BEFORES && agent->before[i] && elf_find_sym(elf, agent->before[i], &before, NULL))
		i++;
	if (i == ADP_AGENT_BEFORES || !agent->before[i])
		err_set(e, ERR_TARGET, -ENOENT, "%s has no function that passes a call its number", plan->lib->path);
	else if (!elf_find_sym(elf, agent->constructor, &constructor, e) &&
		 !elf_find_sym(elf, plan->adp->seq.next_symbol, &sym, e) &&
		 !elf_find_sym(elf, plan->adp->seq.thread_symbol, &sym, e))
		layout_record(elf, &constructor, &before, &plan->number_off, &plan->of_thread_off, e);
	if (!e->code)
		plan->details |= MXBPF_DETAIL_SEQ;
}

static int find_undefined(struct tgt *t, struct plan *plan, struct err *e)
{
	const struct adp_args *args = &plan->adp->args;
	struct tgt_lib *lib = tgt_find_lib(t, args->undefined_lib_glob);
	struct elf_sym sym;
	struct elf *elf;
	int err = lib ? tgt_lib_elf(t, lib, &elf, e) : -ENOENT;

	err = err ? err : elf_find_sym(elf, args->undefined_symbol, &sym, e);
	if (err)
		return err_set(e, ERR_TARGET, err, "no library %s with symbol %s is mapped", args->undefined_lib_glob,
			       args->undefined_symbol);
	plan->target.undefined = lib->load_bias + sym.va;
	plan_image(plan, lib); /* gives it a place in other processes too */
	return 0;
}

/* Returns true if the probes hit after operators have moved their arguments out of the registers. */
static bool seen_later(const struct plan *plan, struct err *e)
{
	size_t i;

	for (i = 0; i < plan->nprobes; i++)
		if (plan->rows[i].by_caller && plan->probes[i].wanted && !plan->probes[i].reason[0])
			return err_set(e, ERR_TARGET, -ENOTSUP,
				       "one probe sees all operators, and their arguments are not available there");
	return false;
}

static int find_layout(struct tgt *t, struct plan *plan, struct err *e)
{
	const struct adp_args *args = &plan->adp->args;
	const struct adp_storage *s;
	struct elf_sym sym;

	if (elf_find_sym(plan->lib->elf, args->keys_symbol, &sym, e) ||
	    layout_tensor(plan->lib->elf, &sym, &plan->tensor_keys_off, e) || find_undefined(t, plan, e))
		return e->code;
	for (s = args->storages; s->keys_off; s++)
		if (s->keys_off == plan->tensor_keys_off)
			plan->tensor_storage_off = s->storage_off;
	return 0;
}

static void find_tensors(struct tgt *t, struct plan *plan)
{
	const unsigned detail = MXBPF_DETAIL_ARGS;

	if (seen_later(plan, &plan->no_args) || find_layout(t, plan, &plan->no_args))
		each_row(plan, take_out, &detail);
}

/* Finds where the agent reads the arguments of a call, which the runtime has boxed. */
static void find_tensors_of_agent(struct tgt *t, struct plan *plan)
{
	const struct adp_agent *agent = &plan->adp->agent;
	struct elf *elf = plan->lib->elf;
	struct err *e = &plan->no_args;
	struct elf_sym inputs, list;
	unsigned i = 0;

	while (i < ADP_AGENT_INPUTS && agent->inputs[i] && elf_find_sym(elf, agent->inputs[i], &inputs, NULL))
		i++;
	if (i == ADP_AGENT_INPUTS || !agent->inputs[i])
		err_set(e, ERR_TARGET, -ENOENT, "%s has no function that passes a call its arguments", plan->lib->path);
	else if (!find_layout(t, plan, e) && !layout_inputs(elf, &inputs, &plan->inputs_off, e) &&
		 !elf_find_sym(elf, agent->list, &list, e) && !layout_list(elf, &list, &plan->list, e))
		plan->details |= MXBPF_DETAIL_ARGS;
}

void plan_details(struct tgt *t, struct plan *plan)
{
	size_t i;

	plan->target.static_base = plan->lib->load_bias;
	if (plan->adp->seq.next_symbol && plan->opts.agent)
		find_seq_of_agent(plan);
	else if (plan->adp->seq.next_symbol)
		find_seq(plan);
	if (plan->adp->args.keys_symbol && plan->opts.agent)
		find_tensors_of_agent(t, plan);
	else if (plan->adp->args.keys_symbol)
		find_tensors(t, plan);
	if (plan->opts.agent && plan->adp->agent.add_callback)
		plan->details |= MXBPF_DETAIL_STACK;
	for (i = 0; i < plan->nprobes; i++)
		if (plan->probes[i].wanted && !plan->probes[i].reason[0])
			plan->details |=
				plan->rows[i].details | (plan->rows[i].outputs_off ? MXBPF_DETAIL_OUTPUTS : 0u);
}
