// SPDX-License-Identifier: Apache-2.0
/* Files of the agent's records that are damaged as by SIGKILL or by a full disk, or that another program wrote. */

#include "source/gpu_file.h"
#include "unit.h"

#define HEAD ((sizeof(struct mxbpf_agent_shared) + 4095) & ~(size_t)4095)

#define GPU_AT(field) (offsetof(struct mxbpf_agent_shared, gpu) + offsetof(struct mxbpf_gpu_shared, field))

static int fd;
static uint64_t at;
static uint32_t correlation, seq, graph;

static void put(const void *data, size_t bytes, uint64_t where)
{
	CHECK(pwrite(fd, data, bytes, (off_t)where) == (ssize_t)bytes);
}

/* A file with the names "" and "k" at 1, and one device. `records`: what the agent says that it has handed over. */
static void begin(uint64_t records)
{
	static struct mxbpf_agent_shared s;

	s = (struct mxbpf_agent_shared){
		.magic = MXBPF_AGENT_MAGIC, .version = MXBPF_AGENT_VERSION, .gpu = {.records = records, .ndevices = 1}};
	memcpy(s.gpu_names.texts + 1, "k", 2);
	fd = memfd_create("test", MFD_CLOEXEC);
	put(&s, sizeof(s), 0);
	at = HEAD;
	correlation = seq = 0;
}

/* A batch of kernels of 10 ns, of which only the first `bytes` bytes are written; 0: all. */
static void batch(uint32_t n, size_t bytes)
{
	struct mxbpf_agent_batch b = {.seq = seq++, .ncalls = n, .what = MXBPF_AGENT_GPU};
	const size_t all = MXBPF_AGENT_BATCH_HEAD + n * sizeof(b.gpu[0]);
	uint32_t i;

	for (i = 0; i < n; i++)
		b.gpu[i] = (struct mxbpf_gpu_rec){.kind = MXBPF_GPU_KERNEL,
						  .start_ns = 100,
						  .end_ns = 110,
						  .name = 1,
						  .correlation = ++correlation,
						  .graph = graph};
	if (bytes != SIZE_MAX)
		put(&b, bytes ? bytes : all, at);
	at += all;
}

/* Reads the file. Returns the number of kernels. */
static unsigned kernels(struct mxbpf_gpu_account *account)
{
	const struct mxbpf_rec *r;
	struct gpu_convert *c;
	struct gpu_file *f;
	struct err e = {0};
	unsigned n = 0;
	size_t pos;

	CHECK(!gpu_file_open(fd, 7, &f, &e));
	c = gpu_file_convert(f);
	while (gpu_file_next(f) > 0) {
		for (pos = 0; pos < c->recs.len; pos += r->size) {
			r = (const void *)(c->recs.data + pos);
			n += r->kind == MXBPF_ACTIVITY && r->tgid == 7;
		}
		c->recs.len = c->texts.len = 0;
	}
	gpu_file_account(f, account);
	gpu_file_close(f);
	return n;
}

int main(void)
{
	struct mxbpf_gpu_account a;
	struct gpu_file *f;
	struct err e = {0};
	unsigned i;

	TEST("All batches are read")
	{
		begin(200);
		batch(185, 0);
		batch(15, 0);
		CHECK(kernels(&a) == 200 && a.records == 200 && !a.unsent);
	}
	TEST("A batch that was never written is counted, and the next one is found")
	{
		begin(30);
		batch(10, 0);
		batch(10, SIZE_MAX);
		batch(10, 0);
		CHECK(kernels(&a) == 20 && a.unsent == 10);
	}
	TEST("Of a batch that was written in part, the complete records are read, and those of the next batch")
	{
		begin(30);
		batch(10, 0);
		batch(10, MXBPF_AGENT_BATCH_HEAD + 4 * sizeof(struct mxbpf_gpu_rec));
		batch(10, 0);
		CHECK(kernels(&a) == 24 && a.unsent == 6);
	}
	TEST("Below CUDA 13.1 U1 work of graphs has no launch if CUPTI was used before in the process, and is counted")
	{
		static const struct {
			uint32_t version, subscriptions, others, graph, unjoined;
		} cases[] = {{130000, 1, 0, 5, 0},
			     {130000, 2, 0, 5, 10},
			     {130000, 1, 1, 5, 10},
			     {130101, 2, 0, 5, 0},
			     {130000, 2, 0, 0, 0}};

		for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			begin(10);
			put(&cases[i].version, 4, GPU_AT(version));
			put(&cases[i].subscriptions, 4, GPU_AT(subscriptions));
			put(&cases[i].others, 4, GPU_AT(others));
			graph = cases[i].graph;
			batch(10, 0);
			graph = 0;
			CHECK(kernels(&a) == 10 && a.unjoined == cases[i].unjoined);
		}
	}
	TEST("If the process ends right after CUPTI has failed, the failure is known; if CUPTI came later, there is "
	     "none")
	{
		const uint32_t failed = MXBPF_GPU_AT_LIBRARY;

		for (i = 0; i < 2; i++) {
			begin(0);
			put(&failed, 4, GPU_AT(failed));
			put(&i, 4, GPU_AT(subscriptions));
			CHECK(!gpu_file_open(fd, 7, &f, &e));
			CHECK(gpu_file_shared(f)->state == (i ? MXBPF_GPU_OFF : MXBPF_GPU_FAILED));
			gpu_file_close(f);
		}
	}
	TEST("A file that ends in the middle of a record is read up to there")
	{
		begin(20);
		batch(10, 0);
		batch(10, MXBPF_AGENT_BATCH_HEAD + 4 * sizeof(struct mxbpf_gpu_rec) + 11);
		CHECK(kernels(&a) == 14 && a.unsent == 6);
		begin(20);
		batch(10, 0);
		batch(10, 9);
		CHECK(kernels(&a) == 10 && a.unsent == 10);
	}
	TEST("If the process was killed between a batch and its sum, nothing is missing")
	{
		begin(0);
		batch(10, 0);
		CHECK(kernels(&a) == 10 && a.records == 10 && !a.unsent);
	}
	TEST("A file is read in parts")
	{
		begin(200 * 185);
		for (i = 0; i < 200; i++)
			batch(185, 0);
		CHECK(kernels(&a) == 200 * 185 && !a.unsent);
	}
	TEST("A file of an agent that has not started, and one of another program, are refused")
	{
		fd = memfd_create("test", MFD_CLOEXEC);
		CHECK(!ftruncate(fd, HEAD));
		CHECK(gpu_file_open(fd, 7, &f, &e) == -ENODATA && !f);
		fd = memfd_create("test", MFD_CLOEXEC);
		put("no agent wrote this text", 24, 0);
		CHECK(gpu_file_open(fd, 7, &f, &e) == -EBADMSG && !f);
		begin(0);
		CHECK(!ftruncate(fd, HEAD / 2));
		CHECK(gpu_file_open(fd, 7, &f, &e) == -EBADMSG && !f);
	}
	return unit_end();
}
