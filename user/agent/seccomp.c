// SPDX-License-Identifier: Apache-2.0
#include "agent/seccomp.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/backend.h"
#include "filters.skel.h"
#include "mxbpf_filters.h"

_Static_assert(MXBPF_FILTER_INSNS_MAX == BPF_MAXINSNS && sizeof(struct sock_filter) == sizeof(uint64_t), "as copied");

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

static uint32_t seccomp_load(const struct machine *m, const struct sock_filter *i)
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

static uint32_t seccomp_run(const struct sock_filter *code, unsigned n, const struct seccomp_data *data)
{
	struct machine m = {.data = data};
	const struct sock_filter *i;
	uint64_t pc;

	for (pc = 0; pc < n; pc++) { /* ends, because jumps go forward only */
		i = &code[pc];
		switch (BPF_CLASS(i->code)) {
		case BPF_LD:
			m.a = seccomp_load(&m, i);
			break;
		case BPF_LDX:
			m.x = seccomp_load(&m, i);
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

struct agt_filters {
	struct filters_bpf *skel;
	struct bpf_link *link;
};

int agt_filters_open(struct agt_filters **out, struct err *e)
{
	struct agt_filters *f = *out = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	f->skel = filters_bpf__open();
	if (!f->skel)
		return backend_load_failed(-errno, e);
	backend_namespace(&f->skel->rodata->cfg_pidns_dev, &f->skel->rodata->cfg_pidns_ino);
	err = filters_bpf__load(f->skel);
	if (err)
		return backend_load_failed(err, e);
	f->link = bpf_program__attach_iter(f->skel->progs.copy_filter, NULL);
	err = f->link ? 0 : -errno;
	return err ? err_set(e, ERR_PRIVILEGE, err, "cannot read seccomp filters: %s", strerror(-err)) : 0;
}

void agt_filters_close(struct agt_filters *f)
{
	if (!f)
		return;
	bpf_link__destroy(f->link);
	filters_bpf__destroy(f->skel);
	free(f);
}

/* Copies a filter of a thread. Returns the number of its instructions; 0: there is no such filter; or -errno. */
static int seccomp_copy(const struct agt_filters *f, pid_t tid, unsigned which)
{
	char none;
	int fd, err;

	f->skel->bss->asked_tid = (__u32)tid;
	f->skel->bss->asked_filter = which;
	f->skel->bss->ninsns = -1;
	fd = bpf_iter_create(bpf_link__fd(f->link));
	if (fd < 0)
		return -errno;
	err = read(fd, &none, sizeof(none)) < 0 ? -errno : 0; /* runs the program for each thread */
	close(fd);
	return err ? err : f->skel->bss->ninsns < 0 ? -ENODATA : f->skel->bss->ninsns;
}

int agt_seccomp_refuses(const struct agt_filters *f, pid_t tid, const char **call)
{
	unsigned char refused[NNEEDS] = {0};
	unsigned i, k, other;
	int n;

	*call = NULL;
	for (i = 0; (n = seccomp_copy(f, tid, i)) > 0 && i < MXBPF_FILTERS_MAX; i++)
		for (k = 0; k < NNEEDS; k++)
			refused[k] |= !permits(seccomp_run((const struct sock_filter *)f->skel->bss->insns, (unsigned)n,
							   &needs[k].call));
	for (k = 0; k < NNEEDS && !*call; k++) {
		for (other = 0; other < NNEEDS; other++)
			if (needs[other].either == needs[k].either && !refused[other])
				break;
		if (other == NNEEDS)
			*call = needs[k].name;
	}
	return n > 0 ? -E2BIG : n;
}
