/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Tensor arguments of an operator: sizes, types and strides. BPF hashes them to an id, as it does with names. The map
 * `tensors` holds each id once, with its sizes, types and strides. The arguments of a call are a list of words, enum
 * mxbpf_arg_word or the id of a tensor. User space turns ids and lists into text.
 */
#ifndef ARGS_BPF_H
#define ARGS_BPF_H

#include "common.bpf.h"
#include "mxbpf_name.h"
#include "mxbpf_args.h"

/* Scratch area of a thread, by its slot; value of map `arg_scratch`. */
struct mxbpf_arg_scratch {
	__u64 slots[MXBPF_ARG_SLOTS];
	__u64 words[MXBPF_ARG_WORDS_MAX];
	__u64 impl[MXBPF_IMPL_WORDS];
	__u64 n; /* number of words, also of those that did not fit */
	struct mxbpf_tensor tensor;
	__u64 reqs; /* 1: `slots` holds which arrays are wanted */
	struct mxbpf_name_part part;
};

/*
 * Offset of the key set in a tensor object, which is the last word that is read; and the index of its storage among
 * the words.
 */
const volatile __u32 cfg_tensor_keys_off;
const volatile __u32 cfg_tensor_storage_word;

/* User space gives these maps their full size only if arguments were asked for. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MXBPF_FUNCS_MAX);
	__type(key, __u32);
	__type(value, struct mxbpf_func_args);
} func_args SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MXBPF_THREADS_MAX);
	__type(key, __u32);
	__type(value, struct mxbpf_arg_scratch);
} arg_scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MXBPF_TENSORS_MAX);
	__type(key, __u64);
	__type(value, struct mxbpf_tensor);
} tensors SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MXBPF_ARGS_KNOWN_MAX);
	__type(key, struct mxbpf_name_key);
	__type(value, struct mxbpf_name_part);
} args SEC(".maps");

#define IMPL_INLINE 5 /* dimensions stored inline; with more, sizes and then strides are on the heap */
#define DTYPES_MAX  48

static __always_inline struct mxbpf_arg_scratch *scratch_of(__u32 slot)
{
	return bpf_map_lookup_elem(&arg_scratch, &slot);
}

static __always_inline void word_put(struct mxbpf_arg_scratch *s, __u64 word)
{
	__u64 n = s->n;

	if (n < MXBPF_ARG_WORDS_MAX) {
		asm volatile("%0 &= %1" : "+r"(n) : "i"(MXBPF_ARG_WORDS_MAX - 1));
		s->words[n] = word;
	}
	s->n++;
}

/* Appends MXBPF_WORD_UNREADABLE and counts a loss. */
__noinline int unreadable_put(__u32 slot)
{
	struct mxbpf_arg_scratch *s = scratch_of(slot);
	struct mxbpf_thread *t = bpf_map_lookup_elem(&threads, &slot);

	if (!s || !t)
		return 0;
	t->counts[MXBPF_COUNT_UNREADABLE]++;
	word_put(s, MXBPF_WORD_UNREADABLE);
	return 0;
}

/*
 * Returns the place of stride i, behind ndim sizes. The mask keeps the bound for the verifier of Linux 6.1, which
 * loses it when the compiler computes the address before the comparison.
 */
static __always_inline __s64 *stride_at(struct mxbpf_arg_scratch *s, __u32 ndim, __u32 i)
{
	i += ndim;
	asm volatile("%0 &= %1" : "+r"(i) : "i"(2 * MXBPF_TENSOR_DIMS + 1));
	return &s->tensor.dims[i];
}

/* Copies dimensions that are stored in the tensor object itself. */
__noinline int dims_inline(__u32 slot, __u32 ndim)
{
	struct mxbpf_arg_scratch *s = scratch_of(slot);
	__u32 i;

	if (!s || ndim > IMPL_INLINE)
		return 0;
	for (i = 0; i < IMPL_INLINE && i < ndim; i++) {
		s->tensor.dims[i] = s->impl[MXBPF_IMPL_SIZES + i];
		*stride_at(s, ndim, i) = s->impl[MXBPF_IMPL_STRIDES + i];
	}
	return 0;
}

enum dims {
	DIMS_WRONG = 0, /* not a tensor: the number of elements differs from the product of sizes */
	DIMS_STRIDED = 1,
	DIMS_SPARSE = 2, /* no strides: they were never set */
	DIMS_NESTED = 3, /* neither sizes nor strides */
};

/*
 * Tells strided tensors from others. Strides that were never set are zeros, except perhaps the first. A tensor
 * without storage can have strides too.
 */
__noinline int dims_check(__u32 slot, __u32 ndim)
{
	struct mxbpf_arg_scratch *s = scratch_of(slot);
	__u64 product = 1, sizes = 0, strides = 0;
	bool unset, stored;
	__u32 i;

	if (!s || ndim > MXBPF_TENSOR_DIMS)
		return DIMS_WRONG;
	for (i = 0; i < MXBPF_TENSOR_DIMS && i < ndim; i++) {
		if (s->tensor.dims[i] < 0)
			return DIMS_WRONG;
		product *= s->tensor.dims[i];
		sizes |= s->tensor.dims[i];
		strides |= i || ndim == 1 ? *stride_at(s, ndim, i) : 0;
	}
	if (product != s->impl[MXBPF_IMPL_NUMEL])
		return DIMS_WRONG;
	unset = ndim && !strides;
	stored = cfg_tensor_storage_word >= MXBPF_IMPL_WORDS || s->impl[cfg_tensor_storage_word];
	if (stored)
		return ndim > 1 && unset && !sizes && *stride_at(s, ndim, 0) == 1 ? DIMS_NESTED : DIMS_STRIDED;
	return unset ? DIMS_SPARSE : DIMS_STRIDED;
}

/* Returns the word of the tensor in `impl`. */
static __always_inline __u64 tensor_word(struct mxbpf_arg_scratch *s, __u32 slot)
{
	__u64 ndim = s->impl[MXBPF_IMPL_NDIM], id;
	int dims;

	if (ndim > MXBPF_TENSOR_DIMS || (__u16)s->impl[MXBPF_IMPL_DTYPE] >= DTYPES_MAX)
		return MXBPF_WORD_UNREADABLE;
	if (ndim <= IMPL_INLINE)
		dims_inline(slot, ndim);
	else if (bpf_probe_read_user(s->tensor.dims, ndim * 16, (void *)s->impl[MXBPF_IMPL_SIZES]))
		return MXBPF_WORD_UNREADABLE;
	dims = dims_check(slot, ndim);
	if (dims == DIMS_WRONG || dims == DIMS_NESTED)
		return dims == DIMS_WRONG ? MXBPF_WORD_UNREADABLE : MXBPF_WORD_OTHER;
	s->tensor.dtype = s->impl[MXBPF_IMPL_DTYPE];
	s->tensor.ndim = ndim;
	s->tensor.strided = dims == DIMS_STRIDED;
	s->tensor.storage = s->tensor.pad = 0;
	id = mxbpf_name_id(mxbpf_name_fold(MXBPF_NAME_SEED, (const __u64 *)&s->tensor, 8 + ndim * 16));
	return id;
}

/* Appends the word of the tensor whose address is stored at addr. */
__noinline int tensor_put(__u32 slot, __u64 addr)
{
	struct mxbpf_arg_scratch *s = scratch_of(slot);
	struct mxbpf_thread *t = bpf_map_lookup_elem(&threads, &slot);
	__u64 impl = 0, word = MXBPF_WORD_UNREADABLE;

	if (!s || !t)
		return 0;
	if (bpf_probe_read_user(&impl, sizeof(impl), (void *)addr))
		impl = 0;
	if (impl && impl == t->undefined)
		word = MXBPF_WORD_OTHER;
	else if (impl && !bpf_probe_read_user(s->impl, sizeof(s->impl),
					      (void *)(impl + cfg_tensor_keys_off + 8 - sizeof(s->impl))))
		word = tensor_word(s, slot);
	if (word == MXBPF_WORD_UNREADABLE)
		t->counts[MXBPF_COUNT_UNREADABLE]++;
	if (word > MXBPF_WORD_LIST && !bpf_map_lookup_elem(&tensors, &word) &&
	    bpf_map_update_elem(&tensors, &word, &s->tensor, BPF_ANY))
		t->counts[MXBPF_COUNT_TRUNCATED]++;
	word_put(s, word);
	return 0;
}

/* Appends n tensors whose addresses are `apart` bytes apart. If n exceeds the limit, the call has no arguments. */
__noinline int tensors_put(__u32 slot, __u64 addr, __u64 n, __u32 apart)
{
	struct mxbpf_arg_scratch *s = scratch_of(slot);
	__u32 i;

	if (!s)
		return 0;
	for (i = 0; i < MXBPF_ARG_LIST_MAX && i < n; i++)
		tensor_put(slot, addr + (__u64)i * apart);
	if (n > MXBPF_ARG_LIST_MAX)
		s->n = MXBPF_ARG_WORDS_MAX + 1;
	return 0;
}

static __always_inline void list_put(struct mxbpf_arg_scratch *s, __u32 slot, __u64 addr, __u64 n, __u32 apart)
{
	if (n > MXBPF_ARG_LIST_MAX) {
		word_put(s, MXBPF_WORD_LONG_LIST);
		return;
	}
	word_put(s, MXBPF_WORD_LIST + n);
	tensors_put(slot, addr, n, apart);
}

/*
 * Layout of a boxed value (IValue): a word and its tag. A list is a header of two words, then a vector of elements.
 */
#define IVALUE_BYTES   16
#define IVALUE_TENSOR  1
#define IVALUE_SCALARS 0x7f8 /* bit per tag: numbers of every kind, bool */
#define IVALUE_LIST    14
#define LIST_VECTOR    16
struct ivalue {
	__u64 word;
	__u32 tag, pad;
};

static __always_inline bool is_scalar(const struct ivalue *v)
{
	return v->tag < 32 && IVALUE_SCALARS >> v->tag & 1;
}

/* Appends a list. The type of its first element is the list's type; for an empty list it is unknown. */
static __always_inline void ivalue_list_put(struct mxbpf_arg_scratch *s, __u32 slot, __u64 list)
{
	struct ivalue first = {};
	__u64 at[2] = {};

	if (bpf_probe_read_user(at, sizeof(at), (void *)(list + LIST_VECTOR)) ||
	    (at[0] != at[1] && bpf_probe_read_user(&first, sizeof(first), (void *)at[0])))
		unreadable_put(slot);
	else if (first.tag == IVALUE_TENSOR)
		list_put(s, slot, at[0], (at[1] - at[0]) / IVALUE_BYTES, IVALUE_BYTES);
	else
		word_put(s, at[0] == at[1] || is_scalar(&first) ? MXBPF_WORD_SCALARS : MXBPF_WORD_OTHER);
}

__noinline int ivalue_put(__u32 slot, __u64 addr)
{
	struct mxbpf_arg_scratch *s = scratch_of(slot);
	struct ivalue v = {};

	if (!s)
		return 0;
	if (bpf_probe_read_user(&v, sizeof(v), (void *)addr))
		unreadable_put(slot);
	else if (v.tag == IVALUE_TENSOR)
		tensor_put(slot, addr);
	else if (v.tag == IVALUE_LIST)
		ivalue_list_put(s, slot, v.word);
	else
		word_put(s, is_scalar(&v) ? MXBPF_WORD_SCALAR : MXBPF_WORD_OTHER);
	return 0;
}

/*
 * Appends all n values of the interpreter's stack. An operator's own arguments lie on top of those of its caller,
 * and the runtime's profiler shows both.
 */
__noinline int ivalues_put(__u32 slot, __u64 addr, __u64 n)
{
	struct mxbpf_arg_scratch *s = scratch_of(slot);
	__u32 i;

	if (!s)
		return 0;
	for (i = 0; i < MXBPF_ARG_LIST_MAX && i < n; i++)
		ivalue_put(slot, addr + i * IVALUE_BYTES);
	if (n > MXBPF_ARG_LIST_MAX)
		s->n = MXBPF_ARG_WORDS_MAX + 1;
	return 0;
}

/*
 * Reads a reference to a list (IListRef). It is an address and a length if its mark is ILIST_UNBOXED. Else it is a
 * container, which no operator is known to receive.
 */
#define ILIST_UNBOXED 0
static __always_inline void list_ref_put(struct mxbpf_arg_scratch *s, __u32 slot, __u64 addr)
{
	struct {
		__u64 first, n;
		__u32 mark, pad;
	} list = {};

	if (!bpf_probe_read_user(&list, sizeof(list), (void *)addr) && list.mark == ILIST_UNBOXED)
		list_put(s, slot, list.first, list.n, 8);
	else
		unreadable_put(slot);
}

/* Returns true if an optional scalar has a value. */
static __always_inline bool is_there(struct mxbpf_arg_scratch *s, const struct mxbpf_arg *a)
{
	__u32 at = (a->slot + a->opt_off / 8) % MXBPF_ARG_SLOTS;
	__u8 there = s->slots[at] >> a->opt_off % 8 * 8;

	if (a->opt == MXBPF_ARG_IF_THERE &&
	    bpf_probe_read_user(&there, 1, (void *)(s->slots[a->slot % MXBPF_ARG_SLOTS] + a->opt_off)))
		there = 0;
	return a->opt == MXBPF_ARG_ALWAYS || there;
}

/* Appends the words of argument i of a function. */
__noinline int arg_put(__u32 slot, __u32 func, __u32 i)
{
	struct mxbpf_func_args *f = bpf_map_lookup_elem(&func_args, &func);
	struct mxbpf_arg_scratch *s = scratch_of(slot);
	__u64 v, pair[2] = {};
	struct mxbpf_arg *a;

	if (!f || !s || i >= MXBPF_ARGS_MAX)
		return 0;
	a = &f->args[i];
	v = s->slots[a->slot % MXBPF_ARG_SLOTS];
	switch (a->kind) {
	case MXBPF_ARG_SCALAR:
	case MXBPF_ARG_SCALARS:
		word_put(s, is_there(s, a) ? a->kind : MXBPF_WORD_OTHER);
		break;
	case MXBPF_ARG_TENSOR:
		tensor_put(slot, v);
		break;
	case MXBPF_ARG_TENSOR_OPT:
		if (bpf_probe_read_user(pair, sizeof(pair), (void *)v))
			unreadable_put(slot);
		else if (!(__u8)pair[1])
			word_put(s, MXBPF_WORD_OTHER);
		else
			tensor_put(slot, v);
		break;
	case MXBPF_ARG_TENSORS:
		list_put(s, slot, v, s->slots[(a->slot + 1) % MXBPF_ARG_SLOTS], 8);
		break;
	case MXBPF_ARG_TENSORS_REF:
		list_ref_put(s, slot, v);
		break;
	case MXBPF_ARG_VECTOR:
		if (!is_there(s, a))
			word_put(s, MXBPF_WORD_OTHER);
		else if (bpf_probe_read_user(pair, sizeof(pair), (void *)v))
			unreadable_put(slot);
		else
			tensors_put(slot, pair[0], (pair[1] - pair[0]) / 8, 8);
		break;
	case MXBPF_ARG_STACK:
		if (bpf_probe_read_user(pair, sizeof(pair), (void *)v))
			unreadable_put(slot);
		else
			ivalues_put(slot, pair[0], (pair[1] - pair[0]) / IVALUE_BYTES);
		break;
	default:
		word_put(s, MXBPF_WORD_OTHER);
	}
	return 0;
}

__noinline __u64 words_hash(__u32 slot, __u32 part, __u64 h)
{
	struct mxbpf_arg_scratch *s = scratch_of(slot);
	__u32 from = part * MXBPF_ARG_WORDS_PART;

	if (!s || from >= s->n || from > MXBPF_ARG_WORDS_MAX - MXBPF_ARG_WORDS_PART)
		return h;
	return mxbpf_name_fold(h, &s->words[from],
			       s->n - from < MXBPF_ARG_WORDS_PART ? (s->n - from) * 8 : MXBPF_NAME_PART_BYTES);
}

/* Stores one part of the words. The first part is stored last, since it is the sign that all parts are there. */
__noinline int words_store(__u32 slot, __u64 id, __u32 part)
{
	struct mxbpf_name_key key = {.id = id, .part = part};
	struct mxbpf_thread *t = bpf_map_lookup_elem(&threads, &slot);
	struct mxbpf_arg_scratch *s = scratch_of(slot);
	__u32 from = part * MXBPF_ARG_WORDS_PART;

	if (!t || !s || from >= s->n || from > MXBPF_ARG_WORDS_MAX - MXBPF_ARG_WORDS_PART)
		return 0;
	s->part.more = s->n - from > MXBPF_ARG_WORDS_PART;
	s->part.len = s->part.more ? MXBPF_NAME_PART_BYTES : (s->n - from) * 8;
	__builtin_memcpy(s->part.text, &s->words[from], MXBPF_NAME_PART_BYTES);
	if (bpf_map_update_elem(&args, &key, &s->part, BPF_ANY))
		t->counts[MXBPF_COUNT_TRUNCATED]++;
	return 0;
}

#define WORD_PARTS (MXBPF_ARG_WORDS_MAX / MXBPF_ARG_WORDS_PART)

/* Interns the words and returns their id, or 0 if there are none or too many. */
__noinline __u64 words_intern(__u32 slot)
{
	struct mxbpf_thread *t = bpf_map_lookup_elem(&threads, &slot);
	struct mxbpf_arg_scratch *s = scratch_of(slot);
	struct mxbpf_name_key key = {};
	__u64 h = MXBPF_NAME_SEED;
	int i;

	if (!t || !s || !s->n)
		return 0;
	if (s->n > MXBPF_ARG_WORDS_MAX) {
		t->counts[MXBPF_COUNT_TRUNCATED]++;
		return 0;
	}
	for (i = 0; i < WORD_PARTS; i++)
		h = words_hash(slot, i, h);
	key.id = mxbpf_name_id(h);
	if (!bpf_map_lookup_elem(&args, &key))
		for (i = WORD_PARTS - 1; i >= 0; i--)
			words_store(slot, key.id, i);
	return key.id;
}

__noinline __u64 args_intern(__u32 slot, __u32 func, __u64 sp)
{
	struct mxbpf_func_args *f = bpf_map_lookup_elem(&func_args, &func);
	struct mxbpf_arg_scratch *s = scratch_of(slot);
	__u32 i, nstack;

	if (!f || !s || !f->n)
		return 0;
	s->n = 0;
	nstack = f->nslots > MXBPF_ARG_REGS ? f->nslots - MXBPF_ARG_REGS : 0;
	if (nstack > MXBPF_ARG_SLOTS - MXBPF_ARG_REGS)
		return 0;
	/* Stack arguments begin above the return address. */
	if (nstack && bpf_probe_read_user(&s->slots[MXBPF_ARG_REGS], nstack * 8, (void *)(sp + 8))) {
		unreadable_put(slot);
		return 0;
	}
	for (i = 0; i < MXBPF_ARGS_MAX && i < f->n; i++)
		arg_put(slot, func, i);
	return words_intern(slot);
}

/* Returns the args_id of the operator that is being entered, or 0 if it has no arguments or they cannot be read. */
static __always_inline __u64 args_of(struct pt_regs *ctx, struct mxbpf_thread *t)
{
	struct mxbpf_arg_scratch *s = scratch_of(t->slot);

	if (!s)
		return 0;
	s->slots[0] = ctx->di;
	s->slots[1] = ctx->si;
	s->slots[2] = ctx->dx;
	s->slots[3] = ctx->cx;
	s->slots[4] = ctx->r8;
	s->slots[5] = ctx->r9;
	return args_intern(t->slot, probe_cookie(ctx) & MXBPF_FUNC_MASK, ctx->sp);
}

#endif
