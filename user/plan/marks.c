// SPDX-License-Identifier: Apache-2.0
/* The program's own marks: which objects they are, and whether the runtime's own profiler records. */
#include <errno.h>

#include "elf/hidden.h"
#include "insn/layout.h"
#include "plan/priv.h"

/* An object points behind its vtable's two words of header. Without a symbol, the class's name tells it. */
static bool find_objects(struct elf *elf, const char *symbol, uint64_t *va)
{
	static const char prefix[] = "_ZTV";
	struct elf_sym sym;

	if (!elf_find_sym(elf, symbol, &sym, NULL)) {
		*va = sym.va + 16;
		return true;
	}
	return !elf_find_vtable(elf, symbol + sizeof(prefix) - 1, va, NULL);
}

static const char *missing_vtable(struct plan *plan)
{
	const struct adp_marks *m = &plan->adp->marks;
	unsigned i;

	for (i = 0; i < MXBPF_MARK_CLASSES; i++)
		if (!m->vtables[i] || !find_objects(plan->lib->elf, m->vtables[i], &plan->mark_vtables[i]))
			return m->vtables[i] ? m->vtables[i] : "of them";
	return NULL;
}

static bool has_spans(const struct plan_probe *p)
{
	return p->row->row.action == MXBPF_ACT_MARK_START || p->row->row.action == MXBPF_ACT_MARK_STOP;
}

void plan_app_marks(struct plan *plan)
{
	const char *missing = NULL;
	size_t i;

	for (i = 0; i < plan->nprobes && !missing; i++)
		if (has_spans(&plan->probes[i]) && !plan->probes[i].reason[0])
			missing = missing_vtable(plan);
	for (i = 0; missing && i < plan->nprobes; i++)
		if (has_spans(&plan->probes[i])) {
			plan_refuse(&plan->probes[i], "no symbol %s in the library, by which its objects are told",
				    missing);
			plan_drop_sites(plan, &plan->probes[i]);
		}
}

static int find_func(struct elf *elf, const char *symbol, struct elf_sym *sym, struct err *e)
{
	if (!symbol)
		return err_set(e, ERR_TARGET, -ENOTSUP, "the runtime has no profiler of its own that is known");
	return elf_find_sym(elf, symbol, sym, e);
}

int plan_app_running(const struct plan *p, struct tgt *t, bool *running, struct err *e)
{
	const struct adp_marks *m = &p->adp->marks;
	struct elf_sym get, pause;
	uint64_t object = 0, va;
	uint8_t paused = 1;
	int32_t off;
	int err = find_func(p->lib->elf, m->profiler, &get, e);

	err = err ? err : find_func(p->lib->elf, m->paused, &pause, e);
	err = err ? err : layout_result(p->lib->elf, &get, &va, e);
	err = err ? err : layout_flag(p->lib->elf, &pause, &off, e);
	if (err)
		return err;
	/* Nobody has asked for it yet: it is made then. */
	if (tgt_read(t, p->lib->load_bias + va, &object, sizeof(object)) ||
	    (object && tgt_read(t, object + (uint64_t)off, &paused, sizeof(paused))))
		return err_set(e, ERR_TARGET, -EFAULT, "the state of its profiler cannot be read");
	*running = !paused;
	return 0;
}
