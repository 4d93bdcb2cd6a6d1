// SPDX-License-Identifier: Apache-2.0
/*
 * Estimates floating-point operations of operators that compute matrix products, from the shapes of their inputs and
 * outputs. A multiplication and an addition count as two operations. A bias is not counted. There is no estimate if the
 * shapes are not enough, or do not fit together.
 */
#include "feature/flops/flops.h"
#include "model/feature.h"

#include <stdlib.h>
#include <string.h>

#define ARRAYS_MAX 4 /* inputs, and outputs, that are read; no formula needs more */
#define DIMS_MAX   8

struct array {
	bool known;    /* the shape is complete, and all elements are stored */
	bool unwanted; /* an output that the call did not compute */
	unsigned ndim;
	uint64_t dims[DIMS_MAX];
	uint64_t size;
};

struct arrays {
	size_t n; /* of all arrays, which can be more than ARRAYS_MAX */
	struct array a[ARRAYS_MAX];
};

/* Returns the product, or 0 if it does not fit into 64 bits. */
static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? 0 : product;
}

/* Reads a list of dimensions that starts at p. Returns the position of its end, or NULL. */
static const char *read_dims(const char *p, const char *end, struct array *a)
{
	char *next;

	*a = (struct array){.known = true, .size = 1};
	for (p++; p < end && *p != ']'; p = next + (*next == ',')) {
		uint64_t dim = strtoull(p, &next, 10);

		if (next == p || *p == '-' || a->ndim == DIMS_MAX) {
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
static const char *read_word(const char *p, const char *end, struct array *a)
{
	a->unwanted = (size_t)(end - p) >= strlen(unwanted) && !memcmp(p, unwanted, strlen(unwanted));
	return memchr(p + 1, '"', (size_t)(end - p - 1));
}

/* Reads a line of shapes. Returns false if it is malformed. strtoull() stops at the NUL or newline behind the text. */
static bool read_shapes(const char *text, size_t len, struct arrays *to)
{
	const char *end = text + len, *p = text + 1;
	struct array a;

	to->n = 0;
	if (!len || *text != '[')
		return false;
	for (; p && p < end && *p != ']'; p += *p == ',') {
		a = (struct array){0};
		if (*p == '[')
			p = read_dims(p, end, &a);
		else if (*p == '"')
			p = read_word(p, end, &a);
		else
			return false;
		if (!p || p++ >= end)
			return false;
		if (to->n < ARRAYS_MAX)
			to->a[to->n] = a;
		to->n++;
	}
	return p && p < end;
}

/*
 * Marks sparse arrays as unknown: their shapes do not say how many elements are stored. The type of such an array has a
 * second word.
 */
static void read_types(const char *text, size_t len, struct arrays *to)
{
	const char *end = text + len, *p = text + 1, *quote;
	size_t i;

	for (i = 0; i < to->n && i < ARRAYS_MAX && p < end && *p == '"'; i++, p = quote + 2) {
		quote = memchr(p + 1, '"', (size_t)(end - p - 1));
		if (!quote)
			return;
		to->a[i].known &= !memchr(p, ' ', (size_t)(quote - p));
	}
}

/* Returns the number of multiplications of a forward operator, or 0 if the shapes do not fit. */
typedef uint64_t (*products_fn)(const struct array *data, const struct array *weight, const struct array *out);

/* Each output element is a sum over one filter. This holds for any layout, groups and strides. */
static uint64_t convolution(const struct array *data, const struct array *weight, const struct array *out)
{
	unsigned n = weight->ndim;

	if (n < 3 || n != data->ndim || n != out->ndim ||
	    (out->dims[1] != weight->dims[0] && out->dims[n - 1] != weight->dims[0]))
		return 0;
	return times(out->size, weight->size / weight->dims[0]);
}

/* The reverse of a convolution: each input element is multiplied with one filter. */
static uint64_t deconvolution(const struct array *data, const struct array *weight, const struct array *out)
{
	return convolution(out, weight, data);
}

static uint64_t dense(const struct array *data, const struct array *weight, const struct array *out)
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

static uint64_t dot(const struct array *a, const struct array *b, const struct array *out)
{
	return times(out->size, a->ndim && b->ndim ? shared(a->size, b->size, out->size) : 0);
}

static uint64_t batch_dot(const struct array *a, const struct array *b, const struct array *out)
{
	uint64_t batch = out->ndim == 3 ? out->dims[0] : 0;

	if (!batch || a->ndim != 3 || b->ndim != 3 || a->dims[0] != batch || b->dims[0] != batch)
		return 0;
	return times(out->size, shared(a->size / batch, b->size / batch, out->size / batch));
}

/*
 * The inputs of a backward operator are the gradient of the output, then the inputs of the forward operator. The
 * gradient of each of the two factors takes as many operations as the forward operator, if the call computes it.
 */
static const struct product {
	const char *name;
	products_fn forward;
	bool backward;
} products[] = {
	{"Convolution", convolution, false},
	{"Deconvolution", deconvolution, false},
	{"FullyConnected", dense, false},
	{"dot", dot, false},
	{"batch_dot", batch_dot, false},
	{"_backward_Convolution", convolution, true},
	{"_backward_Deconvolution", deconvolution, true},
	{"_backward_FullyConnected", dense, true},
	{"_backward_dot", dot, true},
	{"_backward_batch_dot", batch_dot, true},
};

static const struct product *find(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < sizeof(products) / sizeof(products[0]); i++)
		if (strlen(products[i].name) == len && !memcmp(products[i].name, name, len))
			return &products[i];
	return NULL;
}

/* Reads the text of an args_id. Its lines are: inputs, their types, their strides, outputs, their types. */
static bool read_args(const char *text, size_t len, struct arrays *in, struct arrays *out)
{
	const char *line[5], *end = text + len;
	size_t n[5], i;

	for (i = 0; i < 5; i++) {
		const char *eol = memchr(text, '\n', (size_t)(end - text));

		line[i] = text;
		n[i] = (size_t)((eol ? eol : end) - text);
		text = eol ? eol + 1 : end;
	}
	if (!read_shapes(line[0], n[0], in) || !read_shapes(line[3], n[3], out))
		return false;
	read_types(line[1], n[1], in);
	read_types(line[4], n[4], out);
	return true;
}

enum flops_estimate flops_estimate(const char *name, size_t name_len, const char *args, size_t len, uint64_t *flops)
{
	const struct product *p = find(name, name_len);
	const struct array *data, *weight, *made;
	struct arrays in, out;
	uint64_t each, wanted = 1;

	if (!p)
		return FLOPS_OTHER;
	if (!args || !read_args(args, len, &in, &out) || in.n < (p->backward ? 3 : 2) || !out.n)
		return FLOPS_UNKNOWN;
	data = &in.a[p->backward];
	weight = data + 1;
	made = p->backward ? &in.a[0] : &out.a[0];
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
