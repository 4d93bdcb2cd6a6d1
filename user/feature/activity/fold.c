// SPDX-License-Identifier: Apache-2.0
/*
 * Activities of devices, added up by process, device, class and name. An activity counts as unlaunched until the launch
 * of its edge has come. Either of the two comes first: the agent gets them in different buffers.
 */
#include "feature/activity/activity.h"
#include "model/priv.h"

#include <errno.h>
#include <string.h>

/*
 * Launches that are remembered, in two halves: a full half replaces the older one. A half lasts for more than a second
 * at 200,000 launches per second. It takes 16 MiB.
 */
#define LAUNCHES_HALF (1u << 18)
/* Activities that wait for their launch. If there are more, all of them stay unlaunched. */
#define WAITERS_MAX (1u << 18)

struct waiter {
	uint32_t row;  /* 1 + place in rows */
	uint32_t next; /* 1 + place in waiters, of the same edge or of the free ones; 0: none */
};

/* Second word of an edge's key; the first is its id. */
static uint64_t edge_of(uint32_t tgid, uint16_t domain)
{
	return (uint64_t)tgid << 16 | domain;
}

static struct mxbpf_agg_activity *row_at(struct mdl *m, uint64_t place)
{
	return buf_at(&m->activities.rows, struct mxbpf_agg_activity, place - 1);
}

/* Adds a row's worth of activities. *place: 1 + place of the row they are in. */
static int add(struct mdl *m, const struct mxbpf_agg_activity *from, uint64_t *place)
{
	struct activities *all = &m->activities;
	const uint64_t process = (uint64_t)from->h.tgid << 32 | from->device;
	bool added;
	struct mxbpf_agg_activity *row =
		mdl_item_put(&all->index[from->cls], &all->rows, from->name_id, process, sizeof(*row), &added);

	if (!row || mdl_expect_name(m, from->name_id))
		return -ENOMEM;
	*place = (uint64_t)(row - row_at(m, 1)) + 1;
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

static int wait_for(struct mdl *m, const struct mxbpf_activity *a, uint32_t row)
{
	struct activities *all = &m->activities;
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
	const struct activities *all = &m->activities;
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

	one.unlaunched = a->domain != MXBPF_DOMAIN_NONE && !hash_get(&all->launches, a->edge_id, edge) &&
			 !hash_get(&all->older, a->edge_id, edge);
	err = add(m, &one, &row);
	return err || !one.unlaunched ? err : wait_for(m, a, (uint32_t)row);
}

static int remember(struct mdl *m, const struct mxbpf_launch *l)
{
	struct activities *all = &m->activities;
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
	struct activities *all = &m->activities;
	uint64_t place = 0;
	struct waiter *w;
	uint32_t next;

	hash_del(&all->waiting, l->edge_id, edge_of(rec->tgid, l->domain), &place);
	for (; place; place = next) {
		w = buf_at(&all->waiters, struct waiter, place - 1);
		next = w->next;
		row_at(m, w->row)->unlaunched--;
		w->next = all->free_waiter;
		all->free_waiter = (uint32_t)place;
	}
	return remember(m, l);
}

static int activity_fold_agg(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct mxbpf_agg_activity a = *(const struct mxbpf_agg_activity *)rec;
	uint64_t row;

	a.h.size = sizeof(a); /* a newer one is longer */
	return a.count ? add(m, &a, &row) : 0;
}

static int activities_emit(const struct mdl *m, struct buf *out)
{
	return buf_put(out, m->activities.rows.data, m->activities.rows.len);
}

const struct mxbpf_agg_activity *activity_rows(const struct mdl *m, size_t *n)
{
	*n = buf_count(&m->activities.rows, struct mxbpf_agg_activity);
	return (const struct mxbpf_agg_activity *)m->activities.rows.data;
}

/* What waits in `from` has its row there, and stays unlaunched. */
static void activities_move(struct mdl *to, struct mdl *from)
{
	struct activities *t = &to->activities, *f = &from->activities;

	hash_fini(&t->launches);
	hash_fini(&t->older);
	t->launches = f->launches;
	t->older = f->older;
	f->launches = f->older = (struct hash){0};
}

static void activities_fini(struct mdl *m)
{
	struct activities *all = &m->activities;
	unsigned cls;

	for (cls = 0; cls < MXBPF_ACTIVITY_MAX; cls++)
		hash_fini(&all->index[cls]);
	hash_fini(&all->launches);
	hash_fini(&all->older);
	hash_fini(&all->waiting);
	buf_fini(&all->rows);
	buf_fini(&all->waiters);
}

const struct mdl_feature feature_activity = {
	.kinds = {{MXBPF_ACTIVITY, activity_fold},
		  {MXBPF_LAUNCH, launch_fold},
		  {MXBPF_AGG_ACTIVITY, activity_fold_agg}},
	.emit = activities_emit,
	.move = activities_move,
	.fini = activities_fini,
};
