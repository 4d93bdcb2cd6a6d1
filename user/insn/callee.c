// SPDX-License-Identifier: Apache-2.0
#include "insn/callee.h"

#include <errno.h>
#include <string.h>

#include "elf/names.h"
#include "insn/cut.h"
#include "insn/flow.h"

/* A name that is longer counts as unknown, because its end would be missing. */
#define NAME_BYTES	 4096
#define IMPORT_SLOTS_MAX 8

#define THROWS	     CALLEE_THROWS, FLOW_LEVEL_THROW
#define STOPS	     CALLEE_STOPS, 0
#define TWICE	     CALLEE_TWICE, FLOW_LEVEL_WORK
#define MAY_THROW    CALLEE_PLAIN, FLOW_LEVEL_WORK
#define FREES	     CALLEE_NOTHROW, 1
#define DESTROYS     CALLEE_NOTHROW, 3
#define WHOLE(name)  name, NULL, NULL
#define BEGIN(name)  name, "", NULL
#define INSIDE(name) NULL, name, NULL
#define END(name)    NULL, NULL, name

/*
 * What callees do, by name; the first matching row decides. A missing row costs a cut, a wrong row makes a false cut.
 * So the table lists only functions that never throw and do no work worth timing.
 */
static const struct {
	const char *begin, *inside, *end; /* begin alone: the whole name */
	enum callee_kind kind;
	uint8_t level;
} rows[] = {
	{BEGIN("_Unwind_Resume"), THROWS},
	{WHOLE("_Unwind_RaiseException"), THROWS},
	{BEGIN("__cxa_throw"), THROWS},
	{WHOLE("__cxa_rethrow"), THROWS},
	{WHOLE("__cxa_bad_cast"), THROWS},
	{WHOLE("__cxa_bad_typeid"), THROWS},
	{WHOLE("__cxa_call_unexpected"), THROWS},
	{"_ZSt", "__throw_", NULL, THROWS},
	{BEGIN("_ZSt17rethrow_exception"), THROWS},
	/* These unwind, or leave frames without returning. */
	{WHOLE("pthread_exit"), THROWS},
	{WHOLE("longjmp"), THROWS},
	{WHOLE("_longjmp"), THROWS},
	{WHOLE("siglongjmp"), THROWS},
	{WHOLE("__longjmp_chk"), THROWS},
	/* These destructors throw: they end the macros CHECK and LOG(FATAL). */
	{BEGIN("_ZN4dmlc15LogMessageFatalD"), THROWS},
	{BEGIN("_ZN3c1013MessageLoggerD"), MAY_THROW},

	{WHOLE("_ZSt9terminatev"), STOPS},
	{WHOLE("__clang_call_terminate"), STOPS},
	{WHOLE("__cxa_call_terminate"), STOPS},
	{WHOLE("__cxa_pure_virtual"), STOPS},
	{WHOLE("__cxa_deleted_virtual"), STOPS},
	{WHOLE("__stack_chk_fail"), STOPS},
	{WHOLE("__assert_fail"), STOPS},
	{WHOLE("abort"), STOPS},
	{WHOLE("exit"), STOPS},
	{WHOLE("_exit"), STOPS},
	{WHOLE("_Exit"), STOPS},
	{WHOLE("quick_exit"), STOPS},

	{WHOLE("setjmp"), TWICE},
	{WHOLE("_setjmp"), TWICE},
	{WHOLE("sigsetjmp"), TWICE},
	{WHOLE("__sigsetjmp"), TWICE},
	{WHOLE("vfork"), TWICE},
	{WHOLE("getcontext"), TWICE},
	{WHOLE("swapcontext"), TWICE},

	{BEGIN("_ZdlPv"), FREES},
	{BEGIN("_ZdaPv"), FREES},
	{WHOLE("free"), FREES},
	{WHOLE("pthread_mutex_unlock"), FREES},
	{WHOLE("pthread_rwlock_unlock"), FREES},
	{WHOLE("__cxa_begin_catch"), FREES},
	{WHOLE("__cxa_end_catch"), FREES},
	{WHOLE("__cxa_guard_release"), FREES},
	{WHOLE("__cxa_free_exception"), FREES},
	{WHOLE("__errno_location"), FREES},
	{WHOLE("__tls_get_addr"), FREES},
	{BEGIN("_ZNSs4_Rep10_M_destroyE"), FREES},

	{END("D0Ev"), DESTROYS},
	{END("D1Ev"), DESTROYS},
	{END("D2Ev"), DESTROYS},
	{INSIDE("10_M_release"), DESTROYS},
	{INSIDE("10_M_dispose"), DESTROYS},
	{INSIDE("10_M_destroy"), DESTROYS},
	{END("6unlockEv"), DESTROYS},
	{"_ZN3c1013intrusive_ptr", "reset_", NULL, DESTROYS},
	{WHOLE("memset"), DESTROYS},
	{WHOLE("memcpy"), DESTROYS},
	{WHOLE("memmove"), DESTROYS},
	{WHOLE("memcmp"), DESTROYS},
	{WHOLE("strlen"), DESTROYS},
};

static bool callee_begins(const char *name, const char *text)
{
	return !strncmp(name, text, strlen(text));
}

static bool ends(const char *name, const char *text)
{
	size_t n = strlen(name), k = strlen(text);

	return n >= k && !strcmp(name + n - k, text);
}

static bool matches(size_t r, const char *name)
{
	if (rows[r].begin && !rows[r].inside)
		return !strcmp(name, rows[r].begin);
	return (!rows[r].begin || callee_begins(name, rows[r].begin)) &&
	       (!rows[r].inside || strstr(name, rows[r].inside)) && (!rows[r].end || ends(name, rows[r].end));
}

static void callee_judge(const char *name, struct callee *out)
{
	out->cold = strstr(name, ".cold");
	for (size_t r = 0; r < sizeof(rows) / sizeof(*rows); r++) {
		if (!matches(r, name))
			continue;
		out->kind = rows[r].kind;
		out->level = rows[r].level;
		return;
	}
}

/* Returns the slot of a stub [endbr64] [bnd] jmp *disp(%rip), or 0. */
static uint64_t slot_of_stub(const struct elf *elf, uint64_t va)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	uint8_t code[11];
	unsigned at = 0;
	int32_t disp;

	if (elf_read_kept_va(elf, va, code, sizeof(code)))
		return 0;
	if (!memcmp(code, endbr64, sizeof(endbr64)))
		at = sizeof(endbr64);
	if (code[at] == 0xf2)
		at++;
	if (code[at] != 0xff || code[at + 1] != 0x25)
		return 0;
	memcpy(&disp, code + at + 2, sizeof(disp));
	return va + at + 6 + (uint64_t)(int64_t)disp;
}

static int judged(int len, const char *name, struct callee *out)
{
	if (len == -ENOENT)
		return 0;
	if (len > 0 && len < NAME_BYTES - 1)
		callee_judge(name, out);
	return len < 0 ? len : 0;
}

/* A struct callee is packed into one word, which the ELF reader keeps for the address. */
enum {
	NOTE_AT = 1,	  /* the callee of a branch to the address */
	NOTE_OF_SLOT = 2, /* the callee of a branch through the GOT slot at the address */
};

#define KNOWN	    ((uint64_t)1 << 32)
#define LEVEL_SHIFT 8
#define IMPORT	    (1u << 16)
#define COLD	    (1u << 17)

static uint64_t packed(const struct callee *c)
{
	return KNOWN | (uint64_t)c->kind | (uint64_t)c->level << LEVEL_SHIFT | (c->import ? IMPORT : 0) |
	       (c->cold ? COLD : 0);
}

static struct callee unpacked(uint64_t note)
{
	return (struct callee){.kind = (enum callee_kind)(note & 0xff),
			       .level = (uint8_t)(note >> LEVEL_SHIFT),
			       .import = note & IMPORT,
			       .cold = note & COLD};
}

/* Looks up each callee once per file, because thousands of functions call the same few hundred. */
static int noted(struct elf *elf, unsigned kind, uint64_t va,
		 int (*find)(struct elf *elf, uint64_t va, struct callee *out), struct callee *out)
{
	uint64_t *note = elf_note(elf, kind, va);
	int err;

	if (!note)
		return -ENOMEM;
	if (*note) {
		*out = unpacked(*note);
		return 0;
	}
	err = find(elf, va, out);
	if (err)
		return err;
	note = elf_note(elf, kind, va); /* the table may have moved */
	if (!note)
		return -ENOMEM;
	*note = packed(out);
	return 0;
}

static int find_of_slot(struct elf *elf, uint64_t va, struct callee *out)
{
	char name[NAME_BYTES];

	*out = (struct callee){.level = FLOW_LEVEL_WORK};
	return judged(elf_import_name(elf, va, name, sizeof(name)), name, out);
}

int callee_of_slot(struct elf *elf, uint64_t va, struct callee *out)
{
	return noted(elf, NOTE_OF_SLOT, va, find_of_slot, out);
}

static int find_at(struct elf *elf, uint64_t va, struct callee *out)
{
	uint64_t slot = slot_of_stub(elf, va);
	char name[NAME_BYTES];
	int err;

	if (slot) {
		err = callee_of_slot(elf, slot, out);
		out->import = true;
		return err;
	}
	*out = (struct callee){.level = FLOW_LEVEL_WORK};
	return judged(elf_func_name(elf, va, name, sizeof(name)), name, out);
}

int callee_at(struct elf *elf, uint64_t va, struct callee *out)
{
	return noted(elf, NOTE_AT, va, find_at, out);
}

static int note_frees(struct elf *elf, unsigned kind, uint64_t va)
{
	const struct callee frees = {FREES, false, false};
	uint64_t *note = elf_note(elf, kind, va);

	if (!note)
		return -ENOMEM;
	*note = packed(&frees);
	return 0;
}

int cut_allow(struct elf *elf, const char *symbol)
{
	uint64_t slots[IMPORT_SLOTS_MAX];
	struct elf_sym sym = {0};
	int n = elf_import_slots(elf, symbol, slots, IMPORT_SLOTS_MAX), err = n == -ENOMEM ? n : 0, i;

	for (i = 0; !err && i < n && i < IMPORT_SLOTS_MAX; i++)
		err = note_frees(elf, NOTE_OF_SLOT, slots[i]);
	if (!err && !elf_find_sym(elf, symbol, &sym, NULL) && sym.type == ELF_SYM_FUNC)
		err = note_frees(elf, NOTE_AT, sym.va);
	return err;
}

int callee_name(struct elf *elf, uint64_t va, char *name, size_t max)
{
	uint64_t slot = slot_of_stub(elf, va);

	return slot ? elf_import_name(elf, slot, name, max) : elf_func_name(elf, va, name, max);
}

int callee_in_file(struct elf *elf, uint64_t va, uint64_t *out_va)
{
	uint64_t slot = slot_of_stub(elf, va);
	char name[NAME_BYTES];
	struct elf_sym sym = {0};
	int len;

	*out_va = va;
	if (!slot)
		return 0;
	len = elf_import_name(elf, slot, name, sizeof(name));
	if (len < 0 || len >= NAME_BYTES - 1)
		return len < 0 ? len : -ENOENT;
	len = elf_find_sym(elf, name, &sym, NULL);
	if (!len && sym.type != ELF_SYM_FUNC)
		len = -ENOENT;
	*out_va = sym.va;
	return len == -ENOTUNIQ ? -ENOENT : len;
}
