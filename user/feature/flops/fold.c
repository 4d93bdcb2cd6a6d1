// SPDX-License-Identifier: Apache-2.0
/*
 * Estimates floating-point operations of operators that compute matrix products, from the shapes of their inputs and
 * outputs. A multiplication and an addition count as two operations. A bias is not counted. There is no estimate if the
 * shapes are not enough, or do not fit together.
 */
#include "feature/flops/arrays.h"
#include "feature/flops/flops.h"
#include "model/feature.h"

#include <stdlib.h>
#include <string.h>

/* Returns the product, or 0 if it does not fit into 64 bits. */
static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? 0 : product;
}

/* Returns the number of multiplications of a forward operator, or 0 if the shapes do not fit. */
typedef uint64_t (*products_fn)(const struct flops_array *data, const struct flops_array *weight,
				const struct flops_array *out);

/* Each output element is a sum over one filter. This holds for any layout, groups and strides. */
static uint64_t convolution(const struct flops_array *data, const struct flops_array *weight,
			    const struct flops_array *out)
{
	unsigned n = weight->ndim;

	if (n < 3 || n != data->ndim || n != out->ndim ||
	    (out->dims[1] != weight->dims[0] && out->dims[n - 1] != weight->dims[0]))
		return 0;
	return times(out->size, weight->size / weight->dims[0]);
}

/* The reverse of a convolution: each input element is multiplied with one filter. */
static uint64_t deconvolution(const struct flops_array *data, const struct flops_array *weight,
			      const struct flops_array *out)
{
	return convolution(out, weight, data);
}

static uint64_t dense(const struct flops_array *data, const struct flops_array *weight, const struct flops_array *out)
{
	if (weight->ndim != 2 || data->size % weight->dims[1] || out->size % weight->dims[0] ||
	    data->size / weight->dims[1] != out->size / weight->dims[0])
		return 0;
	return times(out->size, weight->dims[1]);
}

/*
 * Returns the length of the dimension that both factors share, or 0. For (n x k) times (k x m) the sizes give
 * nk * km / nm, which is k squared. So it does not matter which factor is transposed.
 */
static uint64_t shared(uint64_t a, uint64_t b, uint64_t out)
{
	uint64_t square = times(a, b) / out, root = 0, bit;

	if (times(a, b) % out)
		return 0;
	for (bit = 1ull << 31; bit; bit >>= 1)
		if ((root + bit) * (root + bit) <= square)
			root += bit;
	return root * root == square ? root : 0;
}

static uint64_t dot(const struct flops_array *a, const struct flops_array *b, const struct flops_array *out)
{
	return times(out->size, a->ndim && b->ndim ? shared(a->size, b->size, out->size) : 0);
}

static uint64_t batch_dot(const struct flops_array *a, const struct flops_array *b, const struct flops_array *out)
{
	uint64_t batch = out->ndim == 3 ? out->dims[0] : 0;

	if (!batch || a->ndim != 3 || b->ndim != 3 || a->dims[0] != batch || b->dims[0] != batch)
		return 0;
	return times(out->size, shared(a->size / batch, b->size / batch, out->size / batch));
}

/* PyTorch's products of matrices, whose outputs are not known. Strides say what is transposed, shapes do not. */
static uint64_t matrix(const struct flops_array *a, const struct flops_array *b, const struct flops_array *out)
{
	const bool batched = a->ndim == 3;

	if (a->ndim != b->ndim || a->ndim < 2 || a->ndim > 3 || (batched && a->dims[0] != b->dims[0]) ||
	    a->dims[batched + 1] != b->dims[batched])
		return 0;
	return times(a->size, b->dims[batched + 1]);
}

static uint64_t linear(const struct flops_array *a, const struct flops_array *b, const struct flops_array *out)
{
	return a->ndim && b->ndim == 2 && a->dims[a->ndim - 1] == b->dims[1] ? times(a->size, b->dims[0]) : 0;
}

/*
 * The inputs of a backward operator are the gradient of the output, then the inputs of the forward operator. The
 * gradient of each of the two factors takes as many operations as the forward operator, if the call computes it.
 */
static const struct product {
	const char *name;
	products_fn forward;
	bool backward;
	bool inputs;	/* the output is not needed, and not known */
	unsigned first; /* input that is the first factor */
} products[] = {
	{"Convolution", convolution, .first = 0},
	{"Deconvolution", deconvolution, .first = 0},
	{"FullyConnected", dense, .first = 0},
	{"dot", dot, .first = 0},
	{"batch_dot", batch_dot, .first = 0},
	{"_backward_Convolution", convolution, .backward = true, .first = 1},
	{"_backward_Deconvolution", deconvolution, .backward = true, .first = 1},
	{"_backward_FullyConnected", dense, .backward = true, .first = 1},
	{"_backward_dot", dot, .backward = true, .first = 1},
	{"_backward_batch_dot", batch_dot, .backward = true, .first = 1},
	{"aten::mm", matrix, .inputs = true},
	{"aten::bmm", matrix, .inputs = true},
	{"aten::addmm", matrix, .inputs = true, .first = 1},
	{"aten::baddbmm", matrix, .inputs = true, .first = 1},
	{"aten::linear", linear, .inputs = true},
};

static const struct product *flops_find(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < sizeof(products) / sizeof(products[0]); i++)
		if (strlen(products[i].name) == len && !memcmp(products[i].name, name, len))
			return &products[i];
	return NULL;
}

enum flops_estimate flops_estimate(const char *name, size_t name_len, const char *args, size_t len, uint64_t *flops)
{
	const struct product *p = flops_find(name, name_len);
	const struct flops_array *data, *weight, *made;
	struct flops_arrays in, out;
	uint64_t each, wanted = 1;

	if (!p)
		return FLOPS_OTHER;
	if (!args || !flops_arrays(args, len, &in, &out) || in.n < p->first + 2 || (!out.n && !p->inputs))
		return FLOPS_UNKNOWN;
	data = &in.a[p->first];
	weight = data + 1;
	made = p->backward ? &in.a[0] : p->inputs ? data : &out.a[0];
	if (!data->known || !weight->known || !made->known)
		return FLOPS_UNKNOWN;
	if (p->backward)
		wanted = !out.a[0].unwanted + (out.n > 1 && !out.a[1].unwanted);
	each = p->forward(data, weight, made);
	*flops = times(times(each, 2), wanted);
	return each && (*flops || !wanted) ? FLOPS_KNOWN : FLOPS_UNKNOWN;
}

static enum flops_estimate estimate_of(const struct mdl *m, uint64_t name_id, uint64_t args_id, uint64_t *flops)
{
	size_t name_len, len = 0;
	const char *name = mdl_name(m, name_id, &name_len);
	const char *args = args_id ? mdl_text(m, MXBPF_NAME_ARGS, args_id, &len) : NULL;

	return flops_estimate(name, name_len, args, len, flops);
}

struct mdl_flops flops_of(const struct mdl *m, const struct mxbpf_span *s)
{
	struct mdl_flops f = {.ns = s->dur_ns};
	enum flops_estimate known = estimate_of(m, s->name_id, s->args_id, &f.ops);

	f.calls = known == FLOPS_KNOWN;
	f.unknown = known == FLOPS_UNKNOWN;
	return f;
}

void flops_add(const struct mdl *m, struct mdl_flops *to, const struct mdl_row *from)
{
	uint64_t each, all;
	enum flops_estimate known = estimate_of(m, from->name_id, from->args_id, &each);

	if (known == FLOPS_UNKNOWN)
		add_sat(&to->unknown, from->count);
	if (known != FLOPS_KNOWN)
		return;
	if (__builtin_mul_overflow(each, from->count, &all))
		all = UINT64_MAX;
	add_sat(&to->ops, all);
	add_sat(&to->calls, from->count);
	add_sat(&to->ns, from->total_ns);
}

const struct mdl_feature feature_flops = {.trace = &flops_trace};
