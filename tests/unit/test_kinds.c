/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the table of record kinds: each row must fit its struct, and walks by the table must find the right fields. */
#include "mxbpf_collective.h"
#include "mxbpf_cost.h"
#include "mxbpf_kernels.h"
#include "mxbpf_lines.h"
#include "mxbpf_neighbours.h"
#include "mxbpf_range.h"
#include "mxbpf_roofline.h"
#include "mxbpf_gauge.h"
#include "unit.h"

#include "mxbpf_memory.h"
#include "mxbpf_kv.h"
#include "mxbpf_loss.h"
#include "mxbpf_mark.h"
#include "mxbpf_queue.h"
#include "mxbpf_step.h"
#include "mxbpf_graph.h"
#include "model/model.h"
#include "records/kinds.h"
#include "mxbpf_sample.h"
#include "mxbpf_sched.h"

#define KINDS_MAX 96

/* Highest number in enum mxbpf_kind. Number 9 is unused. */
#define LAST_KIND MXBPF_NETWORK

static unsigned nkinds(void)
{
	unsigned i, n = 0;

	for (i = 0; i < KINDS_MAX; i++)
		n += kind_numbered(i) != NULL;
	return n;
}

/* Returns true if all offsets lie in the longest form of the record: the one that BPF sends, or else the fixed part. */
static bool is_inside(const struct kind *k, unsigned kind)
{
	size_t size = kind == MXBPF_GAUGE	   ? sizeof(struct mxbpf_gauge)
		      : kind == MXBPF_OPEN	   ? sizeof(struct mxbpf_open)
		      : kind == MXBPF_MEM_OWNER	   ? sizeof(struct mxbpf_mem_owner)
		      : kind == MXBPF_MEM_TIME	   ? sizeof(struct mxbpf_mem_time)
		      : kind == MXBPF_GROUP	   ? sizeof(struct mxbpf_group)
		      : kind == MXBPF_AGG_ACTIVITY ? sizeof(struct mxbpf_agg_activity)
						   : k->bytes;
	unsigned i;

	for (i = 0; i < KIND_SIZES_MAX; i++)
		size = k->sent[i] > size ? k->sent[i] : size;
	for (i = 0; i < KIND_IDS_MAX; i++)
		if (k->ids[i].off + (k->ids[i].flags & KIND_ID_SHORT ? 2u : 8u) > size || k->ids[i].off % 2)
			return false;
	for (i = 0; i < KIND_THREADS_MAX; i++)
		if (k->threads[i] + 4u > size || k->threads[i] % 4)
			return false;
	for (i = 0; i < KIND_TIMES_MAX; i++)
		if (k->times[i] + 8u > size || k->times[i] % 8)
			return false;
	return k->dur + 8u <= size && k->track + sizeof(struct mxbpf_track) <= size && k->track % 4 == 0;
}

static void test_rows(void)
{
	const struct kind *k, *other;
	unsigned i, j;

	TEST("every kind of record has a row with offsets inside its struct and a unique name")
	{
		CHECK(nkinds() == 68 && !kind_numbered(9) && !kind_numbered(LAST_KIND + 1));
		for (i = 0; i < KINDS_MAX; i++) {
			k = kind_numbered(i);
			if (!k)
				continue;
			CHECK(k->name && k->bytes >= sizeof(struct mxbpf_rec) && k->bytes % 8 == 0);
			CHECK(is_inside(k, i));
			CHECK(!k->tail.bytes || (k->tail.count && k->fixed >= k->bytes));
			for (j = 0; j < i; j++) {
				other = kind_numbered(j);
				CHECK(!other || strcmp(other->name, k->name));
			}
		}
	}
}

/* ---- ids */

struct told {
	enum mxbpf_name_kind of;
	uint64_t id;
};

static bool tells(const void *rec, const struct told *told, unsigned n)
{
	struct kind_id_walk w = {0};
	unsigned i = 0;

	while (kind_next_id(rec, &w)) {
		if (i == n || told[i].of != w.of || told[i].id != w.id)
			return false;
		i++;
	}
	return i == n;
}

static void test_ids(void)
{
	struct mxbpf_span s = {.h = {.kind = MXBPF_SPAN, .size = sizeof(s)},
			       .name_id = 11,
			       .args_id = 12,
			       .stack_id = 13,
			       .layer_id = 14,
			       .cls = 1,
			       .tid = 5,
			       .end_tid = 6};
	const struct told all[] = {
		{MXBPF_NAME_SPAN, 11}, {MXBPF_NAME_ARGS, 12}, {MXBPF_NAME_STACK, 13}, {MXBPF_NAME_LAYER, 14}};
	const struct told user[] = {{MXBPF_NAME_SPAN, 11}, {MXBPF_NAME_DOMAIN, 11}};
	struct {
		struct mxbpf_kv k;
		struct mxbpf_kv_value v[3];
	} kv = {.k = {.h = {.kind = MXBPF_KV, .size = sizeof(kv)}, .name_id = 21, .nvalues = 3},
		.v = {{22}, {0}, {23}}};
	const struct told keys[] = {{MXBPF_NAME_SPAN, 21}, {MXBPF_NAME_SPAN, 22}, {MXBPF_NAME_SPAN, 23}};
	struct mxbpf_gauge g = {.h = {.kind = MXBPF_GAUGE, .size = MXBPF_GAUGE_BYTES_MIN}, .scope = 31, .flags = ~0u};
	const struct told scope[] = {{MXBPF_NAME_SCOPE, 31}};

	TEST("the ids of a record are those of its form, including named keys")
	{
		CHECK(tells(&s, all, 4));
		s.h.size = MXBPF_SPAN_BYTES_PLAIN;
		CHECK(tells(&s, all, 1));
		s.h.size = MXBPF_WITH_COST(MXBPF_SPAN_BYTES_PLAIN); /* the cost is at the place of the details */
		CHECK(tells(&s, all, 1));
		s.flags = MXBPF_SPAN_USER;
		CHECK(tells(&s, user, 2));
		CHECK(tells(&kv, keys, 1));
		kv.k.flags = MXBPF_KV_NAMED;
		CHECK(tells(&kv, keys, 3));
		CHECK(tells(&g, scope, 1));
	}
	TEST("a thread that both started and ended a record is reported once")
	{
		CHECK(kind_thread(&s.h, 0) == 5 && kind_thread(&s.h, 1) == 6 && !kind_thread(&s.h, 2));
		s.end_tid = 5;
		CHECK(kind_thread(&s.h, 0) == 5 && !kind_thread(&s.h, 1) && !kind_thread(&g.h, 0));
	}
}

/* ---- times */

static void test_times(void)
{
	struct {
		struct mxbpf_sched s;
		struct mxbpf_sched_slice slices[2];
	} off = {.s = {.h = {.kind = MXBPF_SCHED, .size = sizeof(off), .ts_ns = 100},
		       .ran_ns = 7,
		       .woken_ns = 200,
		       .back_ns = 300,
		       .nslices = 2},
		 .slices = {{210, 220, 1, 1, ""}, {230, 240, 1, 1, ""}}};
	struct mxbpf_span s = {.h = {.kind = MXBPF_SPAN, .size = sizeof(s), .ts_ns = 100}, .dur_ns = 50, .cls = 1};
	struct mxbpf_step step = {.h = {.kind = MXBPF_STEP, .size = sizeof(step), .ts_ns = 70},
				  .what = MXBPF_STEP_UPDATE};

	TEST("all times of a record are shifted, including those of its tail, and durations and absent times are not")
	{
		kind_shift_times(&off.s.h, 1000);
		CHECK(off.s.h.ts_ns == 1100 && off.s.ran_ns == 7 && off.s.woken_ns == 1200 && off.s.back_ns == 1300);
		CHECK(off.s.span_start_ns == 0 && off.slices[0].from_ns == 1210 && off.slices[1].to_ns == 1240);
		CHECK(kind_end_ns(&s.h) == 150 && kind_end_ns(&step.h) == 70 && kind_end_ns(&off.s.h) == 1300);
	}
}

/* ---- records sent by BPF */

static void test_sent(void)
{
	struct mxbpf_span s = {.h = {.kind = MXBPF_SPAN}, .cls = 1};
	struct {
		struct mxbpf_kv k;
		struct mxbpf_kv_value v[2];
	} kv = {.k = {.h = {.kind = MXBPF_KV, .size = sizeof(kv)}, .nvalues = 2}};
	struct mxbpf_agg a = {.h = {.kind = MXBPF_AGG, .size = sizeof(a)}, .cls = 1};
	static const uint16_t sizes[] = {MXBPF_WITH_COST(MXBPF_SPAN_BYTES_PLAIN),
					 MXBPF_WITH_COST(MXBPF_SPAN_BYTES_DETAILS),
					 MXBPF_WITH_COST(MXBPF_SPAN_BYTES_ACCOUNT), sizeof(s)};
	unsigned i;

	TEST("a record from BPF must have a size that BPF sends and valid fields, and kinds of user space are refused "
	     "from BPF")
	{
		for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			s.h.size = sizes[i];
			CHECK(kind_sent(&s.h, sizes[i]) && !kind_sent(&s.h, sizes[i] + 8));
		}
		s.h.size = MXBPF_SPAN_BYTES_MIN; /* only recordings have it */
		CHECK(!kind_sent(&s.h, s.h.size) && !kind_check(&s, s.h.size));
		s.h.size = sizeof(s);
		s.cls = MXBPF_CLASS_MAX;
		CHECK(!kind_sent(&s.h, sizeof(s)) && kind_check(&s, sizeof(s)));
		CHECK(kind_sent(&kv.k.h, sizeof(kv)));
		kv.k.nvalues = 3;
		CHECK(!kind_sent(&kv.k.h, sizeof(kv)));
		CHECK(!kind_sent(&a.h, sizeof(a)) && !kind_check(&a, sizeof(a)));
	}
}

int main(void)
{
	test_rows();
	test_ids();
	test_times();
	test_sent();
	UNIT_MAIN_END;
}
