// SPDX-License-Identifier: Apache-2.0
/* Tests which findings records of GPUs give: each fault alone, and healthy jobs. */

#include "findings_model.h"
#include "mxbpf_lines.h"
#include "mxbpf_sched.h"
#include "mxbpf_track.h"

#define GEMM  11
#define SYNC  12
#define ITEM  13
#define STACK 14
#define STEPS 40 /* iterations of 100 ms */

static struct mdl_session session = {.duration_ns = STEPS * 100 * MS};

static void begin_without_loop(void)
{
	new_model();
	name(GEMM, MXBPF_NAME_SPAN, "gemm");
	name(SYNC, MXBPF_NAME_SPAN, "cudaStreamSynchronize");
	name(ITEM, MXBPF_NAME_SPAN, "aten::_local_scalar_dense");
	name(STACK, MXBPF_NAME_STACK, "/app/t.py(7): main");
}

/* Iterations of which so many ms are of the part and the rest is operators. */
static void begin(enum mxbpf_step_part part, uint64_t part_ms)
{
	struct mxbpf_iteration it = {.h = {.kind = MXBPF_ITERATION, .size = sizeof(it), .tgid = PID},
				     .dur_ns = 100 * MS,
				     .busy_ns = (100 - part_ms) * MS,
				     .tid = PID,
				     .flags = MXBPF_ITERATION_PARTS};

	begin_without_loop();
	it.part_ns[part] = part_ms * MS;
	it.part_ns[MXBPF_PART_OPERATOR] += (100 - part_ms) * MS;
	for (; it.nr < STEPS; it.nr++) {
		it.h.ts_ns = (1000 + it.nr * 100) * MS;
		feed(&it);
	}
}

static struct mxbpf_activity activity(uint64_t start_ns, uint64_t dur_ns)
{
	return (struct mxbpf_activity){.h = {MXBPF_ACTIVITY, sizeof(struct mxbpf_activity), PID, start_ns},
				       .dur_ns = dur_ns,
				       .name_id = GEMM,
				       .cls = MXBPF_ACTIVITY_KERNEL};
}

/* Kernels in each iteration, evenly, each of which begins so long after its launch in an operator. */
static void kernels(uint64_t each_iteration, uint64_t dur_ns, uint64_t latency_ns)
{
	const uint64_t gap_ns = 100 * MS / each_iteration;
	struct mxbpf_launch l = {.h = {MXBPF_LAUNCH, sizeof(l), PID, 0}, .tid = PID, .domain = MXBPF_DOMAIN_CUPTI};
	struct mxbpf_span s = {.h = {MXBPF_SPAN, sizeof(s), PID, 0},
			       .dur_ns = 100,
			       .self_ns = 100,
			       .name_id = ITEM,
			       .tid = PID,
			       .cls = MXBPF_CLASS_OPERATOR};
	struct mxbpf_activity a;
	uint64_t i;

	for (i = 0; i < STEPS * each_iteration; i++) {
		s.h.ts_ns = 1000 * MS + i * gap_ns;
		feed(&s);
		l.h.ts_ns = 1000 * MS + i * gap_ns;
		l.edge_id = i + 1;
		feed(&l);
		a = activity(l.h.ts_ns + latency_ns, dur_ns);
		a.edge_id = l.edge_id;
		a.domain = MXBPF_DOMAIN_CUPTI;
		feed(&a);
	}
}

/* The loop's thread sleeps for 3 ms between the kernels, and then waits 0.5 ms for a CPU. */
static void sleeps(uint64_t each_iteration)
{
	struct mxbpf_off_cpu o = {.h = {MXBPF_OFF_CPU, sizeof(o), PID, 0}, .tid = PID};
	uint64_t i;

	for (i = 0; i < STEPS * each_iteration; i++) {
		o.h.ts_ns = 1001 * MS + i * 100 * MS / each_iteration;
		o.woken_ns = o.h.ts_ns + 3 * MS;
		o.back_ns = o.woken_ns + MS / 2;
		feed(&o);
	}
}

static uint64_t copy_bytes = 1 << 20;

static void copies(uint64_t n, uint64_t dur_ns, enum mxbpf_memory_kind from)
{
	struct mxbpf_activity a;
	uint64_t i;

	for (i = 0; i < n; i++) {
		a = activity(1000 * MS + 50 * MS + i * 100 * MS, dur_ns);
		a.cls = MXBPF_ACTIVITY_COPY;
		a.copy = MXBPF_COPY_HTOD;
		a.from = (uint8_t)from;
		a.to = MXBPF_MEMORY_DEVICE;
		a.bytes = copy_bytes;
		feed(&a);
	}
}

static void waits(uint32_t tid, uint64_t n, uint64_t each_ns)
{
	struct mxbpf_span s = {.h = {MXBPF_SPAN, sizeof(s), PID, 1000 * MS},
			       .name_id = SYNC,
			       .tid = tid,
			       .cls = MXBPF_CLASS_CUDA,
			       .dur_ns = each_ns};

	for (; n; n--, s.h.ts_ns += each_ns)
		feed(&s);
}

/* Looks that found the loop's thread in an operator that reads a value. */
static void looks(uint64_t count)
{
	struct mxbpf_agg_line l = {.h = {MXBPF_AGG_LINE, sizeof(l), PID, 2000 * MS},
				   .stack_id = STACK,
				   .count = count,
				   .name_id = ITEM,
				   .cls = MXBPF_CLASS_OPERATOR,
				   .tid = PID,
				   .syscall = -1,
				   .main = 1};

	feed(&l);
}

static void test_launch(void)
{
	TEST("a GPU that is idle because kernels are launched too slowly is reported with their number and duration")
	{
		begin(MXBPF_PART_OUTSIDE, 5);
		kernels(500, 20000, 8000);
		CHECK(!strcmp(found(), "gpu_launch"));
		CHECK(has(&told.list[0].text, "idle in 90% of the time") &&
		      has(&told.list[0].text, "500 kernels in an iteration, 20.0 us each"));
		CHECK(has(&told.list[0].evidence, "a kernel begins 7.94 us after its launch (median)") &&
		      has(&told.list[0].evidence, "aten::_local_scalar_dense 100% of the kernels"));
	}
	TEST("a job whose kernels wait in the queue of the GPU is not bound by launching them")
	{
		begin(MXBPF_PART_OUTSIDE, 5);
		kernels(500, 100000, 5 * MS);
		CHECK(!strcmp(found(), "gpu_idle"));
	}
	TEST("a job with few kernels, or one whose loop waits for data, is not bound by launching them")
	{
		begin(MXBPF_PART_OUTSIDE, 5);
		kernels(20, 20000, 8000);
		CHECK(!strcmp(found(), "gpu_idle"));
		begin(MXBPF_PART_DATA, 80);
		kernels(500, 20000, 8000);
		CHECK(!strcmp(found(), "data_wait"));
	}
	TEST("a GPU that is idle most of the time is reported with the program's line if nothing else explains it")
	{
		begin(MXBPF_PART_OUTSIDE, 5);
		kernels(20, 500000, 8000);
		looks(30);
		CHECK(!strcmp(found(), "gpu_idle"));
		CHECK(has(&told.list[0].text, "The GPU is idle in 90% of the time, which no other finding explains"));
		CHECK(!has(&told.list[0].text, "no iterations") &&
		      has(&told.list[0].evidence, "/app/t.py(7): main, 100% of 30") &&
		      has(&told.list[0].evidence, "samples; your Python code, 100% of the idle time"));
		begin(MXBPF_PART_OUTSIDE, 5);
		kernels(20, 500000, 8000);
		sleeps(20);
		CHECK(!strcmp(found(), "gpu_idle"));
		CHECK(has(&told.list[0].evidence, "your Python code, 100% of the idle time: on a CPU 22%, blocked 67%, "
						  "without a CPU 11%"));
		begin(MXBPF_PART_DATA, 40); /* less than a half of what the GPU is idle */
		kernels(20, 500000, 8000);
		CHECK(!strcmp(found(), "gpu_idle data_wait"));
		begin_without_loop();
		kernels(20, 500000, 8000);
		looks(30);
		CHECK(!strcmp(found(), "gpu_idle"));
		CHECK(has(&told.list[0].text, "no iterations were recognised") &&
		      has(&told.list[0].evidence, "/app/t.py(7): main"));
	}
	TEST("nothing on the CPU is reported while the GPU is busy nearly all the time")
	{
		begin(MXBPF_PART_DATA, 50);
		kernels(500, 195000, 5 * MS);
		CHECK(!strcmp(found(), "") && told.facts.gpu.busy > 0.95);
	}
}

static void test_sync(void)
{
	TEST("waits for the GPU are reported with their line if the GPU is idle beside them")
	{
		begin(MXBPF_PART_OUTSIDE, 10);
		kernels(40, 1500000, 9000);
		waits(PID, STEPS * 20, 3 * MS);
		looks(30);
		CHECK(!strcmp(found(), "gpu_sync"));
		CHECK(has(&told.list[0].text, "waits for the GPU 20 times in an iteration, 60% of the loop's time"));
		CHECK(has(&told.list[0].evidence, "/app/t.py(7): main"));
	}
	TEST("one wait in an iteration, waits of other threads, and waits while data is missing are no finding")
	{
		begin(MXBPF_PART_OUTSIDE, 10);
		kernels(40, 1500000, 9000);
		waits(PID, STEPS, 60 * MS);
		CHECK(!strcmp(found(), ""));
		begin(MXBPF_PART_OUTSIDE, 10);
		kernels(40, 1500000, 9000);
		waits(PID + 1, STEPS * 20, 3 * MS);
		CHECK(!strcmp(found(), ""));
		begin(MXBPF_PART_DATA, 40);
		kernels(40, 1500000, 9000);
		waits(PID, STEPS * 20, 3 * MS);
		CHECK(!strcmp(found(), "data_wait"));
	}
}

static void test_copies(void)
{
	TEST("copies from pageable memory are reported with their bytes, and those from pinned memory are not")
	{
		begin(MXBPF_PART_OUTSIDE, 5);
		copies(STEPS, 20 * MS, MXBPF_MEMORY_PAGEABLE);
		CHECK(!strcmp(found(), "gpu_idle gpu_pageable") && has(&told.list[1].text, "take 20% of the time"));
		CHECK(has(&told.list[1].evidence, "40 copies, 40.0 MiB in 800 ms, 50.0 MiB/s"));
		copy_bytes = 410000000000000000; /* in a second more than 64 bits hold, as a hostile recording says */
		begin(MXBPF_PART_OUTSIDE, 5);
		copies(STEPS, 20 * MS, MXBPF_MEMORY_PAGEABLE);
		found();
		CHECK(has(&told.list[1].evidence, "16.0 EiB/s"));
		copy_bytes = 1 << 20;
		begin(MXBPF_PART_OUTSIDE, 5);
		copies(STEPS, 20 * MS, MXBPF_MEMORY_PINNED);
		CHECK(!strcmp(found(), "gpu_idle"));
	}
	TEST("copies from pageable memory beside kernels are no finding")
	{
		begin(MXBPF_PART_OUTSIDE, 5);
		kernels(40, 2000000, 5 * MS);
		copies(STEPS, 20 * MS, MXBPF_MEMORY_PAGEABLE);
		CHECK(!strcmp(found(), ""));
	}
}

/* A GPU of 132 multiprocessors, and kernels of so many blocks, each 1.5 ms. */
static void grids(uint32_t blocks, uint64_t name_id, uint32_t stream)
{
	const struct mxbpf_gpu_device d = {.h = {MXBPF_GPU_DEVICE, sizeof(d), PID, 0},
					   .name_id = GEMM,
					   .multiprocessors = 132,
					   .major = 9,
					   .threads_per_mp = 2048,
					   .blocks_per_mp = 32,
					   .registers_per_mp = 65536,
					   .shared_per_mp = 233472,
					   .warp = 32};
	struct mxbpf_activity a;
	uint64_t i;

	feed(&d);
	for (i = 0; i < STEPS * 40; i++) {
		a = activity(1000 * MS + i * 2500000, 1500000);
		a.name_id = name_id;
		a.track.stream = stream;
		a.grid[0] = blocks;
		a.grid[1] = a.grid[2] = 1;
		a.block[0] = 256;
		a.block[1] = a.block[2] = 1;
		a.registers = 32;
		feed(&a);
	}
}

static void test_grids(void)
{
	TEST("kernels with fewer blocks than the GPU has multiprocessors are reported with what they waste")
	{
		begin(MXBPF_PART_OUTSIDE, 5);
		grids(33, GEMM, 7); /* three quarters of 60 % */
		CHECK(!strcmp(found(), "gpu_small_grids") && has(&told.list[0].text, "waste 45% of the GPU's time") &&
		      has(&told.list[0].evidence, "gemm 100% of it"));
	}
	TEST("enough blocks, a second stream that uses the rest, kernels of NCCL and grids that differ are no finding")
	{
		begin(MXBPF_PART_OUTSIDE, 5);
		grids(132, GEMM, 7);
		CHECK(!strcmp(found(), ""));
		begin(MXBPF_PART_OUTSIDE, 5);
		grids(66, GEMM, 7);
		grids(66, SYNC, 8);
		CHECK(!strcmp(found(), ""));
		begin(MXBPF_PART_OUTSIDE, 5);
		name(GEMM + 100, MXBPF_NAME_SPAN, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
		grids(16, GEMM + 100, 7);
		CHECK(!strcmp(found(), "exposed_communication"));
		begin(MXBPF_PART_OUTSIDE, 5);
		grids(33, GEMM, 7);
		grids(66, GEMM, 7);
		CHECK(!strcmp(found(), ""));
	}
}

int main(void)
{
	test_launch();
	test_sync();
	test_copies();
	test_grids();
	UNIT_MAIN_END;
}
