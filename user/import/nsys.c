// SPDX-License-Identifier: Apache-2.0
/*
 * Databases that "nsys export --type sqlite" writes (Nsight Systems 2021.3 and later): calls of CUDA, work of devices,
 * ranges of NVTX, calls of the operating system's libraries, devices, processes and threads.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/cupti.h"
#include "mxbpf_config.h"

#define GPUS_MAX       64
#define DOMAINS_MAX    4096
#define NOTES_MAX      8
#define STRINGS	       "StringIds"
#define OWN_DOMAIN     "mxbpf" /* of operators, in databases that mxbpf wrote */
#define NVTX_CATEGORY  33
#define NVTX_MARK      34
#define NVTX_PUSH_POP  59
#define NVTX_START_END 60
#define NVTX_DOMAIN    75

struct nsys {
	struct cupti c;
	struct hash domains, categories; /* (number, process), (domain and number, process) -> 1 + place in names */
	struct buf names;		 /* each: its length in 4 bytes, and its bytes */
	unsigned notes, ngpus;
	bool numbered; /* processes say which devices they have */
	struct mxbpf_gpu_device gpus[GPUS_MAX];
	int64_t utc_ns;
};

/* ---- calls */

/* The thread and the times of a call, and its name. Returns false if it has no times. */
static bool call_of(struct nsys *n, const struct db_row *row, enum mxbpf_class cls, struct mxbpf_span *call,
		    const char **name, size_t *len)
{
	const uint64_t thread = db_u64(row, 2);
	uint64_t ns, dur_ns;

	if (!cupti_times(&n->c, row, 0, 1, &ns, &dur_ns))
		return false;
	*name = cupti_text(&n->c, row, 3, len);
	*call = sink_span(cupti_pid(thread), cupti_tid(thread), ns, dur_ns, 0, cls);
	return true;
}

static int take_call(void *ctx, const struct db_row *row)
{
	struct nsys *n = ctx;
	struct mxbpf_span call;
	const char *name;
	size_t len;

	return call_of(n, row, MXBPF_CLASS_CUDA, &call, &name, &len)
		       ? cupti_call(&n->c, &call, name, len, db_u64(row, 4))
		       : 0;
}

/* Calls of the system's libraries are within operators. They take nothing from the self times of these. */
static int take_os_call(void *ctx, const struct db_row *row)
{
	struct nsys *n = ctx;
	struct mxbpf_span call;
	const char *name;
	size_t len;

	if (!call_of(n, row, MXBPF_CLASS_API, &call, &name, &len))
		return 0;
	call.name_id = sink_name(n->c.s, MXBPF_NAME_SPAN, name, len);
	call.flags = MXBPF_SPAN_ASYNC;
	n->c.events++;
	return sink_put(n->c.s, &call.h);
}

/* ---- NVTX */

enum {
	N_START,
	N_END,
	N_TYPE,
	N_TEXT,
	N_TEXT_ID,
	N_THREAD,
	N_DOMAIN,
	N_CATEGORY,
	N_COLOR,
	N_U64,
	N_I64,
	N_DOUBLE,
	N_U32,
	N_I32,
	N_FLOAT,
	N_COLUMNS
};
static const char *const nvtx_columns[N_COLUMNS] = {
	"start", "end",		"eventType",  "text",	     "textId",	    "globalTid",  "domainId",  "category",
	"color", "uint64Value", "int64Value", "doubleValue", "uint32Value", "int32Value", "floatValue"};

static const char *nvtx_text(struct nsys *n, const struct db_row *row, size_t *len)
{
	const char *text = cupti_text(&n->c, row, N_TEXT, len);

	return text ? text : cupti_text(&n->c, row, N_TEXT_ID, len);
}

static void put_word(struct nsys *n, struct hash *to, uint64_t number, uint32_t tgid, const char *text, size_t len)
{
	const uint32_t bytes = (uint32_t)(len < 256 ? len : 256);
	uint64_t *at = text && to->len < DOMAINS_MAX ? hash_put(to, number, tgid) : NULL, place = n->names.len;

	if (at && !buf_put(&n->names, &bytes, sizeof(bytes)) && !buf_put(&n->names, text, bytes))
		*at = 1 + place;
}

static const char *get_word(const struct nsys *n, const struct hash *from, uint64_t number, uint32_t tgid, size_t *len)
{
	const uint64_t *at = hash_get(from, number, tgid);
	uint32_t bytes;

	*len = 0;
	if (!at || !*at)
		return NULL;
	memcpy(&bytes, n->names.data + *at - 1, sizeof(bytes));
	*len = bytes;
	return n->names.data + *at - 1 + sizeof(bytes);
}

/* Domains and categories are known before the ranges in them are read. */
static int take_nvtx_word(void *ctx, const struct db_row *row)
{
	struct nsys *n = ctx;
	const uint64_t type = db_u64(row, N_TYPE), domain = db_u64(row, N_DOMAIN);
	const uint32_t tgid = cupti_pid(db_u64(row, N_THREAD));
	const char *text;
	size_t len;

	if (type != NVTX_DOMAIN && type != NVTX_CATEGORY)
		return 0;
	text = nvtx_text(n, row, &len);
	if (type == NVTX_DOMAIN)
		put_word(n, &n->domains, domain, tgid, text, len);
	else
		put_word(n, &n->categories, domain << 32 | (uint32_t)db_u64(row, N_CATEGORY), tgid, text, len);
	return 0;
}

/* The first number of the payload that is there. */
static void read_payload(const struct db_row *row, struct mxbpf_range_data *to)
{
	static const uint8_t types[] = {MXBPF_RANGE_U64, MXBPF_RANGE_I64, MXBPF_RANGE_DOUBLE,
					MXBPF_RANGE_U32, MXBPF_RANGE_I32, MXBPF_RANGE_FLOAT};
	unsigned i;
	int64_t value;
	double real;
	float small;

	for (i = 0; i < sizeof(types) && !to->nvalues; i++) {
		if (types[i] == MXBPF_RANGE_DOUBLE || types[i] == MXBPF_RANGE_FLOAT) {
			if (!db_real(row, N_U64 + i, &real))
				continue;
			small = (float)real;
			if (types[i] == MXBPF_RANGE_DOUBLE)
				memcpy(&to->values[0], &real, sizeof(real));
			else
				memcpy(&to->values[0], &small, sizeof(small));
		} else if (db_int(row, N_U64 + i, &value)) {
			to->values[0] = (uint64_t)value;
		} else {
			continue;
		}
		to->type = types[i];
		to->nvalues = 1;
	}
}

static struct cupti_range range_of(struct nsys *n, const struct db_row *row)
{
	const uint64_t thread = db_u64(row, N_THREAD), domain = db_u64(row, N_DOMAIN);
	struct cupti_range r = {.tgid = cupti_pid(thread), .tid = cupti_tid(thread)};
	const char *category;
	size_t len;

	r.text = nvtx_text(n, row, &r.len);
	r.domain = get_word(n, &n->domains, domain, r.tgid, &r.domain_len);
	if (r.domain && r.domain_len == strlen(OWN_DOMAIN) && !memcmp(r.domain, OWN_DOMAIN, r.domain_len)) {
		r.is_operator = true;
		r.domain = NULL;
	}
	r.data.category = (uint32_t)db_u64(row, N_CATEGORY);
	r.data.color = (uint32_t)db_u64(row, N_COLOR);
	category = get_word(n, &n->categories, domain << 32 | r.data.category, r.tgid, &len);
	r.category_id = category ? sink_name(n->c.s, MXBPF_NAME_SPAN, category, len) : 0;
	read_payload(row, &r.data);
	return r;
}

static int take_nvtx(void *ctx, const struct db_row *row)
{
	struct nsys *n = ctx;
	int64_t type = 0;
	struct cupti_range r;
	uint64_t end_ns;

	/* Small databases of other tools have only the columns of a range. */
	if (!db_int(row, N_TYPE, &type))
		type = NVTX_PUSH_POP;
	if (type != NVTX_MARK && type != NVTX_PUSH_POP && type != NVTX_START_END)
		return 0;
	r = range_of(n, row);
	if (!cupti_time(&n->c, row, N_START, &r.start_ns)) {
		n->c.untimed++;
		return 0;
	}
	if (type == NVTX_MARK)
		return cupti_mark(&n->c, &r);
	if (!cupti_time(&n->c, row, N_END, &end_ns) || end_ns < r.start_ns)
		return 0; /* its end was not recorded */
	r.dur_ns = end_ns - r.start_ns;
	r.apart = type == NVTX_START_END;
	return cupti_range(&n->c, &r);
}

/* ---- the machine and its processes */

static int take_start(void *ctx, const struct db_row *row)
{
	struct nsys *n = ctx;
	int64_t ns;

	if (db_int(row, 0, &ns) && ns > 0 && ns < INT64_MAX / 2)
		n->utc_ns = ns;
	return 0;
}

enum {
	G_ID,
	G_NAME,
	G_MEMORY,
	G_SMS,
	G_MAJOR,
	G_MINOR,
	G_WARPS,
	G_BLOCKS,
	G_REGISTERS,
	G_SHARED,
	G_WARP,
	G_CLOCK,
	G_UUID,
	G_COLUMNS,
};

static const char *const gpu_columns[G_COLUMNS] = {
	[G_ID] = "id",
	[G_NAME] = "name",
	[G_MEMORY] = "totalMemory",
	[G_SMS] = "smCount",
	[G_MAJOR] = "computeMajor",
	[G_MINOR] = "computeMinor",
	[G_WARPS] = "maxWarpsPerSm",
	[G_BLOCKS] = "maxBlocksPerSm",
	[G_REGISTERS] = "maxRegistersPerSm",
	[G_SHARED] = "maxShmemPerSm",
	[G_WARP] = "threadsPerWarp",
	[G_CLOCK] = "clockRate",
	[G_UUID] = "uuid",
};

/* "GPU-01234567-89ab-..." with or without the word. Another text is no uuid. */
static void read_uuid(const char *text, size_t len, uint8_t uuid[16])
{
	static const char hex[] = "0123456789abcdef";
	const char *digit;
	uint8_t got[16] = {0};
	unsigned n = 0;
	size_t i = len > 4 && !memcmp(text, "GPU-", 4) ? 4 : 0;

	for (; i < len && n <= 32; i++) {
		digit = text[i] && text[i] != '-' ? strchr(hex, text[i] | 0x20) : NULL;
		if (!digit && text[i] != '-')
			return;
		if (digit && n < 32)
			got[n / 2] |= (uint8_t)((digit - hex) << (n % 2 ? 0 : 4));
		n += digit != NULL;
	}
	if (n == 32)
		memcpy(uuid, got, sizeof(got));
}

static int take_gpu(void *ctx, const struct db_row *row)
{
	struct nsys *n = ctx;
	size_t len, uuid_len;
	const char *name = cupti_text(&n->c, row, G_NAME, &len), *uuid;
	struct mxbpf_gpu_device *d = &n->gpus[n->ngpus];

	if (n->ngpus == GPUS_MAX)
		return 0;
	n->ngpus++;
	*d = (struct mxbpf_gpu_device){
		.h = {.kind = MXBPF_GPU_DEVICE, .size = sizeof(*d)},
		.name_id = sink_name(n->c.s, MXBPF_NAME_SPAN, name, len),
		.memory_bytes = db_u64(row, G_MEMORY),
		.device = (uint32_t)db_u64(row, G_ID),
		.multiprocessors = (uint32_t)db_u64(row, G_SMS),
		.major = (uint16_t)db_u64(row, G_MAJOR),
		.minor = (uint16_t)db_u64(row, G_MINOR),
		.threads_per_mp = (uint32_t)(db_u64(row, G_WARPS) * db_u64(row, G_WARP)),
		.blocks_per_mp = (uint32_t)db_u64(row, G_BLOCKS),
		.registers_per_mp = (uint32_t)db_u64(row, G_REGISTERS),
		.shared_per_mp = (uint32_t)db_u64(row, G_SHARED),
		.warp = (uint32_t)db_u64(row, G_WARP),
		.clock_khz = (uint32_t)(db_u64(row, G_CLOCK) / 1000),
	};
	uuid = cupti_text(&n->c, row, G_UUID, &uuid_len);
	read_uuid(uuid, uuid_len, d->uuid);
	memcpy(d->whole_uuid, d->uuid, sizeof(d->uuid));
	return 0;
}

/* A process may number its devices otherwise than the machine does. */
static int take_cuda_device(void *ctx, const struct db_row *row)
{
	struct nsys *n = ctx;
	const uint32_t gpu = (uint32_t)db_u64(row, 0);
	struct mxbpf_gpu_device d;
	unsigned i;

	for (i = 0; i < n->ngpus && n->gpus[i].device != gpu; i++)
		;
	if (i == n->ngpus)
		return 0;
	n->numbered = true;
	d = n->gpus[i];
	d.device = (uint32_t)db_u64(row, 1);
	d.h.tgid = (uint32_t)db_u64(row, 2) & MDL_PID_MASK;
	return sink_put(n->c.s, &d.h);
}

static int put_gpus(struct nsys *n)
{
	unsigned i;
	int err = 0;

	for (i = 0; i < n->ngpus && !err && !n->numbered; i++)
		err = sink_put(n->c.s, &n->gpus[i].h);
	return err;
}

static int take_thread(void *ctx, const struct db_row *row)
{
	struct nsys *n = ctx;
	const uint64_t thread = db_u64(row, 0);
	size_t len;
	const char *name = cupti_text(&n->c, row, 1, &len);

	if (len)
		sink_thread(n->c.s, cupti_pid(thread), cupti_tid(thread), name, len);
	return 0;
}

static int fill_text(char **to, const char *text, size_t len)
{
	if (!text || !len || *to)
		return 0;
	*to = strndup(text, len);
	return *to ? 0 : -ENOMEM;
}

/* The process of the session is the first one that called CUDA. */
static int take_process(void *ctx, const struct db_row *row)
{
	struct nsys *n = ctx;
	struct mdl_session *about = sink_about(n->c.s);
	const char *path, *slash;
	size_t len;

	if ((db_u64(row, 1) & MDL_PID_MASK) != about->pid)
		return 0;
	path = cupti_text(&n->c, row, 2, &len);
	slash = path && len ? memrchr(path, '/', len) : NULL;
	return slash ? fill_text(&about->comm, slash + 1, (size_t)(path + len - slash - 1))
		     : fill_text(&about->comm, path, len);
}

static int take_environment(void *ctx, const struct db_row *row)
{
	static const char *const hosts[] = {"Hostname", "Host name", "hostname", "HostName"};
	struct nsys *n = ctx;
	size_t len, key_len, i;
	const char *key = cupti_text(&n->c, row, 0, &key_len);

	for (i = 0; key && i < sizeof(hosts) / sizeof(hosts[0]); i++)
		if (key_len == strlen(hosts[i]) && !memcmp(key, hosts[i], key_len)) {
			const char *value = cupti_text(&n->c, row, 1, &len);

			return fill_text(&sink_about(n->c.s)->hostname, value, len);
		}
	return 0;
}

static int first_process(void *ctx, const struct db_row *row)
{
	struct nsys *n = ctx;
	struct mdl_session *about = sink_about(n->c.s);

	if (!about->pid)
		about->pid = cupti_pid(db_u64(row, 0));
	return about->pid ? 1 : 0; /* ends the reading */
}

/* Nsight Systems says what it lost, or could not record, in words. */
static int take_diagnostic(void *ctx, const struct db_row *row)
{
	static const char *const words[] = {"lost", "dropped", "not all", "incomplete", "missing", "overflow"};
	struct nsys *n = ctx;
	size_t len, i;
	const char *text = cupti_text(&n->c, row, 1, &len);
	char line[256];

	snprintf(line, sizeof(line), "%.*s", (int)(len < sizeof(line) ? len : sizeof(line) - 1), text ? text : "");
	line[strcspn(line, "\n")] = '\0';
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasestr(line, words[i]))
			break;
	if (i == sizeof(words) / sizeof(words[0]) || n->notes >= NOTES_MAX)
		return 0;
	n->notes++;
	return sink_note(n->c.s, "trace", "Nsight Systems says: %s", line);
}

/* ---- the file */

#define LIST(...) (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)

static const struct {
	const char *table;
	const char *const *columns;
	unsigned n;
	int (*take)(void *ctx, const struct db_row *row);
} before[] =
	{
		{"TARGET_INFO_SESSION_START_TIME", LIST("utcEpochNs"), take_start},
		{"CUPTI_ACTIVITY_KIND_RUNTIME", LIST("globalTid"), first_process},
		{"NVTX_EVENTS", LIST("globalTid"), first_process},
		{"PROCESSES", LIST("globalPid", "pid", "name"), take_process},
		{"TARGET_INFO_SYSTEM_ENV", LIST("name", "value"), take_environment},
		{"TARGET_INFO_GPU", gpu_columns, G_COLUMNS, take_gpu},
		{"TARGET_INFO_CUDA_DEVICE", LIST("gpuId", "cudaId", "pid"), take_cuda_device},
		{"ThreadNames", LIST("globalTid", "nameId"), take_thread},
		{"DIAGNOSTIC_EVENT", LIST("severity", "text"), take_diagnostic},
		{"NVTX_EVENTS", nvtx_columns, N_COLUMNS, take_nvtx_word},
},
  events[] = {
	  {"CUPTI_ACTIVITY_KIND_RUNTIME", LIST("start", "end", "globalTid", "nameId", "correlationId"), take_call},
	  {"CUPTI_ACTIVITY_KIND_DRIVER", LIST("start", "end", "globalTid", "nameId", "correlationId"), take_call},
	  {"OSRT_API", LIST("start", "end", "globalTid", "nameId"), take_os_call},
	  {"NVTX_EVENTS", nvtx_columns, N_COLUMNS, take_nvtx},
};

static int read_before(struct nsys *n, struct err *e)
{
	size_t i;
	int err = 0;

	for (i = 0; i < sizeof(before) / sizeof(before[0]) && !err; i++) {
		err = db_each(n->c.db, before[i].table, before[i].columns, before[i].n, before[i].take, n, e);
		err = err > 0 ? 0 : err;
	}
	n->c.base_ns = n->utc_ns;
	return err ? err : put_gpus(n);
}

static int read_events(struct nsys *n, struct err *e)
{
	size_t i;
	int err = 0;

	for (i = 0; i < sizeof(events) / sizeof(events[0]) && !err; i++)
		err = db_each(n->c.db, events[i].table, events[i].columns, events[i].n, events[i].take, n, e);
	return err ? err : cupti_activities(&n->c, e);
}

static bool has_tables(struct db *db)
{
	size_t i;

	for (i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		if (db_has(db, events[i].table))
			return true;
	return db_has(db, STRINGS) || db_has(db, "CUPTI_ACTIVITY_KIND_KERNEL");
}

static int nsys_read(struct sink *s, int fd, struct err *e)
{
	struct nsys n = {.c = {.s = s, .nsys = true}};
	struct mdl_session *about = sink_about(s);
	int err = db_open(fd, &n.c.db, e);

	if (!err && !has_tables(n.c.db))
		err = err_set(e, ERR_RUNTIME, -EINVAL, "it is a SQLite database, but not of Nsight Systems or nvprof");
	err = err ? err : db_texts(n.c.db, STRINGS, "id", "value", e);
	err = err ? err : read_before(&n, e);
	err = err ? err : read_events(&n, e);
	if (!err && !n.c.events)
		err = err_set(e, ERR_RUNTIME, -EINVAL, "it has no events of CUDA, NVTX or the system's libraries");
	err = err ? err : cupti_describe(&n.c);
	if (!err) {
		about->class_title[MXBPF_CLASS_API] = strdup("OS call");
		err = about->class_title[MXBPF_CLASS_API] ? 0 : -ENOMEM;
	}
	cupti_fini(&n.c);
	hash_fini(&n.domains);
	hash_fini(&n.categories);
	buf_fini(&n.names);
	return err;
}

/* Databases of all other programs, too: the reader says what they lack. */
static bool nsys_is(int fd, const void *head, size_t n)
{
	return db_is(head, n);
}

const struct import_format import_nsys = {"database of Nsight Systems", "Nsight Systems", nsys_is, nsys_read};
