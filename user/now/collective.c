// SPDX-License-Identifier: Apache-2.0
/*
 * The collective in which a process waits. Nothing is asked of the process: a thread that executes or awaits a
 * collective has a pointer to its object on the stack. The object's class says what it is, and the code of a virtual
 * function says where its number is.
 */
#include <string.h>

#include "now/now.h"
#include "now/priv.h"

#define OBJECT_BYTES 1024 /* that are searched for the group */
#define SLOTS_MAX    48	  /* virtual functions of a class */

/* The process's library, which is looked at once for all its threads. */
struct of_library {
	const struct adp_collective *adp;
	struct tgt *t;
	uint64_t numbers[ADP_COLLECTIVE_NUMBERS]; /* addresses of the functions; 0: not there */
};

static bool may_be_address(uint64_t addr)
{
	return addr > 4096 && !(addr & 7) && addr < 1ull << 47;
}

/* Reads the mangled name of an object's class: vtable, type information, name. Returns false if it is no object. */
bool now_class_of(struct tgt *t, uint64_t object, uint64_t *vtable, char name[NOW_CLASS_BYTES])
{
	uint64_t info, text;
	ssize_t n;

	if (!may_be_address(object) || tgt_read(t, object, vtable, sizeof(*vtable)) || !may_be_address(*vtable) ||
	    tgt_read(t, *vtable - sizeof(info), &info, sizeof(info)) || !may_be_address(info) ||
	    tgt_read(t, info + sizeof(text), &text, sizeof(text)) || text < 4096)
		return false;
	n = tgt_read_some(t, text, name, NOW_CLASS_BYTES - 1);
	name[n > 0 ? n : 0] = '\0';
	if (*name == '*') /* the class is local to its file */
		memmove(name, name + 1, strlen(name));
	return n > 0;
}

static bool now_collective_begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* The member that a function returns: "mov disp(%rdi), %rax; ret". Returns -1 if the function is another one. */
static int64_t returned_off(struct tgt *t, uint64_t function)
{
	static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa}, far[] = {0x48, 0x8b, 0x87},
			     near[] = {0x48, 0x8b, 0x47};
	uint8_t code[16], *c = code;
	int32_t off;

	if (tgt_read(t, function, code, sizeof(code)))
		return -1;
	c += memcmp(c, endbr, sizeof(endbr)) ? 0 : sizeof(endbr);
	if (!memcmp(c, near, sizeof(near)) && c[4] == 0xc3)
		return c[3];
	if (memcmp(c, far, sizeof(far)) || c[7] != 0xc3)
		return -1;
	memcpy(&off, c + sizeof(far), sizeof(off));
	return off;
}

/* The number is the member that one of the virtual functions of the object's class returns. */
static bool read_number(const struct of_library *l, uint64_t object, uint64_t vtable, uint64_t *number)
{
	uint64_t slots[SLOTS_MAX];
	ssize_t got = tgt_read_some(l->t, vtable, slots, sizeof(slots));
	size_t i, k, n = got > 0 ? (size_t)got / sizeof(slots[0]) : 0;
	int64_t off;

	for (i = 0; i < n; i++)
		for (k = 0; k < ADP_COLLECTIVE_NUMBERS; k++) {
			if (!l->numbers[k] || slots[i] != l->numbers[k])
				continue;
			off = returned_off(l->t, slots[i]);
			return off >= 0 && !tgt_read(l->t, object + (uint64_t)off, number, sizeof(*number));
		}
	return false;
}

/* Finds the group among what the object points to. */
static void read_group(const struct of_library *l, uint64_t object, struct now_collective *c)
{
	uint64_t words[OBJECT_BYTES / 8], vtable;
	ssize_t got = tgt_read_some(l->t, object, words, sizeof(words));
	size_t i, n = got > 0 ? (size_t)got / sizeof(words[0]) : 0;
	char name[NOW_CLASS_BYTES];
	int32_t of[2];

	for (i = 1; i < n; i++) {
		if (!now_class_of(l->t, words[i], &vtable, name) || !now_collective_begins(name, l->adp->group_scope) ||
		    !strstr(name, l->adp->group_word) || tgt_read(l->t, words[i] + l->adp->rank_off, of, sizeof(of)))
			continue;
		if (of[0] < 0 || of[1] <= of[0])
			continue;
		c->rank = (uint32_t)of[0];
		c->ranks = (uint32_t)of[1];
		return;
	}
}

static bool read_object(const struct of_library *l, uint64_t object, struct now_collective *c)
{
	uint64_t vtable;
	char name[NOW_CLASS_BYTES];
	size_t i;

	if (!now_class_of(l->t, object, &vtable, name) || !now_collective_begins(name, l->adp->scope) ||
	    !strstr(name, l->adp->word))
		return false;
	*c = (struct now_collective){.name = NULL};
	for (i = 0; l->adp->names[i][0] && !c->name; i++)
		c->name = strstr(name, l->adp->names[i][0]) ? l->adp->names[i][1] : NULL;
	if (!c->name)
		return false;
	c->numbered = read_number(l, object, vtable, &c->number);
	return true;
}

bool now_is_in(const struct now_thread *t, const char *function)
{
	size_t i, n = buf_count(&t->frames, struct now_frame);

	for (i = 0; i < n; i++)
		if (strstr(buf_at(&t->frames, struct now_frame, i)->name, function))
			return true;
	return false;
}

static bool takes_part(const struct adp_collective *a, const struct now_thread *t)
{
	const char *const *function;

	for (function = a->functions; *function; function++)
		if (now_is_in(t, *function))
			return true;
	return false;
}

/* Objects of earlier collectives may have left their addresses on the stack: the latest counts. */
static bool search(const struct of_library *l, const struct now_thread *t, struct now_collective *c)
{
	uint64_t words[NOW_STACK_BYTES / 8], object = 0;
	ssize_t got = tgt_read_some(l->t, t->doing.sp & ~7ull, words, sizeof(words));
	size_t i, n = got > 0 ? (size_t)got / sizeof(words[0]) : 0;
	struct now_collective one;

	for (i = 0; i < n; i++) {
		if (words[i] == object || !read_object(l, words[i], &one) ||
		    (object && (!one.numbered || one.number <= c->number)))
			continue;
		object = words[i];
		*c = one;
	}
	if (object)
		read_group(l, object, c);
	return object;
}

static void find_numbers(struct of_library *l, const struct plan *p)
{
	struct tgt_lib *lib = NULL;
	struct elf_sym sym;
	struct elf *elf;
	size_t i;

	for (i = 0; i < tgt_nlibs(l->t) && !lib; i++)
		if (tgt_lib(l->t, i)->ino == p->lib->ino && tgt_lib(l->t, i)->dev == p->lib->dev)
			lib = tgt_lib(l->t, i);
	if (!lib || tgt_lib_elf(l->t, lib, &elf, NULL))
		return;
	for (i = 0; i < ADP_COLLECTIVE_NUMBERS && l->adp->numbers[i]; i++)
		if (!elf_find_sym(elf, l->adp->numbers[i], &sym, NULL))
			l->numbers[i] = sym.va + lib->load_bias;
}

bool now_collective(struct now *n, struct now_collective *c, struct err *e)
{
	struct of_library l = {.adp = &now_plan(n)->adp->collective, .t = now_target(n)};
	const struct now_thread *t;
	struct now_collective one;
	bool looked = false, found = false;
	size_t i;

	for (i = 0; l.adp->functions && (t = now_thread_at(n, i)); i++) {
		if (!t->still || !takes_part(l.adp, t))
			continue;
		if (!looked)
			find_numbers(&l, now_plan(n));
		looked = true;
		if (!search(&l, t, &one) || (found && (!one.numbered || (c->numbered && one.number >= c->number))))
			continue;
		found = true;
		*c = one;
		c->tid = t->tid;
	}
	return found || now_pending(n, c, e);
}
