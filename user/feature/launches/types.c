// SPDX-License-Identifier: Apache-2.0
/*
 * Divides the time of devices by the types of work that run at once. Work comes in the order of its starts, so a type
 * runs at a moment if the latest end of its work is later.
 */
#include <errno.h>
#include <string.h>

#include "feature/launches/state.h"

/* Parts of the names of kernels that exchange data with other devices. */
static const char *const exchanges[] = {"nccl", "nvshmem", "msccl", "cross_device_reduce"};

static enum mxbpf_gpu_type type_of_kernel(const struct mdl *m, struct launches_state *t, uint64_t name_id)
{
	uint64_t *at = hash_put(&t->types, name_id, 0);
	enum mxbpf_gpu_type type = MXBPF_TYPE_COMPUTE;
	const char *name;
	size_t len, i;

	if (at && *at)
		return (enum mxbpf_gpu_type)(*at - 1);
	name = mdl_name(m, name_id, &len);
	for (i = 0; i < sizeof(exchanges) / sizeof(exchanges[0]); i++)
		if (memmem(name, len, exchanges[i], strlen(exchanges[i])))
			type = MXBPF_TYPE_EXCHANGE;
	if (at && mdl_has_name(m, name_id))
		*at = 1 + (uint64_t)type;
	return type;
}

static struct launches_device *launches_device_of(struct launches_state *t, uint32_t tgid, uint32_t device)
{
	struct launches_device *d;
	bool added;

	d = mdl_item_put(&t->device_index, &t->devices, (uint64_t)tgid << 32 | device, 0, sizeof(*d), &added);
	if (d && added)
		d->a = (struct mxbpf_agg_gpu_types){
			.h = {.kind = MXBPF_AGG_GPU_TYPES, .size = sizeof(d->a), .tgid = tgid}, .device = device};
	return d;
}

/* Counts the time of a device until to_ns. */
static void launches_settle(struct launches_device *d, uint64_t to_ns)
{
	unsigned type, mask;
	uint64_t end_ns;

	while (d->now_ns < to_ns) {
		end_ns = to_ns;
		for (mask = 0, type = 0; type < MXBPF_TYPES; type++) {
			if (d->until_ns[type] <= d->now_ns)
				continue;
			mask |= 1u << type;
			end_ns = d->until_ns[type] < end_ns ? d->until_ns[type] : end_ns;
		}
		add_sat(&d->a.ns[mask], end_ns - d->now_ns);
		d->now_ns = end_ns;
	}
}

static bool is_new(const struct launches_device *d)
{
	return !d->a.count[MXBPF_TYPE_COMPUTE] && !d->a.count[MXBPF_TYPE_EXCHANGE] && !d->a.count[MXBPF_TYPE_MEMORY];
}

int launches_types_take(const struct mdl *m, struct launches_state *t, const struct win_work *w)
{
	const bool kernel = w->cls == MXBPF_ACTIVITY_KERNEL;
	const enum mxbpf_gpu_type type = kernel ? type_of_kernel(m, t, w->name_id) : MXBPF_TYPE_MEMORY;
	struct launches_device *d = launches_device_of(t, w->tgid, w->track.device);

	if (!d)
		return -ENOMEM;
	if (is_new(d)) {
		d->now_ns = w->start_ns > d->now_ns ? w->start_ns : d->now_ns;
		d->a.first_ns = d->now_ns;
	}
	launches_settle(d, w->start_ns);
	d->until_ns[type] = w->end_ns > d->until_ns[type] ? w->end_ns : d->until_ns[type];
	add_sat(&d->a.count[type], 1);
	add_sat(&d->a.total_ns[type], w->end_ns - w->start_ns);
	return 0;
}

void launches_types_finish(struct launches_state *t)
{
	struct launches_device *d;
	uint64_t last_ns;
	unsigned type;
	size_t i;

	for (i = 0; i < buf_count(&t->devices, *d); i++) {
		d = buf_at(&t->devices, struct launches_device, i);
		for (last_ns = 0, type = 0; type < MXBPF_TYPES; type++)
			last_ns = d->until_ns[type] > last_ns ? d->until_ns[type] : last_ns;
		launches_settle(d, last_ns);
		d->a.last_ns = d->now_ns > d->a.last_ns ? d->now_ns : d->a.last_ns;
	}
}

int launches_types_fold(struct launches_state *t, const struct mxbpf_agg_gpu_types *a)
{
	struct launches_device *d = launches_device_of(t, a->h.tgid, a->device);
	unsigned i;

	if (!d)
		return -ENOMEM;
	if (is_new(d) || a->first_ns < d->a.first_ns)
		d->a.first_ns = a->first_ns;
	d->a.last_ns = a->last_ns > d->a.last_ns ? a->last_ns : d->a.last_ns;
	for (i = 0; i < 1u << MXBPF_TYPES; i++)
		add_sat(&d->a.ns[i], a->ns[i]);
	for (i = 0; i < MXBPF_TYPES; i++) {
		add_sat(&d->a.count[i], a->count[i]);
		add_sat(&d->a.total_ns[i], a->total_ns[i]);
	}
	return 0;
}
