// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/* Device memory: what the runtime's storage layer is asked for and given back, in requested bytes. */
#include "common.bpf.h"
#include "stats.bpf.h"

/* Sizes by address, for runtimes that give back an address alone. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MXBPF_BLOCKS_MAX);
	__type(key, struct mxbpf_key);
	__type(value, __s64);
} blocks SEC(".maps");

/* The size of an allocation; remembered at an address, or found by it. 0: none of our business. */
static __always_inline __s64 block_bytes(struct pt_regs *ctx, struct mxbpf_thread *t,
					 const volatile struct mxbpf_row *row)
{
	struct mxbpf_key key = {.key = fetch(ctx, t, &row->key), .tgid = t->tgid};
	__s64 bytes = fetch(ctx, t, &row->size), *known;

	if (row->key.base == MXBPF_BASE_NONE)
		return bytes;
	if (row->action == MXBPF_ACT_ALLOC) {
		if (bytes)
			bpf_map_update_elem(&blocks, &key, &bytes, BPF_ANY);
		return bytes;
	}
	known = bpf_map_lookup_elem(&blocks, &key);
	if (!known) /* allocated before the window: its size is not known */
		return 0;
	bytes = *known;
	bpf_map_delete_elem(&blocks, &key);
	return bytes;
}

/* The innermost open span of the thread pays, unless its function has been left. */
static __always_inline void mem_charge(struct pt_regs *ctx, struct mxbpf_thread *t, __s64 bytes)
{
	struct mxbpf_frame *f;

	frames_end(t, PT_REGS_SP(ctx));
	f = frame_top(t);
	if (!f)
		return;
	f->alloc_bytes += bytes;
	f->self_alloc_bytes += bytes;
}

static __always_inline void mem_emit(struct pt_regs *ctx, struct mxbpf_thread *t, const volatile struct mxbpf_row *row)
{
	struct mxbpf_alloc *r;
	__u32 device;
	__s64 bytes;

	if (row->guard.base != MXBPF_BASE_NONE && !fetch(ctx, t, &row->guard))
		return;
	bytes = block_bytes(ctx, t, row);
	if (!bytes && row->key.base != MXBPF_BASE_NONE)
		return;
	if (row->action == MXBPF_ACT_FREE)
		bytes = -bytes;
	mem_charge(ctx, t, bytes);
	device = row->device_const ? row->device_const : fetch_device(ctx, t, &row->device);
	if (cfg_stats)
		stats_alloc(t, device, bytes);
	if (cfg_stats == MXBPF_STATS_ON)
		return;
	r = ring_reserve(t, sizeof(*r));
	if (!r)
		return;
	r->h.kind = MXBPF_ALLOC;
	r->h.size = sizeof(*r);
	r->h.tgid = t->tgid;
	r->h.ts_ns = bpf_ktime_get_ns();
	r->bytes = bytes;
	r->tid = t->tid;
	r->device = device;
	r->addr = fetch(ctx, t, &row->key);
	ring_submit(t, r);
}
