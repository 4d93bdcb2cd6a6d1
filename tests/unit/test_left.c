/* SPDX-License-Identifier: Apache-2.0 */
/* Tests calls that had been left when the window ended, and calls that were still running. */
#include "unit.h"

#include "attach/priv.h"

#define BEGAN 1000
#define UNTIL 9000

static struct mxbpf_span spans[4];
static unsigned nspans;

static void take(void *ctx, const struct mxbpf_span *s)
{
	spans[nspans++ % 4] = *s;
}

/* Returns true for frames below the stack pointer in ctx. */
static bool is_below(void *ctx, const struct mxbpf_frame *f)
{
	return f->sp < *(const uint64_t *)ctx;
}

/* Opens a call at sp 200 and in it another one at sp 100, and collects the calls left at `sp`. */
static unsigned left_at(struct mxbpf_thread *threads, uint64_t sp, uint8_t end, uint64_t raised_ns)
{
	const struct att a = {.threads = threads, .nslots = MXBPF_THREADS_MAX};
	struct mxbpf_thread *t = &threads[1];

	t->slot = t->slots[0] = 1;
	t->depth = 2;
	t->raised_ns = raised_ns;
	t->frames[0] = (struct mxbpf_frame){.start_ns = BEGAN, .sp = 200, .end = end};
	t->frames[1] = (struct mxbpf_frame){.start_ns = BEGAN + 100, .sp = 100, .end = end, .child_ns = 50};
	nspans = 0;
	return att_left_spans(&a, UNTIL, is_below, &sp, take, NULL);
}

int main(void)
{
	struct mxbpf_thread *threads = calloc(MXBPF_THREADS_MAX, sizeof(*threads));

	TEST("a call that is still running gives no span")
	CHECK(!left_at(threads, 50, MXBPF_END_CUT, 0) && !nspans);
	TEST("a call left by an exception lasts until the exception was thrown")
	{
		CHECK(left_at(threads, 150, MXBPF_END_CUT, BEGAN + 1000) == 1 && nspans == 1);
		CHECK(spans[0].dur_ns == 900 && spans[0].self_ns == 850 && spans[0].flags == MXBPF_SPAN_UNWOUND);
	}
	TEST("a call with a missed end lasts until this was noticed, and its self time excludes nested calls")
	{
		CHECK(left_at(threads, 250, MXBPF_END_NEXT, BEGAN + 1000) == 2 && nspans == 2);
		CHECK(spans[0].dur_ns == UNTIL - BEGAN - 100 && spans[0].self_ns == spans[0].dur_ns - 50);
		CHECK(spans[1].dur_ns == UNTIL - BEGAN && spans[1].self_ns == 100);
	}
	free(threads);
	return unit_end();
}
