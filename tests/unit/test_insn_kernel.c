/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares insn_classify() with the kernel: small functions of this process with a probe on each. The kernel maps
 * "[uprobes]" into the process to single-step an instruction, but not to emulate one.
 */
#include "unit.h"

#include <linux/bpf.h>
#include <sys/syscall.h>

#include "insn/insn.h"

/* The distribution's kernel headers are too old to define it. */
#define ATTACH_UPROBE_MULTI 48

#define SLOT_BYTES 64
#define SLOTS_MAX  64
#define JCC_FIRST  0x70

struct function {
	const char *text;
	uint8_t site; /* offset of the probe */
	uint8_t code[32];
};

#define RET_7_OR_9 0xb8, 7, 0, 0, 0, 0xc3, 0xb8, 9, 0, 0, 0, 0xc3
#define RET_ARG	   0x89, 0xf8, 0xc3
#define CMP_ARG_5  0x83, 0xff, 0x05

static const struct function emulated[] = {
	{"push rbp", 0, {0x55, 0x5d, RET_ARG}},
	{"push r15", 0, {0x41, 0x57, 0x41, 0x5f, RET_ARG}},
	{"push rsp", 0, {0x54, 0x58, 0x48, 0x29, 0xe0, 0xc3}},
	{"jne near", 3, {CMP_ARG_5, 0x0f, 0x85, 6, 0, 0, 0, RET_7_OR_9}},
	{"bnd jne", 3, {CMP_ARG_5, 0xf2, 0x75, 6, RET_7_OR_9}},
	{"jmp short", 0, {0xeb, 6, RET_7_OR_9}},
	{"jmp near", 0, {0xe9, 6, 0, 0, 0, RET_7_OR_9}},
	{"bnd jmp", 0, {0xf2, 0xe9, 6, 0, 0, 0, RET_7_OR_9}},
	{"call", 0, {0xe8, 1, 0, 0, 0, 0xc3, 0xb8, 9, 0, 0, 0, 0xc3}},
	{"addr32 call", 0, {0x67, 0xe8, 1, 0, 0, 0, 0xc3, 0xb8, 9, 0, 0, 0, 0xc3}},
	{"nop", 0, {0x90, RET_ARG}},
	{"xchg ax,ax", 0, {0x66, 0x90, RET_ARG}},
	{"pause", 0, {0xf3, 0x90, RET_ARG}},
};

static const struct function stepped[] = {
	{"endbr64", 0, {0xf3, 0x0f, 0x1e, 0xfa, RET_ARG}},
	{"rex.w push rbx", 0, {0x48, 0x53, 0x5b, RET_ARG}},
	{"push imm8", 0, {0x6a, 9, 0x58, 0xc3}},
	{"sub rsp,8", 0, {0x48, 0x83, 0xec, 8, 0x48, 0x83, 0xc4, 8, RET_ARG}},
	{"mov eax,edi", 0, {RET_ARG}},
	{"ret", 2, {RET_ARG}},
	{"jrcxz", 2, {0x31, 0xc9, 0xe3, 6, RET_7_OR_9}},
};

static const int args[] = {0, 5, 9, -1, INT32_MIN, INT32_MAX};
#define NARGS (sizeof(args) / sizeof(*args))

/* Functions in a file of their own, mapped like a library. */
struct page {
	int fd;
	uint8_t *mem;
	unsigned n;
	uint64_t sites[SLOTS_MAX];
};

static void page_open(struct page *p)
{
	p->n = 0;
	p->fd = memfd_create("functions", MFD_CLOEXEC);
	if (p->fd < 0 || ftruncate(p->fd, SLOT_BYTES * SLOTS_MAX)) {
		perror("memfd");
		exit(1);
	}
	p->mem = mmap(NULL, SLOT_BYTES * SLOTS_MAX, PROT_READ | PROT_EXEC, MAP_PRIVATE, p->fd, 0);
}

static void page_close(struct page *p)
{
	munmap(p->mem, SLOT_BYTES * SLOTS_MAX);
	close(p->fd);
}

static void page_add(struct page *p, const struct function *f)
{
	off_t at = (off_t)SLOT_BYTES * p->n;

	CHECK(pwrite(p->fd, f->code, sizeof(f->code), at) == sizeof(f->code));
	p->sites[p->n++] = (uint64_t)at + f->site;
}

static void page_add_all(struct page *p, const struct function *f, size_t n, enum insn_cost want)
{
	for (size_t i = 0; i < n; i++) {
		enum insn_cost cost = INSN_REFUSED;
		uint32_t len;

		page_add(p, &f[i]);
		CHECK(!insn_classify(f[i].code + f[i].site, sizeof(f[i].code) - f[i].site, &cost, &len));
		if (cost != want)
			printf("# %s: cost %d\n", f[i].text, cost);
		CHECK(cost == want);
	}
}

static void page_results(const struct page *p, int out[SLOTS_MAX][NARGS])
{
	for (unsigned i = 0; i < p->n; i++) {
		int (*f)(int) = (int (*)(int))(uintptr_t)(p->mem + (size_t)i * SLOT_BYTES);

		for (size_t a = 0; a < NARGS; a++)
			out[i][a] = f(args[a]);
	}
}

static int prog_load(void)
{
	const struct bpf_insn return_0[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K},
		{.code = BPF_JMP | BPF_EXIT},
	};
	union bpf_attr a;

	memset(&a, 0, sizeof(a));
	a.prog_type = BPF_PROG_TYPE_KPROBE;
	a.expected_attach_type = (enum bpf_attach_type)ATTACH_UPROBE_MULTI;
	a.insns = (uintptr_t)return_0;
	a.insn_cnt = 2;
	a.license = (uintptr_t) "GPL";
	return (int)syscall(__NR_bpf, BPF_PROG_LOAD, &a, sizeof(a));
}

/* Returns a link for n sites of the file at path, or -errno. */
static int attach(int prog, const char *path, const uint64_t *sites, unsigned n)
{
	struct {
		uint32_t prog_fd, target_fd, type, flags;
		uint64_t path, offsets, ref_ctr_offsets, cookies;
		uint32_t cnt, multi_flags, pid, pad;
	} a = {.prog_fd = (uint32_t)prog,
	       .type = ATTACH_UPROBE_MULTI,
	       .path = (uintptr_t)path,
	       .offsets = (uintptr_t)sites,
	       .cnt = n,
	       .pid = (uint32_t)getpid()};
	int fd = (int)syscall(__NR_bpf, BPF_LINK_CREATE, &a, offsetof(__typeof__(a), pad));

	return fd < 0 ? -errno : fd;
}

static int page_attach(const struct page *p, int prog)
{
	char path[64];
	int link;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", p->fd);
	link = attach(prog, path, p->sites, p->n);
	if (link < 0)
		printf("# attach: %s\n", strerror(-link));
	CHECK(link >= 0);
	for (unsigned i = 0; link >= 0 && i < p->n; i++)
		CHECK(p->mem[p->sites[i]] == 0xcc);
	return link;
}

static bool single_stepped(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	bool found = false;
	char line[512];

	while (fgets(line, sizeof(line), f))
		found |= !!strstr(line, "[uprobes]");
	fclose(f);
	return found;
}

static void add_conditions(struct page *p)
{
	for (unsigned c = 0; c < 16; c++) {
		struct function f = {"jcc", 3, {CMP_ARG_5, (uint8_t)(JCC_FIRST + c), 6, RET_7_OR_9}};

		page_add_all(p, &f, 1, INSN_EMULATED);
	}
}

static void check_page(struct page *p, int prog, bool want_step)
{
	static int bare[SLOTS_MAX][NARGS], probed[SLOTS_MAX][NARGS];
	int link;

	page_results(p, bare);
	link = page_attach(p, prog);
	page_results(p, probed);
	for (unsigned i = 0; i < p->n; i++) {
		if (memcmp(bare[i], probed[i], sizeof(bare[i])))
			printf("# function %u computes otherwise under a probe\n", i);
		CHECK(!memcmp(bare[i], probed[i], sizeof(bare[i])));
	}
	CHECK(single_stepped() == want_step);
	if (link >= 0)
		close(link);
}

static const char *why_not(int prog)
{
	uint64_t site = 0;

	if (prog < 0)
		return errno == EPERM ? "needs CAP_BPF and CAP_PERFMON" : "the kernel loads no such program";
	/* A kernel that knows the link type fails only because the path is a directory. */
	return attach(prog, "/", &site, 1) == -EBADF ? NULL : "the kernel has no uprobe_multi";
}

int main(void)
{
	int prog = prog_load();
	const char *skip = why_not(prog);
	char name[200];
	struct page p;

	if (skip) {
		snprintf(name, sizeof(name),
			 "the kernel emulates and single-steps the same instructions as insn_classify() expects # SKIP "
			 "%s",
			 skip);
		TEST(name)
		UNIT_MAIN_END;
	}
	/* In this order, because "[uprobes]" stays mapped. */
	TEST("the kernel does not single-step an instruction classified as emulated, and a probe does not change its "
	     "result")
	{
		page_open(&p);
		page_add_all(&p, emulated, sizeof(emulated) / sizeof(*emulated), INSN_EMULATED);
		add_conditions(&p);
		check_page(&p, prog, false);
		page_close(&p);
	}
	TEST("the kernel single-steps an instruction classified as stepped, and a probe does not change its result")
	{
		page_open(&p);
		page_add_all(&p, stepped, sizeof(stepped) / sizeof(*stepped), INSN_STEPPED);
		check_page(&p, prog, true);
		page_close(&p);
	}
	close(prog);
	UNIT_MAIN_END;
}
