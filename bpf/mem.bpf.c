// SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause)
/* Device memory: requests to the runtime's storage layer and frees, in requested bytes. */
#include "common.bpf.h"
#include "mxbpf_agent.h"
#include "read/name.bpf.h"

#define MXBPF_BLOCKS_MAX (1 << 18) /* live allocations whose free call passes only the address */

/* --memory: the allocation in progress on a thread; value of map `allocating`, by slot. */
struct mxbpf_allocating {
	__u64 sp;    /* stack pointer at the entry of the allocating function; 0: none in progress */
	__u64 place; /* address of the variable that gets the block's address */
	__u64 pool;  /* address of the pool's count of reserved bytes; 0: not pooled */
	__s64 bytes;
	__u64 scope_id, label_id;
	__u64 total;   /* with `counted`: bytes that the allocator has allocated in all */
	__u64 wanted;  /* bytes of an allocation that failed; then `bytes` is 0 */
	__u64 counted; /* the allocator reports totals */
	__u32 device;
	__u32 tid;
};

#define CPU_TYPE 1 /* type of the CPU in MXBPF_DEVICE() */

const volatile __u64
	cfg_lenders[MXBPF_LENDERS_MAX]; /* name ids of operators that allocate for others; 0: unused entry */

/* Sizes by address, for runtimes that pass only an address to free. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MXBPF_BLOCKS_MAX);
	__type(key, struct mxbpf_key);
	__type(value, __s64);
} blocks SEC(".maps");

/* With --memory, user space makes this map as large as the number of slots. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct mxbpf_allocating);
} allocating SEC(".maps");

/* A c10::Device: its type, which counts from 0, and its ordinal; -1: the current one. */
static __always_inline __u32 device_from(__u64 device)
{
	__s8 ordinal = device >> 8;

	return MXBPF_DEVICE((__u8)device + 1, ordinal < 0 ? 0 : ordinal);
}

static __always_inline __u32 report_device(struct pt_regs *ctx)
{
	return device_from(PT_REGS_PARM5(ctx));
}

/*
 * Returns the size of a block. An allocation stores it by address, and a free looks it up. Returns 0 for calls to
 * ignore.
 */
static __always_inline __s64 block_bytes(struct pt_regs *ctx, struct mxbpf_thread *t,
					 const volatile struct mxbpf_row *row)
{
	struct mxbpf_key key = {.key = fetch(ctx, t, &row->key), .tgid = t->tgid};
	__s64 bytes = fetch(ctx, t, &row->size), *known;

	if (row->key.base == MXBPF_BASE_NONE)
		return bytes;
	if (row->action == MXBPF_ACT_ALLOC || (row->action == MXBPF_ACT_REPORT && bytes > 0)) {
		/* Without an entry, the size of the later free would be unknown. */
		if (bytes && bpf_map_update_elem(&blocks, &key, &bytes, BPF_ANY))
			t->counts[MXBPF_COUNT_TRUNCATED]++;
		return bytes;
	}
	known = bpf_map_lookup_elem(&blocks, &key);
	/*
	 * Allocated before the window: only the object or the report may know its size. Or it is a storage in shared
	 * memory, whose end has been counted (UNMAP in adapter/pytorch.c); it is reported without a total.
	 */
	if (!known)
		return row->action == MXBPF_ACT_REPORT && !PT_REGS_PARM3(ctx) && report_device(ctx) >> 16 == CPU_TYPE
			       ? 0
			       : bytes;
	bytes = row->action == MXBPF_ACT_REPORT ? -*known : *known;
	bpf_map_delete_elem(&blocks, &key);
	return bytes;
}

/* Returns true if other probes or the agent have counted this memory already. */
static __always_inline bool report_counted(struct pt_regs *ctx, struct mxbpf_thread *t,
					   const volatile struct mxbpf_row *row)
{
	__u64 caller = 0, place;

	if (!PT_REGS_PARM1(ctx) || ctx->r9 == MXBPF_AGENT_REPORTED)
		return true;
	if (report_device(ctx) >> 16 != CPU_TYPE)
		return false;
	if (bpf_probe_read_user(&caller, sizeof(caller), (void *)PT_REGS_SP(ctx)))
		t->counts[MXBPF_COUNT_UNREADABLE]++;
	place = caller - (PT_REGS_IP(ctx) - row->own_before);
	return place < row->own_before + row->own_after;
}

/* Charges the bytes to the innermost open span of the thread whose function has not returned. */
static __always_inline void mem_charge(struct pt_regs *ctx, struct mxbpf_thread *t, __s64 bytes)
{
	struct mxbpf_frame *f;

	if (!cfg_spans[0])
		return;
	frames_end(t, PT_REGS_SP(ctx));
	f = frame_top(t);
	if (!f)
		return;
	f->alloc_bytes += bytes;
	f->self_alloc_bytes += bytes;
}

__noinline int is_lender(__u64 id)
{
	int i;

	for (i = 0; i < MXBPF_LENDERS_MAX; i++)
		if (cfg_lenders[i] && cfg_lenders[i] == id)
			return 1;
	return 0;
}

/*
 * Returns how well a frame identifies the owner of an allocation; 0: not at all. Among equals the innermost frame
 * wins.
 */
__noinline int owner_rank(struct mxbpf_frame *f)
{
	if (!f)
		return 0;
	if (f->cls == MXBPF_CLASS_API)
		return 1;
	if (f->cls != MXBPF_CLASS_OPERATOR)
		return 0;
	return is_lender(f->name_id) ? 2 : 3;
}

/* Returns 1 + index of the innermost frame of this rank among frames d - 1 to d - FRAMES_STEP, or 0. */
__noinline int owner_find_step(struct mxbpf_thread *t, __u32 d, __u32 rank)
{
	struct mxbpf_frame *f;
	int i;

	t = frames_of(t);
	for (i = 1; t && i <= FRAMES_STEP; i++) {
		f = frame_near(t, d, -i);
		if (!f)
			break;
		if (owner_rank(f) == rank)
			return d - i + 1;
	}
	return 0;
}

__noinline int owner_find_rank(struct mxbpf_thread *t, __u32 rank)
{
	__u32 i, found;

	for (i = 0; t && i < MXBPF_FRAMES_MAX && i < t->depth; i += FRAMES_STEP) {
		found = owner_find_step(t, t->depth - i, rank);
		if (found)
			return found;
	}
	return 0;
}

/* Returns 1 + index of the frame that owns an allocation, or 0 if no frame is open. */
__noinline int owner_find(struct mxbpf_thread *t)
{
	__u32 rank, found = 0;

	for (rank = 3; t && rank && !found; rank--)
		found = owner_find_rank(t, rank);
	return found;
}

static __always_inline void owner_fill(struct mxbpf_alloc *r, struct mxbpf_thread *t)
{
	struct mxbpf_frame *f = frame_at(t, owner_find(t) - 1);

	r->name_id = f ? f->name_id : 0;
	r->layer_id = f && cfg_details & MXBPF_DETAIL_LAYER ? f->layer_id : 0;
	r->cls = f ? f->cls : MXBPF_CLASS_NONE;
}

/* An operator is pushed: row.link is the object that the engine runs, or row.key the vector of arrays that it writes.
 */
static __always_inline void on_pushed(struct pt_regs *ctx, struct mxbpf_thread *t, const volatile struct mxbpf_row *row)
{
	struct mxbpf_key key = {};
	__u64 stack_id, array;
	__u16 n;

	frames_end(t, PT_REGS_SP(ctx));
	stack_id = running_stack(t);
	if (!row->link.base) {
		if (stack_id && inside_array(fetch(ctx, t, &row->key), false, &n, &array) && n)
			pushed_note(t, array, stack_id);
		return;
	}
	key.key = fetch_link(ctx, t, &row->link);
	key.tgid = t->tgid;
	key.cls = MXBPF_CLASS_OPERATOR;
	if (stack_id && !name_hidden(name_of(ctx, t, row)))
		bpf_map_update_elem(&pushed_stacks, &key, &stack_id, BPF_ANY);
	else
		bpf_map_delete_elem(&pushed_stacks, &key);
}

#define ALLOC_BYTES                                                                                                    \
	(!cfg_memory			    ? MXBPF_ALLOC_BYTES_PLAIN                                                  \
	 : cfg_details & MXBPF_DETAIL_STACK ? MXBPF_ALLOC_BYTES_STACK                                                  \
					    : MXBPF_ALLOC_BYTES_OWNER)

static __always_inline void alloc_fill(struct mxbpf_alloc *r, struct mxbpf_thread *t, struct mxbpf_allocating *a,
				       __u64 addr)
{
	r->h.kind = MXBPF_ALLOC;
	r->h.tgid = t->tgid;
	r->h.ts_ns = bpf_ktime_get_ns();
	r->bytes = a->bytes;
	r->tid = t->tid;
	r->device = a->device;
	r->addr = addr;
}

static __always_inline void alloc_fill_owner(struct mxbpf_alloc *r, struct mxbpf_thread *t, struct mxbpf_allocating *a)
{
	owner_fill(r, t);
	r->scope_id = a->scope_id;
	r->label_id = a->label_id;
	r->pool_bytes = a->pool;
	if (a->wanted)
		r->flags = a->counted ? MXBPF_ALLOC_FAILED : MXBPF_ALLOC_FAILED | MXBPF_ALLOC_UNCOUNTED;
	else
		r->flags = a->sp ? 0 : MXBPF_ALLOC_FREED;
	__builtin_memset(r->pad, 0, sizeof(r->pad));
}

/* Sends the longest form of a record. */
static __always_inline void mem_send_totals(struct mxbpf_thread *t, struct mxbpf_allocating *a, __u64 addr,
					    __u64 stack_id)
{
	struct mxbpf_alloc *r = ring_reserve(t, sizeof(*r));

	if (!r)
		return;
	alloc_fill(r, t, a, addr);
	r->h.size = sizeof(*r);
	alloc_fill_owner(r, t, a);
	r->stack_id = stack_id;
	r->total_bytes = a->total;
	r->wanted_bytes = a->wanted;
	ring_submit(t, r);
}

/* Sends a record of a->bytes bytes at addr; a->bytes < 0: they are freed. */
__noinline int mem_send(struct mxbpf_thread *t, struct mxbpf_allocating *a, __u64 addr)
{
	struct mxbpf_alloc *r;
	__u64 stack_id = 0;

	if (!t || !a)
		return 0;
	if (cfg_memory && cfg_details & MXBPF_DETAIL_STACK && a->sp)
		stack_id = alloc_stack(t);
	if (a->wanted || (cfg_memory && a->counted)) {
		mem_send_totals(t, a, addr, stack_id);
		return 0;
	}
	r = ring_reserve(t, ALLOC_BYTES);
	if (!r)
		return 0;
	alloc_fill(r, t, a, addr);
	r->h.size = ALLOC_BYTES;
	if (cfg_memory)
		alloc_fill_owner(r, t, a);
	if (cfg_memory && cfg_details & MXBPF_DETAIL_STACK)
		r->stack_id = stack_id;
	ring_submit(t, r);
	return 0;
}

/* An allocator is out of memory. It has freed what it could, and throws. */
static __always_inline void mem_failed(struct pt_regs *ctx, struct mxbpf_thread *t)
{
	struct mxbpf_allocating a = {
		.sp = PT_REGS_SP(ctx),
		.pool = PT_REGS_PARM3(ctx),
		.total = PT_REGS_PARM2(ctx),
		.wanted = PT_REGS_PARM1(ctx),
		.counted = 1,
		.device = device_from(PT_REGS_PARM4(ctx)),
	};

	if (!a.wanted)
		return;
	if (cfg_spans[0])
		frames_end(t, PT_REGS_SP(ctx));
	mem_send(t, &a, 0);
}

static __always_inline __u32 mem_device(struct pt_regs *ctx, struct mxbpf_thread *t,
					const volatile struct mxbpf_row *row)
{
	return row->device_const ? row->device_const : fetch_device(ctx, t, &row->device);
}

/* Returns the id of the runtime's label for an array. The record's scope is the array's name. */
static __always_inline __u64 label_of(struct pt_regs *ctx, struct mxbpf_thread *t, const volatile struct mxbpf_row *row)
{
	__u64 text = row->name_type ? fetch(ctx, t, &row->alt_name) : 0;

	return text ? name_intern(t, text, 0) : 0;
}

/*
 * Notes an allocation that begins. The record is sent at its end, because the address is not known before, and an
 * allocation that throws has none.
 */
static __always_inline void alloc_begin(struct pt_regs *ctx, struct mxbpf_thread *t,
					const volatile struct mxbpf_row *row)
{
	__u32 slot = t->slot;
	struct mxbpf_allocating *a = bpf_map_lookup_elem(&allocating, &slot);
	if (!a)
		return;
	if (a->sp && a->tid == t->tid)
		t->counts[MXBPF_COUNT_UNMATCHED]++;
	a->sp = PT_REGS_SP(ctx);
	a->tid = t->tid;
	a->pool = 0;
	a->place = fetch(ctx, t, &row->link);
	a->bytes = fetch(ctx, t, &row->size);
	a->device = mem_device(ctx, t, row);
	a->scope_id = name_of(ctx, t, row);
	a->label_id = label_of(ctx, t, row);
}

/* Pool call: nested in an allocation, or just before one that has its own probe. */
static __always_inline void alloc_pool(struct pt_regs *ctx, struct mxbpf_thread *t,
				       const volatile struct mxbpf_row *row)
{
	__u32 slot = t->slot;
	struct mxbpf_allocating *a = bpf_map_lookup_elem(&allocating, &slot);

	if (!a)
		return;
	if (!a->sp || a->tid != t->tid) {
		a->sp = 0;
		a->tid = t->tid;
		a->place = fetch(ctx, t, &row->key);
	}
	a->pool = fetch(ctx, t, &row->link) + row->link.off[0];
}

/* Returns the bytes reserved by the pool that the block at *place came from; 0 if not pooled. */
__noinline __u64 pool_bytes(struct mxbpf_thread *t, __u64 place)
{
	struct mxbpf_allocating *a;
	__u64 bytes = 0;
	__u32 slot;

	if (!t)
		return 0;
	slot = t->slot;
	a = bpf_map_lookup_elem(&allocating, &slot);
	if (!a || !a->pool || a->place != place || a->tid != t->tid)
		return 0;
	if (bpf_probe_read_user(&bytes, sizeof(bytes), (void *)a->pool))
		t->counts[MXBPF_COUNT_UNREADABLE]++;
	a->pool = 0;
	return bytes;
}

/*
 * An exception starts on the thread. An allocation in progress whose frame is around it ends without an address: there
 * was no memory. The stack grows downwards.
 */
static __always_inline void mem_thrown(struct pt_regs *ctx, struct mxbpf_thread *t)
{
	struct mxbpf_allocating *a, failed;
	__u32 slot = t->slot;

	a = bpf_map_lookup_elem(&allocating, &slot);
	if (!a || !a->sp || a->tid != t->tid || a->sp <= PT_REGS_SP(ctx))
		return;
	failed = *a;
	failed.wanted = a->bytes;
	failed.bytes = 0;
	failed.total = 0;
	failed.counted = 0;
	failed.pool = pool_bytes(t, a->place);
	a->sp = 0;
	if (!failed.wanted)
		return;
	if (cfg_spans[0])
		frames_end(t, PT_REGS_SP(ctx));
	mem_send(t, &failed, 0);
}

static __always_inline void alloc_end(struct pt_regs *ctx, struct mxbpf_thread *t)
{
	__u64 cookie = probe_cookie(ctx), flags = ctx->flags, addr = 0;
	__u32 code = cookie >> MXBPF_CUT_COND_SHIFT & 31;
	__u32 slot = t->slot;
	struct mxbpf_allocating *a;

	if (code && condition(code - 1, flags) != !!(cookie & MXBPF_CUT_TAKEN))
		return;
	a = bpf_map_lookup_elem(&allocating, &slot);
	if (!a || !a->sp || a->tid != t->tid || a->sp != cookie_sp(cookie, PT_REGS_SP(ctx), ctx->bp))
		return;
	if (bpf_probe_read_user(&addr, sizeof(addr), (void *)a->place))
		t->counts[MXBPF_COUNT_UNREADABLE]++;
	a->pool = pool_bytes(t, a->place);
	mem_charge(ctx, t, a->bytes);
	mem_send(t, a, addr);
	a->sp = 0;
}

static __always_inline void mem_emit(struct pt_regs *ctx, struct mxbpf_thread *t, const volatile struct mxbpf_row *row)
{
	struct mxbpf_allocating a = {};

	if (row->guard.base != MXBPF_BASE_NONE && !fetch(ctx, t, &row->guard))
		return;
	if (row->end == MXBPF_END_CUT) {
		alloc_begin(ctx, t, row);
		return;
	}
	if (row->action == MXBPF_ACT_REPORT && report_counted(ctx, t, row))
		return;
	a.bytes = block_bytes(ctx, t, row);
	if (!a.bytes && row->key.base != MXBPF_BASE_NONE && !(cfg_memory && row->action == MXBPF_ACT_FREE))
		return;
	if (row->action == MXBPF_ACT_FREE)
		a.bytes = -a.bytes;
	else if (row->action == MXBPF_ACT_ALLOC || a.bytes > 0)
		a.sp = PT_REGS_SP(ctx);
	mem_charge(ctx, t, a.bytes);
	a.device = row->action == MXBPF_ACT_REPORT ? report_device(ctx) : mem_device(ctx, t, row);
	if (row->action == MXBPF_ACT_REPORT && a.device >> 16 != CPU_TYPE) {
		a.pool = PT_REGS_PARM4(ctx);
		a.total = PT_REGS_PARM3(ctx);
		a.counted = a.pool != 0;
	}
	if (cfg_memory && row->action == MXBPF_ACT_ALLOC) {
		a.scope_id = name_of(ctx, t, row);
		a.label_id = label_of(ctx, t, row);
		a.pool = pool_bytes(t, PT_REGS_PARM2(ctx));
	}
	mem_send(t, &a, fetch(ctx, t, cfg_memory && row->link.base ? &row->link : &row->key));
}
