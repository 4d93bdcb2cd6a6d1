// SPDX-License-Identifier: Apache-2.0
/*
 * The META chunk: struct mdl_session as one JSON object whose members have the names of the struct. `libs`, `probes`,
 * `devices`, `fallbacks`, `notes`, `processes`, `labels`, `counters` and `gaps` are arrays of objects, `class_title` is
 * an array by enum mxbpf_class, and absent texts are null. 64-bit numbers are decimal strings, because most readers
 * (cJSON, too) treat a JSON number as a double. Strings are bytes of the target and not always UTF-8. A reader ignores
 * members that it does not know; a missing member is empty or 0.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "record/record.h"

/* Limits far above real recordings. Without them 16 MiB of "[0,0,0" would need gigabytes of memory. */
#define TOKENS_MAX (2u << 20) /* members and items of all lists */
#define ITEMS_MAX  (1 << 18)  /* of one list */

enum field_type {
	TEXT,	      /* char *, never NULL */
	TEXT_OR_NULL, /* char *, may be NULL */
	U64,
	U32,
	U32_OR_NULL, /* MDL_NO_NUMBER is null, and so is a missing member */
	U16,
	BOOL,
};

struct field {
	const char *name; /* NULL: end of table */
	size_t off;
	enum field_type type;
};

struct array {
	const char *name;
	size_t items_off, count_off; /* offsets in struct mdl_session */
	size_t item_bytes;
	const struct field *fields;
};

#define IN(type, member, kind)                                                                                         \
	{                                                                                                              \
#member, offsetof(struct type, member), kind                                                           \
	}

/* One row per line. */
/* clang-format off */
static const struct field session_fields[] = {
	IN(mdl_session, mxbpf_version, TEXT),
	IN(mdl_session, pid, U32),
	IN(mdl_session, given_pid, U32),
	IN(mdl_session, given_comm, TEXT_OR_NULL),
	IN(mdl_session, given_cmdline, TEXT_OR_NULL),
	IN(mdl_session, details, U32),
	IN(mdl_session, features, U32),
	IN(mdl_session, sample_hz, U32),
	IN(mdl_session, comm, TEXT),
	IN(mdl_session, cmdline, TEXT),
	IN(mdl_session, hostname, TEXT),
	IN(mdl_session, profiler, TEXT_OR_NULL),
	IN(mdl_session, agent_route, TEXT_OR_NULL),
	IN(mdl_session, mem_title, TEXT_OR_NULL),
	IN(mdl_session, trace_form, TEXT_OR_NULL),
	IN(mdl_session, rank, U32),
	IN(mdl_session, world_size, U32),
	IN(mdl_session, job_backend, TEXT_OR_NULL),
	IN(mdl_session, boot_id, TEXT_OR_NULL),
	IN(mdl_session, host_clock, TEXT_OR_NULL),
	IN(mdl_session, cpu_model, TEXT_OR_NULL),
	IN(mdl_session, kernel, TEXT_OR_NULL),
	IN(mdl_session, python, TEXT_OR_NULL),
	IN(mdl_session, start_unix_ns, U64),
	IN(mdl_session, start_mono_ns, U64),
	IN(mdl_session, duration_ns, U64),
	IN(mdl_session, paused_ns, U64),
	IN(mdl_session, over_ns, U64),
	IN(mdl_session, hits, U64),
	IN(mdl_session, left_out, U64),
	IN(mdl_session, api_probed, U32),
	IN(mdl_session, api_left, U32),
	IN(mdl_session, iterations, U64),
	IN(mdl_session, sampled_iterations, U64),
	IN(mdl_session, open_spans, U64),
	IN(mdl_session, followed, U64),
	IN(mdl_session, unfollowed, U64),
	IN(mdl_session, unlabelled, U64),
	IN(mdl_session, follow_lag_ns, U64),
	IN(mdl_session, stranger_hits, U64),
	IN(mdl_session, stranger_ns, U64),
	IN(mdl_session, cost.scale, U32),
	IN(mdl_session, cost.shrink, U32),
	IN(mdl_session, cost.thread, U32),
	IN(mdl_session, cost.uncertain, U32),
	IN(mdl_session, cost.added_ns, U64),
	IN(mdl_session, cost.thread_ns, U64),
	IN(mdl_session, cost.trap_ns, U64),
	IN(mdl_session, cost.agent_helps, BOOL),
	IN(mdl_session, cost.beats, U64),
	IN(mdl_session, cost.beat_watched_ns, U64),
	IN(mdl_session, cost.beat_unwatched_ns, U64),
	IN(mdl_session, late_libs, U64),
	IN(mdl_session, late_refused, U64),
	IN(mdl_session, cut_records, U64),
	IN(mdl_session, stats, BOOL),
	IN(mdl_session, account, BOOL),
	IN(mdl_session, no_faults, BOOL),
	IN(mdl_session, fault_ns, U32),
	IN(mdl_session, fault_own_ns, U32),
	IN(mdl_session, sched, BOOL),
	IN(mdl_session, team_cpus, U32),
	IN(mdl_session, life, BOOL),
	IN(mdl_session, held, BOOL),
	{NULL, 0, TEXT},
};
/* clang-format on */

static const struct field loss_fields[] = {
	IN(mxbpf_loss, attempted, U64),
	IN(mxbpf_loss, stored, U64),
	IN(mxbpf_loss, dropped, U64),
	IN(mxbpf_loss, truncated, U64),
	IN(mxbpf_loss, unreadable, U64),
	IN(mxbpf_loss, unmatched, U64),
	{NULL, 0, TEXT},
};

static const struct field source_fields[] = {
	IN(mdl_source, name, TEXT),	     IN(mdl_source, loss.attempted, U64), IN(mdl_source, loss.stored, U64),
	IN(mdl_source, loss.dropped, U64),   IN(mdl_source, loss.truncated, U64), IN(mdl_source, loss.unreadable, U64),
	IN(mdl_source, loss.unmatched, U64), IN(mdl_source, late, U64),		  {NULL, 0, TEXT},
};

static const struct field lib_fields[] = {
	IN(mdl_lib, path, TEXT),
	IN(mdl_lib, build_id, TEXT),
	IN(mdl_lib, runtime, TEXT),
	{NULL, 0, TEXT},
};

static const struct field probe_fields[] = {
	IN(mdl_probe, name, TEXT),
	IN(mdl_probe, group, TEXT),
	IN(mdl_probe, symbol, TEXT),
	IN(mdl_probe, status, TEXT),
	IN(mdl_probe, reason, TEXT),
	IN(mdl_probe, runtime, TEXT),
	{NULL, 0, TEXT},
};

static const struct field device_fields[] = {
	IN(mdl_device, type, U16),
	IN(mdl_device, numbered, BOOL),
	IN(mdl_device, name, TEXT),
	{NULL, 0, TEXT},
};

static const struct field fallback_fields[] = {
	IN(mdl_fallback, name, TEXT),
	IN(mdl_fallback, at_ns, U64),
	IN(mdl_fallback, spans, U64),
	{NULL, 0, TEXT},
};

static const struct field note_fields[] = {
	IN(mdl_note, name, TEXT),
	IN(mdl_note, text, TEXT),
	{NULL, 0, TEXT},
};

static const struct field counter_fields[] = {
	IN(mdl_perf_event, name, TEXT),
	{NULL, 0, TEXT},
};

static const struct field process_fields[] = {
	IN(mdl_process, pid, U32), IN(mdl_process, role, TEXT),	    IN(mdl_process, rank, U32),
	IN(mdl_process, of, U32),  IN(mdl_process, by_order, BOOL), IN(mdl_process, hostname, TEXT),
	{NULL, 0, TEXT},
};

/* The names are those of mdl_label_number_words and mdl_label_text_words. */
#define LABEL_NUMBER(name, i)                                                                                          \
	{                                                                                                              \
		name, offsetof(struct mdl_labels, numbers[i]), U32_OR_NULL                                             \
	}
#define LABEL_TEXT(name, i)                                                                                            \
	{                                                                                                              \
		name, offsetof(struct mdl_labels, texts[i]), TEXT                                                      \
	}
/* clang-format off */
static const struct field label_fields[] = {
	IN(mdl_labels, pid, U32),
	IN(mdl_labels, hostname, TEXT),
	LABEL_NUMBER("rank", MDL_RANK),
	LABEL_NUMBER("local_rank", MDL_LOCAL_RANK),
	LABEL_NUMBER("world_size", MDL_WORLD_SIZE),
	LABEL_NUMBER("group_rank", MDL_GROUP_RANK),
	LABEL_TEXT("role", MDL_ROLE),
	LABEL_TEXT("container", MDL_CONTAINER),
	LABEL_TEXT("pod_uid", MDL_POD_UID),
	LABEL_TEXT("pod_name", MDL_POD_NAME),
	LABEL_TEXT("pod_namespace", MDL_POD_NAMESPACE),
	LABEL_TEXT("container_name", MDL_CONTAINER_NAME),
	LABEL_TEXT("own_hostname", MDL_OWN_HOSTNAME),
	LABEL_TEXT("slurm_job", MDL_SLURM_JOB),
	LABEL_TEXT("user", MDL_USER),
	LABEL_TEXT("job", MDL_JOB),
	LABEL_TEXT("runtime", MDL_RUNTIME),
	{NULL, 0, TEXT},
};
/* clang-format on */

static const struct field gap_fields[] = {
	IN(mdl_gap, pid, U32),
	IN(mdl_gap, gap_ns, U64),
	{NULL, 0, TEXT},
};

#define ARRAY(member, type, fields_)                                                                                   \
	{                                                                                                              \
#member, offsetof(struct mdl_session, member), offsetof(struct mdl_session, n##member),                \
			sizeof(struct type), fields_                                                                   \
	}

static const struct array arrays[] = {
	ARRAY(libs, mdl_lib, lib_fields),
	ARRAY(probes, mdl_probe, probe_fields),
	ARRAY(devices, mdl_device, device_fields),
	ARRAY(fallbacks, mdl_fallback, fallback_fields),
	ARRAY(processes, mdl_process, process_fields),
	ARRAY(labels, mdl_labels, label_fields),
	ARRAY(notes, mdl_note, note_fields),
	ARRAY(counters, mdl_perf_event, counter_fields),
	ARRAY(gaps, mdl_gap, gap_fields),
	ARRAY(sources, mdl_source, source_fields),
};
#define NARRAYS (sizeof(arrays) / sizeof(*arrays))

/* ---- writing; the Add functions of cJSON return NULL without memory */

static cJSON *text_item(const char *text)
{
	return text ? cJSON_CreateString(text) : cJSON_CreateNull();
}

static cJSON *field_item(const void *at, enum field_type type)
{
	char digits[24];

	switch (type) {
	case TEXT:
	case TEXT_OR_NULL:
		return text_item(*(char *const *)at);
	case U64:
		snprintf(digits, sizeof(digits), "%llu", (unsigned long long)*(const uint64_t *)at);
		return cJSON_CreateString(digits);
	case U32:
		return cJSON_CreateNumber(*(const uint32_t *)at);
	case U32_OR_NULL:
		if (*(const uint32_t *)at == MDL_NO_NUMBER)
			return cJSON_CreateNull();
		return cJSON_CreateNumber(*(const uint32_t *)at);
	case U16:
		return cJSON_CreateNumber(*(const uint16_t *)at);
	case BOOL:
		return cJSON_CreateBool(*(const bool *)at);
	}
	return NULL;
}

static bool put_fields(cJSON *o, const void *base, const struct field *f)
{
	for (; f->name; f++)
		if (!cJSON_AddItemToObject(o, f->name, field_item((const char *)base + f->off, f->type)))
			return false;
	return true;
}

static bool put_array(cJSON *o, const struct mdl_session *s, const struct array *a)
{
	const char *items = *(char *const *)((const char *)s + a->items_off);
	size_t n = *(const size_t *)((const char *)s + a->count_off), i;
	cJSON *list = cJSON_AddArrayToObject(o, a->name), *item;

	if (!list)
		return false;
	for (i = 0; i < n; i++) {
		item = cJSON_CreateObject();
		if (!cJSON_AddItemToArray(list, item) || !put_fields(item, items + i * a->item_bytes, a->fields))
			return false;
	}
	return true;
}

static bool put_session(cJSON *o, const struct mdl_session *s)
{
	cJSON *loss, *titles;
	size_t i;

	if (!put_fields(o, s, session_fields))
		return false;
	loss = cJSON_AddObjectToObject(o, "loss");
	if (!loss || !put_fields(loss, &s->loss, loss_fields))
		return false;
	titles = cJSON_AddArrayToObject(o, "class_title");
	for (i = 0; i < MXBPF_CLASS_MAX; i++)
		if (!cJSON_AddItemToArray(titles, text_item(s->class_title[i])))
			return false;
	for (i = 0; i < NARRAYS; i++)
		if (!put_array(o, s, &arrays[i]))
			return false;
	return true;
}

char *rec_meta_write(const struct mdl_session *s)
{
	cJSON *o = cJSON_CreateObject();
	char *text = NULL;

	if (o && put_session(o, s))
		text = cJSON_PrintUnformatted(o);
	cJSON_Delete(o);
	return text;
}

/* ---- reading */

/* Parses digits only, and refuses an overflow. */
static int parse_u64(const char *text, uint64_t *v)
{
	char *end;

	if (*text < '0' || *text > '9')
		return -EBADMSG;
	errno = 0;
	*v = strtoull(text, &end, 10);
	return errno || *end ? -EBADMSG : 0;
}

static int get_text(const cJSON *o, bool null, char **text)
{
	if (o && !cJSON_IsString(o) && !cJSON_IsNull(o))
		return -EBADMSG;
	if (null && !cJSON_IsString(o))
		return 0;
	*text = strdup(o && cJSON_IsString(o) ? o->valuestring : "");
	return *text ? 0 : -ENOMEM;
}

static int get_number(const cJSON *o, double max, double *v)
{
	/* Written this way because v < 0 || v > max would accept a NaN. */
	if (!cJSON_IsNumber(o) || !(o->valuedouble >= 0 && o->valuedouble <= max))
		return -EBADMSG;
	*v = o->valuedouble;
	return 0;
}

static int get_field(const cJSON *o, void *at, enum field_type type)
{
	double v;
	int ret;

	if (type == TEXT || type == TEXT_OR_NULL)
		return get_text(o, type == TEXT_OR_NULL, at);
	if (type == U32_OR_NULL && (!o || cJSON_IsNull(o))) {
		*(uint32_t *)at = MDL_NO_NUMBER;
		return 0;
	}
	if (!o)
		return 0;
	if (type == U64)
		return cJSON_IsString(o) ? parse_u64(o->valuestring, at) : -EBADMSG;
	if (type == BOOL) {
		*(bool *)at = cJSON_IsTrue(o);
		return 0;
	}
	ret = get_number(o, type == U16 ? UINT16_MAX : UINT32_MAX, &v);
	if (!ret && type != U16)
		*(uint32_t *)at = (uint32_t)v;
	else if (!ret)
		*(uint16_t *)at = (uint16_t)v;
	return ret;
}

static int get_fields(const cJSON *o, void *base, const struct field *f)
{
	int ret = 0;

	for (; f->name && !ret; f++)
		ret = get_field(cJSON_GetObjectItemCaseSensitive(o, f->name), (char *)base + f->off, f->type);
	return ret;
}

static int get_array(const cJSON *o, struct mdl_session *s, const struct array *a)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(o, a->name), *item;
	size_t n = (size_t)cJSON_GetArraySize(list);
	size_t *count = (size_t *)((char *)s + a->count_off);
	char *items;
	int ret;

	if (!n)
		return 0;
	if (n > ITEMS_MAX)
		return -EBADMSG;
	items = calloc(n, a->item_bytes);
	if (!items)
		return -ENOMEM;
	*(char **)((char *)s + a->items_off) = items;
	cJSON_ArrayForEach(item, list)
	{
		ret = cJSON_IsObject(item) ? get_fields(item, items + (*count)++ * a->item_bytes, a->fields) : -EBADMSG;
		if (ret)
			return ret;
	}
	return 0;
}

static int get_session(const cJSON *o, struct mdl_session *s)
{
	const cJSON *titles = cJSON_GetObjectItemCaseSensitive(o, "class_title");
	int ret = get_fields(o, s, session_fields);
	size_t i;

	if (!ret)
		ret = get_fields(cJSON_GetObjectItemCaseSensitive(o, "loss"), &s->loss, loss_fields);
	for (i = 0; i < MXBPF_CLASS_MAX && !ret; i++)
		ret = get_text(cJSON_GetArrayItem(titles, (int)i), true, &s->class_title[i]);
	for (i = 0; i < NARRAYS && !ret; i++)
		ret = get_array(o, s, &arrays[i]);
	return ret;
}

/* The parser takes 64 bytes for each value. Commas of texts count as well. */
static bool is_too_much(const char *json, size_t len)
{
	const char *end = json + len;
	size_t n = 0;

	for (; n <= TOKENS_MAX && (json = memchr(json, ',', (size_t)(end - json))); json++)
		n++;
	return n > TOKENS_MAX;
}

int rec_meta_read(const char *json, size_t len, struct mdl_session *s, struct err *e)
{
	int ret = -EBADMSG;
	cJSON *o = is_too_much(json, len) ? NULL : json_read(json, len, &ret);

	memset(s, 0, sizeof(*s));
	if (!ret)
		ret = cJSON_IsObject(o) ? get_session(o, s) : -EBADMSG;
	cJSON_Delete(o);
	if (ret)
		err_set(e, ERR_RUNTIME, ret,
			ret == -ENOMEM ? "out of memory" : "the metadata is not what mxbpf writes");
	return ret;
}
