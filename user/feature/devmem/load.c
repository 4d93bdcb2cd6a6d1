// SPDX-License-Identifier: Apache-2.0
/* Asks NVIDIA's driver about the memory of GPUs in a live session with --memory. */
#include "feature/devmem/devmem.h"
#include "session/feature.h"
#include "session/priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "nvml/nvml.h"

#define END_MS 200 /* how long the end of a window waits for what the driver says then */

struct state {
	bool opened; /* nvml is open, unless that failed */
	struct nvml *nvml;
	struct nvml_list list;
	struct buf pids; /* uint32_t: the processes of the session */
	struct buf recs;
	int err;
};

static struct state *devmem_state_of(const struct session *ses)
{
	return ses_state(ses, &devmem_session);
}

static bool devmem_asked(const struct ses_opts *o)
{
	return o->memory;
}

static void open_driver(struct session *ses)
{
	struct state *d = devmem_state_of(ses);

	if (d->opened)
		return;
	d->opened = true;
	d->nvml = nvml_open();
	nvml_take(d->nvml, true, &d->list);
}

/* The driver is asked from here on, so that it has told something when the window begins. */
static int devmem_check(struct session *ses, const struct ses_target *of, struct err *e)
{
	(void)of;
	(void)e;
	open_driver(ses);
	return 0;
}

static void add_process(void *ctx, uint32_t tgid, const struct plan *p)
{
	struct state *d = ctx;

	(void)p;
	if (buf_put(&d->pids, &tgid, sizeof(tgid)))
		d->err = -ENOMEM;
}

static bool is_divided(const struct nvml_list *l, uint32_t gpu)
{
	unsigned i = 0;

	while (i < l->ninstances && l->instances[i].gpu != gpu)
		i++;
	return i < l->ninstances;
}

static bool is_told(const struct nvml_list *l, uint32_t gpu)
{
	return l->gpus[gpu].total_bytes || is_divided(l, gpu);
}

/* What the driver says of a GPU, with the bytes of one of its processes; tgid 0: of none. */
static struct mxbpf_gpu_used reading(const struct nvml_list *l, uint32_t gpu, uint32_t tgid, uint64_t now_ns)
{
	const struct nvml_gpu *g = &l->gpus[gpu];
	struct mxbpf_gpu_used r = {
		.h = {.kind = MXBPF_GPU_USED, .size = sizeof(r), .tgid = tgid, .ts_ns = now_ns},
		.own_bytes = MXBPF_GPU_USED_UNKNOWN,
		.gpu = g->index,
		.pci_domain = g->domain,
		.pci_bus = g->bus,
		.pci_device = g->device,
	};
	const struct nvml_process *p;
	unsigned i;

	if (is_divided(l, gpu)) {
		r.flags = MXBPF_GPU_USED_DIVIDED;
		return r;
	}
	r.total_bytes = g->total_bytes;
	r.driver_bytes = g->driver_bytes;
	r.used_bytes = g->used_bytes;
	for (i = 0; i < l->nprocesses; i++) {
		p = &l->processes[i];
		if (p->gpu != gpu)
			continue;
		if (tgid && p->pid == tgid) {
			r.own_bytes = p->memory_bytes ? p->memory_bytes : MXBPF_GPU_USED_UNKNOWN;
		} else {
			add_sat(&r.others_bytes, p->memory_bytes);
			r.others++;
		}
	}
	return r;
}

static void devmem_put(struct state *d, uint32_t gpu, uint32_t tgid, uint64_t now_ns)
{
	const struct mxbpf_gpu_used r = reading(&d->list, gpu, tgid, now_ns);

	if (buf_put(&d->recs, &r, sizeof(r)))
		d->err = -ENOMEM;
}

static bool is_watched(const struct state *d, uint32_t pid)
{
	size_t i = 0;

	while (i < buf_count(&d->pids, uint32_t) && *buf_at(&d->pids, const uint32_t, i) != pid)
		i++;
	return i < buf_count(&d->pids, uint32_t);
}

/* A record for each GPU of which the driver says something, and one for each process of the session on it. */
static void read_gpus(struct session *ses, bool resumed)
{
	struct state *d = devmem_state_of(ses);
	const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	unsigned i;

	(void)resumed;
	d->recs.len = d->pids.len = 0;
	d->err = 0;
	ses_each_process(ses, add_process, d);
	nvml_take(d->nvml, true, &d->list);
	for (i = 0; i < d->list.n; i++)
		if (is_told(&d->list, i))
			devmem_put(d, i, 0, now_ns);
	for (i = 0; i < d->list.nprocesses; i++)
		if (is_told(&d->list, d->list.processes[i].gpu) && is_watched(d, d->list.processes[i].pid))
			devmem_put(d, d->list.processes[i].gpu, d->list.processes[i].pid, now_ns);
	ses_keep(ses, d->recs.data, d->recs.len, d->err);
}

static int devmem_start(struct session *ses, struct err *e)
{
	(void)e;
	open_driver(ses);
	read_gpus(ses, false);
	return 0;
}

/* The numbers of the runtime's allocator are those of the end, too. */
static void devmem_end(struct session *ses)
{
	nvml_refresh(devmem_state_of(ses)->nvml, END_MS);
	read_gpus(ses, false);
}

/* A driver that hangs holds a thread in its library, whose functions at exit() would wait for it. */
static void devmem_leave(int status, void *unused)
{
	(void)unused;
	fflush(NULL);
	_exit(status);
}

static void devmem_load_fini(struct session *ses)
{
	struct state *d = devmem_state_of(ses);

	if (!nvml_close(d->nvml))
		on_exit(devmem_leave, NULL);
	buf_fini(&d->pids);
	buf_fini(&d->recs);
}

const struct ses_feature devmem_session = {
	.state_bytes = sizeof(struct state),
	.asked = devmem_asked,
	.check = devmem_check,
	.start = devmem_start,
	.read = read_gpus,
	.end = devmem_end,
	.fini = devmem_load_fini,
};
