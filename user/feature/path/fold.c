// SPDX-License-Identifier: Apache-2.0
/* Keeps the latest activities, and chooses the iteration to look at. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "feature/path/state.h"
#include "feature/steps/steps.h"

#define WORK_MAX  (1u << 16) /* 4 MiB */
#define WAITS_MAX (1u << 14)
#define LATEST	  64u	     /* the path is that of the median of so many last iterations */
#define PROCESSES 64u	     /* with a path; others have none */
#define ROWS_MAX  (1u << 14) /* of recordings */

static struct path_state *path_state_of(struct mdl *m)
{
	return mdl_state(m, &feature_path);
}

/* ---- what is kept */

static int activity(struct mdl *m, const struct mxbpf_activity *a)
{
	const struct win_work work = win_work_of(a);
	struct path_state *t = path_state_of(m);

	if (!t)
		return -ENOMEM;
	if (a->cls == MXBPF_ACTIVITY_SYNC)
		return a->sync_type == MXBPF_SYNC_STREAM_WAITS
			       ? buf_put_latest(&t->waits, &work, sizeof(work), WAITS_MAX)
			       : 0;
	return win_put_latest(&t->work, &work, sizeof(work), WORK_MAX, &t->lost_ns);
}

uint64_t path_lost_ns(const struct mdl *m, const struct path_state *t)
{
	const struct idle_state *idle = mdl_state_of(m, &feature_idle);

	return idle && idle->lost_ns > t->lost_ns ? idle->lost_ns : t->lost_ns;
}

/* ---- the iteration that is looked at */

static int by_length(const void *va, const void *vb)
{
	const struct mxbpf_iteration *const *a = va, *const *b = vb;

	BUF_ORDER((*a)->dur_ns, (*b)->dur_ns);
	BUF_ORDER((*a)->h.ts_ns, (*b)->h.ts_ns);
	return 0;
}

static bool launched_in(const struct mdl *m, const struct mxbpf_iteration *it)
{
	size_t n, i;
	const struct activity_call *l = activity_calls(m, &n);

	for (i = 0; i < n; i++)
		if (l[i].tgid == it->h.tgid && l[i].start_ns >= it->h.ts_ns && l[i].start_ns < steps_end_ns(it))
			return true;
	return false;
}

/* Returns the median of the latest iterations of a process of which all is kept, or NULL. There are n until `it`. */
static const struct mxbpf_iteration *path_choose(const struct mdl *m, const struct path_state *t,
						 const struct mxbpf_iteration *it, size_t n)
{
	const uint64_t launches_ns = activity_calls_lost_ns(m), others_ns = path_lost_ns(m, t);
	const uint64_t lost_ns = others_ns > launches_ns ? others_ns : launches_ns;
	const struct mxbpf_iteration *latest[LATEST];
	size_t i, k = 0;

	for (i = 0; i < n && k < LATEST && it[n - 1 - i].h.ts_ns >= lost_ns; i++)
		if (launched_in(m, &it[n - 1 - i]))
			latest[k++] = &it[n - 1 - i];
	if (!k)
		return NULL;
	qsort(latest, k, sizeof(latest[0]), by_length);
	return latest[k / 2];
}

static int by_process(const void *va, const void *vb)
{
	const struct mxbpf_iteration *a = va, *b = vb;

	BUF_ORDER(a->h.tgid, b->h.tgid);
	BUF_ORDER(a->h.ts_ns, b->h.ts_ns);
	return 0;
}

static int find_parts(const struct mdl *m, const struct path_state *t, struct buf *out)
{
	const struct mxbpf_iteration *all, *one;
	struct buf list = {0};
	size_t n, i, k, paths = 0;
	int err = steps_list(m, true, &list);

	all = (const struct mxbpf_iteration *)list.data;
	n = buf_count(&list, *all);
	buf_sort(&list, sizeof(*all), by_process);
	for (i = 0; !err && i < n && paths < PROCESSES; i = k) {
		for (k = i; k < n && all[k].h.tgid == all[i].h.tgid; k++)
			;
		one = path_choose(m, t, &all[i], k - i);
		err = one ? path_walk(m, t, one, out) : 0;
		paths += one != NULL;
	}
	buf_fini(&list);
	return err;
}

int path_parts(const struct mdl *m, struct buf *out)
{
	const struct path_state *t = mdl_state_of(m, &feature_path);
	int err = t ? buf_put(out, t->parts.data, t->parts.len) : 0;

	return !err && t && t->work.len ? find_parts(m, t, out) : err;
}

int path_sequences(const struct mdl *m, struct buf *out)
{
	const struct path_state *t = mdl_state_of(m, &feature_path);
	int err = t && t->work.len ? path_find_sequences(m, t, out) : 0;

	return !err && t ? buf_put(out, t->sequences.data, t->sequences.len) : err;
}

/* ---- recordings */

static int fold_part(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct mxbpf_gpu_path one = *(const struct mxbpf_gpu_path *)rec;
	struct path_state *t = path_state_of(m);

	one.h.size = sizeof(one); /* a newer version has a longer record */
	if (!t || (one.name_id && mdl_expect_name(m, one.name_id)))
		return -ENOMEM;
	return buf_count(&t->parts, one) < ROWS_MAX ? buf_put(&t->parts, &one, sizeof(one)) : 0;
}

static int fold_sequence(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct path_sequence one = {.a = *(const struct mxbpf_gpu_sequence *)rec};
	struct path_state *t = path_state_of(m);
	size_t i;

	memcpy(one.names, (const char *)rec + sizeof(one.a), one.a.n * sizeof(one.names[0]));
	if (!t || mdl_expect_name(m, one.a.name_id))
		return -ENOMEM;
	for (i = 0; i < one.a.n; i++)
		if (mdl_expect_name(m, one.names[i]))
			return -ENOMEM;
	return buf_count(&t->sequences, one) < ROWS_MAX ? buf_put(&t->sequences, &one, sizeof(one)) : 0;
}

static int path_emit(const struct mdl *m, struct buf *out)
{
	struct path_sequence *one;
	struct buf all = {0};
	int err = path_parts(m, out);
	size_t i;

	err = err ? err : path_sequences(m, &all);
	for (i = 0; !err && i < buf_count(&all, *one); i++) {
		one = buf_at(&all, struct path_sequence, i);
		one->a.h.kind = MXBPF_GPU_SEQUENCE;
		one->a.h.size = (uint16_t)(sizeof(one->a) + one->a.n * sizeof(one->names[0]));
		err = buf_put(out, one, one->a.h.size);
	}
	buf_fini(&all);
	return err;
}

/* ---- the state */

static int copy_state(struct path_state *to, const struct path_state *from)
{
	to->lost_ns = from->lost_ns > to->lost_ns ? from->lost_ns : to->lost_ns;
	return buf_put(&to->work, from->work.data, from->work.len) ||
			       buf_put(&to->waits, from->waits.data, from->waits.len)
		       ? -ENOMEM
		       : 0;
}

static int path_copy(struct mdl *to, const struct mdl *from)
{
	const struct path_state *f = mdl_state_of(from, &feature_path);
	struct path_state *t = path_state_of(to);

	if (!t || copy_state(t, f) || buf_put(&t->parts, f->parts.data, f->parts.len))
		return -ENOMEM;
	return buf_put(&t->sequences, f->sequences.data, f->sequences.len);
}

static int path_move(struct mdl *to, struct mdl *from, uint64_t now_ns)
{
	struct path_state *t = path_state_of(to);

	return t ? copy_state(t, mdl_state_of(from, &feature_path)) : -ENOMEM;
}

static void path_fini(struct mdl *m)
{
	struct path_state *t = path_state_of(m);

	buf_fini(&t->work);
	buf_fini(&t->waits);
	buf_fini(&t->parts);
	buf_fini(&t->sequences);
}

const struct mdl_feature feature_path = {
	.state_bytes = sizeof(struct path_state),
	.of_devices = true,
	.by_process = true, /* each process has a path of its own */
	.kinds = {{MXBPF_GPU_PATH, fold_part}, {MXBPF_GPU_SEQUENCE, fold_sequence}},
	.activity = activity,
	.emit = path_emit,
	.copy = path_copy,
	.move = path_move,
	.fini = path_fini,
};
