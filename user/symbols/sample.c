// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/demangle.h"
#include "elf/names.h"
#include "elf/unwind.h"
#include "symbols/ended.h"
#include "symbols/sample_priv.h"
#include "target/target.h"

#define LOOK_EVERY_NS 1000000000ull
#define SYMBOL_BYTES  2048
#define KNOWN_MAX     (1u << 16) /* limit of addresses with stored names */
#define NO_FRAME      "-"	 /* text for an address that belongs to no frame */

struct process {
	struct tgt *t; /* NULL: the process ended before it could be opened */
	uint64_t looked_ns;
};

struct smp {
	struct hash processes; /* tgid -> struct process *, owned */
	struct hash known;     /* (2 * address + whether a call returns there, tgid) -> char *, owned */
	struct kernel kernel;
};

struct smp *smp_new(void)
{
	return calloc(1, sizeof(struct smp));
}

static void forget_names(struct smp *s)
{
	const struct hash_entry *e;
	size_t pos = 0;

	while ((e = hash_next(&s->known, &pos)))
		free((void *)(uintptr_t)e->val);
	hash_clear(&s->known);
}

static const struct tgt *process_target(const void *value)
{
	return ((const struct process *)value)->t;
}

static void process_free(void *value)
{
	tgt_close(((struct process *)value)->t);
	free(value);
}

static const struct sym_owner processes = {process_target, process_free};

void smp_free(struct smp *s)
{
	const struct hash_entry *e;
	size_t pos = 0;

	if (!s)
		return;
	while ((e = hash_next(&s->processes, &pos)))
		if (e->val)
			process_free((void *)(uintptr_t)e->val);
	hash_fini(&s->processes);
	forget_names(s);
	hash_fini(&s->known);
	kernel_fini(&s->kernel);
	free(s);
}

/* Reads the current mappings. If the process has ended, the last known mappings stay. */
static void sample_look(struct process *p, uint32_t tgid, uint64_t now_ns)
{
	struct tgt *t = NULL;

	p->looked_ns = now_ns;
	if (tgt_open((pid_t)tgid, &t, NULL))
		return;
	tgt_close(p->t);
	p->t = t;
}

static struct process *process_of(struct smp *s, uint32_t tgid)
{
	uint64_t *known;

	if (!hash_get(&s->processes, tgid, 0))
		sym_forget_ended(&s->processes, &processes);
	known = hash_put(&s->processes, tgid, 0);
	if (known && !*known)
		*known = (uintptr_t)calloc(1, sizeof(struct process));
	return known ? (struct process *)(uintptr_t)*known : NULL;
}

/* Returns the file mapped at an address. Mappings that are newer than the last look are searched once a second. */
static struct tgt_lib *lib_at(struct smp *s, uint32_t tgid, uint64_t addr, struct tgt **t)
{
	struct process *p = process_of(s, tgid);
	struct tgt_lib *lib;
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	if (!p)
		return NULL;
	lib = p->t ? tgt_lib_at(p->t, addr) : NULL;
	if (!lib && (!p->looked_ns || now_ns - p->looked_ns >= LOOK_EVERY_NS)) {
		sample_look(p, tgid, now_ns);
		lib = p->t ? tgt_lib_at(p->t, addr) : NULL;
	}
	*t = p->t;
	return lib;
}

static void put_symbol(const char *symbol, char name[NAME_BYTES])
{
	char *plain = demangle(symbol);

	snprintf(name, NAME_BYTES, "%.*s", NAME_BYTES - 1, plain ? plain : symbol);
	free(plain);
}

static bool is_return_address(struct elf *elf, uint64_t va)
{
	uint8_t bytes[CALL_BYTES];

	return va > sizeof(bytes) && !elf_read_va(elf, va - sizeof(bytes), bytes, sizeof(bytes)) && ends_in_call(bytes);
}

/* A return address may be the start of the next function, so look up the byte before it. */
static void read_name(struct smp *s, uint32_t tgid, uint64_t addr, bool returns, char line[NAME_BYTES])
{
	char symbol[SYMBOL_BYTES], name[NAME_BYTES];
	struct elf_fde fde;
	struct tgt *t = NULL;
	struct tgt_lib *lib = lib_at(s, tgid, addr, &t);
	const char *base = lib ? strrchr(lib->path, '/') + 1 : "";
	struct elf *elf = NULL;
	uint64_t va, start;

	if (lib && tgt_lib_elf(t, lib, &elf, NULL))
		elf = NULL;
	if (!elf) {
		snprintf(line, NAME_BYTES, "%s", returns ? NO_FRAME : "[unknown]\t");
		return;
	}
	va = addr - lib->load_bias;
	if (returns && !is_return_address(elf, va)) {
		snprintf(line, NAME_BYTES, NO_FRAME);
		return;
	}
	va -= returns;
	if (elf_func_around(elf, va, &start, symbol, sizeof(symbol)) > 0)
		put_symbol(symbol, name);
	else
		snprintf(name, sizeof(name), "[unknown] %.200s+0x%" PRIx64, base,
			 elf_fde_find(elf, va, &fde, NULL) ? va : fde.start_va);
	snprintf(line, NAME_BYTES, "%.*s\t%.200s", NAME_BYTES - 204, name, base);
}

static const char *sample_name_of(struct smp *s, uint32_t tgid, uint64_t addr, bool returns)
{
	char line[NAME_BYTES], *c;
	uint64_t *known;

	if (s->known.len >= KNOWN_MAX)
		forget_names(s);
	known = hash_put(&s->known, addr << 1 | returns, tgid);
	if (!known)
		return NO_FRAME;
	if (!*known) {
		read_name(s, tgid, addr, returns, line);
		for (c = line; *c; c++)
			if (*c == '\n') /* a file name may contain one */
				*c = ' ';
		*known = (uintptr_t)strdup(line);
	}
	return *known ? (const char *)(uintptr_t)*known : NO_FRAME;
}

static bool sample_put_line(const char *line, char *text, size_t max, size_t *len)
{
	size_t n = strlen(line), sep = *len > 0;

	if (*len + sep + n > max)
		return false;
	if (sep)
		text[(*len)++] = '\n';
	memcpy(text + *len, line, n);
	*len += n;
	return true;
}

size_t smp_text(struct smp *s, const struct mxbpf_sample *r, const struct mxbpf_sample_where *w, char *text, size_t max)
{
	const char *name;
	char line[NAME_BYTES];
	size_t len = 0;
	unsigned i;

	if (r->flags & MXBPF_SAMPLE_KERNEL) {
		name = kernel_name(&s->kernel, w->kernel_addr);
		snprintf(line, sizeof(line), "[kernel]%s%s\t", name ? " " : "", name ? name : "");
		sample_put_line(line, text, max, &len);
	}
	for (i = 0; i < w->naddrs && i < MXBPF_SAMPLE_ADDRS_MAX; i++) {
		name = sample_name_of(s, r->h.tgid, w->addrs[i], i);
		if (!strcmp(name, NO_FRAME) || !sample_put_line(name, text, max, &len))
			break;
	}
	return len;
}
