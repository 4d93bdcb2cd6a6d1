// SPDX-License-Identifier: Apache-2.0
/*
 * Tests members of objects that are found by the code of functions: in functions of this file, and in the libraries of
 * PyTorch 2.15.0 for CUDA (tests/torch_next/setup.sh), where the offsets are those that objdump shows.
 */

#include "adapter/adapter.h"
#include "insn/members.h"
#include "opened_elf.h"

#define NEXT "build/deps/torch-next"

#define FUNCTION(NAME, CODE)                                                                                           \
	__asm__(".text\n.globl " #NAME "\n.type " #NAME ", @function\n" #NAME ":\n" CODE "\n.size " #NAME              \
		", . - " #NAME "\n")

FUNCTION(callee_of_members, "ret");
FUNCTION(one_load, "endbr64\nmov 0x148(%rdi), %rax\nret");
FUNCTION(two_loads, "mov 0xa0(%rdi), %rax\nmov 0x50(%rax), %rax\nret");
FUNCTION(narrow_pointer, "mov 0xa0(%rdi), %eax\nmov 0x50(%rax), %rax\nret");
FUNCTION(computed, "mov 0x148(%rdi), %rax\nadd $1, %rax\nret");
FUNCTION(address_second, "lea 0x210(%rdi), %r13\ncall one_load\nmov %r13, %rsi\ncall callee_of_members\nret");
FUNCTION(address_lost, "lea 0x210(%rdi), %rsi\ncall one_load\ncall callee_of_members\nret");
FUNCTION(address_replaced, "lea 0x210(%rdi), %rsi\nmov 0x8(%rdi), %rsi\ncall callee_of_members\nret");
FUNCTION(stores, "push %rbx\nmov %esi, 0x10(%rdi)\nmov %edx, 0x14(%rdi)\nret");
FUNCTION(stores_apart, "mov %esi, 0x10(%rdi)\nmov %edx, 0x18(%rdi)\nret");
FUNCTION(text_apart, "mov 0x288(%rsi), %rdx\nmov 0x298(%rsi), %rax\nret");
FUNCTION(tests_global, "cmpq $0, one_load(%rip)\ncmpq $0, 0x400(%rbx)\nret");

static int find_in(const char *name, enum members_how how, int32_t *off)
{
	int fd = open("/proc/self/exe", O_RDONLY), err = -ENOENT;
	FREED(elf_closed) struct elf *self = NULL;
	struct elf_sym sym;

	*off = -1;
	if (fd >= 0 && !elf_open(fd, &self, NULL) && !elf_find_sym(self, name, &sym, NULL))
		err = members_find(self, &sym, how, "callee_of_members", off, NULL);
	close(fd);
	return err;
}

static void test_forms(void)
{
	int32_t off;

	TEST("members are found by functions that return, pass, store or test them")
	{
		CHECK(!find_in("one_load", MEMBERS_RETURNED, &off) && off == 0x148);
		CHECK(!find_in("two_loads", MEMBERS_BEHIND, &off) && off == 0x50);
		CHECK(!find_in("address_second", MEMBERS_SECOND, &off) && off == 0x210);
		CHECK(!find_in("stores", MEMBERS_STORED, &off) && off == 0x10);
		CHECK(!find_in("tests_global", MEMBERS_TESTED, &off) && off == 0x400);
	}
	TEST("a member is not found if the code has another form")
	{
		CHECK(find_in("one_load", MEMBERS_BEHIND, &off) == -EILSEQ);
		CHECK(find_in("two_loads", MEMBERS_RETURNED, &off) == -EILSEQ);
		CHECK(find_in("narrow_pointer", MEMBERS_BEHIND, &off) == -EILSEQ);
		CHECK(find_in("computed", MEMBERS_RETURNED, &off) == -EILSEQ);
		CHECK(find_in("address_second", MEMBERS_FIRST, &off) == -EILSEQ);
		CHECK(find_in("address_lost", MEMBERS_SECOND, &off) == -EILSEQ);
		CHECK(find_in("address_replaced", MEMBERS_SECOND, &off) == -EILSEQ);
		CHECK(find_in("stores_apart", MEMBERS_STORED, &off) == -EILSEQ);
		CHECK(find_in("text_apart", MEMBERS_TEXT, &off) == -EILSEQ);
	}
}

static struct elf *open_next(const char *name)
{
	const char *next = getenv("MXBPF_TEST_NEXT");
	char path[4096];

	snprintf(path, sizeof(path), "%s/site/torch/lib/%s", next ? next : NEXT, name);
	return opened_elf(path);
}

/* Another version may have other offsets, but all must be found there. */
static void test_next(struct elf *cpu, struct elf *cuda)
{
	static const int32_t told[][QUEUE_MEMBERS] = {
		{0x168, 0x10, 0x288, 0x50, 0x28, 0xc8, 0, 0x38, 0x400, 0x128, 0xe8, 0x50},
		{0x210, 0x10, 0, 0x148, 0x140, 0, 0x7c},
	};
	const bool same = !access(NEXT "/site/torch-2.15.0.dist-info", F_OK) && !getenv("MXBPF_TEST_NEXT");
	const struct adp_queue *q;
	struct elf_sym sym;
	struct elf *in;
	struct err e;
	int32_t off;
	int m;

	for (q = adapter_pytorch_queues; q->function; q++)
		for (m = 0; m < QUEUE_MEMBERS; m++) {
			if (!q->at[m].symbol)
				continue;
			e = (struct err){0};
			in = strstr(q->at[m].lib_glob, "cuda") ? cuda : cpu;
			CHECK(!elf_find_sym(in, q->at[m].symbol, &sym, &e) &&
			      !members_find(in, &sym, q->at[m].how, q->at[m].of, &off, &e));
			if (e.code)
				printf("# %s: %s\n", q->at[m].symbol, e.why);
			CHECK(e.code || !same || off == told[q - adapter_pytorch_queues][m]);
		}
}

int main(void)
{
	struct elf *cpu = open_next("libtorch_cpu.so"), *cuda = open_next("libtorch_cuda.so");

	test_forms();
	TEST_IF(cpu && cuda, "members of both of PyTorch's process groups for NCCL are found where objdump shows them",
		"no newer PyTorch: tests/setup.sh fetches it")
	test_next(cpu, cuda);
	elf_close(cpu);
	elf_close(cuda);
	return unit_end();
}
