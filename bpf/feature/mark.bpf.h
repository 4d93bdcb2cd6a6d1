/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * User annotations: tasks, frames, events, markers and counters that the program creates in its runtime's profiler.
 * A task may end on another thread than it began, and tasks need not nest. They are therefore not frames of a
 * thread's stack, and they do not change the times of the runtime's own calls.
 */
#ifndef MARK_BPF_H
#define MARK_BPF_H

#include "common.bpf.h"
#include "iter.bpf.h"
#include "mxbpf_mark.h"
#include "read/name.bpf.h"

#define LOCK_TRIES 64

/* The first word of an object, as an address in the library, for the classes TASK, FRAME and EVENT. */
const volatile __u64 cfg_marks[MXBPF_MARK_CLASSES];

struct mxbpf_app app; /* shared with user space */

/* Present value of a user counter. */
struct value_state {
	__u64 lock; /* 1: a thread holds it while it takes the time and changes the value */
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

/*
 * Returns the name id of an annotation from the addresses of its name and of its domain's name (domain 0: none).
 * Returns 0 if one of them cannot be read. If the annotation has a domain, the stored name begins with its name and a
 * NUL.
 */
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
		name_store_text(t, key.id, n + m - 1);
	return key.id;
unreadable:
	t->counts[MXBPF_COUNT_UNREADABLE]++;
	return 0;
}

/* Returns the class of the object in the first argument, or 0 if its class has no spans. */
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

/*
 * Returns the name id of the object in the first argument. Its domain, if it has one, is an object that starts with
 * the same members.
 */
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
	struct mxbpf_frame *f = frame_new(t); /* used as scratch space: the frame is not pushed */
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
	if (i < MXBPF_MARK_CLASSES) /* what ended annotations had so far; the end replaces it */
		f->child_ns = t->marked_ns[i];
	f->start_ns = bpf_ktime_get_ns();
	key_put(t, &key, f);
	range_send(t, f, t->depth, 0, MXBPF_RANGE_FROM_NOTHING);
}

/*
 * Returns the time that ended annotations of the same class have counted as their own on f's thread, in ns. Returns
 * NULL if the thread has given up its slot.
 */
static __always_inline __u64 *mark_marked(const struct mxbpf_frame *f)
{
	__u32 slot = f->func, i = f->cls - MXBPF_CLASS_TASK;
	struct mxbpf_thread *owner = bpf_map_lookup_elem(&threads, &slot);

	return owner && owner->tid == f->tid && i < MXBPF_MARK_CLASSES ? &owner->marked_ns[i] : 0;
}

/*
 * Computes the self time of an annotation that ends. Annotations of a class may overlap without being nested, and
 * no moment of a thread may count twice. The self time is therefore the duration minus the self time of all
 * annotations that ended since this one began. Parts of those before its start are subtracted too, so that the sum
 * never exceeds the elapsed time.
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

/*
 * Forgets an object that the program deletes. An annotation that was never stopped has no known duration, so it is
 * lost.
 */
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
 * Changes a user counter and fills r with time, sequence number and value. Another thread must not change the
 * counter in between, so each thread takes s->lock, but tries at most LOCK_TRIES times: programs of this kind may
 * not take the kernel's locks.
 *
 * Returns 0 if the place of the record among all changes is known. If two threads worked without the lock, the
 * first one finds the other's sequence number at its end, and nobody knows which one changed the value first.
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
	if (s->last_ns < active_since_ns) /* the value may have changed since without being seen */
		s->value = base;
	r->seq = __sync_fetch_and_add(&s->seq, 1);
	r->h.ts_ns = s->last_ns = bpf_ktime_get_ns();
	if (adjust)
		r->value = __sync_fetch_and_add(&s->value, by) + by;
	else
		__sync_lock_test_and_set(&s->value, by); /* the store is complete before seq is read again */
	unsure = s->seq != r->seq + 1;
	if (i < LOCK_TRIES)
		__sync_val_compare_and_swap(&s->lock, 1, 0);
	return unsure;
}

/* Records a change of a user counter. The probe runs before the call, so the object still has its old value. */
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

static __always_inline void instant_emit(struct mxbpf_thread *t, __u64 now, __u64 name_id, __u8 what, __u8 scope)
{
	struct mxbpf_instant *r = ring_reserve(t, sizeof(*r));

	if (!r)
		return;
	r->h.kind = MXBPF_INSTANT;
	r->h.size = sizeof(*r);
	r->h.tgid = t->tgid;
	r->h.ts_ns = now;
	r->last_ns = 0;
	r->name_id = name_id;
	r->count = 1;
	r->tid = t->tid;
	r->what = what;
	r->scope = scope;
	r->pad[0] = r->pad[1] = 0;
	ring_submit(t, r);
}

/* Returns the scope by the first letters of its name: global, process, thread, task or marker. */
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

/* Sends the payload, category and color of an NVTX mark. */
static __always_inline void mark_carries(struct mxbpf_thread *t, __u64 now, __u64 name_id, __u64 at, __u32 from)
{
	t->ranged.ts_ns = now;
	t->ranged.name_id = name_id;
	t->ranged.tid = t->tid;
	t->ranged.cls = MXBPF_CLASS_NONE;
	t->ranged.depth = MXBPF_RANGE_MARK;
	range_emit(t, at, from);
}

/* Records a marker. The arguments of the call are domain, name and scope. */
static __always_inline void mark_instant(struct pt_regs *ctx, struct mxbpf_thread *t,
					 const volatile struct mxbpf_row *row)
{
	__u64 name_id = mark_name(t, PT_REGS_PARM1(ctx) + row->name.off[0], PT_REGS_PARM2(ctx));
	__u64 now = bpf_ktime_get_ns(), at;

	instant_emit(t, now, name_id, MXBPF_INSTANT_MARKER, mark_scope(PT_REGS_PARM3(ctx)));
	if (!row->range_from)
		return;
	at = fetch(ctx, t, &row->range);
	if (at)
		mark_carries(t, now, name_id, at, row->range_from);
}

/* ---- calls with which the program controls its runtime's profiler */

static __always_inline __u8 app_what(const volatile struct mxbpf_row *row, __u32 arg)
{
	if (row->name_tag == MXBPF_APP_STATE)
		return arg ? MXBPF_INSTANT_RUN : MXBPF_INSTANT_STOP;
	if (row->name_tag == MXBPF_APP_PAUSE)
		return arg ? MXBPF_INSTANT_PAUSE : MXBPF_INSTANT_RESUME;
	return MXBPF_INSTANT_DUMP;
}

/* Closes the window. Only the thread that sets active_since_ns to 0 counts the window's time. */
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

/* Follows the runtime's profiler: "run" ends a pause, and "stop" is a pause itself. */
static __always_inline void app_note(__u8 what)
{
	if (what == MXBPF_INSTANT_RUN || what == MXBPF_INSTANT_STOP)
		app.runs = what == MXBPF_INSTANT_RUN;
	if (what != MXBPF_INSTANT_DUMP)
		app.paused = what == MXBPF_INSTANT_STOP || what == MXBPF_INSTANT_PAUSE;
}

/*
 * Handles a call that controls the runtime's profiler. Its record belongs to the window that the call opens or
 * closes. The call's arguments are the state and the process that it is meant for.
 */
static __always_inline void app_call(struct pt_regs *ctx, struct mxbpf_thread *t, const volatile struct mxbpf_row *row)
{
	__u8 what = app_what(row, (__u32)PT_REGS_PARM1(ctx));
	bool ours = app.tgid == t->tgid, opens;

	if ((__u32)PT_REGS_PARM2(ctx)) /* nonzero: the call is meant for a server process */
		return;
	if (ours)
		app_note(what);
	opens = app.runs && !app.paused;
	if (ours && app.on && opens)
		app_open(bpf_ktime_get_ns());
	if (active_since_ns)
		instant_emit(t, bpf_ktime_get_ns(), 0, what, MXBPF_SCOPE_PROCESS);
	if (ours && app.on && !opens)
		app_close(bpf_ktime_get_ns());
}

#endif
