// SPDX-License-Identifier: Apache-2.0
/* Tests collectives: which parts belong together, who was late, bandwidths, clocks of hosts, and overlap on a device.
 */
#include "feature/collective/collective.h"

#include "feature/findings/findings.h"

#include <math.h>

#include "model/session.h"
#include "records.h"

#define BASE  5000000000ull
#define MS    1000000ull
#define RANKS 4u
#define PID   100u /* of rank 0; the others follow */

/* Ids of names. */
enum { REDUCE = 11, GATHER, SEND, RECV, NCCL_CALL, NCCL_KERNEL, GEMM, ARGS };

static void put_names(struct buf *b)
{
	put_name(b, REDUCE, MXBPF_NAME_SPAN, "gloo:all_reduce");
	put_name(b, SEND, MXBPF_NAME_SPAN, "gloo:send");
	put_name(b, RECV, MXBPF_NAME_SPAN, "gloo:recv");
	put_name(b, GATHER, MXBPF_NAME_SPAN, "gloo:all_gather");
	put_name(b, NCCL_CALL, MXBPF_NAME_SPAN, "nccl:_reduce_scatter_base");
	put_name(b, NCCL_KERNEL, MXBPF_NAME_SPAN,
		 "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)");
	put_name(b, GEMM, MXBPF_NAME_SPAN, "gemm");
	put_name(b, ARGS, MXBPF_NAME_ARGS, "[[1000,250]]\n[\"float\"]\n[[250,1]]");
}

static void *rec(struct buf *b, unsigned kind, size_t bytes, uint32_t pid, uint64_t at_ns)
{
	return put_rec(b, kind, bytes, pid, BASE + at_ns);
}

static struct mxbpf_span *call(struct buf *b, uint32_t pid, uint64_t name_id, uint64_t start_ns, uint64_t end_ns)
{
	struct mxbpf_span *s = rec(b, MXBPF_SPAN, sizeof(*s), pid, start_ns);

	s->dur_ns = end_ns - start_ns;
	s->name_id = name_id;
	s->args_id = ARGS;
	s->tid = pid;
	s->end_tid = 1000 + pid;
	s->cls = MXBPF_CLASS_OPERATOR;
	s->flags = MXBPF_SPAN_USER | MXBPF_SPAN_ASYNC;
	s->counters[0] = MXBPF_COUNTER_NONE;
	return s;
}

/* Returns the sum of an operation in groups of so many members, which must be one. */
static struct collective_sum sum_of(const struct mdl *m, unsigned op, uint32_t members)
{
	struct collective_sum one = {.calls = 0};
	struct buf rows = {0}, all = {0};
	unsigned found = 0;
	size_t i;

	CHECK(!collective_rows(m, &rows) && !collective_sums(&rows, &all));
	for (i = 0; i < buf_count(&all, one); i++)
		if (buf_at(&all, struct collective_sum, i)->all.op == op &&
		    buf_at(&all, struct collective_sum, i)->all.members == members) {
			one = *buf_at(&all, struct collective_sum, i);
			found++;
		}
	buf_fini(&rows);
	buf_fini(&all);
	CHECK(found <= 1);
	return one;
}

static bool is_near(double a, double b)
{
	return fabs(a - b) <= fabs(b) * 1e-6;
}

static void test_words(void)
{
	static const char args[] = "[[2,3],[],[4]]\n[\"float\",\"Scalar\",\"c10::Half\"]\n[]";
	static const char list[] = "[[[2,3]],[]]\n[\"TensorList\",\"\"]\n[]";
	uint8_t backend;

	CHECK(collective_op("gloo:all_reduce", 15, false, &backend) == MXBPF_COLLECTIVE_ALL_REDUCE &&
	      backend == MXBPF_BACKEND_GLOO);
	CHECK(collective_op("ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclWork*)", 50, true, &backend) ==
		      MXBPF_COLLECTIVE_ALL_GATHER &&
	      backend == MXBPF_BACKEND_NCCL);
	CHECK(collective_op("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", 57, true, &backend) ==
		      MXBPF_COLLECTIVE_OTHER &&
	      backend == MXBPF_BACKEND_NCCL);
	CHECK(collective_op("gloo:recv", 9, false, &backend) == MXBPF_COLLECTIVE_RECV &&
	      collective_op("nccl:send 0->1", 14, false, &backend) == MXBPF_COLLECTIVE_SEND_RECV);
	CHECK(!collective_op("my:all_reduce", 13, false, &backend) && !backend);
	CHECK(!collective_op("ncclDevKernel_AllReduce", 23, false, &backend) && !backend); /* a user's annotation */
	CHECK(collective_args_bytes(args, strlen(args)) == 32 &&
	      collective_args_bytes("", 0) == MXBPF_COLLECTIVE_UNSIZED);
	CHECK(collective_args_bytes(list, strlen(list)) == MXBPF_COLLECTIVE_UNSIZED);
	CHECK(is_near(collective_bus_factor(MXBPF_COLLECTIVE_ALL_REDUCE, 8), 1.75));
	CHECK(is_near(collective_bus_factor(MXBPF_COLLECTIVE_ALL_GATHER, 8), 0.875));
	CHECK(is_near(collective_bus_factor(MXBPF_COLLECTIVE_ALL_TO_ALL, 8), 0.875));
	CHECK(is_near(collective_bus_factor(MXBPF_COLLECTIVE_REDUCE_SCATTER, 8), 0.875));
	CHECK(is_near(collective_bus_factor(MXBPF_COLLECTIVE_BROADCAST, 8), 1));
	CHECK(is_near(collective_bus_factor(MXBPF_COLLECTIVE_SEND_RECV, 2), 1));
	CHECK(collective_bytes(MXBPF_COLLECTIVE_ALL_GATHER, 100, 4) == 400);
	CHECK(collective_bytes(MXBPF_COLLECTIVE_ALL_REDUCE, 100, 4) == 100);
}

/* Rank 2 begins 30 ms after the others, which begin 1 ms after one another. All end 4 ms later, 10 us apart. */
static void put_step(struct buf *b, unsigned ranks, unsigned step)
{
	const uint64_t at = step * 100 * MS;
	unsigned i;

	for (i = 0; i < ranks; i++)
		call(b, PID + i, REDUCE, at + (i == 2 ? 30 : i) * MS, at + 34 * MS + i * 10000);
}

static bool is_step(const struct mdl *m, uint64_t calls)
{
	const struct collective_sum s = sum_of(m, MXBPF_COLLECTIVE_ALL_REDUCE, RANKS);

	return s.calls == calls && s.all.matched == RANKS * calls && s.last_tgid == PID + 2 && s.last == calls &&
	       s.late_ns == calls * 29 * MS && s.wait_ns == (30 + 29 + 27) * MS / 4 && s.move_ns == 4 * MS + 30000 &&
	       s.all.bytes == 1000000 && is_near(s.algorithm, 1e6 / 4.03e-3) && is_near(s.bus, s.algorithm * 1.5);
}

static void test_late(void)
{
	struct mdl *m = mdl_new(), *again = mdl_new(), *copy = mdl_new();
	struct buf b = {0}, rows = {0}, ranks = {0};
	const struct mxbpf_agg_collective *r;
	unsigned step;
	size_t i;

	mdl_tell_processes(m);
	put_names(&b);
	for (step = 0; step < 10; step++)
		put_step(&b, RANKS, step);
	CHECK(!feed(m, &b) && is_step(m, 10));
	CHECK(!collective_rows(m, &rows) && !collective_ranks(&rows, &ranks) && buf_count(&ranks, *r) == RANKS);
	for (i = 0; i < buf_count(&ranks, *r); i++) {
		r = buf_at(&ranks, struct mxbpf_agg_collective, i);
		CHECK(r->wait_ns == (r->h.tgid == PID + 2 ? 0 : 10 * (30 - (r->h.tgid - PID)) * MS));
	}
	CHECK(!mdl_emit(m, &b) && !mdl_feed(again, b.data, b.len) && is_step(again, 10));
	CHECK(!mdl_copy_to(copy, m) && is_step(copy, 10));
	buf_fini(&rows);
	buf_fini(&ranks);
	buf_fini(&b);
	mdl_free(m);
	mdl_free(again);
	mdl_free(copy);
}

/*
 * Ranks 0 and 1 have a second group, which reduces as much while ranks 2 and 3 wait in the collective of all. In every
 * fourth step its ends are nearer to those of ranks 2 and 3 than these are to those of ranks 0 and 1.
 */
static void test_groups(void)
{
	struct collective_sum all;
	struct mdl *m = mdl_new();
	struct buf b = {0};
	unsigned step, i;

	mdl_tell_processes(m);
	put_names(&b);
	for (step = 0; step < 20; step++) {
		const uint64_t at = step * 20 * MS, half = at + (step % 4 ? 4 : 8) * MS;

		for (i = 0; i < 2; i++) {
			call(&b, PID + i, REDUCE, at + MS, half + i * 1000)->end_tid = 2000 + i;
			call(&b, PID + i, REDUCE, half + 100000, at + 10 * MS + i * 1000);
		}
		for (; i < RANKS; i++)
			call(&b, PID + i, REDUCE, at, at + 8500000 + i * 1000);
	}
	CHECK(!feed(m, &b));
	all = sum_of(m, MXBPF_COLLECTIVE_ALL_REDUCE, RANKS);
	CHECK(all.calls == 20 && all.move_ns == (5 * 1901000 + 15 * 5901000) / 20);
	CHECK(sum_of(m, MXBPF_COLLECTIVE_ALL_REDUCE, 2).calls == 20);
	buf_fini(&b);
	mdl_free(m);
}

/* Two pairs reduce as much at the very same time, and a source says which communicator each part is of. */
static void test_numbers(void)
{
	struct mdl *m = mdl_new();
	struct collective_sum first;
	struct mxbpf_collective *c;
	struct buf b = {0}, rows = {0}, sums = {0};
	unsigned step, i;

	mdl_tell_processes(m);
	for (step = 0; step < 10; step++)
		for (i = 0; i < RANKS; i++) {
			c = rec(&b, MXBPF_COLLECTIVE, sizeof(*c), PID + i, step * 10 * MS + i * 1000);
			c->dur_ns = MS - i * 1000;
			c->bytes = 4096;
			c->group = 7 + i / 2;
			c->seq = 100 + step;
			c->backend = MXBPF_BACKEND_NCCL;
			c->op = MXBPF_COLLECTIVE_ALL_REDUCE;
		}
	CHECK(!feed(m, &b) && !collective_rows(m, &rows) && !collective_sums(&rows, &sums));
	CHECK(buf_count(&sums, first) == 2);
	for (i = 0; i < buf_count(&sums, first); i++) {
		first = *buf_at(&sums, struct collective_sum, i);
		CHECK(first.calls == 10 && first.all.members == 2 && first.wait_ns == 500 && first.last == 10 &&
		      (first.last_tgid == PID + 1 || first.last_tgid == PID + 3));
	}
	buf_fini(&sums);
	buf_fini(&rows);
	buf_fini(&b);
	mdl_free(m);
}

/* Two ranks send to one another at the same time. */
static void test_apart(void)
{
	struct mdl *m = mdl_new();
	struct collective_sum *s;
	struct buf b = {0}, rows = {0}, sums = {0};
	unsigned step, i;

	mdl_tell_processes(m);
	put_names(&b);
	for (step = 0; step < 10; step++)
		for (i = 0; i < 2; i++) {
			call(&b, PID + i, SEND, step * 10 * MS, step * 10 * MS + MS);
			call(&b, PID + i, RECV, step * 10 * MS, step * 10 * MS + 2 * MS);
		}
	CHECK(!feed(m, &b) && !collective_rows(m, &rows) && !collective_sums(&rows, &sums));
	CHECK(buf_count(&sums, *s) == 4);
	for (i = 0; i < buf_count(&sums, *s); i++) {
		s = buf_at(&sums, struct collective_sum, i);
		CHECK(s->calls == 10 && !s->all.group && !s->all.matched && s->all.bytes == 1000000);
		CHECK(s->each_ns == (s->all.op == MXBPF_COLLECTIVE_SEND ? MS : 2 * MS));
	}
	buf_fini(&sums);
	buf_fini(&rows);
	buf_fini(&b);
	mdl_free(m);
}

/* Rank 3 is recorded from the third step on, and rank 0 until the seventh. */
static void test_partial(void)
{
	struct mdl *m = mdl_new();
	struct collective_sum s;
	struct buf b = {0};
	unsigned step, i;

	mdl_tell_processes(m);
	put_names(&b);
	for (step = 0; step < 10; step++)
		for (i = 0; i < RANKS; i++)
			if (i != 3 ? i != 0 || step < 7 : step > 2)
				call(&b, PID + i, REDUCE, step * 10 * MS, step * 10 * MS + MS);
	CHECK(!feed(m, &b));
	s = sum_of(m, MXBPF_COLLECTIVE_ALL_REDUCE, RANKS);
	CHECK(s.calls == 4 && s.all.matched == 4 * RANKS);
	CHECK(!sum_of(m, MXBPF_COLLECTIVE_ALL_REDUCE, 3).calls);
	buf_fini(&b);
	mdl_free(m);
}

/* Ranks 2 and 3 are on another host, whose clock is 70 ms ahead and gains 20 us each second. */
static void test_hosts(void)
{
	struct mdl *m = mdl_new();
	struct collective_sum s;
	struct buf b = {0};
	uint64_t at = 0, by;
	unsigned step, i, pid, noise = 1;

	mdl_tell_processes(m);
	put_names(&b);
	for (step = 0; step < 2000; step++) {
		noise = noise * 1103515245 + 12345;
		at += 20 * MS + (noise >> 8) % 1000000;
		by = 70 * MS + at / 50000;
		for (i = 0; i < RANKS; i++) {
			pid = i < 2 ? PID + i : 1 << MDL_PID_BITS | (PID + i);
			call(&b, pid, REDUCE, at + (i == 2 ? 6 * MS : 0) + (i < 2 ? 0 : by),
			     at + 8 * MS + (i < 2 ? 0 : by));
		}
	}
	CHECK(!feed(m, &b));
	s = sum_of(m, MXBPF_COLLECTIVE_ALL_REDUCE, RANKS);
	CHECK(s.calls == 2000 && s.all.matched == RANKS * 2000 && s.last == 2000);
	CHECK(s.last_tgid == (1 << MDL_PID_BITS | (PID + 2)) && s.wait_ns / 10000 >= 440 && s.wait_ns / 10000 <= 460);
	buf_fini(&b);
	mdl_free(m);
}

static struct mxbpf_activity *kernel(struct buf *b, uint32_t pid, uint64_t name_id, uint64_t start_ns, uint64_t end_ns)
{
	struct mxbpf_activity *a = rec(b, MXBPF_ACTIVITY, sizeof(*a), pid, start_ns);

	a->dur_ns = end_ns - start_ns;
	a->name_id = name_id;
	a->cls = MXBPF_ACTIVITY_KERNEL;
	a->track = (struct mxbpf_track){.context = 1, .stream = name_id == GEMM ? 7 : 20};
	return a;
}

/* Each rank launches a kernel of NCCL in its call, and a matrix product that overlaps it in part. */
static void put_gpu(struct buf *b, unsigned step)
{
	const uint64_t at = step * 100 * MS;
	struct mxbpf_activity *a;
	struct mxbpf_launch *l;
	unsigned i;

	for (i = 0; i < RANKS; i++) {
		l = rec(b, MXBPF_LAUNCH, sizeof(*l), PID + i, at + 2 * MS);
		l->edge_id = step + 1;
		l->tid = PID + i;
		l->domain = MXBPF_DOMAIN_CUPTI;
		a = kernel(b, PID + i, NCCL_KERNEL, at + (i == 1 ? 20 : 10) * MS, at + 25 * MS);
		a->domain = MXBPF_DOMAIN_CUPTI;
		a->edge_id = step + 1;
		kernel(b, PID + i, GEMM, at, at + 12 * MS);
		kernel(b, PID + i, GEMM, at + 24 * MS, at + 30 * MS);
		call(b, PID + i, NCCL_CALL, at + MS, at + 3 * MS)->flags = MXBPF_SPAN_USER;
	}
}

static bool is_gpu(const struct mdl *m, uint64_t steps)
{
	const struct collective_sum s = sum_of(m, MXBPF_COLLECTIVE_REDUCE_SCATTER, RANKS);
	const struct mxbpf_agg_overlap *o;
	struct buf all = {0};
	size_t i;
	bool is = s.calls == steps && s.last_tgid == PID + 1 && s.wait_ns == 30 * MS / 4 && s.move_ns == 5 * MS &&
		  s.all.bytes == 1000000 && is_near(s.bus, 1e6 / 5e-3 * 0.75);

	CHECK(!collective_overlaps(m, &all) && buf_count(&all, *o) == RANKS);
	for (i = 0; i < buf_count(&all, *o); i++) {
		o = buf_at(&all, struct mxbpf_agg_overlap, i);
		is &= o->ns == steps * (o->h.tgid == PID + 1 ? 5 : 15) * MS && o->compute_ns == steps * 18 * MS &&
		      o->overlapped_ns == steps * (o->h.tgid == PID + 1 ? 1 : 3) * MS;
	}
	buf_fini(&all);
	return is;
}

static void test_gpu(void)
{
	struct mdl *m = mdl_new(), *again = mdl_new();
	struct buf b = {0};
	unsigned step;

	mdl_tell_processes(m);
	put_names(&b);
	for (step = 0; step < 3000; step++) {
		put_gpu(&b, step);
		if (step % 100 == 99)
			CHECK(!feed(m, &b));
	}
	CHECK(is_gpu(m, 3000));
	kernel(&b, PID, GEMM, 0, 12 * MS); /* five minutes late: its time counts already */
	CHECK(!feed(m, &b) && is_gpu(m, 3000));
	CHECK(!mdl_emit(m, &b) && !mdl_feed(again, b.data, b.len) && is_gpu(again, 3000));
	buf_fini(&b);
	mdl_free(m);
	mdl_free(again);
}

/* More collectives than are kept have the same sums. */
static void test_long(void)
{
	struct mdl *m = mdl_new(), *again = mdl_new();
	struct buf b = {0};
	unsigned step;

	mdl_tell_processes(m);
	put_names(&b);
	for (step = 0; step < 50000; step++) {
		put_step(&b, RANKS, step);
		if (step % 1000 == 999)
			CHECK(!feed(m, &b));
	}
	CHECK(is_step(m, 50000));
	CHECK(!mdl_emit(m, &b) && b.len < 70000 * sizeof(struct mxbpf_collective));
	CHECK(!mdl_feed(again, b.data, b.len) && is_step(again, 50000));
	buf_fini(&b);
	mdl_free(m);
	mdl_free(again);
}

/* ---- findings */

/* Returns whether a finding speaks, and its sentence has a text. */
static bool says(struct mdl *m, uint64_t duration_ns, const char *key, const char *text)
{
	struct mdl_session session = {.duration_ns = duration_ns};
	struct findings found;
	bool is = false;
	unsigned i;

	CHECK(!findings_make(m, &session, &found));
	for (i = 0; i < found.n; i++)
		is |= !strcmp(found.list[i].rule->key, key) &&
		      memmem(found.list[i].text.data, found.list[i].text.len, text, strlen(text));
	findings_fini(&found);
	return is;
}

/* Pairs of ranks reduce 1 MB in 5 ms, those of the last pair in `slow_ns`. Nobody is late. */
static void put_pairs(struct buf *b, uint64_t slow_ns)
{
	unsigned step, i;

	for (step = 0; step < 10; step++)
		for (i = 0; i < 6; i++)
			call(b, PID + i, REDUCE, (step * 6 + i / 2) * 20 * MS + i % 2 * 100,
			     (step * 6 + i / 2) * 20 * MS + 100 + (i / 2 == 2 ? slow_ns : 5 * MS));
}

static void test_findings(void)
{
	struct mdl *late = mdl_new(), *even = mdl_new(), *near = mdl_new(), *slow = mdl_new(), *gpu = mdl_new();
	struct buf b = {0};
	unsigned step;

	mdl_tell_processes(late);
	mdl_tell_processes(even);
	mdl_tell_processes(near);
	mdl_tell_processes(slow);
	mdl_tell_processes(gpu);
	put_names(&b);
	for (step = 0; step < 10; step++)
		put_step(&b, RANKS, step);
	CHECK(!feed(late, &b));
	CHECK(says(late, 1000 * MS, "late_rank",
		   "wait for process 102 in 31% of the time: it is last in 10 of 10 collectives, late by 29.0 ms"));
	CHECK(!says(late, 1000 * MS, "slow_link", ""));
	put_names(&b);
	put_pairs(&b, 5 * MS);
	CHECK(!feed(even, &b) && !says(even, 1200 * MS, "slow_link", "") && !says(even, 1200 * MS, "late_rank", ""));
	put_names(&b);
	put_pairs(&b, 15 * MS / 2);
	CHECK(!feed(near, &b) && !says(near, 1200 * MS, "slow_link", ""));
	put_names(&b);
	put_pairs(&b, 19 * MS);
	CHECK(!feed(slow, &b));
	CHECK(says(slow, 1200 * MS, "slow_link",
		   "all_reduce of 977 KiB has a bus bandwidth of 50.2 MiB/s among 2 processes, and 191 MiB/s"));
	put_names(&b);
	for (step = 0; step < 10; step++)
		put_gpu(&b, step);
	CHECK(!feed(gpu, &b));
	CHECK(!says(gpu, 4000 * MS, "exposed_communication", "") &&
	      says(gpu, 500 * MS, "exposed_communication", "only communicate in 20% of the time"));
	buf_fini(&b);
	mdl_free(late);
	mdl_free(even);
	mdl_free(near);
	mdl_free(slow);
	mdl_free(gpu);
}

int main(void)
{
	TEST("names, sizes and factors of bandwidths are those of the backends and of nccl-tests")
	test_words();
	TEST("the late rank is named, and waits and bandwidths are exact, also in recordings and copies")
	test_late();
	TEST("a group of some ranks that exchanges as much at nearly the same time is another one")
	test_groups();
	TEST("communicators and numbers that a source tells decide, whatever the times")
	test_numbers();
	TEST("sends and receives count in rows of their process, and are not taken for parts of one another")
	test_apart();
	TEST("collectives at both ends of the recording, whose parts were not all seen, count as single parts")
	test_partial();
	TEST("clocks of hosts that differ and drift are aligned by the collectives")
	test_hosts();
	TEST("kernels of NCCL have the bytes of their calls, and their overlap with other kernels is exact")
	test_gpu();
	TEST("sums do not depend on how many collectives are kept")
	test_long();
	TEST("the findings name the late rank and the slow group, and nobody where there is none")
	test_findings();
	UNIT_MAIN_END;
}
