// SPDX-License-Identifier: Apache-2.0
/* What GPUs did, for the rules. */
#include <errno.h>
#include <string.h>

#include "feature/activity/activity.h"
#include "feature/findings/findings.h"
#include "feature/idle/idle.h"

static int add_devices(const struct mdl *m, const struct mdl_session *s, struct facts *f)
{
	const struct mxbpf_agg_gpu_stream *d;
	struct buf all = {0};
	size_t i;
	const int err = activity_streams(m, &all);

	for (i = 0; !err && i < buf_count(&all, *d); i++) {
		d = buf_at(&all, struct mxbpf_agg_gpu_stream, i);
		if (!d->whole)
			continue;
		f->gpu.n++;
		add_sat(&f->gpu.seen_ns, activity_seen_ns(m, d->h.tgid, s->duration_ns));
		add_sat(&f->gpu.busy_ns, d->busy_ns);
		add_sat(&f->gpu.compute_ns, d->compute_ns);
	}
	buf_fini(&all);
	return err;
}

static void add_activities(struct mdl *m, struct facts *f)
{
	size_t n, i;
	const struct activity_row *const *rows = activity_rows(m, &n);
	const struct mxbpf_agg_activity *a;

	for (i = 0; i < n; i++) {
		a = &rows[i]->a;
		if (a->cls == MXBPF_ACTIVITY_KERNEL) {
			add_sat(&f->gpu.kernels, a->count);
			add_sat(&f->gpu.kernel_ns, a->total_ns);
			facts_keep_operator(f->gpu.longest, m, a->name_id, a->total_ns);
		}
		if (a->cls == MXBPF_ACTIVITY_COPY &&
		    (a->from == MXBPF_MEMORY_PAGEABLE || a->to == MXBPF_MEMORY_PAGEABLE)) {
			add_sat(&f->gpu.pageable, a->count);
			add_sat(&f->gpu.pageable_ns, a->total_ns);
			add_sat(&f->gpu.pageable_bytes, a->bytes);
		}
	}
}

/* How long launches wait for the GPU, and which operators launch. */
static void add_launches(struct mdl *m, struct facts *f)
{
	size_t n, i, k;
	const struct activity_work *const *rows = activity_work_rows(m, &n);
	uint64_t hist[MXBPF_HIST_BUCKETS] = {0};
	struct mdl_extent extent = {.count = 0};

	for (i = 0; i < n; i++) {
		add_sat(&extent.count, rows[i]->a.latencies);
		extent.max_ns = rows[i]->a.latency_max_ns > extent.max_ns ? rows[i]->a.latency_max_ns : extent.max_ns;
		for (k = 0; k < MXBPF_HIST_BUCKETS; k++)
			add_sat(&hist[k], rows[i]->hist[k]);
		if (rows[i]->a.of == MXBPF_WORK_OF_CALLS && rows[i]->a.self.kernels)
			facts_keep_operator(f->gpu.launching, m, rows[i]->a.name_id, rows[i]->a.self.kernels);
	}
	f->gpu.launches = extent.count;
	if (extent.count)
		f->gpu.latency_p50_ns = mdl_hist_percentile(hist, &extent, 0.50);
}

/* Waits of the loop's own thread. Threads of an engine wait after each operator, which is no fault of the program. */
static void add_waits(const struct mdl *m, struct facts *f)
{
	size_t n, i;
	const struct activity_wait *w = activity_waits(m, &n);

	for (i = 0; i < n; i++) {
		if (w[i].tgid != f->loop.tgid || w[i].tid != f->loop.tid)
			continue;
		add_sat(&f->gpu.waits, w[i].count);
		add_sat(&f->gpu.wait_ns, w[i].total_ns);
	}
}

static int add_causes(const struct mdl *m, struct facts *f)
{
	const struct mxbpf_agg_gpu_idle *r;
	struct buf all = {0};
	const int err = idle_rows(m, &all);
	size_t i;

	for (i = 0; !err && i < buf_count(&all, *r); i++) {
		r = buf_at(&all, struct mxbpf_agg_gpu_idle, i);
		add_sat(&f->gpu.cause_ns[r->cause], r->ns);
	}
	buf_fini(&all);
	return err;
}

int facts_gpu(struct mdl *m, const struct mdl_session *s, struct facts *f)
{
	const int err = add_devices(m, s, f);

	if (err || !f->gpu.n || !f->gpu.seen_ns)
		return err;
	f->gpu.known = true;
	f->gpu.busy = facts_share((double)f->gpu.busy_ns, (double)f->gpu.seen_ns);
	f->gpu.busy = f->gpu.busy < 1 ? f->gpu.busy : 1;
	add_activities(m, f);
	add_launches(m, f);
	add_waits(m, f);
	facts_grids(m, f);
	return add_causes(m, f);
}
