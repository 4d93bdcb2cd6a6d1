/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * The program's own marks. A task may begin on one thread and end on another, and tasks need not nest: they are in no
 * thread's stack, so that the times of the runtime's own calls are what they are without marks.
 */
#ifndef MARK_BPF_H
#define MARK_BPF_H

#include "common.bpf.h"
#include "iter.bpf.h"
#include "mxbpf_mark.h"
#include "read/name.bpf.h"

#define LOCK_TRIES 64

const volatile __u64
	cfg_marks[MXBPF_MARK_CLASSES]; /* addresses in the file that objects of TASK, FRAME, EVENT begin with */

struct mxbpf_app app; /* shared with user space */

/* A counter of the program's, as it stands. */
struct value_state {
	__u64 lock; /* 1: a thread is between taking the time and having changed the value */
	__u64 value, seq;
	__u64 last_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MXBPF_MARK_COUNTERS);
	__type(key, struct mxbpf_key);
	__type(value, struct value_state);
} mark_values SEC(".maps");

/* What was read into the scratch part as a name, with its domain and a NUL before it. */
__noinline int mark_store(struct mxbpf_thread *t, __u64 id, __u32 len)
{
	struct mxbpf_name_key key = {.id = id};
	__u32 slot = t ? t->slot : 0;

	t = bpf_map_lookup_elem(&threads, &slot);
	if (!t)
		return 0;
	t->part.len = len;
	t->part.more = 0;
	t->part.tag = 0;
	if (bpf_map_update_elem(&names, &key, &t->part, BPF_ANY))
		t->counts[MXBPF_COUNT_TRUNCATED]++;
	return 0;
}

/* The id of a mark by the addresses of its name and of its domain's; domain 0: it has none. 0 if one cannot be read. */
__noinline __u64 mark_name(struct mxbpf_thread *t, __u64 domain, __u64 name)
{
	struct mxbpf_name_key key = {};
	long n = 0, m;

	if (!t)
		return 0;
	if (domain)
		n = cstr_read(t->part.text, MXBPF_MARK_TEXT, domain);
	if (n < 0 || n > MXBPF_MARK_TEXT)
		goto unreadable;
	m = cstr_read(t->part.text + n, MXBPF_MARK_TEXT, name);
	if (m < 0)
		goto unreadable;
	if (n + m == 1)
		return MXBPF_NAME_UNNAMED;
	key.id = mxbpf_name_id(name_hash(t, MXBPF_NAME_SEED, n + m - 1));
	if (!bpf_map_lookup_elem(&names, &key))
		mark_store(t, key.id, n + m - 1);
	return key.id;
unreadable:
	t->counts[MXBPF_COUNT_UNREADABLE]++;
	return 0;
}

/* Of an object: its class, 0 where it is none of those that have spans. */
static __always_inline __u8 mark_class(struct pt_regs *ctx, struct mxbpf_thread *t)
{
	__u64 word = 0;

	if (bpf_probe_read_user(&word, sizeof(word), (void *)PT_REGS_PARM1(ctx))) {
		t->counts[MXBPF_COUNT_UNREADABLE]++;
		return 0;
	}
	word -= t->static_base;
	if (word == cfg_marks[0])
		return MXBPF_CLASS_TASK;
	if (word == cfg_marks[1])
		return MXBPF_CLASS_FRAME;
	if (word == cfg_marks[2])
		return MXBPF_CLASS_EVENT;
	t->counts[MXBPF_COUNT_UNREADABLE]++;
	return 0;
}

/* Of an object with a domain, which is an object that begins alike. */
static __always_inline __u64 mark_name_of(struct pt_regs *ctx, struct mxbpf_thread *t,
					  const volatile struct mxbpf_row *row, bool has_domain)
{
	__u64 domain = 0;

	if (has_domain) {
		domain = fetch(ctx, t, &row->link);
		if (!domain)
			return 0;
		domain += row->name.off[0];
	}
	return mark_name(t, domain, PT_REGS_PARM1(ctx) + row->name.off[0]);
}

static __always_inline void mark_start(struct pt_regs *ctx, struct mxbpf_thread *t,
				       const volatile struct mxbpf_row *row)
{
	struct mxbpf_key key = {.key = PT_REGS_PARM1(ctx), .tgid = t->tgid, .cls = mark_class(ctx, t)};
	struct mxbpf_frame *f = frame_new(t); /* room to make it in; it is not pushed */
	__u32 i;

	if (!key.cls)
		return;
	if (!f) {
		t->counts[MXBPF_COUNT_ATTEMPTED]++;
		t->counts[MXBPF_COUNT_DROPPED]++;
		return;
	}
	f->child_ns = f->twin.dur_ns = 0;
	__builtin_memset(&f->nested, 0, sizeof(f->nested));
	f->alloc_bytes = f->self_alloc_bytes = 0;
	f->args_id = f->stack_id = f->seq = f->origin = f->layer_id = 0;
	f->link = f->device = 0;
	f->flags = MXBPF_SPAN_USER;
	f->end = MXBPF_END_KEY;
	f->func = t->slot;
	f->sp = 0;
	f->key = key.key;
	f->cls = key.cls;
	f->tid = t->tid;
	f->name_id = mark_name_of(ctx, t, row, key.cls != MXBPF_CLASS_EVENT);
	account_open(f, true);
	i = key.cls - MXBPF_CLASS_TASK;
	if (i < MXBPF_MARK_CLASSES) /* until it ends */
		f->child_ns = t->marked_ns[i];
	f->start_ns = bpf_ktime_get_ns();
	key_put(t, &key, f);
}

/* What ended marks of its class have had of its thread as their own; NULL: that has no slot any more. */
static __always_inline __u64 *mark_marked(const struct mxbpf_frame *f)
{
	__u32 slot = f->func, i = f->cls - MXBPF_CLASS_TASK;
	struct mxbpf_thread *owner = bpf_map_lookup_elem(&threads, &slot);

	return owner && owner->tid == f->tid && i < MXBPF_MARK_CLASSES ? &owner->marked_ns[i] : 0;
}

/*
 * Marks of a class may overlap without being nested. So that no moment of their thread is in two self times, one that
 * ends has what is left of it by those that ended since it began. What these had before it began is taken off, too:
 * the sum is never more than the time gone by.
 */
static __always_inline void mark_own(struct mxbpf_frame *f, __u64 now)
{
	__u64 *marked = mark_marked(f), dur = now - f->start_ns;

	f->child_ns = marked ? *marked - f->child_ns : 0;
	if (f->child_ns > dur)
		f->child_ns = dur;
	if (marked)
		*marked += dur - f->child_ns;
}

static __always_inline void mark_stop(struct pt_regs *ctx, struct mxbpf_thread *t, const volatile struct mxbpf_row *row)
{
	struct mxbpf_key key = {.key = PT_REGS_PARM1(ctx), .tgid = t->tgid, .cls = mark_class(ctx, t)};
	__u64 now = bpf_ktime_get_ns();
	struct mxbpf_frame *open;

	if (!key.cls)
		return;
	open = bpf_map_lookup_elem(&open_keys, &key);
	if (!open || open->start_ns < active_since_ns) {
		t->counts[MXBPF_COUNT_UNMATCHED]++;
		bpf_map_delete_elem(&open_keys, &key);
		return;
	}
	t->counted.known = 0;
	if (open->tid == t->tid)
		mark_own(open, now);
	span_emit(t, open, now, open->tid == t->tid ? 0 : MXBPF_SPAN_ASYNC);
	bpf_map_delete_elem(&open_keys, &key);
}

/* One that was never stopped ends with its object, and nobody knows how long it was meant to be. */
static __always_inline void mark_end(struct pt_regs *ctx, struct mxbpf_thread *t, const volatile struct mxbpf_row *row)
{
	struct mxbpf_key key = {.key = PT_REGS_PARM1(ctx), .tgid = t->tgid};
	__u32 cls;

	bpf_map_delete_elem(&mark_values, &key);
	for (cls = MXBPF_CLASS_TASK; cls <= MXBPF_CLASS_EVENT; cls++) {
		key.cls = cls;
		if (!bpf_map_delete_elem(&open_keys, &key))
			t->counts[MXBPF_COUNT_UNMATCHED]++;
	}
}

/*
 * Gives a counter its value. Time, number and value of one that another thread changes meanwhile would not belong
 * together: so one waits for the other, but no longer than it takes. (Tracing programs may take none of the kernel's
 * own locks.) Of two that did not wait, the one that came first sees the other's number at its end: nobody knows which
 * changed the value first. 0: this record's place among all is known.
 */
__noinline int value_step(struct value_state *s, struct mxbpf_value *r, __u64 base, __u32 adjust)
{
	__u64 by;
	int i, unsure;

	if (!s || !r)
		return 0;
	by = r->value;
	for (i = 0; i < LOCK_TRIES; i++)
		if (!__sync_val_compare_and_swap(&s->lock, 0, 1))
			break;
	if (s->last_ns < active_since_ns) /* it may have changed unseen since */
		s->value = base;
	r->seq = __sync_fetch_and_add(&s->seq, 1);
	r->h.ts_ns = s->last_ns = bpf_ktime_get_ns();
	if (adjust)
		r->value = __sync_fetch_and_add(&s->value, by) + by;
	else
		__sync_lock_test_and_set(&s->value, by); /* it is there before the number is read again */
	unsure = s->seq != r->seq + 1;
	if (i < LOCK_TRIES)
		__sync_val_compare_and_swap(&s->lock, 1, 0);
	return unsure;
}

/* The object's own value is what it was before this call. */
static __always_inline void mark_value(struct pt_regs *ctx, struct mxbpf_thread *t,
				       const volatile struct mxbpf_row *row)
{
	struct mxbpf_key key = {.key = PT_REGS_PARM1(ctx), .tgid = t->tgid};
	struct value_state *s = bpf_map_lookup_elem(&mark_values, &key), blank = {};
	struct mxbpf_value r = {.h = {.kind = MXBPF_VALUE, .size = sizeof(r), .tgid = t->tgid},
				.count = 1,
				.value = fetch(ctx, t, &row->size),
				.tid = t->tid};
	__u64 base = fetch(ctx, t, &row->key);
	bool lost = false;

	if (!s) {
		bpf_map_update_elem(&mark_values, &key, &blank, BPF_NOEXIST);
		s = bpf_map_lookup_elem(&mark_values, &key);
	}
	t->counts[MXBPF_COUNT_ATTEMPTED]++;
	if (s) {
		lost = value_step(s, &r, base, row->action == MXBPF_ACT_MARK_ADJUST);
		r.name_id = mark_name_of(ctx, t, row, true);
		r.min = r.max = r.value;
	}
	if (!s || lost || bpf_ringbuf_output(&calls, &r, sizeof(r), ring_flags(t)))
		t->counts[MXBPF_COUNT_DROPPED]++;
}

static __always_inline void instant_emit(struct mxbpf_thread *t, __u64 name_id, __u8 what, __u8 scope)
{
	struct mxbpf_instant *r = ring_reserve(t, sizeof(*r));

	if (!r)
		return;
	r->h.kind = MXBPF_INSTANT;
	r->h.size = sizeof(*r);
	r->h.tgid = t->tgid;
	r->h.ts_ns = bpf_ktime_get_ns();
	r->last_ns = 0;
	r->name_id = name_id;
	r->count = 1;
	r->tid = t->tid;
	r->what = what;
	r->scope = scope;
	r->pad[0] = r->pad[1] = 0;
	ring_submit(t, r);
}

/* Told by its first letters: global, process, thread, task, marker. */
__noinline int mark_scope(__u64 addr)
{
	char text[4] = {};

	if (bpf_probe_read_user(text, 2, (void *)addr))
		return MXBPF_SCOPE_NONE;
	switch (text[0]) {
	case 'g':
		return MXBPF_SCOPE_GLOBAL;
	case 'p':
		return MXBPF_SCOPE_PROCESS;
	case 't':
		return text[1] == 'a' ? MXBPF_SCOPE_TASK : MXBPF_SCOPE_THREAD;
	case 'm':
		return MXBPF_SCOPE_MARKER;
	}
	return MXBPF_SCOPE_NONE;
}

/* (domain, name, scope) */
static __always_inline void mark_instant(struct pt_regs *ctx, struct mxbpf_thread *t,
					 const volatile struct mxbpf_row *row)
{
	__u64 name_id = mark_name(t, PT_REGS_PARM1(ctx) + row->name.off[0], PT_REGS_PARM2(ctx));

	instant_emit(t, name_id, MXBPF_INSTANT_MARKER, mark_scope(PT_REGS_PARM3(ctx)));
}

/* ---- what the program says to its runtime's profiler */

static __always_inline __u8 app_what(const volatile struct mxbpf_row *row, __u32 arg)
{
	if (row->name_tag == MXBPF_APP_STATE)
		return arg ? MXBPF_INSTANT_RUN : MXBPF_INSTANT_STOP;
	if (row->name_tag == MXBPF_APP_PAUSE)
		return arg ? MXBPF_INSTANT_PAUSE : MXBPF_INSTANT_RESUME;
	return MXBPF_INSTANT_DUMP;
}

/* Whoever takes active_since_ns away accounts for its window. */
__noinline int app_close(__u64 now)
{
	__u64 since = active_since_ns;

	if (!since || __sync_val_compare_and_swap(&active_since_ns, since, 0) != since)
		return 0;
	activation++;
	__sync_fetch_and_add(&app.window_ns, now - since);
	__sync_fetch_and_add(&app.closed, 1);
	bpf_ringbuf_output(&windows, &now, sizeof(now), BPF_RB_FORCE_WAKEUP);
	return 0;
}

__noinline int app_open(__u64 now)
{
	if (__sync_val_compare_and_swap(&active_since_ns, 0, now))
		return 0;
	__sync_fetch_and_add(&app.opened, 1);
	bpf_ringbuf_output(&windows, &now, sizeof(now), BPF_RB_FORCE_WAKEUP);
	return 0;
}

/* As MXNet does it: to be told to run or to stop ends a pause, or is one. */
static __always_inline void app_note(__u8 what)
{
	if (what == MXBPF_INSTANT_RUN || what == MXBPF_INSTANT_STOP)
		app.runs = what == MXBPF_INSTANT_RUN;
	if (what != MXBPF_INSTANT_DUMP)
		app.paused = what == MXBPF_INSTANT_STOP || what == MXBPF_INSTANT_PAUSE;
}

/* The call belongs to the window that it opens, and to the one that it closes. (argument, which process, ...) */
static __always_inline void app_call(struct pt_regs *ctx, struct mxbpf_thread *t, const volatile struct mxbpf_row *row)
{
	__u8 what = app_what(row, (__u32)PT_REGS_PARM1(ctx));
	bool ours = app.tgid == t->tgid, opens;

	if ((__u32)PT_REGS_PARM2(ctx)) /* to a server, which is another process */
		return;
	if (ours)
		app_note(what);
	opens = app.runs && !app.paused;
	if (ours && app.on && opens)
		app_open(bpf_ktime_get_ns());
	if (active_since_ns)
		instant_emit(t, 0, what, MXBPF_SCOPE_PROCESS);
	if (ours && app.on && !opens)
		app_close(bpf_ktime_get_ns());
}

#endif
