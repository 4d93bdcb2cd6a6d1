/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared objects that the process has loaded: their symbols, and the import tables through which they call each
 * other. These functions allocate nothing. They wait while another thread loads or unloads an object, so only the
 * agent's own thread calls them.
 */
#ifndef AGENT_LIB_DSO_H
#define AGENT_LIB_DSO_H

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent_dso {
	char path[256];
	uint64_t bias;	   /* added to the addresses of its file */
	uint64_t from, to; /* its first and last address + 1 */
	const Elf64_Dyn *dynamic;
	const Elf64_Sym *symbols;
	const char *strings;
	const uint32_t *hash; /* GNU hash table; NULL: it has none */
	const Elf64_Rela *rela, *plt;
	size_t nrela, nrelative, nplt; /* the first nrelative entries of rela have no symbol */
};

/* Finds the first object whose file name begins with `begin`. Returns false if there is none. */
bool agent_dso_find(const char *begin, struct agent_dso *out);
/* Returns true if is() returns true for one of the objects. */
bool agent_dso_any(bool (*is)(const struct agent_dso *d));
/* Returns true if the object is linked with this library. */
bool agent_dso_needs(const struct agent_dso *d, const char *library);
/* The file name in a path. */
const char *agent_dso_base(const char *path);
/* Returns the address of an exported function, or 0. */
uint64_t agent_dso_symbol(const struct agent_dso *d, const char *name);
/* Stores that address in *to, which is a pointer to a function. Returns false and stores NULL if there is none. */
bool agent_dso_get(const struct agent_dso *d, const char *name, void *to);
/* Returns the address of a function of libc, or of libdl in versions where that is separate; or 0. */
uint64_t agent_dso_of_libc(const char *name);

/*
 * Returns the address of a function in the first object of the loader's list that exports it, or 0. Other objects are
 * bound to this one, which need not be that of libc: tools preload functions of their own.
 */
uint64_t agent_dso_first(const char *name);

/* A function that other objects import, and the one that they call instead. */
struct agent_hook {
	const char *name;
	uint64_t instead;
	uint64_t original; /* 0: it does not exist */
};

/*
 * Replaces functions in the import tables of all objects. An object that imports another function of the same name is
 * left alone. Call this again from time to time, because objects come and go. While nothing has changed, it looks at
 * one object only: a child that another thread forks during a longer walk would inherit the loader's lock, which glibc
 * does not free there. Returns 0, or -errno if an import table could not be written.
 */
int agent_dso_hook(const struct agent_hook *hooks, unsigned n, const char *begin);
/* How often agent_dso_hook() has found that objects have come or gone. */
uint64_t agent_dso_changes(void);

/*
 * dlsym.c: agent_dlsym() takes the place of dlsym() in import tables. Where dlsym() finds the original of one of these
 * hooks, whose names begin with "cupti", it returns the other function. Where it finds a function of that name in
 * another library, on_other is called before the caller gets it. agent_dlsym_begin() returns the original of dlsym(),
 * or 0.
 */
void *agent_dlsym(void *handle, const char *name);
uint64_t agent_dlsym_begin(const struct agent_hook *hooks, unsigned n, void (*on_other)(void));

/* dl_iterate_phdr(), while no thread forks. */
int agent_dso_each(int (*fn)(struct dl_phdr_info *info, size_t bytes, void *ctx), void *ctx);

#endif
