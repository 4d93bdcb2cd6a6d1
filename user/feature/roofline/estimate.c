// SPDX-License-Identifier: Apache-2.0
/* What the shapes of a call make necessary, and what calls reached of what their device can. */
#include "feature/flops/flops.h"
#include "feature/roofline/roofline.h"

#include <math.h>
#include <string.h>

/* How large the outputs of a call are whose text does not have them. */
enum made {
	MADE_KNOWN,   /* the text has them, as that of MXNet */
	MADE_FIRST,   /* as the first input */
	MADE_LARGEST, /* at least as the largest input: inputs are expanded */
	MADE_NOTHING, /* much less than the inputs */
	MADE_PRODUCT, /* of the first two matrices */
	MADE_SUM,     /* of the second and third matrix */
	MADE_DENSE,   /* the first input times the transposed second one */
};

/*
 * Operators that read all of their inputs and write all of their outputs. An operator that may read a part of an input
 * (an embedding, a slice) must not stand here, because its bytes would be no lower bound.
 */
static const struct moves {
	const char *name;
	enum made made;
	unsigned inputs; /* tensors; a further one is the output, which the caller has given (out=) */
} moves[] = {
	{"Convolution", MADE_KNOWN, 0},
	{"Deconvolution", MADE_KNOWN, 0},
	{"FullyConnected", MADE_KNOWN, 0},
	{"dot", MADE_KNOWN, 0},
	{"batch_dot", MADE_KNOWN, 0},
	{"Activation", MADE_KNOWN, 0},
	{"LeakyReLU", MADE_KNOWN, 0},
	{"BatchNorm", MADE_KNOWN, 0},
	{"LayerNorm", MADE_KNOWN, 0},
	{"softmax", MADE_KNOWN, 0},
	{"log_softmax", MADE_KNOWN, 0},
	{"elemwise_add", MADE_KNOWN, 0},
	{"elemwise_mul", MADE_KNOWN, 0},
	{"broadcast_add", MADE_KNOWN, 0},
	{"broadcast_mul", MADE_KNOWN, 0},
	{"_plus_scalar", MADE_KNOWN, 0},
	{"_mul_scalar", MADE_KNOWN, 0},
	{"transpose", MADE_KNOWN, 0},
	{"aten::mm", MADE_PRODUCT, 2},
	{"aten::bmm", MADE_PRODUCT, 2},
	{"aten::addmm", MADE_SUM, 3},
	{"aten::baddbmm", MADE_SUM, 3},
	{"aten::linear", MADE_DENSE, 3},
	{"aten::add", MADE_LARGEST, 2},
	{"aten::sub", MADE_LARGEST, 2},
	{"aten::mul", MADE_LARGEST, 2},
	{"aten::div", MADE_LARGEST, 2},
	{"aten::add_", MADE_FIRST, 2},
	{"aten::sub_", MADE_FIRST, 2},
	{"aten::mul_", MADE_FIRST, 2},
	{"aten::div_", MADE_FIRST, 2},
	{"aten::addcmul_", MADE_FIRST, 3},
	{"aten::addcdiv_", MADE_FIRST, 3},
	{"aten::relu", MADE_FIRST, 1},
	{"aten::clamp_min", MADE_FIRST, 1},
	{"aten::gelu", MADE_FIRST, 1},
	{"aten::silu", MADE_FIRST, 1},
	{"aten::sigmoid", MADE_FIRST, 1},
	{"aten::tanh", MADE_FIRST, 1},
	{"aten::exp", MADE_FIRST, 1},
	{"aten::sqrt", MADE_FIRST, 1},
	{"aten::neg", MADE_FIRST, 1},
	{"aten::threshold_backward", MADE_FIRST, 2},
	{"aten::gelu_backward", MADE_FIRST, 2},
	{"aten::silu_backward", MADE_FIRST, 2},
	{"aten::sigmoid_backward", MADE_FIRST, 2},
	{"aten::tanh_backward", MADE_FIRST, 2},
	{"aten::_softmax", MADE_FIRST, 1},
	{"aten::_log_softmax", MADE_FIRST, 1},
	{"aten::native_layer_norm", MADE_FIRST, 3},
	{"aten::native_batch_norm", MADE_FIRST, 5},
	{"aten::cudnn_batch_norm", MADE_FIRST, 5},
	{"aten::sum", MADE_NOTHING, 1},
	{"aten::mean", MADE_NOTHING, 1},
	{"aten::linalg_vector_norm", MADE_NOTHING, 1},
};

static const struct moves *roofline_find(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < sizeof(moves) / sizeof(moves[0]); i++)
		if (strlen(moves[i].name) == len && !memcmp(moves[i].name, name, len))
			return &moves[i];
	return NULL;
}

/* Returns the bytes of arrays. Those of unknown shape or type, and those that are not read here, count as none. */
static double bytes_of(const struct flops_arrays *all)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < all->n && i < FLOPS_ARRAYS_MAX; i++)
		if (all->a[i].known && all->a[i].ndim)
			sum += (double)all->a[i].bytes;
	return sum;
}

/* Bytes of a matrix product: `rows` and `columns` are dimensions of its factors. */
static double product_bytes(const struct flops_array *a, const struct flops_array *b, bool transposed)
{
	const uint64_t inner = a->ndim ? a->dims[a->ndim - 1] : 0;
	const uint64_t columns = b->ndim < 2 ? 0 : transposed ? b->dims[0] : b->dims[b->ndim - 1];

	if (!a->known || !inner || !a->size)
		return 0;
	/* Of the whole array, also of one with strides of 0, because the product has each of its elements. */
	return (double)a->size / (double)inner * (double)columns *
	       (a->type == FLOPS_FLOAT64      ? 8
		: a->type == FLOPS_FLOAT32    ? 4
		: a->type == FLOPS_TYPE_OTHER ? 0
					      : 2);
}

static double largest(const struct flops_arrays *in)
{
	double most = 0;
	size_t i;

	for (i = 0; i < in->n && i < FLOPS_ARRAYS_MAX; i++)
		if (in->a[i].known && in->a[i].ndim && (double)in->a[i].bytes > most)
			most = (double)in->a[i].bytes;
	return most;
}

/* The array that a sum adds to is not read if its factor is 0. */
static double read_bytes(enum made made, const struct flops_arrays *in)
{
	const bool spared = made == MADE_SUM && in->n && in->a[0].known && in->a[0].ndim;

	return bytes_of(in) - (spared ? (double)in->a[0].bytes : 0);
}

static bool is_given(const struct moves *by, const struct flops_arrays *in)
{
	unsigned n = 0;
	size_t i;

	for (i = 0; i < in->n && i < FLOPS_ARRAYS_MAX; i++)
		n += in->a[i].ndim > 0;
	return by->made != MADE_KNOWN && n > by->inputs;
}

static double made_bytes(enum made made, const struct flops_arrays *in, const struct flops_arrays *out)
{
	switch (made) {
	case MADE_KNOWN:
		return bytes_of(out);
	case MADE_FIRST:
		return in->n && in->a[0].known && in->a[0].ndim ? (double)in->a[0].bytes : 0;
	case MADE_LARGEST:
		return largest(in);
	case MADE_PRODUCT:
		return in->n > 1 ? product_bytes(&in->a[0], &in->a[1], false) : 0;
	case MADE_SUM:
		return in->n > 2 ? product_bytes(&in->a[1], &in->a[2], false) : 0;
	case MADE_DENSE:
		return in->n > 1 ? product_bytes(&in->a[0], &in->a[1], true) : 0;
	case MADE_NOTHING:
		break;
	}
	return 0;
}

bool roofline_need(const char *name, size_t name_len, const char *args, size_t len, struct roofline_need *need)
{
	const struct moves *by = roofline_find(name, name_len);
	struct flops_arrays in, out;
	enum flops_estimate known;
	double bytes = 0;

	*need = (struct roofline_need){.flops = 0};
	if (!args || !flops_arrays(args, len, &in, &out))
		return false;
	known = flops_estimate(name, name_len, args, len, &need->flops);
	if (known == FLOPS_UNKNOWN)
		return false;
	if (by)
		bytes = read_bytes(by->made, &in) + (is_given(by, &in) ? 0 : made_bytes(by->made, &in, &out));
	need->bytes = bytes < 1e18 ? (uint64_t)bytes : 0;
	need->type = in.n ? in.a[0].type : FLOPS_TYPE_OTHER;
	return (known == FLOPS_KNOWN && need->flops) || need->bytes;
}

/* ---- results */

#define BOUND_LEAST 0.5	  /* of a peak, from which on an operator is bound by it */
#define SMALL_NS    10000 /* kernels that are shorter are small */

/* Whether float32 is computed by tensor cores is not known. It is, if it is faster than what other units can do. */
static double peak_of(const struct roofline_peaks *p, enum flops_type type, double reached)
{
	return type == FLOPS_FLOAT32 && reached > p->flops[type] && p->tf32 ? p->tf32 : p->flops[type];
}

static enum roofline_bound bound_of(const struct roofline_row *r, const struct roofline_result *o)
{
	const double flops = isnan(o->of_flops) ? 0 : o->of_flops, bytes = isnan(o->of_bytes) ? 0 : o->of_bytes;

	if (flops >= BOUND_LEAST && flops >= bytes)
		return ROOFLINE_COMPUTE;
	if (bytes >= BOUND_LEAST)
		return ROOFLINE_MEMORY;
	if (isnan(o->of_bytes) || (o->flops > 0 && isnan(o->of_flops)))
		return ROOFLINE_UNKNOWN;
	return r->total.kernels && r->total.gpu_ns / r->total.kernels < SMALL_NS ? ROOFLINE_SMALL : ROOFLINE_NEITHER;
}

struct roofline_result roofline_of(const struct roofline_row *r, const struct roofline_need *need,
				   const struct roofline_peaks *p)
{
	struct roofline_result o = {.of_flops = NAN, .of_bytes = NAN, .intensity = NAN};
	const double seconds = (double)r->total.gpu_ns / 1e9;
	double peak;

	if (seconds <= 0)
		return o;
	o.flops = (double)need->flops * (double)r->calls / seconds;
	o.bytes = (double)need->bytes * (double)r->calls / seconds;
	peak = peak_of(p, need->type, o.flops);
	if (need->flops && peak > 0)
		o.of_flops = o.flops / peak;
	if (need->bytes && p->bytes > 0)
		o.of_bytes = o.bytes / p->bytes;
	if (need->flops && need->bytes)
		o.intensity = (double)need->flops / (double)need->bytes;
	o.bound = bound_of(r, &o);
	return o;
}
