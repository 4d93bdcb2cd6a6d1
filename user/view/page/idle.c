// SPDX-License-Identifier: Apache-2.0
/* What each GPU did: busy time and the causes of idle time, in all and in each iteration. */
#include "view/page/page.h"

#include <errno.h>
#include <stdlib.h>

#include "base/json.h"
#include "feature/idle/idle.h"

#define POINTS_MAX 3000 /* points of a GPU; with more iterations, each point is the most idle of several */

static int idle_by_device(const void *va, const void *vb)
{
	const struct mxbpf_agg_gpu_idle *a = va, *b = vb;

	if (a->h.tgid != b->h.tgid)
		return a->h.tgid < b->h.tgid ? -1 : 1;
	return a->device < b->device ? -1 : a->device > b->device;
}

static int page_idle_by_start(const void *va, const void *vb)
{
	const struct mxbpf_gpu_step *a = va, *b = vb;

	return a->h.ts_ns < b->h.ts_ns ? -1 : a->h.ts_ns > b->h.ts_ns;
}

static uint64_t idle_of(const struct mxbpf_gpu_step *s)
{
	uint64_t ns = 0;
	unsigned i;

	for (i = 1; i < MXBPF_IDLE_CAUSES; i++)
		ns += s->ns[i];
	return ns;
}

static void put_ns(struct json *j, const __u64 ns[MXBPF_IDLE_CAUSES])
{
	unsigned i;

	for (i = 0; i < MXBPF_IDLE_CAUSES; i++)
		json_u64(j, NULL, ns[i]);
}

static void put_step(struct json *j, const struct view *s, const struct mxbpf_gpu_step *step)
{
	json_line(j, 0);
	json_array(j, NULL);
	json_printf(j, NULL, "%.6f", (double)(int64_t)(step->h.ts_ns - s->in->session->start_mono_ns) / 1e9);
	put_ns(j, step->ns);
	json_end(j);
}

/* Writes the iterations of a GPU. Moves them to the front of `all`. */
static void put_steps(struct json *j, const struct view *s, struct buf *all, const struct mxbpf_agg_gpu_idle *of)
{
	struct mxbpf_gpu_step *step = (struct mxbpf_gpu_step *)all->data, *most, other;
	size_t i, k, n = 0, each;

	for (i = 0; i < buf_count(all, *step); i++) {
		if (step[i].h.tgid != of->h.tgid || step[i].device != of->device)
			continue;
		other = step[n];
		step[n++] = step[i];
		step[i] = other;
	}
	if (n)
		qsort(step, n, sizeof(*step), page_idle_by_start);
	each = (n + POINTS_MAX - 1) / POINTS_MAX;
	json_u64(j, "each_of", each);
	json_array(j, "iterations");
	for (i = 0; i < n; i = k) {
		most = &step[i];
		for (k = i + 1; k < n && k < i + each; k++)
			most = idle_of(&step[k]) > idle_of(most) ? &step[k] : most;
		put_step(j, s, most);
	}
	json_end(j);
}

static void idle_put_device(struct json *j, const struct view *s, struct idle_results *all,
			    const struct mxbpf_agg_gpu_idle *rows, size_t n)
{
	__u64 ns[MXBPF_IDLE_CAUSES] = {0};
	size_t i;

	for (i = 0; i < n; i++)
		add_sat(&ns[rows[i].cause], rows[i].ns);
	json_line(j, 0);
	json_object(j, NULL);
	json_u64(j, "pid", rows->h.tgid & MDL_PID_MASK);
	json_u64(j, "gpu", rows->device);
	json_array(j, "ns");
	put_ns(j, ns);
	json_end(j);
	put_steps(j, s, &all->steps, rows);
	json_end(j);
}

static void put_data(struct view *s, struct idle_results *all)
{
	const struct mxbpf_agg_gpu_idle *rows = (const void *)all->rows.data;
	const size_t n = buf_count(&all->rows, *rows);
	struct json j = {.out = s->out, .tight = true};
	size_t i, k;

	json_object(&j, NULL);
	json_array(&j, "causes");
	for (i = 0; i < MXBPF_IDLE_CAUSES; i++)
		json_string(&j, NULL, idle_cause_words[i]);
	json_end(&j);
	json_array(&j, "gpus");
	for (i = 0; i < n; i = k) {
		for (k = i; k < n && !idle_by_device(&rows[k], &rows[i]); k++)
			;
		idle_put_device(&j, s, all, &rows[i], k - i);
	}
	json_end(&j);
	json_end(&j);
}

int page_idle(struct view *s)
{
	struct idle_results all = {0};
	int err = idle_results(s->in->model, &all);

	if (!err && all.rows.len) {
		qsort(all.rows.data, buf_count(&all.rows, struct mxbpf_agg_gpu_idle), sizeof(struct mxbpf_agg_gpu_idle),
		      idle_by_device);
		page_data_begin(s->out, "gpus");
		put_data(s, &all);
		page_data_end(s->out);
		page_raw(s, "<section class=\"idle\" hidden><h2>What GPUs do</h2></section>\n");
	}
	idle_results_fini(&all);
	return err;
}
