/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/* MXBPF_DETAIL_ARGS: where the arguments of a function are (map `func_args`), and what BPF reads of them. */
#ifndef MXBPF_ARGS_H
#define MXBPF_ARGS_H

#include "mxbpf_event.h"

#define MXBPF_TENSORS_MAX    16384 /* different tensors, and parts of argument lists, known to BPF */
#define MXBPF_ARGS_KNOWN_MAX 16384

#define MXBPF_ARGS_MAX	    30
#define MXBPF_ARG_SLOTS	    32 /* words that pass arguments: six registers, then the stack */
#define MXBPF_ARG_REGS	    6
#define MXBPF_ARG_LIST_MAX  30 /* longest list of tensors that is read; the runtime's profiler has this limit */
#define MXBPF_ARG_WORDS_MAX 256
#define MXBPF_IMPL_WORDS    21 /* words of a tensor object that are read, up to its key set */
/* Indexes of a tensor's members among these words, counted back from the key set. */
#define MXBPF_IMPL_NDIM	     (MXBPF_IMPL_WORDS - 15)
#define MXBPF_IMPL_SIZES     (MXBPF_IMPL_WORDS - 14)
#define MXBPF_IMPL_STRIDES   (MXBPF_IMPL_WORDS - 9)
#define MXBPF_IMPL_OFFSET    (MXBPF_IMPL_WORDS - 4) /* of the first element in the storage */
#define MXBPF_IMPL_NUMEL     (MXBPF_IMPL_WORDS - 3)
#define MXBPF_IMPL_DTYPE     (MXBPF_IMPL_WORDS - 2)
#define MXBPF_ARG_WORDS_PART (MXBPF_NAME_PART_BYTES / 8)
#define MXBPF_TENSOR_DIMS    15
#define MXBPF_NO_STORAGE     (~0u) /* value of cfg_tensor_storage_word: the index is not known */
/* Array operators: both limits together, with a mark in between, are less than MXBPF_ARG_WORDS_MAX. */
#define MXBPF_NDARRAYS_IN_MAX  192
#define MXBPF_NDARRAYS_OUT_MAX 48

/* Kind of an argument. An optional one that is absent is shown as none. */
enum mxbpf_arg_kind {
	MXBPF_ARG_OTHER = 0, /* shown as "" */
	MXBPF_ARG_SCALAR = 1,
	MXBPF_ARG_SCALARS = 2,
	MXBPF_ARG_TENSOR = 3,	   /* address of a tensor */
	MXBPF_ARG_TENSOR_OPT = 4,  /* address of a tensor and a byte: nonzero if it is present */
	MXBPF_ARG_TENSORS = 5,	   /* two words: address of the first tensor, number of tensors */
	MXBPF_ARG_TENSORS_REF = 6, /* address of an IListRef: a list, or a container */
	MXBPF_ARG_VECTOR = 7, /* address of a vector of tensors, perhaps in an optional; each counts as an argument */
	MXBPF_ARG_STACK = 8,  /* address of a vector of boxed values; each counts as an argument */
};

struct mxbpf_arg {
	__u8 kind;    /* enum mxbpf_arg_kind */
	__u8 slot;    /* index of its first word */
	__u8 opt;     /* for scalars: enum mxbpf_arg_opt */
	__u8 opt_off; /* offset of the byte that says whether it is present */
};

enum mxbpf_arg_opt {
	MXBPF_ARG_ALWAYS = 0,
	MXBPF_ARG_IF_HERE = 1,	/* the byte is at opt_off from the start of the slot */
	MXBPF_ARG_IF_THERE = 2, /* the byte is at opt_off from the address in the slot */
};

struct mxbpf_func_args {
	__u8 n; /* number of arguments; 0: not known */
	__u8 nslots;
	__u8 pad[6];
	struct mxbpf_arg args[MXBPF_ARGS_MAX];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_func_args) == 128);

/*
 * Words for the arguments that were read, one for each argument or list element. They are interned like the bytes
 * of a name (map `args`). A value that is not listed here is the id of a tensor (map `tensors`).
 */
enum mxbpf_arg_word {
	MXBPF_WORD_OTHER = 0,
	MXBPF_WORD_SCALAR = 1,
	MXBPF_WORD_SCALARS = 2,
	MXBPF_WORD_UNREADABLE = 3, /* a tensor that could not be read */
	MXBPF_WORD_LONG_LIST = 4,
	MXBPF_WORD_OUTPUTS = 5,	 /* the words after this one are outputs */
	MXBPF_WORD_UNKNOWN = 6,	 /* a tensor whose shape is known only after the operator has run */
	MXBPF_WORD_UNWANTED = 7, /* an output that the operator does not produce */
	MXBPF_WORD_LIST = 0x100, /* plus the number of words that follow as elements of the list */
};

struct mxbpf_tensor {
	__u16 dtype;
	__u8 ndim;
	__u8 strided;  /* 1: it has strides */
	__u16 storage; /* 0 dense, 1 sparse by rows, 2 compressed sparse rows */
	__u16 pad;
	__s64 dims[2 * MXBPF_TENSOR_DIMS]; /* ndim sizes, then ndim strides */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_tensor) == 248);

#endif
