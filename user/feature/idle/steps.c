// SPDX-License-Identifier: Apache-2.0
/*
 * Divides the time of devices by iterations. An iteration is a time of the host, so the work of a device in it may have
 * been launched in an iteration before.
 */
#include "feature/steps/steps.h"

#include <errno.h>
#include <string.h>

#include "feature/idle/state.h"

#define PIECES_MAX (1u << 18) /* 12 MiB */
#define STEPS_MAX  (1u << 16) /* 8 MiB */

int idle_piece_put(struct idle_state *t, const struct mxbpf_gpu_idle *piece)
{
	size_t n = buf_count(&t->pieces, *piece), i;
	struct mxbpf_gpu_idle *p = n ? buf_at(&t->pieces, struct mxbpf_gpu_idle, n - 1) : NULL;

	if (p && p->h.tgid == piece->h.tgid && p->device == piece->device && p->cause == piece->cause &&
	    p->name_id == piece->name_id && p->stack_id == piece->stack_id &&
	    p->h.ts_ns + p->dur_ns == piece->h.ts_ns) {
		add_sat(&p->dur_ns, piece->dur_ns);
		return 0;
	}
	if (n >= PIECES_MAX) {
		p = (struct mxbpf_gpu_idle *)t->pieces.data;
		for (i = 0; i < n / 2; i++)
			if (p[i].h.ts_ns + p[i].dur_ns > t->forgotten_ns)
				t->forgotten_ns = p[i].h.ts_ns + p[i].dur_ns;
		memmove(p, p + n / 2, (n - n / 2) * sizeof(*p));
		t->pieces.len = (n - n / 2) * sizeof(*p);
	}
	p = buf_add(&t->pieces, sizeof(*p));
	if (!p)
		return -ENOMEM;
	*p = *piece;
	p->h.kind = MXBPF_GPU_IDLE;
	p->h.size = sizeof(*p);
	return 0;
}

int idle_step_put(struct idle_state *t, const struct mxbpf_gpu_step *step)
{
	struct mxbpf_gpu_step s = *step;

	s.h.size = sizeof(s); /* a newer version has a longer record */
	return buf_put_latest(&t->steps, &s, sizeof(s), STEPS_MAX);
}

/* ---- the iterations of a device */

/* An iteration, or the part of it in which the device is known. */
struct step {
	uint64_t from_ns, to_ns;
	struct mxbpf_gpu_step r;
};

static int idle_steps_by_start(const void *va, const void *vb)
{
	const struct step *a = va, *b = vb;

	return a->r.h.ts_ns < b->r.h.ts_ns ? -1 : a->r.h.ts_ns > b->r.h.ts_ns;
}

/* Appends the iterations of a device that have no times yet, in order. */
static int idle_choose(const struct idle_state *t, struct idle_device *d, const struct buf *iterations, bool all,
		       struct buf *steps)
{
	const uint64_t until_ns = d->steps_until_ns;
	const struct mxbpf_iteration *it;
	struct step s = {.r.device = d->device};
	uint64_t end_ns;
	size_t i;

	s.r.h = (struct mxbpf_rec){.kind = MXBPF_GPU_STEP, .size = sizeof(s.r), .tgid = d->tgid};
	for (i = 0; i < buf_count(iterations, *it); i++) {
		it = buf_at(iterations, struct mxbpf_iteration, i);
		end_ns = steps_end_ns(it);
		if (it->h.tgid != d->tgid || end_ns <= until_ns || (!all && end_ns > d->now_ns))
			continue;
		d->steps_until_ns = end_ns > d->steps_until_ns ? end_ns : d->steps_until_ns;
		s.r.h.ts_ns = it->h.ts_ns;
		s.from_ns = it->h.ts_ns > d->first_ns ? it->h.ts_ns : d->first_ns;
		s.to_ns = end_ns < d->now_ns ? end_ns : d->now_ns;
		if (s.from_ns < s.to_ns && it->h.ts_ns >= t->forgotten_ns && buf_put(steps, &s, sizeof(s)))
			return -ENOMEM;
	}
	buf_sort(steps, sizeof(s), idle_steps_by_start);
	return 0;
}

static int idle_steps_by_end(const void *va, const void *vb)
{
	const struct step *a = va, *b = vb;

	return a->to_ns < b->to_ns ? -1 : a->to_ns > b->to_ns;
}

static void add_piece(const struct buf *steps, const struct mxbpf_gpu_idle *p)
{
	const uint64_t end_ns = p->h.ts_ns + p->dur_ns;
	const struct step behind = {.to_ns = p->h.ts_ns + 1};
	uint64_t from_ns, to_ns;
	struct step *s;
	size_t i;

	for (i = buf_first(steps, sizeof(behind), &behind, idle_steps_by_end); i < buf_count(steps, *s); i++) {
		s = buf_at(steps, struct step, i);
		if (s->from_ns >= end_ns)
			return;
		from_ns = s->from_ns > p->h.ts_ns ? s->from_ns : p->h.ts_ns;
		to_ns = s->to_ns < end_ns ? s->to_ns : end_ns;
		s->r.ns[p->cause] += to_ns > from_ns ? to_ns - from_ns : 0;
	}
}

/* What has no cause was busy. */
static int idle_keep(struct idle_state *t, const struct buf *steps)
{
	uint64_t idle_ns;
	struct step *s;
	size_t i, k;

	for (i = 0; i < buf_count(steps, *s); i++) {
		s = buf_at(steps, struct step, i);
		for (idle_ns = 0, k = 1; k < MXBPF_IDLE_CAUSES; k++)
			idle_ns += s->r.ns[k];
		s->r.ns[MXBPF_IDLE_BUSY] = s->to_ns - s->from_ns > idle_ns ? s->to_ns - s->from_ns - idle_ns : 0;
		if (idle_step_put(t, &s->r))
			return -ENOMEM;
	}
	return 0;
}

static int make_device(struct idle_state *t, struct idle_device *d, const struct buf *iterations, bool all)
{
	const struct mxbpf_gpu_idle *p;
	struct buf steps = {0};
	int err = idle_choose(t, d, iterations, all, &steps);
	size_t i;

	for (i = 0; !err && steps.len && i < buf_count(&t->pieces, *p); i++) {
		p = buf_at(&t->pieces, struct mxbpf_gpu_idle, i);
		if (p->h.tgid == d->tgid && p->device == d->device)
			add_piece(&steps, p);
	}
	err = err ? err : idle_keep(t, &steps);
	buf_fini(&steps);
	return err;
}

int idle_steps_make(const struct mdl *m, struct idle_state *t, bool all)
{
	struct buf iterations = {0};
	int err = t->devices.len ? steps_list(m, all, &iterations) : 0;
	size_t i;

	for (i = 0; !err && iterations.len && i < buf_count(&t->devices, struct idle_device); i++)
		err = make_device(t, buf_at(&t->devices, struct idle_device, i), &iterations, all);
	buf_fini(&iterations);
	return err;
}
