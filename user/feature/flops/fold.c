// SPDX-License-Identifier: Apache-2.0
/*
 * How many floating-point operations a call takes, of operators that are matrix products in the end, by the shapes of
 * what goes in and comes out. A multiplication and an addition are two. What is added behind it, a bias, is not
 * counted. Where the shapes do not say it all, or do not fit together, there is no estimate.
 */
#include "feature/flops/flops.h"
#include "model/priv.h"

#include <stdlib.h>
#include <string.h>

#define ARRAYS_MAX 4 /* that matter, of those on either side */
#define DIMS_MAX   8

struct array {
	bool known;    /* its shape is there, and every element of it */
	bool unwanted; /* it could come out, and was not asked for */
	unsigned ndim;
	uint64_t dims[DIMS_MAX];
	uint64_t size;
};

struct arrays {
	size_t n; /* all of them: fewer are kept */
	struct array a[ARRAYS_MAX];
};

/* 0: it is too large, or unknown. */
static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? 0 : product;
}

/* A list of dimensions that begins at p; returns its end. */
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

/* What stands instead of a shape; returns its last character. */
static const char *read_word(const char *p, const char *end, struct array *a)
{
	a->unwanted = (size_t)(end - p) >= strlen(unwanted) && !memcmp(p, unwanted, strlen(unwanted));
	return memchr(p + 1, '"', (size_t)(end - p - 1));
}

/* A line of shapes. False: it is none. text ends with a NUL, or in another line. */
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

/* Of what is stored in part the shapes do not say how much there is to do. A type with a second word tells. */
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

/* Multiplications of a forward operator; 0: the shapes do not fit. */
typedef uint64_t (*products_fn)(const struct array *data, const struct array *weight, const struct array *out);

/* Each element that comes out is a sum over the rest of its filter, whatever the layout, groups and strides. */
static uint64_t convolution(const struct array *data, const struct array *weight, const struct array *out)
{
	unsigned n = weight->ndim;

	if (n < 3 || n != data->ndim || n != out->ndim ||
	    (out->dims[1] != weight->dims[0] && out->dims[n - 1] != weight->dims[0]))
		return 0;
	return times(out->size, weight->size / weight->dims[0]);
}

/* Each element that goes in is added, weighted, to so many that come out. */
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

/* Of what both sides share, whichever of them is transposed: its square is what the sizes leave. */
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
 * A backward operator gets the gradient of what came out, then what had gone in; of the gradients of the two factors
 * each that is wanted takes as much as the forward operator.
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

/* The parts of an args_id's text: what goes in, its types, strides, what comes out, its types. */
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
