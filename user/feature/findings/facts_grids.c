// SPDX-License-Identifier: Apache-2.0
/* Kernels whose grids leave multiprocessors of the GPU without work: the facts and the rule. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fmt.h"
#include "base/whole.h"
#include "feature/activity/activity.h"
#include "feature/activity/occupancy.h"
#include "feature/findings/rules.h"

static const struct mxbpf_gpu_device *findings_device_of(const struct mdl *m, uint32_t tgid, uint32_t device)
{
	size_t n, i;
	const struct mxbpf_gpu_device *d = activity_devices(m, &n);

	for (i = 0; i < n; i++)
		if (d[i].h.tgid == tgid && d[i].device == device)
			return &d[i];
	return NULL;
}

/* Kernels of NCCL use few multiprocessors on purpose, so that others can run beside them. */
static bool is_exchange(const struct mdl *m, uint64_t name_id)
{
	size_t len;
	const char *name = mdl_name(m, name_id, &len);

	return memmem(name, len, "nccl", strlen("nccl"));
}

/* Rows whose calls differ in their grids are not judged, because only that of the last call is known. */
void facts_grids(struct mdl *m, struct facts *f)
{
	size_t n, i;
	const struct activity_row *const *rows = activity_rows(m, &n);
	const struct mxbpf_agg_activity *a;
	struct occupancy o;
	uint64_t unused_ns;

	for (i = 0; i < n; i++) {
		a = &rows[i]->a;
		if (a->cls != MXBPF_ACTIVITY_KERNEL || !a->count || a->varies & MXBPF_SHAPE_GRID)
			continue;
		o = activity_occupancy(findings_device_of(m, a->h.tgid, a->device), a);
		if (o.grid != OCCUPANCY_GRID_SMALL || is_exchange(m, a->name_id))
			continue;
		unused_ns = whole((double)a->total_ns * (1 - o.multiprocessors));
		add_sat(&f->gpu.unused_ns, unused_ns);
		facts_keep_operator(f->gpu.small, m, a->name_id, unused_ns);
	}
}

/* Kernels that run at the same time may use what others leave, so the time in which kernels overlap is no loss. */
double facts_small_grids_share(const struct facts *f)
{
	const uint64_t overlap_ns = f->gpu.kernel_ns > f->gpu.compute_ns ? f->gpu.kernel_ns - f->gpu.compute_ns : 0;
	const uint64_t ns = f->gpu.unused_ns > overlap_ns ? f->gpu.unused_ns - overlap_ns : 0;

	return f->gpu.known ? facts_share((double)ns, (double)f->gpu.seen_ns) : 0;
}

void facts_small_grids_say(const struct facts *f, struct buf *b)
{
	buf_printf(
		b,
		"Kernels with fewer blocks than the GPU has multiprocessors waste %.0f%% of the GPU's time: the others "
		"have no work meanwhile",
		100 * facts_small_grids_share(f));
}

void facts_small_grids_evidence(const struct facts *f, struct buf *b)
{
	const struct fact_operator *o;
	unsigned i;

	for (i = 0; i < FACTS_OPERATORS_MAX && f->gpu.small[i].much; i++) {
		o = &f->gpu.small[i];
		buf_printf(b, "%s%.*s %.0f%%", i ? ", " : "", (int)(o->len < 100 ? o->len : 100), o->name,
			   100 * facts_share((double)o->much, (double)f->gpu.unused_ns));
	}
	buf_printf(b, " of it");
}
