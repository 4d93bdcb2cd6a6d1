// SPDX-License-Identifier: Apache-2.0
#include "cupti_tape.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "agent.h"
#include "cupti.h"

#define NAMES	   1024 /* a power of two */
#define NAME_BYTES 4096
#define KINDS	   64

enum { TAPE_BUFFER = 1, TAPE_NAME = 2, TAPE_CLOCK = 3, TAPE_SIZE = 4 };

static int file = -1;
static uint64_t end;
static uint32_t lock;
static bool sized[KINDS]; /* the tape has the size of records of this kind */
static struct {
	uint64_t address, hash;
} names[NAMES]; /* the names that were written last, by address */

/* ---- chunks; with the lock */

static void write_at_end(const void *data, size_t bytes)
{
	agent_call(SYS_pwrite64, file, (long)data, (long)bytes, (long)end, 0, 0);
	end += bytes;
}

static void cupti_tape_put(uint32_t type, const void *head, size_t head_bytes, const void *data, size_t bytes)
{
	const uint32_t chunk[2] = {type, (uint32_t)(head_bytes + bytes)};
	const uint64_t zeros = 0;

	write_at_end(chunk, sizeof(chunk));
	write_at_end(head, head_bytes);
	write_at_end(data, bytes);
	write_at_end(&zeros, -(head_bytes + bytes) & 7);
}

static void cupti_tape_put_name(uint64_t address)
{
	char text[NAME_BYTES];
	uint64_t hash = 0xcbf29ce484222325ull;
	const size_t i = (address ^ address >> 10) & (NAMES - 1);
	size_t len;

	if (!address)
		return;
	strncpy(text, (const char *)(uintptr_t)address, sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (len = 0; text[len]; len++)
		hash = (hash ^ (uint8_t)text[len]) * 0x100000001b3ull;
	if (names[i].address == address && names[i].hash == hash)
		return;
	names[i].address = address;
	names[i].hash = hash;
	cupti_tape_put(TAPE_NAME, &address, sizeof(address), text, len + 1);
}

static void put_size(const uint8_t *r, size_t bytes)
{
	uint32_t size[2] = {0, (uint32_t)bytes};

	memcpy(&size[0], r, sizeof(size[0]));
	if (size[0] >= KINDS || sized[size[0]])
		return;
	sized[size[0]] = true;
	cupti_tape_put(TAPE_SIZE, NULL, 0, size, sizeof(size));
}

/* ---- from any thread */

static bool cupti_cupti_tape_begin(void)
{
	const struct timespec nap = {.tv_nsec = 50000};

	if (file < 0)
		return false;
	while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
		nanosleep(&nap, NULL);
	return true;
}

static void cupti_tape_finish(void)
{
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

void cupti_tape_open(const char *path)
{
	file = (int)agent_call(SYS_open, (long)path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600, 0, 0, 0);
}

void cupti_tape_begin(uint32_t version)
{
	const uint32_t head[2] = {version, (uint32_t)agent_call(SYS_getpid, 0, 0, 0, 0, 0, 0)};

	if (!cupti_cupti_tape_begin())
		return;
	write_at_end("mxbpftap", 8);
	write_at_end(head, sizeof(head));
	cupti_tape_finish();
}

void cupti_tape_clock(uint64_t before_ns, uint64_t cupti_ns, uint64_t after_ns)
{
	const uint64_t clock[3] = {before_ns, cupti_ns, after_ns};

	if (!cupti_cupti_tape_begin())
		return;
	cupti_tape_put(TAPE_CLOCK, NULL, 0, clock, sizeof(clock));
	cupti_tape_finish();
}

void cupti_tape_buffer(uint8_t *records, size_t valid)
{
	uint8_t *r = NULL, *last = NULL;
	uint64_t address;
	uint32_t kind;
	int err = CUPTI_MAX_LIMIT_REACHED;

	if (!valid || !cupti_cupti_tape_begin())
		return;
	while (end + valid < TAPE_BYTES_MAX && !(err = cupti.get_next_record(records, valid, &r))) {
		if (last)
			put_size(last, (size_t)(r - last));
		last = r;
		memcpy(&kind, r, sizeof(kind));
		if (kind != CUPTI_KIND_KERNEL)
			continue;
		memcpy(&address, r + CUPTI_KERNEL_NAME, sizeof(address));
		cupti_tape_put_name(address);
	}
	/* The tape ends before an incomplete record: the size of the one before it is not known from this buffer. */
	if (last && err == CUPTI_MAX_LIMIT_REACHED)
		put_size(last, (size_t)(records + valid - last));
	if (last)
		cupti_tape_put(TAPE_BUFFER, NULL, 0, records,
			       err == CUPTI_MAX_LIMIT_REACHED ? valid : (size_t)(last - records));
	cupti_tape_finish();
}
