// SPDX-License-Identifier: Apache-2.0
#include "now/unwind.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "base/hash.h"
#include "elf/copy.h"
#include "elf/unwind.h"

#define COPIES_MAX_BYTES (1ull << 30) /* limit of the copied tables of all files */
#define SYMBOL_BYTES	 4096	      /* the end of a longer name is cut */

/* A file that the process has mapped. */
struct file {
	const struct tgt_lib *lib;
	struct unwind *of;
	struct elf_copy copy; /* taken when a stack leads into the file */
};

struct unwind {
	Dwfl *dwfl;
	bool (*named)(const void *ctx, const struct tgt_lib *lib); /* NULL: all files are */
	const void *ctx;
	struct hash names;  /* pc -> char *, owned */
	struct file *files; /* owned */
	size_t nfiles;
	size_t copied; /* bytes in the copies of files */

	/* the stack that is being unwound */
	const struct mxbpf_regs *regs;
	const struct buf *stack;
	struct buf *frames;
	unsigned max;
	bool more;
};

static int no_debuginfo(Dwfl_Module *mod, void **user, const char *name, Dwarf_Addr base, const char *file,
			const char *link, GElf_Word crc, char **out)
{
	return -1;
}

/* libdw reads a copy of the file, because the process may change the file meanwhile. */
static int copied_elf(Dwfl_Module *mod, void **user, const char *name, Dwarf_Addr base, char **path, Elf **elf)
{
	struct file *f = *user;
	const bool named = !f->of->named || f->of->named(f->of->ctx, f->lib);

	if (f->copy.image || elf_copy(f->lib->elf, named, COPIES_MAX_BYTES - f->of->copied, &f->copy)) {
		elf_copy_fini(&f->copy);
		return -1;
	}
	f->of->copied += f->copy.copied;
	*elf = elf_memory(f->copy.image, f->copy.bytes);
	*path = strdup(f->lib->path);
	return -1; /* no file descriptor */
}

static const Dwfl_Callbacks callbacks = {.find_elf = copied_elf, .find_debuginfo = no_debuginfo};

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread)
{
	struct unwind *u = arg;

	if (*thread)
		return 0;
	*thread = u;
	return (pid_t)u->regs->tid;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread)
{
	*thread = arg;
	return true;
}

static bool read_word(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *word, void *arg)
{
	const struct unwind *u = arg;
	uint64_t off = addr - u->regs->r[MXBPF_REGS_SP];

	if (u->stack->len < sizeof(*word) || off > u->stack->len - sizeof(*word))
		return false;
	memcpy(word, u->stack->data + off, sizeof(*word));
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct unwind *u = arg;
	Dwarf_Word regs[MXBPF_REGS];
	unsigned i;

	for (i = 0; i < MXBPF_REGS; i++)
		regs[i] = u->regs->r[i];
	return dwfl_thread_state_registers(thread, 0, MXBPF_REGS, regs);
}

static const Dwfl_Thread_Callbacks threads = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = read_word,
	.set_initial_registers = set_registers,
};

/* Removes the parameters and everything before the function's name. */
static void shorten(char *name)
{
	static const char nameless[] = "(anonymous namespace)";
	unsigned angles = 0;
	char *c;

	for (c = name; *c; c++) {
		if (!strncmp(c, nameless, sizeof(nameless) - 1)) {
			c += sizeof(nameless) - 2;
			continue;
		}
		if (*c == '(' && c > name && !angles && strncmp(c - 8 > name ? c - 8 : name, "operator(", 9))
			break;
		angles += *c == '<';
		angles -= *c == '>' && angles;
	}
	*c = '\0';
}

size_t unwind_named(const struct unwind *u)
{
	return u->names.len;
}

const char *unwind_name(struct unwind *u, const struct unwind_frame *f)
{
	Dwfl_Module *mod = f->lib ? dwfl_addrmodule(u->dwfl, f->pc) : NULL;
	uint64_t *known = mod ? hash_put(&u->names, f->pc, 0) : NULL;
	const char *symbol;
	GElf_Off off;
	GElf_Sym sym;
	char *name;

	if (!known)
		return "";
	if (*known)
		return (const char *)(uintptr_t)*known;
	symbol = dwfl_module_addrinfo(mod, f->pc, &off, &sym, NULL, NULL, NULL);
	name = symbol ? demangle(symbol) : NULL;
	if (name)
		shorten(name);
	else
		name = strndup(symbol ? symbol : "", SYMBOL_BYTES);
	*known = (uintptr_t)name;
	return name ? name : "";
}

uint64_t unwind_function(const struct unwind_frame *f)
{
	struct elf_fde fde;

	return f->lib && f->lib->elf && !elf_fde_find(f->lib->elf, f->va, &fde, NULL) ? fde.start_va : f->va;
}

static int on_frame(Dwfl_Frame *state, void *arg)
{
	struct unwind *u = arg;
	struct unwind_frame f = {0};
	const struct tgt_lib *lib = NULL;
	Dwfl_Module *mod;
	void **user;
	Dwarf_Addr pc;
	bool here;

	if (buf_count(u->frames, struct unwind_frame) >= u->max) {
		u->more = true;
		return DWARF_CB_ABORT;
	}
	if (!dwfl_frame_pc(state, &pc, &here) || !pc)
		return DWARF_CB_ABORT;
	f.pc = here ? pc : pc - 1; /* a call may be the last instruction of its function */
	mod = dwfl_addrmodule(u->dwfl, f.pc);
	if (mod) {
		dwfl_module_info(mod, &user, NULL, NULL, NULL, NULL, NULL, NULL);
		lib = ((const struct file *)*user)->lib;
	}
	f.lib = lib;
	f.va = f.pc - (lib ? lib->load_bias : 0);
	return buf_put(u->frames, &f, sizeof(f)) ? DWARF_CB_ABORT : DWARF_CB_OK;
}

bool unwind_stack(struct unwind *u, const struct mxbpf_regs *r, const struct buf *stack, unsigned max,
		  struct buf *frames)
{
	int end;

	u->regs = r;
	u->stack = stack;
	u->frames = frames;
	u->max = max;
	u->more = false;
	end = dwfl_getthread_frames(u->dwfl, (pid_t)r->tid, on_frame, u);
	return !end && !u->more;
}

static int report(struct unwind *u, struct tgt *t)
{
	struct file *f;
	struct tgt_lib *lib;
	struct elf *elf;
	Dwfl_Module *mod;
	uint64_t start, end;
	void **user;
	size_t i;

	u->files = calloc(tgt_nlibs(t) + 1, sizeof(*u->files));
	for (i = 0; u->files && i < tgt_nlibs(t); i++) {
		lib = tgt_lib(t, i);
		if (tgt_lib_elf(t, lib, &elf,
				NULL)) /* the file was replaced or is no ELF file, so its frames get no names */
			continue;
		elf_copy_extent(elf, &start, &end);
		mod = dwfl_report_module(u->dwfl, lib->path, lib->load_bias + start, lib->load_bias + end);
		if (!mod)
			continue;
		f = &u->files[u->nfiles++];
		*f = (struct file){.lib = lib, .of = u};
		dwfl_module_info(mod, &user, NULL, NULL, NULL, NULL, NULL, NULL);
		*user = f;
	}
	return u->files ? dwfl_report_end(u->dwfl, NULL, NULL) : -ENOMEM;
}

int unwind_open(struct tgt *t, bool (*named)(const void *ctx, const struct tgt_lib *lib), const void *ctx,
		struct unwind **out, struct err *e)
{
	struct unwind *u = calloc(1, sizeof(*u));

	*out = NULL;
	if (!u)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	u->named = named;
	u->ctx = ctx;
	u->dwfl = dwfl_begin(&callbacks);
	if (!u->dwfl || report(u, t) || !dwfl_attach_state(u->dwfl, NULL, tgt_pid(t), &threads, u)) {
		err_set(e, ERR_RUNTIME, -ENOTSUP, "cannot unwind stacks: %s", dwfl_errmsg(-1));
		unwind_close(u);
		return e ? e->code : -ENOTSUP;
	}
	*out = u;
	return 0;
}

void unwind_close(struct unwind *u)
{
	const struct hash_entry *h;
	size_t pos = 0, i;

	if (!u)
		return;
	while ((h = hash_next(&u->names, &pos)))
		free((void *)(uintptr_t)h->val);
	hash_fini(&u->names);
	if (u->dwfl)
		dwfl_end(u->dwfl);
	for (i = 0; i < u->nfiles; i++)
		elf_copy_fini(&u->files[i].copy);
	free(u->files);
	free(u);
}
