// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the file of records that the agent writes where there is no BPF. It begins as an honest agent writes it. The
 * input is patches of 12 bytes, of the beginning or of the batches: see hostile.h. What is left of the input is more
 * batches.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "records/kinds.h"
#include "source/gpu_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PAGE	4096u
#define HEAD	((sizeof(struct mxbpf_agent_shared) + PAGE - 1) & ~(size_t)(PAGE - 1))
#define RECORDS 6
#define PATCHES 24

static struct mxbpf_agent_batch batch;
static struct mxbpf_gpu_shared gpu;
static int file;

static void put(const void *from, size_t n, size_t at)
{
	if (pwrite(file, from, n, (off_t)at) != (ssize_t)n)
		abort();
}

static void begin_batch(void)
{
	static const uint8_t kinds[RECORDS] = {MXBPF_GPU_CLOCK, MXBPF_GPU_CALL,	  MXBPF_GPU_KERNEL,
					       MXBPF_GPU_NODE,	MXBPF_GPU_MEMORY, MXBPF_GPU_CLOCK};
	unsigned i;

	batch = (struct mxbpf_agent_batch){.ncalls = RECORDS, .what = MXBPF_AGENT_GPU};
	for (i = 0; i < RECORDS; i++) {
		struct mxbpf_gpu_rec *r = &batch.gpu[i];

		*r = (struct mxbpf_gpu_rec){
			.start_ns = 9000 + i, .end_ns = 9500 + i, .name = 1, .correlation = 3, .kind = kinds[i]};
		if (r->kind == MXBPF_GPU_CLOCK)
			r->clock.before_low = r->clock.after_low = 9000;
	}
}

static void begin_file(void)
{
	struct mxbpf_agent_shared *none = NULL;
	const uint64_t magic = MXBPF_AGENT_MAGIC;
	const uint32_t version = MXBPF_AGENT_VERSION;

	if (!file)
		file = memfd_create("fuzz", MFD_CLOEXEC);
	if (file < 0 || ftruncate(file, 0) || ftruncate(file, (off_t)HEAD))
		abort();
	gpu = (struct mxbpf_gpu_shared){.state = MXBPF_GPU_ON, .ndevices = 1, .devices[0].name = "GPU"};
	put(&magic, sizeof(magic), offsetof(struct mxbpf_agent_shared, magic));
	put(&version, sizeof(version), offsetof(struct mxbpf_agent_shared, version));
	put("\0_Z4convPfS_i", 14, offsetof(struct mxbpf_agent_shared, gpu_names) + sizeof(none->gpu_names.names));
	begin_batch();
}

/* Returns what is left of the input. */
static size_t patch(const uint8_t *data, size_t size)
{
	size_t i, bytes, room;
	uint16_t off;
	char *at;

	for (i = 0; i < PATCHES && size - i * 12 >= 12; i++) {
		const uint8_t *p = data + i * 12;

		bytes = 1u << p[1] % 4;
		memcpy(&off, p + 2, sizeof(off));
		at = p[0] & 1 ? (char *)&gpu : (char *)&batch;
		room = p[0] & 1 ? sizeof(gpu) : MXBPF_AGENT_BATCH_HEAD + RECORDS * sizeof(batch.gpu[0]);
		if (p[0] & 2) /* of the beginning of the file */
			put(p + 4, bytes, off % 256u);
		else
			memcpy(at + off % (room - bytes + 1), p + 4, bytes);
	}
	return size - i * 12;
}

static void check(const struct buf *b)
{
	if (b->len && kind_check(b->data, b->len))
		abort();
}

static void read_file(void)
{
	const int fd = fcntl(file, F_DUPFD_CLOEXEC, 0);
	struct gpu_file *f;
	struct err e = {0};
	int more = 1;

	if (fd < 0)
		abort();
	if (gpu_file_open(fd, 7, &f, &e)) {
		if (!e.why[0] || f)
			abort();
		return;
	}
	while (more == 1) {
		struct gpu_convert *c = gpu_file_convert(f);

		more = gpu_file_next(f);
		check(&c->texts);
		check(&c->recs);
		c->texts.len = c->recs.len = 0;
	}
	gpu_file_close(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t left;

	begin_file();
	left = patch(data, size);
	put(&gpu, sizeof(gpu), offsetof(struct mxbpf_agent_shared, gpu));
	put(&batch, MXBPF_AGENT_BATCH_HEAD + RECORDS * sizeof(batch.gpu[0]), HEAD);
	put(data + size - left, left, HEAD + MXBPF_AGENT_BATCH_HEAD + RECORDS * sizeof(batch.gpu[0]));
	read_file();
	return 0;
}
