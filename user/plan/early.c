// SPDX-License-Identifier: Apache-2.0
#include "plan/early.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "adapter/adapter.h"
#include "plan/priv.h"

#define LOADER_GLOB "ld-*.so*"
#define PEEK_MAX    32
#define LOADER_HOOK "_dl_debug_state"

static bool is_meant(const struct adp *a, const char *runtime)
{
	return !runtime || !strcmp(runtime, a->name);
}

/* A loader maps one library after the other, so a library that a required probe needs may still be missing. */
static bool is_whole(struct tgt *t, const struct adp *a, unsigned groups)
{
	size_t i;

	for (i = 0; i < a->nprobes; i++) {
		const struct adp_probe *p = &a->probes[i];

		if (p->group & groups && !p->optional && p->lib_glob && !tgt_find_lib(t, p->lib_glob))
			return false;
	}
	return true;
}

bool plan_has_runtime(struct tgt *t, const struct plan_opts *o)
{
	int i;

	for (i = 0; adapters[i]; i++)
		if (is_meant(adapters[i], o->runtime) && tgt_find_lib(t, adapters[i]->lib_glob) &&
		    is_whole(t, adapters[i], o->groups))
			return true;
	return false;
}

int plan_peek(pid_t pid, const struct plan_opts *o, bool *runtime, struct tgt_file *loader)
{
	const char *globs[PEEK_MAX] = {LOADER_GLOB};
	struct tgt_file files[PEEK_MAX] = {{0}};
	unsigned n = 1, mask;
	int i, err;

	for (i = 0; adapters[i] && n < PEEK_MAX - 1; i++)
		if (is_meant(adapters[i], o->runtime))
			globs[n++] = adapters[i]->lib_glob;
	err = tgt_peek(pid, globs, files, &mask);
	*loader = files[0];
	*runtime = mask >> 1;
	return err;
}

const char *plan_looked_for(const char *runtime, char buf[256])
{
	size_t len = 0;
	int i;

	buf[0] = '\0';
	for (i = 0; adapters[i] && len < 256; i++)
		if (is_meant(adapters[i], runtime))
			len += (size_t)snprintf(buf + len, 256 - len, "%s%s (%s)", len ? ", " : "",
						adapters[i]->lib_glob, adapters[i]->title);
	return buf;
}

const char *plan_runtime_name(unsigned i)
{
	return adapters[i] ? adapters[i]->name : NULL;
}

int plan_loader(struct tgt *t, struct tgt_lib **lib, uint64_t *off, struct err *e)
{
	struct insn_entry entry;
	struct elf_sym sym;
	struct elf *elf;
	int err;

	*lib = tgt_find_lib(t, LOADER_GLOB);
	if (!*lib)
		return err_set(e, ERR_TARGET, -ENOENT, "process %d has no dynamic loader", tgt_pid(t));
	err = tgt_lib_elf(t, *lib, &elf, e);
	if (err)
		return err;
	if (elf_find_sym(elf, LOADER_HOOK, &sym, NULL))
		return err_set(e, ERR_TARGET, -ENOENT, "the loader %s has no debugger hook", (*lib)->path);
	return plan_place(elf, &sym, &entry, off, e);
}
