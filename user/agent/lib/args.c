// SPDX-License-Identifier: Apache-2.0
/*
 * PyTorch: the arguments of an operator. The dispatcher has boxed them for the callbacks: an array of values with a tag
 * each, which holds a reference to every tensor and list until the callbacks have returned. So all that is read here is
 * alive. mxbpf has found the places in the library's code.
 */
#include "details.h"

/* Layout of a boxed value (IValue). The tag of a list depends on the version. The tags before it are known. */
struct value {
	uint64_t word;
	uint32_t tag, pad;
};
#define TAG_TENSOR	1
#define TAG_SCALAR_MIN	3 /* up to four tags before a list: numbers of every kind, bool */
#define TAG_SCALAR_BACK 4

/* Distances of a tensor's members from its key set, in words. */
#define BACK_NDIM    14
#define BACK_SIZES   13
#define BACK_STRIDES 8
#define BACK_NUMEL   2
#define BACK_DTYPE   1
#define INLINE	     5 /* dimensions stored inline; with more, sizes and then strides are on the heap */
#define DTYPES_MAX   48

/* The list that is being made. */
struct args {
	const struct mxbpf_agent_details *d;
	struct mxbpf_agent_slot *t;
	uint32_t n;	  /* number of words, also of those that did not fit */
	uint32_t entries; /* number of arguments and of elements of lists */
};

static void put_word(struct args *a, uint64_t word)
{
	if (a->n < MXBPF_AGENT_LIST_WORDS)
		a->t->list[a->n] = word;
	a->n++;
}

static void args_put(struct args *a, uint64_t word)
{
	a->entries++;
	put_word(a, word);
}

static void put_unreadable(struct args *a)
{
	__atomic_store_n(&a->t->unreadable, a->t->unreadable + 1, __ATOMIC_RELAXED);
	args_put(a, MXBPF_WORD_UNREADABLE);
}

enum dims {
	DIMS_WRONG, /* not a tensor: the number of elements differs from the product of sizes */
	DIMS_STRIDED,
	DIMS_SPARSE, /* no strides: they were never set */
	DIMS_NESTED, /* neither sizes nor strides */
};

/*
 * Tells strided tensors from others. Strides that were never set are zeros, except perhaps the first. A tensor without
 * storage can have strides too.
 */
static enum dims args_check(const int64_t *sizes, const int64_t *strides, uint32_t ndim, uint64_t numel, bool stored)
{
	uint64_t product = 1, all_sizes = 0, all_strides = 0;
	bool unset;
	uint32_t i;

	for (i = 0; i < ndim; i++) {
		if (sizes[i] < 0)
			return DIMS_WRONG;
		product *= (uint64_t)sizes[i];
		all_sizes |= (uint64_t)sizes[i];
		all_strides |= i || ndim == 1 ? (uint64_t)strides[i] : 0;
	}
	if (product != numel)
		return DIMS_WRONG;
	unset = ndim && !all_strides;
	if (stored)
		return ndim > 1 && unset && !all_sizes && strides[0] == 1 ? DIMS_NESTED : DIMS_STRIDED;
	return unset ? DIMS_SPARSE : DIMS_STRIDED;
}

static void put_tensor(struct args *a, uint64_t impl)
{
	const uint64_t *keys = (const uint64_t *)(impl + a->d->keys_off);
	const int64_t *sizes, *strides;
	uint64_t ndim, dtype, i;
	enum dims dims;

	if (!impl || impl == a->d->undefined) {
		args_put(a, impl ? MXBPF_WORD_OTHER : MXBPF_WORD_UNREADABLE);
		return;
	}
	ndim = keys[-BACK_NDIM];
	dtype = keys[-BACK_DTYPE] & 0xffff;
	if (ndim > MXBPF_TENSOR_DIMS || dtype >= DTYPES_MAX) {
		put_unreadable(a);
		return;
	}
	sizes = ndim <= INLINE ? (const int64_t *)&keys[-BACK_SIZES] : (const int64_t *)keys[-BACK_SIZES];
	strides = ndim <= INLINE ? (const int64_t *)&keys[-BACK_STRIDES] : sizes + ndim;
	dims = args_check(sizes, strides, (uint32_t)ndim, keys[-BACK_NUMEL],
			  !a->d->storage_off || *(const uint64_t *)(impl + a->d->storage_off));
	if (dims == DIMS_WRONG) {
		put_unreadable(a);
		return;
	}
	if (dims == DIMS_NESTED) {
		args_put(a, MXBPF_WORD_OTHER);
		return;
	}
	args_put(a, MXBPF_AGENT_TENSOR_WORD(dtype, ndim, dims == DIMS_STRIDED));
	for (i = 0; i < ndim; i++)
		put_word(a, (uint64_t)sizes[i]);
	for (i = 0; i < ndim && dims == DIMS_STRIDED; i++)
		put_word(a, (uint64_t)strides[i]);
}

static bool is_scalar(const struct args *a, const struct value *v)
{
	return v->tag >= TAG_SCALAR_MIN && v->tag + TAG_SCALAR_BACK <= a->d->list_tag;
}

/* A list of tensors that may be absent has another type, and the runtime's profiler shows nothing of it. */
static void put_list(struct args *a, uint64_t list)
{
	const struct {
		const struct value *v, *end, *room;
		const struct {
			uint64_t methods;
			uint32_t kind;
		} * type;
	} *l = (const void *)(list + a->d->list_off);
	const struct value *v = l->v;
	const uint64_t n = (uint64_t)(l->end - v);
	uint64_t i;

	if (l->type->kind != a->d->list_kind) {
		args_put(a, !n || is_scalar(a, v) ? MXBPF_WORD_SCALARS : MXBPF_WORD_OTHER);
		return;
	}
	if (n > MXBPF_ARG_LIST_MAX) {
		args_put(a, MXBPF_WORD_LONG_LIST);
		return;
	}
	args_put(a, MXBPF_WORD_LIST + n);
	for (i = 0; i < n; i++)
		put_tensor(a, v[i].word);
}

static void args_put_value(struct args *a, const struct value *v)
{
	if (v->tag == TAG_TENSOR)
		put_tensor(a, v->word);
	else if (v->tag == a->d->list_tag && v->word)
		put_list(a, v->word);
	else
		args_put(a, is_scalar(a, v) ? MXBPF_WORD_SCALAR : MXBPF_WORD_OTHER);
}

uint32_t agent_args(struct mxbpf_agent_shared *s, struct mxbpf_agent_slot *t, const void *rf)
{
	const struct {
		const struct value *v;
		uint64_t n;
	} *in = (const void *)((const char *)rf + s->details.inputs_off);
	struct args a = {&s->details, t, 0, 0};
	uint64_t i;

	if (!in->v || !in->n)
		return 0;
	for (i = 0; i < in->n && i < MXBPF_ARG_LIST_MAX; i++)
		args_put_value(&a, &in->v[i]);
	if (in->n <= MXBPF_ARG_LIST_MAX && a.n <= MXBPF_AGENT_LIST_WORDS && a.entries <= MXBPF_ARG_WORDS_MAX)
		return agent_list(s, t, MXBPF_AGENT_LIST_ARGS, a.n);
	__atomic_store_n(&t->truncated, t->truncated + 1, __ATOMIC_RELAXED);
	return 0;
}
