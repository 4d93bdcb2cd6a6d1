// SPDX-License-Identifier: Apache-2.0
/* Records of CUPTI become spans, launches and activities. */

#include "base/clock.h"
#include "mxbpf_kernels.h"
#include "mxbpf_table.h"
#include "records/kinds.h"
#include "source/gpu_convert.h"
#include "unit.h"

#define AHEAD 1000000000ull /* CUPTI's clock minus CLOCK_MONOTONIC, in ns */

static const char *const names[] = {"",
				    "cudaLaunchKernel",
				    "cuLaunchKernel",
				    "_Z4convPfS_i",
				    "cudaDeviceSynchronize",
				    "cudaStreamQuery",
				    "cuStreamQuery"};
enum { LAUNCH = 1, DRIVER_LAUNCH, CONV, SYNC, QUERY, DRIVER_QUERY };

static void name(void *ctx, uint32_t number, char to[MXBPF_GPU_NAME_BYTES])
{
	strcpy(to, names[number]);
}

static uint32_t thread(void *ctx, uint32_t its)
{
	return its == 7 ? 1007 : 0;
}

static struct gpu_convert begin(void)
{
	return (struct gpu_convert){.from = {name, thread, NULL}, .tgid = 1000};
}

static void clock_at(struct gpu_convert *c, uint64_t gpu_ns, uint64_t ns)
{
	const struct mxbpf_gpu_rec r = {.kind = MXBPF_GPU_CLOCK,
					.start_ns = gpu_ns,
					.clock = {(uint32_t)((ns - 10) >> 32), (uint32_t)(ns - 10),
						  (uint32_t)((ns + 10) >> 32), (uint32_t)(ns + 10)}};

	gpu_take(c, &r, 1);
}

static void call(struct gpu_convert *c, unsigned kind, uint32_t correlation, uint32_t what, uint64_t start_ns)
{
	const struct mxbpf_gpu_rec r = {.kind = (uint8_t)kind,
					.start_ns = start_ns + AHEAD,
					.end_ns = start_ns + AHEAD + 10,
					.name = what,
					.correlation = correlation,
					.call = {.tid = 7}};

	gpu_take(c, &r, 1);
}

static void kernel(struct gpu_convert *c, uint32_t correlation, uint64_t start_ns)
{
	const struct mxbpf_gpu_rec r = {.kind = MXBPF_GPU_KERNEL,
					.start_ns = start_ns + AHEAD,
					.end_ns = start_ns + AHEAD + 20,
					.name = CONV,
					.correlation = correlation,
					.device = 1,
					.context = 4,
					.stream = 13,
					.kernel = {.grid = {2, 3, 4}, .block = {32, 1, 1}, .registers = 40}};

	gpu_take(c, &r, 1);
}

static void wait_for(struct gpu_convert *c, unsigned type, uint32_t correlation, uint64_t start_ns)
{
	const struct mxbpf_gpu_rec r = {.kind = MXBPF_GPU_SYNC,
					.start_ns = start_ns + AHEAD,
					.end_ns = start_ns + AHEAD + 5,
					.correlation = correlation,
					.sync = {.type = type}};

	gpu_take(c, &r, 1);
}

/* Returns the n-th record of a kind, from 0, or NULL. */
static const void *nth(const struct gpu_convert *c, unsigned kind, unsigned n)
{
	const struct mxbpf_rec *r;
	size_t pos = 0;

	while ((r = kind_next(c->recs.data, c->recs.len, &pos)))
		if (r->kind == kind && !n--)
			return r;
	return NULL;
}

static bool balanced(const struct gpu_convert *c)
{
	return c->taken ==
	       c->activities + c->calls + c->nested + c->overheads + c->outside + c->unmeasured + c->queries;
}

static void test_times(void)
{
	FREED(gpu_convert_fini) struct gpu_convert c = begin();

	TEST("times are converted piecewise between the readings of both clocks")
	{
		clock_at(&c, AHEAD + 1000, 1000);
		clock_at(&c, AHEAD + 101000, 101010); /* 100 ppm */
		clock_at(&c, AHEAD + 201000, 201010);
		CHECK(gpu_time(&c, AHEAD + 500) == 500);
		CHECK(gpu_time(&c, AHEAD + 51000) == 51005);
		CHECK(gpu_time(&c, AHEAD + 151000) == 151010);
		CHECK(gpu_time(&c, AHEAD + 301000) == 301010);
	}
	TEST("if CUPTI's clock jumps, the nearer reading counts")
	{
		clock_at(&c, 2 * AHEAD + 301000, 301010);
		CHECK(gpu_time(&c, AHEAD + 202000) == 202010);
		CHECK(gpu_time(&c, 2 * AHEAD + 300000) == 300010);
	}
	TEST("if CUPTI's clock counts in other units, times are right as well")
	{
		FREED(gpu_convert_fini) struct gpu_convert ticks = begin();

		clock_at(&ticks, 5000000, 1000);
		clock_at(&ticks, 5200000, 101000);
		clock_at(&ticks, 5400010, 201000);
		CHECK(gpu_time(&ticks, 5100000) == 51000);
		CHECK(gpu_time(&ticks, 5600000) / 100 == 300999 / 100);
	}
	TEST("if CUPTI's clock is set back, waiting records are converted with the readings before")
	{
		kernel(&c, 1, AHEAD + 301500);
		clock_at(&c, 401000, 401010);
		CHECK(nth(&c, MXBPF_ACTIVITY, 0) &&
		      ((const struct mxbpf_rec *)nth(&c, MXBPF_ACTIVITY, 0))->ts_ns == 301510);
		CHECK(gpu_time(&c, 401500) == 401510);
	}
}

static void test_calls(void)
{
	FREED(gpu_convert_fini) struct gpu_convert c = begin();
	const struct mxbpf_launch *l;
	const struct mxbpf_activity *a;
	const struct mxbpf_span *s;

	TEST("a call of the runtime is a span and a launch, and the call of the driver in it is neither")
	{
		clock_at(&c, AHEAD, 0);
		call(&c, MXBPF_GPU_DRIVER, 5, DRIVER_LAUNCH, 1001);
		call(&c, MXBPF_GPU_CALL, 5, LAUNCH, 1000);
		kernel(&c, 5, 2000);
		gpu_convert(&c, true);
		s = nth(&c, MXBPF_SPAN, 0);
		l = nth(&c, MXBPF_LAUNCH, 0);
		a = nth(&c, MXBPF_ACTIVITY, 0);
		CHECK(s && s->cls == MXBPF_CLASS_CUDA && s->tid == 1007 && s->h.ts_ns == 1000 && s->dur_ns == 10);
		CHECK(l && l->edge_id == 5 && l->tid == 1007 && l->call_id == s->name_id && l->dur_ns == 10);
		CHECK(a && a->edge_id == 5 && a->h.ts_ns == 2000 && a->dur_ns == 20 && a->grid[2] == 4 &&
		      a->registers == 40 && a->track.stream == 13);
		CHECK(!nth(&c, MXBPF_SPAN, 1) && !nth(&c, MXBPF_LAUNCH, 1) && c.nested == 1 && balanced(&c));
	}
	TEST("a call of the driver without one of the runtime launches itself")
	{
		call(&c, MXBPF_GPU_DRIVER, 6, DRIVER_LAUNCH, 3000);
		gpu_convert(&c, true);
		CHECK(nth(&c, MXBPF_LAUNCH, 1) && nth(&c, MXBPF_SPAN, 1) && balanced(&c));
	}
	TEST("a call that starts no work is a span and no launch")
	{
		call(&c, MXBPF_GPU_CALL, 7, SYNC, 4000);
		gpu_convert(&c, true);
		CHECK(nth(&c, MXBPF_SPAN, 2) && !nth(&c, MXBPF_LAUNCH, 2));
	}
	TEST("a name is demangled and comes once")
	{
		size_t pos = 0, n = 0;
		const struct mxbpf_rec *r;

		kernel(&c, 8, 5000);
		gpu_convert(&c, true);
		while ((r = kind_next(c.texts.data, c.texts.len, &pos)))
			n += !memcmp((const struct mxbpf_name *)r + 1, "conv(float*, float*, int)", 25);
		CHECK(n == 1);
	}
}

static void test_waiting(void)
{
	FREED(gpu_convert_fini) struct gpu_convert c = begin();

	TEST("a record waits for a reading of the clock behind its end, a call of the driver for one more")
	{
		clock_at(&c, AHEAD, 0);
		call(&c, MXBPF_GPU_DRIVER, 5, DRIVER_LAUNCH, 1000);
		kernel(&c, 5, 1100);
		gpu_convert(&c, false);
		CHECK(!c.recs.len);
		clock_at(&c, AHEAD + 2000, 2000);
		gpu_convert(&c, false);
		CHECK(nth(&c, MXBPF_ACTIVITY, 0) && !nth(&c, MXBPF_SPAN, 0));
		clock_at(&c, AHEAD + 3000, 3000);
		gpu_convert(&c, false);
		CHECK(nth(&c, MXBPF_SPAN, 0) && balanced(&c));
	}
}

static void test_queries(void)
{
	FREED(gpu_convert_fini) struct gpu_convert c = begin();

	clock_at(&c, AHEAD, 0);
	TEST("a wait whose call queries is left out and counted, and the driver's call in it is no call of its own")
	{
		wait_for(&c, MXBPF_SYNC_STREAM, 5, 1000);
		call(&c, MXBPF_GPU_DRIVER, 5, DRIVER_QUERY, 999);
		call(&c, MXBPF_GPU_CALL, 5, QUERY, 998);
		gpu_convert(&c, true);
		CHECK(c.queries == 1 && c.calls == 1 && c.nested == 1 && !c.activities && balanced(&c));
	}
	TEST("without all calls, a wait without its call is one")
	{
		wait_for(&c, MXBPF_SYNC_EVENT, 6, 2000);
		gpu_convert(&c, true);
		CHECK(c.queries == 1 && c.activities == 1 && balanced(&c));
	}
	TEST("with all calls, a wait without its call waits for it, and is a query if none comes")
	{
		c.has_calls = true;
		wait_for(&c, MXBPF_SYNC_STREAM, 7, 3000);
		wait_for(&c, MXBPF_SYNC_EVENT, 8, 3000);
		wait_for(&c, MXBPF_SYNC_CONTEXT, 9, 3000);
		clock_at(&c, AHEAD + 4000, 4000);
		gpu_convert(&c, false);
		CHECK(c.queries == 1 && c.activities == 2);
		call(&c, MXBPF_GPU_CALL, 7, SYNC, 2999);
		gpu_convert(&c, false);
		CHECK(c.queries == 1 && c.activities == 3);
		clock_at(&c, AHEAD + 3000000000, 3000000000);
		gpu_convert(&c, false);
		CHECK(c.queries == 2 && c.activities == 3 && balanced(&c));
	}
}

static void test_left_out(void)
{
	FREED(gpu_convert_fini) struct gpu_convert c = begin();
	struct mxbpf_gpu_rec r = {.kind = MXBPF_GPU_KERNEL, .name = CONV, .correlation = 3};

	clock_at(&c, AHEAD, 0);
	TEST("a record that CUPTI did not measure is counted and left out")
	{
		gpu_take(&c, &r, 1);
		gpu_convert(&c, true);
		CHECK(!c.recs.len && c.unmeasured == 1 && balanced(&c));
	}
	TEST("a kernel that is more than 60 s away from its launch is counted as not measured, also one in the past")
	{
		FREED(gpu_convert_fini) struct gpu_convert far = begin();
		const uint64_t now = clock_ns(CLOCK_MONOTONIC), second = 1000000000;

		clock_at(&far, now + AHEAD, now);
		call(&far, MXBPF_GPU_CALL, 5, LAUNCH, now);
		kernel(&far, 5, now - 61 * second);
		call(&far, MXBPF_GPU_CALL, 6, LAUNCH, now);
		kernel(&far, 6, now - 59 * second);
		gpu_convert(&far, true);
		CHECK(far.unmeasured == 1 && far.activities == 1 && balanced(&far));
	}
	TEST("what began before the window is left out, and what was launched then, too")
	{
		c.since_ns = 10000;
		call(&c, MXBPF_GPU_CALL, 9, LAUNCH, 9990);
		kernel(&c, 9, 10010);
		kernel(&c, 10, 9000);
		call(&c, MXBPF_GPU_CALL, 11, LAUNCH, 10020);
		kernel(&c, 11, 10030);
		gpu_convert(&c, true);
		CHECK(c.outside == 3 && c.activities == 1 && c.calls == 1 && balanced(&c));
	}
	TEST("a kernel that begins before its launch is counted")
	{
		call(&c, MXBPF_GPU_CALL, 12, LAUNCH, 20000);
		kernel(&c, 12, 19990);
		gpu_convert(&c, true);
		CHECK(c.early == 1);
	}
	TEST("a launch of a thread that the process does not have joins no operator, and is counted")
	{
		r = (struct mxbpf_gpu_rec){.kind = MXBPF_GPU_CALL,
					   .start_ns = AHEAD + 30000,
					   .end_ns = AHEAD + 30010,
					   .name = LAUNCH,
					   .correlation = 13,
					   .call = {.tid = 99}};
		c.recs.len = 0;
		gpu_take(&c, &r, 1);
		gpu_convert(&c, true);
		CHECK(c.threadless == 1 && nth(&c, MXBPF_SPAN, 0) && !nth(&c, MXBPF_LAUNCH, 0));
	}
	TEST("if thread numbers mean nothing, no launch joins an operator")
	{
		c.recs.len = 0;
		c.foreign_tids = true;
		call(&c, MXBPF_GPU_CALL, 14, LAUNCH, 40000);
		gpu_convert(&c, true);
		CHECK(c.threadless == 2 && !nth(&c, MXBPF_LAUNCH, 0));
	}
}

static void metric(struct gpu_convert *c, uint32_t number, double value, uint64_t start_ns)
{
	struct mxbpf_gpu_rec r = {.kind = MXBPF_GPU_METRIC,
				  .start_ns = start_ns,
				  .end_ns = start_ns + 500,
				  .name = CONV,
				  .correlation = 3,
				  .metric = {.number = number, .first = number == 2, .passes = 8, .tid = 7}};

	memcpy(&r.bytes, &value, sizeof(value));
	gpu_take(c, &r, 1);
}

static void test_metrics(void)
{
	FREED(gpu_convert_fini) struct gpu_convert c = begin();
	const struct mxbpf_kernel_metric *k;

	c.since_ns = 1000;
	TEST("a counter has the value of CUPTI in thousandths, and its time needs no reading of the clock")
	{
		metric(&c, 2, 70.7859, 2000);
		k = nth(&c, MXBPF_KERNEL_METRIC, 0);
		CHECK(k && k->milli == 70786 && k->number == 2 && k->first == 1 && k->passes == 8);
		CHECK(k && k->held_ns == 500 && k->tid == 1007 && k->edge_id == 3 && k->h.ts_ns == 2000 && k->name_id);
		CHECK(c.taken == 0); /* it is not one of CUPTI's records */
	}
	TEST("values and numbers that no counter has are left out, and so is what was measured before the window")
	{
		metric(&c, 3, 0.0 / 0.0, 2000);
		metric(&c, 3, 1.0 / 0.0, 2000);
		metric(&c, 3, -1, 2000);
		metric(&c, 3, 1e300, 2000);
		metric(&c, MXBPF_KERNEL_COUNTERS, 1, 2000);
		metric(&c, 3, 1, 999);
		CHECK(!nth(&c, MXBPF_KERNEL_METRIC, 1));
		metric(&c, 3, 0, 1000);
		CHECK(nth(&c, MXBPF_KERNEL_METRIC, 1));
	}
}

int main(void)
{
	test_times();
	test_calls();
	test_waiting();
	test_queries();
	test_left_out();
	test_metrics();
	return unit_end();
}
