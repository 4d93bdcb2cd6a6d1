/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the offsets of a row in an unknown build: they are read from the code or checked against it, never trusted.
 * The code is that of the real MXNet 1.9.1 (MXBPF_TEST_LIBMXNET); the rows have right and wrong offsets.
 */

#include "plan/priv.h"
#include "opened_elf.h"

#define WAIT	"_ZN5mxnet6engine14ThreadedEngine10WaitForAllEv"
#define STORAGE "_ZN5mxnet11StorageImpl"
#define BLOCK	"_ZN5mxnet6engine14ThreadedEngine15ExecuteOprBlockENS_10RunContextEPNS0_8OprBlockE"

static struct elf *elf;
static char why[256];

/* Calibrates a row with this `shown` against the code of a symbol. Stores the reason for a refusal in `why`. */
static int calibrated(const char *symbol, uint8_t shown, struct mxbpf_row *row)
{
	const struct adp_probe adp = {.name = "a row", .shown = shown};
	struct tgt_lib lib = {.path = "libmxnet.so"};
	struct plan_probe probe = {.row = &adp, .lib = &lib};
	struct plan plan = {.probes = &probe, .nprobes = 1, .rows = row};
	struct elf_sym sym;
	int err;

	CHECK(!elf_find_sym(elf, symbol, &sym, NULL));
	err = plan_calibrate(&plan, &probe, elf, &sym);
	memcpy(why, probe.reason, sizeof(why));
	CHECK(probe.calibrated == !err && !why[0] == !err);
	return err;
}

static struct mxbpf_row handle(int32_t size_off, int32_t device_off)
{
	return (struct mxbpf_row){
		.size = {.base = MXBPF_BASE_ARG2, .nderef = 1, .off = {size_off}},
		.device = {.base = MXBPF_BASE_ARG2, .nderef = 1, .off = {device_off}},
		.name_type = MXBPF_NAMED_BYTES,
		.name = {.base = MXBPF_BASE_ARG2, .nderef = 1, .off = {32}},
	};
}

static struct mxbpf_row handle_copy(int32_t size_off, int32_t guard_off)
{
	return (struct mxbpf_row){
		.size = {.base = MXBPF_BASE_STACK, .nderef = 1, .off = {size_off}},
		.device = {.base = MXBPF_BASE_STACK, .nderef = 1, .off = {24}},
		.guard = {.base = MXBPF_BASE_STACK, .nderef = 1, .off = {guard_off}},
	};
}

static void test_block(void)
{
	struct mxbpf_row row = {
		.name = {.base = MXBPF_BASE_ARG2, .nderef = 2, .off = {1, 2}},
		.link = {.base = MXBPF_BASE_ARG2, .nderef = 1, .off = {3}},
		.device = {.base = MXBPF_BASE_ARG2, .nderef = 1, .off = {4}},
	};

	TEST("the offsets of an operator are read from the code and replace those of the row")
	CHECK(!calibrated(BLOCK, ADP_SHOWN_BLOCK, &row) && row.name.off[0] == 8 && row.name.off[1] == 88 &&
	      row.link.off[0] == 8 && row.device.off[0] == 16);
}

static void test_handle(void)
{
	struct mxbpf_row right = handle(8, 16), size = handle(16, 16), device = handle(8, 24), guarded = handle(8, 16);

	TEST("an allocation row with the offsets of the code is accepted without its name, which the code does not "
	     "show")
	CHECK(!calibrated(STORAGE "5AllocEPNS_7Storage6HandleE", ADP_SHOWN_HANDLE, &right) &&
	      right.name_type == MXBPF_NAMED_NOT && !right.name.nderef);
	TEST("an allocation row with a wrong size or device offset is refused")
	{
		CHECK(calibrated(STORAGE "5AllocEPNS_7Storage6HandleE", ADP_SHOWN_HANDLE, &size) &&
		      strstr(why, "other fields"));
		CHECK(calibrated(STORAGE "5AllocEPNS_7Storage6HandleE", ADP_SHOWN_HANDLE, &device) &&
		      strstr(why, "other fields"));
	}
	TEST("an allocation row with a guard is refused if the code shows no guard")
	{
		guarded.guard = (struct mxbpf_fetch){.base = MXBPF_BASE_ARG2, .nderef = 1, .off = {8}};
		CHECK(calibrated(STORAGE "5AllocEPNS_7Storage6HandleE", ADP_SHOWN_HANDLE, &guarded) &&
		      strstr(why, "how it marks an empty allocation"));
	}
}

static void test_copy(void)
{
	struct mxbpf_row right = handle_copy(16, 8), size = handle_copy(8, 8), guard = handle_copy(16, 16);

	TEST("a handle copied to the stack is checked against the code, too")
	{
		CHECK(!calibrated(STORAGE "4FreeENS_7Storage6HandleE", ADP_SHOWN_HANDLE_COPY, &right));
		CHECK(calibrated(STORAGE "4FreeENS_7Storage6HandleE", ADP_SHOWN_HANDLE_COPY, &size));
		CHECK(calibrated(STORAGE "4FreeENS_7Storage6HandleE", ADP_SHOWN_HANDLE_COPY, &guard));
	}
	TEST("a row is refused if the function reads other fields or if the row names no way to check it")
	{
		right = handle(8, 16);
		CHECK(calibrated(WAIT, ADP_SHOWN_HANDLE, &right) && strstr(why, "libmxnet.so, and its code"));
		CHECK(calibrated(WAIT, 0, &right) && strstr(why, "not verified for this build"));
	}
}

int main(void)
{
	const char *path = unit_library("MXBPF_TEST_LIBMXNET");

	if (!path)
		TEST_IF(path, "calibration accepts right offsets and refuses wrong ones", NO_MXNET) CHECK(0);
	if (!path)
		return unit_end();
	elf = opened_elf(path);
	TEST("the library can be opened") CHECK(elf != NULL);
	if (!elf)
		return unit_end();
	test_block();
	test_handle();
	test_copy();
	elf_close(elf);
	return unit_end();
}
