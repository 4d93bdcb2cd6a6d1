/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/* MXBPF_DETAIL_ARGS: where a function's arguments lie (map `func_args`), and what BPF reads of them. */
#ifndef MXBPF_ARGS_H
#define MXBPF_ARGS_H

#include "mxbpf_event.h"

#define MXBPF_TENSORS_MAX    16384 /* kinds of tensors, and of arguments (in parts), known to BPF */
#define MXBPF_ARGS_KNOWN_MAX 16384

#define MXBPF_ARGS_MAX	     30
#define MXBPF_ARG_SLOTS	     32 /* words in which arguments are passed: six registers, then the stack */
#define MXBPF_ARG_REGS	     6
#define MXBPF_ARG_LIST_MAX   30 /* tensors of a list that are looked at; of a longer one torch.profiler shows none */
#define MXBPF_ARG_WORDS_MAX  256
#define MXBPF_IMPL_WORDS     21 /* of a tensor, up to its key set */
#define MXBPF_ARG_WORDS_PART (MXBPF_NAME_PART_BYTES / 8)
#define MXBPF_TENSOR_DIMS    15
#define MXBPF_NO_STORAGE     (~0u) /* cfg_tensor_storage_word: not known */
/* Of an operator of MXNet's: both with a mark between them are less than MXBPF_ARG_WORDS_MAX. */
#define MXBPF_NDARRAYS_IN_MAX  192
#define MXBPF_NDARRAYS_OUT_MAX 48

/* What an argument is. Those that may be absent are none then. */
enum mxbpf_arg_kind {
	MXBPF_ARG_OTHER = 0, /* shown as "" */
	MXBPF_ARG_SCALAR = 1,
	MXBPF_ARG_SCALARS = 2,
	MXBPF_ARG_TENSOR = 3,	   /* address of one */
	MXBPF_ARG_TENSOR_OPT = 4,  /* address of one and a byte that says whether it is there */
	MXBPF_ARG_TENSORS = 5,	   /* two words: address of the first, number */
	MXBPF_ARG_TENSORS_REF = 6, /* address of c10::IListRef */
	MXBPF_ARG_VECTOR = 7,	   /* address of a vector of tensors, each an argument of its own */
	MXBPF_ARG_STACK = 8,	   /* the same of c10::IValue */
};

struct mxbpf_arg {
	__u8 kind;    /* enum mxbpf_arg_kind */
	__u8 slot;    /* where it begins */
	__u8 opt;     /* a scalar or scalars: enum mxbpf_arg_opt */
	__u8 opt_off; /* of the byte that says whether it is there */
};

enum mxbpf_arg_opt {
	MXBPF_ARG_ALWAYS = 0,
	MXBPF_ARG_IF_HERE = 1,	/* the byte lies opt_off behind the slot's beginning */
	MXBPF_ARG_IF_THERE = 2, /* behind the address in the slot */
};

struct mxbpf_func_args {
	__u8 n; /* 0: its arguments are not known */
	__u8 nslots;
	__u8 pad[6];
	struct mxbpf_arg args[MXBPF_ARGS_MAX];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_func_args) == 128);

/*
 * What was found, as words that are interned like a name's bytes (map `args`): an element an argument. Others are the
 * id of a tensor (map `tensors`).
 */
enum mxbpf_arg_word {
	MXBPF_WORD_OTHER = 0,
	MXBPF_WORD_SCALAR = 1,
	MXBPF_WORD_SCALARS = 2,
	MXBPF_WORD_UNREADABLE = 3, /* a tensor */
	MXBPF_WORD_LONG_LIST = 4,
	MXBPF_WORD_OUTPUTS = 5,	 /* what follows comes out */
	MXBPF_WORD_UNKNOWN = 6,	 /* a tensor whose shape is known only when the operator has run */
	MXBPF_WORD_UNWANTED = 7, /* one that could come out, and is not made */
	MXBPF_WORD_LIST = 0x100, /* and the number of the words that follow and are its elements */
};

struct mxbpf_tensor {
	__u16 dtype;
	__u8 ndim;
	__u8 strided;  /* it has strides */
	__u16 storage; /* MXNet's: 0 dense, 1 rows of it, 2 compressed rows */
	__u16 pad;
	__s64 dims[2 * MXBPF_TENSOR_DIMS]; /* ndim sizes, then as many strides */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_tensor) == 248);

#endif
