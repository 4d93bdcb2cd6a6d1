// SPDX-License-Identifier: Apache-2.0
/*
 * Tests the recognition of functions by shape, for libraries without symbols, against the real PyTorch, which has
 * symbols.
 */
#include "insn/caller.h"

#include "elf/names.h"
#include "opened_elf.h"

#define STEP_CALLBACKS "_ZN2at27getStepCallbacksUnlessEmptyENS_11RecordScopeE"

static const struct caller_shape boxed = {0, {0, 1, 0, 2}}, node = {1, {1, 2}};

/* A function that aligns its stack: its frame address is stored in a stack word. */
__asm__(".text\n.type aligns,@function\naligns:\n.cfi_startproc\npush %rbp\n.cfi_def_cfa_offset 16\nmov %rsp,%rbp\n"
	"push %rbp\n.cfi_escape 0x0f,3,0x76,0x78,6\ncall called_aligned\npop %rax\npop %rbp\n.cfi_def_cfa 7,8\nret\n"
	".cfi_endproc\n.size aligns,.-aligns\n");

void called_aligned(void);
void called_aligned(void)
{
}

static int take_caller(void *ctx, uint64_t va)
{
	struct caller *c = ctx;
	FREED(elf_closed) struct elf *self = opened_elf("/proc/self/exe");
	int err = caller_find(self, va, NULL, c);

	return err;
}

struct seen {
	struct elf *elf;
	unsigned calls, failed, wrong_start, operators, shaped_operators, boxed, not_boxed, nodes, not_nodes;
};

static bool begins(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

/* The last two are no clones of callBoxed, but contain an inlined call of it with the same arguments. */
static bool is_boxed(const char *name)
{
	return begins(name, "_ZNK3c1010Dispatcher9callBoxedE") || strstr(name, "functionalizeFallback") ||
	       strstr(name, "general_trace_function");
}

static int on_call(void *ctx, uint64_t va)
{
	struct seen *s = ctx;
	struct caller c, n;
	char name[4096];

	s->calls++;
	if (caller_find(s->elf, va, &boxed, &c) || caller_find(s->elf, va, &node, &n)) {
		s->failed++;
		return 0;
	}
	if (elf_func_name(s->elf, c.start_va, name, sizeof(name)) < 0 || c.return_va != va + 5)
		s->wrong_start++;
	if (begins(name, "_ZN2at4_ops")) {
		s->operators++;
		s->shaped_operators += c.shaped || n.shaped;
	}
	s->boxed += is_boxed(name) && c.shaped;
	s->not_boxed += is_boxed(name) != c.shaped;
	s->nodes += begins(name, "_ZN5torch8autograd4NodeclE") && n.shaped;
	s->not_nodes += begins(name, "_ZN5torch8autograd4NodeclE") != n.shaped;
	return 0;
}

/* Counts the functions that wrong shapes find. */
static int on_call_other(void *ctx, uint64_t va)
{
	static const struct caller_shape others[] = {
		{1, {0, 1, 0, 2}}, {0, {0, 2, 0, 1}}, {0, {1, 2, 3, 4}}, {0, {2, 1}}, {1, {2, 1}}};
	struct seen *s = ctx;
	struct caller c;

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		s->boxed += !caller_find(s->elf, va, &others[i], &c) && c.shaped;
	return 0;
}

int main(void)
{
	struct elf *elf = opened_elf(unit_library("MXBPF_TEST_LIBTORCH"));
	struct seen s = {.elf = elf}, other = {.elf = elf};
	struct elf *self = opened_elf("/proc/self/exe");
	struct caller c = {0};

	TEST("a function that aligns its stack has a frame address relative to rbp, not to the stack pointer")
	{
		CHECK(!elf_each_call(self, "called_aligned", take_caller, &c));
		CHECK(c.cfa_base == CUT_CFA_AT_RBP && c.cfa_off == -8);
		elf_close(self);
	}
	if (!elf) {
		TEST_IF(elf, "functions in libtorch_cpu.so are recognized by the arguments that they pass on", NO_TORCH)
		CHECK(0);
		UNIT_MAIN_END;
	}
	TEST("functions in libtorch_cpu.so are recognized without their names by the arguments that they pass on")
	{
		CHECK(!elf_each_call(elf, STEP_CALLBACKS, on_call, &s));
		CHECK(s.calls == 3153 && !s.failed && !s.wrong_start);
		CHECK(s.operators == 3101 && !s.shaped_operators);
		CHECK(s.boxed == 15 && !s.not_boxed);
		CHECK(s.nodes == 1 && !s.not_nodes);
	}

	TEST("a wrong shape finds no function")
	{
		CHECK(!elf_each_call(elf, STEP_CALLBACKS, on_call_other, &other));
		CHECK(!other.boxed);
	}

	TEST("an address that is not the start of a call instruction is rejected")
	{
		struct elf_sym sym;

		CHECK(!elf_find_sym(elf, "_ZN2at4_ops2mm4callERKNS_6TensorES4_", &sym, NULL));
		CHECK(caller_find(elf, sym.va, NULL, &c) == -ENOENT);
		CHECK(caller_find(elf, sym.va + 1, NULL, &c) == -ENOENT);
		CHECK(caller_find(elf, 1, NULL, &c) == -ENOENT);
		CHECK(elf_each_call(elf, "no such function", on_call, &s) == -ENOENT);
	}
	elf_close(elf);
	UNIT_MAIN_END;
}
