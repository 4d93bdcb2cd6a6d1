// SPDX-License-Identifier: Apache-2.0
/*
 * dlsym() for other objects. Some clients have no import table for a library: they load it and look its functions up.
 * They get the functions of the hooks instead. Like the import tables, this stays as it is for the life of the process.
 * A function that was looked up before stays with the client that has it.
 */
#include <string.h>

#include "dso.h"

typedef void *(*dlsym_fn)(void *handle, const char *name);

__attribute__((used)) static dlsym_fn original;
static const struct agent_hook *hooks;
static unsigned nhooks;
static void (*found_other)(void);

/* Returns the function that the caller gets, or NULL if it gets what the original returns. */
__attribute__((used)) static void *instead_of(void *handle, const char *name)
{
	uint64_t found;
	unsigned i;

	for (i = 0; i < nhooks && strcmp(hooks[i].name, name) != 0; i++)
		;
	found = i < nhooks ? (uint64_t)(uintptr_t)original(handle, name) : 0;
	if (!found)
		return NULL;
	if (found == hooks[i].original)
		return (void *)(uintptr_t)hooks[i].instead;
	found_other();
	return NULL;
}

/*
 * The original finds the caller by the return address, so it is jumped to with all registers as they were. Only the
 * names of the hooks, which begin with "cupti", are looked up here first, and those not for RTLD_NEXT (-1), where the
 * result depends on the caller. Each byte of the name is read only if those before it are there.
 */
__asm__(".text\n"
	".p2align 4\n"
	".hidden agent_dlsym\n"
	".globl agent_dlsym\n"
	".type agent_dlsym, @function\n"
	"agent_dlsym:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	cmpb $'c', (%rsi)\n"
	"	jne 1f\n"
	"	cmpb $'u', 1(%rsi)\n"
	"	jne 1f\n"
	"	cmpb $'p', 2(%rsi)\n"
	"	jne 1f\n"
	"	cmpb $'t', 3(%rsi)\n"
	"	jne 1f\n"
	"	cmpb $'i', 4(%rsi)\n"
	"	jne 1f\n"
	"	cmpq $-1, %rdi\n"
	"	je 1f\n"
	"	pushq %rdi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	pushq %rsi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	subq $8, %rsp\n" /* a call needs a stack that is aligned to 16 bytes */
	"	.cfi_adjust_cfa_offset 8\n"
	"	call instead_of\n"
	"	addq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	popq %rsi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	popq %rdi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	testq %rax, %rax\n"
	"	je 1f\n"
	"	ret\n"
	"1:	jmpq *original(%rip)\n"
	"	.cfi_endproc\n"
	".size agent_dlsym, . - agent_dlsym\n");

uint64_t agent_dlsym_begin(const struct agent_hook *of, unsigned n, void (*on_other)(void))
{
	const uint64_t at = agent_dso_first("dlsym");

	hooks = of;
	nhooks = n;
	found_other = on_other;
	memcpy(&original, &at, sizeof(original));
	return at;
}
