// SPDX-License-Identifier: Apache-2.0
/* Tests what operators reach on GPUs against the peaks: what shapes need, peaks, the join with kernels, the bounds. */
#include "feature/roofline/roofline.h"

#include <math.h>

#include "chrome_tape.h"
#include "feature/activity/activity.h"
#include "printed.h"

#define MM    401
#define ARGS  402
#define ARGS2 403
#define OUTER 404
#define GEMM  405

/* ---- what shapes need */

static struct roofline_need need_of(const char *name, const char *args)
{
	struct roofline_need need;

	if (!roofline_need(name, strlen(name), args, strlen(args), &need))
		return (struct roofline_need){.flops = 0};
	return need;
}

static void test_need(void)
{
	TEST("bytes are those of inputs and outputs once, and operations are those of the formula")
	{
		struct roofline_need n = need_of("aten::mm", "[[3,5],[5,4]]\n[\"float\",\"float\"]\n[[5,1],[4,1]]");

		CHECK(n.flops == 120 && n.bytes == 4 * (15 + 20 + 12) && n.type == FLOPS_FLOAT32);
		n = need_of("aten::bmm", "[[6,3,5],[6,5,4]]\n[\"c10::Half\",\"c10::Half\"]\n[[15,5,1],[20,4,1]]");
		CHECK(n.flops == 720 && n.bytes == 2 * 6 * (15 + 20 + 12) && n.type == FLOPS_FLOAT16);
		n = need_of("aten::linear",
			    "[[2,3,5],[4,5],[4]]\n[\"c10::BFloat16\",\"c10::BFloat16\",\"c10::BFloat16\"]\n[]");
		CHECK(n.flops == 240 && n.bytes == 2 * (30 + 20 + 4 + 24) && n.type == FLOPS_BFLOAT16);
		n = need_of("aten::relu", "[[8,8]]\n[\"float\"]\n[[8,1]]");
		CHECK(!n.flops && n.bytes == 2 * 256);
		n = need_of("aten::sum", "[[8,8]]\n[\"double\"]\n[[8,1]]");
		CHECK(!n.flops && n.bytes == 512);
		n = need_of("Convolution", "[[2,3,8,8],[4,3,3,3],[4]]\n[\"float32\",\"float32\",\"float32\"]\n[]\n"
					   "[[2,4,8,8]]\n[\"float32\"]");
		CHECK(n.flops == 2ull * 512 * 27 && n.bytes == 4 * (384 + 108 + 4 + 512));
	}
	TEST("bytes stay a lower bound: what is not read, is given by the caller or is repeated by strides does not "
	     "count")
	{
		/* The array that a product is added to is not read if its factor is 0. */
		CHECK(need_of("aten::addmm", "[[4],[3,5],[5,4],[],[]]\n[\"float\",\"float\",\"float\",\"\",\"\"]\n[]")
			      .bytes == 4 * (15 + 20 + 12));
		/* out= */
		CHECK(need_of("aten::add", "[[8],[8],[],[8]]\n[\"float\",\"float\",\"\",\"float\"]\n[]").bytes ==
		      3 * 32);
		CHECK(need_of("aten::add", "[[8],[8],[]]\n[\"float\",\"float\",\"\"]\n[]").bytes == 3 * 32);
		/* A row that is expanded to eight rows is in memory once. The output has all of them. */
		CHECK(need_of("aten::mul", "[[8,4],[8,4]]\n[\"float\",\"float\"]\n[[4,1],[0,1]]").bytes ==
		      128 + 16 + 128);
		/* An embedding reads a part of its table. */
		CHECK(!need_of("aten::embedding", "[[50000,768],[8]]\n[\"float\",\"long int\"]\n[]").bytes);
		CHECK(!need_of("aten::mm", "[[3,5],[4,5]]\n[\"float\",\"float\"]\n[]").bytes);
		CHECK(!need_of("aten::relu", "[[8,8]]\n[\"c10::quint4x2\"]\n[[8,1]]").bytes);
	}
	TEST("hostile shapes give no numbers")
	{
		CHECK(!need_of("aten::mm", "[[").bytes && !need_of("aten::mm", "").bytes &&
		      !need_of("aten::mm", "[]\n[\n[[").bytes);
		CHECK(!need_of("aten::relu", "[[18446744073709551615,18446744073709551615]]\n[\"float\"]\n[]").bytes);
		CHECK(!need_of("aten::mm",
			       "[[9999999999,9999999999],[9999999999,9999999999]]\n[\"float\",\"float\"]\n[]")
			       .flops);
	}
}

/* ---- peaks */

static struct mxbpf_gpu_device device(uint16_t major, uint16_t minor, uint32_t multiprocessors, uint32_t clock_mhz)
{
	return (struct mxbpf_gpu_device){
		.major = major, .minor = minor, .multiprocessors = multiprocessors, .clock_khz = clock_mhz * 1000};
}

static bool near(double is, double should)
{
	return fabs(is / should - 1) < 0.01;
}

static void test_peaks(void)
{
	TEST("peaks are those of NVIDIA's data sheets, at the clocks that these are for")
	{
		/* TFLOP/s and GB/s as published; 0: not published, or the type has no units */
		static const struct {
			uint16_t major, minor;
			uint32_t multiprocessors, mhz, memory_mhz, bus;
			double float64, float32, tf32, float16, bytes;
		} all[] = {
			{6, 0, 56, 1480, 715, 4096, 5.3, 10.6, 0, 21.2, 732},	   /* P100 SXM2 */
			{7, 0, 80, 1530, 877, 4096, 7.8, 15.7, 0, 125, 900},	   /* V100 SXM2 */
			{7, 5, 40, 1590, 5001, 256, 0, 8.1, 0, 65, 320},	   /* T4 */
			{8, 0, 108, 1410, 1215, 5120, 19.5, 19.5, 156, 312, 1555}, /* A100 40 GB */
			{8, 6, 84, 1740, 7251, 384, 0, 37.4, 74.8, 149.7, 696},	   /* A40 */
			{8, 9, 142, 2520, 9001, 384, 0, 91.6, 183, 366, 864},	   /* L40S: 362 TFLOP/s are published */
			{9, 0, 132, 1830, 2619, 5120, 61.8, 61.8, 494.7, 989.4,
			 3352}, /* H100 SXM, at the clock of 989 */
		};
		size_t i;

		for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
			const struct mxbpf_gpu_device d =
				device(all[i].major, all[i].minor, all[i].multiprocessors, all[i].mhz);
			const struct mxbpf_gpu_limits l = {.memory_clock_khz = all[i].memory_mhz * 1000,
							   .memory_bus_bits = all[i].bus};
			const struct roofline_peaks p = roofline_peaks(&d, &l);

			CHECK(!all[i].float64 || near(p.flops[FLOPS_FLOAT64], all[i].float64 * 1e12));
			CHECK(near(p.flops[FLOPS_FLOAT32], all[i].float32 * 1e12));
			CHECK(all[i].tf32 ? near(p.tf32, all[i].tf32 * 1e12) : !p.tf32);
			CHECK(near(p.flops[FLOPS_FLOAT16], all[i].float16 * 1e12) && near(p.bytes, all[i].bytes * 1e9));
			CHECK(all[i].major < 8 ? !p.flops[FLOPS_BFLOAT16]
					       : p.flops[FLOPS_BFLOAT16] == p.flops[FLOPS_FLOAT16]);
		}
	}
	TEST("a device, compute capability or memory that is not known has no peak")
	{
		const struct mxbpf_gpu_device d = device(99, 0, 100, 1000);
		const struct mxbpf_gpu_limits l = {.memory_clock_khz = 0, .memory_bus_bits = 5120};

		CHECK(!roofline_peaks(&d, &l).flops[FLOPS_FLOAT32] && !roofline_peaks(&d, &l).bytes);
		CHECK(!roofline_peaks(NULL, NULL).flops[FLOPS_FLOAT16] && !roofline_peaks(NULL, NULL).bytes);
	}
}

/* ---- bounds */

/* Calls that take so long on a device of 100 TFLOP/s for float16, 10 for float32, 50 for TF32, and 1 TB/s. */
static struct roofline_result result(uint64_t flops, uint64_t bytes, enum flops_type type, uint64_t each_ns)
{
	const struct roofline_peaks p = {
		.flops = {[FLOPS_FLOAT16] = 100e12, [FLOPS_FLOAT32] = 10e12}, .tf32 = 50e12, .bytes = 1e12};
	const struct roofline_need need = {.flops = flops, .bytes = bytes, .type = type};
	const struct roofline_row r = {.calls = 10, .total = {.kernels = 10, .gpu_ns = 10 * each_ns}};

	return roofline_of(&r, &need, &p);
}

static void test_bounds(void)
{
	TEST("an operator is bound by the peak of which it reaches a half or more, else by neither")
	{
		struct roofline_result o = result(8000000000, 10000000, FLOPS_FLOAT16, 100000);

		CHECK(o.bound == ROOFLINE_COMPUTE && near(o.of_flops, 0.8) && near(o.of_bytes, 0.1) &&
		      near(o.intensity, 800));
		o = result(1000000000, 90000000, FLOPS_FLOAT16, 100000);
		CHECK(o.bound == ROOFLINE_MEMORY && near(o.of_bytes, 0.9) && near(o.flops, 10e12) &&
		      near(o.bytes, 0.9e12));
		CHECK(result(1000000000, 10000000, FLOPS_FLOAT16, 100000).bound == ROOFLINE_NEITHER);
		CHECK(result(1000000, 10000, FLOPS_FLOAT16, 3000).bound == ROOFLINE_SMALL);
		CHECK(result(0, 90000000, FLOPS_FLOAT32, 100000).bound == ROOFLINE_MEMORY);
		CHECK(isnan(result(0, 90000000, FLOPS_FLOAT32, 100000).intensity));
	}
	TEST("float32 that is faster than without tensor cores is judged by these")
	{
		CHECK(near(result(900000000, 1, FLOPS_FLOAT32, 100000).of_flops, 0.9));
		CHECK(near(result(4000000000, 1, FLOPS_FLOAT32, 100000).of_flops, 0.8));
	}
	TEST("there is no bound without its peak")
	{
		struct roofline_result o = result(8000000000, 10000000, FLOPS_FLOAT64, 100000);

		CHECK(o.bound == ROOFLINE_UNKNOWN && isnan(o.of_flops));
		CHECK(result(8000000000, 0, FLOPS_FLOAT16, 1000000).bound == ROOFLINE_UNKNOWN);
		CHECK(result(8000000000, 0, FLOPS_FLOAT16, 100000).bound == ROOFLINE_COMPUTE);
		CHECK(result(1, 1, FLOPS_FLOAT16, 0).bound == ROOFLINE_UNKNOWN);
	}
}

/* ---- the join */

/* Two products of one shape, one of another, one that launches nothing, all inside of an outer operator. */
static void put_part(struct tape *t, unsigned part)
{
	switch (part) {
	case 0:
		call(t, OP, MM, 200, 300)->args_id = ARGS;
		call(t, OP, MM, 400, 500)->args_id = ARGS;
		call(t, OP, MM, 600, 700)->args_id = ARGS2;
		call(t, OP, MM, 800, 900)->args_id = ARGS;
		call(t, OP, OUTER, 100, 1000)->args_id = ARGS;
		break;
	case 1:
		launch(t, PID, 210, 1);
		launch(t, PID, 220, 2);
		launch(t, PID, 410, 3);
		launch(t, PID, 610, 4);
		break;
	case 2:
		kernel(t, GEMM, 1, 2000, 2010);
		kernel(t, GEMM, 2, 2010, 2030);
		kernel(t, GEMM, 3, 2030, 2070);
		kernel(t, GEMM, 4, 2070, 2150);
		break;
	}
}

static const struct roofline_row *row(const struct mdl *m, uint64_t name_id, uint64_t args_id)
{
	static const struct roofline_row none;
	size_t n, i;
	const struct roofline_row *r = roofline_rows(m, &n);

	for (i = 0; i < n; i++)
		if (r[i].name_id == name_id && r[i].args_id == args_id)
			return &r[i];
	return &none;
}

static void test_join(void)
{
	TEST("the time on the GPU belongs to the name and shapes of the operator, in any order of arrival")
	{
		static const unsigned orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
		const struct roofline_row *r;
		unsigned i, k, apart;

		for (i = 0; i < 12; i++) {
			FREED(tape_free) struct tape t = tape_new();

			/* A device comes first, as in a session, so that spans are kept. */
			rec_add(&t, MXBPF_GPU_DEVICE, sizeof(struct mxbpf_gpu_device), 0);
			apart = i / 6;
			for (k = 0; k < 3; k++) {
				put_part(&t, orders[i % 6][k]);
				CHECK(!apart || !fold(&t));
			}
			CHECK(!fold(&t));
			r = row(t.model, MM, ARGS);
			CHECK(r->calls == 2 && r->total.gpu_ns == 70 && r->self.gpu_ns == 70 && r->total.kernels == 3);
			r = row(t.model, MM, ARGS2);
			CHECK(r->calls == 1 && r->total.gpu_ns == 80 && r->self.gpu_ns == 80);
			r = row(t.model, OUTER, ARGS);
			CHECK(r->calls == 1 && r->total.gpu_ns == 150 && !r->self.gpu_ns);
		}
	}
	TEST("a call counts once although its launches arrive in several windows")
	{
		FREED(tape_free) struct tape t = tape_new();

		rec_add(&t, MXBPF_GPU_DEVICE, sizeof(struct mxbpf_gpu_device), 0);
		call(&t, OP, MM, 200, 300)->args_id = ARGS;
		launch(&t, PID, 210, 1);
		CHECK(!fold(&t));
		launch(&t, PID, 220, 2);
		CHECK(!fold(&t));
		kernel(&t, GEMM, 1, 2000, 2010);
		kernel(&t, GEMM, 2, 2010, 2030);
		CHECK(!fold(&t));
		CHECK(row(t.model, MM, ARGS)->calls == 1 && row(t.model, MM, ARGS)->total.gpu_ns == 30);
	}
	TEST("an activity that comes after a reset counts in the row of its call, which begins at 0")
	{
		FREED(tape_free) struct tape t = tape_new();
		FREED(model_freed) struct mdl *last = t.model;
		struct mdl *next = mdl_new();

		rec_add(&t, MXBPF_GPU_DEVICE, sizeof(struct mxbpf_gpu_device), 0);
		call(&t, OP, OUTER, 150, 160)->args_id = ARGS2;
		call(&t, OP, MM, 200, 300)->args_id = ARGS;
		launch(&t, PID, 155, 1);
		launch(&t, PID, 210, 2);
		kernel(&t, GEMM, 1, 1000, 1005);
		CHECK(!fold(&t));
		CHECK(!mdl_move(next, last, 0));
		CHECK(row(last, MM, ARGS)->calls == 1 && row(last, OUTER, ARGS2)->total.gpu_ns == 5);
		t.model = next;
		kernel(&t, GEMM, 2, 2000, 2010);
		CHECK(!fold(&t));
		CHECK(!row(next, MM, ARGS)->calls && row(next, MM, ARGS)->total.gpu_ns == 10 &&
		      row(next, MM, ARGS)->self.gpu_ns == 10 && !row(next, OUTER, ARGS2)->total.gpu_ns);
	}
}

static void test_limits(void)
{
	FREED(tape_free) struct tape t = tape_new();
	struct mxbpf_gpu_limits *l = rec_add(&t, MXBPF_GPU_LIMITS, sizeof(*l), 0);
	FREED(model_freed) struct mdl *next = mdl_new();
	const struct mxbpf_gpu_limits *known;
	size_t n;

	TEST("the rates of a device, which are told once, are known after a reset, also if it has run nothing")
	l->memory_bus_bits = 6144;
	CHECK(!fold(&t) && !mdl_move(next, t.model, 0));
	known = roofline_limits(next, &n);
	CHECK(n == 1 && known->memory_bus_bits == 6144);
}

/* ---- tables */

static char *written(const struct tape *t, const struct view_ops *ops)
{
	const struct view_input in = {.session = &t->session, .model = t->model};
	const struct view_opts opts = {.sort = VIEW_SORT_TOTAL, .width = 160};

	return printed(ops, &in, &opts);
}

static void test_tables(void)
{
	TEST("tables show what operators reached, their shapes, and what bounds them")
	{
		static const char args[] =
			"[[1024,1024],[1024,1024]]\n[\"c10::Half\",\"c10::Half\"]\n[[1024,1],[1024,1]]";
		FREED(tape_free) struct tape t = tape_new();
		struct mxbpf_gpu_device *d = rec_add(&t, MXBPF_GPU_DEVICE, sizeof(*d), 0);
		struct mxbpf_gpu_limits *l;

		*d = (struct mxbpf_gpu_device){.h = d->h, .major = 9, .multiprocessors = 132, .clock_khz = 1980000};
		l = rec_add(&t, MXBPF_GPU_LIMITS, sizeof(*l), 0);
		l->memory_clock_khz = 3201000;
		l->memory_bus_bits = 6144;
		name(&t, MM, MXBPF_NAME_SPAN, "aten::mm", 8);
		name(&t, OUTER, MXBPF_NAME_SPAN, "aten::matmul", 12);
		name(&t, ARGS, MXBPF_NAME_ARGS, args, sizeof(args) - 1);
		call(&t, OP, MM, 200, 300)->args_id = ARGS;
		call(&t, OP, OUTER, 100, 1000)->args_id = ARGS;
		launch(&t, PID, 210, 1);
		kernel(&t, GEMM, 1, 2000, 4500);
		CHECK(!fold(&t));
		t.session.features |= GPU_BIT;
		FREED(memory_freed) char *text = written(&t, &view_modern);
		CHECK(strstr(text, "Operators against the GPU's peaks: 2.50 us in 1 row\n"));
		/* 2^31 operations in 2.5 us of 1,070 TFLOP/s; 6 MiB in 2.5 us of 4.92 TB/s */
		CHECK(strstr(text, "aten::mm") && strstr(text, " 858993 ") && strstr(text, " 80% ") &&
		      strstr(text, " 51% compute"));
		if (!strstr(text, " 51% compute"))
			printf("%s", text);
		free(text);
		text = written(&t, &view_json);
		CHECK(strstr(text, "\"roofline\": [") && strstr(text, "\"flops\": 2147483648") &&
		      strstr(text, "\"bytes\": 6291456") && strstr(text, "\"bound\": \"compute\"") &&
		      strstr(text, "\"type\": \"float16\""));
	}
}

int main(void)
{
	test_need();
	test_peaks();
	test_bounds();
	test_join();
	test_limits();
	test_tables();
	UNIT_MAIN_END;
}
