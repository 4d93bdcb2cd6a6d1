// SPDX-License-Identifier: Apache-2.0
/*
 * --memory: attributes the memory of a device to owners. Live allocations are kept by address. A new peak does not copy
 * the live bytes of all owners. Instead, peaks are numbered, and an owner saves its live bytes of the latest peak when
 * it changes for the first time after that peak. So the cost of an event does not depend on the number of owners.
 */
#include "feature/memory/memory.h"
#include "feature/memory/failed.h"
#include "feature/memory/growth.h"

#include <errno.h>
#include <string.h>

struct mem_device {
	struct mxbpf_mem_time t;
	uint64_t peaks;	      /* number of the latest peak */
	uint64_t first_ns;    /* first event; 0: none was folded */
	int64_t largest_peak; /* in a sum of processes: the largest peak of one process */
	bool later_peak;      /* while records are merged: the record that was folded last has the peak */
};
struct mem_owner {
	struct mxbpf_mem_owner h;
	uint64_t stamp; /* h.peak_bytes is of this peak; at later peaks the owner had h.live_bytes */
	struct memory_growth growth;
};
struct mem_block {
	uint64_t bytes;
	uint32_t owner; /* index in owners */
	uint32_t next;	/* if the block is free: 1 + index of the next free one */
};
struct state {
	struct hash device_index; /* (tgid, device) -> 1 + index in devices */
	struct hash owner_index;  /* (hash of the owner, tgid and device) -> index in owners */
	struct hash block_index;  /* (address, tgid and device) -> index in blocks */
	struct buf devices;	  /* struct mem_device */
	struct buf owners;	  /* struct mem_owner */
	struct buf blocks;	  /* struct mem_block */
	uint32_t free_block;	  /* 1 + index; 0: none */
	struct memory_failed failed;
};

/* Returns the i-th device, or NULL behind the last. */
static struct mem_device *device_at(const struct state *h, size_t i)
{
	return i < buf_count(&h->devices, struct mem_device) ? buf_at(&h->devices, struct mem_device, i) : NULL;
}

static struct mem_owner *owner_at(const struct state *h, size_t i)
{
	return i < buf_count(&h->owners, struct mem_owner) ? buf_at(&h->owners, struct mem_owner, i) : NULL;
}

static struct mem_device *memory_device_of(struct state *h, uint32_t tgid, uint32_t device)
{
	bool added;
	struct mem_device *d = mdl_item_put(&h->device_index, &h->devices, tgid, device, sizeof(*d), &added);

	if (added)
		d->t = (struct mxbpf_mem_time){.h = {.kind = MXBPF_MEM_TIME, .size = sizeof(d->t), .tgid = tgid},
					       .device = device};
	return d;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

static uint64_t memory_key_of(const struct mxbpf_mem_owner *o)
{
	const uint64_t h =
		mix(mix(mix(mix(o->name_id, o->layer_id), o->scope_id), o->label_id), (uint64_t)o->flags << 8 | o->cls);

	return o->stack_id ? mix(h, o->stack_id) : h;
}

/*
 * Returns the owner of a device that is like another one, and its index in *place. Owners beyond MEMORY_OWNERS_MAX
 * share one. NULL: out of memory.
 */
static struct mem_owner *owner_like(struct mdl *m, struct state *h, const struct mem_device *d,
				    const struct mxbpf_mem_owner *like, uint32_t *place)
{
	struct mem_owner o = {.h = *like, .stamp = d->peaks};
	uint64_t b = (uint64_t)d->t.h.tgid << 32 | d->t.device, *at = hash_get(&h->owner_index, memory_key_of(like), b);

	if (!at && buf_count(&h->owners, struct mem_owner) >= MEMORY_OWNERS_MAX && !o.h.flags) {
		o.h = (struct mxbpf_mem_owner){.flags = MXBPF_MEM_OWNER_MORE};
		at = hash_get(&h->owner_index, memory_key_of(&o.h), b);
	}
	if (!at) {
		at = hash_put(&h->owner_index, memory_key_of(&o.h), b);
		o.h.h = (struct mxbpf_rec){.kind = MXBPF_MEM_OWNER, .size = sizeof(o.h), .tgid = d->t.h.tgid};
		o.h.device = d->t.device;
		o.h.allocs = o.h.frees = o.h.alloc_bytes = o.h.free_bytes = o.h.live_blocks = 0;
		o.h.live_bytes = o.h.peak_bytes = 0;
		o.h.grown_bytes = 0;
		o.h.grown_ns = 0;
		if (!at || mdl_expect_name(m, o.h.name_id) || mdl_expect_name(m, o.h.scope_id) ||
		    mdl_expect_name(m, o.h.label_id) || buf_put(&h->owners, &o, sizeof(o)))
			return NULL;
		*at = buf_count(&h->owners, struct mem_owner) - 1;
	}
	*place = (uint32_t)*at;
	return buf_at(&h->owners, struct mem_owner, *at);
}

/* Saves the bytes of the latest peak. Call it before the owner changes. */
static void owner_settle(struct mem_owner *o, const struct mem_device *d)
{
	if (o->stamp != d->peaks)
		o->h.peak_bytes = o->h.live_bytes;
	o->stamp = d->peaks;
}

static __int128 area_of(const struct mxbpf_mem_time *t)
{
	return (__int128)((unsigned __int128)(uint64_t)t->area_high << 64 | t->area_low);
}

static void area_set(struct mxbpf_mem_time *t, __int128 area)
{
	t->area_low = (uint64_t)area;
	t->area_high = (int64_t)(area >> 64);
}

/* Adds as unsigned numbers, because numbers from a file can overflow. */
static __int128 area_add(__int128 a, int64_t bytes, uint64_t ns)
{
	return (__int128)((unsigned __int128)a + (unsigned __int128)((__int128)bytes * (__int128)ns));
}

/* Adds the time since the last event, in which live_bytes did not change. */
static void device_until(struct mem_device *d, uint64_t now_ns)
{
	if (d->t.last_ns && now_ns > d->t.last_ns)
		area_set(&d->t, area_add(area_of(&d->t), d->t.live_bytes, now_ns - d->t.last_ns));
	if (now_ns > d->t.last_ns)
		d->t.last_ns = now_ns;
}

static void memory_fold_take(struct mem_device *d, struct mem_owner *o, uint64_t bytes, uint64_t now_ns)
{
	const int64_t n = bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;

	owner_settle(o, d);
	growth_note(&o->growth, d->first_ns, d->t.last_ns, o->h.live_bytes);
	add_sat(&o->h.allocs, 1);
	add_sat(&o->h.alloc_bytes, bytes);
	add_sat_any(&o->h.live_bytes, n);
	o->h.live_blocks++;
	add_sat_any(&d->t.live_bytes, n);
	if (d->t.live_bytes <= d->t.peak_bytes)
		return;
	d->t.peak_bytes = d->t.live_bytes;
	d->t.peak_ns = now_ns;
	d->peaks++;
}

static void give_back(struct mem_device *d, struct mem_owner *o, uint64_t bytes)
{
	const int64_t n = bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;

	owner_settle(o, d);
	growth_note(&o->growth, d->first_ns, d->t.last_ns, o->h.live_bytes);
	add_sat(&o->h.frees, 1);
	add_sat(&o->h.free_bytes, bytes);
	add_sat_any(&o->h.live_bytes, -n);
	o->h.live_blocks -= o->h.live_blocks && !(o->h.flags & MXBPF_MEM_OWNER_BEFORE);
	add_sat_any(&d->t.live_bytes, -n);
}

/* Frees a block. */
static void block_end(struct state *h, struct mem_device *d, uint64_t at)
{
	struct mem_block *b = buf_at(&h->blocks, struct mem_block, at);

	give_back(d, buf_at(&h->owners, struct mem_owner, b->owner), b->bytes);
	b->next = h->free_block;
	h->free_block = (uint32_t)at + 1;
}

static uint64_t memory_place_of(const struct mem_device *d)
{
	return (uint64_t)d->t.h.tgid << 32 | d->t.device;
}

/* Returns 1, 0 if there are MEMORY_BLOCKS_MAX blocks, or -ENOMEM. */
static int block_begin(struct state *h, const struct mem_device *d, uint64_t addr, const struct mem_block *b)
{
	uint64_t at = h->free_block ? h->free_block - 1 : buf_count(&h->blocks, struct mem_block), *slot;

	if (at >= MEMORY_BLOCKS_MAX)
		return 0;
	slot = hash_put(&h->block_index, addr, memory_place_of(d));
	if (!slot || (!h->free_block && !buf_add(&h->blocks, sizeof(*b))))
		return -ENOMEM;
	*slot = at;
	if (h->free_block)
		h->free_block = buf_at(&h->blocks, struct mem_block, at)->next;
	*buf_at(&h->blocks, struct mem_block, at) = *b;
	return 1;
}

static int fold_free(struct mdl *m, struct state *h, struct mem_device *d, const struct mxbpf_alloc *a)
{
	const struct mxbpf_mem_owner before = {.flags = MXBPF_MEM_OWNER_BEFORE};
	struct mem_owner *o;
	uint32_t place;
	uint64_t at;

	if (hash_del(&h->block_index, a->addr, memory_place_of(d), &at)) {
		block_end(h, d, at);
		return 0;
	}
	o = owner_like(m, h, d, &before, &place);
	if (!o)
		return -ENOMEM;
	give_back(d, o, -(uint64_t)a->bytes);
	d->t.unsized += !a->bytes;
	return 0;
}

static int fold_take(struct mdl *m, struct state *h, struct mem_device *d, const struct mxbpf_alloc *a)
{
	const struct mxbpf_mem_owner like = {.name_id = a->name_id,
					     .layer_id = a->layer_id,
					     .scope_id = a->scope_id,
					     .label_id = a->label_id,
					     .cls = a->cls,
					     .stack_id = a->h.size < MXBPF_ALLOC_BYTES_STACK ? 0 : a->stack_id};
	struct mem_block b = {.bytes = (uint64_t)a->bytes};
	struct mem_owner *o = owner_like(m, h, d, &like, &b.owner);
	uint64_t at;
	int kept;

	if (!o)
		return -ENOMEM;
	if (a->addr && hash_del(&h->block_index, a->addr, memory_place_of(d), &at)) {
		block_end(h, d, at);
		d->t.missed++;
	}
	memory_fold_take(d, o, (uint64_t)a->bytes, a->h.ts_ns);
	if (a->pool_bytes) {
		d->t.pool_bytes = a->pool_bytes;
		if (a->pool_bytes > d->t.pool_peak_bytes) {
			d->t.pool_peak_bytes = a->pool_bytes;
			d->t.pool_used_bytes = d->t.live_bytes > 0 ? (uint64_t)d->t.live_bytes : 0;
			d->t.pool_total_bytes = 0;
		}
	}
	kept = a->addr ? block_begin(h, d, a->addr, &b) : 0;
	d->t.untracked += !kept;
	return kept < 0 ? kept : 0;
}

/* Takes over what the allocator says of itself after an allocation or a free. */
static void fold_totals(struct mem_device *d, const struct mxbpf_alloc *a)
{
	struct mxbpf_mem_time *t = &d->t;
	const uint64_t unused = a->pool_bytes > a->total_bytes ? a->pool_bytes - a->total_bytes : 0;

	if (!t->counted)
		t->before_bytes = (int64_t)(a->total_bytes - (uint64_t)t->live_bytes);
	t->counted = 1;
	t->total_bytes = a->total_bytes;
	if (a->total_bytes > t->total_peak_bytes)
		t->total_peak_bytes = a->total_bytes;
	if (a->pool_bytes > t->pool_peak_bytes) {
		t->pool_peak_bytes = a->pool_bytes;
		t->pool_used_bytes = t->live_bytes > 0 ? (uint64_t)t->live_bytes : 0;
		t->pool_total_bytes = 0;
	}
	if (a->pool_bytes == t->pool_peak_bytes && a->total_bytes > t->pool_total_bytes)
		t->pool_total_bytes = a->total_bytes;
	t->pool_bytes = a->pool_bytes;
	if (unused > t->unused_peak_bytes) {
		t->unused_peak_bytes = unused;
		t->unused_peak_ns = a->h.ts_ns;
	}
}

static int memory_alloc(struct mdl *m, const struct mxbpf_alloc *a)
{
	struct mem_device *d;
	struct state *h;
	int err;

	if (a->h.size < MXBPF_ALLOC_BYTES_OWNER) /* without --memory it does not say whose it is */
		return 0;
	h = mdl_state(m, &feature_memory);
	if (h && a->flags & MXBPF_ALLOC_FAILED && a->h.size >= sizeof(*a))
		return memory_failed_add(m, &h->failed, a);
	d = h ? memory_device_of(h, a->h.tgid, a->device) : NULL;
	if (!d)
		return -ENOMEM;
	device_until(d, a->h.ts_ns);
	d->first_ns = d->first_ns ? d->first_ns : a->h.ts_ns;
	err = a->flags & MXBPF_ALLOC_FREED ? fold_free(m, h, d, a) : fold_take(m, h, d, a);
	if (a->h.size >= sizeof(*a) && a->pool_bytes)
		fold_totals(d, a);
	return err;
}

static void merge_totals(struct mxbpf_mem_time *to, const struct mxbpf_mem_time *next)
{
	if (!to->counted)
		to->before_bytes = next->before_bytes;
	to->counted = 1;
	to->total_bytes = next->total_bytes;
	if (next->total_peak_bytes > to->total_peak_bytes)
		to->total_peak_bytes = next->total_peak_bytes;
	if (next->unused_peak_bytes > to->unused_peak_bytes) {
		to->unused_peak_bytes = next->unused_peak_bytes;
		to->unused_peak_ns = next->unused_peak_ns;
	}
}

/*
 * Records of one device come in the order of time, and each is followed by its owners. The bytes of each start at 0, so
 * they count from what the records before have left.
 */
static int fold_device(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct mxbpf_mem_time whole = {0}; /* old recordings lack its end */
	const struct mxbpf_mem_time *t = memcpy(&whole, rec, rec->size < sizeof(whole) ? rec->size : sizeof(whole));
	struct state *h = mdl_state(m, &feature_memory);
	struct mem_device *d = h ? memory_device_of(h, rec->tgid, t->device) : NULL;
	int64_t peak_bytes = t->peak_bytes;

	if (!d)
		return -ENOMEM;
	device_until(d, t->last_ns);
	area_set(&d->t, (__int128)((unsigned __int128)area_of(&d->t) + (unsigned __int128)area_of(t)));
	add_sat_any(&peak_bytes, d->t.live_bytes);
	d->later_peak = peak_bytes > d->t.peak_bytes;
	if (d->later_peak) {
		d->t.peak_bytes = peak_bytes;
		d->t.peak_ns = t->peak_ns;
		d->peaks++;
	}
	add_sat_any(&d->t.live_bytes, t->live_bytes);
	add_sat(&d->t.missed, t->missed);
	add_sat(&d->t.untracked, t->untracked);
	add_sat(&d->t.unsized, t->unsized);
	d->t.pool_bytes = t->pool_bytes ? t->pool_bytes : d->t.pool_bytes;
	if (t->pool_peak_bytes > d->t.pool_peak_bytes) {
		d->t.pool_peak_bytes = t->pool_peak_bytes;
		d->t.pool_used_bytes = t->pool_used_bytes;
		d->t.pool_total_bytes = t->pool_total_bytes;
	}
	if (t->counted)
		merge_totals(&d->t, t);
	return 0;
}

static void add_counts(struct mxbpf_mem_owner *to, const struct mxbpf_mem_owner *from)
{
	add_sat(&to->allocs, from->allocs);
	add_sat(&to->frees, from->frees);
	add_sat(&to->alloc_bytes, from->alloc_bytes);
	add_sat(&to->free_bytes, from->free_bytes);
	add_sat(&to->live_blocks, from->live_blocks);
	add_sat_any(&to->live_bytes, from->live_bytes);
	add_sat_any(&to->grown_bytes, from->grown_bytes);
	to->grown_ns = from->grown_ns > to->grown_ns ? from->grown_ns : to->grown_ns;
}

static int fold_owner(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct state *h = mdl_state(m, &feature_memory);
	struct mxbpf_mem_owner from = {0};
	struct mem_device *d;
	struct mem_owner *o;
	uint32_t place;

	memcpy(&from, rec, rec->size < sizeof(from) ? rec->size : sizeof(from)); /* old recordings lack the stack */
	d = h ? memory_device_of(h, rec->tgid, from.device) : NULL;
	o = d ? owner_like(m, h, d, &from, &place) : NULL;
	if (!o)
		return -ENOMEM;
	owner_settle(o, d);
	if (d->later_peak)
		add_sat_any(&o->h.peak_bytes, from.peak_bytes);
	add_counts(&o->h, &from);
	return 0;
}

void memory_owner_add(struct mxbpf_mem_owner *to, const struct mxbpf_mem_owner *from)
{
	add_counts(to, from);
	add_sat_any(&to->peak_bytes, from->peak_bytes);
}

const struct mxbpf_mem_time *memory_device(const struct mdl *m, size_t i)
{
	const struct state *h = mdl_state_of(m, &feature_memory);
	const struct mem_device *d = h ? device_at(h, i) : NULL;

	return d ? &d->t : NULL;
}

static struct mem_device *device_like(const struct state *h, const struct mxbpf_mem_owner *o)
{
	return device_at(h, *hash_get(&h->device_index, o->h.tgid, o->device) - 1);
}

const struct mxbpf_mem_owner *memory_owner(const struct mdl *m, size_t i)
{
	const struct state *h = mdl_state_of(m, &feature_memory);
	struct mem_owner *o = h ? owner_at(h, i) : NULL;
	const struct mem_device *d;
	uint64_t ns;

	if (!o)
		return NULL;
	d = device_like(h, &o->h);
	owner_settle(o, d);
	if (o->growth.start_ns) {
		growth_note(&o->growth, d->first_ns, d->t.last_ns, o->h.live_bytes);
		o->h.grown_bytes = growth_of(&o->growth, &ns);
		o->h.grown_ns = ns;
	}
	return &o->h;
}

bool memory_block(const struct mdl *m, size_t *pos, struct memory_block *out)
{
	const struct state *h = mdl_state_of(m, &feature_memory);
	const struct hash_entry *e = h ? hash_next(&h->block_index, pos) : NULL;
	const struct mem_block *b = e ? buf_at(&h->blocks, struct mem_block, e->val) : NULL;

	if (e)
		*out = (struct memory_block){e->a, b->bytes, &owner_at(h, b->owner)->h};
	return e;
}

uint64_t memory_unused(const struct mxbpf_mem_time *t)
{
	return t->pool_bytes > t->total_bytes ? t->pool_bytes - t->total_bytes : 0;
}

int64_t memory_unexplained(const struct mxbpf_mem_time *t)
{
	return t->counted ? (int64_t)(t->total_bytes - (uint64_t)t->live_bytes - (uint64_t)t->before_bytes) : 0;
}

int64_t memory_mean(const struct mxbpf_mem_time *t, uint64_t start_ns, uint64_t end_ns)
{
	__int128 area = area_of(t);

	if (t->last_ns && end_ns > t->last_ns)
		area = area_add(area, t->live_bytes, end_ns - t->last_ns);
	return end_ns > start_ns ? (int64_t)(area / (__int128)(end_ns - start_ns)) : 0;
}

static int memory_emit(const struct mdl *m, struct buf *out)
{
	const struct mxbpf_mem_owner *o;
	const struct mxbpf_mem_time *t;
	int err = 0;
	size_t i;

	for (i = 0; !err && (t = memory_device(m, i)); i++)
		err = buf_put(out, t, sizeof(*t));
	for (i = 0; !err && (o = memory_owner(m, i)); i++)
		err = buf_put(out, o, sizeof(*o));
	return err ? err : memory_failed_emit(&((const struct state *)mdl_state_of(m, &feature_memory))->failed, out);
}

static int sum_device(struct state *sum, const struct mxbpf_mem_time *t)
{
	struct mem_device *all = memory_device_of(sum, 0, t->device);
	struct mem_device one = {.t = *t};

	if (!all)
		return -ENOMEM;
	if (all->t.last_ns && one.t.last_ns) { /* the areas of both must end at the same time */
		device_until(all, one.t.last_ns);
		device_until(&one, all->t.last_ns);
	}
	if (t->peak_bytes > all->largest_peak || !all->largest_peak)
		all->t.peak_ns = t->peak_ns;
	if (t->peak_bytes > all->largest_peak)
		all->largest_peak = t->peak_bytes;
	area_set(&all->t, (__int128)((unsigned __int128)area_of(&all->t) + (unsigned __int128)area_of(&one.t)));
	all->t.last_ns = one.t.last_ns > all->t.last_ns ? one.t.last_ns : all->t.last_ns;
	add_sat_any(&all->t.live_bytes, t->live_bytes);
	add_sat_any(&all->t.peak_bytes, t->peak_bytes);
	add_sat(&all->t.missed, t->missed);
	add_sat(&all->t.untracked, t->untracked);
	add_sat(&all->t.unsized, t->unsized);
	add_sat(&all->t.pool_bytes, t->pool_bytes);
	add_sat(&all->t.pool_peak_bytes, t->pool_peak_bytes);
	add_sat(&all->t.pool_used_bytes, t->pool_used_bytes);
	all->t.counted |= t->counted;
	add_sat(&all->t.total_bytes, t->total_bytes);
	add_sat(&all->t.total_peak_bytes, t->total_peak_bytes);
	add_sat_any(&all->t.before_bytes, t->before_bytes);
	add_sat(&all->t.pool_total_bytes, t->pool_total_bytes);
	add_sat(&all->t.unused_peak_bytes, t->unused_peak_bytes);
	return 0;
}

static int memory_sum(struct mdl *sum, const struct mdl *m)
{
	struct state *to = mdl_state(sum, &feature_memory);
	const struct mxbpf_mem_owner *from;
	const struct mxbpf_mem_time *t;
	struct mem_owner *o;
	struct mem_device *d;
	uint32_t place;
	int err = to ? 0 : -ENOMEM;
	size_t i;

	for (i = 0; !err && (t = memory_device(m, i)); i++)
		err = sum_device(to, t);
	for (i = 0; !err && (from = memory_owner(m, i)); i++) {
		d = memory_device_of(to, 0, from->device);
		o = d ? owner_like(sum, to, d, from, &place) : NULL;
		if (!o)
			return -ENOMEM;
		owner_settle(o, d);
		add_sat_any(&o->h.peak_bytes, from->peak_bytes);
		add_counts(&o->h, from);
	}
	return err ? err
		   : memory_failed_copy(&to->failed, &((const struct state *)mdl_state_of(m, &feature_memory))->failed);
}

static int fold_failed(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct state *h = mdl_state(m, &feature_memory);

	return h ? memory_failed_fold(m, &h->failed, rec) : -ENOMEM;
}

const struct memory_failed *memory_failures(const struct mdl *m)
{
	const struct state *h = mdl_state_of(m, &feature_memory);

	return h ? &h->failed : NULL;
}

/* Returns the device at the start of a new interval. Its live bytes stay. */
static struct mem_device device_again(const struct mxbpf_mem_time *t, uint64_t now_ns)
{
	return (struct mem_device){.t = {.h = t->h,
					 .live_bytes = t->live_bytes,
					 .peak_bytes = t->live_bytes,
					 .peak_ns = now_ns,
					 .last_ns = now_ns,
					 .pool_bytes = t->pool_bytes,
					 .pool_peak_bytes = t->pool_bytes,
					 .pool_total_bytes = t->total_bytes,
					 .counted = t->counted,
					 .total_bytes = t->total_bytes,
					 .total_peak_bytes = t->total_bytes,
					 .before_bytes = t->before_bytes,
					 .device = t->device}};
}

static struct mem_owner owner_again(const struct mxbpf_mem_owner *o)
{
	struct mem_owner again = {.h = *o};

	again.h.allocs = again.h.frees = again.h.alloc_bytes = again.h.free_bytes = 0;
	again.h.peak_bytes = o->live_bytes;
	again.h.grown_bytes = 0;
	again.h.grown_ns = 0;
	return again;
}

static void memory_fini(struct mdl *m)
{
	struct state *h = mdl_state(m, &feature_memory);

	memory_failed_fini(&h->failed);
	hash_fini(&h->device_index);
	hash_fini(&h->owner_index);
	hash_fini(&h->block_index);
	buf_fini(&h->devices);
	buf_fini(&h->owners);
	buf_fini(&h->blocks);
	*h = (struct state){0};
}

/* The copy lacks single allocations. */
static int memory_copy(struct mdl *to, const struct mdl *from)
{
	const struct state *f = mdl_state_of(from, &feature_memory);
	struct state *t = mdl_state(to, &feature_memory);
	int err;

	if (!t)
		return -ENOMEM;
	err = mdl_items_copy(&t->device_index, &t->devices, &f->device_index, &f->devices);
	err = err ? err : mdl_items_copy(&t->owner_index, &t->owners, &f->owner_index, &f->owners);
	return err ? err : memory_failed_copy(&t->failed, &f->failed);
}

static int memory_move(struct mdl *to, struct mdl *from, uint64_t now_ns)
{
	struct state *h = mdl_state(to, &feature_memory), *was = mdl_state(from, &feature_memory);
	const struct mxbpf_mem_time *t;
	const struct mxbpf_mem_owner *o;
	struct mem_device d;
	struct mem_owner again;
	uint64_t *slot;
	size_t i;

	if (!h)
		return -ENOMEM;
	memory_fini(to);
	for (i = 0; (t = memory_device(from, i)); i++) {
		d = device_again(t, now_ns);
		slot = hash_put(&h->device_index, t->h.tgid, t->device);
		if (!slot || buf_put(&h->devices, &d, sizeof(d)))
			return -ENOMEM;
		*slot = i + 1;
	}
	for (i = 0; (o = memory_owner(from, i)); i++) {
		again = owner_again(o);
		slot = hash_put(&h->owner_index, memory_key_of(o), (uint64_t)o->h.tgid << 32 | o->device);
		if (!slot || buf_put(&h->owners, &again, sizeof(again)))
			return -ENOMEM;
		*slot = i;
	}
	h->blocks = was->blocks;
	h->block_index = was->block_index;
	h->free_block = was->free_block;
	was->blocks = (struct buf){0};
	was->block_index = (struct hash){0};
	was->free_block = 0;
	return 0;
}

const struct mdl_feature feature_memory = {
	.option = &memory_option,
	.session = &memory_session,
	.trace = &memory_trace,
	.state_bytes = sizeof(struct state),
	.kinds = {{MXBPF_MEM_TIME, fold_device},
		  {MXBPF_MEM_OWNER, fold_owner},
		  {MXBPF_MEM_FAILED, fold_failed},
		  {MXBPF_MEM_HOLDER, fold_failed}},
	.alloc = memory_alloc,
	.emit = memory_emit,
	.copy = memory_copy,
	.move = memory_move,
	.sum = memory_sum,
	.fini = memory_fini,
};
