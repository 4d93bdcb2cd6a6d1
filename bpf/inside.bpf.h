/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Operators inside the engine's work. A thread of the engine runs either one operator, or several as one piece of
 * work (a bulk). The probes of this file hit for each operator in it. In a bulk, the operator gets a span of its
 * own. Otherwise it only adds details to the engine's span, which is open.
 */
#ifndef INSIDE_BPF_H
#define INSIDE_BPF_H

#include "common.bpf.h"
#include "frame.bpf.h"
#include "pushed.bpf.h"
#include "read/name.bpf.h"
#include "read/ndarray.bpf.h"
#include "read/segment.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MXBPF_KEYS_MAX);
	__type(key, struct mxbpf_key);
	__type(value, struct mxbpf_frame);
} open_keys SEC(".maps");

/*
 * Names of pushed operators. The map evicts the oldest entry when it is full, which is safe because a pushed
 * operator soon runs.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MXBPF_NOTED_MAX);
	__type(key, struct mxbpf_noted_key);
	__type(value, struct mxbpf_noted);
} noted SEC(".maps");

/* Start and end of a std::vector. */
struct inside_vector {
	__u64 begin, end;
};

/*
 * Reads the length of a vector and the address of its first array. The vector holds arrays, or addresses of arrays
 * if `arrays` is false.
 */
static __always_inline bool inside_array(__u64 vector, bool arrays, __u16 *n, __u64 *first)
{
	struct inside_vector v;

	if (bpf_probe_read_user(&v, sizeof(v), (void *)vector))
		return false;
	*n = (v.end - v.begin) / (arrays ? cfg_array_bytes : NDARRAY_ADDRESS);
	*first = v.begin;
	return arrays || v.begin == v.end || !bpf_probe_read_user(first, sizeof(*first), (void *)v.begin);
}

/*
 * Fills the key from the vectors of inputs and outputs. They hold arrays, or addresses of arrays if `arrays` is 0.
 */
__noinline int inside_key(struct mxbpf_noted_key *key, __u64 inputs, __u64 outputs, __u32 arrays)
{
	__u64 first = 0;

	if (!key || !inside_array(inputs, arrays, &key->ninputs, &first) ||
	    !inside_array(outputs, arrays, &key->noutputs, &first))
		return -1;
	return key->noutputs ? bpf_probe_read_user(&key->output, sizeof(key->output), (void *)first) : 0;
}

/* Returns the id of a layer's name, or 0 if the name is empty or made up (name_is_numbered()). */
__noinline __u64 inside_layer_id(struct mxbpf_thread *t, __u64 text)
{
	__u64 id;

	if (!t || !text || name_is_numbered(text))
		return 0;
	id = name_intern(t, text, 0);
	return id == MXBPF_NAME_UNNAMED ? 0 : id;
}

static __always_inline __u64 inside_layer(struct pt_regs *ctx, struct mxbpf_thread *t,
					  const volatile struct mxbpf_row *row)
{
	return inside_layer_id(t, fetch(ctx, t, &row->layer));
}

/*
 * Notes the name of an operator when it is pushed. The call's arguments are: state, operator, attributes, context,
 * variables to read, variables to write; and on the stack: resources, inputs, outputs.
 */
static __always_inline void inside_note(struct pt_regs *ctx, struct mxbpf_thread *t,
					const volatile struct mxbpf_row *row)
{
	struct mxbpf_noted_key key = {.tgid = t->tgid};
	__u64 args[2], sp = PT_REGS_SP(ctx);
	struct mxbpf_noted v = {};

	key.state = fetch(ctx, t, &row->key);
	if (bpf_probe_read_user(args, sizeof(args), (void *)(sp + 16)) || inside_key(&key, args[0], args[1], 0)) {
		t->counts[MXBPF_COUNT_UNREADABLE]++;
		return;
	}
	v.name_id = name_of(ctx, t, row);
	if (cfg_details & MXBPF_DETAIL_LAYER)
		v.layer_id = inside_layer(ctx, t, row);
	bpf_map_update_elem(&noted, &key, &v, BPF_ANY);
}

/*
 * Looks up the name of an operator that runs. Its closure holds its state and copies of the arrays that it was
 * pushed with.
 */
static __always_inline void inside_noted(struct pt_regs *ctx, struct mxbpf_thread *t,
					 const volatile struct mxbpf_row *row, struct mxbpf_noted *out)
{
	struct mxbpf_noted_key key = {.tgid = t->tgid};
	struct mxbpf_noted *v = 0;

	key.state = fetch(ctx, t, &row->key);
	if (!inside_key(&key, fetch(ctx, t, &row->size) + row->size.off[0],
			fetch(ctx, t, &row->link) + row->link.off[0], !row->by_address))
		v = bpf_map_lookup_elem(&noted, &key);
	if (v) {
		*out = *v;
		t->noted_since = active_since_ns;
	} else { /* pushed before the window: counts as unmatched until a first name was found */
		t->counts[t->noted_since == active_since_ns ? MXBPF_COUNT_UNREADABLE : MXBPF_COUNT_UNMATCHED]++;
	}
}

/* Returns the map's copy of frame f, or NULL if f does not end by key. */
static __always_inline struct mxbpf_frame *inside_open(struct mxbpf_thread *t, const struct mxbpf_frame *f)
{
	struct mxbpf_key key = {};
	struct mxbpf_frame *open;

	if (f->end != MXBPF_END_KEY)
		return 0;
	key.key = f->key;
	key.tgid = t->tgid;
	key.cls = frame_key_class(f);
	open = bpf_map_lookup_elem(&open_keys, &key);
	return open && open->start_ns == f->start_ns ? open : 0;
}

/*
 * Adds layer and arguments to the engine's span f. They go into the frame and into the map's copy of it, because
 * the record is made from the copy if the span ends on another thread.
 */
__noinline int inside_annotate(struct mxbpf_thread *t, struct mxbpf_frame *f, __u64 layer_id, __u64 args_id)
{
	struct mxbpf_frame *open;

	if (!t || !f)
		return 0;
	f->layer_id = layer_id;
	f->args_id = args_id;
	open = inside_open(t, f);
	if (!open)
		return 0;
	open->layer_id = layer_id;
	open->args_id = args_id;
	return 0;
}

/* Marks the engine's span f as a bulk, in the frame and in the map's copy of it. */
__noinline int inside_bulk(struct mxbpf_thread *t, struct mxbpf_frame *f)
{
	struct mxbpf_frame *open;

	if (!t || !f)
		return 0;
	f->flags |= MXBPF_FRAME_BULK;
	open = inside_open(t, f);
	if (open)
		open->flags |= MXBPF_FRAME_BULK;
	return 0;
}

/* Inner operators run on the device of their enclosing work. */
static __always_inline __u32 inside_device(const struct mxbpf_frame *parent)
{
	return parent ? parent->device : 0;
}

/* Returns true if frame `top` is the engine's work, whichever table shows its time. */
static __always_inline bool inside_is_work(const struct mxbpf_frame *top, __u8 cls)
{
	return !top->inside && (top->cls == cls || (top->cls == MXBPF_CLASS_CUSTOM && !custom_is_part(top)));
}

/* Finds the operator's name by its position in the work. */
static __always_inline void inside_placed(struct mxbpf_thread *t, const struct mxbpf_frame *work,
					  const volatile struct mxbpf_row *row, __u32 before, struct mxbpf_noted *out)
{
	__u64 addr = work->key;

	if (bpf_probe_read_user(&addr, sizeof(addr), (void *)(addr + row->name.off[0])) ||
	    bpf_probe_read_user(&addr, sizeof(addr), (void *)(addr + row->name.off[1])))
		t->counts[MXBPF_COUNT_UNREADABLE]++;
	else
		segment_name(t, addr, before, out);
}

/* Finds the Python stack that pushed the operator. */
static __always_inline void inside_pushed(struct pt_regs *ctx, struct mxbpf_thread *t, const struct mxbpf_frame *top,
					  const volatile struct mxbpf_row *row)
{
	__u64 array;
	__u16 n;

	if (inside_array(PT_REGS_PARM1(ctx) + row->outputs_off, !row->by_address, &n, &array) && n)
		pushed_starts(t, array, !!(top->flags & MXBPF_FRAME_BULK));
}

/*
 * Decides whether the operator gets a span of its own in `top`, the innermost open frame. If so, `out` gets its
 * name and layer. On a thread without open work, the operator has not begun: it is about to be pushed.
 */
static __always_inline bool inside_opens(struct pt_regs *ctx, struct mxbpf_thread *t, struct mxbpf_frame *top,
					 const volatile struct mxbpf_row *row, struct mxbpf_noted *out)
{
	bool alone = false;
	__u32 before;

	if (!top || !inside_is_work(top, row->cls))
		return false;
	if (READS_LINES && row->outputs_off)
		inside_pushed(ctx, t, top, row);
	before = top->return_off;
	if (row->span_flags & MXBPF_SPAN_PART && top->end == MXBPF_END_KEY)
		top->return_off++;
	if (row->guard.base)
		alone = !fetch(ctx, t, &row->guard);
	else if (row->bulk_id)
		alone = custom_own_name(top) != row->bulk_id;
	if (row->inside == MXBPF_INSIDE_PLACED) {
		if (top->end != MXBPF_END_KEY) /* the synchronous engine's work has no object to read */
			return false;
		inside_placed(t, top, row, before, out);
	}
	if (row->inside == MXBPF_INSIDE_NOTED && (!alone || cfg_details & MXBPF_DETAIL_LAYER))
		inside_noted(ctx, t, row, out);
	if (row->inside == MXBPF_INSIDE_NAMED && !alone)
		out->name_id = name_of(ctx, t, row);
	if (row->inside == MXBPF_INSIDE_NAMED && cfg_details & MXBPF_DETAIL_LAYER)
		out->layer_id = inside_layer(ctx, t, row);
	if (!row->guard.base && !row->bulk_id)
		alone = out->name_id == custom_own_name(top);
	if (!alone && !(row->span_flags & MXBPF_SPAN_PART) && !(top->flags & MXBPF_FRAME_BULK))
		inside_bulk(t, top);
	if (alone && cfg_details & row->details)
		inside_annotate(t, top, out->layer_id, ndarrays_of(ctx, t, row));
	return !alone;
}

#endif
