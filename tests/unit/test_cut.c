/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares cut_find() with the processor: cut_fixture.cpp is compiled in several ways, and each function runs over
 * many inputs while every instruction is recorded. Returns, exceptions and work are read from the record only.
 */

#include <elf.h>

#include "cut_trace.h"
#include "insn/cut.h"
#include "insn/insn.h"
#include "opened_elf.h"

#define INPUTS	  14
#define OPEN_MAX  64
#define FUNCS_MAX 64

/* From this level on, a function called through a noexcept pointer may follow the cut, whatever work it does. */
#define LEVEL_BY_POINTER 4

/* Compiler flags, and the minimum number of functions with a cut: a few less than with GCC 12. */
static const struct variant {
	const char *flags;
	unsigned cuts_min;
} variants[] = {
	{"-O0", 25},
	{"-O2 -fcf-protection=full", 20},
	{"-O3 -fno-omit-frame-pointer", 20},
	{"-O2 -fno-plt", 7}, /* calls of other functions are by pointer, and a probe on such a call is single-stepped */
	{"-Os -fstack-protector-all", 25},
};

static char dir[] = "/tmp/mxbpf-cut-XXXXXX";
static char library[64];

struct function {
	char name[64];
	uint64_t va, size_bytes;
	struct cut cut;
};

static struct function functions[FUNCS_MAX];
static unsigned nfunctions;

static bool compile(const struct variant *v)
{
	const char *root = getenv("REPO");
	char command[512];

	snprintf(library, sizeof(library), "%s/fixture%zu.so", dir, (size_t)(v - variants));
	snprintf(command, sizeof(command),
		 "${CXX:-g++} -std=c++17 -shared -fPIC %s -o %s '%s/tests/unit/cut_fixture.cpp'", v->flags, library,
		 root ? root : ".");
	return !system(command);
}

/* Finds all f_* of the dynamic symbols and their cuts. */
static void list_functions(int fd)
{
	FREED(elf_closed) struct elf *elf = NULL;
	char command[256], line[256], name[128];
	unsigned long long va, size;
	FREED(pipe_closed) FILE *f = NULL;

	nfunctions = 0;
	if (elf_open(fd, &elf, NULL))
		return;
	snprintf(command, sizeof(command), "nm -DS --defined-only %s", library);
	f = popen(command, "r");
	while (f && fgets(line, sizeof(line), f)) {
		struct function *fn = &functions[nfunctions];

		if (sscanf(line, "%llx %llx T %127s", &va, &size, name) != 3 || !strstr(name, "f_") || name[0] == 'c')
			continue;
		if (nfunctions == FUNCS_MAX)
			break;
		snprintf(fn->name, sizeof(fn->name), "%.63s", name);
		fn->va = va;
		fn->size_bytes = size;
		cut_find(elf, va, &fn->cut, NULL);
		nfunctions++;
	}
}

/* Evaluates the condition code of a jcc from the flags, as the BPF code has to. */
static bool holds(unsigned cc, uint32_t flags)
{
	bool cf = flags & 1, pf = flags >> 2 & 1, zf = flags >> 6 & 1, sf = flags >> 7 & 1, of = flags >> 11 & 1;
	const bool base[] = {of, cf, zf, cf || zf, sf, pf, sf != of, zf || sf != of};

	return base[cc >> 1] != (cc & 1);
}

/* ---- one run of one function */

struct frame {
	uint64_t cfa, return_va;
	unsigned hits;
};

struct judge {
	const struct function *fn;
	const uint64_t *works; /* entries of the functions that count as work */
	unsigned nworks;
	struct frame open[OPEN_MAX];
	unsigned depth;
	unsigned returned, threw, missed, twice, early, late_throw, stray, wrong_flags;
};

static void close_frame(struct judge *j, bool normal)
{
	const struct frame *f = &j->open[--j->depth];

	j->returned += normal;
	j->threw += !normal;
	j->missed += normal && !f->hits;
	j->twice += f->hits > 1;
	j->late_throw += !normal && f->hits;
}

/* A hit counts if its condition holds. The next instruction of the processor tells if the flags were read correctly. */
static bool counts(struct judge *j, const struct cut_point *p, uint32_t i)
{
	const struct trace_hit *h = &trace.hits[i];
	bool taken;

	if (!p->cond)
		return true;
	taken = holds(p->cond - 1u, h->flags);
	if (i + 1 < trace.nhits && trace.start[h->va - trace.text_va]) {
		uint64_t next = trace.hits[i + 1].va;
		bool short_jcc =
			trace.original[h->va - trace.text_va] < 0x80 && trace.original[h->va - trace.text_va] >= 0x70;
		bool fell = next == h->va + (short_jcc ? 2 : 6);

		j->wrong_flags += fell == taken;
	}
	return taken == p->cond_taken;
}

static void judge_point(struct judge *j, const struct cut_point *p, uint32_t i)
{
	const struct trace_hit *h = &trace.hits[i];
	uint64_t cfa = (p->cfa_base == CUT_CFA_RSP ? h->rsp : h->rbp) + (uint64_t)(int64_t)p->cfa_off;

	if (h->va != p->va || !counts(j, p, i))
		return;
	for (unsigned k = j->depth; k-- > 0;) {
		if (j->open[k].cfa != cfa)
			continue;
		j->open[k].hits++;
		return;
	}
	j->stray += !p->merged;
}

static void judge_hit(struct judge *j, uint32_t i)
{
	const struct trace_hit *h = &trace.hits[i];

	while (j->depth) {
		const struct frame *f = &j->open[j->depth - 1];

		if (h->rsp < f->cfa)
			break;
		close_frame(j, h->va == f->return_va && h->rsp == f->cfa);
	}
	for (unsigned k = 0; k < j->nworks; k++)
		for (unsigned d = 0; h->va == j->works[k] && d < j->depth; d++)
			j->early += j->fn->cut.level < LEVEL_BY_POINTER ? j->open[d].hits : 0;
	if (h->va == j->fn->va && j->depth < OPEN_MAX)
		j->open[j->depth++] = (struct frame){.cfa = h->rsp + 8, .return_va = h->top - trace.base};
	for (unsigned k = 0; k < j->fn->cut.npoints; k++)
		judge_point(j, &j->fn->cut.points[k], i);
}

static unsigned say(const struct function *fn, int x, const char *what, unsigned n)
{
	if (n)
		printf("# %s: %s(%d): %u %s\n", library, fn->name, x, n, what);
	return n;
}

typedef int (*callee_fn)(int x);
typedef int (*run_fn)(callee_fn f, int x);

static unsigned bad_runs(void *handle, const struct function *fn, const uint64_t *works, unsigned nworks)
{
	run_fn run = (run_fn)dlsym(handle, "run");
	callee_fn f = (callee_fn)dlsym(handle, strstr(fn->name, "f_sret") ? "call_f_sret" : fn->name);
	unsigned bad = 0;

	for (int x = 0; x < INPUTS; x++) {
		struct judge j = {.fn = fn, .works = works, .nworks = nworks};

		trace.nhits = 0;
		run(f, x);
		for (uint32_t i = 0; i < trace.nhits; i++)
			judge_hit(&j, i);
		bad += say(fn, x, "frames left open", j.depth) + say(fn, x, "returns without a hit", j.missed) +
		       say(fn, x, "frames hit twice", j.twice) + say(fn, x, "hits before work", j.early) +
		       say(fn, x, "hits before an exception", j.late_throw) +
		       say(fn, x, "hits with no frame", j.stray) +
		       say(fn, x, "conditions read wrong from the flags", j.wrong_flags) +
		       say(fn, x, "hits lost", trace.nhits == TRACE_HITS_MAX) +
		       say(fn, x, "run without a return or an exception", !j.returned && !j.threw);
	}
	return bad;
}

static bool find_text(struct elf *elf, uint64_t *va, uint64_t *end_va)
{
	char line[256], command[128];
	unsigned long long at, size;
	bool found = false;
	FREED(pipe_closed) FILE *f = NULL;

	snprintf(command, sizeof(command), "objdump -h -j .text %s", library);
	f = popen(command, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, " %*d .text %llx %llx", &size, &at) == 2)
			found = true;
	*va = at;
	*end_va = at + size;
	return found;
}

/* Returns the number of wrong runs over all functions that have a cut. */
static unsigned judge_library(struct elf *elf)
{
	static const char *const names[] = {"work", "work_or_throw", "work_nothrow"};
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	uint64_t works[3], va, end_va;
	unsigned bad = 0;

	for (unsigned i = 0; i < 3; i++) {
		struct elf_sym sym = {0};

		elf_find_sym(elf, names[i], &sym, NULL);
		works[i] = sym.va;
	}
	if (!handle || !find_text(elf, &va, &end_va))
		return 1;
	trace_text(va, end_va);
	bad = !trace_begin(library, handle);
	for (unsigned i = 0; !bad && i < nfunctions; i++)
		if (functions[i].cut.npoints)
			bad += bad_runs(handle, &functions[i], works, 3);
	trace_end();
	dlclose(handle);
	return bad;
}

/* ---- static checks */

static bool emulated(struct elf *elf, const struct cut_point *p)
{
	enum insn_cost cost;
	uint8_t code[16];
	uint32_t len;

	return !elf_read_va(elf, p->va, code, sizeof(code)) && !insn_classify(code, sizeof(code), &cost, &len) &&
	       cost == INSN_EMULATED;
}

static unsigned not_emulated(struct elf *elf)
{
	unsigned n = 0;

	for (unsigned i = 0; i < nfunctions; i++)
		for (unsigned k = 0; k < functions[i].cut.npoints; k++)
			n += !emulated(elf, &functions[i].cut.points[k]);
	return n;
}

/* Compares the frame addresses with binutils' table: "va rsp+16 ..." rows under "... FDE ... pc=first..last". */
static unsigned wrong_cfas(void)
{
	static struct {
		unsigned long long va;
		char rule[32];
	} rows[65536];
	char command[160], line[512];
	unsigned n = 0, wrong = 0;
	FREED(pipe_closed) FILE *f = NULL;

	snprintf(command, sizeof(command), "readelf -W --debug-dump=frames-interp %s 2>/dev/null", library);
	f = popen(command, "r");
	while (f && n < 65536 && fgets(line, sizeof(line), f))
		n += sscanf(line, "%16llx %31[er]%*s", &rows[n].va, rows[n].rule) == 2 &&
		     sscanf(line, "%16llx %31s", &rows[n].va, rows[n].rule) == 2;
	for (unsigned i = 0; i < nfunctions; i++) {
		for (unsigned k = 0; k < functions[i].cut.npoints; k++) {
			const struct cut_point *p = &functions[i].cut.points[k];
			unsigned best = n;
			char rule[32];

			for (unsigned r = 0; r < n; r++)
				if (rows[r].va <= p->va && (best == n || rows[r].va >= rows[best].va))
					best = r;
			if (p->cfa_base == CUT_CFA_AT_RBP)
				snprintf(rule, sizeof(rule), "exp");
			else
				snprintf(rule, sizeof(rule), "%s%+d", p->cfa_base == CUT_CFA_RSP ? "rsp" : "rbp",
					 p->cfa_off);
			/* In a merged callee, the point uses the frame of the caller. */
			wrong += best == n || strncmp(rows[best].rule, rule, 4) ||
				 (!p->merged && strcmp(rows[best].rule, rule));
		}
	}
	return n ? wrong : 1;
}

static unsigned count_cuts(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < nfunctions; i++)
		n += functions[i].cut.npoints > 0;
	return n;
}

static unsigned unexplained(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < nfunctions; i++)
		n += !functions[i].cut.npoints == !functions[i].cut.why[0];
	return n;
}

static void test_variant(const struct variant *v)
{
	static char names[sizeof(variants) / sizeof(*variants)][160];
	char *name = names[v - variants];
	struct elf *elf = NULL;
	int fd;

	snprintf(name, sizeof(names[0]),
		 "every return passes exactly one cut point, after the work, and no exception passes any: %s",
		 v->flags);
	TEST(name)
	{
		CHECK(compile(v));
		fd = open(library, O_RDONLY | O_CLOEXEC);
		CHECK(fd >= 0 && !elf_open(fd, &elf, NULL));
		list_functions(fd);
		CHECK(nfunctions > 30);
		if (elf) {
			CHECK(judge_library(elf) == 0);
			CHECK(not_emulated(elf) == 0);
		}
		CHECK(wrong_cfas() == 0);
		CHECK(unexplained() == 0);
		printf("# %s: %u of %u functions have a cut\n", v->flags, count_cuts(), nfunctions);
		CHECK(count_cuts() >= v->cuts_min);
		close(fd);
		elf_close(elf);
		unlink(library);
	}
}

int main(void)
{
	if (!mkdtemp(dir))
		return 1;
	for (size_t v = 0; v < sizeof(variants) / sizeof(*variants); v++)
		test_variant(&variants[v]);
	rmdir(dir);
	UNIT_MAIN_END;
}
