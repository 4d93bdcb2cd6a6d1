// SPDX-License-Identifier: Apache-2.0
/* Tests how memory that calls of CUDA allocate is told apart from segments of the runtime's allocator. */
#include "feature/gpumem/gpumem.h"
#include "feature/gpumem/regions.h"
#include "feature/memory/memory.h"
#include "records/kinds.h"
#include "unit.h"

#define CUDA MXBPF_DEVICE(2, 0)
#define MIB  (1ull << 20)
#define S    1000000000ull

static void call(struct mdl *m, uint64_t ns, uint64_t addr, uint64_t bytes, unsigned flags)
{
	const struct mxbpf_gpu_alloc a = {
		.h = {.kind = MXBPF_GPU_ALLOC, .size = sizeof(a), .tgid = 7, .ts_ns = ns},
		.addr = addr,
		.bytes = bytes,
		.flags = (uint8_t)flags,
		.kind = MXBPF_MEMORY_DEVICE,
	};

	CHECK(!mdl_fold(m, &a.h));
}

/* bytes below 0: freed. */
static void report(struct mdl *m, uint64_t ns, uint64_t addr, int64_t bytes, uint64_t total, uint64_t reserved)
{
	const struct mxbpf_alloc a = {
		.h = {.kind = MXBPF_ALLOC, .size = sizeof(a), .tgid = 7, .ts_ns = ns},
		.bytes = bytes,
		.device = CUDA,
		.addr = addr,
		.flags = bytes < 0 ? MXBPF_ALLOC_FREED : 0,
		.total_bytes = total,
		.pool_bytes = reserved,
	};

	CHECK(!mdl_fold(m, &a.h) && !mdl_fold_end(m));
}

static struct mdl *begin(void)
{
	struct mdl *m = mdl_new();

	CHECK(m && !mdl_see_device(m));
	return m;
}

static bool is_inside(const struct mdl *m, uint64_t calls, uint64_t largest)
{
	const struct mxbpf_gpu_inside in = gpumem_inside(m, memory_device(m, 0));

	return in.calls_bytes == calls && in.largest_free_bytes == largest;
}

static void test_segments(void)
{
	FREED(model_freed) struct mdl *again = mdl_new(), *m = begin();
	FREED(buf_fini) struct buf recs = {0};
	const struct mxbpf_rec *r;
	size_t pos = 0;

	TEST("a region in which the allocator places a block is a segment, whichever record comes first")
	{
		call(m, S, 0x1000000, 2 * MIB, 0);
		report(m, S + 10, 0x1000000, MIB / 2, MIB / 2, 2 * MIB);
		report(m, S + 20, 0x4000000, 4 * MIB, 9 * MIB / 2, 22 * MIB);
		call(m, S + 15, 0x4000000, 20 * MIB, 0);
		CHECK(is_inside(m, 0, 16 * MIB));
	}
	TEST("other regions are memory outside of the allocator, until they are freed")
	{
		call(m, S + 30, 0x9000000, 3 * MIB, 0);
		call(m, S + 31, 0xa000000, 5 * MIB, MXBPF_GPU_ALLOC_POOL);
		call(m, S + 32, 0xb000000, 5 * MIB, MXBPF_GPU_ALLOC_FAILED);
		CHECK(is_inside(m, 3 * MIB, 16 * MIB));
		call(m, S + 40, 0xc000000, MIB, 0);
		call(m, S + 50, 0x9000000, 3 * MIB, MXBPF_GPU_ALLOC_FREED);
		CHECK(is_inside(m, MIB, 16 * MIB));
	}
	TEST("rows of a recording have the same numbers")
	{
		CHECK(!mdl_emit(m, &recs));
		while ((r = kind_next(recs.data, recs.len, &pos)))
			CHECK(!mdl_fold(again, r));
		CHECK(is_inside(again, MIB, 16 * MIB));
	}
	TEST("a free piece lies between blocks, and an empty segment is one piece")
	{
		report(m, S + 60, 0x4000000, -(int64_t)(4 * MIB), MIB / 2, 22 * MIB);
		CHECK(is_inside(m, MIB, 20 * MIB));
		report(m, S + 70, 0x4000000 + 8 * MIB, 2 * MIB, 5 * MIB / 2, 22 * MIB);
		CHECK(is_inside(m, MIB, 10 * MIB));
	}
	TEST("an address that was a segment's is none for a later call")
	{
		report(m, S + 80, 0x1000000, -(int64_t)(MIB / 2), 2 * MIB, 22 * MIB);
		call(m, S + 90, 0x1000000, 2 * MIB, MXBPF_GPU_ALLOC_FREED);
		report(m, S + 95, 0x4000000, 512, 2 * MIB + 512, 20 * MIB);
		call(m, 3 * S, 0x1000000, 2 * MIB, 0);
		CHECK(is_inside(m, 3 * MIB, 10 * MIB));
	}
}

static void test_unknown(void)
{
	FREED(model_freed) struct mdl *none = mdl_new(), *m = begin();

	TEST("the largest free piece is not known if a block or a segment is older than the window")
	{
		call(m, S, 0x1000000, 2 * MIB, 0);
		report(m, S + 10, 0x1000000, MIB, 3 * MIB / 2, 2 * MIB);
		CHECK(is_inside(m, 0, MXBPF_GPU_INSIDE_UNKNOWN));
		report(m, S + 20, 0x1000000 + MIB, MIB / 2, MIB * 3 / 2, 4 * MIB);
		CHECK(is_inside(m, 0, MXBPF_GPU_INSIDE_UNKNOWN));
	}
	TEST("nothing is known without records of calls")
	{
		report(none, S, 0x1000000, MIB, MIB, 2 * MIB);
		CHECK(is_inside(none, MXBPF_GPU_INSIDE_UNKNOWN, MXBPF_GPU_INSIDE_UNKNOWN));
	}
}

int main(void)
{
	test_segments();
	test_unknown();
	UNIT_MAIN_END;
}
