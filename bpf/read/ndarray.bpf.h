/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Input and output arrays of an operator. They are in two vectors of the object that runs the operator, by value or
 * by address, and the row has the offsets of the vectors. The arrays are interned like the tensors of args.bpf.h.
 */
#ifndef NDARRAY_BPF_H
#define NDARRAY_BPF_H

#include "read/args.bpf.h"

/* Number of dimensions that the library stores inline in an array object, and the object's size in bytes. */
const volatile __u32 cfg_array_dims;
const volatile __u32 cfg_array_bytes;

/* Layout of the runtime's array object (NDArray) as far as it is read: cfg_array_dims dimensions, then the tail. */
#define NDARRAY_FIRST	 16
#define NDARRAY_HERE	 8 /* inline dimensions at most */
#define NDARRAY_HEAD	 8
#define NDARRAY_ADDRESS	 8 /* bytes of an address */
#define NDARRAYS_ADDRESS (1ull << 48)
struct ndarray {
	__s32 ndim; /* -1: the shape is not known before the operator has run */
	__u32 nheap;
	__s64 dims[NDARRAY_HERE];
	__u64 heap;
	__u64 offset_bytes;
	__s32 dtype;
	__u32 reuse;
	__s32 storage;
	__u32 pad;
};
#define NDARRAY_DTYPES	 16
#define NDARRAY_STORAGES 3
MXBPF_STATIC_ASSERT(sizeof(struct ndarray) <= MXBPF_IMPL_WORDS * 8);

#define REQ_NULL 0 /* OpReqType: the output is not wanted */

/* Copies the dimensions. Returns 0 if they cannot be read. */
__noinline int ndarray_dims(__u32 slot)
{
	struct mxbpf_arg_scratch *s = scratch_of(slot);
	struct ndarray *a;
	__u32 i, n;

	if (!s)
		return 0;
	a = (struct ndarray *)s->impl;
	n = a->ndim;
	if (n > MXBPF_TENSOR_DIMS)
		return 0;
	if (n > cfg_array_dims && (a->nheap < n || bpf_probe_read_user(s->tensor.dims, n * 8, (void *)a->heap)))
		return 0;
	for (i = 0; i < NDARRAY_HERE && n <= cfg_array_dims && i < n; i++)
		s->tensor.dims[i] = a->dims[i];
	for (i = 0; i < MXBPF_TENSOR_DIMS && i < n; i++)
		if (s->tensor.dims[i] < -1)
			return 0;
	return 1;
}

static __always_inline bool ndarray_read(struct ndarray *a, __u64 addr)
{
	const __u32 head = NDARRAY_HEAD + (cfg_array_dims <= NDARRAY_HERE ? cfg_array_dims : NDARRAY_HERE) * 8;

	return !bpf_probe_read_user(a, head, (void *)addr) &&
	       !bpf_probe_read_user(&a->heap, sizeof(*a) - __builtin_offsetof(struct ndarray, heap),
				    (void *)(addr + head));
}

/* Returns the word of the array at addr. */
__noinline __u64 ndarray_word(__u32 slot, __u64 addr)
{
	struct mxbpf_arg_scratch *s = scratch_of(slot);
	struct mxbpf_thread *t = bpf_map_lookup_elem(&threads, &slot);
	struct ndarray *a;
	__u64 word;

	if (!s || !t)
		return MXBPF_WORD_UNREADABLE;
	a = (struct ndarray *)s->impl;
	if (!ndarray_read(a, addr + NDARRAY_FIRST))
		return MXBPF_WORD_UNREADABLE;
	if (a->ndim == -1)
		return MXBPF_WORD_UNKNOWN;
	if ((__u32)a->dtype >= NDARRAY_DTYPES || (__u32)a->storage >= NDARRAY_STORAGES || !ndarray_dims(slot))
		return MXBPF_WORD_UNREADABLE;
	s->tensor.dtype = a->dtype;
	s->tensor.ndim = a->ndim;
	s->tensor.strided = 0;
	s->tensor.storage = a->storage;
	s->tensor.pad = 0;
	word = mxbpf_name_id(
		mxbpf_name_fold(MXBPF_NAME_SEED, (const __u64 *)&s->tensor, 8 + (__u32)s->tensor.ndim * 8));
	if (!bpf_map_lookup_elem(&tensors, &word) && bpf_map_update_elem(&tensors, &word, &s->tensor, BPF_ANY))
		t->counts[MXBPF_COUNT_TRUNCATED]++;
	return word;
}

/* Returns true if output i is wanted. The scratch area's slots hold the request types, two in a word. */
static __always_inline bool is_wanted(struct mxbpf_arg_scratch *s, __u32 i)
{
	__u64 pair = s->slots[(i >> 1) % MXBPF_ARG_SLOTS];

	return (__u32)(i & 1 ? pair >> 32 : pair) != REQ_NULL;
}

/* Appends one array. addr is its address, or the address of a pointer to it. */
__noinline int ndarray_put(__u32 slot, __u64 addr, __u32 i, __u32 apart)
{
	struct mxbpf_arg_scratch *s = scratch_of(slot);
	struct mxbpf_thread *t = bpf_map_lookup_elem(&threads, &slot);
	__u64 word;

	if (!s || !t)
		return 0;
	if (s->reqs && !is_wanted(s, i))
		word = MXBPF_WORD_UNWANTED;
	else if (apart == NDARRAY_ADDRESS && bpf_probe_read_user(&addr, sizeof(addr), (void *)addr))
		word = MXBPF_WORD_UNREADABLE;
	else
		word = ndarray_word(slot, addr);
	if (word == MXBPF_WORD_UNREADABLE)
		t->counts[MXBPF_COUNT_UNREADABLE]++;
	word_put(s, word);
	return 0;
}

/*
 * Appends a vector of arrays. If it has more than max, none is read and the list counts as truncated. The verifier
 * needs max to be a constant of the caller's.
 */
__noinline int ndarrays_put(__u32 slot, __u64 addr, __u32 max, __u32 apart)
{
	struct mxbpf_arg_scratch *s = scratch_of(slot);
	struct mxbpf_thread *t = bpf_map_lookup_elem(&threads, &slot);
	__u64 at[2] = {}, bytes;
	__u32 i;

	if (!s || !t || !apart)
		return 0;
	if (bpf_probe_read_user(at, sizeof(at), (void *)addr) || (at[1] - at[0]) % apart) {
		unreadable_put(slot);
		return 0;
	}
	bytes = at[1] - at[0];
	if (bytes > (__u64)max * apart) {
		t->counts[MXBPF_COUNT_TRUNCATED]++;
		word_put(s, MXBPF_WORD_LONG_LIST);
		return 0;
	}
	for (i = 0; i < MXBPF_NDARRAYS_IN_MAX && i < max && i * apart < bytes; i++)
		ndarray_put(slot, at[0] + i * apart, i, apart);
	return 0;
}

/*
 * Reads which outputs are wanted. Returns false if there is no such list, or if its length differs from that of the
 * outputs.
 */
static __always_inline bool reqs_read(struct mxbpf_arg_scratch *s, __u64 reqs, __u64 outputs, __u32 apart)
{
	__u64 at[2] = {}, of[2] = {}, n;

	if (bpf_probe_read_user(at, sizeof(at), (void *)reqs) || bpf_probe_read_user(of, sizeof(of), (void *)outputs))
		return false;
	n = at[1] - at[0];
	if (!n || n > MXBPF_NDARRAYS_OUT_MAX * 4 || n / 4 * apart != of[1] - of[0])
		return false;
	return !bpf_probe_read_user(s->slots, n, (void *)at[0]);
}

/*
 * Returns the args_id of the operator that runs as `object`. `places` has three offsets in it, 16 bits each: the
 * vectors of inputs, of outputs, and of request types (0: none). With NDARRAYS_ADDRESS the vectors hold addresses
 * of arrays.
 */
__noinline __u64 ndarrays_intern(__u32 slot, __u64 object, __u64 places)
{
	struct mxbpf_arg_scratch *s = scratch_of(slot);
	__u64 out = object + (__u16)(places >> 16);
	__u32 apart = places & NDARRAYS_ADDRESS ? NDARRAY_ADDRESS : cfg_array_bytes;
	__u16 reqs = places >> 32;

	if (!s)
		return 0;
	s->n = 0;
	s->reqs = 0;
	ndarrays_put(slot, object + (__u16)places, MXBPF_NDARRAYS_IN_MAX, apart);
	word_put(s, MXBPF_WORD_OUTPUTS);
	s->reqs = reqs && reqs_read(s, object + reqs, out, apart);
	ndarrays_put(slot, out, MXBPF_NDARRAYS_OUT_MAX, apart);
	return words_intern(slot);
}

/* Returns the args_id of the object in the first argument, or 0 if the row has no offsets. */
static __always_inline __u64 ndarrays_of(struct pt_regs *ctx, struct mxbpf_thread *t,
					 const volatile struct mxbpf_row *row)
{
	if (!(cfg_details & row->details & MXBPF_DETAIL_ARGS) || !row->outputs_off)
		return 0;
	return ndarrays_intern(t->slot, PT_REGS_PARM1(ctx),
			       row->inputs_off | (__u64)row->outputs_off << 16 |
				       (__u64)(row->reqs_after ? row->outputs_off + row->reqs_after : 0) << 32 |
				       (row->by_address ? NDARRAYS_ADDRESS : 0));
}

#endif
