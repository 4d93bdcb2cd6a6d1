// SPDX-License-Identifier: Apache-2.0
/* Finds the objects of user annotations, and reads whether the runtime's own profiler records. */
#include <errno.h>
#include <stdio.h>

#include "elf/hidden.h"
#include "insn/layout.h"
#include "plan/priv.h"

/* A vtable begins with two words of header, and objects point behind them. */
static int find_vtable(struct elf *elf, const char *class_name, uint64_t *va, struct err *e)
{
	struct elf_sym sym;
	char symbol[128];

	snprintf(symbol, sizeof(symbol), "_ZTV%s", class_name);
	if (elf_find_sym(elf, symbol, &sym, NULL))
		return elf_find_vtable(elf, class_name, va, e);
	*va = sym.va + 16;
	return 0;
}

static bool has_spans(const struct plan_probe *p)
{
	return p->row->row.action == MXBPF_ACT_MARK_START || p->row->row.action == MXBPF_ACT_MARK_STOP;
}

void plan_app_marks(struct plan *plan)
{
	const struct adp_marks *m = &plan->adp->marks;
	struct err why = {0};
	size_t i, k;
	int err = 0;

	for (i = 0; i < plan->nprobes; i++) {
		struct plan_probe *p = &plan->probes[i];

		if (!has_spans(p) || !p->wanted || p->reason[0])
			continue;
		for (k = 0; !err && k < MXBPF_MARK_CLASSES && !plan->mark_vtables[k]; k++)
			err = find_vtable(plan->lib->elf, m->classes[k], &plan->mark_vtables[k], &why);
		if (!err)
			continue;
		plan_refuse(p, "cannot recognise its objects: %s", why.why);
		plan_drop_sites(plan, p);
	}
}

static int find_func(struct elf *elf, const char *symbol, struct elf_sym *sym, struct err *e)
{
	if (!symbol)
		return err_set(e, ERR_TARGET, -ENOTSUP, "mxbpf knows no built-in profiler of this runtime");
	return elf_find_sym(elf, symbol, sym, e);
}

int plan_app_state(const struct plan *p, struct tgt *t, struct mxbpf_app *out, struct err *e)
{
	const struct adp_marks *m = &p->adp->marks;
	struct elf_sym get, set;
	uint64_t object = 0, va;
	int32_t state_off, paused_off;
	uint32_t state = 0;
	uint8_t paused = 0;
	int err = find_func(p->lib->elf, m->profiler, &get, e);

	err = err ? err : find_func(p->lib->elf, m->set_state, &set, e);
	err = err ? err : layout_result(p->lib->elf, &get, &va, e);
	err = err ? err : layout_state(p->lib->elf, &set, &state_off, &paused_off, e);
	if (err)
		return err;
	/* The runtime creates the profiler object on first use. */
	if (tgt_read(t, p->lib->load_bias + va, &object, sizeof(object)) ||
	    (object && (tgt_read(t, object + (uint64_t)state_off, &state, sizeof(state)) ||
			tgt_read(t, object + (uint64_t)paused_off, &paused, sizeof(paused)))))
		return err_set(e, ERR_TARGET, -EFAULT, "cannot read the state of its profiler");
	if (!object)
		state = tgt_env_number(t, m->autostart_env) > 0;
	*out = (struct mxbpf_app){.runs = !!state, .paused = paused};
	return 0;
}
