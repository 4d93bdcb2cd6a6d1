/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a hostile file in every way in which mxbpf reads files, and then its bytes as code. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf/elf.h"
#include "elf/hidden.h"
#include "elf/names.h"
#include "elf/unwind.h"
#include "insn/cut.h"
#include "insn/fields.h"
#include "insn/insn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One file for all runs, because creating a file takes longer than reading it. */
static int file_of(const uint8_t *data, size_t size)
{
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	return fd;
}

static void read_around(struct elf *f, uint64_t va)
{
	uint8_t code[256];
	char str[300];
	uint64_t off, back;

	if (!elf_exec_off(f, va, &off) && elf_off_va(f, off, &back))
		abort();
	if (elf_read_str_va(f, va, str, sizeof(str)) >= (int)sizeof(str))
		abort();
	elf_read_va(f, va, code, sizeof(code));
	elf_read_va(f, UINT64_MAX - va, code, sizeof(code));
}

/*
 * Reads the unwind information and the cut that depends on it: all points of the cut must be in code that can be
 * probed.
 */
static void read_function(struct elf *f, uint64_t va)
{
	struct buf sites = {0};
	struct elf_fde fde;
	struct cut cut;
	uint64_t start;
	char name[64];

	if (elf_func_name(f, va, name, sizeof(name)) >= (int)sizeof(name))
		abort();
	if (elf_func_around(f, va, &start, name, sizeof(name)) >= (int)sizeof(name))
		abort();
	if (elf_import_name(f, va, name, sizeof(name)) >= (int)sizeof(name))
		abort();
	if (!elf_fde_find(f, va, &fde, NULL)) {
		va = fde.start_va;
		elf_fde_call_sites(f, &fde, &sites, NULL);
		buf_fini(&sites);
	}
	if (cut_find(f, va, &cut, NULL)) {
		if (cut.npoints || !cut.why[0])
			abort();
		return;
	}
	for (unsigned i = 0; i < cut.npoints; i++) {
		enum insn_cost cost;
		uint8_t code[16];
		uint64_t off;
		size_t n = sizeof(code);
		uint32_t len;

		while (n && elf_read_va(f, cut.points[i].va, code, n))
			n--;
		if (insn_classify(code, n, &cost, &len) || cost != INSN_EMULATED ||
		    elf_exec_off(f, cut.points[i].va, &off))
			abort();
	}
}

static int on_func(void *ctx, const char *name, const struct elf_sym *sym)
{
	unsigned *n = ctx;

	(void)sym;
	if (strlen(name) > 1 << 20)
		abort();
	return ++*n > 1000;
}

static int on_string(void *ctx, const char *text, size_t len)
{
	unsigned *n = ctx;

	if (strlen(text) != len)
		abort();
	return ++*n > 1000;
}

static int on_call(void *ctx, uint64_t va)
{
	struct elf *f = ctx;
	uint8_t code;

	if (elf_read_va(f, va, &code, 1) || code != 0xe8)
		abort();
	return 0;
}

/* Reads the lists that belong to the whole file, not to one address. */
static void read_lists(struct elf *f)
{
	static const char *const prefixes[] = {"", "al", "_Z"};
	uint64_t slots[4], start, end, va;
	unsigned n = 0;
	size_t i;

	for (i = 0; i < 3; i++)
		elf_each_func(f, prefixes[i], on_func, &n);
	n = 0;
	elf_each_string(f, on_string, &n);
	if (elf_import_slots(f, "t", slots, 4) > 4)
		abort();
	elf_needs(f, "libc.so");
	elf_has_exceptions(f);
	elf_extent(f, &start, &end);
	if (start > end)
		abort();
	elf_each_call(f, "t", on_call, f);
	elf_each_call_at(f, start, on_call, f);
	if (!elf_find_code(f, "\x48\x89", 2, &va) && elf_exec_off(f, va, &start))
		abort();
}

/* Fields of the arguments of a function, by its code. */
static void read_fields(struct elf *f, const struct elf_sym *func)
{
	struct fields_handle handle;
	struct fields_block block;

	fields_of_block(f, func, &block, NULL);
	if (!fields_of_handle(f, func, &handle, NULL) && handle.ncompared > FIELDS_COMPARED_MAX)
		abort();
	if (!fields_of_handle_copy(f, func, &handle, NULL) && handle.ncompared > FIELDS_COMPARED_MAX)
		abort();
}

/* Searches functions that have no symbols; each one that is found must be in executable code. */
static void read_hidden(struct elf *f)
{
	struct elf_sym by_text = {0}, sym;
	uint64_t off, va;

	if (!elf_find_vtable(f, "5alpha", &va, NULL) && !elf_find_virtual(f, "5alpha", 1, &sym, NULL) &&
	    elf_exec_off(f, sym.va, &off))
		abort();
	elf_find_text_user(f, "alpha", &by_text, NULL);
	if (!elf_find_taken(f, &by_text, &sym, NULL) && elf_exec_off(f, sym.va, &off))
		abort();
	read_fields(f, &by_text);
	elf_is_upx(f);
}

static void read_elf(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"", "a", "main", "alpha", "beta", "malloc", "_ZN5mxnet12on_enter_apiEPKc"};
	uint8_t id[ELF_BUILD_ID_MAX];
	struct err e = {0};
	struct elf *f;

	if (elf_open(file_of(data, size), &f, &e)) {
		if (!e.why[0] || f)
			abort();
		return;
	}
	if (elf_build_id(f, id) > sizeof(id))
		abort();
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct elf_sym s;

		if (elf_find_sym(f, names[i], &s, NULL))
			continue;
		read_around(f, s.va);
		read_function(f, s.va);
		read_fields(f, &s);
	}
	read_hidden(f);
	read_lists(f);
	for (uint64_t off = 0; off < size; off += 1 + size / 16) {
		uint64_t va;

		if (elf_off_va(f, off, &va))
			continue;
		read_around(f, va);
		read_function(f, va);
	}
	elf_close(f);
}

static void read_code(const uint8_t *data, size_t size)
{
	struct insn_entry entry;
	enum insn_cost cost;
	uint32_t len;

	/* The last bytes, too, where the code ends in an instruction. */
	for (size_t n = 1; n < 16 && n < size; n++)
		if (!insn_classify(data + size - n, n, &cost, &len) && (!len || len > n))
			abort();
	if (!insn_classify(data, size, &cost, &len) && (!len || len > size))
		abort();
	insn_is_boundary(data, size, size / 2);
	if (insn_place_entry(data, size, 0x1000, &entry, NULL))
		return;
	if (entry.cost == INSN_REFUSED || insn_is_boundary(data, size, entry.delta_bytes) != 1)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t id[ELF_BUILD_ID_MAX];

	read_elf(data, size);
	read_code(data, size);
	elf_build_id_of_notes(data, size, id);
	return 0;
}
