// SPDX-License-Identifier: Apache-2.0
/*
 * Series of GPUs, with the labels of DCGM's exporter: what the agent saw of a process on each of its devices, and what
 * the driver says of each GPU on which a process has work.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "feature/activity/activity.h"
#include "metrics/priv.h"
#include "nvml/nvml.h"

#define DEVICES 32 /* of a process: bits of met_process.gpus */

/* ---- labels */

static void put_place(struct met_labels *l, uint32_t domain, uint32_t bus, uint32_t device)
{
	char text[32];

	snprintf(text, sizeof(text), "%08" PRIX32 ":%02" PRIX32 ":%02" PRIX32 ".0", domain, bus, device);
	met_label_text(l, "pci_bus_id", text);
}

static void put_gpu(struct met_labels *l, const struct nvml_gpu *g)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu32, g->index);
	met_label_text(l, "gpu", text);
	met_label_text(l, "UUID", g->uuid);
	snprintf(text, sizeof(text), "nvidia%" PRIu32, g->index);
	met_label_text(l, "device", text);
	put_place(l, g->domain, g->bus, g->device);
}

static const struct nvml_gpu *gpu_of(const struct mdl_interval *in, const struct mxbpf_gpu_device *d)
{
	const struct nvml_gpu *g;
	unsigned i;

	for (i = 0; in->gpus && i < in->gpus->n; i++) {
		g = &in->gpus->gpus[i];
		if (g->domain == d->pci_domain && g->bus == d->pci_bus && g->device == d->pci_device)
			return g;
	}
	return NULL;
}

/* An instance of MIG has the label of DCGM's exporter where the driver tells its number. */
static void put_instance(struct met_labels *l, const struct mdl_interval *in, const struct mxbpf_gpu_device *d)
{
	char uuid[ACTIVITY_UUID_BYTES], text[24];
	unsigned i;

	met_label_text(l, "mig_uuid", activity_uuid(d, false, uuid));
	for (i = 0; in->gpus && i < in->gpus->ninstances; i++) {
		if (strcmp(in->gpus->instances[i].uuid, uuid))
			continue;
		snprintf(text, sizeof(text), "%" PRIu32, in->gpus->instances[i].gpu_instance);
		met_label_text(l, "GPU_I_ID", text);
		return;
	}
}

/* A device of a process has the number of the GPU only where the driver tells which one it is. */
static void gpus_put_device(struct met_labels *l, const struct mdl_interval *in, const struct mxbpf_gpu_device *d)
{
	const struct nvml_gpu *g = gpu_of(in, d);

	char uuid[ACTIVITY_UUID_BYTES];

	if (g) {
		put_gpu(l, g);
	} else {
		if (*activity_uuid(d, true, uuid))
			met_label_text(l, "UUID", uuid);
		put_place(l, d->pci_domain, d->pci_bus, d->pci_device);
	}
	if (activity_is_instance(d))
		put_instance(l, in, d);
}

/* ---- what the agent saw */

/* If the agent has not described the device, the labels are those of the process alone. */
bool met_label_device(struct met *m, const struct mdl_interval *in, uint32_t tgid, uint32_t device,
		      struct met_labels *l)
{
	size_t n, i = 0;
	const struct mxbpf_gpu_device *d = activity_devices(in->model, &n);
	struct met_process *p = met_process_of(m, in, tgid);

	if (!p)
		return false;
	met_labels_begin(l, p->labels);
	while (i < n && (d[i].h.tgid != tgid || d[i].device != device))
		i++;
	if (i < n)
		gpus_put_device(l, in, &d[i]);
	if (device < DEVICES)
		p->gpus |= 1u << device;
	return true;
}

static bool is_watched(const struct mdl_interval *in, uint32_t tgid)
{
	size_t i = 0;

	while (i < in->npids && (uint32_t)in->pids[i] != tgid)
		i++;
	return i < in->npids;
}

static bool has_work(const struct buf *streams, const struct mxbpf_gpu_device *d)
{
	const struct mxbpf_agg_gpu_stream *s;
	size_t i;

	for (i = 0; i < buf_count(streams, *s); i++) {
		s = buf_at(streams, struct mxbpf_agg_gpu_stream, i);
		if (s->whole && s->h.tgid == d->h.tgid && s->track.device == d->device)
			return true;
	}
	return false;
}

/* A device that a process has used before, and that does nothing now, is in no table: it is idle, and its time counts.
 */
static int take_idle(struct met *m, const struct mdl_interval *in)
{
	size_t n, i;
	const struct mxbpf_gpu_device *d = activity_devices(in->model, &n);
	struct buf streams = {0};
	const int err = activity_streams(in->model, &streams);
	const struct met_process *p;
	struct met_labels l;

	for (i = 0; !err && i < n; i++) {
		if (!is_watched(in, d[i].h.tgid) || d[i].device >= DEVICES || has_work(&streams, &d[i]))
			continue;
		p = met_process_of(m, in, d[i].h.tgid);
		if (p && p->gpus & 1u << d[i].device && met_label_device(m, in, d[i].h.tgid, d[i].device, &l))
			met_add_column(m, &activity_seen, l.text,
				       activity_seen_ns(in->model, d[i].h.tgid, in->session->duration_ns));
	}
	buf_fini(&streams);
	return err;
}

/* ---- what the driver says */

/* What of the whole GPU is left: labels of the GPU alone. */
static void take_memory(struct met *m, const struct nvml_gpu *g, const char *labels)
{
	const uint64_t taken = g->driver_bytes + g->used_bytes;

	if (!g->total_bytes)
		return;
	met_set(m, MET_GPU_MEMORY_TOTAL, labels, (int64_t)g->total_bytes);
	met_set(m, MET_GPU_MEMORY_FREE, labels, taken < g->total_bytes ? (int64_t)(g->total_bytes - taken) : 0);
}

/* promtool refuses modelName, which DCGM's exporter has on each series. */
static void take_info(struct met *m, const struct nvml_list *gpus)
{
	struct met_labels l;
	unsigned i;

	for (i = 0; gpus && i < gpus->n; i++) {
		met_labels_begin(&l, "");
		put_gpu(&l, &gpus->gpus[i]);
		take_memory(m, &gpus->gpus[i], l.text);
		met_label_text(&l, "model", gpus->gpus[i].model);
		met_set(m, MET_GPU_INFO, l.text, 1);
	}
}

/* Processes with the same labels on a GPU share its series, to which its time is added once. */
static void take_driver(struct met *m, const struct mdl_interval *in)
{
	const struct nvml_process *of;
	const struct nvml_gpu *g;
	const struct met_process *p;
	struct hash done = {0};
	struct met_labels l;
	uint64_t key, *took;
	unsigned i;

	for (i = 0; in->gpus && i < in->gpus->nprocesses; i++) {
		of = &in->gpus->processes[i];
		g = &in->gpus->gpus[of->gpu];
		p = is_watched(in, of->pid) ? met_process_of(m, in, of->pid) : NULL;
		if (!p)
			continue;
		met_labels_begin(&l, p->labels);
		put_gpu(&l, g);
		if (of->memory_bytes)
			met_add_gauge(m, MET_GPU_MEMORY, l.text, (int64_t)of->memory_bytes);
		key = hash_text(HASH_SEED, l.text, l.len);
		took = hash_get(&done, key, 0) ? NULL : hash_put(&done, key, 0);
		if (!took || !g->seen_ns)
			continue;
		met_add(m, MET_GPU_UTILIZED, l.text, g->busy_ns);
		met_add(m, MET_GPU_SAMPLED, l.text, g->seen_ns);
	}
	hash_fini(&done);
}

int met_take_gpus(struct met *m, const struct mdl_interval *in)
{
	take_info(m, in->gpus);
	take_driver(m, in);
	return take_idle(m, in);
}
