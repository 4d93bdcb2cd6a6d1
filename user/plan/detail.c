// SPDX-License-Identifier: Apache-2.0
/* Details: where what they read lies in this build and process; one of which that is not known is taken out. */
#include <errno.h>
#include <string.h>

#include "elf/unwind.h"
#include "insn/layout.h"
#include "plan/priv.h"

/* The row, as it is probed in functions with a cut and in those without. */
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

/* By the code of the function that runs them. */
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

/* Both ends of a join, or none. */
static void find_seq(struct plan *plan)
{
	const struct adp_seq *seq = &plan->adp->seq;
	const unsigned detail = MXBPF_DETAIL_SEQ;
	struct err *e = &plan->no_seq;
	struct node_offs offs;

	if (thread_variable(plan, seq->next_symbol, &plan->target.seq, e) ||
	    thread_variable(plan, seq->thread_symbol, &plan->target.seq_thread, e) || node_offsets(plan, &offs, e))
		each_row(plan, take_out, &detail);
	else
		each_row(plan, set_node_offs, &offs);
}

void plan_details(struct plan *plan)
{
	size_t i;

	plan->target.static_base = plan->lib->load_bias;
	if (plan->adp->seq.next_symbol)
		find_seq(plan);
	for (i = 0; i < plan->nprobes; i++)
		if (plan->probes[i].wanted && !plan->probes[i].reason[0])
			plan->details |= plan->rows[i].details;
}
