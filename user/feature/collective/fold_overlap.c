// SPDX-License-Identifier: Apache-2.0
/*
 * How long each device ran kernels of communication, and how much of that time it computed, too. Kernels come in the
 * order of their starts, so a sort runs at a moment if the latest end of its kernels is later.
 */
#include "feature/collective/state.h"

#include <errno.h>

struct device {
	struct mxbpf_agg_overlap a;
	uint64_t now_ns;     /* all time before counts already */
	uint64_t ends_ns[2]; /* of the kernels that ended last: those that compute, those of communication */
};

static struct device *row(struct overlaps *o, uint32_t tgid, uint32_t device)
{
	struct device *d;
	bool added;

	d = mdl_item_put(&o->index, &o->devices, tgid, device, sizeof(*d), &added);
	if (d && added)
		d->a = (struct mxbpf_agg_overlap){.h = {.kind = MXBPF_AGG_OVERLAP, .size = sizeof(d->a), .tgid = tgid},
						  .device = device};
	return d;
}

/* Counts the time of a device until to_ns. */
static void count_until(struct device *d, uint64_t to_ns)
{
	const uint64_t *ends_ns = d->ends_ns;
	uint64_t now_ns = d->now_ns, step_ns;

	for (; now_ns < to_ns && (ends_ns[0] > now_ns || ends_ns[1] > now_ns); now_ns = step_ns) {
		step_ns = ends_ns[0] > now_ns && ends_ns[0] < to_ns ? ends_ns[0] : to_ns;
		step_ns = ends_ns[1] > now_ns && ends_ns[1] < step_ns ? ends_ns[1] : step_ns;
		add_sat(&d->a.compute_ns, ends_ns[0] > now_ns ? step_ns - now_ns : 0);
		add_sat(&d->a.ns, ends_ns[1] > now_ns ? step_ns - now_ns : 0);
		add_sat(&d->a.overlapped_ns, ends_ns[0] > now_ns && ends_ns[1] > now_ns ? step_ns - now_ns : 0);
	}
	d->now_ns = to_ns > d->now_ns ? to_ns : d->now_ns;
}

int overlaps_take(struct overlaps *o, const struct win_work *w, bool moves)
{
	struct device *d = row(o, w->tgid, w->track.device);

	if (!d)
		return -ENOMEM;
	count_until(d, w->start_ns);
	d->ends_ns[moves] = w->end_ns > d->ends_ns[moves] ? w->end_ns : d->ends_ns[moves];
	return 0;
}

int overlaps_fold(struct overlaps *o, const struct mxbpf_agg_overlap *from)
{
	struct device *d = row(o, from->h.tgid, from->device);

	if (!d)
		return -ENOMEM;
	add_sat(&d->a.ns, from->ns);
	add_sat(&d->a.overlapped_ns, from->overlapped_ns);
	add_sat(&d->a.compute_ns, from->compute_ns);
	return 0;
}

int overlaps_finish(struct overlaps *o, struct buf *out)
{
	struct device *d;
	size_t i;
	int err = 0;

	for (i = 0; !err && i < buf_count(&o->devices, *d); i++) {
		d = buf_at(&o->devices, struct device, i);
		count_until(d, UINT64_MAX);
		err = d->a.ns ? buf_put(out, &d->a, sizeof(d->a)) : 0;
	}
	return err;
}

int overlaps_copy(struct overlaps *to, const struct overlaps *from)
{
	return mdl_items_copy(&to->index, &to->devices, &from->index, &from->devices);
}

void overlaps_fini(struct overlaps *o)
{
	mdl_items_fini(&o->index, &o->devices);
}
