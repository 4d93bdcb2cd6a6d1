// SPDX-License-Identifier: Apache-2.0
/*
 * Replays a tape (tape.h) instead of making records: MXBPF_DOUBLE_TAPE=PATH. CUPTI's clock begins at the time of the
 * tape, and a buffer comes when the clock has reached the end of its last record. Process, threads and names are
 * replaced, because those of the tape do not exist here.
 */
#include "collect.h"
#include "replay.h"
#include "tape.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define NAMES	   65536     /* a power of two */
#define SETTLED_NS 100000000 /* a client that enables nothing for so long has enabled all that it wants */

static const uint8_t *tape, *tape_end;
static uint32_t sizes[KINDS];
static uint64_t first_clock, enabled_at;
static struct {
	uint64_t address;
	const char *text;
} names[NAMES];

bool replay_on(void)
{
	return tape != NULL;
}

size_t replay_bytes(uint32_t kind)
{
	return kind < KINDS ? sizes[kind] : 0;
}

uint64_t replay_clock(void)
{
	return first_clock;
}

static const uint8_t *payload(const struct tape_chunk *c)
{
	return (const uint8_t *)(c + 1);
}

/* Returns the chunk behind this one, or NULL at the end. */
static const struct tape_chunk *next_chunk(const struct tape_chunk *c)
{
	const uint8_t *at = payload(c) + ((c->bytes + 7) & ~7u);

	return at + sizeof(*c) <= tape_end ? (const struct tape_chunk *)at : NULL;
}

static const struct tape_chunk *first_chunk(void)
{
	const uint8_t *at = tape + sizeof(struct tape_head);

	return at + sizeof(struct tape_chunk) <= tape_end ? (const struct tape_chunk *)at : NULL;
}

static void *map(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *at;

	if (fd < 0 || fstat(fd, &st) || (size_t)st.st_size < sizeof(struct tape_head))
		double_abort("tape", "cannot read %s", path);
	at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (at == MAP_FAILED || memcmp(at, TAPE_MAGIC, 8))
		double_abort("tape", "%s is not a tape", path);
	tape_end = (const uint8_t *)at + st.st_size;
	return at;
}

uint32_t replay_open(const char *path)
{
	const struct tape_chunk *c;
	uint32_t size[2];

	tape = map(path);
	for (c = first_chunk(); c; c = next_chunk(c)) {
		if (c->type == TAPE_CLOCK && !first_clock)
			memcpy(&first_clock, payload(c) + 8, 8);
		if (c->type != TAPE_SIZE)
			continue;
		memcpy(size, payload(c), sizeof(size));
		if (size[0] < KINDS)
			sizes[size[0]] = size[1];
	}
	return ((const struct tape_head *)tape)->version;
}

static unsigned place(uint64_t address)
{
	unsigned i = (unsigned)(address >> 4) & (NAMES - 1);

	while (names[i].address && names[i].address != address)
		i = (i + 1) & (NAMES - 1);
	return i;
}

static void take_name(const struct tape_chunk *c)
{
	uint64_t address;
	unsigned i;

	memcpy(&address, payload(c), 8);
	i = place(address);
	names[i].address = address;
	names[i].text = (const char *)payload(c) + 8;
}

static uint64_t end_of(const uint8_t *r, uint32_t kind)
{
	uint64_t end = 0;

	switch (kind) {
	case KIND_KERNEL:
	case KIND_COPY:
	case KIND_PEER:
	case KIND_SET:
		memcpy(&end, r + 24, 8);
		break;
	case KIND_RUNTIME:
	case KIND_DRIVER:
	case KIND_SYNC:
	case KIND_GRAPH:
		memcpy(&end, r + 16, 8);
		break;
	case KIND_OVERHEAD:
		memcpy(&end, r + 32, 8);
	}
	return end;
}

static void play_record(const uint8_t *r, uint32_t kind)
{
	uint8_t copy[1024];
	uint32_t us[2] = {(uint32_t)getpid(), (uint32_t)getpid()};
	uint64_t address;

	memcpy(copy, r, sizes[kind]);
	if (kind == KIND_RUNTIME || kind == KIND_DRIVER)
		memcpy(copy + 24, us, sizeof(us));
	if (kind == KIND_KERNEL) {
		memcpy(&address, r + 104, 8);
		address = address ? (uintptr_t)names[place(address)].text : 0;
		memcpy(copy + 104, &address, 8);
	}
	collect_raw(kind, copy);
}

/* Plays a buffer, or only finds the time of its last end. */
static uint64_t walk(const struct tape_chunk *c, bool play)
{
	const uint8_t *r = payload(c), *end = r + c->bytes;
	uint64_t last = 0, at;
	uint32_t kind;

	for (; r + 4 <= end; r += sizes[kind]) {
		memcpy(&kind, r, 4);
		if (!kind) /* incomplete: what is behind it cannot be read */
			break;
		if (kind >= KINDS || !sizes[kind] || sizes[kind] > 1024 || r + sizes[kind] > end)
			double_abort("tape", "a record of kind %u has an unknown size", kind);
		at = end_of(r, kind);
		last = at > last ? at : last;
		if (play)
			play_record(r, kind);
	}
	return last;
}

static void *play_thread(void *ctx)
{
	const struct timespec nap = {.tv_nsec = 2000000};
	const struct tape_chunk *c;
	uint64_t last;

	while (__atomic_load_n(&enabled_at, __ATOMIC_RELAXED) + SETTLED_NS > double_now())
		nanosleep(&nap, NULL);
	for (c = first_chunk(); c; c = next_chunk(c)) {
		if (c->type == TAPE_NAME)
			take_name(c);
		if (c->type != TAPE_BUFFER)
			continue;
		for (last = walk(c, false); clock_now() < last;)
			nanosleep(&nap, NULL);
		walk(c, true);
	}
	return NULL;
}

void replay_start(void)
{
	static bool started;
	pthread_t t;

	__atomic_store_n(&enabled_at, double_now(), __ATOMIC_RELAXED);
	if (__atomic_exchange_n(&started, true, __ATOMIC_RELAXED))
		return;
	if (!pthread_create(&t, NULL, play_thread, NULL))
		pthread_detach(t);
}
