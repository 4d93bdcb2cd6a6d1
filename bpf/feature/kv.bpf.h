/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Calls of a parameter store. The keys and the sizes of the values are read before the span begins, so that the
 * call's time does not include the reading. The record is sent after the span has begun.
 */
#ifndef KV_BPF_H
#define KV_BPF_H

#include "common.bpf.h"
#include "mxbpf_kv.h"
#include "read/name.bpf.h"

const volatile __u8 cfg_kv; /* calls of a parameter store are probed */

/* Scratch area of a thread, by its slot. */
struct kv_call {
	struct mxbpf_kv head;
	struct mxbpf_kv_value values[MXBPF_KV_VALUES_MAX];
};

/* User space gives this map its full size only if such calls are probed. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct kv_call);
} kv_calls SEC(".maps");

/*
 * Layout of the runtime's array object (NDArray), starting with its shape. row.kv_flags has the number of
 * dimensions stored inline, and the tail follows them.
 */
#define KV_ARRAY_OFF 16
#define KV_DIMS_HERE 8 /* inline dimensions at most; a larger shape is on the heap */
#define KV_DIMS_MAX  16
struct kv_shape {
	__s32 ndim; /* < 0: not known yet */
	__u32 nheap;
	__s64 dims[KV_DIMS_HERE];
};
struct kv_tail {
	__u64 heap;
	__u64 offset_bytes;
	__s32 dtype;
	__u32 reuse;
	__s32 storage; /* 0: dense */
	__u32 pad;
};

/* Element sizes in bytes, four bits for each data type of the runtime; 0: no such type. */
#define KV_DTYPE_BYTES 0x2842218141284ull
#define KV_DTYPES      13

/* Layout of a worker's request to a parameter server. */
#define KV_META_PUSH  4	 /* offset of KVMeta.push */
#define KV_PAIRS_KEYS 0	 /* offset of KVPairs.keys, a vector: size, capacity, address */
#define KV_PAIRS_VALS 32 /* offset of KVPairs.vals, a vector of bytes */
struct kv_sarray {
	__u64 size, capacity, data;
};

/* Multiplies dimensions that are on the heap. Returns MXBPF_KV_UNKNOWN if one cannot be read. */
__noinline __u64 kv_heap_elements(__u64 heap, __u32 ndim)
{
	__u64 n = 1, dim;
	__u32 i;

	for (i = 0; i < KV_DIMS_MAX && i < ndim; i++) {
		dim = 0;
		if (bpf_probe_read_user(&dim, sizeof(dim), (void *)(heap + i * 8)) || (__s64)dim < 0)
			return MXBPF_KV_UNKNOWN;
		n *= dim;
	}
	return n;
}

/* Returns the size of a dense array, in bytes, or MXBPF_KV_UNKNOWN. */
__noinline __u64 kv_array_bytes(__u64 addr, __u32 here)
{
	__u64 n = 1, each;
	struct kv_shape a;
	struct kv_tail tail;
	__s32 i;

	if (bpf_probe_read_user(&a, sizeof(a), (void *)(addr + KV_ARRAY_OFF)) ||
	    bpf_probe_read_user(&tail, sizeof(tail), (void *)(addr + KV_ARRAY_OFF + 8 + (__u64)here * 8)))
		return MXBPF_KV_UNKNOWN;
	if (a.ndim < 0 || a.ndim > KV_DIMS_MAX || tail.storage || (__u32)tail.dtype >= KV_DTYPES)
		return MXBPF_KV_UNKNOWN;
	each = KV_DTYPE_BYTES >> (4 * (__u32)tail.dtype) & 15;
	if ((__u32)a.ndim > here) {
		n = kv_heap_elements(tail.heap, a.ndim);
		return n == MXBPF_KV_UNKNOWN ? n : n * each;
	}
	for (i = 0; i < KV_DIMS_HERE; i++) {
		if (i >= a.ndim)
			break;
		if (a.dims[i] < 0)
			return MXBPF_KV_UNKNOWN;
		n *= a.dims[i];
	}
	return n * each;
}

/* Appends key and size of array i of a call. */
__noinline int kv_value(__u32 slot, __u64 keys, __u64 arrays, __u32 i, __u32 here)
{
	struct kv_call *c = bpf_map_lookup_elem(&kv_calls, &slot);
	struct mxbpf_thread *t = bpf_map_lookup_elem(&threads, &slot);
	__u64 key = 0, array = 0;
	bool named, lost;
	__u32 n;

	if (!c || !t)
		return 0;
	n = c->head.nvalues;
	if (n >= MXBPF_KV_VALUES_MAX) {
		c->head.more++;
		return 0;
	}
	asm volatile("%0 &= %1" : "+r"(n) : "i"(MXBPF_KV_VALUES_MAX - 1));
	named = c->head.flags & MXBPF_KV_NAMED;
	if (named)
		lost = bpf_probe_read_user(&key, 8, (void *)(keys + (__u64)i * 8));
	else
		lost = bpf_probe_read_user(&key, 4, (void *)(keys + (__u64)i * 4));
	if (!lost)
		lost = bpf_probe_read_user(&array, 8, (void *)(arrays + (__u64)i * 8));
	t->counts[MXBPF_COUNT_UNREADABLE] += lost;
	if (lost)
		return 0;
	c->values[n].key = named ? name_intern(t, key, 0) : (__u64)(__s64)(__s32)key;
	c->values[n].bytes = kv_array_bytes(array, here);
	c->head.nvalues = n + 1;
	return 0;
}

/* Appends the keys and sizes of a list. */
__noinline int kv_values(__u32 slot, __u64 keys, __u64 arrays, __u32 n, __u32 here)
{
	struct kv_call *c = bpf_map_lookup_elem(&kv_calls, &slot);
	__u32 i;

	for (i = 0; i < MXBPF_KV_VALUES_MAX && i < n; i++)
		kv_value(slot, keys, arrays, i, here);
	if (c && n > MXBPF_KV_VALUES_MAX)
		c->head.more += n - MXBPF_KV_VALUES_MAX;
	return 0;
}

/*
 * Reads a request that a server handles. The call's arguments are: server, type, KVMeta &, KVPairs &. The size of
 * the answer to a pull is not known yet.
 */
__noinline int kv_served(__u32 slot, __u64 meta, __u64 pairs)
{
	struct kv_call *c = bpf_map_lookup_elem(&kv_calls, &slot);
	struct mxbpf_thread *t = bpf_map_lookup_elem(&threads, &slot);
	struct kv_sarray keys = {}, vals = {};
	__u64 key = 0;
	__u8 push = 0;

	if (!c || !t)
		return 0;
	if (bpf_probe_read_user(&push, 1, (void *)(meta + KV_META_PUSH)) ||
	    bpf_probe_read_user(&keys, sizeof(keys), (void *)(pairs + KV_PAIRS_KEYS)) ||
	    bpf_probe_read_user(&vals, sizeof(vals), (void *)(pairs + KV_PAIRS_VALS)) ||
	    (keys.size && bpf_probe_read_user(&key, sizeof(key), (void *)keys.data))) {
		t->counts[MXBPF_COUNT_UNREADABLE]++;
		return 0;
	}
	if (!push)
		c->head.flags |= MXBPF_KV_PULLED;
	if (!keys.size)
		return 0;
	/* For rows of a sparse array, the first key is that of the array, and the others are those of its rows. */
	c->values[0].key = key;
	c->values[0].bytes = push ? vals.size : MXBPF_KV_UNKNOWN;
	c->head.nvalues = 1;
	return 0;
}

static __always_inline void kv_read(struct pt_regs *ctx, struct mxbpf_thread *t, const volatile struct mxbpf_row *row)
{
	__u32 slot = t->slot, here = row->kv_flags >> MXBPF_KV_DIMS_SHIFT;
	struct kv_call *c = bpf_map_lookup_elem(&kv_calls, &slot);
	__u64 received = 0;

	if (!c)
		return;
	c->head.nvalues = c->head.more = 0;
	c->head.nsent = 0;
	c->head.flags = row->kv_flags & MXBPF_KV_FLAGS;
	c->head.pad = 0;
	switch (row->kv) {
	case MXBPF_KV_SEND: /* arguments: store, n, keys, arrays */
		kv_values(slot, PT_REGS_PARM3(ctx), PT_REGS_PARM4(ctx), (__u32)PT_REGS_PARM2(ctx), here);
		c->head.nsent = c->head.nvalues;
		break;
	case MXBPF_KV_RECEIVE:
		kv_values(slot, PT_REGS_PARM3(ctx), PT_REGS_PARM4(ctx), (__u32)PT_REGS_PARM2(ctx), here);
		break;
	case MXBPF_KV_BOTH: /* arguments: store, n sent, keys, n received, keys, arrays sent, arrays received */
		kv_values(slot, PT_REGS_PARM3(ctx), ctx->r9, (__u32)PT_REGS_PARM2(ctx), here);
		c->head.nsent = c->head.nvalues;
		if (bpf_probe_read_user(&received, sizeof(received), (void *)(PT_REGS_SP(ctx) + 8)))
			t->counts[MXBPF_COUNT_UNREADABLE]++;
		else
			kv_values(slot, PT_REGS_PARM5(ctx), received, (__u32)PT_REGS_PARM4(ctx), here);
		break;
	case MXBPF_KV_SERVE:
		kv_served(slot, PT_REGS_PARM3(ctx), PT_REGS_PARM4(ctx));
		c->head.nsent = c->head.flags & MXBPF_KV_PULLED ? 0 : c->head.nvalues;
		break;
	}
}

/* Sends the record of the span that has just begun. */
static __always_inline void kv_emit(struct mxbpf_thread *t, struct mxbpf_frame *f)
{
	__u32 slot = t->slot;
	struct kv_call *c = bpf_map_lookup_elem(&kv_calls, &slot);
	__u64 last, bytes;

	if (!c || !c->head.nvalues || c->head.nvalues > MXBPF_KV_VALUES_MAX)
		return;
	last = c->head.nvalues - 1;
	asm volatile("%0 &= %1"
		     : "+r"(last)
		     : "i"(MXBPF_KV_VALUES_MAX - 1)); /* restores the bound, which the verifier of Linux 6.1 loses */
	bytes = sizeof(c->head) + (last + 1) * sizeof(c->values[0]);
	c->head.h.kind = MXBPF_KV;
	c->head.h.size = bytes;
	c->head.h.tgid = t->tgid;
	c->head.h.ts_ns = f->start_ns;
	c->head.name_id = f->name_id;
	c->head.tid = t->tid;
	t->counts[MXBPF_COUNT_ATTEMPTED]++;
	if (bpf_ringbuf_output(&calls, c, bytes, ring_flags(t)))
		t->counts[MXBPF_COUNT_DROPPED]++;
}

static __always_inline void kv_open(struct pt_regs *ctx, struct mxbpf_thread *t, const volatile struct mxbpf_row *row)
{
	__u64 before = bpf_ktime_get_ns();
	struct mxbpf_frame *f;

	if (cfg_kv)
		kv_read(ctx, t, row);
	span_open(ctx, t, row);
	f = frame_top(t);
	if (cfg_kv && f && f->cls == row->cls && f->start_ns >= before)
		kv_emit(t, f);
}

#endif
