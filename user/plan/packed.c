// SPDX-License-Identifier: Apache-2.0
/* Recognizes libraries whose file contains only packed code. */
#include <errno.h>

#include "plan/priv.h"

/* Returns true if the library exports a function of this row but its code is not in the file. */
static bool has_lost(struct elf *elf, const struct adp_probe *row, struct elf_sym *sym)
{
	uint64_t off;
	int i;

	for (i = 0; i < PROBE_SYMBOLS_MAX && row->symbols[i]; i++)
		if (!elf_find_sym(elf, row->symbols[i], sym, NULL) && sym->type == ELF_SYM_FUNC &&
		    elf_exec_off(elf, sym->va, &off))
			return true;
	return false;
}

/*
 * Returns true if the symbols of the row belong to the runtime's library. A search for symbols that are not exported
 * takes long.
 */
static bool looks_there(const struct adp_probe *row, bool agent)
{
	return !row->lib_glob && !row->each_lib && !(agent && row->by_agent);
}

int plan_check_packed(struct tgt *t, const struct adp *a, struct tgt_lib *lib, bool agent, struct err *e)
{
	struct elf_sym sym;
	unsigned i;

	for (i = 0; i < a->nprobes; i++) {
		if (!looks_there(&a->probes[i], agent) || !has_lost(lib->elf, &a->probes[i], &sym))
			continue;
		return err_set(e, ERR_TARGET, -ENOTSUP, "%s is packed%s: its code %s, and only a file can be probed",
			       lib->path, elf_is_upx(lib->elf) ? " by UPX" : "",
			       tgt_code_is_anonymous(t, lib->load_bias + sym.va)
				       ? "lies in anonymous memory, not in the file"
				       : "is not in the file");
	}
	return 0;
}
