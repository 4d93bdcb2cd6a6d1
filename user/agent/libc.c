// SPDX-License-Identifier: Apache-2.0
#include "agent/libc.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#define RTLD_DLOPEN_FLAG 0x80000000u /* __RTLD_DLOPEN: __libc_dlopen_mode() fails without it */

static const uint8_t restorer_code[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};

/* Finds a library by its present name, or by its name before glibc 2.34, such as libc-2.31.so. */
static struct tgt_lib *find_lib(struct tgt *t, const char *name, const char *old)
{
	struct tgt_lib *lib = tgt_find_lib(t, name);

	return lib ? lib : tgt_find_lib(t, old);
}

static int address_of(struct tgt *t, struct tgt_lib *lib, const char *name, uint64_t *addr, struct err *e)
{
	struct elf_sym sym = {.va = 0};
	struct elf *f;
	int err = tgt_lib_elf(t, lib, &f, e);

	if (!err)
		err = elf_find_sym(f, name, &sym, NULL);
	if (!err)
		*addr = lib->load_bias + sym.va;
	return err;
}

/* Finds the signal restorer by its bytes, because no exported symbol leads to it. */
static int find_restorer(struct tgt_lib *lib, uint64_t *addr)
{
	uint64_t va;
	int err = elf_find_code(lib->elf, restorer_code, sizeof(restorer_code), &va);

	if (!err)
		*addr = lib->load_bias + va;
	return err;
}

/* Since glibc 2.34, dlopen() is in libc. Before, it is in libdl, which may not be mapped. */
static int find_dlopen(struct tgt *t, struct tgt_lib *libc, struct agt_libc *out)
{
	struct tgt_lib *libdl;

	out->dlopen_flags = RTLD_NOW | RTLD_LOCAL;
	if (!address_of(t, libc, "dlopen", &out->dlopen, NULL))
		return 0;
	libdl = find_lib(t, "libdl.so.2", "libdl-2.*.so");
	if (libdl && !address_of(t, libdl, "dlopen", &out->dlopen, NULL))
		return 0;
	out->dlopen_flags |= RTLD_DLOPEN_FLAG;
	return address_of(t, libc, "__libc_dlopen_mode", &out->dlopen, NULL);
}

int agt_libc_find(struct tgt *t, struct agt_libc *out, struct err *e)
{
	struct tgt_lib *libc = find_lib(t, "libc.so.6", "libc-2.*.so");
	struct elf *f;
	int err;

	if (!libc)
		return err_set(e, ERR_TARGET, -ENOTSUP,
			       "cannot load the agent: process %d has no glibc mapped (it is statically linked or uses "
			       "another C "
			       "library)",
			       tgt_pid(t));
	err = tgt_lib_elf(t, libc, &f, e);
	if (err)
		return err;
	if (find_dlopen(t, libc, out) || address_of(t, libc, "syscall", &out->syscall, NULL))
		return err_set(e, ERR_TARGET, -ENOTSUP,
			       "cannot load the agent: the glibc of process %d exports no dlopen() or no syscall()",
			       tgt_pid(t));
	err = find_restorer(libc, &out->restorer);
	if (err)
		return err_set(
			e, ERR_TARGET, -ENOTSUP,
			"cannot load the agent: the glibc of process %d has no function that returns from signal "
			"handlers: %s",
			tgt_pid(t), strerror(-err));
	return 0;
}
