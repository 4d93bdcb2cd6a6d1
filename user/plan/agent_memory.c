// SPDX-License-Identifier: Apache-2.0
/*
 * The entries of an import table through which the agent sees memory. They must be safe to replace while the process
 * runs: writable without a change of protection, and bound to the functions already.
 */
#include <errno.h>

#include "elf/names.h"
#include "mxbpf_agent.h"
#include "plan/priv.h"

static int entry_of(struct tgt *t, struct tgt_lib *lib, struct elf *elf, const char *name, struct plan_entry *to,
		    struct err *e)
{
	struct elf_sym sym;
	uint64_t va, value;
	int n;

	if (elf_find_sym(elf, name, &sym, e))
		return e->code;
	n = elf_import_slots(elf, name, &va, 1);
	if (n != 1)
		return err_set(e, ERR_TARGET, -ENOENT, "%s does not call %s through one entry of its import table",
			       lib->path, name);
	to->func = sym.va + lib->load_bias;
	to->entry = va + lib->load_bias;
	if (!tgt_is_writable(t, to->entry))
		return err_set(e, ERR_TARGET, -EACCES, "the import table of %s is read-only", lib->path);
	/* It leads to the agent of an earlier session until the next operator starts. */
	if (tgt_read(t, to->entry, &value, sizeof(value)) ||
	    (value != to->func && !tgt_code_is_of(t, value, "/memfd:" MXBPF_AGENT_FILE)))
		return err_set(e, ERR_TARGET, -EBUSY,
			       "the import table of %s does not lead to %s: it is not bound yet, or another tool has "
			       "changed it",
			       lib->path, name);
	return 0;
}

void plan_agent_entries(const struct plan *p, struct tgt *t, struct plan_agent_memory *m)
{
	const struct adp_agent *a = &p->adp->agent;
	struct tgt_lib *lib = a->memory_lib ? tgt_find_lib(t, a->memory_lib) : NULL;
	struct elf *elf;

	*m = (struct plan_agent_memory){.device = p->agent_memory.device};
	if (!lib)
		err_set(&m->why, ERR_TARGET, -ENOENT, "no %s is mapped", a->memory_lib ? a->memory_lib : "allocator");
	else if (!tgt_lib_elf(t, lib, &elf, &m->why) && !entry_of(t, lib, elf, a->alloc, &m->alloc, &m->why))
		entry_of(t, lib, elf, a->free, &m->free, &m->why);
	m->works = !m->why.code;
}
