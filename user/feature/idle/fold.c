// SPDX-License-Identifier: Apache-2.0
/* Keeps what a sweep needs, and adds idle times up by process, device, cause, name and stack. */
#include <errno.h>
#include <string.h>

#include "feature/activity/activity.h"
#include "feature/idle/state.h"
#include "mxbpf_sched.h"

#define ROWS_MAX    4096 /* beyond that, a new name or stack counts in the row without one */
#define SPANS_MIN   (1u << 14)
#define SPANS_KEPT  (1u << 17) /* stay for feature/path when they were swept */
#define SPANS_MAX   (1u << 18) /* 14 MiB */
#define BACKLOG_MAX (1u << 13) /* spans before the first sign of a GPU, which comes later than the calls */
#define WAITS_MAX   (1u << 16)

static struct idle_state *idle_state_of(struct mdl *m)
{
	return mdl_state(m, &feature_idle);
}

/* ---- for people */

const char *const idle_cause_words[MXBPF_IDLE_CAUSES] = {
	[MXBPF_IDLE_BUSY] = "busy",
	[MXBPF_IDLE_DATA] = "waits for data",
	[MXBPF_IDLE_PYTHON] = "your Python code",
	[MXBPF_IDLE_OPERATOR] = "operators on the CPU",
	[MXBPF_IDLE_BLOCKED] = "blocked in operators",
	[MXBPF_IDLE_RUNQ] = "operators without a CPU",
	[MXBPF_IDLE_LAUNCH] = "launch under way",
	[MXBPF_IDLE_COPY] = "only copies",
	[MXBPF_IDLE_EVENT] = "waits for an event",
	[MXBPF_IDLE_COLLECTIVE] = "waits for other processes",
	[MXBPF_IDLE_HOST] = "host waits for the GPU",
	[MXBPF_IDLE_UNKNOWN] = "not known",
	[MXBPF_IDLE_OWN_CPU] = "Python code on a CPU",
	[MXBPF_IDLE_OWN_BLOCKED] = "Python code, blocked",
	[MXBPF_IDLE_OWN_RUNQ] = "Python code, no CPU",
};

/* ---- rows */

static uint64_t idle_key_of(const struct mxbpf_agg_gpu_idle *r)
{
	return r->name_id ^ r->stack_id * 0x9e3779b97f4a7c15ull;
}

static uint64_t idle_place_of(const struct mxbpf_agg_gpu_idle *r)
{
	return (uint64_t)r->h.tgid << 32 | (uint64_t)(r->device & 0xffffff) << 8 | r->cause;
}

struct mxbpf_agg_gpu_idle *idle_row(struct idle_state *t, const struct mxbpf_agg_gpu_idle *like)
{
	struct mxbpf_agg_gpu_idle key = *like, *r;
	bool added;

	if (buf_count(&t->rows, key) >= ROWS_MAX && !hash_get(&t->row_index, idle_key_of(&key), idle_place_of(&key)))
		key.name_id = key.stack_id = 0;
	r = mdl_item_put(&t->row_index, &t->rows, idle_key_of(&key), idle_place_of(&key), sizeof(*r), &added);
	if (r && added)
		*r = (struct mxbpf_agg_gpu_idle){
			.h = {.kind = MXBPF_AGG_GPU_IDLE, .size = sizeof(*r), .tgid = key.h.tgid},
			.name_id = key.name_id,
			.stack_id = key.stack_id,
			.device = key.device,
			.cause = key.cause,
		};
	return r;
}

static int idle_add(struct idle_state *t, const struct mxbpf_agg_gpu_idle *from)
{
	struct mxbpf_agg_gpu_idle *r = idle_row(t, from);

	if (!r)
		return -ENOMEM;
	add_sat(&r->ns, from->ns);
	add_sat(&r->count, from->count);
	add_sat(&r->looks, from->looks);
	if (from->last_ns && (!r->last_ns || from->first_ns < r->first_ns))
		r->first_ns = from->first_ns;
	r->last_ns = from->last_ns > r->last_ns ? from->last_ns : r->last_ns;
	return 0;
}

static int idle_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct idle_state *t = idle_state_of(m);
	const struct mxbpf_agg_gpu_idle *r = (const void *)rec;

	return t && (!r->name_id || !mdl_expect_name(m, r->name_id)) ? idle_add(t, r) : -ENOMEM;
}

static int fold_piece(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct idle_state *t = idle_state_of(m);
	const struct mxbpf_gpu_idle *r = (const void *)rec;

	return t && (!r->name_id || !mdl_expect_name(m, r->name_id)) ? idle_piece_put(t, r) : -ENOMEM;
}

static int fold_step(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct idle_state *t = idle_state_of(m);

	return t ? idle_step_put(t, (const void *)rec) : -ENOMEM;
}

/* ---- what a sweep needs */

/* There is a GPU. */
static int device(struct mdl *m)
{
	struct idle_state *t = idle_state_of(m);

	if (!t)
		return -ENOMEM;
	t->on = true;
	return 0;
}

static int activity(struct mdl *m, const struct mxbpf_activity *a)
{
	const struct idle_wait wait = {win_stream(&a->track), a->h.ts_ns, a->h.tgid};
	struct idle_state *t = idle_state_of(m);

	if (!t)
		return -ENOMEM;
	t->on = true;
	if (a->cls != MXBPF_ACTIVITY_SYNC || a->sync_type != MXBPF_SYNC_STREAM_WAITS)
		return 0;
	return buf_put_latest(&t->waits, &wait, sizeof(wait), WAITS_MAX);
}

static int launched(struct mdl *m, const struct mxbpf_launch *l)
{
	return device(m);
}

static int fold_off(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_off_cpu *r = (const void *)rec;
	const struct idle_off off = {rec->ts_ns, r->back_ns, r->woken_ns, rec->tgid, r->tid};
	struct idle_state *t = idle_state_of(m);

	return t ? idle_off_put(t, &off) : -ENOMEM;
}

/* A session of --sched has it whether or not there are GPUs. */
static int off_cpu(struct mdl *m, const struct mxbpf_sched *r)
{
	const struct idle_off off = {r->h.ts_ns, r->back_ns, r->woken_ns, r->h.tgid, r->tid};

	return mdl_state_of(m, &feature_idle) ? idle_off_put(idle_state_of(m), &off) : 0;
}

static uint16_t idle_fold_part_of(uint64_t ns, uint64_t nested_ns, uint64_t all_ns)
{
	const uint64_t own_ns = ns > nested_ns ? ns - nested_ns : 0;

	return own_ns < all_ns ? (uint16_t)((double)own_ns / (double)all_ns * IDLE_WHOLE) : all_ns ? IDLE_WHOLE : 0;
}

static struct idle_span idle_fold_span_of(const struct mxbpf_span *s)
{
	struct idle_span span = {.start_ns = s->h.ts_ns,
				 .end_ns = s->h.ts_ns + s->dur_ns,
				 .name_id = s->name_id,
				 .stack_id = s->stack_id,
				 .tgid = s->h.tgid,
				 .tid = s->tid,
				 .cls = s->cls,
				 .user = s->flags & MXBPF_SPAN_USER,
				 .async = s->flags & MXBPF_SPAN_ASYNC};

	if (!(s->flags & MXBPF_SPAN_ACCOUNT) || s->account.flags & MXBPF_ACCOUNT_PART)
		return span;
	span.runq = idle_fold_part_of(s->account.runq_ns, s->nested.runq_ns, s->self_ns);
	span.blocked = idle_fold_part_of(s->account.blocked_ns, s->nested.blocked_ns, s->self_ns);
	if (span.blocked > IDLE_WHOLE - span.runq)
		span.blocked = (uint16_t)(IDLE_WHOLE - span.runq);
	return span;
}

static int span(struct mdl *m, struct mdl_row *row, const struct mxbpf_span *s)
{
	const struct idle_span one = idle_fold_span_of(s);
	struct idle_state *t = idle_state_of(m);

	if (!t)
		return -ENOMEM;
	if (!(t->on ? buf_put(&t->spans, &one, sizeof(one))
		    : buf_put_latest(&t->spans, &one, sizeof(one), BACKLOG_MAX)))
		return 0;
	t->lost_ns = one.end_ns > t->lost_ns ? one.end_ns : t->lost_ns; /* the causes of that time are not known */
	return 0;
}

uint64_t idle_known_ns(const struct idle_state *t)
{
	const struct idle_device *d;
	uint64_t known_ns = t->devices.len ? UINT64_MAX : 0;
	size_t i;

	for (i = 0; i < buf_count(&t->devices, *d); i++) {
		d = buf_at(&t->devices, struct idle_device, i);
		known_ns = d->now_ns < known_ns ? d->now_ns : known_ns;
	}
	return known_ns;
}

/* Forgets old spans of a time that has its causes, and the older half if they are too many. */
static void forget_spans(struct idle_state *t, uint64_t known_ns)
{
	struct idle_span *s = (struct idle_span *)t->spans.data;
	size_t n = buf_count(&t->spans, *s), gone = 0, i;

	while (n - gone > SPANS_KEPT && s[gone].end_ns <= known_ns)
		gone++;
	gone = n - gone < SPANS_MAX ? gone : n / 2;
	for (i = 0; i < gone; i++)
		t->lost_ns = s[i].end_ns > t->lost_ns ? s[i].end_ns : t->lost_ns;
	n -= gone;
	t->spans.len = n * sizeof(*s);
	memmove(s, s + gone, t->spans.len);
	for (t->nswept = n, t->kept_spans = 0, i = 0; i < n; i++)
		t->kept_spans += s[i].end_ns > known_ns;
}

/* Notes between which work a device was seen. */
static int add_busy(struct idle_state *t, const struct idle_device *d)
{
	const struct mxbpf_agg_gpu_idle busy = {
		.h.tgid = d->tgid, .device = d->device, .first_ns = d->first_ns, .last_ns = d->now_ns};

	return idle_add(t, &busy);
}

/* Takes work as idle_sweep() does. */
static int take_work(const struct mdl *m, struct idle_state *t, const struct win_work *work, size_t n,
		     uint64_t until_ns)
{
	const bool all = until_ns == UINT64_MAX;
	int err = n || t->devices.len ? idle_sweep(m, t, work, n, until_ns) : 0;
	size_t i;

	for (i = 0; !err && all && i < buf_count(&t->devices, struct idle_device); i++)
		err = add_busy(t, buf_at(&t->devices, struct idle_device, i));
	return err ? err : idle_steps_make(m, t, all);
}

static int settled(struct mdl *m, const struct win_work *work, size_t n, uint64_t until_ns)
{
	struct idle_state *t = idle_state_of(m);
	const int err = t ? take_work(m, t, work, n, until_ns) : -ENOMEM;
	uint64_t known_ns;

	if (err)
		return err;
	known_ns = idle_known_ns(t);
	forget_spans(t, known_ns);
	idle_off_forget(t, known_ns);
	return 0;
}

static int window(struct mdl *m)
{
	const struct idle_state *t = idle_state_of(m);
	const size_t n = buf_count(&t->spans, struct idle_span) - t->nswept + t->kept_spans;

	return t->on && win_is_due(n, t->kept_spans, SPANS_MIN, SPANS_MAX) ? activity_settle_work(m) : 0;
}

/* ---- the state */

static void state_fini(struct idle_state *t)
{
	buf_fini(&t->waits);
	buf_fini(&t->spans);
	buf_fini(&t->off);
	hash_fini(&t->streams);
	mdl_items_fini(&t->device_index, &t->devices);
	mdl_items_fini(&t->row_index, &t->rows);
	buf_fini(&t->pieces);
	buf_fini(&t->steps);
}

static int copy_buf(struct buf *to, const struct buf *from)
{
	return buf_put(to, from->data, from->len);
}

/* Copies what is kept for a sweep. */
static int copy_kept(struct idle_state *to, const struct idle_state *from)
{
	to->on = from->on;
	to->nswept = from->nswept;
	to->kept_spans = from->kept_spans;
	to->lost_ns = from->lost_ns;
	to->switched = from->switched;
	to->off_lost_ns = from->off_lost_ns;
	if (copy_buf(&to->waits, &from->waits) || copy_buf(&to->spans, &from->spans) ||
	    copy_buf(&to->off, &from->off) || hash_copy(&to->streams, &from->streams))
		return -ENOMEM;
	return mdl_items_copy(&to->device_index, &to->devices, &from->device_index, &from->devices);
}

static int copy_state(struct idle_state *to, const struct idle_state *from)
{
	to->forgotten_ns = from->forgotten_ns;
	if (copy_kept(to, from) || copy_buf(&to->pieces, &from->pieces) || copy_buf(&to->steps, &from->steps))
		return -ENOMEM;
	return mdl_items_copy(&to->row_index, &to->rows, &from->row_index, &from->rows);
}

int idle_results(const struct mdl *m, struct idle_results *out)
{
	const struct idle_state *t = mdl_state_of(m, &feature_idle);
	struct idle_state all = {.on = false};
	struct buf work = {0};
	int err;

	if (!t || (!t->on && !t->rows.len))
		return 0;
	err = copy_state(&all, t);
	err = err ? err : activity_pending(m, &work);
	err = err ? err : take_work(m, &all, (void *)work.data, buf_count(&work, struct win_work), UINT64_MAX);
	buf_fini(&work);
	if (!err) {
		*out = (struct idle_results){all.rows, all.pieces, all.steps};
		all.rows = all.pieces = all.steps = (struct buf){0};
	}
	state_fini(&all);
	return err;
}

void idle_results_fini(struct idle_results *r)
{
	buf_fini(&r->rows);
	buf_fini(&r->pieces);
	buf_fini(&r->steps);
}

int idle_rows(const struct mdl *m, struct buf *out)
{
	struct idle_results all = {0};
	int err = idle_results(m, &all);

	err = err ? err : copy_buf(out, &all.rows);
	idle_results_fini(&all);
	return err;
}

static int idle_emit(const struct mdl *m, struct buf *out)
{
	struct idle_results all = {0};
	int err = idle_results(m, &all);

	if (!err && (copy_buf(out, &all.rows) || copy_buf(out, &all.pieces) || copy_buf(out, &all.steps)))
		err = -ENOMEM;
	idle_results_fini(&all);
	return err;
}

static int idle_copy(struct mdl *to, const struct mdl *from)
{
	struct idle_state *t = idle_state_of(to);

	return t ? copy_state(t, mdl_state_of(from, &feature_idle)) : -ENOMEM;
}

/* `to` begins with the work that each device had when all had settled in `from`. */
static int idle_move(struct mdl *to, struct mdl *from, uint64_t now_ns)
{
	struct idle_state *t = idle_state_of(to), *f = idle_state_of(from);
	struct idle_device *d;
	size_t i;

	if (!t || copy_kept(t, f))
		return -ENOMEM;
	for (i = 0; i < buf_count(&t->devices, *d); i++) {
		d = buf_at(&t->devices, struct idle_device, i);
		d->first_ns = d->now_ns;
	}
	mdl_items_fini(&f->device_index, &f->devices);
	f->device_index = (struct hash){0};
	f->devices = (struct buf){0};
	return 0;
}

static int processes(const struct mdl *m, mdl_process_fn fn, void *ctx)
{
	const struct idle_state *t = mdl_state_of(m, &feature_idle);

	return mdl_items_processes(&t->rows, sizeof(struct mxbpf_agg_gpu_idle), fn, ctx);
}

static void idle_fini(struct mdl *m)
{
	state_fini(idle_state_of(m));
}

const struct mdl_feature feature_idle = {
	.state_bytes = sizeof(struct idle_state),
	.of_devices = true,
	.by_process = true, /* each process numbers its devices itself */
	.kinds = {{MXBPF_AGG_GPU_IDLE, idle_fold},
		  {MXBPF_GPU_IDLE, fold_piece},
		  {MXBPF_GPU_STEP, fold_step},
		  {MXBPF_OFF_CPU, fold_off}},
	.span = span,
	.device = device,
	.activity = activity,
	.launch = launched,
	.off_cpu = off_cpu,
	.settled = settled,
	.window = window,
	.emit = idle_emit,
	.copy = idle_copy,
	.move = idle_move,
	.processes = processes,
	.fini = idle_fini,
};
