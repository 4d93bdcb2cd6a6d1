// SPDX-License-Identifier: Apache-2.0
/*
 * Buffers of CUPTI as the agent reads them inside the program. This file stands for CUPTI: the input is records of all
 * kinds and of unknown ones, with any numbers. Records have the sizes of the oldest version that has the fields, so a
 * read beyond the last one leaves the part of the buffer that is valid. The first byte selects the version.
 */
#include <sanitizer/asan_interface.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../user/agent/cupti/cupti_records.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NAMES 5

static const struct {
	uint32_t kind, bytes, later; /* later: bytes from CUPTI_VERSION_GRAPHS on */
} kinds[] = {
	{CUPTI_KIND_KERNEL, 160, 160},	{CUPTI_KIND_MEMCPY, 72, 80},
	{CUPTI_KIND_MEMCPY2, 80, 88},	{CUPTI_KIND_MEMSET, 72, 80},
	{CUPTI_KIND_RUNTIME, 40, 40},	{CUPTI_KIND_DRIVER, 40, 40},
	{CUPTI_KIND_OVERHEAD, 48, 48},	{CUPTI_KIND_SYNC, 40, 48},
	{CUPTI_KIND_MEMORY2, 120, 120}, {77, 16, 16}, /* unknown */
};
#define NKINDS (sizeof(kinds) / sizeof(kinds[0]))

struct cupti cupti;
struct agent_gate *agent_gate;
static struct agent_gate gate;
static char *names[NAMES]; /* of functions; each ends with its memory */
static size_t sizes[BUFFER_BYTES / 8], nrecords, next;

uint64_t agent_now(void)
{
	return 1000;
}

bool agent_is_pid(long pid)
{
	(void)pid;
	return true;
}

void cupti_tape_buffer(uint8_t *records, size_t valid)
{
	(void)records;
	(void)valid;
}

void cupti_tape_clock(uint64_t before_ns, uint64_t cupti_ns, uint64_t after_ns)
{
	(void)before_ns;
	(void)cupti_ns;
	(void)after_ns;
}

void cupti_graphs_send(struct mxbpf_gpu_shared *g)
{
	(void)g;
}

/* Stands for mxbpf, which receives the records. Each name must end with a zero. */
void agent_hand_over(const struct mxbpf_agent_batch *b)
{
	const struct mxbpf_gpu_names *n = &gate.shared->gpu_names;
	uint32_t i;

	if (!b->ncalls || b->ncalls > MXBPF_AGENT_GPU_BATCH)
		abort();
	for (i = 0; i < b->ncalls; i++)
		if (b->gpu[i].name >= MXBPF_GPU_TEXTS ||
		    strnlen(n->texts + b->gpu[i].name, MXBPF_GPU_NAME_BYTES) >= MXBPF_GPU_NAME_BYTES)
			abort();
}

static int next_record(uint8_t *buffer, size_t valid, uint8_t **record)
{
	(void)valid;
	if (next == nrecords)
		return CUPTI_MAX_LIMIT_REACHED;
	*record = next ? *record + sizes[next - 1] : buffer;
	next++;
	return 0;
}

static int callback_name(uint32_t domain, uint32_t cbid, const char **name)
{
	*name = cbid % 7 < NAMES ? names[cbid % 7] : NULL;
	return domain == CUPTI_DOMAIN_DRIVER && cbid % 11 == 0;
}

static void open_cupti(void)
{
	static const size_t lengths[NAMES] = {0, 16, 130, MXBPF_GPU_NAME_BYTES - 1, 6000};
	size_t i;

	gate.shared = calloc(1, sizeof(*gate.shared));
	agent_gate = &gate;
	cupti.get_next_record = next_record;
	cupti.get_callback_name = callback_name;
	for (i = 0; i < NAMES; i++) {
		names[i] = malloc(lengths[i] + 1);
		if (!gate.shared || !names[i])
			abort();
		memset(names[i], 'a' + (int)i, lengths[i]);
		names[i][lengths[i]] = '\0';
	}
	memcpy(names[1], "cudaLaunch_v7000", 16);
	memcpy(names[2] + 120, "_v70001234", 10);
	memcpy(names[4] + 5990, "_v70001234", 10);
}

/* Copies records into a buffer. Each begins with its kind and a name, and has the next bytes of the input. */
static size_t put_records(uint8_t *to, const uint8_t *data, size_t size, bool later)
{
	size_t used = 0, bytes, some;
	uint64_t name;

	nrecords = next = 0;
	while (size > 2) {
		const unsigned k = data[0] % NKINDS;

		bytes = later ? kinds[k].later : kinds[k].bytes;
		if (used + bytes > BUFFER_BYTES)
			break;
		name = data[1] % (NAMES + 1) < NAMES ? (uintptr_t)names[data[1] % (NAMES + 1)] : 0;
		data += 2;
		size -= 2;
		some = size < bytes ? size : bytes;
		memset(to + used, 0xff, bytes);
		memcpy(to + used, data, some);
		memcpy(to + used, &kinds[k].kind, sizeof(kinds[k].kind));
		if (kinds[k].kind == CUPTI_KIND_KERNEL)
			memcpy(to + used + CUPTI_KERNEL_NAME, &name, sizeof(name));
		some = some < 24 ? some : 24; /* the rest of a record is the beginning of the next one, too */
		data += some;
		size -= some;
		sizes[nrecords++] = bytes;
		used += bytes;
	}
	return used;
}

/* CUPTI asks for more buffers than there are, and completes them. */
static void use_up_buffers(uint8_t *first, size_t valid)
{
	uint8_t *buffers[16];
	size_t bytes, max;
	unsigned i;

	for (i = 0; i < 16; i++)
		cupti_on_requested(&buffers[i], &bytes, &max);
	if (!cupti_has_buffers() || !cupti_oldest_buffer())
		abort();
	for (i = 0; i < 16; i++) {
		nrecords = next = 0;
		if (buffers[i] && buffers[i] != first)
			cupti_on_completed(NULL, 0, buffers[i], BUFFER_BYTES, i % 2 ? valid : 0);
	}
	cupti_name("a name");
	cupti_delivered();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t versions[] = {CUPTI_VERSION_MIN, CUPTI_VERSION_GRAPHS, CUPTI_VERSION_MEMORY,
					    CUPTI_VERSION_NULL_OK};
	struct mxbpf_gpu_shared *g;
	size_t bytes, max, valid;
	uint8_t *buffer;

	if (!agent_gate)
		open_cupti();
	if (!size)
		return 0;
	g = &gate.shared->gpu;
	if (g->texts_len > MXBPF_GPU_TEXTS / 2) { /* the texts of all inputs are together */
		memset(&gate.shared->gpu_names, 0, sizeof(gate.shared->gpu_names));
		memset(call_names, 0, sizeof(call_names));
		g->texts_len = 0;
	}
	g->version = versions[*data % 4];
	g->buffers_max = *data >> 4;
	cupti_on_requested(&buffer, &bytes, &max);
	if (!buffer || bytes != BUFFER_BYTES)
		abort();
	if (*data & 8)
		use_up_buffers(buffer, size);
	valid = put_records(buffer, data + 1, size - 1, g->version >= CUPTI_VERSION_GRAPHS);
	__asan_poison_memory_region(buffer + valid, BUFFER_BYTES - valid);
	cupti_on_completed(NULL, 0, buffer, BUFFER_BYTES, valid);
	__asan_unpoison_memory_region(buffer, BUFFER_BYTES);
	if (*data & 8) {
		cupti_trim();
		cupti_forget_buffers();
	}
	return 0;
}
