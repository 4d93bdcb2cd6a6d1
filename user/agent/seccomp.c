// SPDX-License-Identifier: Apache-2.0
#include "agent/seccomp.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#define FILTERS_MAX	  64
#define PTRACE_GET_FILTER 0x420c /* PTRACE_SECCOMP_GET_FILTER */

/* A system call that loading makes. Of two entries with the same nonzero `either`, one has to be permitted. */
struct need {
	const char *name;
	struct seccomp_data call;
	unsigned either;
};

#define CALL(number, ...)                                                                                              \
	{                                                                                                              \
		.nr = (number), .arch = AUDIT_ARCH_X86_64, .args = { __VA_ARGS__ }                                     \
	}

static const struct need needs[] = {
	{"memfd_create", CALL(SYS_memfd_create, 0, 1), 1},
	{"openat", CALL(SYS_openat, (uint64_t)-100, 0, 02000000), 2},
	{"read", CALL(SYS_read, 3, 0, 832), 3},
	{"mmap", CALL(SYS_mmap, 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, 3, 4096), 4},
	{"mprotect", CALL(SYS_mprotect, 0, 4096, PROT_READ), 5},
	{"close", CALL(SYS_close, 3), 6},
	{"fstat", CALL(SYS_fstat, 3), 7},
	{"newfstatat", CALL(SYS_newfstatat, 3, 0, 0, 0x1000), 7},
};
#define NNEEDS (sizeof(needs) / sizeof(needs[0]))

/* ---- classic BPF: a filter is such a program, which the kernel has checked */

struct machine {
	uint32_t a, x, mem[BPF_MEMWORDS];
	const struct seccomp_data *data;
};

static uint32_t load(const struct machine *m, const struct sock_filter *i)
{
	uint32_t word = 0;

	switch (BPF_MODE(i->code)) {
	case BPF_IMM:
		return i->k;
	case BPF_MEM:
		return m->mem[i->k % BPF_MEMWORDS];
	case BPF_ABS:
		if (i->k <= sizeof(*m->data) - sizeof(word))
			memcpy(&word, (const char *)m->data + i->k, sizeof(word));
		return word;
	default: /* BPF_LEN */
		return sizeof(*m->data);
	}
}

static uint32_t compute(const struct machine *m, const struct sock_filter *i)
{
	uint32_t v = BPF_SRC(i->code) == BPF_X ? m->x : i->k;

	switch (BPF_OP(i->code)) {
	case BPF_ADD:
		return m->a + v;
	case BPF_SUB:
		return m->a - v;
	case BPF_MUL:
		return m->a * v;
	case BPF_DIV:
		return v ? m->a / v : 0;
	case BPF_AND:
		return m->a & v;
	case BPF_OR:
		return m->a | v;
	case BPF_XOR:
		return m->a ^ v;
	case BPF_LSH:
		return v < 32 ? m->a << v : 0;
	case BPF_RSH:
		return v < 32 ? m->a >> v : 0;
	default: /* BPF_NEG */
		return -m->a;
	}
}

/* Returns the number of instructions to skip. */
static uint32_t jump(const struct machine *m, const struct sock_filter *i)
{
	uint32_t v = BPF_SRC(i->code) == BPF_X ? m->x : i->k;

	switch (BPF_OP(i->code)) {
	case BPF_JA:
		return i->k;
	case BPF_JEQ:
		return m->a == v ? i->jt : i->jf;
	case BPF_JGT:
		return m->a > v ? i->jt : i->jf;
	case BPF_JGE:
		return m->a >= v ? i->jt : i->jf;
	default: /* BPF_JSET */
		return m->a & v ? i->jt : i->jf;
	}
}

static uint32_t run(const struct sock_filter *code, unsigned n, const struct seccomp_data *data)
{
	struct machine m = {.data = data};
	const struct sock_filter *i;
	uint64_t pc;

	for (pc = 0; pc < n; pc++) { /* ends, because jumps go forward only */
		i = &code[pc];
		switch (BPF_CLASS(i->code)) {
		case BPF_LD:
			m.a = load(&m, i);
			break;
		case BPF_LDX:
			m.x = load(&m, i);
			break;
		case BPF_ST:
			m.mem[i->k % BPF_MEMWORDS] = m.a;
			break;
		case BPF_STX:
			m.mem[i->k % BPF_MEMWORDS] = m.x;
			break;
		case BPF_ALU:
			m.a = compute(&m, i);
			break;
		case BPF_JMP:
			pc += jump(&m, i);
			break;
		case BPF_RET:
			return BPF_RVAL(i->code) == BPF_A ? m.a : i->k;
		default: /* BPF_MISC */
			if (BPF_MISCOP(i->code) == BPF_TAX)
				m.x = m.a;
			else
				m.a = m.x;
		}
	}
	return SECCOMP_RET_KILL_PROCESS;
}

/* ---- the filters of a thread */

/* SECCOMP_RET_TRACE fails with ENOSYS, because this tracer does not handle it. */
static int permits(uint32_t result)
{
	uint32_t action = result & SECCOMP_RET_ACTION_FULL;

	return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG || action == SECCOMP_RET_USER_NOTIF;
}

const char *agt_seccomp_refuses(pid_t tid)
{
	struct sock_filter code[BPF_MAXINSNS];
	unsigned char refused[NNEEDS] = {0};
	unsigned i, k, other;
	long n;

	for (i = 0; i < FILTERS_MAX; i++) {
		n = ptrace(PTRACE_GET_FILTER, tid, (void *)(uintptr_t)i, NULL);
		if (n <= 0 || n > BPF_MAXINSNS || ptrace(PTRACE_GET_FILTER, tid, (void *)(uintptr_t)i, code) != n)
			break;
		for (k = 0; k < NNEEDS; k++)
			refused[k] |= !permits(run(code, (unsigned)n, &needs[k].call));
	}
	for (k = 0; k < NNEEDS; k++) {
		for (other = 0; other < NNEEDS; other++)
			if (needs[other].either == needs[k].either && !refused[other])
				break;
		if (other == NNEEDS)
			return needs[k].name;
	}
	return NULL;
}
