// SPDX-License-Identifier: Apache-2.0
/* Reads the shapes and types of a call's arrays from the text of its args_id. */
#include "feature/flops/arrays.h"

#include <stdlib.h>
#include <string.h>

/* Returns the product, or 0 if it does not fit into 64 bits. */
static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? 0 : product;
}

/* Reads a list of dimensions that starts at p. Returns the position of its end, or NULL. */
static const char *read_dims(const char *p, const char *end, struct flops_array *a)
{
	char *next;

	*a = (struct flops_array){.known = true, .size = 1};
	for (p++; p < end && *p != ']'; p = next + (*next == ',')) {
		uint64_t dim = strtoull(p, &next, 10);

		if (next == p || *p == '-' || a->ndim == FLOPS_DIMS_MAX) {
			a->known = false;
			return memchr(p, ']', (size_t)(end - p));
		}
		a->dims[a->ndim++] = dim;
		a->size = times(a->size, dim);
	}
	a->known &= a->size != 0;
	return p;
}

static const char unwanted[] = "\"unwanted\"";

/* Reads a word that stands instead of a shape. Returns the position of its last character, or NULL. */
static const char *read_word(const char *p, const char *end, struct flops_array *a)
{
	a->unwanted = (size_t)(end - p) >= strlen(unwanted) && !memcmp(p, unwanted, strlen(unwanted));
	return memchr(p + 1, '"', (size_t)(end - p - 1));
}

/* Reads a line of shapes. Returns false if it is malformed. strtoull() stops at the NUL or newline behind the text. */
static bool read_shapes(const char *text, size_t len, struct flops_arrays *to)
{
	const char *end = text + len, *p = text + 1;
	struct flops_array a;

	to->n = 0;
	if (!len || *text != '[')
		return false;
	for (; p && p < end && *p != ']'; p += *p == ',') {
		a = (struct flops_array){0};
		if (*p == '[')
			p = read_dims(p, end, &a);
		else if (*p == '"')
			p = read_word(p, end, &a);
		else
			return false;
		if (!p || p++ >= end)
			return false;
		if (to->n < FLOPS_ARRAYS_MAX)
			to->a[to->n] = a;
		to->n++;
	}
	return p && p < end;
}

static const struct type {
	const char *name; /* of MXNet or PyTorch */
	uint8_t bytes;
	enum flops_type type;
} types[] = {
	{"float32", 4, FLOPS_FLOAT32},		{"float", 4, FLOPS_FLOAT32},	 {"float16", 2, FLOPS_FLOAT16},
	{"c10::Half", 2, FLOPS_FLOAT16},	{"bfloat16", 2, FLOPS_BFLOAT16}, {"c10::BFloat16", 2, FLOPS_BFLOAT16},
	{"float64", 8, FLOPS_FLOAT64},		{"double", 8, FLOPS_FLOAT64},	 {"int64", 8, FLOPS_TYPE_OTHER},
	{"long int", 8, FLOPS_TYPE_OTHER},	{"int32", 4, FLOPS_TYPE_OTHER},	 {"int", 4, FLOPS_TYPE_OTHER},
	{"int8", 1, FLOPS_TYPE_OTHER},		{"uint8", 1, FLOPS_TYPE_OTHER},	 {"signed char", 1, FLOPS_TYPE_OTHER},
	{"unsigned char", 1, FLOPS_TYPE_OTHER}, {"bool", 1, FLOPS_TYPE_OTHER},
};

static bool ends_with(const char *text, size_t len, const char *with)
{
	return len > strlen(with) && !memcmp(text + len - strlen(with), with, strlen(with));
}

/* The shapes of sparse arrays do not say how many elements are stored. */
static void set_type(struct flops_array *a, const char *name, size_t len)
{
	size_t i;

	a->known &= !ends_with(name, len, " row_sparse") && !ends_with(name, len, " csr");
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strlen(types[i].name) == len && !memcmp(types[i].name, name, len))
			break;
	if (i == sizeof(types) / sizeof(types[0]) || !a->known)
		return;
	a->type = types[i].type;
	a->bytes = times(a->size, types[i].bytes);
}

static void read_types(const char *text, size_t len, struct flops_arrays *to)
{
	const char *end = text + len, *p = text + 1, *quote;
	size_t i;

	for (i = 0; i < to->n && i < FLOPS_ARRAYS_MAX && p < end && *p == '"'; i++, p = quote + 2) {
		quote = memchr(p + 1, '"', (size_t)(end - p - 1));
		if (!quote)
			return;
		set_type(&to->a[i], p + 1, (size_t)(quote - p - 1));
	}
}

/* Elements that an expanded tensor repeats are in memory once. */
static void read_strides(const char *text, size_t len, struct flops_arrays *to)
{
	struct flops_arrays strides;
	unsigned d;
	size_t i;

	if (!read_shapes(text, len, &strides))
		return;
	for (i = 0; i < to->n && i < strides.n && i < FLOPS_ARRAYS_MAX; i++)
		for (d = 0; strides.a[i].ndim == to->a[i].ndim && d < to->a[i].ndim; d++)
			if (!strides.a[i].dims[d])
				to->a[i].bytes /= to->a[i].dims[d];
}

/* The lines are: inputs, their types, their strides, outputs, their types. */
bool flops_arrays(const char *args, size_t len, struct flops_arrays *in, struct flops_arrays *out)
{
	const char *line[5], *end = args + len;
	size_t n[5], i;

	for (i = 0; i < 5; i++) {
		const char *eol = memchr(args, '\n', (size_t)(end - args));

		line[i] = args;
		n[i] = (size_t)((eol ? eol : end) - args);
		args = eol ? eol + 1 : end;
	}
	out->n = 0;
	if (!read_shapes(line[0], n[0], in) || (n[3] && !read_shapes(line[3], n[3], out)))
		return false;
	read_types(line[1], n[1], in);
	read_strides(line[2], n[2], in);
	read_types(line[4], n[4], out);
	return true;
}
