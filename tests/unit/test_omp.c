// SPDX-License-Identifier: Apache-2.0
/*
 * Tests how parallel regions are added up, and how the points where libgomp's threads begin and end their work are
 * found in its code, which has no symbols for them. The code is the system's libgomp and, if it is set, the libgomp
 * beside MXBPF_TEST_LIBTORCH.
 */

#include "feature/omp/omp.h"
#include "insn/cut.h"
#include "insn/fork.h"
#include "insn/insn.h"
#include "insn/worker.h"
#include "model/model.h"
#include "opened_elf.h"

#define OP   MXBPF_CLASS_OPERATOR
#define GOMP "/usr/lib/x86_64-linux-gnu/libgomp.so.1"
#define LLVM "/usr/lib/x86_64-linux-gnu/libomp.so.5"

static struct mxbpf_team region(uint64_t name_id, uint32_t tgid, unsigned cls, uint32_t threads)
{
	return (struct mxbpf_team){
		.h = {MXBPF_TEAM, sizeof(struct mxbpf_team), tgid, 1000},
		.regions = 1,
		.name_id = name_id,
		.span_start_ns = 900,
		.dur_ns = 100,
		.threads_ns = 100 * threads,
		.late_ns = 10,
		.late_runq_ns = 5,
		.work_ns = 60 * threads,
		.barrier_ns = 40 * threads - 10,
		.cpu_ns = 50 * threads,
		.runq_ns = 7,
		.spun_ns = 3,
		.tid = 5,
		.threads = threads,
		.cls = (__u8)cls,
	};
}

static size_t nteams(struct mdl *m)
{
	const struct tbl *teams = mdl_table_of(m, &feature_omp, &omp_teams);

	return teams ? tbl_count(teams) : 0;
}

static struct mxbpf_team of(struct mdl *m, uint64_t name_id, uint32_t tgid, unsigned cls)
{
	const struct tbl *teams = mdl_table_of(m, &feature_omp, &omp_teams);
	const struct mxbpf_team *t;
	size_t i;

	for (i = 0; i < nteams(m); i++) {
		t = tbl_at(teams, i);
		if (t->name_id == name_id && t->h.tgid == tgid && t->cls == cls)
			return *t;
	}
	return (struct mxbpf_team){0};
}

static void test_sums(void)
{
	struct mxbpf_team r[] = {region(11, 7, OP, 2), region(11, 7, OP, 4), region(11, 8, OP, 2), region(0, 7, 0, 2)},
			  t;
	FREED(model_freed) struct mdl *m = mdl_new(), *again = mdl_new();
	FREED(buf_fini) struct buf recs = {0};

	TEST("regions are added up by name, class and process, and the largest number of threads is kept")
	CHECK(!mdl_feed(m, r, sizeof(r)) && nteams(m) == 3);
	t = of(m, 11, 7, OP);
	CHECK(t.regions == 2 && t.threads == 4 && t.dur_ns == 200 && t.threads_ns == 600 && t.cpu_ns == 300);
	CHECK(t.late_ns + t.work_ns + t.barrier_ns == t.threads_ns && t.late_runq_ns == 10 && t.spun_ns == 6);
	CHECK(!t.span_start_ns && !t.h.ts_ns);

	TEST("emitted regions give the same regions again, and processes can be summed")
	CHECK(!mdl_emit(m, &recs) && !mdl_feed(again, recs.data, recs.len) && nteams(again) == 3);
	t = of(again, 11, 7, OP);
	CHECK(t.regions == 2 && t.threads == 4 && t.runq_ns == 14);
	FREED(model_freed) struct mdl *sum = mdl_sum(m);
	CHECK(sum && nteams(sum) == 2 && of(sum, 11, 0, OP).regions == 3);

	TEST("sums saturate, and an invalid class is refused")
	r[0].cpu_ns = UINT64_MAX;
	CHECK(!mdl_feed(m, r, sizeof(r[0])) && of(m, 11, 7, OP).cpu_ns == UINT64_MAX);
	r[0].cls = MXBPF_CLASS_MAX;
	CHECK(mdl_feed(m, r, sizeof(r[0])) == -EBADMSG);
}

static bool may_be_probed(struct elf *elf, uint64_t va)
{
	enum insn_cost cost;
	uint8_t code[16];
	uint32_t len;

	return !elf_read_va(elf, va, code, sizeof(code)) && !insn_classify(code, sizeof(code), &cost, &len) &&
	       cost != INSN_REFUSED;
}

static void check_lib(const char *path)
{
	FREED(elf_closed) struct elf *elf = opened_elf(path);
	unsigned begins = 0, ends = 0, i;
	uint64_t start = 0, end = 0;
	struct elf_sym sym;
	struct worker w;
	struct cut cut;

	CHECK(elf);
	if (!elf)
		return;
	CHECK(!worker_find(elf, &w, NULL));
	for (i = 0; i < w.npoints; i++) {
		begins += w.points[i].begins;
		ends += !w.points[i].begins;
		CHECK(may_be_probed(elf, w.points[i].va));
	}
	/*
	 * Starts: the first and the later regions of a pool's thread, and the only one of a nested team's thread. Two
	 * ends.
	 */
	CHECK(begins == 3 && ends == 2);
	CHECK(!elf_find_sym(elf, "GOMP_parallel", &sym, NULL) && !worker_find_start(elf, sym.va, &start, NULL));
	CHECK(!elf_find_sym(elf, "GOMP_parallel_end", &sym, NULL) && !worker_find_end(elf, sym.va, &end, NULL));
	CHECK(start && end && start != end && !cut_find(elf, start, &cut, NULL) && !cut_find(elf, end, &cut, NULL));
}

static void test_libs(void)
{
	const char *torch = unit_library("MXBPF_TEST_LIBTORCH");
	char path[4096];

	TEST("the points where threads of libgomp begin and end their work are found in its code")
	check_lib(GOMP);
	TEST_IF(torch,
		"the points where threads of PyTorch's own libgomp begin and end their work are found in its code",
		NO_TORCH)
	{
		snprintf(path, sizeof(path), "%.*s/libgomp.so.1", (int)(strrchr(torch, '/') - torch), torch);
		check_lib(path);
	}
}

static void check_points(struct elf *elf, const struct fork_points *p, unsigned n)
{
	CHECK(p->n == n);
	for (unsigned i = 0; i < p->n; i++)
		CHECK(may_be_probed(elf, p->va[i]));
}

static void test_forks(void)
{
	static const struct fork_names names = {"__kmp_fork_call", "__kmp_invoke_microtask", "__kmpc_fork_call",
						"GOMP_parallel_end"};
	FREED(elf_closed) struct elf *elf = opened_elf(LLVM), *gomp = opened_elf(GOMP);
	struct err e = {0};
	struct fork f = {0};

	TEST_IF(!access(LLVM, R_OK), "the points where libomp forks and joins its teams are found by who calls whom",
		"no " LLVM ": tests/setup.sh installs it")
	{
		CHECK(elf && !fork_find(elf, &names, &f, NULL));
		/*
		 * forked: after GCC's forms, after an OpenMP league (`teams`), after the masters of its teams. invoked:
		 * by the threads. joined: LLVM's form, GCC's form, a league.
		 */
		check_points(elf, &f.forked, 3);
		check_points(elf, &f.invoked, 1);
		check_points(elf, &f.joined, 3);
		CHECK(elf && may_be_probed(elf, f.fork_va) && may_be_probed(elf, f.invoke_va) &&
		      may_be_probed(elf, f.join_va));
	}
	TEST("libgomp is not mistaken for libomp")
	CHECK(gomp && fork_find(gomp, &names, &f, &e) == -ENOENT && e.why[0]);
}

static void test_none(void)
{
	FREED(elf_closed) struct elf *self = opened_elf("/proc/self/exe");
	struct err e = {0};
	struct worker w;

	TEST("a program that is not libgomp has no such points, and the error has a reason")
	CHECK(worker_find(self, &w, &e) == -ENOENT && e.why[0]);
}

int main(void)
{
	test_sums();
	test_libs();
	test_forks();
	test_none();
	UNIT_MAIN_END;
}
