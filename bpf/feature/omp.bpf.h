/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * OpenMP parallel regions. The master thread calls the OpenMP library with the function that the team has to run
 * and its argument. When another thread of the team begins, these two values identify its region. Each thread adds
 * its times to the region before it enters the barrier, so the sums are complete when the master leaves the
 * barrier.
 */
#ifndef OMP_BPF_H
#define OMP_BPF_H

#include "account.bpf.h"
#include "common.bpf.h"
#include "mxbpf_omp.h"

#define MXBPF_TEAM_DEPTH_MAX 4 /* regions that can be open on a thread, nested in each other */

/* An open region; value of map `teams`. It starts without workers, and each worker adds its times. */
struct mxbpf_team_open {
	__u64 start_ns;
	__u64 name_id, span_start_ns; /* the span that the region opened in */
	__u64 late_ns, late_runq_ns, work_ns, cpu_ns, runq_ns, spun_ns;
	__u64 until_ns; /* sum of the times from start_ns until each thread ended its work */
	__u32 tid;
	__u32 joined, left;
	__u32 flags;
	__u8 cls;
	__u8 pad[7];
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_team_open) == 104);

/* State of a thread at one moment, from which later times are measured. */
struct mxbpf_team_moment {
	__u64 ns; /* 0: not set */
	__u64 cpu;
	struct mxbpf_account_start account;
};

/*
 * State of a thread, by its slot; value of map `team_threads`. It covers the region that the thread works in and
 * the regions that it is the master of.
 */
struct mxbpf_team_thread {
	struct mxbpf_team_key work; /* region that the thread works in */
	__u64 work_start_ns;	    /* start of that region; 0: the thread works in none */
	__u64 work_sp;		    /* stack pointer at the start of its work */
	struct mxbpf_team_moment began, idle;
	__u32 tid;
	__u32 depth; /* number of entries used in `regions` */
	__u32 over;  /* open regions without an entry in `regions` */
	__u32 pad;
	struct mxbpf_team_master {
		struct mxbpf_team_key key;
		__u64 sp, end_sp; /* stack pointers at the open and at the end; end_sp 0: not at its end */
		__u64 start_ns;	  /* 0: region not recorded */
		struct mxbpf_team_moment began, waits; /* began: start of the master's part, or the open until then */
		__u64 late_runq_ns, spun_ns;	       /* before the master's part */
		__u64 cpu_ns, runq_ns;		       /* during the master's part */
		__u64 flags;			       /* enum mxbpf_team_flag */
	} regions[MXBPF_TEAM_DEPTH_MAX];
	struct mxbpf_team_open scratch;
};

const volatile __u8 cfg_omp; /* --omp: regions are recorded */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* MXBPF_TEAMS_MAX with --omp */
	__type(key, struct mxbpf_team_key);
	__type(value, struct mxbpf_team_open);
} teams SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* MXBPF_THREADS_MAX with --omp */
	__type(key, __u32);
	__type(value, struct mxbpf_team_thread);
} team_threads SEC(".maps");

static __always_inline void team_now(struct mxbpf_team_moment *m)
{
	struct task_struct *p = bpf_get_current_task_btf();

	m->ns = bpf_ktime_get_ns();
	m->cpu = bpf_get_smp_processor_id();
	if (bpf_core_field_exists(p->sched_info.run_delay)) /* user space refuses --omp on kernels without this field */
		account_note(&m->account, p);
}

/* Measures the running thread from moment m until now. */
static __always_inline void team_since(struct mxbpf_account *a, const struct mxbpf_team_moment *m, __u64 now)
{
	struct task_struct *p = bpf_get_current_task_btf();

	a->on_cpu_ns = now - m->ns;
	a->runq_ns = 0;
	a->flags = m->cpu != bpf_get_smp_processor_id() ? MXBPF_ACCOUNT_MIGRATED : 0;
	a->nvcsw = (__u32)p->nvcsw - m->account.nvcsw;
	a->nivcsw = (__u32)p->nivcsw - m->account.nivcsw;
	if ((a->nvcsw | a->nivcsw) && bpf_core_field_exists(p->sched_info.run_delay))
		account_times(a, &m->account, p, now - m->ns);
}

static __always_inline struct mxbpf_team_thread *team_thread(struct mxbpf_thread *t)
{
	struct mxbpf_team_thread *w;
	__u32 slot;

	if (!cfg_omp || !t)
		return 0;
	slot = t->slot;
	w = bpf_map_lookup_elem(&team_threads, &slot);
	if (w && w->tid != t->tid) { /* the slot was another thread's before */
		w->tid = t->tid;
		w->depth = w->over = 0;
		w->work_start_ns = w->idle.ns = 0;
	}
	return w;
}

/* Clears the state of a thread that gives its slot back. */
static __always_inline void team_gone(__u32 slot)
{
	struct mxbpf_team_thread *w = cfg_omp ? bpf_map_lookup_elem(&team_threads, &slot) : 0;

	if (w)
		w->tid = 0;
}

static __always_inline struct mxbpf_team_master *team_at(struct mxbpf_team_thread *w, __u32 i)
{
	if (i >= MXBPF_TEAM_DEPTH_MAX)
		return 0;
	asm volatile("%0 &= %1" : "+r"(i) : "i"(MXBPF_TEAM_DEPTH_MAX - 1));
	return &w->regions[i];
}

static __always_inline void team_lost(struct mxbpf_thread *t)
{
	t->counts[MXBPF_COUNT_ATTEMPTED]++;
	t->counts[MXBPF_COUNT_DROPPED]++;
}

/*
 * Returns the region that a thread works in. Returns NULL if it was discarded, even if the same key has a new
 * region.
 */
static __always_inline struct mxbpf_team_open *team_of(struct mxbpf_team_thread *w)
{
	struct mxbpf_team_key key = w->work;
	struct mxbpf_team_open *o;

	if (!w->work_start_ns)
		return 0;
	o = bpf_map_lookup_elem(&teams, &key);
	return o && o->start_ns == w->work_start_ns ? o : 0;
}

/* Does team_frame() for at most FRAMES_STEP frames, starting with frame `at`. */
__noinline int team_frame_step(struct mxbpf_thread *t, int at)
{
	struct mxbpf_frame *f, *parent;
	int i;

	t = frames_of(t);
	for (i = 0; t && i < FRAMES_STEP; i++) {
		f = frame_at(t, at);
		parent = frame_at(t, at - 1);
		if (!f || !parent || !parent->merge || parent->nchild || parent->name_id != f->name_id ||
		    parent->cls != f->cls)
			break;
		at--;
	}
	return at;
}

/*
 * Returns the index of the frame whose span a region opens in, or -1. A frame that may be its parent's twin does
 * not count as a span yet.
 */
__noinline int team_frame(struct mxbpf_thread *t)
{
	int i, at, above;

	if (!t)
		return -1;
	at = (int)t->depth - 1;
	for (i = 0; i < FRAMES_STEPS; i++) {
		above = at;
		at = team_frame_step(t, at);
		if (above - at < FRAMES_STEP)
			break;
	}
	return at;
}

/*
 * Fills a region that begins now. Its span is the thread's innermost span, or that of the region that the thread
 * works in.
 */
static __always_inline void team_fill(struct mxbpf_team_open *o, struct mxbpf_thread *t, struct mxbpf_team_thread *w,
				      __u64 now)
{
	struct mxbpf_frame *f = frame_at(t, team_frame(t));
	struct mxbpf_team_open *around = team_of(w);

	__builtin_memset(o, 0, sizeof(*o));
	o->start_ns = now;
	o->tid = t->tid;
	o->flags = w->depth || around ? MXBPF_TEAM_NESTED : 0;
	if (f) {
		o->name_id = f->name_id;
		o->span_start_ns = f->start_ns;
		o->cls = f->cls;
	} else if (around) {
		o->name_id = around->name_id;
		o->span_start_ns = around->span_start_ns;
		o->cls = around->cls;
		o->tid = around->tid;
	}
}

/* Discards the innermost region of a thread. A jump left it, or its end came while nothing was recorded. */
static __always_inline void team_forget(struct mxbpf_thread *t, struct mxbpf_team_thread *w,
					struct mxbpf_team_master *r)
{
	struct mxbpf_team_key key = r->key;

	w->depth--;
	w->over = 0; /* those without an entry were nested in this region */
	t->counts[MXBPF_COUNT_UNMATCHED]++;
	if (r->start_ns)
		bpf_map_delete_elem(&teams, &key);
}

__noinline int teams_trim(struct mxbpf_thread *t, __u64 sp)
{
	struct mxbpf_team_thread *w = team_thread(t);
	struct mxbpf_team_master *r;
	int i;

	if (!w || !t)
		return 0;
	for (i = 0; i < MXBPF_TEAM_DEPTH_MAX; i++) {
		r = team_at(w, w->depth - 1);
		if (!r || (r->sp > sp && r->began.ns >= active_since_ns))
			break;
		team_forget(t, w, r);
	}
	return 0;
}

__noinline int team_open(struct mxbpf_thread *t, __u64 sp, __u64 fn, __u64 data)
{
	struct mxbpf_team_key key = {.fn = fn, .data = data};
	struct mxbpf_team_thread *w;
	struct mxbpf_team_master *r;

	teams_trim(t, sp);
	w = team_thread(t);
	if (!w || !t)
		return 0;
	r = team_at(w, w->depth);
	if (!r) {
		w->over++;
		team_lost(t);
		return 0;
	}
	key.tgid = t->tgid;
	r->key = key;
	r->sp = sp;
	r->end_sp = 0;
	r->late_runq_ns = r->spun_ns = 0;
	team_now(&r->began);
	r->start_ns = r->began.ns;
	team_fill(&w->scratch, t, w, r->start_ns);
	w->depth++;
	/* Two masters that run the same function and argument at the same time cannot be told apart. */
	if (!bpf_map_update_elem(&teams, &key, &w->scratch, BPF_NOEXIST))
		return 0;
	r->start_ns = 0;
	team_lost(t);
	return 0;
}

/* The master has started its team and begins its own part of the work. */
__noinline int team_begin(struct mxbpf_thread *t)
{
	struct mxbpf_team_thread *w = team_thread(t);
	struct mxbpf_team_master *r = w ? team_at(w, w->depth - 1) : 0;
	struct mxbpf_account late;
	__u64 now = bpf_ktime_get_ns();

	if (!r || w->over || r->began.ns != r->start_ns || r->end_sp)
		return 0;
	team_since(&late, &r->began, now);
	r->late_runq_ns = late.runq_ns;
	r->spun_ns = late.on_cpu_ns;
	team_now(&r->began);
	return 0;
}

/* The master has ended its part and waits for its team. */
__noinline int team_wait(struct mxbpf_thread *t, __u64 sp)
{
	struct mxbpf_team_thread *w = team_thread(t);
	struct mxbpf_team_master *r = w ? team_at(w, w->depth - 1) : 0;
	struct mxbpf_account work;

	if (!r || w->over)
		return 0;
	r->end_sp = sp;
	team_now(&r->waits);
	team_since(&work, &r->began, r->waits.ns);
	r->cpu_ns = work.on_cpu_ns;
	r->runq_ns = work.runq_ns;
	r->flags = work.flags ? MXBPF_TEAM_MIGRATED : 0;
	return 0;
}

/* Adds the master's times to those that the other threads have added. */
static __always_inline void team_add_master(struct mxbpf_team *rec, const struct mxbpf_team_master *r, __u64 now)
{
	struct mxbpf_account wait;

	team_since(&wait, &r->waits, now);
	rec->late_ns += r->began.ns - r->start_ns;
	rec->late_runq_ns += r->late_runq_ns;
	rec->work_ns += r->waits.ns - r->began.ns;
	rec->barrier_ns += now - r->waits.ns;
	rec->cpu_ns += r->cpu_ns;
	rec->runq_ns += r->runq_ns;
	rec->spun_ns += r->spun_ns + wait.on_cpu_ns;
	rec->flags |= r->flags;
	rec->threads++;
}

static __always_inline void team_send(struct mxbpf_thread *t, struct mxbpf_team_master *r, struct mxbpf_team_open *o)
{
	__u64 now = bpf_ktime_get_ns();
	struct mxbpf_team *rec;

	if ((o->flags & MXBPF_TEAM_NESTED) &&
	    !o->joined) /* a team of one thread: its time belongs to the outer region */
		return;
	rec = ring_reserve(t, sizeof(*rec));
	if (!rec)
		return;
	__builtin_memset(rec, 0, sizeof(*rec));
	rec->h.kind = MXBPF_TEAM;
	rec->h.size = sizeof(*rec);
	rec->h.tgid = t->tgid;
	rec->h.ts_ns = o->start_ns;
	rec->regions = 1;
	rec->name_id = o->name_id;
	rec->span_start_ns = o->span_start_ns;
	rec->dur_ns = now - o->start_ns;
	rec->late_ns = o->late_ns;
	rec->late_runq_ns = o->late_runq_ns;
	rec->work_ns = o->work_ns;
	rec->barrier_ns = o->joined * rec->dur_ns - o->until_ns;
	rec->cpu_ns = o->cpu_ns;
	rec->runq_ns = o->runq_ns;
	rec->spun_ns = o->spun_ns;
	rec->tid = o->tid;
	rec->threads = o->joined;
	rec->cls = o->cls;
	rec->flags = o->flags;
	if (!(o->flags & MXBPF_TEAM_NESTED))
		team_add_master(rec, r, now);
	rec->threads_ns = rec->threads * rec->dur_ns;
	ring_submit(t, rec);
}

/* The master leaves the region, and its record is sent. */
__noinline int team_close(struct mxbpf_thread *t, __u64 sp)
{
	struct mxbpf_team_thread *w = team_thread(t);
	struct mxbpf_team_master *r = w ? team_at(w, w->depth - 1) : 0;
	struct mxbpf_team_open *o;
	struct mxbpf_team_key key;

	if (!r || !t)
		return 0;
	if (w->over) {
		w->over--;
		return 0;
	}
	if (r->end_sp != sp)
		return 0;
	w->depth--;
	if (!r->start_ns)
		return 0;
	key = r->key;
	o = bpf_map_lookup_elem(&teams, &key);
	if (o && o->joined == o->left && o->start_ns >= active_since_ns)
		team_send(t, r, o);
	else
		t->counts[MXBPF_COUNT_UNMATCHED]++;
	bpf_map_delete_elem(&teams, &key);
	return 0;
}

/* Returns true if the thread is inside the innermost region that it opened as a master. */
static __always_inline bool team_is_master(struct mxbpf_team_thread *w, __u64 sp)
{
	struct mxbpf_team_master *r = team_at(w, w->depth - 1);

	return r && r->sp > sp;
}

/*
 * Returns true if the thread is inside its own work. A nested call of the same function there runs on this thread
 * alone.
 */
static __always_inline bool team_is_within(const struct mxbpf_team_thread *w, __u64 sp)
{
	return w->work_start_ns && sp < w->work_sp;
}

/* A worker thread begins its part. If its region opened before recording began, there is nothing to add to. */
__noinline int team_join(struct mxbpf_thread *t, __u64 sp, __u64 fn, __u64 data)
{
	struct mxbpf_team_key key = {.fn = fn, .data = data};
	struct mxbpf_team_thread *w = team_thread(t);
	struct mxbpf_team_open *o;
	__u64 late_ns, runq_ns;
	struct mxbpf_account spun;

	if (!w || !t)
		return 0;
	if (team_is_master(w, sp))
		return team_begin(t);
	if (team_is_within(w, sp))
		return 0;
	key.tgid = t->tgid;
	w->work_start_ns = 0;
	o = bpf_map_lookup_elem(&teams, &key);
	if (!o)
		return 0;
	team_now(&w->began);
	w->work = key;
	w->work_start_ns = o->start_ns;
	w->work_sp = sp;
	__sync_fetch_and_add(&o->joined, 1);
	late_ns = w->began.ns - o->start_ns;
	/*
	 * The thread was asleep or did not exist before the region. Its run-queue wait since then counts as part of
	 * its late start, up to the length of that.
	 */
	runq_ns = w->began.account.run_delay_ns - (w->idle.ns ? w->idle.account.run_delay_ns : 0);
	__sync_fetch_and_add(&o->late_ns, late_ns);
	__sync_fetch_and_add(&o->late_runq_ns, runq_ns < late_ns ? runq_ns : late_ns);
	if (w->idle.ns >= active_since_ns) {
		team_since(&spun, &w->idle, w->began.ns);
		__sync_fetch_and_add(&o->spun_ns, spun.on_cpu_ns);
	}
	return 0;
}

/* A worker thread has ended its part. */
__noinline int team_leave(struct mxbpf_thread *t, __u64 sp)
{
	struct mxbpf_team_thread *w = team_thread(t);
	struct mxbpf_account work;
	struct mxbpf_team_open *o;

	if (!w || team_is_master(w, sp) || team_is_within(w, sp))
		return 0;
	team_now(&w->idle);
	o = team_of(w);
	w->work_start_ns = 0;
	if (!o)
		return 0;
	team_since(&work, &w->began, w->idle.ns);
	__sync_fetch_and_add(&o->work_ns, w->idle.ns - w->began.ns);
	__sync_fetch_and_add(&o->cpu_ns, work.on_cpu_ns);
	__sync_fetch_and_add(&o->runq_ns, work.runq_ns);
	__sync_fetch_and_add(&o->until_ns, w->idle.ns - o->start_ns);
	if (work.flags)
		o->flags |= MXBPF_TEAM_MIGRATED;
	__sync_fetch_and_add(&o->left, 1);
	return 0;
}

static __always_inline __u64 team_reg(struct pt_regs *ctx, __u64 nr)
{
	__u64 v = 0;

/* The asm statement keeps the compiler from making one load at a computed offset, which the verifier refuses. */
#define REG(n, field)                                                                                                  \
	case n:                                                                                                        \
		v = ctx->field;                                                                                        \
		asm volatile("" : "+r"(v));                                                                            \
		break;

	switch (nr & MXBPF_WORKER_REG_MASK) {
		REG(0, ax)
		REG(1, cx)
		REG(2, dx)
		REG(3, bx)
		REG(5, bp)
		REG(6, si)
		REG(7, di)
		REG(8, r8)
		REG(9, r9)
		REG(10, r10)
		REG(11, r11)
		REG(12, r12)
		REG(13, r13)
		REG(14, r14)
		REG(15, r15)
	}
#undef REG
	return v;
}

/*
 * Returns a number for the first n (at most 2) words of the data that a master hands its threads. It tells apart
 * two masters that run the same code. Code compiled for GCC's library has its function in the first word and the
 * argument in the second.
 */
static __always_inline __u64 team_words(__u64 words, __u32 n)
{
	__u64 w[2] = {0, 0};

	if (n && bpf_probe_read_user(&w[0], sizeof(w[0]), (void *)words))
		return 0;
	if (n > 1 && bpf_probe_read_user(&w[1], sizeof(w[1]), (void *)(words + sizeof(w[0]))))
		return 0;
	return w[0] + (w[1] << 16 | w[1] >> 48);
}

/*
 * Discards the region of an OpenMP league (the construct `teams`). LLVM's library opens it as a parallel region whose
 * threads only fork the teams of the league. Each of these threads is the master of a team, and only the regions of
 * the teams are recorded.
 */
__noinline int team_league(struct mxbpf_thread *t)
{
	struct mxbpf_team_thread *w = team_thread(t);
	struct mxbpf_team_master *r = w ? team_at(w, w->depth - 1) : 0;

	if (r && t)
		team_forget(t, w, r);
	return 0;
}

/*
 * A master forks a team. The masters of a league's teams pass no argument list, because they pass on the arguments of
 * the league.
 */
static __always_inline void team_fork(struct pt_regs *ctx, struct mxbpf_thread *t, __u64 sp)
{
	struct {
		__u32 gp_bytes, fp_bytes; /* bytes of the register area read so far */
		__u64 stack, regs;
	} list; /* va_list */
	__u64 at;

	if (bpf_probe_read_user(&at, sizeof(at), (void *)(sp + 8)))
		return;
	if (!at) {
		team_league(t);
		return;
	}
	if (bpf_probe_read_user(&list, sizeof(list), (void *)at))
		return;
	at = list.gp_bytes < 48 ? list.regs + list.gp_bytes : list.stack;
	team_open(t, sp, ctx->r8, team_words(at, ctx->cx));
}

/*
 * Returns true if the probed conditional jump goes the way that the cookie asks for, or if there is no condition.
 */
static __always_inline bool team_branches(struct pt_regs *ctx, __u64 cookie)
{
	__u32 code = cookie >> MXBPF_CUT_COND_SHIFT & 31;
	__u64 flags = ctx->flags;

	return !code || condition(code - 1, flags) == !!(cookie & MXBPF_CUT_TAKEN);
}

static __always_inline void on_team(struct pt_regs *ctx, struct mxbpf_thread *t, __u8 action)
{
	__u64 cookie = probe_cookie(ctx), sp = PT_REGS_SP(ctx);

	if (action == MXBPF_ACT_OMP_OPEN) {
		frames_end(t, sp);
		if (cookie & MXBPF_TEAM_FORK)
			team_fork(ctx, t, sp);
		else
			team_open(t, sp, PT_REGS_PARM1(ctx), PT_REGS_PARM2(ctx));
	} else if (action == MXBPF_ACT_OMP_WAIT) {
		team_wait(t, sp);
	} else if (action == MXBPF_ACT_OMP_LEAVE) {
		team_leave(t, sp);
	} else if (!team_branches(ctx, cookie)) {
		return;
	} else if (action == MXBPF_ACT_OMP_CLOSE) {
		team_close(t, cookie_sp(cookie, sp, ctx->bp));
	} else if (action == MXBPF_ACT_OMP_BEGIN) {
		team_begin(t);
	} else if (cookie & MXBPF_TEAM_FORK) {
		team_join(t, sp, PT_REGS_PARM1(ctx), team_words(ctx->r8, ctx->cx));
	} else {
		team_join(t, sp, team_reg(ctx, cookie >> MXBPF_WORKER_FN_SHIFT),
			  team_reg(ctx, cookie >> MXBPF_WORKER_DATA_SHIFT));
	}
}

#endif
