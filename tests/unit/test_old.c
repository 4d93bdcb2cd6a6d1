// SPDX-License-Identifier: Apache-2.0
/*
 * Tests that rows in recordings of earlier versions are read. Each struct here is as the version that wrote it had it;
 * its members are numbered, so that a value at a wrong place is seen.
 */
#include "records/old.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "mxbpf_file.h"
#include "record/record.h"
#include "unit.h"

#define HEAD(number, type) .h = {number, sizeof(struct type), 77, 0}

struct join {
	struct mxbpf_rec h;
	__u64 name_id, count, total_ns, bwd_count, bwd_total_ns, deep_count, deep_total_ns;
};
struct sched {
	struct mxbpf_rec h;
	__u64 name_id, count, total_ns;
	__u8 cls, what, own, between, pad[4];
	char comm[16];
};
struct bucket {
	__u32 index, reserved;
	__u64 count;
};
struct life {
	struct mxbpf_rec h;
	__u64 name_id, count, total_ns, min_ns, max_ns;
	__u32 device;
	__u8 part, pad;
	__u16 nbuckets;
	struct bucket buckets[2];
};
struct kv {
	struct mxbpf_rec h;
	__u64 name_id, key, calls, values, sent_bytes, received_bytes, unknown, total_ns, min_ns, max_ns;
	__u8 flags, pad[5];
	__u16 nbuckets;
	struct bucket buckets[2];
};
struct wait {
	struct mxbpf_rec h;
	__u64 name_id, call_id, op_id, within_id, count, total_ns, max_ns;
	__u32 tid;
	__u8 what, pad[3];
};
struct raised {
	struct mxbpf_rec h;
	__u64 name_id, stack_id, count, last_ns;
	__u8 cls, pad[7];
};
struct gpu_join {
	struct mxbpf_rec h;
	__u64 launches, without_work, late_launches, late_spans;
};
struct gpu_wait {
	struct mxbpf_rec h;
	__u64 name_id, count, total_ns;
	__u32 tid, pad;
};
struct roof {
	struct mxbpf_rec h;
	__u64 name_id, args_id, calls, total[5], self[5];
};
struct gpu_alloc {
	struct mxbpf_rec h;
	__u64 name_id, op_id, stack_id, count, failed, alloc_bytes, free_bytes, total_ns, max_ns, pool_peak_bytes;
	__u32 device;
	__u8 kind, pad[3];
};
struct range {
	struct mxbpf_rec h;
	__u64 name_id, range_id, count, total_ns, min_ns, max_ns;
};
struct metrics {
	struct mxbpf_rec h;
	__u64 name_id, launches, held_ns, longest_ns;
	__u32 passes, pad;
	struct {
		__u64 n, sum, min, max;
	} counters[12];
};

static const struct raised raised = {.h = {37, sizeof(raised), 77, 11}, 100, 200, 2, 13, 4, {0}};

static const struct {
	const void *rec;
	const char *rows; /* as text_of() writes them */
} olds[] = {
	{&(struct join){HEAD(13, join), 100, 2, 3, 4, 5, 6, 7},
	 "backward of 77: name_id=100 count=2 total_ns=3 backward_count=4 backward_ns=5 deeper_count=6 deeper_ns=7\n"},
	{&(struct sched){HEAD(21, sched), 100, 2, 3, 4, 5, 1, 1, {0}, "kworker/0:1"},
	 "off_cpu of 77: name_id=100 class=4 what=5 own=1 between=1 comm=3418906579283441515 comm=3226160 count=2 "
	 "total_ns=3\n"},
	{&(struct life){HEAD(23, life), 100, 2, 9, 4, 5, 6, 3, 0, 2, {{4, 0, 1}, {6, 0, 2}}},
	 "lives of 77: name_id=100 device=6 part=3 count=2 total_ns=9 min_ns=4 max_ns=5 hist[4]=1 hist[6]=2\n"},
	{&(struct kv){HEAD(33, kv), 100, 2, 3, 4, 5, 6, 7, 9, 8, 10, 2, {0}, 1, {{327, 0, 1}}},
	 "kvstore of 77: name_id=100 key_id=2 flags=2 hist[327]=1 calls=3 values=4 values_unknown=7 sent_bytes=5 "
	 "received_bytes=6 total_ns=9 min_ns=8 max_ns=10\n"},
	{&(struct wait){HEAD(25, wait), 100, 200, 300, 400, 2, 3, 4, 5, 1, {0}},
	 "waits of 77: operator_id=300 within_id=400 call_id=200 name_id=100 for=1 count=2 total_ns=3 max_ns=4\n"},
	{&raised, "raised of 77: name_id=100 stack_id=200 count=2 first_unix_ns=11 last_unix_ns=13 class=4\n"},
	{&(struct gpu_join){HEAD(45, gpu_join), 2, 3, 4, 5},
	 "gpu joins of 77: launches=2 without_work=3 late_launches=4 late_spans=5\n"},
	{&(struct gpu_wait){HEAD(46, gpu_wait), 100, 2, 3, 9, 0},
	 "gpu waits of 77: name_id=100 tid=9 count=2 total_ns=3\n"},
	{&(struct roof){HEAD(62, roof), 100, 200, 2, {3, 4, 5, 6, 7}, {8, 9, 10, 11, 12}},
	 "gpu roofline of 77: name_id=100 args_id=200 calls=2 total=3 total=4 total=5 total=6 total=7 self=8 self=9 "
	 "self=10 self=11 self=12\n"},
	{&(struct gpu_alloc){HEAD(65, gpu_alloc), 100, 200, 300, 2, 3, 4, 5, 9, 8, 7, 6, 3, {0}},
	 "memory calls of 77: name_id=100 operator_id=200 stack_id=300 gpu=6 memory=3 count=2 failed=3 alloc_bytes=4 "
	 "free_bytes=5 total_ns=9 max_ns=8 pool_peak_bytes=7\n"},
	{&(struct range){HEAD(69, range), 100, 200, 2, 9, 4, 5},
	 "kernels by range of 77: name_id=100 range_id=200 count=2 total_ns=9 min_ns=4 max_ns=5\n"},
	{&(struct metrics){HEAD(74, metrics), 100, 2, 9, 4, 5, 0, {{6, 7, 1, 2}, [11] = {8, 9, 1, 2}}},
	 "kernel counters of 77: name_id=100 count=2 passes=5 held_ns=9 held_max_ns=4 n0=6 sum0=7 n11=8 sum11=9\n"},
};

/* The rows of all tables of a model, with the columns that have a value. */
static char *text_of(const struct mdl *m)
{
	FREED(buf_fini) struct buf recs = {0};
	const struct mxbpf_table *t;
	const __u64 *cell;
	size_t len, pos = 0;
	unsigned c, i, row;
	char *text;
	FILE *f = open_memstream(&text, &len);

	CHECK(!mdl_emit(m, &recs));
	while ((t = (const void *)kind_next(recs.data, recs.len, &pos))) {
		cell = mxbpf_table_cells(t);
		for (row = 0; t->h.kind == MXBPF_TABLE && row < t->nrows; row++) {
			fprintf(f, "%s of %u:", t->name, t->h.tgid);
			for (c = 0; c < t->ncols; c++)
				for (i = 0; i < t->columns[c].nvalues; i++, cell++)
					if (*cell && !strcmp(t->columns[c].name, "hist"))
						fprintf(f, " hist[%u]=%llu", t->columns[c].first + i, *cell);
					else if (*cell)
						fprintf(f, " %s=%llu", t->columns[c].name, *cell);
			fprintf(f, "\n");
		}
	}
	fclose(f);
	return text;
}

static int convert(const void *recs, size_t bytes, struct mdl *m)
{
	FREED(buf_fini) struct buf today = {0};
	const int err = old_convert(recs, bytes, &today);

	return err ? err : mdl_feed(m, today.data, today.len);
}

static void test_kinds(void)
{
	unsigned i;

	TEST("a row of each kind of earlier versions is a row of its table, with every value")
	for (i = 0; i < sizeof(olds) / sizeof(olds[0]); i++) {
		const struct mxbpf_rec *r = olds[i].rec;
		FREED(model_freed) struct mdl *m = mdl_new();
		FREED(memory_freed) char *rows = NULL;

		CHECK(!kind_of(r) && !convert(r, r->size, m));
		rows = text_of(m);
		CHECK(!strcmp(rows, olds[i].rows));
		if (strcmp(rows, olds[i].rows))
			printf("# %s# %s", rows, olds[i].rows);
	}
}

/* Opens a recording of format 2.3 with the record, by a host whose clock is ahead. */
static struct rec_reader *recording_with(const struct mxbpf_rec *r, const char *host, uint64_t ahead_ns)
{
	const struct mdl_session s = {.mxbpf_version = "0",
				      .comm = "c",
				      .cmdline = "c",
				      .hostname = (char *)host,
				      .start_unix_ns = 5000 + ahead_ns,
				      .start_mono_ns = 5000};
	const int fd = memfd_create("old", MFD_CLOEXEC);
	struct mxbpf_file_header h;
	FREED(model_freed) struct mdl *names = mdl_new();
	struct rec_writer *w = NULL;
	struct rec_reader *reader = NULL;

	CHECK(!rec_writer_open(dup(fd), 0, &s, &w, NULL));
	CHECK(!rec_writer_append(w, r, r->size, names, &(struct mxbpf_loss){0}));
	rec_writer_free(w);
	CHECK(pread(fd, &h, sizeof(h), 0) == sizeof(h));
	h.major = 2;
	h.minor = 3;
	h.crc = (__u32)crc32(0, (const Bytef *)&h, offsetof(struct mxbpf_file_header, crc));
	CHECK(pwrite(fd, &h, sizeof(h), 0) == sizeof(h) && !rec_reader_open(fd, &reader, NULL));
	close(fd);
	return reader;
}

static void test_merge(void)
{
	struct rec_reader *parts[] = {recording_with(&raised.h, "a", 1000), recording_with(&raised.h, "b", 0)},
			  *reader = NULL;
	FREED(model_freed) struct mdl *m = mdl_new();
	FREED(memory_freed) char *rows = NULL;

	TEST("a merge moves pids and times of rows of earlier versions, as it does of others")
	{
		CHECK(!rec_reader_merge(parts, 2, &reader, NULL) && !rec_reader_model(reader, m, NULL));
		rows = text_of(m);
		CHECK(!strcmp(rows, "raised of 77: name_id=100 stack_id=200 count=2 first_unix_ns=1011 "
				    "last_unix_ns=1013 class=4\n"
				    "raised of 4194381: name_id=100 stack_id=200 count=2 first_unix_ns=11 "
				    "last_unix_ns=13 class=4\n"));
		rec_reader_close(reader);
	}
}

static void test_hostile(void)
{
	static const unsigned sizes[] = {0, 8, sizeof(struct join) - 8, sizeof(struct join) + 4,
					 sizeof(struct join) + 8};
	struct join j = {HEAD(13, join)};
	FREED(model_freed) struct mdl *m = mdl_new();
	FREED(buf_fini) struct buf many = {0};
	FREED(memory_freed) char *rows = NULL;
	unsigned i;

	TEST("a row of earlier versions that is too short or longer than its chunk is refused")
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		j.h.size = (__u16)sizes[i];
		CHECK(convert(&j, sizeof(j), m) == -EBADMSG);
	}
	TEST("more rows than a record of a table holds are rows of several records")
	{
		j = (struct join){HEAD(13, join), 100, 1};
		for (i = 0; i < 10000; i++)
			CHECK(!buf_put(&many, &j, sizeof(j)));
		CHECK(!convert(many.data, many.len, m));
		rows = text_of(m);
		CHECK(!strcmp(rows, "backward of 77: name_id=100 count=10000\n"));
	}
}

int main(void)
{
	test_kinds();
	test_merge();
	test_hostile();
	return unit_end();
}
