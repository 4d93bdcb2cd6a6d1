// SPDX-License-Identifier: Apache-2.0
/* Adds activities of devices up by process, device, class and name. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "feature/activity/state.h"

#define WORK_MIN (1u << 12)
#define WORK_MAX (1u << 20) /* 56 MiB */

struct state {
	struct hash index;	   /* (name_id, class and kinds; process and device) -> struct activity_row * */
	struct buf rows;	   /* struct activity_row *, owned */
	struct hash device_index;  /* (process, device) -> 1 + index in devices */
	struct buf devices;	   /* struct mxbpf_gpu_device */
	struct hash account_index; /* (process, 0) -> 1 + index in accounts and since */
	struct buf accounts;	   /* struct mxbpf_gpu_account: since the model began */
	struct buf since;	   /* struct mxbpf_gpu_account: what it was when the model began */
	struct hash is_wait;	   /* (name_id, 0) -> 1: a call that does not wait, 2: one that waits */
	struct buf ended;	   /* struct mdl_ended, of this window */
	struct launched launched;
	struct join join;
	struct streams streams;
	struct win_queue work; /* struct win_work that has not settled: all but waits */
};

static struct state *activity_state_of(struct mdl *m)
{
	return mdl_state(m, &feature_activity);
}

/* Returns the state of a model, or an empty one. */
static const struct state *activity_known(const struct mdl *m)
{
	static const struct state none;
	const struct state *all = mdl_state_of(m, &feature_activity);

	return all ? all : &none;
}

static const void *activity_list(const struct buf *items, size_t bytes, size_t *n)
{
	*n = items->len / bytes;
	return items->data;
}

/* ---- rows */

/* Copies have rows by direction and memory kinds, sets by memory kind, waits by type. */
static uint64_t activity_fold_key_of(const struct mxbpf_agg_activity *a)
{
	const uint64_t kinds = (uint64_t)a->cls << 32 | (uint64_t)a->copy << 24 | (uint64_t)a->from << 16 |
			       (uint64_t)a->to << 8 | a->sync_type;

	return a->name_id ^ kinds * 0x9e3779b97f4a7c15ull;
}

static bool has_shape(const struct mxbpf_agg_activity *a)
{
	return a->cls == MXBPF_ACTIVITY_KERNEL && a->shape_ns;
}

/* The later shape stays. */
static void shape_add(struct mxbpf_agg_activity *to, const struct mxbpf_agg_activity *from)
{
	uint8_t varies = to->varies | from->varies;

	if (!has_shape(from))
		return;
	if (has_shape(to)) {
		varies |= memcmp(to->grid, from->grid, sizeof(to->grid)) ? MXBPF_SHAPE_GRID : 0;
		varies |= memcmp(to->block, from->block, sizeof(to->block)) ? MXBPF_SHAPE_BLOCK : 0;
		varies |= to->registers != from->registers ? MXBPF_SHAPE_REGISTERS : 0;
		varies |= to->static_shared != from->static_shared || to->dynamic_shared != from->dynamic_shared
				  ? MXBPF_SHAPE_SHARED
				  : 0;
	}
	if (from->shape_ns >= to->shape_ns) {
		to->shape_ns = from->shape_ns;
		memcpy(to->grid, from->grid, sizeof(to->grid));
		memcpy(to->block, from->block, sizeof(to->block));
		to->registers = from->registers;
		to->static_shared = from->static_shared;
		to->dynamic_shared = from->dynamic_shared;
	}
	to->varies = varies;
}

/* Returns the row to which `from` was added, or NULL if out of memory. */
static struct activity_row *activity_add(struct mdl *m, const struct mxbpf_agg_activity *from)
{
	struct state *all = activity_state_of(m);
	const uint64_t process = (uint64_t)from->h.tgid << 32 | from->device;
	struct activity_row *row;
	bool added;

	/* First the name: a row without one must not stay. */
	if (!all || mdl_expect_name(m, from->name_id))
		return NULL;
	row = mdl_row_put(&all->index, &all->rows, activity_fold_key_of(from), process, sizeof(*row), &added);
	if (!row)
		return NULL;
	if (added) {
		row->a = *from;
		return row;
	}
	row->a.min_ns = from->min_ns < row->a.min_ns || !row->a.count ? from->min_ns : row->a.min_ns;
	row->a.max_ns = from->max_ns > row->a.max_ns ? from->max_ns : row->a.max_ns;
	add_sat(&row->a.count, from->count);
	add_sat(&row->a.total_ns, from->total_ns);
	add_sat(&row->a.bytes, from->bytes);
	add_sat(&row->a.unlaunched, from->unlaunched);
	shape_add(&row->a, from);
	return row;
}

static struct mxbpf_agg_activity row_of_one(const struct mxbpf_activity *a)
{
	const bool copy = a->cls == MXBPF_ACTIVITY_COPY, set = a->cls == MXBPF_ACTIVITY_SET;
	struct mxbpf_agg_activity one = {
		.h = {.kind = MXBPF_AGG_ACTIVITY, .size = sizeof(one), .tgid = a->h.tgid},
		.name_id = a->name_id,
		.count = 1,
		.total_ns = a->dur_ns,
		.min_ns = a->dur_ns,
		.max_ns = a->dur_ns,
		.bytes = a->bytes,
		.device = a->track.device,
		.cls = a->cls,
		.copy = copy ? a->copy : 0,
		.from = copy ? a->from : 0,
		.to = copy || set ? a->to : 0,
		.sync_type = a->cls == MXBPF_ACTIVITY_SYNC ? a->sync_type : 0,
	};

	if (a->cls != MXBPF_ACTIVITY_KERNEL || !a->grid[0])
		return one;
	one.shape_ns = a->h.ts_ns;
	memcpy(one.grid, a->grid, sizeof(one.grid));
	memcpy(one.block, a->block, sizeof(one.block));
	one.registers = a->registers;
	one.static_shared = a->static_shared;
	one.dynamic_shared = a->dynamic_shared;
	return one;
}

/* A wait is no work of a device, and the call that waits launches nothing. */
static int activity_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_activity a = kind_activity(rec);
	const struct mxbpf_agg_activity one = row_of_one(&a);
	struct activity_row *row = activity_add(m, &one);
	const struct win_work work = win_work_of(&a);
	struct state *all = activity_state_of(m);

	if (!row)
		return -ENOMEM;
	add_sat(&row->hist[mxbpf_bucket(a.dur_ns)], 1);
	if (mdl_see_activity(m, &a))
		return -ENOMEM;
	if (a.cls == MXBPF_ACTIVITY_SYNC)
		return 0;
	return win_put(&all->work, &work, sizeof(work)) || join_activity(m, &all->join, &a, row) ? -ENOMEM : 0;
}

static int launch_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_launch l = kind_launch(rec);
	struct state *all = activity_state_of(m);

	return all && !launched_put(&all->launched, &l) && !mdl_see_launch(m, &l) ? join_launch(m, &all->join, &l)
										  : -ENOMEM;
}

static int node_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct state *all = activity_state_of(m);

	return all ? join_node(m, &all->join, (const void *)rec) : -ENOMEM;
}

/* ---- calls that wait */

bool activity_is_wait(const char *name, size_t len)
{
	if (memmem(name, len, "Synchronize", strlen("Synchronize")))
		return true;
	return memmem(name, len, "Memcpy", strlen("Memcpy")) && !memmem(name, len, "Async", strlen("Async"));
}

static bool waits(const struct mdl *m, struct state *all, uint64_t name_id)
{
	uint64_t *at = hash_get(&all->is_wait, name_id, 0);
	const char *name;
	size_t len;

	if (at && *at)
		return *at == 2;
	if (!mdl_has_name(m, name_id))
		return false;
	name = mdl_name(m, name_id, &len);
	at = hash_put(&all->is_wait, name_id, 0);
	if (at)
		*at = 1 + activity_is_wait(name, len);
	return activity_is_wait(name, len);
}

#define ROW struct activity_wait
static const struct tbl_column wait_columns[] = {
	{.stored = "name_id", .type = TBL_NAME, KEY_AT(name_id)},
	{.stored = "tid", .type = TBL_COUNT, KEY_AT(tid)},
	PID_COLUMN(tgid, .merge = TBL_IS_KEY),
	{.stored = "count", .type = TBL_COUNT, SUM_AT(count)},
	{.stored = "total_ns", .type = TBL_NS, SUM_AT(total_ns)},
	{0},
};
#undef ROW
static const struct tbl_def waits_table = {
	.name = "gpu waits", .row_bytes = sizeof(struct activity_wait), .of_process = true, .columns = wait_columns};

static int activity_span(struct mdl *m, struct mdl_row *row, const struct mxbpf_span *s)
{
	const struct activity_wait w = {
		.name_id = s->name_id, .count = 1, .total_ns = s->dur_ns, .tgid = s->h.tgid, .tid = s->tid};
	struct state *all;

	if (s->cls != MXBPF_CLASS_CUDA && !mdl_sees_devices(m))
		return 0;
	all = activity_state_of(m);
	if (!all)
		return -ENOMEM;
	if (s->cls != MXBPF_CLASS_CUDA)
		return join_span(m, &all->join, s);
	return waits(m, all, s->name_id) ? mdl_table_add(m, &feature_activity, &waits_table, &w) : 0;
}

/* ---- other records */

/* Iterations end before their activities come, so their launches add the activities to them later. */
static int iteration(struct mdl *m, const struct mdl_ended *it)
{
	struct state *all = mdl_state_of(m, &feature_activity) ? activity_state_of(m) : NULL;

	return all ? buf_put(&all->ended, it, sizeof(*it)) : 0;
}

static int take_iterations(const struct mdl *m, struct state *all)
{
	const struct mdl_ended *end;
	size_t i;
	int err = 0;

	for (i = 0; !err && i < buf_count(&all->ended, *end); i++) {
		end = buf_at(&all->ended, const struct mdl_ended, i);
		err = join_iteration(m, &all->join, end->tgid, end->start_ns, end->end_ns);
	}
	all->ended.len = 0;
	return err;
}

bool activity_of_iteration(const struct mdl *m, uint32_t tgid, uint64_t start_ns, uint64_t dur_ns,
			   struct mxbpf_gpu_work *work)
{
	const struct join *j = &activity_known(m)->join;

	return j->on && join_of_iteration(m, j, tgid, start_ns, start_ns + dur_ns, work);
}

/* ---- activities that wait until all that start before them have come */

static int activity_by_start(const void *va, const void *vb)
{
	const struct win_work *a = va, *b = vb;
	const int order = win_by_times(a, b);

	if (order)
		return order;
	BUF_ORDER(a->tgid, b->tgid);
	BUF_ORDER(win_stream(&a->track), win_stream(&b->track));
	BUF_ORDER(a->edge_id, b->edge_id);
	return 0;
}

static int settle(struct mdl *m, struct state *all, uint64_t until_ns)
{
	const size_t n = win_ready(&all->work, sizeof(struct win_work), activity_by_start, until_ns);
	const struct win_work *w = (const void *)all->work.all.data;
	int err = streams_take(&all->streams, &all->work, w, n);

	err = err ? err : mdl_see_settled(m, w, n, until_ns);
	win_take(&all->work, sizeof(*w), n);
	all->work.kept = buf_count(&all->work.all, *w);
	return err;
}

int activity_settle_work(struct mdl *m)
{
	struct state *all = activity_state_of(m);

	return all ? settle(m, all, win_until(&all->work, sizeof(struct win_work), WORK_MAX)) : -ENOMEM;
}

int activity_pending(const struct mdl *m, struct buf *out)
{
	const struct buf *all = &activity_known(m)->work.all;
	const int err = buf_put(out, all->data, all->len);

	buf_sort(out, sizeof(struct win_work), activity_by_start);
	return err;
}

static int activity_window(struct mdl *m)
{
	struct state *all = activity_state_of(m);
	int err = join_window(m, &all->join);

	err = err ? err : take_iterations(m, all);
	if (err || !win_is_due(buf_count(&all->work.all, struct win_work), all->work.kept, WORK_MIN, WORK_MAX))
		return err;
	return activity_settle_work(m);
}

static int fold_row(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct mxbpf_agg_activity a = {.nbuckets = 0};
	struct activity_row *row;

	memcpy(&a, rec, rec->size < sizeof(a) ? rec->size : sizeof(a));
	a.h.size = sizeof(a);
	if (!a.count)
		return 0;
	row = activity_add(m, &a);
	if (!row)
		return -ENOMEM;
	if (rec->size > sizeof(a))
		mdl_hist_fold(row->hist, (const void *)((const char *)rec + sizeof(a)), a.nbuckets);
	return 0;
}

static int fold_work(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct state *all = activity_state_of(m);

	return all ? join_fold_work(m, &all->join, (const void *)rec) : -ENOMEM;
}

static int fold_graph(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct state *all = activity_state_of(m);

	return all ? graphs_fold(m, &all->join.graphs, (const void *)rec) : -ENOMEM;
}

static int fold_stream(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct state *all = activity_state_of(m);

	return all ? streams_fold(&all->streams, (const void *)rec) : -ENOMEM;
}

/* ---- devices and accounts */

static int fold_device(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct mxbpf_gpu_device d = {.device = 0}, *to;
	struct state *all = activity_state_of(m);
	bool added;

	memcpy(&d, rec, rec->size < sizeof(d) ? rec->size : sizeof(d));
	d.h.size = sizeof(d); /* a newer version has a longer record */
	if (!all || mdl_expect_name(m, d.name_id))
		return -ENOMEM;
	to = mdl_item_put(&all->device_index, &all->devices, rec->tgid, d.device, sizeof(d), &added);
	if (!to)
		return -ENOMEM;
	*to = d;
	return mdl_see_device(m) ? -ENOMEM : join_on(m, &all->join);
}

/* The members of an account after its header. */
#define COUNTERS ((sizeof(struct mxbpf_gpu_account) - sizeof(struct mxbpf_rec)) / sizeof(__u64))

/* An account has sums since the session's start. */
static int fold_account(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct state *all = activity_state_of(m);
	const struct mxbpf_gpu_account none = {.records = 0};
	struct mxbpf_gpu_account sums = none, *a; /* a shorter record lacks members */
	const __u64 *was, *now = (const void *)(&sums.h + 1);
	__u64 *to;
	bool added;
	size_t i;

	if (!all || buf_put(&all->since, &none, sizeof(none))) /* for an account that is added */
		return -ENOMEM;
	a = mdl_item_put(&all->account_index, &all->accounts, rec->tgid, 0, sizeof(*a), &added);
	if (!a || !added)
		all->since.len -= sizeof(none);
	if (!a)
		return -ENOMEM;
	memcpy(&sums, rec, rec->size < sizeof(sums) ? rec->size : sizeof(sums));
	i = (size_t)(a - buf_at(&all->accounts, struct mxbpf_gpu_account, 0));
	a->h = (struct mxbpf_rec){.kind = MXBPF_GPU_ACCOUNT, .size = sizeof(*a), .tgid = rec->tgid};
	was = (const void *)(&buf_at(&all->since, struct mxbpf_gpu_account, i)->h + 1);
	to = (void *)(&a->h + 1);
	for (i = 0; i < COUNTERS; i++)
		to[i] = now[i] > was[i] ? now[i] - was[i] : 0;
	return 0;
}

static int move_accounts(struct state *to, const struct state *from)
{
	struct mxbpf_gpu_account *was, *a;
	size_t i, k;

	if (hash_copy(&to->account_index, &from->account_index) ||
	    buf_put(&to->accounts, from->accounts.data, from->accounts.len) ||
	    buf_put(&to->since, from->since.data, from->since.len))
		return -ENOMEM;
	for (i = 0; i < buf_count(&to->accounts, *a); i++) {
		a = buf_at(&to->accounts, struct mxbpf_gpu_account, i);
		was = buf_at(&to->since, struct mxbpf_gpu_account, i);
		for (k = 0; k < COUNTERS; k++) {
			add_sat((__u64 *)(&was->h + 1) + k, *((__u64 *)(&a->h + 1) + k));
			*((__u64 *)(&a->h + 1) + k) = 0;
		}
	}
	return 0;
}

/* ---- results */

const struct activity_call *activity_call_of(const struct mdl *m, uint32_t tgid, unsigned domain, uint64_t edge_id,
					     uint64_t ns)
{
	const struct activity_call like = {
		.start_ns = ns, .edge_id = edge_id, .tgid = tgid, .domain = (uint16_t)domain};

	return launched_find(&activity_known(m)->launched, &like);
}

const struct activity_call *activity_calls(const struct mdl *m, size_t *n)
{
	return activity_list(&activity_known(m)->launched.all, sizeof(struct activity_call), n);
}

uint64_t activity_call_number(const struct mdl *m, const struct activity_call *l)
{
	const struct launched *all = &activity_known(m)->launched;

	return all->first + (uint64_t)(l - (const struct activity_call *)all->all.data);
}

const struct activity_call *activity_call_at(const struct mdl *m, uint64_t number)
{
	size_t n;
	const struct activity_call *l = activity_calls(m, &n);
	const uint64_t first = n ? activity_call_number(m, l) : 0;

	return number >= first && number - first < n ? &l[number - first] : NULL;
}

uint64_t activity_calls_lost_ns(const struct mdl *m)
{
	return activity_known(m)->launched.lost_ns;
}

const struct activity_row *const *activity_rows(const struct mdl *m, size_t *n)
{
	return activity_list(&activity_known(m)->rows, sizeof(void *), n);
}

const struct activity_work *const *activity_work_rows(const struct mdl *m, size_t *n)
{
	return activity_list(&activity_known(m)->join.rows, sizeof(void *), n);
}

const struct activity_wait *activity_waits(const struct mdl *m, size_t *n)
{
	return mdl_table_rows(m, &feature_activity, &waits_table, n);
}

uint64_t activity_seen_ns(const struct mdl *m, uint32_t tgid, uint64_t window_ns)
{
	size_t n, i;
	const struct mxbpf_gpu_account *a = activity_accounts(m, &n);

	for (i = 0; i < n; i++)
		if (a[i].h.tgid == tgid && a[i].held_ns && (!window_ns || a[i].held_ns < window_ns))
			window_ns = a[i].held_ns;
	return window_ns;
}

const struct mxbpf_agg_gpu_graph *activity_graphs(const struct mdl *m, size_t *n)
{
	return activity_list(&activity_known(m)->join.graphs.rows, sizeof(struct mxbpf_agg_gpu_graph), n);
}

int activity_streams(const struct mdl *m, struct buf *out)
{
	const struct state *all = activity_known(m);
	struct streams streams = {.rows = {0}};
	struct buf work = {0};
	int err = streams_copy(&streams, &all->streams);

	err = err ? err : activity_pending(m, &work);
	err = err ? err : streams_take(&streams, &all->work, (void *)work.data, buf_count(&work, struct win_work));
	err = err ? err : streams_emit(&streams, out);
	streams_fini(&streams);
	buf_fini(&work);
	return err;
}

const struct activity_join *activity_joins(const struct mdl *m, size_t *n)
{
	return mdl_table_rows(m, &feature_activity, &activity_joins_table, n);
}

const struct mxbpf_gpu_device *activity_devices(const struct mdl *m, size_t *n)
{
	return activity_list(&activity_known(m)->devices, sizeof(struct mxbpf_gpu_device), n);
}

const struct mxbpf_gpu_account *activity_accounts(const struct mdl *m, size_t *n)
{
	return activity_list(&activity_known(m)->accounts, sizeof(struct mxbpf_gpu_account), n);
}

/* ---- the state */

static int activity_emit(const struct mdl *m, struct buf *out)
{
	const struct state *all = mdl_state_of(m, &feature_activity);
	struct mxbpf_agg_activity a;
	size_t n, i;
	const struct activity_row *const *rows = activity_rows(m, &n);
	int err = buf_put(out, all->devices.data, all->devices.len);

	for (i = 0; !err && i < n; i++) {
		a = rows[i]->a;
		err = a.count ? mdl_hist_emit(rows[i]->hist, &a, sizeof(a), &a.nbuckets, out) : 0;
	}
	err = err ? err : join_emit(&all->join, out);
	err = err ? err : activity_streams(m, out);
	return err ? err : buf_put(out, all->accounts.data, all->accounts.len);
}

static int activity_processes(const struct mdl *m, mdl_process_fn fn, void *ctx)
{
	size_t i, n;
	const struct activity_row *const *rows = activity_rows(m, &n);
	int err = 0;

	for (i = 0; i < n && !err; i++)
		err = fn(ctx, rows[i]->a.h.tgid);
	return err;
}

static int copy_devices(struct state *to, const struct state *from)
{
	return mdl_items_copy(&to->device_index, &to->devices, &from->device_index, &from->devices);
}

/* The copy lacks spans and waiting activities, and what the join knows of launches. */
static int activity_copy(struct mdl *to, const struct mdl *from)
{
	const struct state *f = mdl_state_of(from, &feature_activity);
	struct state *t = activity_state_of(to);
	int err = t ? mdl_rows_copy(&t->index, &t->rows, &f->index, &f->rows, sizeof(struct activity_row)) : -ENOMEM;

	err = err ? err : copy_devices(t, f);
	err = err ? err : mdl_items_copy(&t->account_index, &t->accounts, &f->account_index, &f->accounts);
	err = err ? err : buf_put(&t->since, f->since.data, f->since.len);
	err = err ? err : launched_copy(&t->launched, &f->launched);
	err = err ? err : join_copy(&t->join, &f->join);
	err = err ? err : win_copy(&t->work, &f->work);
	return err ? err : streams_copy(&t->streams, &f->streams);
}

/* Activities that are pending are counted in `from`. */
static int activity_move(struct mdl *to, struct mdl *from, uint64_t now_ns)
{
	struct state *t = activity_state_of(to), *f = activity_state_of(from);
	int err = t ? move_accounts(t, f) : -ENOMEM;

	err = err ? err : settle(from, f, UINT64_MAX);
	err = err ? err : copy_devices(t, f);
	err = err ? err : launched_copy(&t->launched, &f->launched);
	err = err ? err : join_move(&t->join, &f->join);
	return err ? err : streams_move(&t->streams, &f->streams);
}

static void activity_fini(struct mdl *m)
{
	struct state *all = activity_state_of(m);

	mdl_rows_fini(&all->index, &all->rows);
	mdl_items_fini(&all->device_index, &all->devices);
	mdl_items_fini(&all->account_index, &all->accounts);
	buf_fini(&all->since);
	hash_fini(&all->is_wait);
	launched_fini(&all->launched);
	join_fini(&all->join);
	streams_fini(&all->streams);
	buf_fini(&all->work.all);
	buf_fini(&all->ended);
}

const struct mdl_feature feature_activity = {
	.bit = GPU_BIT,
	.trace = &activity_trace,
	.state_bytes = sizeof(struct state),
	.by_process = true, /* each process numbers its devices itself */
	.kinds = {{MXBPF_ACTIVITY, activity_fold},
		  {MXBPF_LAUNCH, launch_fold},
		  {MXBPF_AGG_ACTIVITY, fold_row},
		  {MXBPF_GPU_DEVICE, fold_device},
		  {MXBPF_GPU_ACCOUNT, fold_account},
		  {MXBPF_AGG_GPU_WORK, fold_work},
		  {MXBPF_AGG_GPU_STREAM, fold_stream},
		  {MXBPF_GRAPH_NODE, node_fold},
		  {MXBPF_AGG_GPU_GRAPH, fold_graph}},
	.tables = {{&waits_table}, {&activity_joins_table}},
	.span = activity_span,
	.iteration = iteration,
	.window = activity_window,
	.emit = activity_emit,
	.copy = activity_copy,
	.move = activity_move,
	.processes = activity_processes,
	.fini = activity_fini,
};
