// SPDX-License-Identifier: Apache-2.0
#include "import/cupti.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/adapter.h"
#include "base/demangle.h"
#include "mxbpf_config.h"
#include "source/gpu_words.h"

#define KERNELS_MAX 65536 /* readable names that are kept */

enum column {
	START,
	END,
	DEVICE,
	CONTEXT,
	STREAM,
	CORRELATION,
	PID,
	GRAPH,
	NODE,
	BYTES,
	READABLE,
	NAME,
	SHORT,
	GRID_X,
	GRID_Y,
	GRID_Z,
	BLOCK_X,
	BLOCK_Y,
	BLOCK_Z,
	REGISTERS,
	STATIC_SHARED,
	DYNAMIC_SHARED,
	COPY,
	FROM,
	TO,
	SET_IN,
	SYNC_OF_NSYS,
	SYNC,
	COLUMNS,
};

/* The columns of both profilers. A column that a table does not have is unknown. */
static const char *const columns[COLUMNS] = {
	[START] = "start",
	[END] = "end",
	[DEVICE] = "deviceId",
	[CONTEXT] = "contextId",
	[STREAM] = "streamId",
	[CORRELATION] = "correlationId",
	[PID] = "globalPid",
	[GRAPH] = "graphId",
	[NODE] = "graphNodeId",
	[BYTES] = "bytes",
	[READABLE] = "demangledName",
	[NAME] = "name",
	[SHORT] = "shortName",
	[GRID_X] = "gridX",
	[GRID_Y] = "gridY",
	[GRID_Z] = "gridZ",
	[BLOCK_X] = "blockX",
	[BLOCK_Y] = "blockY",
	[BLOCK_Z] = "blockZ",
	[REGISTERS] = "registersPerThread",
	[STATIC_SHARED] = "staticSharedMemory",
	[DYNAMIC_SHARED] = "dynamicSharedMemory",
	[COPY] = "copyKind",
	[FROM] = "srcKind",
	[TO] = "dstKind",
	[SET_IN] = "memoryKind",
	[SYNC_OF_NSYS] = "syncType",
	[SYNC] = "type",
};

/* ---- cells */

bool cupti_time(const struct cupti *c, const struct db_row *row, unsigned column, uint64_t *ns)
{
	int64_t value;

	if (!db_int(row, column, &value) || __builtin_add_overflow(value, c->base_ns, &value) || value < 0)
		return false;
	*ns = (uint64_t)value;
	return true;
}

bool cupti_times(struct cupti *c, const struct db_row *row, unsigned start, unsigned end, uint64_t *ns,
		 uint64_t *dur_ns)
{
	uint64_t end_ns;

	if (!cupti_time(c, row, start, ns) || !cupti_time(c, row, end, &end_ns) || end_ns < *ns) {
		c->untimed++;
		return false;
	}
	*dur_ns = end_ns - *ns;
	return true;
}

const char *cupti_text(struct cupti *c, const struct db_row *row, unsigned column, size_t *len)
{
	int64_t id;

	if (db_int(row, column, &id))
		return db_text_of(c->db, id, len);
	return db_text(row, column, len);
}

uint32_t cupti_pid(uint64_t id)
{
	return (uint32_t)(id >> 24) & 0xffffff & MDL_PID_MASK;
}

uint32_t cupti_tid(uint64_t id)
{
	return (uint32_t)id & 0xffffff;
}

/* ---- work of devices */

#define COUNT(list)   (sizeof(list) / sizeof((list)[0]))
#define UNIFIED_FIRST 11 /* copies from here on are those of unified memory, which no call asked for */
static const char *const unified[] = {"Unified memory HtoD", "Unified memory DtoH", "Unified memory DtoD"};

/* Nsight Systems numbers the kinds of memory from 0 on. */
static uint8_t memory_of(const struct cupti *c, const struct db_row *row, unsigned column)
{
	int64_t kind;

	if (!db_int(row, column, &kind))
		return 0;
	return (uint8_t)gpu_known(gpu_memories, (uint64_t)kind + c->nsys);
}

static uint64_t name_text(struct cupti *c, const char *text)
{
	return sink_name(c->s, MXBPF_NAME_SPAN, text, strlen(text));
}

/* The name of a kernel, which may be mangled. */
static uint64_t kernel_name(struct cupti *c, const struct db_row *row)
{
	static const unsigned from[] = {READABLE, NAME, SHORT};
	const char *text = NULL;
	uint64_t *known, id;
	int64_t number = 0;
	size_t len, i;
	char *readable;

	for (i = 0; i < COUNT(from) && !text; i++) {
		known = db_int(row, from[i], &number) ? hash_get(&c->kernels, (uint64_t)number, 0) : NULL;
		if (known)
			return *known;
		text = cupti_text(c, row, from[i], &len);
	}
	readable = text && len > 2 && !memcmp(text, "_Z", 2) ? demangle(text) : NULL;
	id = readable || !text ? name_text(c, readable ? readable : "unknown kernel")
			       : sink_name(c->s, MXBPF_NAME_SPAN, text, len);
	free(readable);
	known = number && c->kernels.len < KERNELS_MAX ? hash_put(&c->kernels, (uint64_t)number, 0) : NULL;
	if (known)
		*known = id;
	return id;
}

static bool activity_of(struct cupti *c, const struct db_row *row, enum mxbpf_activity_class cls,
			struct mxbpf_activity *a)
{
	uint64_t ns, dur_ns;

	if (!cupti_times(c, row, START, END, &ns, &dur_ns))
		return false;
	*a = sink_activity(cls, ns, dur_ns, 0);
	a->h.tgid = cupti_pid(db_u64(row, PID));
	a->track.device = (uint32_t)db_u64(row, DEVICE);
	a->track.context = (uint32_t)db_u64(row, CONTEXT);
	a->track.stream = (uint32_t)db_u64(row, STREAM);
	a->edge_id = db_u64(row, CORRELATION);
	a->domain = a->edge_id ? MXBPF_DOMAIN_CUPTI : MXBPF_DOMAIN_NONE;
	a->graph = (uint32_t)db_u64(row, GRAPH);
	a->graph_node = db_u64(row, NODE);
	a->bytes = db_u64(row, BYTES);
	c->events++;
	return true;
}

static int take_kernel(void *ctx, const struct db_row *row)
{
	struct cupti *c = ctx;
	struct mxbpf_activity a;
	unsigned i;

	if (!activity_of(c, row, MXBPF_ACTIVITY_KERNEL, &a))
		return 0;
	a.name_id = kernel_name(c, row);
	for (i = 0; i < 3; i++) {
		a.grid[i] = (uint32_t)db_u64(row, GRID_X + i);
		a.block[i] = (uint16_t)db_u64(row, BLOCK_X + i);
	}
	a.registers = (uint16_t)db_u64(row, REGISTERS);
	a.static_shared = (uint32_t)db_u64(row, STATIC_SHARED);
	a.dynamic_shared = (uint32_t)db_u64(row, DYNAMIC_SHARED);
	return sink_put(c->s, &a.h);
}

/* A graph that was recorded as one piece of work. */
static int take_graph(void *ctx, const struct db_row *row)
{
	struct cupti *c = ctx;
	struct mxbpf_activity a;

	if (!activity_of(c, row, MXBPF_ACTIVITY_KERNEL, &a))
		return 0;
	a.name_id = name_text(c, "CUDA graph");
	return sink_put(c->s, &a.h);
}

static int take_copy(void *ctx, const struct db_row *row)
{
	struct cupti *c = ctx;
	struct mxbpf_activity a;
	char text[GPU_NAME_BYTES];
	uint64_t kind;

	if (!activity_of(c, row, MXBPF_ACTIVITY_COPY, &a))
		return 0;
	kind = db_u64(row, COPY);
	a.copy = (uint8_t)gpu_known(gpu_copies, kind);
	a.from = memory_of(c, row, FROM);
	a.to = memory_of(c, row, TO);
	gpu_copy_name(text, a.copy, a.from, a.to);
	a.name_id = name_text(c, kind >= UNIFIED_FIRST && kind - UNIFIED_FIRST < COUNT(unified)
					 ? unified[kind - UNIFIED_FIRST]
					 : text);
	return sink_put(c->s, &a.h);
}

static int take_set(void *ctx, const struct db_row *row)
{
	struct cupti *c = ctx;
	struct mxbpf_activity a;
	char text[GPU_NAME_BYTES];

	if (!activity_of(c, row, MXBPF_ACTIVITY_SET, &a))
		return 0;
	a.to = memory_of(c, row, SET_IN);
	gpu_set_name(text, a.to);
	a.name_id = name_text(c, text);
	return sink_put(c->s, &a.h);
}

static int take_sync(void *ctx, const struct db_row *row)
{
	struct cupti *c = ctx;
	struct mxbpf_activity a;

	if (!activity_of(c, row, MXBPF_ACTIVITY_SYNC, &a))
		return 0;
	a.sync_type = (uint8_t)gpu_known(gpu_syncs, db_u64(row, c->nsys ? SYNC_OF_NSYS : SYNC));
	a.name_id = name_text(c, gpu_syncs[a.sync_type]);
	a.domain = MXBPF_DOMAIN_NONE; /* the call of the same correlation waited; it launched nothing */
	a.edge_id = 0;
	return sink_put(c->s, &a.h);
}

int cupti_activities(struct cupti *c, struct err *e)
{
	static const struct {
		const char *table;
		int (*take)(void *ctx, const struct db_row *row);
	} tables[] = {
		{"CUPTI_ACTIVITY_KIND_KERNEL", take_kernel},
		{"CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL", take_kernel},
		{"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", take_graph},
		{"CUPTI_ACTIVITY_KIND_MEMCPY", take_copy},
		{"CUPTI_ACTIVITY_KIND_MEMCPY2", take_copy},
		{"CUPTI_ACTIVITY_KIND_MEMSET", take_set},
		{"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", take_sync},
	};
	size_t i;
	int err = 0;

	for (i = 0; i < COUNT(tables) && !err; i++)
		err = db_each(c->db, tables[i].table, columns, COLUMNS, tables[i].take, c, e);
	return err;
}

/* ---- calls */

int cupti_call(struct cupti *c, struct mxbpf_span *call, const char *name, size_t len, uint64_t correlation)
{
	char text[128];
	size_t n = len < sizeof(text) ? len : sizeof(text) - 1, digits;

	for (digits = 0; digits < n && name[n - 1 - digits] >= '0' && name[n - 1 - digits] <= '9';)
		digits++;
	if (digits > 1 && n > digits + 2 && !memcmp(name + n - digits - 2, "_v", 2))
		n -= digits + 2;
	snprintf(text, sizeof(text), "%.*s", (int)n, name ? name : "");
	call->name_id = name_text(c, text);
	c->events++;
	return sink_cuda_call(c->s, call, text, correlation);
}

/* ---- the session */

int cupti_describe(struct cupti *c)
{
	struct mdl_session *s = sink_about(c->s);

	if (c->untimed)
		sink_lost(c->s, c->untimed);
	s->details = (c->shapes ? MXBPF_DETAIL_ARGS : 0) | (c->numbers ? MXBPF_DETAIL_SEQ : 0);
	s->class_title[MXBPF_CLASS_EVENT] = strdup("NVTX range");
	s->class_title[MXBPF_CLASS_OPERATOR] = c->operators ? NULL : strdup("range");
	if (!s->class_title[MXBPF_CLASS_EVENT] || (!c->operators && !s->class_title[MXBPF_CLASS_OPERATOR]))
		return -ENOMEM;
	return sink_runtime(c->s, c->operators ? &adapter_pytorch : NULL);
}

void cupti_fini(struct cupti *c)
{
	db_close(c->db);
	hash_fini(&c->kernels);
	buf_fini(&c->text);
}
