// SPDX-License-Identifier: Apache-2.0
/*
 * The entries of import tables through which the agent sees memory. They must be safe to replace while the process
 * runs: writable without a change of protection, bound to the functions already, and in a library that is not unloaded,
 * because the agent writes them again when mxbpf has gone.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "elf/names.h"
#include "plan/priv.h"

#define SLOTS_MAX 4 /* entries of one library that lead to one function */

/* Returns 0 if the agent may replace this entry of a library. */
static int check_entry(struct tgt *t, const struct tgt_lib *lib, uint64_t entry, uint64_t func, const char *name,
		       struct err *e)
{
	uint64_t value;

	if (!tgt_is_writable(t, entry))
		return err_set(e, ERR_TARGET, -EACCES, "the import table of %s is read-only", lib->path);
	/* It leads to the agent of an earlier session until the next operator starts. */
	if (tgt_read(t, entry, &value, sizeof(value)) ||
	    (value != func && !tgt_code_is_of(t, value, "/memfd:" MXBPF_AGENT_FILE)))
		return err_set(e, ERR_TARGET, -EBUSY,
			       "the import table of %s does not lead to %s: it is not bound yet, or another tool has "
			       "changed it",
			       lib->path, name);
	return 0;
}

static void add_hook(struct plan_agent_memory *m, uint64_t entry, enum mxbpf_agent_hook_kind kind)
{
	m->hooks[m->nhooks++] = (struct mxbpf_agent_hook){entry, kind};
}

/* ---- the allocator of CPU memory */

static int find_one(struct tgt *t, struct tgt_lib *lib, struct elf *elf, const char *name, uint64_t *func,
		    uint64_t *entry, struct err *e)
{
	struct elf_sym sym;

	if (elf_find_sym(elf, name, &sym, e))
		return e->code;
	if (elf_import_slots(elf, name, entry, 1) != 1)
		return err_set(e, ERR_TARGET, -ENOENT, "%s does not call %s through one entry of its import table",
			       lib->path, name);
	*func = sym.va + lib->load_bias;
	*entry += lib->load_bias;
	return check_entry(t, lib, *entry, *func, name, e);
}

static void find_allocator(struct tgt *t, const struct adp_agent *a, struct tgt_lib *lib, struct elf *elf,
			   struct plan_agent_memory *m)
{
	uint64_t alloc = 0, freed = 0;

	if (find_one(t, lib, elf, a->alloc, &m->hooked[MXBPF_AGENT_HOOK_ALLOC], &alloc, &m->why) ||
	    find_one(t, lib, elf, a->free, &m->hooked[MXBPF_AGENT_HOOK_FREE], &freed, &m->why))
		return;
	add_hook(m, alloc, MXBPF_AGENT_HOOK_ALLOC);
	add_hook(m, freed, MXBPF_AGENT_HOOK_FREE);
}

/* ---- allocators in other libraries */

static size_t dir_bytes(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) : 0;
}

/*
 * Returns true if the process never unloads the library: it lies beside the runtime's, which is part of others that
 * stay, or it is an extension module of Python, which never unloads one.
 */
static bool agent_memory_stays(const struct tgt_lib *lib, struct elf *elf, const struct tgt_lib *runtime)
{
	const size_t dir = dir_bytes(runtime->path);
	char init[NAME_MAX + 16];
	struct elf_sym sym;

	if (dir && dir_bytes(lib->path) == dir && !strncmp(lib->path, runtime->path, dir))
		return true;
	snprintf(init, sizeof(init), "PyInit_%.*s", (int)strcspn(lib->path + dir_bytes(lib->path) + 1, "."),
		 lib->path + dir_bytes(lib->path) + 1);
	return !elf_find_sym(elf, init, &sym, NULL);
}

static void find_reports_of(struct tgt *t, struct tgt_lib *lib, struct elf *elf, const char *name,
			    const struct tgt_lib *runtime, struct plan_agent_memory *m)
{
	uint64_t slots[SLOTS_MAX];
	const int n = elf_import_slots(elf, name, slots, SLOTS_MAX);
	int i;

	for (i = 0; i < n; i++) {
		const uint64_t entry = slots[i] + lib->load_bias;

		if (!agent_memory_stays(lib, elf, runtime))
			err_set(&m->unhooked, ERR_TARGET, -EBUSY, "the process may unload %s", lib->path);
		else if (m->nhooks == MXBPF_AGENT_HOOKS)
			err_set(&m->unhooked, ERR_TARGET, -ENOSPC, "more than %d entries of import tables lead to %s",
				MXBPF_AGENT_HOOKS, name);
		else if (!check_entry(t, lib, entry, m->hooked[MXBPF_AGENT_HOOK_REPORT], name, &m->unhooked))
			add_hook(m, entry, MXBPF_AGENT_HOOK_REPORT);
	}
}

/*
 * Finds the entries by which allocators in other libraries report memory to library `of`. Reports from `of` itself do
 * not count. The runtime's library reports only storages in shared memory, whose end has no report, so probes see both
 * their start and end.
 */
static void find_reports(struct tgt *t, const struct plan *p, const struct tgt_lib *of, struct elf *elf,
			 struct plan_agent_memory *m)
{
	const char *const *names = p->adp->agent.report, *base = of->path + dir_bytes(of->path) + 1;
	const struct tgt_lib *runtime = tgt_find_lib(t, p->adp->lib_glob); /* p->lib in this process */
	struct elf_sym sym;
	size_t i;
	int k = 0;

	while (k < ADP_AGENT_REPORTS && names[k] && elf_find_sym(elf, names[k], &sym, NULL))
		k++;
	if (!runtime || k == ADP_AGENT_REPORTS || !names[k])
		return;
	m->hooked[MXBPF_AGENT_HOOK_REPORT] = sym.va + of->load_bias;
	for (i = 0; i < tgt_nlibs(t); i++) {
		struct tgt_lib *lib = tgt_lib(t, i);

		if (lib != of && lib != runtime && !tgt_lib_elf(t, lib, &elf, NULL) && elf_needs(elf, base))
			find_reports_of(t, lib, elf, names[k], runtime, m);
	}
}

void plan_agent_entries(const struct plan *p, struct tgt *t, struct plan_agent_memory *m)
{
	const struct adp_agent *a = &p->adp->agent;
	struct tgt_lib *lib = a->memory_lib ? tgt_find_lib(t, a->memory_lib) : NULL;
	struct elf *elf;

	*m = (struct plan_agent_memory){.works = false};
	if (!lib) {
		err_set(&m->why, ERR_TARGET, -ENOENT, "no %s is mapped", a->memory_lib ? a->memory_lib : "allocator");
	} else if (!tgt_lib_elf(t, lib, &elf, &m->why)) {
		find_allocator(t, a, lib, elf, m);
		find_reports(t, p, lib, elf, m);
	}
	m->works = !m->why.code;
}
