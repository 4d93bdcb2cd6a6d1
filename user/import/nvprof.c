// SPDX-License-Identifier: Apache-2.0
/*
 * Databases of nvprof ("nvprof -o x.nvvp"): CUPTI's records in tables. Ranges of NVTX are operators with their whole
 * names, as in torch.autograd.profiler.load_nvprof().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "import/cupti.h"
#include "import/nvprof_calls.h"
#include "mxbpf_config.h"

#define STRINGS	      "StringTable"
#define OPEN_MAX      (1u << 18)
#define IDS_MAX	      (1u << 27)
#define OBJECT_THREAD 2

enum { FLAG_INSTANT = 1, FLAG_START = 2, FLAG_END = 4 };

/* A range whose end has not been read. */
struct open {
	uint64_t start_ns;
	int64_t name;
	uint32_t tgid, tid;
};

struct nvprof {
	struct cupti c;
	struct hash opened; /* id of a range -> 1 + its place in `open` */
	struct buf open;    /* struct open */
	struct buf freed;   /* uint32_t: places that are free again */
	uint8_t *ids;	    /* a bit for each correlation id that a call of the runtime has; owned */
	uint64_t unended, unopened;
};

/* ---- calls */

enum { CALL_NUMBER, CALL_START, CALL_END, CALL_PROCESS, CALL_THREAD, CALL_CORRELATION, CALL_COLUMNS };
static const char *const call_columns[CALL_COLUMNS] = {"cbid",	    "start",	"end",
						       "processId", "threadId", "correlationId"};

static int put_call(struct nvprof *p, const struct db_row *row, bool driver)
{
	struct mdl_session *about = sink_about(p->c.s);
	const uint32_t tgid = (uint32_t)db_u64(row, CALL_PROCESS) & MDL_PID_MASK;
	uint64_t ns, dur_ns;
	struct mxbpf_span call;
	int64_t number = -1;
	char name[64];

	if (!cupti_times(&p->c, row, CALL_START, CALL_END, &ns, &dur_ns))
		return 0;
	if (!about->pid)
		about->pid = tgid;
	db_int(row, CALL_NUMBER, &number);
	nvprof_call(driver, number, name);
	call = sink_span(tgid, (uint32_t)db_u64(row, CALL_THREAD), ns, dur_ns, 0, MXBPF_CLASS_CUDA);
	return cupti_call(&p->c, &call, name, strlen(name), db_u64(row, CALL_CORRELATION));
}

static int take_runtime(void *ctx, const struct db_row *row)
{
	struct nvprof *p = ctx;
	const uint64_t id = db_u64(row, CALL_CORRELATION);

	if (id < IDS_MAX)
		p->ids[id / 8] |= (uint8_t)(1u << id % 8);
	return put_call(p, row, false);
}

/* A call of the driver inside one of the runtime has its number, and is the same launch. */
static int take_driver(void *ctx, const struct db_row *row)
{
	struct nvprof *p = ctx;
	const uint64_t id = db_u64(row, CALL_CORRELATION);

	if (id && id < IDS_MAX && p->ids[id / 8] & 1u << id % 8)
		return 0;
	return put_call(p, row, true);
}

/* ---- ranges */

enum { M_FLAGS, M_TIME, M_ID, M_KIND, M_OBJECT, M_NAME, M_COLUMNS };
static const char *const marker_columns[M_COLUMNS] = {"flags", "timestamp", "id", "objectKind", "objectId", "name"};

/* objectId is a union of C: the process and the thread, or the process alone. */
static void thread_of(const struct db_row *row, struct open *o)
{
	size_t len;
	const unsigned char *at = db_blob(row, M_OBJECT, &len);
	uint32_t words[2] = {0};

	if (!at || len < sizeof(words))
		return;
	memcpy(words, at, sizeof(words));
	o->tgid = words[0] & MDL_PID_MASK;
	o->tid = db_u64(row, M_KIND) == OBJECT_THREAD ? words[1] : 0;
}

static int begin(struct nvprof *p, uint64_t id, const struct open *o)
{
	const size_t nfreed = buf_count(&p->freed, uint32_t);
	uint64_t *at;
	uint32_t place;

	at = p->opened.len < OPEN_MAX ? hash_put(&p->opened, id, 0) : NULL;
	if (!at) {
		p->unended++;
		return 0;
	}
	place = *at ? (uint32_t)*at - 1 : (uint32_t)buf_count(&p->open, struct open);
	if (!*at && nfreed) {
		place = *buf_at(&p->freed, uint32_t, nfreed - 1);
		p->freed.len -= sizeof(uint32_t);
	}
	if (place == buf_count(&p->open, struct open) && !buf_add(&p->open, sizeof(*o)))
		return -ENOMEM;
	*buf_at(&p->open, struct open, place) = *o;
	*at = 1 + place;
	return 0;
}

static int finish(struct nvprof *p, uint64_t id, uint64_t end_ns)
{
	struct cupti_range r = {.is_operator = true, .whole = true};
	const struct open *o;
	uint64_t at;
	uint32_t place;

	if (!hash_del(&p->opened, id, 0, &at)) {
		p->unopened++;
		return 0;
	}
	place = (uint32_t)at - 1;
	o = buf_at(&p->open, struct open, place);
	r.start_ns = o->start_ns;
	r.dur_ns = end_ns > o->start_ns ? end_ns - o->start_ns : 0;
	r.tgid = o->tgid;
	r.tid = o->tid;
	r.text = db_text_of(p->c.db, o->name, &r.len);
	return buf_put(&p->freed, &place, sizeof(place)) ? -ENOMEM : cupti_range(&p->c, &r);
}

static int put_mark(struct nvprof *p, const struct open *o)
{
	struct cupti_range r = {.tgid = o->tgid, .tid = o->tid, .start_ns = o->start_ns};

	r.text = db_text_of(p->c.db, o->name, &r.len);
	return cupti_mark(&p->c, &r);
}

/* The end of a range has no name. */
static int take_marker(void *ctx, const struct db_row *row)
{
	struct nvprof *p = ctx;
	struct mdl_session *about = sink_about(p->c.s);
	const uint64_t flags = db_u64(row, M_FLAGS), id = db_u64(row, M_ID);
	struct open o = {0};

	if (!cupti_time(&p->c, row, M_TIME, &o.start_ns)) {
		p->c.untimed++;
		return 0;
	}
	db_int(row, M_NAME, &o.name);
	thread_of(row, &o);
	if (!about->pid)
		about->pid = o.tgid;
	if (flags & FLAG_INSTANT)
		return put_mark(p, &o);
	return o.name ? begin(p, id, &o) : finish(p, id, o.start_ns);
}

/* ---- devices */

enum {
	D_ID,
	D_NAME,
	D_MEMORY,
	D_SMS,
	D_MAJOR,
	D_MINOR,
	D_WARPS,
	D_BLOCKS,
	D_REGISTERS,
	D_SHARED,
	D_WARP,
	D_CLOCK,
	D_COLUMNS
};
static const char *const device_columns[D_COLUMNS] = {"id",
						      "name",
						      "globalMemorySize",
						      "numMultiprocessors",
						      "computeCapabilityMajor",
						      "computeCapabilityMinor",
						      "maxWarpsPerMultiprocessor",
						      "maxBlocksPerMultiprocessor",
						      "maxRegistersPerMultiprocessor",
						      "maxSharedMemoryPerMultiprocessor",
						      "numThreadsPerWarp",
						      "coreClockRate"};

static int take_device(void *ctx, const struct db_row *row)
{
	struct nvprof *p = ctx;
	size_t len;
	const char *name = cupti_text(&p->c, row, D_NAME, &len);
	const struct mxbpf_gpu_device d = {
		.h = {.kind = MXBPF_GPU_DEVICE, .size = sizeof(d)},
		.name_id = sink_name(p->c.s, MXBPF_NAME_SPAN, name, len),
		.memory_bytes = db_u64(row, D_MEMORY),
		.device = (uint32_t)db_u64(row, D_ID),
		.multiprocessors = (uint32_t)db_u64(row, D_SMS),
		.major = (uint16_t)db_u64(row, D_MAJOR),
		.minor = (uint16_t)db_u64(row, D_MINOR),
		.threads_per_mp = (uint32_t)(db_u64(row, D_WARPS) * db_u64(row, D_WARP)),
		.blocks_per_mp = (uint32_t)db_u64(row, D_BLOCKS),
		.registers_per_mp = (uint32_t)db_u64(row, D_REGISTERS),
		.shared_per_mp = (uint32_t)db_u64(row, D_SHARED),
		.warp = (uint32_t)db_u64(row, D_WARP),
		.clock_khz = (uint32_t)db_u64(row, D_CLOCK),
	};

	return sink_put(p->c.s, &d.h);
}

/* Names that NVTX gave to threads. */
static int take_name(void *ctx, const struct db_row *row)
{
	struct nvprof *p = ctx;
	struct open o = {0};
	size_t len;
	const char *name = cupti_text(&p->c, row, M_NAME, &len);

	thread_of(row, &o);
	if (o.tid && len)
		sink_thread(p->c.s, o.tgid, o.tid, name, len);
	return 0;
}

/* ---- the file */

static int read_all(struct nvprof *p, struct err *e)
{
	static const struct {
		const char *table;
		const char *const *columns;
		unsigned n;
		int (*take)(void *ctx, const struct db_row *row);
	} tables[] = {
		{"CUPTI_ACTIVITY_KIND_DEVICE", device_columns, D_COLUMNS, take_device},
		{"CUPTI_ACTIVITY_KIND_NAME", marker_columns, M_COLUMNS, take_name},
		{"CUPTI_ACTIVITY_KIND_RUNTIME", call_columns, CALL_COLUMNS, take_runtime},
		{"CUPTI_ACTIVITY_KIND_DRIVER", call_columns, CALL_COLUMNS, take_driver},
		{"CUPTI_ACTIVITY_KIND_MARKER", marker_columns, M_COLUMNS, take_marker},
	};
	size_t i;
	int err = 0;

	for (i = 0; i < sizeof(tables) / sizeof(tables[0]) && !err; i++)
		err = db_each(p->c.db, tables[i].table, tables[i].columns, tables[i].n, tables[i].take, p, e);
	return err ? err : cupti_activities(&p->c, e);
}

static int tell_ranges(struct nvprof *p)
{
	p->unended += p->opened.len;
	if (p->unended)
		sink_note(p->c.s, "trace", "%llu ranges had not ended and are left out",
			  (unsigned long long)p->unended);
	if (p->unopened)
		sink_lost(p->c.s, p->unopened);
	return cupti_describe(&p->c);
}

static int nvprof_read(struct sink *s, int fd, struct err *e)
{
	struct nvprof p = {.c = {.s = s}};
	int err = db_open(fd, &p.c.db, e);

	p.ids = calloc(1, IDS_MAX / 8);
	if (!err && !p.ids)
		err = err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	err = err ? err : db_texts(p.c.db, STRINGS, "_id_", "value", e);
	err = err ? err : read_all(&p, e);
	if (!err && !p.c.events)
		err = err_set(e, ERR_RUNTIME, -EINVAL, "it has no events of CUDA or NVTX");
	err = err ? err : tell_ranges(&p);
	cupti_fini(&p.c);
	hash_fini(&p.opened);
	buf_fini(&p.open);
	buf_fini(&p.freed);
	free(p.ids);
	return err;
}

static bool nvprof_is(int fd, const void *head, size_t n)
{
	return db_is(head, n) && db_fd_has(fd, STRINGS);
}

const struct import_format import_nvprof = {"database of nvprof", "nvprof", nvprof_is, nvprof_read};
