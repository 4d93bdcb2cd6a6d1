/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes and types of a call's arrays. */
#ifndef FEATURE_FLOPS_ARRAYS_H
#define FEATURE_FLOPS_ARRAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FLOPS_ARRAYS_MAX 8 /* inputs, and outputs, that are read */
#define FLOPS_DIMS_MAX	 8

enum flops_type {
	FLOPS_TYPE_OTHER,
	FLOPS_FLOAT64,
	FLOPS_FLOAT32,
	FLOPS_FLOAT16,
	FLOPS_BFLOAT16,
	FLOPS_TYPES,
};

struct flops_array {
	bool known;    /* the shape is complete, and all elements are stored */
	bool unwanted; /* an output that the call did not compute */
	unsigned ndim; /* 0: a number */
	uint64_t dims[FLOPS_DIMS_MAX];
	uint64_t size;
	uint64_t bytes; /* in memory; elements that strides of 0 repeat count once. 0: the type is not known */
	enum flops_type type;
};

struct flops_arrays {
	size_t n; /* of all arrays, which can be more than FLOPS_ARRAYS_MAX */
	struct flops_array a[FLOPS_ARRAYS_MAX];
};

/* Returns false if the text is malformed. PyTorch's calls have no outputs. */
bool flops_arrays(const char *args, size_t len, struct flops_arrays *in, struct flops_arrays *out);

#endif
