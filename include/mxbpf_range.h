/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/*
 * Ranges: user annotations of a thread with a start and an end. Each is a span, which is sent when it ends. This record
 * is sent when it starts, so that a reader knows the ranges around a call when the call comes. It also has what a range
 * of NVTX carries.
 */
#ifndef MXBPF_RANGE_H
#define MXBPF_RANGE_H

#include "mxbpf_event.h"

#define MXBPF_RANGE ((enum mxbpf_kind)59) /* BPF, agent: a range starts, struct mxbpf_range */

#define MXBPF_RANGE_VALUES 8 /* numbers of a payload that are kept */
#define MXBPF_RANGE_APART  0xffff
#define MXBPF_RANGE_MARK   0xfffe /* depth: no range, but what a mark at its time carries */

/* Type of a payload that is one number without a schema. The numbers are those of NVTX (nvtxPayloadType_t). */
enum mxbpf_range_type {
	MXBPF_RANGE_NONE = 0,
	MXBPF_RANGE_U64 = 1,
	MXBPF_RANGE_I64 = 2,
	MXBPF_RANGE_DOUBLE = 3,
	MXBPF_RANGE_U32 = 4,
	MXBPF_RANGE_I32 = 5,
	MXBPF_RANGE_FLOAT = 6,
	MXBPF_RANGE_SEQ = 7, /* not of NVTX: the number in a name of PyTorch's emit_nvtx(), see MXBPF_SEQ() */
	MXBPF_RANGE_TYPES = 8,
};

/* What a range carries. */
struct mxbpf_range_data {
	/*
	 * The payload: a number of `type`, or the numbers that the schema names, in its order. An integer with a sign
	 * is extended to 64 bits. A float is in the lower 32 bits; in a payload with a schema it becomes a double.
	 */
	__u64 values[MXBPF_RANGE_VALUES];
	__u32 category; /* number; 0: none */
	__u32 color;	/* ARGB; 0: none */
	__u8 nvalues;
	__u8 type;     /* enum mxbpf_range_type; NONE if there is a schema */
	__u8 left_out; /* numbers of the payload that are not in values; 255: at least so many */
	__u8 pad[5];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_range_data) == 80);

/*
 * A schema is a text with a line for each value: one letter for its type, a space, its name. The letters: u unsigned,
 * i signed, f double, x address, e enumeration. A line of an enumeration goes on with a tab and "NUMBER=NAME" for each
 * of its words.
 */
struct mxbpf_range {
	struct mxbpf_rec h; /* ts_ns: the start, which its span has, too */
	__u64 name_id;	    /* that of its span */
	__u64 domain_id;    /* name of its domain; 0: none */
	__u64 category_id;  /* registered name of its category; 0: none */
	__u64 schema_id;    /* text of its schema; 0: none */
	__u32 tid;
	__u8 cls; /* enum mxbpf_class of its span */
	__u8 pad;
	/*
	 * More than that of each range of its thread that is open around it; MXBPF_RANGE_APART: it need not be nested
	 */
	__u16 depth;
	struct mxbpf_range_data data;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_range) == 136);

/* What mxbpf's library for NVTX gives to a probe, in the memory of the target. Addresses are of C strings; 0: none. */
struct mxbpf_range_info {
	__u64 domain, category, schema;
	struct mxbpf_range_data data;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_range_info) == 104);

#endif
