// SPDX-License-Identifier: Apache-2.0
/* Names, sizes and bandwidths of collectives. */
#include "feature/collective/collective.h"

#include <stdlib.h>
#include <string.h>

const char *const collective_backends[MXBPF_BACKENDS] = {
	[MXBPF_BACKEND_NONE] = "",
	[MXBPF_BACKEND_GLOO] = "gloo",
	[MXBPF_BACKEND_NCCL] = "nccl",
};

const char *const collective_ops[MXBPF_COLLECTIVE_OPS] = {
	[MXBPF_COLLECTIVE_OTHER] = "other",
	[MXBPF_COLLECTIVE_ALL_REDUCE] = "all_reduce",
	[MXBPF_COLLECTIVE_ALL_GATHER] = "all_gather",
	[MXBPF_COLLECTIVE_REDUCE_SCATTER] = "reduce_scatter",
	[MXBPF_COLLECTIVE_ALL_TO_ALL] = "all_to_all",
	[MXBPF_COLLECTIVE_BROADCAST] = "broadcast",
	[MXBPF_COLLECTIVE_REDUCE] = "reduce",
	[MXBPF_COLLECTIVE_GATHER] = "gather",
	[MXBPF_COLLECTIVE_SCATTER] = "scatter",
	[MXBPF_COLLECTIVE_BARRIER] = "barrier",
	[MXBPF_COLLECTIVE_SEND_RECV] = "send_recv",
	[MXBPF_COLLECTIVE_SEND] = "send",
	[MXBPF_COLLECTIVE_RECV] = "recv",
};

const char *collective_reduction(unsigned reduction)
{
	static const char *const words[] = {"sum", "product", "max", "min", "average"}; /* ncclRedOp_t */

	if (!reduction)
		return NULL;
	return reduction - 1 < sizeof(words) / sizeof(words[0]) ? words[reduction - 1] : "custom";
}

/* Beginnings of the names behind the backend, the longest of those with a common beginning first. */
static const struct {
	const char *call, *kernel; /* NULL: there is none */
	enum mxbpf_collective_op op;
} names[] = {
	{"all_reduce", "AllReduce", MXBPF_COLLECTIVE_ALL_REDUCE},
	{"allreduce", NULL, MXBPF_COLLECTIVE_ALL_REDUCE},
	{"sparse_all_reduce", NULL, MXBPF_COLLECTIVE_ALL_REDUCE},
	{"all_gather", "AllGather", MXBPF_COLLECTIVE_ALL_GATHER},
	{"_all_gather_base", NULL, MXBPF_COLLECTIVE_ALL_GATHER},
	{"reduce_scatter", "ReduceScatter", MXBPF_COLLECTIVE_REDUCE_SCATTER},
	{"_reduce_scatter_base", NULL, MXBPF_COLLECTIVE_REDUCE_SCATTER},
	{"all_to_all", "AlltoAll", MXBPF_COLLECTIVE_ALL_TO_ALL},
	{"broadcast", "Broadcast", MXBPF_COLLECTIVE_BROADCAST},
	{"_broadcast_oop", NULL, MXBPF_COLLECTIVE_BROADCAST},
	{"reduce", "Reduce", MXBPF_COLLECTIVE_REDUCE},
	{"_reduce_oop", NULL, MXBPF_COLLECTIVE_REDUCE},
	{"gather", NULL, MXBPF_COLLECTIVE_GATHER},
	{"scatter", NULL, MXBPF_COLLECTIVE_SCATTER},
	{"barrier", NULL, MXBPF_COLLECTIVE_BARRIER},
	{"send", "SendRecv", MXBPF_COLLECTIVE_SEND},
	{"recv", NULL, MXBPF_COLLECTIVE_RECV},
};

static const struct {
	const char *text;
	bool kernel;
	enum mxbpf_collective_backend backend;
} prefixes[] = {
	{"gloo:", false, MXBPF_BACKEND_GLOO},
	{"nccl:", false, MXBPF_BACKEND_NCCL},
	{"ncclDevKernel_", true, MXBPF_BACKEND_NCCL},
	{"ncclKernel_", true, MXBPF_BACKEND_NCCL},
};

static bool collective_ops_begins(const char *name, size_t len, const char *with)
{
	return with && strlen(with) <= len && !memcmp(name, with, strlen(with));
}

enum mxbpf_collective_op collective_op(const char *name, size_t len, bool kernel, uint8_t *backend)
{
	size_t i, n = 0;

	*backend = MXBPF_BACKEND_NONE;
	for (i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]) && !n; i++)
		if (prefixes[i].kernel == kernel && collective_ops_begins(name, len, prefixes[i].text)) {
			n = strlen(prefixes[i].text);
			*backend = prefixes[i].backend;
		}
	if (!n)
		return MXBPF_COLLECTIVE_OTHER;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (collective_ops_begins(name + n, len - n, kernel ? names[i].kernel : names[i].call))
			return *backend == MXBPF_BACKEND_NCCL && collective_is_apart(names[i].op)
				       ? MXBPF_COLLECTIVE_SEND_RECV
				       : names[i].op;
	return MXBPF_COLLECTIVE_OTHER;
}

bool collective_is_apart(unsigned op)
{
	return op == MXBPF_COLLECTIVE_SEND || op == MXBPF_COLLECTIVE_RECV;
}

bool collective_waits(unsigned op)
{
	return op == MXBPF_COLLECTIVE_ALL_REDUCE || op == MXBPF_COLLECTIVE_ALL_GATHER ||
	       op == MXBPF_COLLECTIVE_REDUCE_SCATTER || op == MXBPF_COLLECTIVE_ALL_TO_ALL ||
	       op == MXBPF_COLLECTIVE_BARRIER;
}

uint64_t collective_bytes(unsigned op, uint64_t bytes, uint32_t members)
{
	uint64_t all;

	if (bytes == MXBPF_COLLECTIVE_UNSIZED || op == MXBPF_COLLECTIVE_BARRIER)
		return MXBPF_COLLECTIVE_UNSIZED;
	if (op != MXBPF_COLLECTIVE_ALL_GATHER && op != MXBPF_COLLECTIVE_GATHER)
		return bytes;
	return !members || __builtin_mul_overflow(bytes, members, &all) ? MXBPF_COLLECTIVE_UNSIZED : all;
}

double collective_bus_factor(unsigned op, uint32_t members)
{
	const double n = members;

	switch (op) {
	case MXBPF_COLLECTIVE_ALL_REDUCE:
		return members ? 2 * (n - 1) / n : 0;
	case MXBPF_COLLECTIVE_ALL_GATHER:
	case MXBPF_COLLECTIVE_REDUCE_SCATTER:
	case MXBPF_COLLECTIVE_ALL_TO_ALL:
	case MXBPF_COLLECTIVE_GATHER:
	case MXBPF_COLLECTIVE_SCATTER:
		return members ? (n - 1) / n : 0;
	case MXBPF_COLLECTIVE_BARRIER:
		return 0;
	default:
		return 1;
	}
}

/* ---- arguments */

/* Bytes of an element, by the types of PyTorch. */
static const struct {
	const char *type;
	uint64_t bytes;
} types[] = {
	{"float", 4},
	{"c10::Half", 2},
	{"c10::BFloat16", 2},
	{"double", 8},
	{"long int", 8},
	{"int", 4},
	{"short int", 2},
	{"unsigned char", 1},
	{"signed char", 1},
	{"bool", 1},
	{"long unsigned int", 8},
	{"unsigned int", 4},
	{"short unsigned int", 2},
	{"c10::complex<float>", 8},
	{"c10::complex<double>", 16},
	{"c10::Float8_e4m3fn", 1},
	{"c10::Float8_e5m2", 1},
};

/* Reads the next word of the line of types, which has the length *len. Returns the place behind it, or NULL. */
static const char *next_type(const char *p, const char *end, uint64_t *bytes)
{
	const char *from = p < end ? memchr(p, '"', (size_t)(end - p)) : NULL;
	const char *to = from ? memchr(from + 1, '"', (size_t)(end - from - 1)) : NULL;
	size_t i;

	*bytes = 0;
	for (i = 0; to && i < sizeof(types) / sizeof(types[0]); i++)
		if (strlen(types[i].type) == (size_t)(to - from - 1) &&
		    collective_ops_begins(from + 1, (size_t)(to - from - 1), types[i].type))
			*bytes = types[i].bytes;
	return to ? to + 1 : NULL;
}

/* Number of elements of the shape that begins at p; *next: behind it. 0: none, or not known. */
static uint64_t elements(const char *p, const char *end, const char **next)
{
	uint64_t n = 1, dim;
	char *after;

	for (p++; p < end && *p != ']'; p = after + (*after == ',')) {
		dim = strtoull(p, &after, 10);
		if (after == p || *p == '-' || __builtin_mul_overflow(n, dim, &n)) {
			*next = NULL;
			return 0;
		}
	}
	*next = p < end ? p + 1 : NULL;
	return n;
}

/* The text has a line of shapes, `[[65536],[]]`, and one of types, `["float","Scalar"]`. Other arguments count nothing.
 */
uint64_t collective_args_bytes(const char *args, size_t len)
{
	const char *line = args ? memchr(args, '\n', len) : NULL, *p = args, *type = line;
	const char *next, *end;
	uint64_t sum = 0, n, each;
	bool any = false;

	if (!line || *p != '[')
		return MXBPF_COLLECTIVE_UNSIZED;
	end = args + len;
	for (p++; p < line && *p == '[';) {
		if (p[1] == '[')
			return MXBPF_COLLECTIVE_UNSIZED; /* a list, whose types are not told */
		n = elements(p, line, &next);
		type = next_type(type, end, &each);
		if (!next || !type)
			return MXBPF_COLLECTIVE_UNSIZED;
		p = next + (*next == ',');
		if (!each)
			continue;
		any = true;
		if (__builtin_mul_overflow(n, each, &n) || __builtin_add_overflow(sum, n, &sum))
			return MXBPF_COLLECTIVE_UNSIZED;
	}
	return any && *p == ']' ? sum : MXBPF_COLLECTIVE_UNSIZED;
}
