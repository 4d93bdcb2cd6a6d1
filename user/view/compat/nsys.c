// SPDX-License-Identifier: Apache-2.0
/*
 * A database in the schema of "nsys export --type sqlite", for "nsys stats", nsys-ui and what else reads such files.
 * Operators are ranges of NVTX in the domain "mxbpf", and calls of other tables in "mxbpf: TABLE"; annotations of the
 * program are ranges without a domain. A column that mxbpf does not know is NULL, so such columns need not have a
 * value.
 */
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/sqlite_fd.h"
#include "mxbpf_track.h"
#include "records/kinds.h"
#include "view/compat/compat.h"
#include "view/priv.h"

#define NVTX_PUSH_POP  59
#define NVTX_START_END 60
#define NVTX_DOMAIN    75
#define KIND_UNKNOWN   7 /* of memory; the others are CUPTI's numbers less 1 */
#define COPY_BYTES     (1u << 16)

/* ---- the schema */

static const char schema[] =
	"CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);"
	"CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);"
	"CREATE TABLE META_DATA_CAPTURE (name TEXT NOT NULL, value TEXT);"
	"CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);"
	"CREATE TABLE TARGET_INFO_SYSTEM_ENV (globalVid INTEGER, devStateName TEXT, name TEXT, nameEnum INTEGER, value "
	"TEXT);"
	"CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT,"
	" isDiscrete INTEGER, l2CacheSize INTEGER, totalMemory INTEGER, memoryBandwidth INTEGER, clockRate INTEGER,"
	" smCount INTEGER, pwGpuId INTEGER, uuid TEXT, luid INTEGER, chipName TEXT, cuDevice INTEGER, ctxswDevPath "
	"TEXT,"
	" ctrlDevPath TEXT, revision INTEGER, nodeMask INTEGER, constantMemory INTEGER, maxIPC INTEGER,"
	" maxRegistersPerBlock INTEGER, maxShmemPerBlock INTEGER, maxShmemPerBlockOptin INTEGER,"
	" maxShmemPerSm INTEGER, maxRegistersPerSm INTEGER, threadsPerWarp INTEGER, asyncEngines INTEGER,"
	" maxWarpsPerSm INTEGER, maxBlocksPerSm INTEGER, maxThreadsPerBlock INTEGER, maxBlockDimX INTEGER,"
	" maxBlockDimY INTEGER, maxBlockDimZ INTEGER, maxGridDimX INTEGER, maxGridDimY INTEGER, maxGridDimZ INTEGER,"
	" computeMajor INTEGER, computeMinor INTEGER, smMajor INTEGER, smMinor INTEGER);"
	"CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);"
	"CREATE TABLE ThreadNames (nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER);"
	"CREATE TABLE DIAGNOSTIC_EVENT (timestamp INTEGER NOT NULL, timestampType INTEGER NOT NULL, source INTEGER NOT "
	"NULL,"
	" severity INTEGER NOT NULL, text TEXT NOT NULL, globalPid INTEGER);"
	"CREATE TABLE ANALYSIS_DETAILS (globalVid INTEGER, duration INTEGER NOT NULL, startTime INTEGER NOT NULL,"
	" stopTime INTEGER NOT NULL);"
	"CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER,"
	" category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER,"
	" domainId INTEGER, uint64Value INTEGER, int64Value INTEGER, doubleValue REAL, uint32Value INTEGER,"
	" int32Value INTEGER, floatValue REAL, jsonTextId INTEGER, jsonText TEXT, binaryData TEXT);"
	"CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER "
	"NOT "
	"NULL,"
	" globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER, callchainId INTEGER);"
	"CREATE INDEX mxbpf_calls ON CUPTI_ACTIVITY_KIND_RUNTIME (start, globalTid, nameId);"
	"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT "
	"NULL,"
	" contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER,"
	" globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER,"
	" launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER, gridX INTEGER, gridY INTEGER,"
	" gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER, staticSharedMemory INTEGER,"
	" dynamicSharedMemory INTEGER, localMemoryPerThread INTEGER, localMemoryTotal INTEGER, gridId INTEGER,"
	" sharedMemoryExecuted INTEGER, graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER, graphId INTEGER);"
	"CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT "
	"NULL,"
	" contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER,"
	" globalPid INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, deprecatedSrcId INTEGER, srcKind "
	"INTEGER,"
	" dstKind INTEGER, srcDeviceId INTEGER, srcContextId INTEGER, dstDeviceId INTEGER, dstContextId INTEGER,"
	" migrationCause INTEGER, graphNodeId INTEGER, virtualAddress INTEGER, copyCount INTEGER);"
	"CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT "
	"NULL,"
	" contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER,"
	" globalPid INTEGER, value INTEGER, bytes INTEGER NOT NULL, graphNodeId INTEGER, memKind INTEGER);"
	"CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId "
	"INTEGER "
	"NOT"
	" NULL, contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER,"
	" globalPid INTEGER, syncType INTEGER NOT NULL, eventId INTEGER, eventSyncId INTEGER);";

/* Words of the numbers in the tables. */
static const struct {
	const char *table;
	struct {
		int id;
		const char *name, *label;
	} words[15];
} enums[] = {
	{"ENUM_CUDA_MEMCPY_OPER",
	 {{0, "CUDA_MEMCPY_KIND_UNKNOWN", "Unknown"},
	  {1, "CUDA_MEMCPY_KIND_HTOD", "Host-to-Device"},
	  {2, "CUDA_MEMCPY_KIND_DTOH", "Device-to-Host"},
	  {3, "CUDA_MEMCPY_KIND_HTOA", "Host-to-Array"},
	  {4, "CUDA_MEMCPY_KIND_ATOH", "Array-to-Host"},
	  {5, "CUDA_MEMCPY_KIND_ATOA", "Array-to-Array"},
	  {6, "CUDA_MEMCPY_KIND_ATOD", "Array-to-Device"},
	  {7, "CUDA_MEMCPY_KIND_DTOA", "Device-to-Array"},
	  {8, "CUDA_MEMCPY_KIND_DTOD", "Device-to-Device"},
	  {9, "CUDA_MEMCPY_KIND_HTOH", "Host-to-Host"},
	  {10, "CUDA_MEMCPY_KIND_PTOP", "Peer-to-Peer"},
	  {11, "CUDA_MEMCPY_KIND_UVM_HTOD", "Unified Host-to-Device"},
	  {12, "CUDA_MEMCPY_KIND_UVM_DTOH", "Unified Device-to-Host"},
	  {13, "CUDA_MEMCPY_KIND_UVM_DTOD", "Unified Device-to-Device"}}},
	{"ENUM_CUDA_MEM_KIND",
	 {{0, "CUDA_MEMOPR_MEMORY_KIND_PAGEABLE", "Pageable"},
	  {1, "CUDA_MEMOPR_MEMORY_KIND_PINNED", "Pinned"},
	  {2, "CUDA_MEMOPR_MEMORY_KIND_DEVICE", "Device"},
	  {3, "CUDA_MEMOPR_MEMORY_KIND_ARRAY", "Array"},
	  {4, "CUDA_MEMOPR_MEMORY_KIND_MANAGED", "Managed"},
	  {5, "CUDA_MEMOPR_MEMORY_KIND_DEVICE_STATIC", "Device Static"},
	  {6, "CUDA_MEMOPR_MEMORY_KIND_MANAGED_STATIC", "Managed Static"},
	  {KIND_UNKNOWN, "CUDA_MEMOPR_MEMORY_KIND_UNKNOWN", "Unknown"}}},
	{"ENUM_CUPTI_SYNC_TYPE",
	 {{0, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_UNKNOWN", "Unknown"},
	  {1, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE", "Event sync"},
	  {2, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT", "Stream wait event"},
	  {3, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE", "Stream sync"},
	  {4, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE", "Context sync"}}},
	{"ENUM_NSYS_EVENT_TYPE",
	 {{NVTX_PUSH_POP, "NvtxPushPopRange", "NVTX push/pop range"},
	  {NVTX_START_END, "NvtxStartEndRange", "NVTX start/end range"},
	  {NVTX_DOMAIN, "NvtxDomainCreate", "NVTX domain"}}},
};

/* Statements, by the number that they have below. Each parameter is bound in the order of its columns. */
enum statement {
	S_TEXT,
	S_META,
	S_START,
	S_ANALYSIS,
	S_ENV,
	S_GPU,
	S_PROCESS,
	S_THREAD,
	S_LOSS,
	S_NVTX,
	S_CALL,
	S_JOIN_CALL,
	S_JOIN_LAUNCH,
	S_KERNEL,
	S_COPY,
	S_SET,
	S_SYNC,
	STATEMENTS
};
static const char *const statements[STATEMENTS] = {
	[S_TEXT] = "INSERT INTO StringIds VALUES (?, ?)",
	[S_META] = "INSERT INTO META_DATA_EXPORT VALUES (?, ?)",
	[S_START] = "INSERT INTO TARGET_INFO_SESSION_START_TIME (utcEpochNs, utcTime) VALUES (?1, "
		    "strftime('%Y-%m-%dT%H:%M:%SZ', ?1 / 1000000000, 'unixepoch'))",
	[S_ANALYSIS] = "INSERT INTO ANALYSIS_DETAILS VALUES (NULL, ?, 0, ?)",
	[S_ENV] = "INSERT INTO TARGET_INFO_SYSTEM_ENV (name, value) VALUES (?, ?)",
	/* Each process says which devices it has, and a device has one row. */
	[S_GPU] =
		"INSERT INTO TARGET_INFO_GPU (vmId, id, name, totalMemory, clockRate, smCount, maxShmemPerSm, "
		"maxRegistersPerSm, threadsPerWarp, maxWarpsPerSm, maxBlocksPerSm, computeMajor, computeMinor) SELECT "
		"?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13 WHERE NOT EXISTS (SELECT 1 FROM "
		"TARGET_INFO_GPU "
		"WHERE vmId = ?1 AND id = ?2)",
	[S_PROCESS] = "INSERT INTO PROCESSES VALUES (?, ?, ?)",
	[S_THREAD] = "INSERT INTO ThreadNames (nameId, globalTid) VALUES (?, ?)",
	[S_LOSS] = "INSERT INTO DIAGNOSTIC_EVENT VALUES (0, 0, 0, 2, ?, NULL)",
	[S_NVTX] =
		"INSERT INTO NVTX_EVENTS (start, end, eventType, globalTid, endGlobalTid, textId, domainId) VALUES (?, "
		"?, ?, ?, ?, ?, ?)",
	/*
	 * A launch and the call that it is are two records, which come in any order. A launch without its call has -1
	 * as its class.
	 */
	[S_CALL] = "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME (start, end, eventClass, globalTid, correlationId, nameId) "
		   "VALUES (?, ?, ?, ?, ?, ?)",
	[S_JOIN_CALL] = "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET eventClass = 0 WHERE rowid = (SELECT rowid FROM "
			"CUPTI_ACTIVITY_KIND_RUNTIME WHERE start = ? AND globalTid = ? AND nameId = ? AND eventClass = "
			"-1 LIMIT 1)",
	[S_JOIN_LAUNCH] =
		"UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET correlationId = ?4 WHERE rowid = (SELECT rowid FROM "
		"CUPTI_ACTIVITY_KIND_RUNTIME WHERE start = ?1 AND globalTid = ?2 AND nameId = ?3 AND eventClass "
		"= 0 AND correlationId IS NULL LIMIT 1)",
	[S_KERNEL] =
		"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, contextId, streamId, correlationId, "
		"globalPid, demangledName, shortName, registersPerThread, gridX, gridY, gridZ, blockX, blockY, "
		"blockZ, staticSharedMemory, dynamicSharedMemory, graphNodeId, graphId) VALUES (?, ?, ?, ?, ?, ?, "
		"?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[S_COPY] =
		"INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, contextId, streamId, correlationId, "
		"globalPid, bytes, copyKind, srcKind, dstKind, graphNodeId) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
		"?)",
	[S_SET] = "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET (start, end, deviceId, contextId, streamId, correlationId, "
		  "globalPid, bytes, memKind, graphNodeId) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[S_SYNC] = "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start, end, deviceId, contextId, streamId, "
		   "correlationId, globalPid, syncType) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
};

struct nsys {
	struct view s;
	int fd;
	sqlite3 *db;
	sqlite3_stmt *all[STATEMENTS], *now;
	int column;	     /* of `now` that is bound next */
	struct hash texts;   /* name_id -> its place in StringIds */
	struct hash threads; /* (pid, tid), (pid, none) -> 1 */
	uint64_t base_ns;
	uint64_t ntexts;
	bool failed;
};

#define NO_THREAD UINT64_MAX

/* ---- rows */

static void nsys_begin_row(struct nsys *n, enum statement which)
{
	n->now = n->all[which];
	n->column = 0;
}

static void put_i64(struct nsys *n, int64_t v)
{
	n->failed |= sqlite3_bind_int64(n->now, ++n->column, v) != SQLITE_OK;
}

static void put_u64(struct nsys *n, uint64_t v)
{
	put_i64(n, (int64_t)v);
}

/* A number that is not known if it is 0. */
static void put_known(struct nsys *n, uint64_t v)
{
	if (v)
		put_u64(n, v);
	else
		n->column++;
}

static void put_text(struct nsys *n, const char *text, size_t len)
{
	n->failed |= sqlite3_bind_text64(n->now, ++n->column, text, len, SQLITE_STATIC, SQLITE_UTF8) != SQLITE_OK;
}

static void nsys_end_row(struct nsys *n)
{
	n->failed |= sqlite3_step(n->now) != SQLITE_DONE;
	sqlite3_reset(n->now);
	sqlite3_clear_bindings(n->now);
}

static int64_t put_string(struct nsys *n, const char *text, size_t len)
{
	nsys_begin_row(n, S_TEXT);
	put_u64(n, ++n->ntexts);
	put_text(n, text, len);
	nsys_end_row(n);
	return (int64_t)n->ntexts;
}

/* The place of a name in StringIds. It is called before the row that refers to it is begun. */
static int64_t string_of(struct nsys *n, uint64_t name_id)
{
	uint64_t *at = hash_put(&n->texts, name_id, 0);
	const char *text;
	size_t len;

	if (!at) {
		n->failed = true;
		return 0;
	}
	if (!*at) {
		text = mdl_name(n->s.in->model, name_id, &len);
		*at = (uint64_t)put_string(n, text, len);
	}
	return (int64_t)*at;
}

static int64_t ns_of(const struct nsys *n, uint64_t ns)
{
	return (int64_t)(ns - n->base_ns);
}

/* A host of a merged recording is a virtual machine. */
static uint64_t vm_of(uint32_t pid)
{
	return 1 + (pid >> MDL_PID_BITS);
}

static uint64_t global_pid(uint32_t pid)
{
	return vm_of(pid) << 48 | (uint64_t)(pid & MDL_PID_MASK) << 24;
}

/* Ids of threads have 24 bits. */
static uint64_t global_tid(struct nsys *n, uint32_t pid, uint32_t tid)
{
	const uint64_t id = global_pid(pid) | (tid & 0xffffff);
	uint64_t *seen = hash_put(&n->threads, pid, tid);
	const char *name;
	int64_t text;

	if (seen && *seen)
		return id;
	if (!seen)
		n->failed = true;
	else
		*seen = 1;
	name = mdl_thread_name(n->s.in->model, pid, tid);
	if (name) {
		text = put_string(n, name, strlen(name));
		nsys_begin_row(n, S_THREAD);
		put_i64(n, text);
		put_u64(n, id);
		nsys_end_row(n);
	}
	return id;
}

/* Each process has a domain for each class of calls that are not the program's own. */
static void put_domains(struct nsys *n, uint32_t pid)
{
	const struct mdl_session *ss = n->s.in->session;
	char text[64];
	int64_t name;
	unsigned cls;

	for (cls = 1; cls < MXBPF_CLASS_MAX; cls++) {
		snprintf(text, sizeof(text), cls == MXBPF_CLASS_OPERATOR ? "mxbpf" : "mxbpf: %.40s",
			 mdl_class_title(ss, cls));
		name = put_string(n, text, strlen(text));
		nsys_begin_row(n, S_NVTX);
		put_i64(n, 0);
		put_known(n, 0);
		put_i64(n, NVTX_DOMAIN);
		put_u64(n, global_pid(pid));
		put_known(n, 0);
		put_i64(n, name);
		put_i64(n, cls);
		nsys_end_row(n);
	}
}

static void see_process(struct nsys *n, uint32_t pid)
{
	const struct mdl_session *ss = n->s.in->session;
	uint64_t *seen = hash_put(&n->threads, pid, NO_THREAD);

	if (!seen || *seen) {
		n->failed |= !seen;
		return;
	}
	*seen = 1;
	nsys_begin_row(n, S_PROCESS);
	put_u64(n, global_pid(pid));
	put_u64(n, pid & MDL_PID_MASK);
	if (pid == ss->pid && ss->comm)
		put_text(n, ss->comm, strlen(ss->comm));
	nsys_end_row(n);
	put_domains(n, pid);
}

/* ---- records */

/* A call, or a launch, which has a number. */
static void put_call(struct nsys *n, const struct mxbpf_rec *r, uint32_t tid, uint64_t dur_ns, uint64_t name_id,
		     uint64_t launch)
{
	const uint64_t thread = global_tid(n, r->tgid, tid);
	const int64_t name = string_of(n, name_id);

	nsys_begin_row(n, launch ? S_JOIN_LAUNCH : S_JOIN_CALL);
	put_i64(n, ns_of(n, r->ts_ns));
	put_u64(n, thread);
	put_i64(n, name);
	if (launch)
		put_u64(n, launch);
	nsys_end_row(n);
	if (sqlite3_changes(n->db))
		return;
	nsys_begin_row(n, S_CALL);
	put_i64(n, ns_of(n, r->ts_ns));
	put_i64(n, ns_of(n, r->ts_ns + dur_ns));
	put_i64(n, launch ? -1 : 0);
	put_u64(n, thread);
	put_known(n, launch);
	put_i64(n, name);
	nsys_end_row(n);
}

static void nsys_span(struct nsys *n, const struct mxbpf_span *s)
{
	const bool apart = s->flags & MXBPF_SPAN_ASYNC;
	uint64_t thread, end_thread;
	int64_t name;

	if (s->cls == MXBPF_CLASS_CUDA) {
		put_call(n, &s->h, s->tid, s->dur_ns, s->name_id, 0);
		return;
	}
	thread = global_tid(n, s->h.tgid, s->tid);
	end_thread = apart ? global_tid(n, s->h.tgid, s->end_tid) : 0;
	name = string_of(n, s->name_id);
	nsys_begin_row(n, S_NVTX);
	put_i64(n, ns_of(n, s->h.ts_ns));
	put_i64(n, ns_of(n, s->h.ts_ns + s->dur_ns));
	put_i64(n, apart ? NVTX_START_END : NVTX_PUSH_POP);
	put_u64(n, thread);
	put_known(n, end_thread);
	put_i64(n, name);
	put_i64(n, s->flags & MXBPF_SPAN_USER ? 0 : s->cls);
	nsys_end_row(n);
}

static unsigned memory_of(unsigned kind)
{
	return kind && kind <= KIND_UNKNOWN ? kind - 1 : KIND_UNKNOWN;
}

/* Binds the columns that the tables of kernels, copies, memsets and waits begin with. */
static void begin_work(struct nsys *n, enum statement which, const struct mxbpf_activity *a)
{
	nsys_begin_row(n, which);
	put_i64(n, ns_of(n, a->h.ts_ns));
	put_i64(n, ns_of(n, a->h.ts_ns + a->dur_ns));
	put_u64(n, a->track.device);
	put_u64(n, a->track.context);
	put_u64(n, a->track.stream);
	put_known(n, a->edge_id);
	put_u64(n, global_pid(a->h.tgid));
}

static void put_kernel(struct nsys *n, const struct mxbpf_activity *a)
{
	const int64_t name = string_of(n, a->name_id);
	unsigned i;

	begin_work(n, S_KERNEL, a);
	put_i64(n, name);
	put_i64(n, name);
	put_known(n, a->registers);
	for (i = 0; i < 3; i++)
		put_known(n, a->grid[i]);
	for (i = 0; i < 3; i++)
		put_known(n, a->block[i]);
	put_u64(n, a->static_shared);
	put_u64(n, a->dynamic_shared);
	put_known(n, a->graph_node);
	put_known(n, a->graph);
}

static void nsys_work(struct nsys *n, const struct mxbpf_activity *a)
{
	see_process(n, a->h.tgid);
	switch (a->cls) {
	case MXBPF_ACTIVITY_KERNEL:
		put_kernel(n, a);
		break;
	case MXBPF_ACTIVITY_COPY:
		begin_work(n, S_COPY, a);
		put_u64(n, a->bytes);
		put_u64(n, a->copy);
		put_u64(n, memory_of(a->from));
		put_u64(n, memory_of(a->to));
		put_known(n, a->graph_node);
		break;
	case MXBPF_ACTIVITY_SET:
		begin_work(n, S_SET, a);
		put_u64(n, a->bytes);
		put_u64(n, memory_of(a->to));
		put_known(n, a->graph_node);
		break;
	default:
		begin_work(n, S_SYNC, a);
		put_u64(n, a->sync_type);
	}
	nsys_end_row(n);
}

static void put_gpu(struct nsys *n, const struct mxbpf_gpu_device *d)
{
	size_t len;
	const char *name = mdl_name(n->s.in->model, d->name_id, &len);

	nsys_begin_row(n, S_GPU);
	put_u64(n, vm_of(d->h.tgid));
	put_u64(n, d->device);
	put_text(n, name, len);
	put_known(n, d->memory_bytes);
	put_known(n, (uint64_t)d->clock_khz * 1000);
	put_known(n, d->multiprocessors);
	put_known(n, d->shared_per_mp);
	put_known(n, d->registers_per_mp);
	put_known(n, d->warp);
	put_known(n, d->warp ? d->threads_per_mp / d->warp : 0);
	put_known(n, d->blocks_per_mp);
	put_known(n, d->major);
	put_u64(n, d->minor);
	nsys_end_row(n);
}

static int nsys_record(struct view *s, const struct mxbpf_rec *r)
{
	struct nsys *n = (struct nsys *)s;
	struct mxbpf_activity a = {.domain = 0};
	struct mxbpf_launch l = {.domain = 0};
	struct mxbpf_gpu_device d = {.device = 0};
	struct mxbpf_span span;

	if (r->kind == MXBPF_SPAN) {
		kind_span(r, &span);
		see_process(n, r->tgid);
		nsys_span(n, &span);
	} else if (r->kind == MXBPF_ACTIVITY) {
		memcpy(&a, r, r->size < sizeof(a) ? r->size : sizeof(a));
		nsys_work(n, &a);
	} else if (r->kind == MXBPF_LAUNCH) {
		memcpy(&l, r, r->size < sizeof(l) ? r->size : sizeof(l));
		if (l.call_id && l.edge_id)
			put_call(n, r, l.tid, l.dur_ns, l.call_id, l.edge_id);
	} else if (r->kind == MXBPF_GPU_DEVICE) {
		memcpy(&d, r, r->size < sizeof(d) ? r->size : sizeof(d));
		put_gpu(n, &d);
	}
	return n->failed
		       ? err_set(s->err, ERR_RUNTIME, -EIO, "the database cannot be written: %s", sqlite3_errmsg(n->db))
		       : 0;
}

/* ---- the file */

static bool nsys_run(struct nsys *n, const char *sql)
{
	return sqlite3_exec(n->db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

static bool put_enums(struct nsys *n)
{
	char sql[256];
	size_t i, k;

	for (i = 0; i < sizeof(enums) / sizeof(enums[0]); i++) {
		snprintf(sql, sizeof(sql), "CREATE TABLE %s (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT)",
			 enums[i].table);
		if (!nsys_run(n, sql))
			return false;
		for (k = 0; enums[i].words[k].name; k++) {
			snprintf(sql, sizeof(sql), "INSERT INTO %s VALUES (%d, '%s', '%s')", enums[i].table,
				 enums[i].words[k].id, enums[i].words[k].name, enums[i].words[k].label);
			if (!nsys_run(n, sql))
				return false;
		}
	}
	return true;
}

static void put_pair(struct nsys *n, enum statement which, const char *name, const char *value)
{
	nsys_begin_row(n, which);
	put_text(n, name, strlen(name));
	put_text(n, value, strlen(value));
	nsys_end_row(n);
}

static void put_about(struct nsys *n)
{
	const struct mdl_session *ss = n->s.in->session;
	char text[160];

	put_pair(n, S_META, "EXPORT_PRODUCT_NAME", "mxbpf");
	put_pair(n, S_META, "EXPORT_PRODUCT_VERSION", ss->mxbpf_version ? ss->mxbpf_version : "");
	if (ss->hostname && *ss->hostname)
		put_pair(n, S_ENV, "Hostname", ss->hostname);
	if (ss->start_unix_ns) {
		nsys_begin_row(n, S_START);
		put_u64(n, ss->start_unix_ns);
		nsys_end_row(n);
	}
	nsys_begin_row(n, S_ANALYSIS);
	put_u64(n, ss->duration_ns);
	put_u64(n, ss->duration_ns);
	nsys_end_row(n);
	if (ss->loss.dropped) {
		snprintf(text, sizeof(text), "Not all events might have been collected: %llu of %llu are lost.",
			 (unsigned long long)ss->loss.dropped, (unsigned long long)ss->loss.attempted);
		nsys_begin_row(n, S_LOSS);
		put_text(n, text, strlen(text));
		nsys_end_row(n);
	}
}

static int nsys_open(struct nsys *n)
{
	char name[16];
	unsigned i;

	snprintf(name, sizeof(name), "%d", n->fd);
	if (sqlite_fd_register() ||
	    sqlite3_open_v2(name, &n->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
			    SQLITE_FD_VFS) != SQLITE_OK ||
	    !nsys_run(n, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY; "
			 "PRAGMA cache_size = -16384; BEGIN") ||
	    !nsys_run(n, schema) || !put_enums(n))
		return -EIO;
	for (i = 0; i < STATEMENTS; i++)
		if (sqlite3_prepare_v3(n->db, statements[i], -1, SQLITE_PREPARE_PERSISTENT, &n->all[i], NULL) !=
		    SQLITE_OK)
			return -EIO;
	return 0;
}

static int nsys_begin(struct view *s)
{
	struct nsys *n = (struct nsys *)s;

	n->base_ns = s->in->session->start_mono_ns;
	n->fd = out_scratch(NULL, s->err);
	if (n->fd < 0)
		return n->fd;
	if (nsys_open(n))
		return err_set(s->err, ERR_RUNTIME, -EIO, "the database cannot be made: %s",
			       n->db ? sqlite3_errmsg(n->db) : "out of memory");
	put_about(n);
	return 0;
}

static int nsys_end(struct view *s)
{
	struct nsys *n = (struct nsys *)s;
	char piece[COPY_BYTES];
	off_t at = 0;
	ssize_t got;

	if (n->failed || !nsys_run(n, "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET eventClass = 0 WHERE eventClass; "
				      "DROP INDEX mxbpf_calls; COMMIT"))
		return err_set(s->err, ERR_RUNTIME, -EIO, "the database cannot be written: %s", sqlite3_errmsg(n->db));
	while ((got = pread(n->fd, piece, sizeof(piece), at)) > 0) {
		out_write(s->out, piece, (size_t)got);
		at += got;
	}
	return got ? err_set(s->err, ERR_RUNTIME, -errno, "%s", strerror(errno)) : 0;
}

static void nsys_fini(struct view *s)
{
	struct nsys *n = (struct nsys *)s;
	unsigned i;

	for (i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(n->all[i]);
	sqlite3_close(n->db);
	if (n->fd > 0)
		close(n->fd);
	hash_fini(&n->texts);
	hash_fini(&n->threads);
}

static const char *const suffixes[] = {".sqlite", NULL};
static const char *const magic[] = {"SQLite format 3", NULL};

const struct view_ops view_nsys = {
	.name = "nsys",
	.help = "a database in the schema of nsys export --type sqlite, for nsys stats",
	.suffixes = suffixes,
	.magic = magic,
	.binary = true,
	.needs_records = true,
	.by_process = true,
	.state_bytes = sizeof(struct nsys),
	.begin = nsys_begin,
	.record = nsys_record,
	.end = nsys_end,
	.fini = nsys_fini,
};
