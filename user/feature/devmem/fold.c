// SPDX-License-Identifier: Apache-2.0
/* Keeps what the driver said of each GPU: at the end, at the most, and whenever it changed. */
#include "feature/devmem/devmem.h"

#include <errno.h>
#include <string.h>

#include "feature/activity/activity.h"
#include "mxbpf_track.h"

#define READINGS_MAX 4096 /* that differ from the one before; older ones are forgotten */

struct state {
	struct hash index; /* (process, place on the PCI bus) -> row */
	struct buf rows;   /* struct devmem_row */
	struct buf readings;
};

static uint64_t devmem_place_of(uint32_t domain, uint32_t bus, uint32_t device)
{
	return (uint64_t)domain << 32 | (bus & 0xffff) << 16 | (device & 0xffff);
}

static uint64_t devmem_place(const struct mxbpf_gpu_used *r)
{
	return devmem_place_of(r->pci_domain, r->pci_bus, r->pci_device);
}

static bool is_change(const struct mxbpf_gpu_used *a, const struct mxbpf_gpu_used *b)
{
	return a->used_bytes != b->used_bytes || a->own_bytes != b->own_bytes || a->others_bytes != b->others_bytes ||
	       a->others != b->others;
}

static int devmem_fold(struct mdl *m, const struct mxbpf_rec *rec)
{
	struct mxbpf_gpu_used r = *(const struct mxbpf_gpu_used *)(const void *)rec;
	struct state *t = mdl_state(m, &feature_devmem);
	struct devmem_row *row;
	bool added, changed;

	r.h.size = sizeof(r); /* a newer version has a longer record */
	row = t ? mdl_item_put(&t->index, &t->rows, r.h.tgid, devmem_place(&r), sizeof(*row), &added) : NULL;
	if (!row)
		return -ENOMEM;
	changed = added || (r.h.ts_ns > row->last.h.ts_ns && is_change(&r, &row->last));
	if (added || r.used_bytes > row->most.used_bytes)
		row->most = r;
	if (added || r.h.ts_ns >= row->last.h.ts_ns)
		row->last = r;
	return changed ? buf_put_latest(&t->readings, &r, sizeof(r), READINGS_MAX) : 0;
}

const struct devmem_row *devmem_rows(const struct mdl *m, size_t *n)
{
	const struct state *t = mdl_state_of(m, &feature_devmem);

	*n = t ? buf_count(&t->rows, struct devmem_row) : 0;
	return t ? (const struct devmem_row *)(const void *)t->rows.data : NULL;
}

/* ---- which GPU a device is */

bool devmem_is_gpu(const struct mdl_session *s, uint32_t device)
{
	char name[48];

	mdl_device_name(s, device, name);
	return !strncmp(name, "cuda/", 5) || !strncmp(name, "gpu/", 4);
}

static const struct devmem_row *at_place(const struct mdl *m, uint32_t tgid, const struct mxbpf_gpu_device *d)
{
	const struct state *t = mdl_state_of(m, &feature_devmem);
	const uint64_t *at = hash_get(&t->index, tgid, devmem_place_of(d->pci_domain, d->pci_bus, d->pci_device));

	return at ? buf_at(&t->rows, const struct devmem_row, *at - 1) : NULL;
}

/* The only row of a process, or of GPUs alone. In a sum of processes `tgid` is 0, and any process is meant. */
static const struct devmem_row *only_one(const struct mdl *m, uint32_t tgid, bool alone)
{
	const struct devmem_row *rows, *one = NULL;
	size_t n, i;

	rows = devmem_rows(m, &n);
	for (i = 0; i < n; i++) {
		if (alone ? rows[i].last.h.tgid != 0 : !rows[i].last.h.tgid || (tgid && rows[i].last.h.tgid != tgid))
			continue;
		if (one)
			return NULL;
		one = &rows[i];
	}
	return one;
}

const struct devmem_row *devmem_of(const struct mdl *m, uint32_t tgid, uint32_t ordinal)
{
	const struct devmem_row *row;
	size_t n, i;
	const struct mxbpf_gpu_device *d = activity_devices(m, &n);

	if (!mdl_state_of(m, &feature_devmem))
		return NULL;
	for (i = 0; i < n; i++) {
		if (d[i].h.tgid != tgid || d[i].device != ordinal)
			continue;
		row = at_place(m, tgid, &d[i]);
		return row ? row : at_place(m, 0, &d[i]);
	}
	row = only_one(m, tgid, false);
	return row ? row : only_one(m, 0, true);
}

const struct mxbpf_gpu_used *devmem_at(const struct mdl *m, const struct mdl_session *s, uint32_t tgid, uint32_t device,
				       uint64_t ns)
{
	const struct state *t = mdl_state_of(m, &feature_devmem);
	const struct devmem_row *of = devmem_is_gpu(s, device) ? devmem_of(m, tgid, MXBPF_DEVICE_ID(device)) : NULL;
	const struct mxbpf_gpu_used *r, *best = NULL;
	size_t i;

	if (!of || of->last.own_bytes == MXBPF_GPU_USED_UNKNOWN)
		return NULL;
	for (i = 0; i < buf_count(&t->readings, *r); i++) {
		r = buf_at(&t->readings, const struct mxbpf_gpu_used, i);
		if (r->h.tgid == of->last.h.tgid && devmem_place(r) == devmem_place(&of->last) &&
		    (!best || r->h.ts_ns <= ns))
			best = r;
	}
	return best ? best : &of->last;
}

/* ---- the state */

/* Readings come first, in their order: what is added behind them is not new. */
static int devmem_emit(const struct mdl *m, struct buf *out)
{
	const struct state *t = mdl_state_of(m, &feature_devmem);
	const struct devmem_row *rows;
	size_t n, i;
	int err = buf_put(out, t->readings.data, t->readings.len);

	rows = devmem_rows(m, &n);
	for (i = 0; !err && i < n; i++) {
		err = buf_put(out, &rows[i].last, sizeof(rows[i].last));
		err = err ? err : buf_put(out, &rows[i].most, sizeof(rows[i].most));
	}
	return err;
}

static int devmem_copy(struct mdl *to, const struct mdl *from)
{
	const struct state *f = mdl_state_of(from, &feature_devmem);
	struct state *t = mdl_state(to, &feature_devmem);

	if (!t || buf_put(&t->readings, f->readings.data, f->readings.len))
		return -ENOMEM;
	return mdl_items_copy(&t->index, &t->rows, &f->index, &f->rows);
}

static void devmem_fold_fini(struct mdl *m)
{
	struct state *t = mdl_state(m, &feature_devmem);

	mdl_items_fini(&t->index, &t->rows);
	buf_fini(&t->readings);
}

const struct mdl_feature feature_devmem = {
	.session = &devmem_session,
	.state_bytes = sizeof(struct state),
	.kinds = {{MXBPF_GPU_USED, devmem_fold}},
	.emit = devmem_emit,
	.copy = devmem_copy,
	.fini = devmem_fold_fini,
};
