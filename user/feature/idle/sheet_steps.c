// SPDX-License-Identifier: Apache-2.0
/* What GPUs did in each iteration: means of the GPUs of a process, medians, and the cause that made one iteration long.
 */
#include "feature/idle/sheet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "view/sheet.h"

static int idle_sheet_steps_by_start(const void *va, const void *vb)
{
	const struct mxbpf_gpu_step *a = va, *b = vb;

	if (a->h.tgid != b->h.tgid)
		return a->h.tgid < b->h.tgid ? -1 : 1;
	if (a->h.ts_ns != b->h.ts_ns)
		return a->h.ts_ns < b->h.ts_ns ? -1 : 1;
	return a->device < b->device ? -1 : a->device > b->device;
}

static int by_ns(const void *va, const void *vb)
{
	const uint64_t *a = va, *b = vb;

	return *a < *b ? -1 : *a > *b;
}

/* Sorts ns. Median by nearest rank. */
static uint64_t median(uint64_t *ns, size_t n)
{
	if (n)
		qsort(ns, n, sizeof(*ns), by_ns);
	return n ? ns[(n + 1) / 2 - 1] : 0;
}

static bool idle_is_same(const struct mxbpf_gpu_step *a, const struct mxbpf_gpu_step *b)
{
	return a->h.tgid == b->h.tgid && a->h.ts_ns == b->h.ts_ns;
}

/* Replaces the GPUs of an iteration by their mean. */
static void join_devices(struct buf *steps)
{
	struct mxbpf_gpu_step *s = (struct mxbpf_gpu_step *)steps->data, all;
	const size_t n = buf_count(steps, *s);
	size_t i, k, cause, left = 0;

	for (i = 0; i < n; i = k) {
		all = s[i];
		for (k = i + 1; k < n && idle_is_same(&s[k], &all); k++)
			for (cause = 0; cause < MXBPF_IDLE_CAUSES; cause++)
				add_sat(&all.ns[cause], s[k].ns[cause]);
		for (cause = 0; cause < MXBPF_IDLE_CAUSES; cause++)
			all.ns[cause] /= k - i;
		s[left++] = all;
	}
	steps->len = left * sizeof(*s);
}

/* Appends the medians of the n iterations of a process. */
static int add_medians(struct idle_steps *t, const struct mxbpf_gpu_step *s, size_t n)
{
	struct mxbpf_gpu_step all = {.h = s->h};
	uint64_t *ns = calloc(n + 1, sizeof(*ns));
	size_t i, k;

	if (!ns)
		return -ENOMEM;
	for (k = 0; k < MXBPF_IDLE_CAUSES; k++) {
		for (i = 0; i < n; i++)
			ns[i] = s[i].ns[k];
		all.ns[k] = median(ns, n);
	}
	free(ns);
	return buf_put(&t->medians, &all, sizeof(all));
}

int idle_steps_open(const struct mdl *m, struct idle_steps *t)
{
	const struct mxbpf_gpu_step *s;
	struct idle_results all = {0};
	size_t n, i, k;
	int err = idle_results(m, &all);

	t->means = all.steps;
	all.steps = (struct buf){0};
	idle_results_fini(&all);
	if (t->means.len)
		qsort(t->means.data, buf_count(&t->means, *s), sizeof(*s), idle_sheet_steps_by_start);
	join_devices(&t->means);
	s = (const struct mxbpf_gpu_step *)t->means.data;
	n = buf_count(&t->means, *s);
	for (i = 0; !err && i < n; i = k) {
		for (k = i; k < n && s[k].h.tgid == s[i].h.tgid; k++)
			;
		err = add_medians(t, &s[i], k - i);
	}
	return err;
}

void idle_steps_close(struct idle_steps *t)
{
	buf_fini(&t->means);
	buf_fini(&t->medians);
}

/* Returns the times of an iteration. In a sum of processes it has none of its own, so its start tells it. */
static const struct mxbpf_gpu_step *idle_find(const struct buf *means, const struct mxbpf_iteration *it)
{
	const struct mxbpf_gpu_step like = {.h = it->h}, *s = (const struct mxbpf_gpu_step *)means->data;
	size_t i;

	if (!means->len || it->h.tgid)
		return means->len ? bsearch(&like, s, buf_count(means, *s), sizeof(*s), idle_sheet_steps_by_start)
				  : NULL;
	for (i = 0; i < buf_count(means, *s); i++)
		if (s[i].h.ts_ns == it->h.ts_ns)
			return &s[i];
	return NULL;
}

static const struct mxbpf_gpu_step *median_of(const struct idle_steps *t, uint32_t tgid)
{
	const struct mxbpf_gpu_step *s;
	size_t i;

	for (i = 0; i < buf_count(&t->medians, *s); i++) {
		s = buf_at(&t->medians, struct mxbpf_gpu_step, i);
		if (s->h.tgid == tgid)
			return s;
	}
	return NULL;
}

void idle_step_of(const struct idle_steps *t, const struct mxbpf_iteration *it, struct idle_step *step)
{
	const struct mxbpf_gpu_step *s = idle_find(&t->means, it), *mid = s ? median_of(t, s->h.tgid) : NULL;
	unsigned i;

	*step = (struct idle_step){.longer = MXBPF_IDLE_CAUSES};
	for (i = 0; i < MXBPF_IDLE_CAUSES; i++)
		step->ns[i] = mid ? s->ns[i] : 0;
	for (i = 1; mid && i < MXBPF_IDLE_CAUSES; i++)
		if (s->ns[i] > mid->ns[i] && s->ns[i] - mid->ns[i] > step->longer_ns) {
			step->longer = (uint8_t)i;
			step->longer_ns = s->ns[i] - mid->ns[i];
		}
}

int idle_spread_of(const struct buf *steps, uint32_t tgid, uint32_t device, struct idle_spread *spread)
{
	const struct mxbpf_gpu_step *s = (const struct mxbpf_gpu_step *)steps->data;
	const size_t all = buf_count(steps, *s);
	uint64_t *ns = calloc(all + 1, sizeof(*ns));
	size_t i, k, n;

	*spread = (struct idle_spread){0};
	for (k = 0; ns && k < MXBPF_IDLE_CAUSES; k++) {
		for (n = 0, i = 0; i < all; i++)
			if (s[i].h.tgid == tgid && s[i].device == device)
				ns[n++] = s[i].ns[k];
		spread->p50_ns[k] = median(ns, n);
		spread->max_ns[k] = n ? ns[n - 1] : 0;
	}
	free(ns);
	return ns ? 0 : -ENOMEM;
}
