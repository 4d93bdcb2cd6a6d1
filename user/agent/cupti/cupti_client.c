// SPDX-License-Identifier: Apache-2.0
/*
 * Finds out whose callbacks are registered with CUPTI. CUPTI does not tell, and registering others takes the records of
 * the client that was there. From CUDA 11 to 13 cuptiActivityRegisterCallbacks() stores both callbacks as neighbours in
 * the .bss of the library, where nothing else has two pointers to the code of one foreign object. This only reads.
 */
#include <link.h>
#include <string.h>

#include "cupti.h"

#define RANGES	   2048
#define CANDIDATES 4096

struct range {
	uint64_t from, to;
	const char *path;
};

struct search {
	uint64_t from, to; /* the .bss of libcupti */
	unsigned n;
	struct range code[RANGES];
};

static const char *base_of(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path ? path : "";
}

/* Libraries whose functions CUPTI calls itself. */
static bool cupti_client_is_known(const char *name)
{
	static const char *const begin[] = {"ld-",	  "libc.",     "libc-",	    "libcheckpoint", "libcuda",
					    "libdl",	  "libgcc",    "libgomp",   "libiomp",	     "libm.",
					    "libm-",	  "libnvidia", "libnvperf", "libomp",	     "libpcsampling",
					    "libpthread", "librt",     "libstdc++", "libutil",	     "linux-vdso"};
	unsigned i;

	for (i = 0; i < sizeof(begin) / sizeof(begin[0]); i++)
		if (!strncmp(name, begin[i], strlen(begin[i])))
			return true;
	return false;
}

static int on_object(struct dl_phdr_info *info, size_t bytes, void *ctx)
{
	struct search *s = ctx;
	const char *name = base_of(info->dlpi_name);
	const bool cupti_itself = !strncmp(name, "libcupti.", strlen("libcupti."));
	unsigned i;

	(void)bytes;
	if (!cupti_itself && cupti_client_is_known(name))
		return 0;
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		const uint64_t at = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type != PT_LOAD)
			continue;
		if (cupti_itself && ph->p_flags & PF_W && ph->p_memsz > ph->p_filesz) {
			s->from = (at + ph->p_filesz + 7) & ~7ull;
			s->to = (at + ph->p_memsz) & ~7ull;
		} else if (!cupti_itself && ph->p_flags & PF_X && s->n < RANGES) {
			s->code[s->n++] = (struct range){at, at + ph->p_memsz, info->dlpi_name};
		}
	}
	return 0;
}

static const struct range *code_at(const struct search *s, uint64_t at)
{
	unsigned i;

	for (i = 0; i < s->n; i++)
		if (at >= s->code[i].from && at < s->code[i].to)
			return &s->code[i];
	return NULL;
}

bool cupti_is_registered(char *holder, size_t bytes)
{
	static struct search s; /* only one thread takes CUPTI at a time */
	const uint64_t own = (uint64_t)(uintptr_t)cupti_on_requested;
	const uint64_t *at;
	const struct range *r;
	unsigned tried = 0;

	s.n = 0;
	s.from = s.to = 0;
	agent_dso_each(on_object, &s);
	for (at = (const uint64_t *)s.from; at + 1 < (const uint64_t *)s.to && tried < CANDIDATES; at++) {
		if (!at[0] || !at[1] || at[0] == own)
			continue;
		tried++;
		r = code_at(&s, at[0]);
		if (!r || at[1] < r->from || at[1] >= r->to || (own >= r->from && own < r->to))
			continue;
		strncpy(holder, *r->path ? base_of(r->path) : "the program", bytes - 1);
		holder[bytes - 1] = '\0';
		return true;
	}
	return false;
}
