// SPDX-License-Identifier: Apache-2.0
/*
 * Writes records as CUPTI does. The offsets have been the same since CUDA 11.0, and each version only appends fields.
 * abi.txt has them from CUPTI's headers. The tail behind the known fields is poisoned, so that a client that reads it
 * finds nonsense.
 */
#include "collect.h"
#include "replay.h"

#define POISON 0xa5

static const struct {
	uint32_t kind, since, bytes;
} sizes[] = {
	/* Newest first; the first row that is not newer than the library counts. */
	{KIND_KERNEL, 130400, 248}, {KIND_KERNEL, 130300, 232}, {KIND_KERNEL, 130100, 224}, {KIND_KERNEL, 130000, 216},
	{KIND_KERNEL, 19, 208}, /* CUDA 12.0 and 12.1 have these, too, but call themselves 18 as CUDA 11.8 does */
	{KIND_KERNEL, 18, 200},	    {KIND_KERNEL, 17, 176},	{KIND_KERNEL, 15, 168},	    {KIND_KERNEL, 0, 160},
	{KIND_COPY, 130400, 112},   {KIND_COPY, 26, 96},	{KIND_COPY, 17, 88},	    {KIND_COPY, 14, 80},
	{KIND_COPY, 0, 72},	    {KIND_PEER, 17, 96},	{KIND_PEER, 14, 88},	    {KIND_PEER, 0, 80},
	{KIND_SET, 130400, 104},    {KIND_SET, 17, 88},		{KIND_SET, 14, 80},	    {KIND_SET, 0, 72},
	{KIND_RUNTIME, 0, 40},	    {KIND_DRIVER, 0, 40},	{KIND_SYNC, 26, 56},	    {KIND_SYNC, 0, 40},
	{KIND_OVERHEAD, 22, 56},    {KIND_OVERHEAD, 21, 48},	{KIND_OVERHEAD, 0, 40},	    {KIND_GRAPH, 21, 56},
	{KIND_GRAPH, 0, 48},	    {KIND_DEVICE, 130200, 192}, {KIND_DEVICE, 20, 184},	    {KIND_DEVICE, 17, 176},
	{KIND_DEVICE, 0, 152},	    {KIND_MEMORY, 24, 128},	{KIND_MEMORY, 17, 120},
};

#define API_OF_GRAPHS 14 /* first API version whose copies and sets have the number of their graph */

/* End of the fields that all versions have. */
static const struct {
	uint32_t kind, bytes;
} known[] = {
	{KIND_KERNEL, 160}, {KIND_COPY, 76},   {KIND_PEER, 84},	   {KIND_SET, 76},
	{KIND_RUNTIME, 40}, {KIND_DRIVER, 40}, {KIND_SYNC, 40},	   {KIND_OVERHEAD, 40},
	{KIND_GRAPH, 40},   {KIND_DEVICE, 8},  {KIND_MEMORY, 120},
};

DOUBLE_EXPORT size_t double_record_bytes(uint32_t kind, uint32_t api_version)
{
	return record_bytes(kind, api_version);
}

size_t record_bytes(uint32_t kind, uint32_t api_version)
{
	size_t i;

	if (replay_on())
		return replay_bytes(kind);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (sizes[i].kind == kind && sizes[i].since <= api_version)
			return sizes[i].bytes;
	return 0;
}

static void put4(uint8_t *r, size_t off, uint32_t value)
{
	memcpy(r + off, &value, 4);
}

static void put8(uint8_t *r, size_t off, uint64_t value)
{
	memcpy(r + off, &value, 8);
}

static void clear(uint8_t *r, uint32_t kind)
{
	size_t i, n = 4, bytes = record_bytes(kind, version);

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].kind == kind)
			n = known[i].bytes < bytes ? known[i].bytes : bytes;
	memset(r, 0, n);
	memset(r + n, POISON, bytes - n);
	put4(r, 0, kind);
}

static void record_kernel(uint8_t *r, const struct double_op *op, const char *name)
{
	uint16_t registers = (uint16_t)op->registers;
	unsigned i;

	memcpy(r + 6, &registers, 2);
	memcpy(r + 32, r + 24, 8); /* completed: the end, because no kernel launches others */
	put4(r, 40, op->device);
	put4(r, 44, op->context);
	put4(r, 48, op->stream);
	for (i = 0; i < 3; i++) {
		put4(r, 52 + 4 * i, op->grid[i]);
		put4(r, 64 + 4 * i, op->block[i]);
	}
	put4(r, 76, op->shared);
	put4(r, 80, op->dynamic);
	put4(r, 92, op->correlation);
	put8(r, 96, op->correlation); /* gridId */
	put8(r, 104, (uintptr_t)name);
	put8(r, 144, op->node);
	put4(r, 156, op->graph);
}

static void record_copy(uint8_t *r, const struct double_op *op)
{
	r[4] = op->copy;
	r[5] = op->from;
	r[6] = op->to;
	r[7] = op->async;
	put8(r, 8, op->bytes);
	put4(r, 32, op->device);
	put4(r, 36, op->context);
	put4(r, 40, op->stream);
	if (op->kind == KIND_PEER) {
		put4(r, 44, op->device);
		put4(r, 48, op->context);
		put4(r, 52, op->to_device);
		put4(r, 56, op->context);
		put4(r, 60, op->correlation);
		put8(r, 72, op->node);
		if (version >= API_OF_GRAPHS)
			put4(r, 80, op->graph);
		return;
	}
	put4(r, 44, op->correlation);
	put8(r, 64, op->node);
	if (version >= API_OF_GRAPHS)
		put4(r, 72, op->graph);
}

static void record_set(uint8_t *r, const struct double_op *op)
{
	uint16_t memory = op->to;

	put4(r, 4, op->value);
	put8(r, 8, op->bytes);
	put4(r, 32, op->device);
	put4(r, 36, op->context);
	put4(r, 40, op->stream);
	put4(r, 44, op->correlation);
	memcpy(r + 50, &memory, 2);
	put8(r, 64, op->node);
	if (version >= API_OF_GRAPHS)
		put4(r, 72, op->graph);
}

static void record_sync(uint8_t *r, const struct double_op *op)
{
	put4(r, 4, op->type);
	put4(r, 24, op->correlation);
	put4(r, 28, op->context);
	put4(r, 32, op->stream);
	put4(r, 36, op->event);
}

/* The node of the operation is the address, and its type says whether memory is allocated (1) or released (2). */
static void record_memory(uint8_t *r, const struct double_op *op, uint64_t at)
{
	put4(r, 4, op->type);
	put4(r, 8, op->to);
	put4(r, 12, op->correlation);
	put8(r, 16, op->node);
	put8(r, 24, op->bytes);
	put8(r, 32, at);
	put4(r, 48, (uint32_t)getpid());
	put4(r, 52, op->device);
	put4(r, 56, op->context);
	put4(r, 60, op->stream);
	put4(r, 72, op->async);
	put4(r, 80, op->async); /* a pool of this process */
	put8(r, 104, op->async ? op->value : 0);
	put8(r, 112, op->async ? op->value : 0);
}

static void record_graph(uint8_t *r, const struct double_op *op)
{
	put4(r, 4, op->correlation);
	put4(r, 24, op->device);
	put4(r, 28, op->graph);
	put4(r, 32, op->context);
	put4(r, 36, op->stream);
}

void record_op(uint8_t *r, const struct double_op *op, const char *name, uint64_t start, uint64_t end)
{
	bool early = op->kind == KIND_SYNC || op->kind == KIND_GRAPH; /* their times lie before the other fields */

	clear(r, op->kind);
	if (op->kind == KIND_MEMORY) {
		record_memory(r, op, start);
		return;
	}
	put8(r, early ? 8 : 16, start);
	put8(r, early ? 16 : 24, end);
	switch (op->kind) {
	case KIND_KERNEL:
		record_kernel(r, op, name);
		break;
	case KIND_COPY:
	case KIND_PEER:
		record_copy(r, op);
		break;
	case KIND_SET:
		record_set(r, op);
		break;
	case KIND_SYNC:
		record_sync(r, op);
		break;
	case KIND_GRAPH:
		record_graph(r, op);
		break;
	}
}

void record_call(uint8_t *r, const struct double_call *call, uint32_t pid, uint32_t tid, uint64_t start, uint64_t end)
{
	clear(r, call->domain == DOUBLE_RUNTIME ? KIND_RUNTIME : KIND_DRIVER);
	put4(r, 4, call->cbid);
	put8(r, 8, start);
	put8(r, 16, end);
	put4(r, 24, pid);
	put4(r, 28, tid);
	put4(r, 32, call->correlation);
	put4(r, 36, (uint32_t)call->result);
}

void record_overhead(uint8_t *r, uint32_t overhead, uint32_t pid, uint64_t start, uint64_t end)
{
	clear(r, KIND_OVERHEAD);
	put4(r, 4, overhead);
	put4(r, 8, 1); /* CUPTI_ACTIVITY_OBJECT_PROCESS */
	put4(r, 12, pid);
	put8(r, 24, start);
	put8(r, 32, end);
}

void record_device(uint8_t *r, uint32_t device)
{
	clear(r, KIND_DEVICE);
}
