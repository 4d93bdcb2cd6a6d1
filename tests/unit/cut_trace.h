/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records what a processor really does, to judge exit cuts: a breakpoint on every instruction of some functions of a
 * library. objdump finds the instructions, independently of the code under test. Each hit is recorded and the
 * instruction is then single-stepped in place.
 */
#ifndef CUT_TRACE_H
#define CUT_TRACE_H

#include <dlfcn.h>
#include <link.h>
#include <ucontext.h>
#include "unit.h"

#define TRACE_HITS_MAX (1u << 20)
#define FLAG_TRAP      0x100

struct trace_hit {
	uint64_t va, rsp, rbp;
	uint64_t top; /* the word at rsp */
	uint32_t flags;
};

static struct {
	uintptr_t base; /* load address of the library */
	uint64_t text_va, text_end_va;
	uint8_t *original; /* copy of the text without breakpoints; owned */
	bool *start;	   /* a traced instruction starts here */
	struct trace_hit *hits;
	uint32_t nhits;
	uint8_t *stepping; /* the breakpoint to set again after the single step */
	struct sigaction before;
} trace;

static void on_trap(int number, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	uint8_t *at = (uint8_t *)(uintptr_t)regs[REG_RIP] - 1;
	uint64_t va = (uint64_t)(uintptr_t)at - trace.base;

	if (trace.stepping) {
		*trace.stepping = 0xcc;
		trace.stepping = NULL;
		regs[REG_EFL] &= ~FLAG_TRAP;
		return;
	}
	if (va < trace.text_va || va >= trace.text_end_va || !trace.start[va - trace.text_va])
		abort();
	if (trace.nhits < TRACE_HITS_MAX)
		trace.hits[trace.nhits++] = (struct trace_hit){
			.va = va,
			.rsp = (uint64_t)regs[REG_RSP],
			.rbp = (uint64_t)regs[REG_RBP],
			.top = *(uint64_t *)(uintptr_t)regs[REG_RSP],
			.flags = (uint32_t)regs[REG_EFL],
		};
	*at = trace.original[va - trace.text_va];
	trace.stepping = at;
	regs[REG_RIP]--;
	regs[REG_EFL] |= FLAG_TRAP;
}

static void trace_text(uint64_t va, uint64_t end_va)
{
	trace.text_va = va;
	trace.text_end_va = end_va;
	trace.original = malloc(end_va - va);
	trace.start = calloc(end_va - va, sizeof(*trace.start));
	trace.hits = malloc(TRACE_HITS_MAX * sizeof(*trace.hits));
}

/* Leaves out the library's templates: they call nothing of interest and hold most of the instructions. */
static bool is_traced(const char *function)
{
	return strncmp(function, "_ZNS", 4) && strncmp(function, "_ZNKS", 5) && strncmp(function, "_ZSt", 4) &&
	       strncmp(function, "_ZN9__gnu", 9) && !strstr(function, "@plt");
}

/* Marks the instruction starts of .text that objdump reports, and returns their number. */
static int read_starts(const char *path)
{
	char line[4096], name[4096], command[512];
	unsigned long long va;
	bool traced = false;
	int n = 0;
	FILE *f;

	snprintf(command, sizeof(command), "objdump -d -j .text --no-show-raw-insn '%s'", path);
	f = popen(command, "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx <%4095[^>]>:", &va, name) == 2) {
			traced = is_traced(name);
		} else if (sscanf(line, " %llx:", &va) == 1 && traced) {
			trace.start[va - trace.text_va] = true;
			n++;
		}
	}
	return f && !pclose(f) ? n : 0;
}

/* Sets the breakpoints. Returns the number of instructions, or 0 on failure. */
static int trace_begin(const char *path, void *library)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	struct sigaction act = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	struct link_map *map;
	uintptr_t first, last;
	int n = read_starts(path);

	if (!n || dlinfo(library, RTLD_DI_LINKMAP, &map))
		return 0;
	trace.base = map->l_addr;
	first = (trace.base + trace.text_va) & ~(page - 1);
	last = (trace.base + trace.text_end_va + page - 1) & ~(page - 1);
	memcpy(trace.original, (void *)(trace.base + trace.text_va), trace.text_end_va - trace.text_va);
	if (mprotect((void *)first, last - first, PROT_READ | PROT_WRITE | PROT_EXEC) ||
	    sigaction(SIGTRAP, &act, &trace.before))
		return 0;
	for (uint64_t va = trace.text_va; va < trace.text_end_va; va++)
		if (trace.start[va - trace.text_va])
			*(uint8_t *)(trace.base + va) = 0xcc;
	return n;
}

static void trace_end(void)
{
	memcpy((void *)(trace.base + trace.text_va), trace.original, trace.text_end_va - trace.text_va);
	sigaction(SIGTRAP, &trace.before, NULL);
	free(trace.original);
	free(trace.start);
	free(trace.hits);
	memset(&trace, 0, sizeof(trace));
}

#endif
