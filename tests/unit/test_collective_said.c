// SPDX-License-Identifier: Apache-2.0
/* Tests what NCCL's ranges of NVTX tell of its kernels, by records made by hand. */
#include "feature/collective/collective.h"

#include "mxbpf_range.h"
#include "records.h"

#define BASE  5000000000ull
#define MS    1000000ull
#define PID   100u /* of rank 0; the others follow */
#define PAIRS 0xfedcba9876543210ull

/* Ids of names. */
enum {
	REDUCE = 11,
	GATHER,
	SCATTER,
	SEND,
	RECV,
	START,
	END,
	INIT,
	KERNEL_REDUCE,
	KERNEL_SCATTER,
	KERNEL_SEND,
	CALL_REDUCE,
	CALL_ALL,
	ARGS,
	WITH_COMM,
	WITHOUT,
	OF_INIT,
};

static void put_names(struct buf *b)
{
	put_name(b, REDUCE, MXBPF_NAME_SPAN, "NCCL: ncclAllReduce");
	put_name(b, GATHER, MXBPF_NAME_SPAN, "NCCL: ncclAllGather");
	put_name(b, SCATTER, MXBPF_NAME_SPAN, "NCCL: ncclReduceScatter");
	put_name(b, SEND, MXBPF_NAME_SPAN, "NCCL: ncclSend");
	put_name(b, RECV, MXBPF_NAME_SPAN, "NCCL: ncclRecv");
	put_name(b, START, MXBPF_NAME_SPAN, "NCCL: ncclGroupStart");
	put_name(b, END, MXBPF_NAME_SPAN, "NCCL: ncclGroupEnd");
	put_name(b, INIT, MXBPF_NAME_SPAN, "NCCL: ncclCommInitRankConfig");
	put_name(b, KERNEL_REDUCE, MXBPF_NAME_SPAN, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)");
	put_name(b, KERNEL_SCATTER, MXBPF_NAME_SPAN, "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(args)");
	put_name(b, KERNEL_SEND, MXBPF_NAME_SPAN, "ncclDevKernel_SendRecv(args)");
	put_name(b, CALL_REDUCE, MXBPF_NAME_SPAN, "nccl:all_reduce");
	put_name(b, CALL_ALL, MXBPF_NAME_SPAN, "nccl:all_to_all");
	put_name(b, ARGS, MXBPF_NAME_ARGS, "[[1000]]\n[\"float\"]\n[[1]]");
	put_name(b, WITH_COMM, MXBPF_NAME_SPAN,
		 "u NCCL communicator ID\nu Message size [bytes]\ne Reduction operation\t0=Sum\t2=Max");
	put_name(b, WITHOUT, MXBPF_NAME_SPAN, "u Message size [bytes]");
	put_name(b, OF_INIT, MXBPF_NAME_SPAN, "u NCCL communicator ID\ni No. of ranks\ni Rank");
}

static void *rec(struct buf *b, unsigned kind, size_t bytes, uint32_t pid, uint64_t at_ns)
{
	return put_rec(b, kind, bytes, pid, BASE + at_ns);
}

static struct mxbpf_span *span(struct buf *b, uint32_t pid, uint64_t name_id, uint64_t start_ns, uint64_t end_ns)
{
	struct mxbpf_span *s = rec(b, MXBPF_SPAN, sizeof(*s), pid, start_ns);

	s->dur_ns = end_ns - start_ns;
	s->name_id = name_id;
	s->tid = s->end_tid = pid;
	s->cls = MXBPF_CLASS_EVENT;
	s->flags = MXBPF_SPAN_USER;
	s->counters[0] = MXBPF_COUNTER_NONE;
	return s;
}

/* A range of NCCL of 1 us. It carries numbers if it has a schema. */
static void said(struct buf *b, uint32_t pid, uint64_t name_id, uint64_t at_ns, uint64_t schema, uint64_t first,
		 uint64_t second, uint64_t third)
{
	struct mxbpf_range *r = rec(b, MXBPF_RANGE, sizeof(*r), pid, at_ns);

	r->name_id = name_id;
	r->tid = pid;
	r->cls = MXBPF_CLASS_EVENT;
	r->schema_id = schema;
	r->data = (struct mxbpf_range_data){.values = {first, second, third},
					    .nvalues = !schema		   ? 0
						       : schema == WITHOUT ? 1
									   : 3};
	span(b, pid, name_id, at_ns, at_ns + 1000);
}

/* A kernel. launch_ns: when it was launched; 0: in a graph. */
static void kernel(struct buf *b, uint32_t pid, uint64_t name_id, uint64_t launch_ns, uint64_t start_ns,
		   uint64_t end_ns)
{
	static uint64_t edges;
	struct mxbpf_activity *a = rec(b, MXBPF_ACTIVITY, sizeof(*a), pid, start_ns);
	struct mxbpf_launch *l;

	a->dur_ns = end_ns - start_ns;
	a->name_id = name_id;
	a->cls = MXBPF_ACTIVITY_KERNEL;
	a->track = (struct mxbpf_track){.context = 1, .stream = 20};
	if (!launch_ns)
		return;
	a->domain = MXBPF_DOMAIN_CUPTI;
	a->edge_id = ++edges;
	l = rec(b, MXBPF_LAUNCH, sizeof(*l), pid, launch_ns);
	l->edge_id = edges;
	l->tid = pid;
	l->domain = MXBPF_DOMAIN_CUPTI;
}

/* Returns the sums of an operation in the order of their bytes, and then of their groups; *n: their number. */
static struct collective_sum *sums_of(const struct mdl *m, struct buf *all, size_t *n)
{
	struct buf rows = {0};

	all->len = 0;
	CHECK(!collective_rows(m, &rows) && !collective_sums(&rows, all));
	buf_fini(&rows);
	*n = buf_count(all, struct collective_sum);
	return (struct collective_sum *)all->data;
}

static struct mdl *model(struct buf *b)
{
	struct mdl *m = mdl_new();

	mdl_tell_processes(m);
	put_names(b);
	return m;
}

/* Two pairs reduce as much at the very same time, on a stream in which a graph reduces as well. */
static bool is_paired(const struct mdl *m)
{
	struct buf all = {0};
	size_t n, i;
	const struct collective_sum *s = sums_of(m, &all, &n);
	bool is = n == 4;

	for (i = 0; i < n; i++) {
		const struct mxbpf_agg_collective *a = &s[i].all;
		const bool graph = a->bytes == MXBPF_COLLECTIVE_UNSIZED;

		is &= s[i].calls == 10 && a->members == 2 && a->matched == 20 && a->comm / 2 == PAIRS / 2;
		is &= graph ? !a->source && !a->reduction
			    : a->bytes == 4096 && a->source == MXBPF_COLLECTIVE_FROM_NVTX && a->reduction == 3 &&
				      a->ranks == 2;
		is &= i % 2 == (a->comm != (s[i - i % 2].all.comm));
	}
	buf_fini(&all);
	return is;
}

static void test_pairs(void)
{
	struct buf b = {0};
	struct mdl *m = model(&b), *again = mdl_new(), *copy = mdl_new();
	unsigned step, i;

	for (i = 0; i < 4; i++)
		said(&b, PID + i, INIT, 0, OF_INIT, PAIRS + i / 2, 2, i % 2);
	for (step = 1; step <= 10; step++)
		for (i = 0; i < 4; i++) {
			const uint64_t at = step * 10 * MS;

			said(&b, PID + i, REDUCE, at, WITH_COMM, PAIRS + i / 2, 4096, 2);
			kernel(&b, PID + i, KERNEL_REDUCE, at + 500, at + i * 1000, at + MS);
			kernel(&b, PID + i, KERNEL_REDUCE, 0, at + 2 * MS + i * 1000, at + 3 * MS);
		}
	CHECK(!feed(m, &b) && is_paired(m));
	CHECK(!mdl_copy_to(copy, m) && is_paired(copy));
	CHECK(!mdl_emit(m, &b) && !mdl_feed(again, b.data, b.len) && is_paired(again));
	buf_fini(&b);
	mdl_free(m);
	mdl_free(again);
	mdl_free(copy);
}

/* NCCL before 2.25 says no communicator. Two ranks reduce 1000 bytes for each. */
static void test_old(void)
{
	struct buf b = {0}, all = {0};
	struct mdl *m = model(&b);
	const struct collective_sum *s;
	unsigned i;
	size_t n;

	for (i = 0; i < 2; i++) {
		said(&b, PID + i, SCATTER, MS, WITHOUT, 1000, 0, 0);
		kernel(&b, PID + i, KERNEL_SCATTER, MS + 500, MS + 700, 2 * MS);
	}
	CHECK(!feed(m, &b));
	s = sums_of(m, &all, &n);
	CHECK(n == 1 && s->all.bytes == 2000 && s->all.op == MXBPF_COLLECTIVE_REDUCE_SCATTER && !s->all.comm);
	buf_fini(&all);
	buf_fini(&b);
	mdl_free(m);
}

/* A group of a thread, with n kernels. */
static void group(struct buf *b, uint64_t at_ns, const uint64_t *names, const uint64_t *bytes, unsigned n,
		  unsigned kernels, uint64_t kernel_id)
{
	unsigned i;

	said(b, PID, START, at_ns, 0, 0, 0, 0);
	for (i = 0; i < n; i++)
		said(b, PID, names[i], at_ns + (i + 1) * 2000, WITH_COMM, 7, bytes[i], 0);
	said(b, PID, END, at_ns + 20000, 0, 0, 0, 0);
	for (i = 0; i < kernels; i++)
		kernel(b, PID, kernel_id, at_ns + 20100 + i * 100, at_ns + 30000 + i * 10000,
		       at_ns + 40000 + i * 10000);
}

/* Returns the bytes of the only row of a model with one group. */
static uint64_t bytes_of_group(const uint64_t *names, const uint64_t *bytes, unsigned n, unsigned kernels,
			       uint64_t kernel_id, unsigned op)
{
	struct buf b = {0}, all = {0};
	struct mdl *m = model(&b);
	const struct collective_sum *s;
	uint64_t is = 0;
	size_t rows;

	group(&b, MS, names, bytes, n, kernels, kernel_id);
	CHECK(!feed(m, &b));
	s = sums_of(m, &all, &rows);
	CHECK(rows == 1 && s->all.count == kernels && s->all.comm == 7 && s->all.op == op);
	if (rows)
		is = s->all.bytes;
	buf_fini(&all);
	buf_fini(&b);
	mdl_free(m);
	return is;
}

static void test_group(void)
{
	static const uint64_t reduces[] = {REDUCE, REDUCE, REDUCE}, mixed[] = {REDUCE, SCATTER, REDUCE};
	static const uint64_t sends[] = {SEND, RECV, SEND}, even[] = {100, 100, 100}, odd[] = {1, 20, 300};

	CHECK(bytes_of_group(reduces, odd, 3, 1, KERNEL_REDUCE, MXBPF_COLLECTIVE_ALL_REDUCE) == 321);
	CHECK(bytes_of_group(reduces, even, 3, 3, KERNEL_REDUCE, MXBPF_COLLECTIVE_ALL_REDUCE) == 100);
	CHECK(bytes_of_group(reduces, odd, 3, 3, KERNEL_REDUCE, MXBPF_COLLECTIVE_ALL_REDUCE) ==
	      MXBPF_COLLECTIVE_UNSIZED);
	CHECK(bytes_of_group(mixed, even, 3, 1, KERNEL_REDUCE, MXBPF_COLLECTIVE_ALL_REDUCE) ==
	      MXBPF_COLLECTIVE_UNSIZED);
	CHECK(bytes_of_group(sends, odd, 3, 1, KERNEL_SEND, MXBPF_COLLECTIVE_SEND_RECV) == 301);
	CHECK(bytes_of_group(sends + 1, odd, 1, 1, KERNEL_SEND, MXBPF_COLLECTIVE_SEND_RECV) == 1);
}

/* The framework's call around a range knows the operation, and its arguments the size. */
static void test_calls(void)
{
	static const uint64_t sends[] = {SEND, RECV}, bytes[] = {500, 500};
	struct buf b = {0}, all = {0};
	struct mdl *m = model(&b);
	const struct collective_sum *s;
	size_t n;

	said(&b, PID, REDUCE, MS, WITH_COMM, 7, 4096, 0);
	kernel(&b, PID, KERNEL_REDUCE, MS + 500, MS + 700, 2 * MS);
	span(&b, PID, CALL_REDUCE, MS - 1000, MS + 2000)->args_id = ARGS;
	group(&b, 3 * MS, sends, bytes, 2, 1, KERNEL_SEND);
	span(&b, PID, CALL_ALL, 3 * MS - 1000, 3 * MS + 22000);
	CHECK(!feed(m, &b));
	s = sums_of(m, &all, &n);
	CHECK(n == 2 && s[0].all.bytes == 4000 && s[0].all.source == MXBPF_COLLECTIVE_FROM_ARGS && s[0].all.comm == 7);
	CHECK(n == 2 && s[1].all.op == MXBPF_COLLECTIVE_ALL_TO_ALL && s[1].all.bytes == 500 &&
	      s[1].all.source == MXBPF_COLLECTIVE_FROM_NVTX && s[1].all.comm == 7);
	buf_fini(&all);
	buf_fini(&b);
	mdl_free(m);
}

/* A single rank of a communicator that was made in the window. */
static void test_alone(void)
{
	struct buf b = {0}, all = {0};
	struct mdl *m = model(&b);
	const struct collective_sum *s;
	size_t n;

	said(&b, PID, INIT, 0, OF_INIT, 7, 8, 5);
	said(&b, PID, SCATTER, MS, WITH_COMM, 7, 100, 0);
	kernel(&b, PID, KERNEL_SCATTER, MS + 500, MS + 1000, 2 * MS + 1000);
	CHECK(!feed(m, &b));
	s = sums_of(m, &all, &n);
	CHECK(n == 1 && s->all.bytes == 800 && s->all.ranks == 8 && !s->all.group);
	CHECK(n == 1 && s->algorithm > 799999 && s->algorithm < 800001 && s->bus > 699999 && s->bus < 700001);
	buf_fini(&all);
	buf_fini(&b);
	mdl_free(m);
}

int main(void)
{
	TEST("pairs that reduce as much at the same time are told apart by what NCCL says, also in recordings and "
	     "copies")
	test_pairs();
	TEST("a size for each process is that of all of them, if the communicator is not said either")
	test_old();
	TEST("a kernel has the bytes of all calls of its group, or of one, and none if that is not known")
	test_group();
	TEST("the framework's operation and arguments come before NCCL's, and its communicator stays")
	test_calls();
	TEST("a rank that was recorded alone has the size and the bandwidth of all ranks of its communicator")
	test_alone();
	UNIT_MAIN_END;
}
