// SPDX-License-Identifier: Apache-2.0
/*
 * A toy PyTorch that is its own program, built under the name of PyTorch's library. Its operator `honest` looks as
 * compiled code does. The unwind information of `liar` is wrong about the frame while the operator works, so that the
 * cut planned for it never matches its frame.
 *
 * Prints "ready PID" and calls both operators in turn until it is killed.
 */
#include <stdio.h>
#include <unistd.h>

#define OPERATOR(mangled, frame_bytes)                                                                                 \
	__asm__(".text\n.globl " mangled "\n.type " mangled ", @function\n" mangled ":\n"                              \
		".cfi_startproc\n"                                                                                     \
		"push %rbx\n"                                                                                          \
		".cfi_def_cfa_offset " frame_bytes "\n"                                                                \
		"call work\n"                                                                                          \
		"test %eax, %eax\n"                                                                                    \
		"je 1f\n"                                                                                              \
		"xor %eax, %eax\n"                                                                                     \
		"1: pop %rbx\n"                                                                                        \
		".cfi_def_cfa_offset 8\n"                                                                              \
		"ret\n"                                                                                                \
		".cfi_endproc\n.size " mangled ", . - " mangled "\n")

OPERATOR("_ZN2at4_ops6honest4callEv", "16");
OPERATOR("_ZN2at4_ops4liar4callEv", "32");

int honest(void) __asm__("_ZN2at4_ops6honest4callEv");
int liar(void) __asm__("_ZN2at4_ops4liar4callEv");

__attribute__((used, noinline)) int work(void)
{
	return usleep(1000);
}

int main(void)
{
	printf("ready %d\n", getpid());
	fflush(stdout);
	while (!honest() && !liar())
		;
	return 0;
}
