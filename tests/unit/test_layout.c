/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the offsets of data that are read from code: that of the real libtorch_cpu.so 2.13.0 (MXBPF_TEST_LIBTORCH), and
 * of others. */

#include "insn/layout.h"
#include "opened_elf.h"

static struct elf *elf;

static struct elf_sym find(const char *name)
{
	struct elf_sym sym = {0};

	elf_find_sym(elf, name, &sym, NULL);
	return sym;
}

/* In the wheel of PyTorch 2.11 for CUDA 13.0, the function that runs a node keeps the node in its stack frame. */
__asm__(".text\n"
	".globl _ZN2at14RecordFunctionC1EONS_13StepCallbacksE, _ZN2at14RecordFunction6beforeEPKcl, spilled_node\n"
	".type _ZN2at14RecordFunctionC1EONS_13StepCallbacksE, @function\n"
	"_ZN2at14RecordFunctionC1EONS_13StepCallbacksE: ret\n"
	".size _ZN2at14RecordFunctionC1EONS_13StepCallbacksE, 1\n"
	".type _ZN2at14RecordFunction6beforeEPKcl, @function\n"
	"_ZN2at14RecordFunction6beforeEPKcl: ret\n"
	".size _ZN2at14RecordFunction6beforeEPKcl, 1\n"
	".type spilled_node, @function\n"
	"spilled_node:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	sub $0x268, %rsp\n"
	"	mov %rsi, -0x268(%rbp)\n"
	"	call _ZN2at14RecordFunctionC1EONS_13StepCallbacksE\n"
	"	mov -0x268(%rbp), %rax\n"
	"	cmpb $0, -0x12f(%rbp)\n"
	"	mov 0x30(%rax), %rax\n"
	"	mov %rax, -0x60(%rbp)\n"
	"	jne 1f\n"
	"	mov -0x268(%rbp), %rsi\n"
	"	mov (%rsi), %rax\n"
	"	mov 0x18(%rsi), %r15\n"
	"	call *0x10(%rax)\n"
	"	mov -0x218(%rbp), %rax\n"
	"	mov %r15, %rsi\n"
	"	call _ZN2at14RecordFunction6beforeEPKcl\n"
	"1:	leave\n"
	"	ret\n"
	".size spilled_node, . - spilled_node\n");

/* In the wheel of PyTorch 2.15 for CUDA 13.2, mm reads both key sets before it joins them. In `one_tensor` it reads
 * one. */
__asm__(".text\n"
	".globl joined_later, one_tensor\n"
	".type joined_later, @function\n"
	"joined_later:\n"
	"	mov %rdx, %r13\n"
	"	mov %rsi, %r12\n"
	"	mov (%r12), %rax\n"
	"	mov 0xa8(%rax), %rax\n"
	"	mov %rax, -0xb0(%rbp)\n"
	"	mov 0(%r13), %rax\n"
	"	mov 0xa8(%rax), %r15\n"
	"	or %r15, %rbx\n"
	"	ret\n"
	".size joined_later, . - joined_later\n"
	".type one_tensor, @function\n"
	"one_tensor:\n"
	"	mov (%rsi), %rax\n"
	"	mov (%rdx), %rcx\n"
	"	mov 0xa8(%rax), %rbx\n"
	"	or 0xa8(%rax), %rbx\n"
	"	or 0xb0(%rcx), %rbx\n"
	"	ret\n"
	".size one_tensor, . - one_tensor\n");

static void test_keys(void)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	struct elf_sym later = {0}, one = {0};
	FREED(elf_closed) struct elf *self = NULL;
	uint32_t keys = 0;

	TEST("the key set of a tensor is found if two are read before they are joined, but not by one tensor")
	{
		CHECK(fd >= 0 && !elf_open(fd, &self, NULL) && !elf_find_sym(self, "joined_later", &later, NULL) &&
		      !elf_find_sym(self, "one_tensor", &one, NULL));
		CHECK(!layout_tensor(self, &later, &keys, NULL) && keys == 0xa8);
		CHECK(layout_tensor(self, &one, &keys, NULL) == -EILSEQ);
	}
	close(fd);
}

static void test_spilled(void)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	int32_t number = 0, of_thread = 0;
	struct elf_sym node = {0};
	FREED(elf_closed) struct elf *self = NULL;

	TEST("the number and thread of a node are found if the function keeps the node in its stack frame")
	{
		CHECK(fd >= 0 && !elf_open(fd, &self, NULL) && !elf_find_sym(self, "spilled_node", &node, NULL));
		CHECK(!layout_node(self, &node, &number, &of_thread, NULL) && number == 0x18 && of_thread == 0x30);
	}
	close(fd);
}

static void test_torch(void)
{
	static const char node_call[] = "_ZN5torch8autograd4NodeclEOSt6vectorIN2at6TensorESaIS4_EE";
	struct elf_sym peek = find("_ZN2at15sequence_number4peekEv"), node = find(node_call);
	struct elf_sym mm = find("_ZN2at4_ops2mm4callERKNS_6TensorES4_");
	struct elf_sym thread = find("_ZN2at14RecordFunction15currentThreadIdEv");
	struct elf_sym record = find("_ZN2at14RecordFunctionC1EONS_13StepCallbacksE");
	struct elf_sym before =
		find("_ZN2at14RecordFunction6beforeESt7variantIJSt17basic_string_viewIcSt11char_traitsIc"
		     "EESt17reference_wrapperIKN3c1014FunctionSchemaEEEEl");
	struct elf_sym inputs =
		find("_ZN3c1010Dispatcher17runRecordFunctionERN2at14RecordFunctionESt17reference_wrapperIK"
		     "NS_14FunctionSchemaEENS_11DispatchKeyENS_14DispatchKeySetENS_8ArrayRefIKNS_6IValue"
		     "EEE");
	struct elf_sym is_list = find("_ZNK3c106IValue12isTensorListEv");
	int32_t number = 0, of_thread = 0;
	struct layout_list list;
	struct layout_tls tls;
	uint32_t keys, off;
	struct err e = {0};

	TEST("thread-local variables are found from the code that reads them")
	{
		CHECK(!layout_tls(elf, &peek, &tls, &e) && tls.got_va == 0x1486fb78 && tls.add == 0x170);
		CHECK(!layout_tls(elf, &thread, &tls, &e) && tls.got_va == 0x1486fb78 && tls.add == 0x2250);
	}
	TEST("the number and thread of a node are found from the code that passes them to a profiler")
	CHECK(!layout_node(elf, &node, &number, &of_thread, &e) && number == 0x10 && of_thread == 0x28);
	TEST("the number and thread of a call are found from the code that makes the call and the code that sets the "
	     "number")
	CHECK(!layout_record(elf, &record, &before, &number, &of_thread, &e) && number == 200 && of_thread == 304);
	TEST("the key set of a tensor is found from the code that joins two key sets")
	CHECK(!layout_tensor(elf, &mm, &keys, &e) && keys == 0xa8);
	TEST("the place of a call's arguments is found from the code that stores them")
	CHECK(!layout_inputs(elf, &inputs, &off, &e) && off == 208);
	TEST("lists of values are found from the method that asks for a list of tensors")
	CHECK(!layout_list(elf, &is_list, &list, &e) && list.tag == 14 && list.elements_off == 16 && list.kind == 3);
	TEST("code of another form is refused")
	{
		CHECK(layout_inputs(elf, &peek, &off, NULL) == -EILSEQ);
		CHECK(layout_inputs(elf, &mm, &off, NULL) == -EILSEQ);
		CHECK(layout_list(elf, &peek, &list, NULL) == -EILSEQ);
		CHECK(layout_list(elf, &mm, &list, NULL) == -EILSEQ);
		inputs.size_bytes = 0x48; /* the code ends between the two stores */
		CHECK(layout_inputs(elf, &inputs, &off, NULL) == -EILSEQ);
		is_list.size_bytes = 0x13; /* the code ends before the type's number is compared */
		CHECK(layout_list(elf, &is_list, &list, NULL) == -EILSEQ);
		CHECK(layout_tls(elf, &node, &tls, &e) == -EILSEQ && e.why[0]);
		CHECK(layout_node(elf, &peek, &number, &of_thread, NULL) == -EILSEQ);
		node.size_bytes = 0xa0; /* the code ends before the number is loaded */
		CHECK(layout_node(elf, &node, &number, &of_thread, NULL) == -EILSEQ);
		CHECK(layout_tensor(elf, &peek, &keys, NULL) == -EILSEQ);
		CHECK(layout_record(elf, &record, &peek, &number, &of_thread, NULL) == -EILSEQ);
		CHECK(layout_record(elf, &before, &before, &number, &of_thread, NULL) == -EILSEQ);
		record.size_bytes = 0x190; /* the code ends before the handle is stored */
		CHECK(layout_record(elf, &record, &before, &number, &of_thread, NULL) == -EILSEQ);
		peek.size_bytes = 0x10;
		CHECK(layout_tls(elf, &peek, &tls, NULL) == -EILSEQ);
	}
}

int main(void)
{
	const char *path = unit_library("MXBPF_TEST_LIBTORCH");

	test_keys();
	test_spilled();
	if (!path)
		TEST_IF(path, "the offsets of PyTorch's data are read from its code", NO_TORCH) CHECK(0);
	if (!path)
		return unit_end();
	elf = opened_elf(path);
	TEST("the library can be opened") CHECK(elf != NULL);
	if (!elf)
		return unit_end();
	test_torch();
	elf_close(elf);
	return unit_end();
}
