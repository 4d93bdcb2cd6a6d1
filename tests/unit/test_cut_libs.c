/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests exit cuts of the real libraries: MXBPF_TEST_LIBMXNET (1.9.1) and MXBPF_TEST_LIBTORCH (libtorch_cpu.so of
 * 2.13.0). Functions without a cut are listed here, so that a change is noticed.
 */

#include "insn/cut.h"
#include "insn/insn.h"
#include "opened_elf.h"

#define NAME_BYTES 8192

struct tally {
	unsigned functions, cuts, with_conditions, in_callees;
	unsigned unsafe;  /* points on an instruction that is not emulated, or on the function's entry */
	unsigned unknown; /* functions without a cut that are not in the list */
	unsigned guards, wrong_guards;
};

/* MXSymbolGetNumOutputs returns a number without a branch; after the work in the others no point can be probed. */
static const char *const mxnet_without[] = {"MXSymbolCompose", "MXSymbolGetAtomicSymbolInfo", "MXSymbolGetNumOutputs",
					    "MXSymbolListAtomicSymbolCreators", NULL};
static const char *const torch_without[] = {NULL};

static bool in_list(const char *const *list, const char *name)
{
	for (; *list; list++)
		if (!strcmp(*list, name))
			return true;
	return false;
}

static bool is_safe(struct elf *elf, const struct cut_point *p, uint64_t entry_va)
{
	enum insn_cost cost;
	uint8_t code[16];
	uint32_t len;

	return p->va != entry_va && !elf_read_va(elf, p->va, code, sizeof(code)) &&
	       !insn_classify(code, sizeof(code), &cost, &len) && cost == INSN_EMULATED;
}

static void count(struct elf *elf, const char *name, uint64_t va, const char *const *without, struct tally *t)
{
	struct cut cut;
	bool callee = false, condition = false;

	t->functions++;
	if (cut_find(elf, va, &cut, NULL)) {
		printf("# %s: %s\n", name, cut.why);
		t->unknown += !in_list(without, name);
		return;
	}
	t->cuts++;
	for (unsigned i = 0; i < cut.npoints; i++) {
		t->unsafe += !is_safe(elf, &cut.points[i], va);
		callee |= cut.points[i].merged;
		condition |= cut.points[i].cond;
	}
	t->in_callees += callee;
	t->with_conditions += condition;
}

static bool is_c_api(const char *name)
{
	return !strncmp(name, "MX", 2);
}

static bool is_operator_call(const char *name)
{
	return !strncmp(name, "_ZN2at4_ops", 11) && strstr(name, "4callE");
}

/* The symbol of an operator's guard says where it is. */
static void count_guard(struct elf *elf, const char *name, uint64_t va, struct tally *t)
{
	static char guard[NAME_BYTES + 16];
	struct elf_sym sym = {0};
	uint64_t found;

	snprintf(guard, sizeof(guard), "_ZGVZ%sE2op", name + strlen("_Z"));
	if (insn_guard(elf, va, &found))
		return;
	t->guards++;
	t->wrong_guards += elf_find_sym(elf, guard, &sym, NULL) || sym.va != found;
}

/* Counts all functions of the library that an adapter names by a pattern. */
static struct tally count_all(struct elf *elf, const char *path, bool (*wanted)(const char *name),
			      const char *const *without)
{
	static char line[NAME_BYTES], name[NAME_BYTES];
	struct tally t = {0};
	unsigned long long va;
	FREED(pipe_closed) FILE *f = NULL;

	snprintf(line, sizeof(line), "nm -D --defined-only '%s'", path);
	f = popen(line, "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx T %8191s", &va, name) != 2 || !wanted(name))
			continue;
		count(elf, name, va, without, &t);
		count_guard(elf, name, va, &t);
	}
	printf("# %u functions, %u cuts: %u with a condition, %u in a callee; %u guards\n", t.functions, t.cuts,
	       t.with_conditions, t.in_callees, t.guards);
	return t;
}

/* Bodies of operators, and the functions that end the spans of the engine and of memory. */
static const char *const mxnet_bodies[] = {
	"_ZZN5mxnet10imperative12PushFComputeERKSt8functionIFvRKN4nnvm9NodeAttrsERKNS_9OpContextERKSt6vectorINS_"
	"5TBlobESaI"
	"SA_EERKS9_INS_9OpReqTypeESaISF_EESE_EEPKNS2_2OpES5_RKNS_7ContextERKS9_IPNS_6engine3VarESaISW_EES10_RKS9_INS_"
	"8Reso"
	"urceESaIS11_EERKS9_IPNS_7NDArrayESaIS17_EES1B_RKS9_IjSaIjEESJ_ENKUlNS_10RunContextEE_clES1G_",
	"_ZZN5mxnet10imperative14PushFComputeExERKSt8functionIFvRKN4nnvm9NodeAttrsERKNS_9OpContextERKSt6vectorINS_"
	"7NDArray"
	"ESaISA_EERKS9_INS_9OpReqTypeESaISF_EESE_EEPKNS2_2OpES5_RKNS_7ContextERKS9_IPNS_6engine3VarESaISW_EES10_RKS9_"
	"INS_8"
	"ResourceESaIS11_EERKS9_IPSA_SaIS16_EES1A_SJ_ENKUlNS_10RunContextEE_clES1B_",
	"_ZZN5mxnet10imperative12PushOperatorERKNS_10OpStatePtrEPKN4nnvm2OpERKNS4_9NodeAttrsERKNS_"
	"7ContextERKSt6vectorIPNS_"
	"6engine3VarESaISH_EESL_RKSE_INS_8ResourceESaISM_EERKSE_IPNS_7NDArrayESaISS_EESW_RKSE_IjSaIjEERKSE_INS_"
	"9OpReqTypeES"
	"aIS11_EENS_12DispatchModeEENKUlNS_10RunContextENSF_18CallbackOnCompleteEE_clES17_S18_",
	"_ZZN5mxnet10imperative12PushOperatorERKNS_10OpStatePtrEPKN4nnvm2OpERKNS4_9NodeAttrsERKNS_"
	"7ContextERKSt6vectorIPNS_"
	"6engine3VarESaISH_EESL_RKSE_INS_8ResourceESaISM_EERKSE_IPNS_7NDArrayESaISS_EESW_RKSE_IjSaIjEERKSE_INS_"
	"9OpReqTypeES"
	"aIS11_EENS_12DispatchModeEENKUlNS_10RunContextENSF_18CallbackOnCompleteEE1_clES17_S18_",
};

static void test_mxnet(const char *path)
{
	FREED(elf_closed) struct elf *elf = opened_elf(path);

	CHECK(!elf || !cut_allow(elf, "_ZN5mxnet11on_exit_apiEv"));
	TEST("MXNet: all functions of the C API but four have cuts, and all cut points are safe to probe")
	{
		struct tally t = {0};

		if (elf)
			t = count_all(elf, path, is_c_api, mxnet_without);
		CHECK(t.functions == 263 && t.cuts == 259);
		CHECK(t.unsafe == 0 && t.unknown == 0);
	}
	TEST("MXNet: every operator body has a cut of one unconditional point")
	{
		for (size_t i = 0; elf && i < sizeof(mxnet_bodies) / sizeof(*mxnet_bodies); i++) {
			struct elf_sym sym = {0};
			struct cut cut;

			CHECK(!elf_find_sym(elf, mxnet_bodies[i], &sym, NULL));
			CHECK(!cut_find(elf, sym.va, &cut, NULL));
			CHECK(cut.npoints == 1 && cut.level <= 1 && !cut.points[0].cond && !cut.points[0].merged);
		}
	}
}

static void test_torch(const char *path)
{
	FREED(elf_closed) struct elf *elf = opened_elf(path);
	struct tally t = {0};

	TEST("PyTorch: all at::_ops::*::call have cuts, all cut points are safe to probe, and none is in a callee")
	{
		if (elf)
			t = count_all(elf, path, is_operator_call, torch_without);
		CHECK(t.functions == 3101 && t.cuts == 3101);
		CHECK(t.unsafe == 0 && t.unknown == 0 && t.in_callees == 0);
	}
	TEST("PyTorch: the guards of at::_ops::*::call, which tell whether they were ever called, are where their "
	     "symbols are")
	{
		CHECK(t.guards * 100 > t.functions * 99);
		CHECK(t.wrong_guards == 0);
	}
}

int main(void)
{
	const char *mxnet = unit_library("MXBPF_TEST_LIBMXNET"), *torch = unit_library("MXBPF_TEST_LIBTORCH");

	if (mxnet)
		test_mxnet(mxnet);
	else
		TEST_IF(mxnet, "MXNet: functions have exit cuts", NO_MXNET) CHECK(0);
	if (torch)
		test_torch(torch);
	else
		TEST_IF(torch, "PyTorch: functions have exit cuts", NO_TORCH) CHECK(0);
	UNIT_MAIN_END;
}
