// SPDX-License-Identifier: Apache-2.0
/*
 * Gives each ns of a device to one cause. All work is swept in the order of its starts, so between two starts the
 * device runs kernels, then only copies, then nothing. The time in which it runs nothing ends with the next work, and
 * that work's launch says which thread the device has waited for:
 *
 *   device  ---- kernel ----|             nothing             |---- kernel ----
 *   thread    ... waits ... | what the thread does |  launch  |
 *
 * A thread that waits for the device when this runs out of work could have gone on launching. What it does after the
 * wait would have been beside the work, so that counts as the wait's as well: at most as long as the work was waited
 * for. Time in which the thread waits for others (data, processes) would have passed all the same, and does not.
 */
#include <errno.h>

#include "feature/activity/activity.h"
#include "feature/idle/state.h"
#include "feature/lines/lines.h"

#define WAITS_NS 8000000000ull /* waits for events are kept for work that starts so much later */

struct sweep {
	const struct mdl *m;
	struct idle_state *t;
	struct idle_threads threads;
	struct buf looks; /* struct mxbpf_look, by process, thread and time */
};

/* A time of a device that ends with work. */
struct gap {
	struct idle_device *d;
	const struct activity_call *launch; /* of that work */
	uint32_t tid;			    /* the thread that is looked at */
	/* The call that waited for the device when it ran out of work; ahead_ns: what is left of the time it cost. */
	uint64_t wait_name, wait_stack, ahead_ns;
};

/* ---- orders */

static int by_stream(const void *va, const void *vb)
{
	const struct idle_wait *a = va, *b = vb;

	BUF_ORDER(a->tgid, b->tgid);
	BUF_ORDER(a->stream, b->stream);
	BUF_ORDER(a->ns, b->ns);
	return 0;
}

static int idle_sweep_by_thread(const void *va, const void *vb)
{
	const struct mxbpf_look *a = va, *b = vb;

	BUF_ORDER(a->h.tgid, b->h.tgid);
	BUF_ORDER(a->tid, b->tid);
	BUF_ORDER(a->h.ts_ns, b->h.ts_ns);
	return 0;
}

/* ---- what is known of a moment */

static int add_looks(struct sweep *s, const struct mxbpf_agg_gpu_idle *of, uint32_t tid, uint64_t from_ns,
		     uint64_t to_ns)
{
	const struct mxbpf_look like = {.h = {.tgid = of->h.tgid, .ts_ns = from_ns}, .tid = tid};
	size_t i = buf_first(&s->looks, sizeof(like), &like, idle_sweep_by_thread);
	struct mxbpf_agg_gpu_idle row = *of, *r;
	const struct mxbpf_look *l;

	for (; i < buf_count(&s->looks, *l); i++) {
		l = buf_at(&s->looks, struct mxbpf_look, i);
		if (l->h.tgid != of->h.tgid || l->tid != tid || l->h.ts_ns >= to_ns)
			break;
		row.name_id = 0;
		row.stack_id = l->stack_id;
		r = idle_row(s->t, &row);
		if (!r)
			return -ENOMEM;
		add_sat(&r->looks, 1);
	}
	return 0;
}

/* What a piece of time is given to. */
struct given {
	enum mxbpf_idle_cause cause;
	uint64_t name_id, stack_id;
	uint32_t tid; /* whose lines say more; 0: nobody's */
};

static int give(struct sweep *s, const struct idle_device *d, const struct given *to, uint64_t from_ns, uint64_t to_ns)
{
	const struct mxbpf_agg_gpu_idle like = {.h.tgid = d->tgid,
						.name_id = to->name_id,
						.stack_id = to->stack_id,
						.device = d->device,
						.cause = (uint8_t)to->cause};
	const struct mxbpf_gpu_idle piece = {.h = {.tgid = d->tgid, .ts_ns = from_ns},
					     .dur_ns = to_ns - from_ns,
					     .name_id = to->name_id,
					     .stack_id = to->stack_id,
					     .device = d->device,
					     .cause = (uint8_t)to->cause};
	struct mxbpf_agg_gpu_idle *r;

	if (from_ns >= to_ns)
		return 0;
	r = idle_row(s->t, &like);
	if (!r || (to->cause && idle_piece_put(s->t, &piece)))
		return -ENOMEM;
	add_sat(&r->ns, to_ns - from_ns);
	add_sat(&r->count, 1);
	return to->tid ? add_looks(s, &like, to->tid, from_ns, to_ns) : 0;
}

/* ---- what a thread did before it launched */

static bool is_main(uint32_t tgid, uint32_t tid)
{
	return (tgid & MDL_PID_MASK) == tid;
}

/*
 * Returns what the program did at a moment. A thread that launches for others (an engine's, or that of a backward pass)
 * is in no call when it has nothing to do, and then the main thread counts.
 */
static const struct idle_piece *piece_at(const struct sweep *s, struct gap *g, uint64_t ns, uint64_t *end_ns)
{
	const uint32_t tgid = g->d->tgid;
	const struct idle_piece *p = idle_piece_at(&s->threads, tgid, g->launch->tid, ns, end_ns);
	uint64_t main_end_ns;

	g->tid = g->launch->tid;
	if (p || is_main(tgid, g->tid))
		return p;
	g->tid = tgid & MDL_PID_MASK;
	p = idle_piece_at(&s->threads, tgid, g->tid, ns, &main_end_ns);
	*end_ns = main_end_ns < *end_ns ? main_end_ns : *end_ns;
	return p;
}

/* Returns the stack of the call in which the thread is at a moment; 0: none, or stacks are not read. */
static uint64_t stack_at(const struct sweep *s, const struct gap *g, uint64_t ns)
{
	uint64_t end_ns;
	const struct idle_piece *p = idle_piece_at(&s->threads, g->d->tgid, g->tid, ns, &end_ns);

	return p ? p->stack_id : 0;
}

/* Gives time of the thread to one of four causes, by what idle_cpu_at() says. */
static int give_divided(struct sweep *s, const struct gap *g, const enum mxbpf_idle_cause causes[IDLE_CPUS],
			const struct given *of, uint64_t from_ns, uint64_t to_ns)
{
	struct given to = *of;
	uint64_t end_ns;
	int err = 0;

	for (; !err && from_ns < to_ns; from_ns = end_ns) {
		to.cause = causes[idle_cpu_at(s->t, g->d->tgid, g->tid, from_ns, &end_ns)];
		end_ns = end_ns < to_ns ? end_ns : to_ns;
		err = give(s, g->d, &to, from_ns, end_ns);
	}
	return err;
}

static int give_own(struct sweep *s, const struct gap *g, const struct given *code, uint64_t from_ns, uint64_t to_ns)
{
	static const enum mxbpf_idle_cause causes[] = {MXBPF_IDLE_PYTHON, MXBPF_IDLE_OWN_CPU, MXBPF_IDLE_OWN_BLOCKED,
						       MXBPF_IDLE_OWN_RUNQ};

	return give_divided(s, g, causes, code, from_ns, to_ns);
}

/*
 * The program is in no call: it waits for an exchange on another thread, or runs code of its own. The stack of its next
 * call says up to which line.
 */
static int give_program(struct sweep *s, struct gap *g, uint64_t from_ns, uint64_t to_ns)
{
	const struct given code = {MXBPF_IDLE_PYTHON, 0, stack_at(s, g, to_ns), g->tid};
	struct given others = {.cause = MXBPF_IDLE_COLLECTIVE, .tid = g->tid};
	struct idle_span exchange;

	if (!idle_exchange_in(&s->threads, g->d->tgid, from_ns, to_ns, &exchange))
		return give_own(s, g, &code, from_ns, to_ns);
	others.name_id = exchange.name_id;
	if (give_own(s, g, &code, from_ns, exchange.start_ns) ||
	    give(s, g->d, &others, exchange.start_ns, exchange.end_ns))
		return -ENOMEM;
	return give_own(s, g, &code, exchange.end_ns, to_ns);
}

static uint64_t idle_sweep_part_of(uint64_t ns, unsigned part)
{
	return ns / IDLE_WHOLE * part + ns % IDLE_WHOLE * part / IDLE_WHOLE;
}

/*
 * If it is not known where in an operator the thread was off the CPU, but only for how long, each part of the operator
 * has its share.
 */
static int give_share(struct sweep *s, struct gap *g, const struct idle_piece *p, uint64_t from_ns, uint64_t to_ns)
{
	const uint64_t runq_ns = idle_sweep_part_of(to_ns - from_ns, p->runq),
		       blocked_ns = idle_sweep_part_of(to_ns - from_ns, p->blocked);
	struct given to = {MXBPF_IDLE_RUNQ, p->name_id, p->stack_id, 0};

	if (give(s, g->d, &to, from_ns, from_ns + runq_ns))
		return -ENOMEM;
	from_ns += runq_ns;
	to.cause = MXBPF_IDLE_BLOCKED;
	if (give(s, g->d, &to, from_ns, from_ns + blocked_ns))
		return -ENOMEM;
	to.cause = MXBPF_IDLE_OPERATOR;
	to.tid = g->tid;
	return give(s, g->d, &to, from_ns + blocked_ns, to_ns);
}

static int give_call(struct sweep *s, struct gap *g, const struct idle_piece *p, uint64_t from_ns, uint64_t to_ns)
{
	static const enum mxbpf_idle_cause causes[] = {MXBPF_IDLE_OPERATOR, MXBPF_IDLE_OPERATOR, MXBPF_IDLE_BLOCKED,
						       MXBPF_IDLE_RUNQ};
	const struct given to = {p->cause, p->name_id, p->stack_id, g->tid};
	uint64_t end_ns;

	if (p->cause != MXBPF_IDLE_OPERATOR)
		return give(s, g->d, &to, from_ns, to_ns);
	if (idle_cpu_at(s->t, g->d->tgid, g->tid, from_ns, &end_ns) == IDLE_CPU_UNKNOWN)
		return give_share(s, g, p, from_ns, to_ns);
	return give_divided(s, g, causes, &to, from_ns, to_ns);
}

/* Gives time from `*from_ns` on to the wait that kept the program from running ahead, as long as that has cost time. */
static int give_ahead(struct sweep *s, struct gap *g, uint64_t *from_ns, uint64_t to_ns)
{
	const struct given wait = {MXBPF_IDLE_HOST, g->wait_name, g->wait_stack, 0};
	const uint64_t ns = g->ahead_ns < to_ns - *from_ns ? g->ahead_ns : to_ns - *from_ns;
	const uint64_t end_ns = *from_ns + ns;
	const int err = give(s, g->d, &wait, *from_ns, end_ns);

	g->ahead_ns -= ns;
	*from_ns = end_ns;
	return err;
}

static int give_piece(struct sweep *s, struct gap *g, const struct idle_piece *p, uint64_t from_ns, uint64_t to_ns)
{
	if (g->ahead_ns && (!p || p->cause == MXBPF_IDLE_OPERATOR) && give_ahead(s, g, &from_ns, to_ns))
		return -ENOMEM;
	if (from_ns >= to_ns)
		return 0;
	return p ? give_call(s, g, p, from_ns, to_ns) : give_program(s, g, from_ns, to_ns);
}

/* Gives the time before the launch, in which nothing was launched. */
static int give_thread(struct sweep *s, struct gap *g, uint64_t from_ns, uint64_t to_ns)
{
	const struct given unknown = {.cause = MXBPF_IDLE_UNKNOWN};
	const struct idle_piece *p;
	uint64_t end_ns;
	int err = 0;

	if (from_ns >= to_ns)
		return 0;
	if (from_ns < s->t->lost_ns) {
		end_ns = s->t->lost_ns < to_ns ? s->t->lost_ns : to_ns;
		if (give(s, g->d, &unknown, from_ns, end_ns))
			return -ENOMEM;
		from_ns = end_ns;
	}
	p = piece_at(s, g, from_ns, &end_ns);
	if (p && p->cause == MXBPF_IDLE_HOST && p->since_ns < from_ns) {
		g->wait_name = p->name_id;
		g->wait_stack = p->stack_id;
		g->ahead_ns = from_ns - p->since_ns;
	}
	for (; !err && from_ns < to_ns; from_ns = end_ns) {
		p = piece_at(s, g, from_ns, &end_ns);
		end_ns = end_ns < to_ns ? end_ns : to_ns;
		err = give_piece(s, g, p, from_ns, end_ns);
	}
	return err;
}

/* ---- devices */

/* Returns whether the stream was told to wait for an event between the launch of its work before and this launch. */
static bool waits_for_event(struct sweep *s, const struct win_work *w, const struct activity_call *l)
{
	const uint64_t stream = win_stream(&w->track);
	const struct idle_wait like = {.stream = stream, .ns = l->start_ns + 1, .tgid = w->tgid};
	const size_t i = buf_first(&s->t->waits, sizeof(like), &like, by_stream);
	const struct idle_wait *last = i ? buf_at(&s->t->waits, struct idle_wait, i - 1) : NULL;
	uint64_t *before = hash_put(&s->t->streams, stream, (uint64_t)w->tgid << 32 | w->track.device), since_ns;

	if (!before)
		return false;
	since_ns = *before;
	*before = l->start_ns > since_ns ? l->start_ns : since_ns;
	return last && last->tgid == w->tgid && last->stream == stream && last->ns >= since_ns;
}

static uint64_t clamp(uint64_t ns, uint64_t low, uint64_t high)
{
	return ns < low ? low : ns > high ? high : ns;
}

/* Work begins, and how it came to be launched. */
struct arrival {
	const struct win_work *work;
	const struct activity_call *launch; /* NULL: not known */
	bool event;			    /* its stream waits for an event */
};

static int give_gap(struct sweep *s, struct idle_device *d, const struct arrival *a, uint64_t from_ns, uint64_t to_ns)
{
	const struct given unknown = {.cause = MXBPF_IDLE_UNKNOWN};
	const struct activity_call *l = a->launch;
	struct gap g = {.d = d, .launch = l};
	struct given to = {.cause = MXBPF_IDLE_LAUNCH};
	const struct idle_piece *p;
	uint64_t called_ns, done_ns, end_ns;

	if (!l)
		return give(s, d, &unknown, from_ns, to_ns);
	called_ns = clamp(l->start_ns, from_ns, to_ns);
	done_ns = a->event ? clamp(l->end_ns, called_ns, to_ns) : to_ns;
	if (give_thread(s, &g, from_ns, called_ns))
		return -ENOMEM;
	p = idle_piece_at(&s->threads, d->tgid, l->tid, l->start_ns, &end_ns);
	to.name_id = p ? p->name_id : l->call_id;
	to.stack_id = p ? p->stack_id : 0;
	if (give(s, d, &to, called_ns, done_ns))
		return -ENOMEM;
	to.cause = MXBPF_IDLE_EVENT;
	return give(s, d, &to, done_ns, to_ns);
}

/* Gives the time of a device until the start of the next work; a NULL: until the end of the last one. */
static int idle_settle(struct sweep *s, struct idle_device *d, const struct arrival *a)
{
	const uint64_t last_ns = d->compute_until_ns > d->copy_until_ns ? d->compute_until_ns : d->copy_until_ns;
	const uint64_t to_ns = a ? a->work->start_ns : last_ns;
	const struct given busy = {.cause = MXBPF_IDLE_BUSY}, copies = {MXBPF_IDLE_COPY, d->copy_name, 0, 0};
	uint64_t computed_ns, copied_ns;

	if (to_ns <= d->now_ns)
		return 0;
	computed_ns = clamp(d->compute_until_ns, d->now_ns, to_ns);
	copied_ns = clamp(d->copy_until_ns, computed_ns, to_ns);
	if (give(s, d, &busy, d->now_ns, computed_ns) || give(s, d, &copies, computed_ns, copied_ns))
		return -ENOMEM;
	d->now_ns = to_ns;
	return copied_ns < to_ns ? give_gap(s, d, a, copied_ns, to_ns) : 0;
}

static struct idle_device *idle_device_of(struct idle_state *t, const struct win_work *w)
{
	struct idle_device *d;
	bool added;

	d = mdl_item_put(&t->device_index, &t->devices, (uint64_t)w->tgid << 32 | w->track.device, 0, sizeof(*d),
			 &added);
	if (d && added)
		*d = (struct idle_device){.tgid = w->tgid,
					  .device = w->track.device,
					  .first_ns = w->start_ns,
					  .now_ns = w->start_ns,
					  .compute_until_ns = w->start_ns,
					  .copy_until_ns = w->start_ns};
	return d;
}

static int idle_take(struct sweep *s, const struct win_work *w)
{
	struct idle_device *d = idle_device_of(s->t, w);
	struct arrival a = {.work = w};

	a.launch = activity_call_of(s->m, w->tgid, w->domain, w->edge_id, w->start_ns);
	a.event = a.launch && waits_for_event(s, w, a.launch);
	if (!d || idle_settle(s, d, &a))
		return -ENOMEM;
	if (w->cls != MXBPF_ACTIVITY_COPY) {
		d->compute_until_ns = w->end_ns > d->compute_until_ns ? w->end_ns : d->compute_until_ns;
	} else if (w->end_ns > d->copy_until_ns) {
		d->copy_until_ns = w->end_ns;
		d->copy_name = w->name_id;
	}
	return 0;
}

/* ---- a sweep */

static int idle_sweep_begin(const struct mdl *m, struct sweep *s)
{
	size_t n;
	const struct mxbpf_look *looks = lines_looks(m, &n);

	if (buf_put(&s->looks, looks, n * sizeof(*looks)))
		return -ENOMEM;
	buf_sort(&s->looks, sizeof(struct mxbpf_look), idle_sweep_by_thread);
	buf_sort(&s->t->waits, sizeof(struct idle_wait), by_stream);
	buf_sort(&s->t->off, sizeof(struct idle_off), idle_off_order);
	return idle_threads_make(m, s->t, 0, idle_known_ns(s->t), UINT64_MAX, &s->threads);
}

static void idle_forget(struct idle_state *t, uint64_t until_ns)
{
	const uint64_t since_ns = until_ns > WAITS_NS ? until_ns - WAITS_NS : 0;
	struct idle_wait *w = (struct idle_wait *)t->waits.data;
	size_t i, n = 0;

	for (i = 0; i < buf_count(&t->waits, *w); i++)
		if (w[i].ns >= since_ns)
			w[n++] = w[i];
	t->waits.len = n * sizeof(*w);
}

int idle_sweep(const struct mdl *m, struct idle_state *t, const struct win_work *work, size_t n, uint64_t until_ns)
{
	struct sweep s = {.m = m, .t = t};
	size_t i, k;
	int err = idle_sweep_begin(m, &s);

	for (i = 0; !err && i < n; i++)
		err = idle_take(&s, &work[i]);
	for (k = 0; !err && until_ns == UINT64_MAX && k < buf_count(&t->devices, struct idle_device); k++)
		err = idle_settle(&s, buf_at(&t->devices, struct idle_device, k), NULL);
	idle_forget(t, until_ns != UINT64_MAX ? until_ns : n ? work[n - 1].start_ns : 0);
	idle_threads_fini(&s.threads);
	buf_fini(&s.looks);
	return err;
}
