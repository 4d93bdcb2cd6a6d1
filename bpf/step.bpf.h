/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Events that mark iterations of the training loop. User space sees all of them and decides which ones end an
 * iteration.
 */
#ifndef STEP_BPF_H
#define STEP_BPF_H

#include "common.bpf.h"
#include "mxbpf_step.h"

#define STEP_OPS_MAX	4096 /* operators whose names are remembered; further ones are read at each hit */
#define STEP_NAME_BYTES 64   /* bytes of an operator's name that are searched */
#define STEP_UPDATE	0x5f757064617465ull /* "_update" in big-endian order */
#define STEP_UPDATE_MSK 0xffffffffffffffull

/* By the operator's address: 1 if it updates parameters (an optimizer). Each name is read once. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STEP_OPS_MAX);
	__type(key, struct mxbpf_key);
	__type(value, __u8);
} step_ops SEC(".maps");

/* Sends a record to the ring in every mode, since there are few of them. */
__noinline int step_send(struct mxbpf_thread *t, __u64 now, __u64 key, __u32 what, __u32 flags)
{
	struct mxbpf_step *r;

	if (!t)
		return 0;
	r = ring_reserve(t, sizeof(*r));
	if (!r)
		return 0;
	r->h.kind = MXBPF_STEP;
	r->h.size = sizeof(*r);
	r->h.tgid = t->tgid;
	r->h.ts_ns = now;
	r->key = key;
	r->tid = t->tid;
	r->what = what;
	r->flags = flags;
	r->pad[0] = r->pad[1] = 0;
	ring_submit(t, r);
	return 0;
}

/*
 * Returns 1 for the operators that update parameters (sgd_update, multi_sgd_mom_update, lamb_update_phase1): all of
 * them have "_update" in their names, and no other operator has. Returns -1 if the name cannot be read.
 */
__noinline int step_names_update(struct mxbpf_thread *t, __u64 text)
{
	__u64 word = 0;
	int i;

	if (!t)
		return 0;
	if (cstr_read(t->part.text, STEP_NAME_BYTES, text) < 0) {
		t->counts[MXBPF_COUNT_UNREADABLE]++;
		return -1;
	}
	for (i = 0; i < STEP_NAME_BYTES; i++) {
		if (!t->part.text[i])
			return 0;
		word = (word << 8 | (__u8)t->part.text[i]) & STEP_UPDATE_MSK;
		if (word == STEP_UPDATE)
			return 1;
	}
	return 0;
}

static __always_inline bool step_is_update(struct pt_regs *ctx, struct mxbpf_thread *t,
					   const volatile struct mxbpf_row *row)
{
	struct mxbpf_key op = {.key = PT_REGS_PARM1(ctx), .tgid = t->tgid};
	__u8 *known = bpf_map_lookup_elem(&step_ops, &op), yes;
	int update;

	if (known)
		return *known;
	update = step_names_update(t, fetch(ctx, t, &row->name));
	if (update < 0)
		return false;
	yes = update > 0;
	bpf_map_update_elem(&step_ops, &op, &yes, BPF_ANY);
	return yes;
}

static __always_inline void on_step_hit(struct pt_regs *ctx, struct mxbpf_thread *t,
					const volatile struct mxbpf_row *row)
{
	if (row->step != MXBPF_STEP_UPDATE || step_is_update(ctx, t, row))
		step_send(t, bpf_ktime_get_ns(), fetch(ctx, t, &row->key), row->step, 0);
}

#endif
