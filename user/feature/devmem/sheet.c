// SPDX-License-Identifier: Apache-2.0
/* Who has the memory of each GPU: the allocator of the process, its contexts and libraries, other processes. */
#include "feature/devmem/devmem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fmt.h"
#include "feature/gpumem/gpumem.h"
#include "feature/memory/memory.h"
#include "view/priv.h"
#include "view/sheet.h"

/* Numbers are TBL_UNKNOWN if they are not known. */
struct row {
	struct view_text label;
	uint32_t tgid, device;
	bool has_device;
	uint64_t gpu, read_ns;
	uint64_t total, driver, used, used_peak, free;
	uint64_t process, allocator, calls, libraries, others, nothers, unlisted;
	char text[VIEW_LABEL_BYTES + 64];
};
struct table {
	struct view_list list;
	size_t silent, divided, missing,
		late;		     /* rows without a reading, of MIG, without the process, see set_process() */
	bool processes, calls, mute; /* mute: the driver says nothing of any GPU */
};

/* ---- rows */

static void set_unknown(struct row *r)
{
	r->gpu = r->read_ns = r->total = r->driver = r->used = r->used_peak = r->free = TBL_UNKNOWN;
	r->process = r->allocator = r->calls = r->libraries = r->others = r->nothers = r->unlisted = TBL_UNKNOWN;
}

/*
 * If the driver does not list the process, it may list it under another number. An allocator that has more than the
 * process has grown since the driver was asked.
 */
static void set_process(struct table *t, struct row *r, const struct mxbpf_gpu_used *g)
{
	uint64_t known = r->allocator == TBL_UNKNOWN ? 0 : r->allocator, listed = g->others_bytes;

	if (r->calls != TBL_UNKNOWN)
		add_sat(&known, r->calls);

	if (g->own_bytes == MXBPF_GPU_USED_UNKNOWN) {
		t->missing++;
		r->unlisted = g->used_bytes > known ? g->used_bytes - known : 0;
		return;
	}
	r->process = g->own_bytes;
	r->others = g->others_bytes;
	r->nothers = g->others;
	add_sat(&listed, g->own_bytes);
	r->unlisted = g->used_bytes > listed ? g->used_bytes - listed : 0;
	if (r->allocator == TBL_UNKNOWN)
		return;
	if (g->own_bytes >= known)
		r->libraries = g->own_bytes - known;
	else
		t->late++;
}

static void set_gpu(struct table *t, struct row *r, const struct devmem_row *of)
{
	const struct mxbpf_gpu_used *g = of ? &of->last : NULL;

	if (!g || g->flags & MXBPF_GPU_USED_DIVIDED || !g->total_bytes) {
		t->silent += !g || !(g->flags & MXBPF_GPU_USED_DIVIDED);
		t->divided += g && g->flags & MXBPF_GPU_USED_DIVIDED;
		return;
	}
	r->gpu = g->gpu;
	r->read_ns = g->h.ts_ns;
	r->total = g->total_bytes;
	r->driver = g->driver_bytes;
	r->used = g->used_bytes;
	r->used_peak = of->most.used_bytes;
	r->free = g->total_bytes - g->driver_bytes - g->used_bytes;
	if (g->driver_bytes > g->total_bytes || g->used_bytes > g->total_bytes - g->driver_bytes)
		r->free = 0;
	set_process(t, r, g);
}

static void put_label(const struct view *s, struct row *r, bool processes)
{
	char device[48], process[VIEW_LABEL_BYTES];

	if (r->has_device)
		mdl_device_name(s->in->session, r->device, device);
	else
		snprintf(device, sizeof(device), "GPU %u", (unsigned)r->gpu);
	if (processes && r->tgid)
		snprintf(r->text, sizeof(r->text), "%s of %s", device, view_process_label(s, r->tgid, process));
	else
		snprintf(r->text, sizeof(r->text), "%s", device);
	r->label = view_word(r->text);
}

static uint64_t reserved(const struct mxbpf_mem_time *t)
{
	return t->counted || t->pool_peak_bytes ? t->pool_bytes : TBL_UNKNOWN;
}

/* A row for each GPU on which the runtime of a process allocates. `taken` gets those of which the driver tells. */
static void add_devices(const struct view *s, struct table *t, struct row *r, bool *taken)
{
	const struct mdl *m = s->in->model;
	const struct devmem_row *all, *of;
	const struct mxbpf_mem_time *d;
	struct mxbpf_gpu_inside inside;
	size_t n = 0, nall, i;

	all = devmem_rows(m, &nall);
	for (i = 0; (d = memory_device(m, i)); i++) {
		if (!devmem_is_gpu(s->in->session, d->device))
			continue;
		inside = gpumem_inside(m, d);
		of = devmem_of(m, d->h.tgid, MXBPF_DEVICE_ID(d->device));
		set_unknown(&r[n]);
		r[n].tgid = d->h.tgid;
		r[n].device = d->device;
		r[n].has_device = true;
		r[n].allocator = reserved(d);
		r[n].calls = inside.calls_bytes;
		t->calls |= r[n].calls != TBL_UNKNOWN;
		if (of)
			taken[of - all] = true;
		set_gpu(t, &r[n++], of);
	}
	t->list.all = n;
}

/* A row for each other GPU on which the driver sees a process of the session. */
static void add_others(const struct view *s, struct table *t, struct row *r, const bool *taken)
{
	const struct devmem_row *all;
	size_t n = 0, nall, i;

	all = devmem_rows(s->in->model, &nall);
	for (i = 0; i < nall; i++) {
		if (taken[i] || !all[i].last.h.tgid)
			continue;
		set_unknown(&r[n]);
		r[n].tgid = all[i].last.h.tgid;
		set_gpu(t, &r[n++], &all[i]);
	}
	t->list.all += n;
}

static int devmem_by_place(const void *va, const void *vb)
{
	const struct row *a = va, *b = vb;

	if (a->gpu != b->gpu)
		return a->gpu < b->gpu ? -1 : 1;
	if (a->tgid != b->tgid)
		return a->tgid < b->tgid ? -1 : 1;
	return a->device < b->device ? -1 : a->device > b->device;
}

static int devmem_make(const struct view *s, void *table)
{
	struct table *t = table;
	struct row *r;
	bool *taken;
	size_t n = 0, nall, i;

	devmem_rows(s->in->model, &nall);
	t->mute = !nall;
	while (memory_device(s->in->model, n))
		n++;
	t->list.rows = r = calloc(n + nall + 1, sizeof(*r));
	taken = calloc(nall + 1, sizeof(*taken));
	if (r && taken) {
		add_devices(s, t, r, taken);
		add_others(s, t, r + t->list.all, taken);
		for (i = 0; i < t->list.all; i++)
			t->processes |= r[i].tgid != r[0].tgid;
		qsort(r, t->list.all, sizeof(*r), devmem_by_place);
		for (i = 0; i < t->list.all; i++)
			put_label(s, &r[i], t->processes);
	}
	free(taken);
	return r && taken ? 0 : -ENOMEM;
}

/* ---- for people */

static void devmem_above(struct view *s, const void *table, const char *prefix)
{
	(void)table;
	out_printf(s->out, "%sMemory of the GPU as NVIDIA's driver counts it (NVML), at the end\n", prefix);
}

static void devmem_below(struct view *s, const void *table, const char *prefix)
{
	const struct table *t = table;

	if (t->list.all > t->silent + t->divided)
		out_printf(s->out,
			   "%sused = process + others + unlisted; process = allocator (what it says it has reserved) + "
			   "%slibraries (contexts too)\n",
			   prefix, t->calls ? "calls (of CUDA, without it) + " : "");
	if (t->missing)
		out_printf(s->out,
			   "%sthe driver does not say what the process has, as in a container with process numbers of "
			   "its own: unlisted has all but the allocator\n",
			   prefix);
	if (t->late)
		out_printf(s->out, "%sthe allocator has grown since the driver was asked, so libraries are not known\n",
			   prefix);
	if (t->divided)
		out_printf(s->out, "%smemory outside of the allocator is not known: MIG divides the GPU\n", prefix);
	if (t->silent)
		out_printf(s->out, "%swhich GPU the driver calls a row without numbers is known with --gpu\n", prefix);
}

/* If the driver says nothing of any GPU, a sentence says so. */
static int print(struct view *s, const void *table)
{
	const struct table *t = table;
	int err = 0;

	if (t->mute)
		out_puts(s->out, "Memory of the GPU outside of the allocator is not known: no libnvidia-ml.so.1 told "
				 "of a GPU\n");
	else
		err = view_sheet_print(s, &sheet_devmem, table, "");
	out_puts(s->out, "\n");
	return err;
}

static bool devmem_when(const struct view *s)
{
	return s->in->session->held;
}

#define ROW	     struct row
#define KNOWN	     TBL_NULL
#define SEEN(member) .shown = offsetof(struct table, member)
static const struct tbl_column columns[] = {
	{NULL, "name", "gpu", TBL_TEXT, AT(label)},
	{"device", "device", NULL, TBL_DEVICE, AT(device), .has = offsetof(ROW, has_device),
	 .help = "as the runtime numbers it; absent if it has allocated nothing there"},
	PID_COLUMN(tgid),
	{"gpu", "", NULL, TBL_COUNT, KEY_AT(gpu), KNOWN,
	 .help = "as nvidia-smi numbers it; null: the driver says nothing"},
	{"total_bytes", NULL, "total", TBL_BYTES, AT(total), KNOWN,
	 .help = "memory of the GPU = driver_bytes + used_bytes + free_bytes"},
	{"driver_bytes", NULL, NULL, TBL_BYTES, AT(driver), KNOWN, .help = "kept by the driver for itself"},
	{"free_bytes", NULL, "free", TBL_BYTES, AT(free), KNOWN},
	{"used_bytes", NULL, "used", TBL_BYTES, MAX_AT(used), KNOWN,
	 .help = "= process_bytes + others_bytes + unlisted_bytes"},
	{"used_peak_bytes", NULL, NULL, TBL_BYTES, MAX_AT(used_peak), KNOWN,
	 .help = "most of the readings, of which there is one about each second"},
	{"process_bytes", NULL, "process", TBL_BYTES, MAX_AT(process), KNOWN,
	 .help = "of the process, as the driver says; null: it does not say"},
	{"allocator_bytes", NULL, "allocator", TBL_BYTES, MAX_AT(allocator), KNOWN,
	 .help = "of process_bytes, reserved by the runtime's allocator, as it says; null: it does not say"},
	{"calls_bytes", NULL, "calls", TBL_BYTES, MAX_AT(calls), KNOWN, SEEN(calls),
	 .help = "of process_bytes, allocated in the window by calls of CUDA, not by the allocator, and not freed; "
		 "requires "
		 "--gpu"},
	{"libraries_bytes", NULL, "libraries", TBL_BYTES, MAX_AT(libraries), KNOWN,
	 .help = "the rest of process_bytes: contexts of CUDA, code, libraries such as cuBLAS and NCCL, and without "
		 "--gpu "
		 "what calls of CUDA allocate"},
	{"others_bytes", NULL, "others", TBL_BYTES, MAX_AT(others), KNOWN,
	 .help = "of other processes that the driver lists"},
	{"others", NULL, NULL, TBL_COUNT, AT(nothers), KNOWN, .help = "number of these processes"},
	{"unlisted_bytes", NULL, "unlisted", TBL_BYTES, AT(unlisted), KNOWN,
	 .help = "the rest of used_bytes; if process_bytes is null, all but allocator_bytes"},
	{"read_unix_ns", "", NULL, TBL_MOMENT, AT(read_ns), KNOWN, .help = "when the driver said this"},
	{0},
};

const struct view_sheet sheet_devmem = {
	.title = "Memory of the GPU as the driver counts it",
	.help = "Requires --memory: who has the memory of each GPU, as NVIDIA's driver counts it at the end.",
	.list_help = "absent if the processes use no GPU",
	.member = "memory",
	.list = "gpus",
	.csv = "held.gpu",
	.columns = columns,
	.row_bytes = sizeof(struct row),
	.table_bytes = sizeof(struct table),
	.whole = true,
	.if_any = true,
	.when = devmem_when,
	.make = devmem_make,
	.above = devmem_above,
	.below = devmem_below,
	.print = print,
};
