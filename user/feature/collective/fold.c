// SPDX-License-Identifier: Apache-2.0
/*
 * Collects the parts of collectives: works of gloo, and kernels of NCCL with what the call around their launch says.
 * The last ones are kept as they are, because only all hosts together show who was late. Older ones are added up.
 */
#include "feature/collective/state.h"

#include <errno.h>
#include <string.h>

#include "feature/activity/activity.h"

#define EVENTS_MAX     (1u << 17) /* 12 MiB; beyond that, the older half becomes rows */
#define EVENTS_KEPT    (1u << 16) /* in a recording */
#define CALLS_MAX      (1u << 16)
#define NAMES_MAX      (1u << 16)
#define KERNELS_SOUGHT 16   /* that began at one time */
#define ROWS_MAX       8192 /* beyond that, a row has all parts of an operation that have none */

static struct state *collective_state_of(struct mdl *m)
{
	return mdl_state(m, &feature_collective);
}

/* ---- rows */

static uint64_t collective_key_of(const struct mxbpf_agg_collective *r)
{
	const uint64_t what = r->comm ^ (uint64_t)r->root << 32 ^ r->reduction;

	return r->bytes ^ (r->group + what * 0xff51afd7ed558ccdull) * 0x9e3779b97f4a7c15ull;
}

static uint64_t collective_fold_place_of(const struct mxbpf_agg_collective *r)
{
	return (uint64_t)r->h.tgid << 32 | (r->device & 0xffffu) << 16 | (uint32_t)r->backend << 8 | r->op;
}

static int add_row(struct state *t, const struct mxbpf_agg_collective *from)
{
	struct mxbpf_agg_collective key = *from, *r;
	bool added;

	if (buf_count(&t->rows, key) >= ROWS_MAX &&
	    !hash_get(&t->index, collective_key_of(&key), collective_fold_place_of(&key)))
		key = (struct mxbpf_agg_collective){.bytes = MXBPF_COLLECTIVE_UNSIZED,
						    .count = from->count,
						    .total_ns = from->total_ns,
						    .first_ns = from->first_ns,
						    .last_ns = from->last_ns,
						    .backend = from->backend,
						    .op = from->op};
	r = mdl_item_put(&t->index, &t->rows, collective_key_of(&key), collective_fold_place_of(&key), sizeof(*r),
			 &added);
	if (!r)
		return -ENOMEM;
	if (added) {
		*r = key;
		r->h = (struct mxbpf_rec){.kind = MXBPF_AGG_COLLECTIVE, .size = sizeof(*r), .tgid = key.h.tgid};
		return 0;
	}
	collective_merge(r, &key);
	r->first_ns = from->first_ns < r->first_ns ? from->first_ns : r->first_ns;
	r->last_ns = from->last_ns > r->last_ns ? from->last_ns : r->last_ns;
	return 0;
}

static struct mxbpf_agg_collective collective_row_of(const struct collective_part *p)
{
	return (struct mxbpf_agg_collective){
		.h.tgid = p->c->h.tgid,
		.bytes = p->bytes,
		.group = p->group,
		.count = 1,
		.total_ns = p->c->dur_ns,
		.matched = p->group != 0,
		.matched_ns = p->group ? p->c->dur_ns : 0,
		.wait_ns = p->wait_ns,
		.move_ns = p->move_ns,
		.last = p->is_last,
		.late_ns = p->late_ns,
		.first_ns = p->c->h.ts_ns,
		.last_ns = p->c->h.ts_ns + p->c->dur_ns,
		.members = p->members,
		.device = p->c->device,
		.backend = p->c->backend,
		.op = p->c->op,
		.source = p->source,
		.reduction = p->reduction,
		.comm = p->comm,
		.root = p->root,
		.ranks = p->ranks,
	};
}

static int add_parts(struct state *t, const struct buf *parts)
{
	size_t i;
	int err = 0;

	for (i = 0; !err && i < buf_count(parts, struct collective_part); i++) {
		const struct mxbpf_agg_collective r = collective_row_of(buf_at(parts, struct collective_part, i));

		err = add_row(t, &r);
	}
	return err;
}

/* ---- what a kernel's launch says */

static void find_launch(const struct mdl *m, struct event *e)
{
	const struct activity_call *l =
		e->edge_id ? activity_call_of(m, e->c.h.tgid, e->domain, e->edge_id, e->c.h.ts_ns) : NULL;

	if (!l)
		return;
	e->launched_ns = l->start_ns;
	e->c.tid = l->tid;
}

static int collective_fold_by_thread(const void *va, const void *vb)
{
	const struct call *a = va, *b = vb;

	BUF_ORDER(a->tgid, b->tgid);
	BUF_ORDER(a->tid, b->tid);
	BUF_ORDER(a->start_ns, b->start_ns);
	return 0;
}

/* Returns the call in which a thread was at a time, or NULL. */
static const struct call *call_at(const struct buf *calls, const struct event *e)
{
	const struct call behind = {.start_ns = e->launched_ns + 1, .tgid = e->c.h.tgid, .tid = e->c.tid};
	const size_t n = buf_first(calls, sizeof(behind), &behind, collective_fold_by_thread);
	const struct call *c = n ? buf_at(calls, struct call, n - 1) : NULL;

	return c && c->tgid == behind.tgid && c->tid == behind.tid && c->end_ns >= e->launched_ns ? c : NULL;
}

/* What single sends say is no size of such an operation. */
static bool is_uneven(unsigned op)
{
	return op != MXBPF_COLLECTIVE_SEND_RECV && op != MXBPF_COLLECTIVE_ALL_TO_ALL;
}

/* The framework's call knows its operation better than NCCL, which sees only sends in some. */
static void tell_call(struct event *e, const struct call *c)
{
	const bool sends = e->c.op == MXBPF_COLLECTIVE_SEND_RECV;

	e->c.op = c->op ? c->op : e->c.op;
	if (c->bytes != MXBPF_COLLECTIVE_UNSIZED) {
		e->c.bytes = c->bytes;
		e->c.source = MXBPF_COLLECTIVE_FROM_ARGS;
		e->c.flags = 0;
	} else if (sends && is_uneven(e->c.op)) {
		e->c.bytes = MXBPF_COLLECTIVE_UNSIZED;
		e->c.source = 0;
	}
}

/*
 * Gives kernels what the calls that launched them say: ranges of NCCL, and calls of the framework. A kernel's name
 * alone does not tell all operations.
 */
static int resolve(const struct mdl *m, const struct state *t, struct buf *events)
{
	struct buf calls = {0};
	const struct call *c;
	struct event *e;
	size_t i;
	int err = buf_put(&calls, t->calls.data, t->calls.len);

	for (i = 0; i < buf_count(events, *e); i++) {
		e = buf_at(events, struct event, i);
		if (!e->launched_ns)
			find_launch(m, e);
	}
	err = err ? err : said_resolve(t, events);
	buf_sort(&calls, sizeof(*c), collective_fold_by_thread);
	for (i = 0; !err && i < buf_count(events, *e); i++) {
		e = buf_at(events, struct event, i);
		c = e->launched_ns ? call_at(&calls, e) : NULL;
		if (c)
			tell_call(e, c);
	}
	buf_fini(&calls);
	return err;
}

/* ---- events */

static int collective_by_end(const void *va, const void *vb)
{
	const struct mxbpf_collective *a = &((const struct event *)va)->c, *b = &((const struct event *)vb)->c;
	const uint64_t a_ns = a->h.ts_ns + a->dur_ns, b_ns = b->h.ts_ns + b->dur_ns;

	if (a_ns != b_ns)
		return a_ns < b_ns ? -1 : 1;
	return a->h.tgid != b->h.tgid ? (a->h.tgid < b->h.tgid ? -1 : 1) : a->tid < b->tid ? -1 : a->tid > b->tid;
}

/* Appends the matched parts of events. */
static int parts_of(const struct event *e, size_t n, struct buf *out)
{
	struct collective_part *p = buf_add(out, n * sizeof(*p));
	size_t i;

	if (!p)
		return n ? -ENOMEM : 0;
	for (i = 0; i < n; i++)
		p[i] = (struct collective_part){.c = &e[i].c};
	return match_parts(p, n);
}

/* Adds the older half up. */
static int collective_fold_sweep(const struct mdl *m, struct state *t)
{
	struct event *e = (struct event *)t->events.data;
	const size_t n = buf_count(&t->events, *e), old = n - n / 2;
	struct buf parts = {0};
	int err = resolve(m, t, &t->events);

	buf_sort(&t->events, sizeof(*e), collective_by_end);
	err = err ? err : parts_of(e, old, &parts);
	err = err ? err : add_parts(t, &parts);
	buf_fini(&parts);
	memmove(e, e + old, (n - old) * sizeof(*e));
	t->events.len = (n - old) * sizeof(*e);
	t->joined = 0;
	return err;
}

static int put_event(const struct mdl *m, struct state *t, const struct event *e)
{
	const int err = buf_count(&t->events, *e) >= EVENTS_MAX ? collective_fold_sweep(m, t) : 0;

	return err ? err : buf_put(&t->events, e, sizeof(*e));
}

#define NAMED_SAID 16 /* bits before what a range of NCCL says */

/* Looks a name up once. Returns 1 + said_named() << NAMED_SAID + backend << 8 + op, or 1. */
static uint64_t named(const struct mdl *m, struct state *t, uint64_t name_id, bool kernel)
{
	const uint64_t *known = hash_get(&t->names, name_id, kernel);
	uint64_t *to, what = 1;
	uint8_t backend;
	const char *name;
	size_t len;

	if (known)
		return *known;
	name = mdl_text(m, MXBPF_NAME_SPAN, name_id, &len);
	if (name) {
		what += collective_op(name, len, kernel, &backend);
		what += (uint64_t)backend << 8;
		what += kernel ? 0 : (uint64_t)said_named(name, len) << NAMED_SAID;
	}
	to = name && t->names.len < NAMES_MAX ? hash_put(&t->names, name_id, kernel) : NULL;
	if (to)
		*to = what;
	return what;
}

static int collective_span(struct mdl *m, struct mdl_row *row, const struct mxbpf_span *s)
{
	struct state *t = s->flags & MXBPF_SPAN_USER ? collective_state_of(m) : NULL;
	uint64_t what, bytes;
	const char *args;
	size_t len = 0;
	bool sized;

	if (!(s->flags & MXBPF_SPAN_USER))
		return 0;
	if (!t)
		return -ENOMEM;
	what = named(m, t, s->name_id, false) - 1;
	if (!what)
		return 0;
	if (what >> NAMED_SAID)
		return said_take(m, t, s, (unsigned)(what >> NAMED_SAID));
	args = s->args_id ? mdl_text(m, MXBPF_NAME_ARGS, s->args_id, &len) : NULL;
	bytes = collective_args_bytes(args, len);
	sized = bytes != MXBPF_COLLECTIVE_UNSIZED;
	if (what >> 8 == MXBPF_BACKEND_NCCL) {
		const struct call c = {s->h.ts_ns, s->h.ts_ns + s->dur_ns, bytes, s->h.tgid, s->tid, (uint8_t)what};

		return buf_put_latest(&t->calls, &c, sizeof(c), CALLS_MAX);
	}
	return put_event(m, t,
			 &(struct event){.c = {.h = s->h,
					       .dur_ns = s->dur_ns,
					       .bytes = bytes,
					       .lane = s->end_tid,
					       .tid = s->tid,
					       .backend = (uint8_t)(what >> 8),
					       .op = (uint8_t)what,
					       .source = sized ? MXBPF_COLLECTIVE_FROM_ARGS : 0}});
}

static int activity(struct mdl *m, const struct mxbpf_activity *a)
{
	struct state *t = a->cls == MXBPF_ACTIVITY_KERNEL ? collective_state_of(m) : NULL;
	uint64_t what;
	struct event e;

	if (a->cls != MXBPF_ACTIVITY_KERNEL)
		return 0;
	if (!t)
		return -ENOMEM;
	what = named(m, t, a->name_id, true) - 1;
	if (!what)
		return 0;
	e = (struct event){.c = {.h = a->h,
				 .dur_ns = a->dur_ns,
				 .bytes = MXBPF_COLLECTIVE_UNSIZED,
				 .lane = (uint64_t)a->track.context << 32 | a->track.stream,
				 .device = a->track.device,
				 .backend = (uint8_t)(what >> 8),
				 .op = (uint8_t)what},
			   .edge_id = a->edge_id,
			   .domain = a->domain};
	return put_event(m, t, &e);
}

/* Launches are forgotten soon, so kernels look for theirs at the end of each window. */
static int window(struct mdl *m)
{
	struct state *t = collective_state_of(m);
	const size_t n = buf_count(&t->events, struct event);
	size_t i;

	for (i = t->joined; i < n; i++)
		find_launch(m, buf_at(&t->events, struct event, i));
	t->joined = n;
	return 0;
}

static int take_work(const struct mdl *m, struct state *t, const struct win_work *work, size_t n)
{
	size_t i;
	int err = 0;

	for (i = 0; !err && i < n; i++)
		if (work[i].cls == MXBPF_ACTIVITY_KERNEL)
			err = overlaps_take(&t->overlaps, &work[i], named(m, t, work[i].name_id, true) > 1);
	return err;
}

static int settled(struct mdl *m, const struct win_work *work, size_t n, uint64_t until_ns)
{
	struct state *t = collective_state_of(m);

	return t ? take_work(m, t, work, n) : -ENOMEM;
}

/* ---- results */

/* Copies the events, in the order of their ends. */
static int resolved(const struct mdl *m, const struct state *t, struct buf *events)
{
	if (buf_put(events, t->events.data, t->events.len) || resolve(m, t, events))
		return -ENOMEM;
	buf_sort(events, sizeof(struct event), collective_by_end);
	return 0;
}

int collective_parts(const struct mdl *m, struct buf *events, struct buf *out)
{
	const struct state *t = mdl_state_of(m, &feature_collective);
	int err = t ? resolved(m, t, events) : 0;

	return err ? err : parts_of((const void *)events->data, buf_count(events, struct event), out);
}

static void rows_fini(struct state *t)
{
	hash_fini(&t->index);
	buf_fini(&t->rows);
}

int collective_rows(const struct mdl *m, struct buf *out)
{
	const struct state *t = mdl_state_of(m, &feature_collective);
	struct buf events = {0}, parts = {0};
	struct state all = {.joined = 0};
	int err = t ? collective_parts(m, &events, &parts) : 0;

	err = err || !t ? err : mdl_items_copy(&all.index, &all.rows, &t->index, &t->rows);
	err = err ? err : add_parts(&all, &parts);
	err = err ? err : buf_put(out, all.rows.data, all.rows.len);
	rows_fini(&all);
	buf_fini(&events);
	buf_fini(&parts);
	return err;
}

int collective_overlaps(const struct mdl *m, struct buf *out)
{
	const struct state *t = mdl_state_of(m, &feature_collective);
	struct state all = {.joined = 0};
	struct buf work = {0};
	int err = t ? overlaps_copy(&all.overlaps, &t->overlaps) : 0;

	err = err ? err : activity_pending(m, &work);
	err = err ? err : take_work(m, &all, (void *)work.data, buf_count(&work, struct win_work));
	err = err ? err : overlaps_finish(&all.overlaps, out);
	overlaps_fini(&all.overlaps);
	hash_fini(&all.names);
	buf_fini(&work);
	return err;
}

/* ---- recordings and copies */

/* Returns the kernel that a trace of another profiler says more of: it is among the last events. */
static struct event *kernel_of(const struct state *t, const struct mxbpf_collective *c)
{
	const size_t n = buf_count(&t->events, struct event);
	struct event *e;
	size_t i;

	for (i = 0; i < KERNELS_SOUGHT && i < n; i++) {
		e = buf_at(&t->events, struct event, n - 1 - i);
		if (e->edge_id && e->c.h.ts_ns == c->h.ts_ns && e->c.h.tgid == c->h.tgid && e->c.lane == c->lane &&
		    e->c.device == c->device && e->c.backend == c->backend)
			return e;
	}
	return NULL;
}

static int fold_one(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct state *t = collective_state_of(m);
	struct event e = {.said = true}, *kernel;

	memcpy(&e.c, rec, rec->size < sizeof(e.c) ? rec->size : sizeof(e.c));
	e.c.h.size = sizeof(e.c);
	if (!t)
		return -ENOMEM;
	kernel = kernel_of(t, &e.c);
	if (!kernel)
		return put_event(m, t, &e);
	e.c.op = e.c.op ? e.c.op : kernel->c.op;
	e.c.tid = kernel->c.tid;
	kernel->c = e.c;
	return 0;
}

static int fold_row(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct state *t = collective_state_of(m);
	struct mxbpf_agg_collective r = {.count = 0};

	memcpy(&r, rec, rec->size < sizeof(r) ? rec->size : sizeof(r));
	return t ? add_row(t, &r) : -ENOMEM;
}

static int fold_overlap(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct state *t = collective_state_of(m);

	return t ? overlaps_fold(&t->overlaps, (const void *)rec) : -ENOMEM;
}

/* Other recordings may have the other parts of the last collectives, so these are records themselves. */
static int collective_emit(const struct mdl *m, struct buf *out)
{
	const struct state *t = mdl_state_of(m, &feature_collective);
	struct buf events = {0}, parts = {0};
	struct state old = {.joined = 0};
	int err = resolved(m, t, &events);
	const size_t n = buf_count(&events, struct event), from = n > EVENTS_KEPT ? n - EVENTS_KEPT : 0;
	size_t i;

	err = err ? err : mdl_items_copy(&old.index, &old.rows, &t->index, &t->rows);
	err = err ? err : parts_of((const void *)events.data, from, &parts);
	err = err ? err : add_parts(&old, &parts);
	err = err ? err : buf_put(out, old.rows.data, old.rows.len);
	for (i = from; !err && i < n; i++) {
		struct mxbpf_collective c = buf_at(&events, struct event, i)->c;

		c.h = (struct mxbpf_rec){MXBPF_COLLECTIVE, sizeof(c), c.h.tgid, c.h.ts_ns};
		err = buf_put(out, &c, sizeof(c));
	}
	err = err ? err : collective_overlaps(m, out);
	rows_fini(&old);
	buf_fini(&events);
	buf_fini(&parts);
	return err;
}

static int collective_copy(struct mdl *to, const struct mdl *from)
{
	const struct state *f = mdl_state_of(from, &feature_collective);
	struct state *t = collective_state_of(to);

	if (!t)
		return -ENOMEM;
	t->joined = f->joined;
	if (buf_put(&t->events, f->events.data, f->events.len) || buf_put(&t->calls, f->calls.data, f->calls.len) ||
	    buf_put(&t->said, f->said.data, f->said.len) || hash_copy(&t->comms, &f->comms) ||
	    mdl_items_copy(&t->index, &t->rows, &f->index, &f->rows))
		return -ENOMEM;
	return overlaps_copy(&t->overlaps, &f->overlaps);
}

static void collective_fold_fini(struct mdl *m)
{
	struct state *t = collective_state_of(m);

	hash_fini(&t->names);
	buf_fini(&t->events);
	buf_fini(&t->calls);
	buf_fini(&t->said);
	hash_fini(&t->comms);
	rows_fini(t);
	overlaps_fini(&t->overlaps);
}

const struct mdl_feature feature_collective = {
	.trace = &collective_trace,
	.state_bytes = sizeof(struct state),
	.by_process = true,
	.kinds = {{MXBPF_COLLECTIVE, fold_one}, {MXBPF_AGG_COLLECTIVE, fold_row}, {MXBPF_AGG_OVERLAP, fold_overlap}},
	.span = collective_span,
	.activity = activity,
	.settled = settled,
	.window = window,
	.emit = collective_emit,
	.copy = collective_copy,
	.fini = collective_fold_fini,
};
