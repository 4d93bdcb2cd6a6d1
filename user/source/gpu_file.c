// SPDX-License-Identifier: Apache-2.0
#include "source/gpu_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "records/gate.h"

#define PAGE	     4096u
#define HEAD_BYTES   ((sizeof(struct mxbpf_agent_shared) + PAGE - 1) & ~(size_t)(PAGE - 1))
#define WINDOW_BYTES (1u << 20) /* of the file in memory */
#define GPU_OFF	     offsetof(struct mxbpf_agent_shared, gpu)

struct gpu_file {
	int fd;
	struct gate gate; /* the file may be one that somebody else wrote, and may change meanwhile */
	struct mxbpf_gpu_shared shared;
	struct gpu_convert convert;
	uint64_t at, end; /* of the file: the next batch, and its size */
	uint64_t window_at;
	size_t window_len;
	bool begun, done; /* the devices were put; everything was converted */
	uint8_t window[WINDOW_BYTES];
};

/* ---- the beginning */

static void name(void *ctx, uint32_t number, char to[MXBPF_GPU_NAME_BYTES])
{
	gate_gpu_name(&((struct gpu_file *)ctx)->gate, number, to);
}

/* The process has ended, so its threads cannot be asked for. The file has the numbers that the process itself sees. */
static uint32_t thread(void *ctx, uint32_t its)
{
	return its;
}

/* Reads what is there. The rest stays as it is. */
static ssize_t read_at(const struct gpu_file *f, void *to, size_t bytes, uint64_t at)
{
	size_t got = 0;
	ssize_t n = 1;

	while (got < bytes && n > 0) {
		n = pread(f->fd, (char *)to + got, bytes - got, (off_t)(at + got));
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n > 0)
			got += (size_t)n;
	}
	return n < 0 ? -errno : (ssize_t)got;
}

static int explain_start(struct err *e, const char *head)
{
	struct mxbpf_agent_failed failed;
	bool no_room;

	memcpy(&failed, head, sizeof(failed));
	no_room = !failed.magic || failed.error == ENOSPC || failed.error == EDQUOT || failed.error == EFBIG;
	return err_set(e, ERR_RUNTIME, -ENODATA, "the agent has not started: %s",
		       no_room ? "there is no room for its file of records" : strerror((int)failed.error));
}

static int read_head(struct gpu_file *f, struct err *e)
{
	char head[offsetof(struct mxbpf_agent_shared, since_ns)] = {0};
	struct stat st;
	uint64_t magic;
	uint32_t version;
	ssize_t n;

	if (fstat(f->fd, &st) || !S_ISREG(st.st_mode))
		return err_set(e, ERR_RUNTIME, -EINVAL, "the agent's file is not a plain file");
	n = read_at(f, head, sizeof(head), 0);
	memcpy(&magic, head + offsetof(struct mxbpf_agent_shared, magic), sizeof(magic));
	memcpy(&version, head + offsetof(struct mxbpf_agent_shared, version), sizeof(version));
	if (n >= 0 && (!magic || magic == MXBPF_AGENT_FAILED))
		return explain_start(e, head);
	if (n < (ssize_t)sizeof(head) || magic != MXBPF_AGENT_MAGIC || version != MXBPF_AGENT_VERSION)
		return err_set(e, ERR_RUNTIME, -EBADMSG,
			       "its file of records is not one that this mxbpf's agent wrote");
	if (st.st_size < (off_t)sizeof(struct mxbpf_agent_shared))
		return err_set(e, ERR_RUNTIME, -EBADMSG, "its file of records is cut");
	if (gate_gpu(&f->gate, &f->shared))
		return err_set(e, ERR_RUNTIME, -EBADMSG, "its file of records is damaged: %s", gate_why(&f->gate));
	/* CUPTI failed when cuInit() asked for it, and the process ended before the agent's thread asked again. */
	if (f->shared.state == MXBPF_GPU_OFF && f->shared.failed && !f->shared.subscriptions)
		f->shared.state = MXBPF_GPU_FAILED;
	f->end = (uint64_t)st.st_size;
	return 0;
}

int gpu_file_open(int fd, uint32_t tgid, struct gpu_file **out, struct err *e)
{
	struct gpu_file *f = *out = calloc(1, sizeof(*f));
	int err;

	if (!f) {
		close(fd);
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	}
	f->fd = f->gate.fd = fd;
	f->at = HEAD_BYTES;
	f->convert = (struct gpu_convert){.from = {name, thread, f}, .tgid = tgid};
	err = read_head(f, e);
	if (!err)
		return 0;
	gpu_file_close(f);
	*out = NULL;
	return err;
}

void gpu_file_stop(struct gpu_file *f, unsigned ms)
{
	const struct timespec nap = {.tv_nsec = 10000000};
	const uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + ms * 1000000ull;
	const uint32_t nothing = 0;
	uint32_t state = f->shared.state;
	struct err ignored = {0};

	if (pwrite(f->fd, &nothing, sizeof(nothing), GPU_OFF + offsetof(struct mxbpf_gpu_shared, want)) < 0)
		return;
	while (state != MXBPF_GPU_OFF && state != MXBPF_GPU_FAILED && clock_ns(CLOCK_MONOTONIC) < until_ns) {
		nanosleep(&nap, NULL);
		read_at(f, &state, sizeof(state), GPU_OFF + offsetof(struct mxbpf_gpu_shared, state));
	}
	state = f->shared.state; /* the one that matters to the user is that before the stop */
	read_head(f, &ignored);
	f->shared.state = state;
}

const struct mxbpf_gpu_shared *gpu_file_shared(const struct gpu_file *f)
{
	return &f->shared;
}

struct gpu_convert *gpu_file_convert(struct gpu_file *f)
{
	return &f->convert;
}

/* ---- batches */

/* Returns `bytes` bytes of the file at f->at; NULL: the file ends before. *err is set if it cannot be read. */
static const uint8_t *peek(struct gpu_file *f, size_t bytes, int *err)
{
	const uint64_t skip = f->at - f->window_at;
	ssize_t n;

	if (f->at + bytes > f->end)
		return NULL;
	if (f->window_len && f->at >= f->window_at && skip + bytes <= f->window_len)
		return f->window + skip;
	n = read_at(f, f->window, sizeof(f->window), f->at);
	f->window_at = f->at;
	f->window_len = n < 0 ? 0 : (size_t)n;
	*err = n < 0 ? (int)n : 0;
	return f->window_len >= bytes ? f->window : NULL;
}

/* Takes the records of a batch. A record that was not written has no kind, and one that is damaged is missing, too. */
static void gpu_file_take(struct gpu_file *f, const uint8_t *at, uint32_t n)
{
	struct mxbpf_gpu_rec r;
	uint32_t i;

	for (i = 0; i < n; i++) {
		memcpy(&r, at + i * sizeof(r), sizeof(r));
		if (!gate_gpu_rec(&r))
			gpu_take(&f->convert, &r, 1);
	}
}

/*
 * Takes one batch, or skips eight bytes where no batch begins. The first word of a batch of the GPU is 0 and the second
 * is not, so after a range of zeros the next batch is found again.
 */
static bool gpu_file_step(struct gpu_file *f, int *err)
{
	struct mxbpf_agent_batch head;
	const uint8_t *at = peek(f, MXBPF_AGENT_BATCH_HEAD, err);

	if (!at)
		return false;
	memcpy(&head, at, MXBPF_AGENT_BATCH_HEAD);
	if (head.slot_use || head.what != MXBPF_AGENT_GPU || !head.ncalls || head.ncalls > MXBPF_AGENT_GPU_BATCH) {
		f->at += sizeof(uint64_t);
		return true;
	}
	f->at += MXBPF_AGENT_BATCH_HEAD;
	while (head.ncalls && f->at + head.ncalls * sizeof(struct mxbpf_gpu_rec) > f->end)
		head.ncalls--; /* the end of the file is in this batch */
	at = peek(f, head.ncalls * sizeof(struct mxbpf_gpu_rec), err);
	if (!at)
		return false;
	gpu_file_take(f, at, head.ncalls);
	f->at += head.ncalls * sizeof(struct mxbpf_gpu_rec);
	return true;
}

static void put_devices(struct gpu_file *f)
{
	uint32_t i;

	f->convert.foreign_tids = f->shared.foreign_tids;
	f->convert.graphs_wrong = gpu_graphs_wrong(&f->shared); /* for all: a batch does not say its session */
	f->convert.has_calls = gpu_has_calls(&f->shared);
	f->convert.has_memory = f->shared.enabled & 1u << MXBPF_GPU_MEMORY;
	for (i = 0; i < f->shared.ndevices; i++)
		gpu_put_device(&f->convert, i, &f->shared.devices[i]);
}

/* A process can make a file of any size that has no data. */
static void skip_hole(struct gpu_file *f)
{
	const off_t data = lseek(f->fd, (off_t)f->at, SEEK_DATA);

	if (data < 0 && errno == ENXIO)
		f->at = f->end;
	else if (data > (off_t)f->at)
		f->at = (uint64_t)data / sizeof(uint64_t) * sizeof(uint64_t);
}

int gpu_file_next(struct gpu_file *f)
{
	struct mxbpf_gpu_account account;
	uint64_t until;
	int err = 0;

	if (!f->begun)
		put_devices(f);
	f->begun = true;
	if (f->done)
		return 0;
	skip_hole(f);
	until = f->at + WINDOW_BYTES;
	while (f->at < until && gpu_file_step(f, &err))
		;
	f->done = f->at < until;
	gpu_convert(&f->convert, f->done);
	if (f->done) {
		gpu_file_account(f, &account);
		if (buf_put(&f->convert.recs, &account, sizeof(account)))
			err = -ENOMEM;
	}
	err = err ? err : f->convert.err;
	return err ? err : 1;
}

void gpu_file_account(const struct gpu_file *f, struct mxbpf_gpu_account *to)
{
	const struct mxbpf_gpu_shared *g = &f->shared;
	const struct gpu_convert *c = &f->convert;
	const uint64_t records = g->records > c->taken ? g->records : c->taken; /* the sum is written after the batch */

	*to = (struct mxbpf_gpu_account){
		.h = {.kind = MXBPF_GPU_ACCOUNT, .size = sizeof(*to), .tgid = c->tgid},
		.records = records,
		.activities = c->activities,
		.calls = c->calls,
		.nested = c->nested,
		.overheads = c->overheads,
		.outside = c->outside,
		.dropped = g->dropped,
		.scrapped = g->scrapped,
		.unreadable = g->unreadable,
		.unsent = records - c->taken,
		.unmeasured = c->unmeasured,
		.unjoined = c->unjoined,
		.queries = c->queries,
		.memory = c->memory,
		.early = c->early,
		.threadless = c->threadless,
		.unnamed = c->unnamed,
		.unknown = g->unknown,
		.subscriptions = g->subscriptions,
		.held_ns = g->held_ns,
	};
}

void gpu_file_close(struct gpu_file *f)
{
	if (!f)
		return;
	gpu_convert_fini(&f->convert);
	close(f->fd);
	free(f);
}
