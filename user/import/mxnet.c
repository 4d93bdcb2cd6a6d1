// SPDX-License-Identifier: Apache-2.0
/*
 * Traces that MXNet's profiler writes (profiler.dump(), "profile.json"): operators, calls of the C API, memory of
 * devices, and the program's tasks, frames, events, markers and counters.
 *
 * Events have no duration: a pair of events begins and ends a call. An operator is in the trace twice, in the row of
 * its device and in a row of all operators; the first is the one that MXNet's own tables count. Times are whole us.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "import/json.h"
#include "import/mxnet.h"
#include "import/sink.h"
#include "mxbpf_mark.h"
#include "mxbpf_step.h"

#define OPEN_MAX_PAIRS 65536 /* calls that have begun and not ended; MXNet writes both events of a call together */
#define ROWS_MAX       65536 /* devices; threads */
#define PYTHON_PART    "::pure_python"

struct mxnet {
	struct sink *s;
	struct hash devices; /* number of a row of the trace -> MXBPF_DEVICE() */
	struct hash threads; /* what MXNet knows a thread by, a hash of 64 bits -> number from 1 on */
	struct hash open;    /* (name, thread) -> 1 + ns of the start */
	uint64_t values;     /* that were counted */
	bool memory;
};

static bool ends_in(struct json_text t, const char *with)
{
	const size_t n = strlen(with);

	return t.len >= n && !memcmp(t.at + t.len - n, with, n);
}

/* ---- rows of the trace: devices, threads */

/* "cpu/0", "gpu/1", "cpu pinned/" */
static uint32_t device_of(struct json_text name)
{
	const struct adp_device *d = adapter_mxnet.devices;
	unsigned i;
	uint64_t nr;
	size_t n;

	for (i = 0; name.at && i < adapter_mxnet.ndevices; i++) {
		n = strlen(d[i].name);
		if (name.len <= n || memcmp(name.at, d[i].name, n) || name.at[n] != '/')
			continue;
		if (!json_u64_of((struct json_text){name.at + n + 1, name.len - n - 1}, &nr))
			nr = 0;
		return MXBPF_DEVICE(d[i].type, (uint32_t)nr);
	}
	return 0;
}

static int mxnet_row(struct mxnet *m, const struct json_event *e)
{
	const uint32_t device = device_of(json_arg_of(e, "name"));
	uint64_t pid, *at;

	if (!device || !json_u64_of(e->pid, &pid) || m->devices.len >= ROWS_MAX)
		return 0;
	at = hash_put(&m->devices, pid, 0);
	if (!at)
		return -ENOMEM;
	*at = device;
	return 0;
}

/* Returns 0 without memory, and for threads beyond the limit. */
static uint32_t thread_of(struct mxnet *m, const struct json_event *e)
{
	const uint64_t key = hash_text(HASH_SEED, e->tid.at, e->tid.len);
	uint64_t *at = m->threads.len < ROWS_MAX ? hash_put(&m->threads, key, 0) : hash_get(&m->threads, key, 0);

	if (at && !*at)
		*at = m->threads.len;
	return at ? (uint32_t)*at : 0;
}

/* ---- calls */

static uint64_t pair_key(const struct json_event *e)
{
	uint64_t key = hash_text(HASH_SEED, e->name.at, e->name.len);

	key = hash_text(key, e->cat.at, e->cat.len);
	return hash_text(key, e->pid.at, e->pid.len);
}

static int mxnet_begin(struct mxnet *m, const struct json_event *e)
{
	uint64_t *at;

	if (m->open.len >= OPEN_MAX_PAIRS) {
		sink_lost(m->s, 1);
		return 0;
	}
	at = hash_put(&m->open, pair_key(e), thread_of(m, e));
	if (!at)
		return -ENOMEM;
	if (*at) /* it has begun twice */
		sink_lost(m->s, 1);
	*at = 1 + e->ts_ns;
	return 0;
}

struct mxnet_category mxnet_category_of(const char *text, size_t len)
{
	static const enum mxbpf_class titled[] = {MXBPF_CLASS_OPERATOR, MXBPF_CLASS_CUSTOM, MXBPF_CLASS_API};
	const struct json_text category = {text, len};
	size_t i;

	for (i = 0; i < sizeof(titled) / sizeof(titled[0]); i++)
		if (json_is(category, adapter_mxnet.class_title[titled[i]]))
			return (struct mxnet_category){titled[i], 0};
	if (json_is(category, "event"))
		return (struct mxnet_category){MXBPF_CLASS_EVENT, 0};
	if (ends_in(category, ",frame"))
		return (struct mxnet_category){MXBPF_CLASS_FRAME, len - strlen(",frame")};
	return (struct mxnet_category){MXBPF_CLASS_TASK, len};
}

uint64_t mxnet_name(struct sink *s, const char *category, size_t category_len, const char *name, size_t len)
{
	const size_t domain_len = mxnet_category_of(category, category_len).domain_len;

	return domain_len ? sink_domain_name(s, category, domain_len, name, len)
			  : sink_name(s, MXBPF_NAME_SPAN, name, len);
}

/* The class of a call; NONE: it is in the trace a second time. */
static enum mxbpf_class class_of(const struct json_event *e, bool of_device)
{
	const enum mxbpf_class cls = mxnet_category_of(e->cat.at, e->cat.len).cls;

	if (of_device)
		return cls == MXBPF_CLASS_CUSTOM ? cls : MXBPF_CLASS_OPERATOR;
	if (cls == MXBPF_CLASS_OPERATOR || (cls == MXBPF_CLASS_CUSTOM && !ends_in(e->name, PYTHON_PART)))
		return MXBPF_CLASS_NONE;
	return cls;
}

/* A backward pass ends an iteration and begins the next. */
static int mxnet_step(struct mxnet *m, const struct mxbpf_span *call, struct json_text name)
{
	const struct mxbpf_step step = {
		.h = {.kind = MXBPF_STEP, .size = sizeof(step), .ts_ns = call->h.ts_ns},
		.tid = call->tid,
		.what = MXBPF_STEP_BACKWARD,
	};
	const struct adp_probe *p = adapter_mxnet.probes, *end = p + adapter_mxnet.nprobes;

	for (; p < end; p++)
		if (p->row.action == MXBPF_ACT_STEP && p->row.step == step.what && json_is(name, p->symbols[0]))
			return sink_put(m->s, &step.h);
	return 0;
}

static int mxnet_end(struct mxnet *m, const struct json_event *e)
{
	uint64_t pid, start = 0, *device;
	const uint32_t tid = thread_of(m, e);
	struct mxbpf_span span;
	enum mxbpf_class cls;
	int err;

	if (!hash_del(&m->open, pair_key(e), tid, &start) || start - 1 > e->ts_ns) {
		sink_lost(m->s, 1);
		return 0;
	}
	device = json_u64_of(e->pid, &pid) ? hash_get(&m->devices, pid, 0) : NULL;
	cls = class_of(e, device);
	if (cls == MXBPF_CLASS_NONE)
		return 0;
	span = sink_span(0, tid, start - 1, e->ts_ns - (start - 1),
			 mxnet_name(m->s, e->cat.at, e->cat.len, e->name.at, e->name.len), cls);
	span.device = device ? (uint32_t)*device : 0;
	err = cls == MXBPF_CLASS_API ? mxnet_step(m, &span, e->name) : 0;
	return err ? err : sink_put(m->s, &span.h);
}

/* ---- counters and markers */

/* "Memory: cpu/0" is how much the device has after an allocation or a free, at least 0. */
static int mxnet_memory(struct mxnet *m, const struct json_event *e)
{
	static const char begin[] = "Memory: ";
	/* In this form a free can count without a size, which memory from before the trace does not have. */
	struct mxbpf_alloc a = {.h = {.kind = MXBPF_ALLOC, .size = MXBPF_ALLOC_BYTES_OWNER, .ts_ns = e->ts_ns}};
	int64_t level;

	if (!json_begins(e->name, begin) || !e->nargs || !json_i64_of(e->args[0].value, &level) || level < 0)
		return 0;
	a.bytes = level;
	a.device = device_of((struct json_text){e->name.at + strlen(begin), e->name.len - strlen(begin)});
	a.tid = thread_of(m, e);
	m->memory = true;
	return sink_put(m->s, &a.h);
}

static int mxnet_counter(struct mxnet *m, const struct json_event *e)
{
	struct mxbpf_value v = {
		.h = {.kind = MXBPF_VALUE, .size = sizeof(v), .ts_ns = e->ts_ns}, .count = 1, .tid = thread_of(m, e)};
	uint64_t value;

	if (json_is(e->cat, adapter_mxnet.class_title[MXBPF_CLASS_API])) /* calls so far, and open ones: the calls
									    themselves say it */
		return 0;
	if (json_is(e->cat, adapter_mxnet.mem_title))
		return mxnet_memory(m, e);
	if (!e->nargs || !json_u64_of(e->args[0].value, &value)) {
		sink_lost(m->s, 1);
		return 0;
	}
	v.value = v.min = v.max = value;
	v.seq = ++m->values;
	v.name_id = sink_domain_name(m->s, e->cat.at, e->cat.len, e->name.at, e->name.len);
	return sink_put(m->s, &v.h);
}

static int mxnet_marker(struct mxnet *m, const struct json_event *e)
{
	struct mxbpf_instant i = {
		.h = {.kind = MXBPF_INSTANT, .size = sizeof(i), .ts_ns = e->ts_ns},
		.count = 1,
		.tid = thread_of(m, e),
		.what = MXBPF_INSTANT_MARKER,
	};
	static const char marker[] = ",instant_marker";
	const size_t domain = e->cat.len - (ends_in(e->cat, marker) ? strlen(marker) : 0);

	i.name_id = sink_domain_name(m->s, e->cat.at, domain, e->name.at, e->name.len);
	return sink_put(m->s, &i.h);
}

/* ---- the file */

static const struct {
	char ph;
	int (*take)(struct mxnet *m, const struct json_event *e);
} takers[] = {{'B', mxnet_begin}, {'b', mxnet_begin},	{'(', mxnet_begin},  {'E', mxnet_end},	  {'e', mxnet_end},
	      {')', mxnet_end},	  {'C', mxnet_counter}, {'n', mxnet_marker}, {'i', mxnet_marker}, {'I', mxnet_marker}};

static int mxnet_event(void *ctx, const struct json_event *e)
{
	struct mxnet *m = ctx;
	size_t i;

	if (e->ph == 'M')
		return json_is(e->name, "process_name") ? mxnet_row(m, e) : 0;
	for (i = 0; i < sizeof(takers) / sizeof(takers[0]); i++)
		if (takers[i].ph == e->ph)
			break;
	if (i == sizeof(takers) / sizeof(takers[0]))
		return 0;
	if (e->timed && e->ts_ns <= INT64_MAX)
		return takers[i].take(m, e);
	sink_lost(m->s, 1);
	return 0;
}

static bool mxnet_is(int fd, const void *head, size_t n)
{
	return memmem(head, n, "\"traceEvents\"", 13) && memmem(head, n, "\"cpu/0\"", 7) &&
	       memmem(head, n, "\"process_name\"", 14);
}

static int mxnet_describe(struct mxnet *m)
{
	struct mdl_session *about = sink_about(m->s);

	about->comm = strdup("python");
	if (!about->comm || (m->memory && !(about->mem_title = strdup(adapter_mxnet.mem_title))))
		return -ENOMEM;
	return sink_runtime(m->s, &adapter_mxnet);
}

static int mxnet_read(struct sink *s, int fd, struct err *e)
{
	static const struct json_hooks hooks = {NULL, mxnet_event};
	struct mxnet m = {.s = s};
	struct json_end end;
	int err = json_each(fd, &hooks, &m, &end, e);

	if (!err && end.why[0])
		err = sink_note(s, "trace", "only a part of the file could be read: %s", end.why);
	sink_lost(s, m.open.len);
	sink_rounded(s, 1000);
	sink_levels(s);
	err = err ? err : mxnet_describe(&m);
	hash_fini(&m.devices);
	hash_fini(&m.threads);
	hash_fini(&m.open);
	return err;
}

const struct import_format import_mxnet = {"MXNet trace", "mxnet.profiler", mxnet_is, mxnet_read};
