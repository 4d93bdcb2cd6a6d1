// SPDX-License-Identifier: Apache-2.0
/*
 * Adds activities of devices up by process, device, class and name. An activity counts as unlaunched until the launch
 * of its edge arrives. The agent gets launches and activities in different buffers, so either can be first.
 */
#include "feature/activity/activity.h"

#include <errno.h>

/*
 * Launches are remembered in two halves. When a half is full, it replaces the older half. A half takes 16 MiB, and at
 * 200,000 launches per second it lasts for more than a second.
 */
#define LAUNCHES_HALF (1u << 18)
/* Activities that can wait for their launch. If there are more, all that wait stay unlaunched. */
#define WAITERS_MAX (1u << 18)

struct waiter {
	uint32_t row;  /* 1 + index in rows */
	uint32_t next; /* 1 + index of the next waiter for the edge, or of the next free one; 0: none */
};

struct state {
	struct hash index[MXBPF_ACTIVITY_MAX]; /* by class: (name_id, tgid and device) -> 1 + index in rows */
	struct buf rows;		       /* struct mxbpf_agg_activity */
	struct hash launches, older;	       /* (id, tgid and domain) of edges that were launched */
	struct hash waiting;		       /* (id, tgid and domain) -> 1 + index of the first waiter */
	struct buf waiters;		       /* struct waiter */
	uint32_t free_waiter;		       /* 1 + index; 0: none */
};

/* Returns the second word of an edge's key. The first word is its id. */
static uint64_t edge_of(uint32_t tgid, uint16_t domain)
{
	return (uint64_t)tgid << 16 | domain;
}

static struct mxbpf_agg_activity *row_at(struct state *all, uint64_t place)
{
	return buf_at(&all->rows, struct mxbpf_agg_activity, place - 1);
}

/* Adds a row of activities to the state. *place receives 1 + the index of the row. */
static int add(struct mdl *m, const struct mxbpf_agg_activity *from, uint64_t *place)
{
	struct state *all = mdl_state(m, &feature_activity);
	const uint64_t process = (uint64_t)from->h.tgid << 32 | from->device;
	struct mxbpf_agg_activity *row;
	bool added;

	if (!all)
		return -ENOMEM;
	row = mdl_item_put(&all->index[from->cls], &all->rows, from->name_id, process, sizeof(*row), &added);
	if (!row || mdl_expect_name(m, from->name_id))
		return -ENOMEM;
	*place = (uint64_t)(row - row_at(all, 1)) + 1;
	if (added) {
		*row = *from;
		return 0;
	}
	add_sat(&row->count, from->count);
	add_sat(&row->total_ns, from->total_ns);
	row->min_ns = from->min_ns < row->min_ns ? from->min_ns : row->min_ns;
	row->max_ns = from->max_ns > row->max_ns ? from->max_ns : row->max_ns;
	add_sat(&row->bytes, from->bytes);
	add_sat(&row->unlaunched, from->unlaunched);
	return 0;
}

static int wait_for(struct state *all, const struct mxbpf_activity *a, uint32_t row)
{
	struct waiter w = {.row = row};
	uint64_t *at;
	uint32_t place = all->free_waiter;

	if (!place && buf_count(&all->waiters, struct waiter) == WAITERS_MAX) {
		hash_clear(&all->waiting);
		all->waiters.len = 0;
	}
	at = hash_put(&all->waiting, a->edge_id, edge_of(a->h.tgid, a->domain));
	if (!at)
		return -ENOMEM;
	w.next = (uint32_t)*at;
	if (place) {
		all->free_waiter = buf_at(&all->waiters, struct waiter, place - 1)->next;
		*buf_at(&all->waiters, struct waiter, place - 1) = w;
	} else {
		if (buf_put(&all->waiters, &w, sizeof(w)))
			return -ENOMEM;
		place = (uint32_t)buf_count(&all->waiters, struct waiter);
	}
	*at = place;
	return 0;
}

static int activity_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_activity *a = (const void *)rec;
	struct state *all = mdl_state(m, &feature_activity);
	const uint64_t edge = edge_of(rec->tgid, a->domain);
	struct mxbpf_agg_activity one = {
		.h = {.kind = MXBPF_AGG_ACTIVITY, .size = sizeof(one), .tgid = rec->tgid},
		.name_id = a->name_id,
		.count = 1,
		.total_ns = a->dur_ns,
		.min_ns = a->dur_ns,
		.max_ns = a->dur_ns,
		.bytes = a->bytes,
		.device = a->track.device,
		.cls = a->cls,
	};
	uint64_t row;
	int err;

	if (!all)
		return -ENOMEM;
	one.unlaunched = a->domain != MXBPF_DOMAIN_NONE && !hash_get(&all->launches, a->edge_id, edge) &&
			 !hash_get(&all->older, a->edge_id, edge);
	err = add(m, &one, &row);
	return err || !one.unlaunched ? err : wait_for(all, a, (uint32_t)row);
}

static int remember(struct state *all, const struct mxbpf_launch *l)
{
	struct hash full = all->launches;

	if (full.len >= LAUNCHES_HALF) {
		all->launches = all->older;
		all->older = full;
		hash_clear(&all->launches);
	}
	return hash_put(&all->launches, l->edge_id, edge_of(l->h.tgid, l->domain)) ? 0 : -ENOMEM;
}

static int launch_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	const struct mxbpf_launch *l = (const void *)rec;
	struct state *all = mdl_state(m, &feature_activity);
	uint64_t place = 0;
	struct waiter *w;
	uint32_t next;

	if (!all)
		return -ENOMEM;
	hash_del(&all->waiting, l->edge_id, edge_of(rec->tgid, l->domain), &place);
	for (; place; place = next) {
		w = buf_at(&all->waiters, struct waiter, place - 1);
		next = w->next;
		row_at(all, w->row)->unlaunched--;
		w->next = all->free_waiter;
		all->free_waiter = (uint32_t)place;
	}
	return remember(all, l);
}

static int activity_fold_agg(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct mxbpf_agg_activity a = *(const struct mxbpf_agg_activity *)rec;
	uint64_t row;

	a.h.size = sizeof(a); /* a newer version has a longer record */
	return a.count ? add(m, &a, &row) : 0;
}

const struct mxbpf_agg_activity *activity_rows(const struct mdl *m, size_t *n)
{
	const struct state *all = mdl_state_of(m, &feature_activity);

	*n = all ? buf_count(&all->rows, struct mxbpf_agg_activity) : 0;
	return all ? (const void *)all->rows.data : NULL;
}

static int activity_emit(const struct mdl *m, struct buf *out)
{
	size_t n;
	const struct mxbpf_agg_activity *rows = activity_rows(m, &n);

	return buf_put(out, rows, n * sizeof(*rows));
}

static int activity_processes(const struct mdl *m, mdl_process_fn fn, void *ctx)
{
	size_t i, n;
	const struct mxbpf_agg_activity *rows = activity_rows(m, &n);
	int err = 0;

	for (i = 0; i < n && !err; i++)
		err = fn(ctx, rows[i].h.tgid);
	return err;
}

/* The copy lacks launches and waiting activities. */
static int activity_copy(struct mdl *to, const struct mdl *from)
{
	const struct state *f = mdl_state_of(from, &feature_activity);
	struct state *t = mdl_state(to, &feature_activity);
	unsigned cls;
	int err = t ? buf_put(&t->rows, f->rows.data, f->rows.len) : -ENOMEM;

	for (cls = 0; cls < MXBPF_ACTIVITY_MAX && !err; cls++)
		err = hash_copy(&t->index[cls], &f->index[cls]);
	return err;
}

/* Activities that wait stay unlaunched, because their rows stay in `from`. */
static int activity_move(struct mdl *to, struct mdl *from, uint64_t now_ns)
{
	struct state *t = mdl_state(to, &feature_activity), *f = mdl_state(from, &feature_activity);

	if (!t)
		return -ENOMEM;
	hash_fini(&t->launches);
	hash_fini(&t->older);
	t->launches = f->launches;
	t->older = f->older;
	f->launches = f->older = (struct hash){0};
	return 0;
}

static void activity_fini(struct mdl *m)
{
	struct state *all = mdl_state(m, &feature_activity);
	unsigned cls;

	for (cls = 0; cls < MXBPF_ACTIVITY_MAX; cls++)
		hash_fini(&all->index[cls]);
	hash_fini(&all->launches);
	hash_fini(&all->older);
	mdl_items_fini(&all->waiting, &all->waiters);
	buf_fini(&all->rows);
}

const struct mdl_feature feature_activity = {
	.trace = &activity_trace,
	.state_bytes = sizeof(struct state),
	.by_process = true, /* each process numbers its devices itself */
	.kinds = {{MXBPF_ACTIVITY, activity_fold},
		  {MXBPF_LAUNCH, launch_fold},
		  {MXBPF_AGG_ACTIVITY, activity_fold_agg}},
	.emit = activity_emit,
	.copy = activity_copy,
	.move = activity_move,
	.processes = activity_processes,
	.fini = activity_fini,
};
