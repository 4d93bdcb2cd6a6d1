// SPDX-License-Identifier: Apache-2.0
/* The mock of libcupti: its functions, and the rules that a client must keep. README.md has the rules. */
#include "collect.h"
#include "gate.h"
#include "replay.h"

#include <dlfcn.h>
#include <pthread.h>

#define SUBSCRIBERS	   4
#define NAME_BYTES	   54
#define FORCED		   1
#define NAMED_PARAMS	   32	  /* bytes of struct params before `multiple` */
#define MULTIPLE_SINCE	   130200 /* API version that has `multiple` */
#define API_SINCE_OF_CLOCK 17	  /* API version that has timestamp callbacks */

enum scope { SCOPE_NONE, SCOPE_GLOBAL, SCOPE_SUBSCRIBER };

typedef void (*callback_fn)(void *data, int domain, uint32_t cbid, const void *info);

struct params {
	size_t size;
	const char *name;
	char *old_name;
	size_t old_bytes;
	uint8_t multiple;
	uint8_t pad[7];
};

struct subscriber {
	bool used, multiple;
	char name[NAME_BYTES];
	callback_fn callback;
	void *data;
	uint64_t domains;   /* mask of enabled domains */
	uint64_t resources; /* mask of enabled callbacks of the domain RESOURCE */
};

/* CUpti_CallbackData */
struct callback_data {
	int site;
	const char *function;
	const void *params;
	void *returned;
	const char *symbol;
	void *context;
	uint32_t context_uid;
	uint64_t *data;
	uint32_t correlation;
};

enum { DOMAIN_RESOURCE = 3, GRAPHNODE_CREATED = 13, GRAPHNODE_CLONED = 20 };

/* CUpti_GraphData. The mock leaves the graphs out. */
struct graph_data {
	const void *graph, *original_graph;
	const struct double_node *node, *original_node;
	uint32_t type;
	const void *dependency, *exec;
};

struct resource_data {
	const void *context, *resource;
	const struct graph_data *descriptor;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the subscribers */
static struct subscriber subscribers[SUBSCRIBERS];
static enum scope scope;
static bool callbacks_wanted;

static int nsubscribers(void)
{
	int i, n = 0;

	for (i = 0; i < SUBSCRIBERS; i++)
		n += subscribers[i].used;
	return n;
}

/* CUPTI refuses to mix the functions of both generations in a process while one of them is in use. */
static void forget_scope(void)
{
	if (!nsubscribers() && !enabled_kinds())
		scope = SCOPE_NONE;
}

static int use_scope(enum scope wanted)
{
	forget_scope();
	if (scope != SCOPE_NONE && scope != wanted) {
		account->mixed_versions++;
		return CUPTI_NOT_COMPATIBLE;
	}
	scope = wanted;
	return CUPTI_OK;
}

static void call_back(const struct double_call *call, int site)
{
	struct callback_data info = {
		.site = site,
		.correlation = call->correlation,
		.function = gate_cbid(call->domain, call->cbid),
		.params = call->params,
		.returned = site ? (void *)&call->result : NULL,
		.symbol = call->symbol,
		.context = (void *)(uintptr_t)(1 + call->device),
		.context_uid = 1 + call->device,
		.data = (uint64_t *)&call->data,
	};
	int i;

	for (i = 0; i < SUBSCRIBERS; i++)
		if (subscribers[i].used && subscribers[i].callback && subscribers[i].domains >> call->domain & 1)
			subscribers[i].callback(subscribers[i].data, (int)call->domain, call->cbid, &info);
}

void cupti_enter(const struct double_call *call)
{
	if (callbacks_wanted)
		call_back(call, 0);
}

void cupti_leave(const struct double_call *call)
{
	if (!nsubscribers() && !enabled_kinds() && enabled_callback(call->domain, call->cbid))
		__atomic_fetch_add(&account->idle_callbacks, 1, __ATOMIC_RELAXED);
	collect_call(call);
	if (callbacks_wanted)
		call_back(call, 1);
}

/* A kernel that is measured has a record without times, as CUPTI 13.0.85 makes it. */
void cupti_op(const struct double_op *op)
{
	struct double_op copy = *op;

#ifndef DOUBLE_OLD
	if (ranges_op(op))
		copy.start = copy.end = 0;
#endif
	collect_op(&copy);
}

/* ---- nodes of graphs */

static void call_back_node(uint32_t cbid, const struct graph_data *data)
{
	const struct resource_data info = {.descriptor = data};
	int i;

	for (i = 0; i < SUBSCRIBERS; i++)
		if (subscribers[i].used && subscribers[i].callback && subscribers[i].resources >> cbid & 1) {
			account->node_callbacks++;
			subscribers[i].callback(subscribers[i].data, DOMAIN_RESOURCE, cbid, &info);
		}
}

/* A copy is made as any other node, and then CUPTI tells whose copy it is. */
void cupti_node(const struct double_node *node, const struct double_node *original)
{
	const struct graph_data made = {.node = node, .type = node->type};
	const struct graph_data copied = {.node = node, .original_node = original, .type = node->type};

	call_back_node(GRAPHNODE_CREATED, &made);
	if (original)
		call_back_node(GRAPHNODE_CLONED, &copied);
}

/* Called in callbacks, so it is neither logged nor refused. */
DOUBLE_EXPORT int cuptiGetGraphNodeId(const struct double_node *node, uint64_t *id)
{
	if (!node)
		return CUPTI_INVALID_PARAMETER;
	*id = node->id;
	return CUPTI_OK;
}

/* ---- version, time, names */

DOUBLE_EXPORT int cuptiGetVersion(uint32_t *v)
{
	GATE("");
	*v = version;
	RETURN(CUPTI_OK);
}

DOUBLE_EXPORT int cuptiGetTimestamp(uint64_t *t)
{
	GATE("");
	*t = clock_now();
	RETURN(CUPTI_OK);
}

DOUBLE_EXPORT int cuptiGetResultString(int result, const char **text)
{
	GATE("%d", result);
	*text = result ? "CUPTI_ERROR_OF_DOUBLE" : "CUPTI_SUCCESS";
	RETURN(CUPTI_OK);
}

DOUBLE_EXPORT int cuptiGetErrorMessage(int result, const char **text)
{
	return cuptiGetResultString(result, text);
}

DOUBLE_EXPORT int cuptiGetCallbackName(int domain, uint32_t cbid, const char **name)
{
	GATE("%d %u", domain, cbid);
	*name = gate_cbid((uint32_t)domain, cbid);
	RETURN(*name ? CUPTI_OK : CUPTI_INVALID_PARAMETER);
}

/* ---- subscription */

/* Returns true while somebody holds CUPTI who is not in this process: busy, or busy=SECONDS from the first request. */
static bool held_elsewhere(void)
{
	static uint64_t first;
	double seconds = double_number("busy", 1e9, 0);

	if (!first)
		first = double_now();
	return seconds > 0 && (double)(double_now() - first) < seconds * 1e9;
}

static void tell_holder(const struct params *p)
{
	const char *name = subscribers[0].used ? subscribers[0].name : double_option("holder");
	size_t n = name ? strcspn(name, ",") : 0;

	if (p && p->old_name && p->old_bytes) {
		n = n < p->old_bytes ? n : p->old_bytes - 1;
		memcpy(p->old_name, name ? name : "", n);
		p->old_name[n] = '\0';
	}
}

static int subscribe(struct subscriber **handle, callback_fn callback, void *data, const struct params *p)
{
	bool multiple = p && p->size > NAMED_PARAMS && p->multiple;
	int i, err = CUPTI_MULTIPLE_SUBSCRIBERS;

	pthread_mutex_lock(&lock);
	for (i = 0; i < SUBSCRIBERS && subscribers[i].used && subscribers[i].multiple && multiple; i++)
		;
	if (held_elsewhere() || i == SUBSCRIBERS || subscribers[i].used) {
		tell_holder(p);
		account->refused++;
		goto out;
	}
	subscribers[i] = (struct subscriber){.used = true, .multiple = multiple, .callback = callback, .data = data};
	snprintf(subscribers[i].name, NAME_BYTES, "%s", p && p->name ? p->name : "");
	*handle = &subscribers[i];
	account->subscriptions++;
	collect_subscribed();
	gate_at_exit();
	err = CUPTI_OK;
out:
	pthread_mutex_unlock(&lock);
	return err;
}

static void be_slow(void)
{
	double seconds = double_number("slow-subscribe", 15, 0);

	if (seconds <= 0)
		return;
	gate_log("cuptiSubscribe", "begins", -1, double_now());
	usleep((useconds_t)(seconds * 1e6));
}

DOUBLE_EXPORT int cuptiSubscribe(struct subscriber **handle, callback_fn callback, void *data)
{
	GATE("");
	be_slow();
	RETURN(subscribe(handle, callback, data, NULL));
}

#ifndef DOUBLE_OLD
DOUBLE_EXPORT int cuptiSubscribe_v2(struct subscriber **handle, callback_fn callback, void *data,
				    const struct params *p)
{
	GATE("%s multiple=%d", p && p->name ? p->name : "-", p && p->size > NAMED_PARAMS ? p->multiple : 0);
	be_slow();
	if (p && p->size != (version >= MULTIPLE_SINCE ? sizeof(*p) : NAMED_PARAMS) && p->size != NAMED_PARAMS)
		RETURN(CUPTI_INVALID_PARAMETER);
	RETURN(subscribe(handle, callback, data, p));
}
#endif

static int unsubscribe(struct subscriber *s)
{
	if (s < subscribers || s >= subscribers + SUBSCRIBERS || !s->used)
		return CUPTI_INVALID_PARAMETER;
	pthread_mutex_lock(&lock);
	s->used = false;
	if (!nsubscribers()) {
		account->left_enabled = (uint64_t)__builtin_popcountll(enabled_kinds());
		account->left_functions = enabled_calls();
	}
	forget_scope();
	account->unsubscriptions++;
	pthread_mutex_unlock(&lock);
	return CUPTI_OK;
}

DOUBLE_EXPORT int cuptiUnsubscribe(struct subscriber *s)
{
	GATE("");
	RETURN(unsubscribe(s));
}

static int enable_domains(uint32_t on, struct subscriber *s, uint64_t mask)
{
	if (!s || !s->used)
		return CUPTI_INVALID_PARAMETER;
	s->domains = on ? s->domains | mask : s->domains & ~mask;
	callbacks_wanted |= on != 0;
	return CUPTI_OK;
}

DOUBLE_EXPORT int cuptiEnableDomain(uint32_t on, struct subscriber *s, int domain)
{
	GATE("%u %d", on, domain);
	RETURN(enable_domains(on, s, 1ull << domain));
}

DOUBLE_EXPORT int cuptiEnableAllDomains(uint32_t on, struct subscriber *s)
{
	GATE("%u", on);
	RETURN(enable_domains(on, s, UINT64_MAX));
}

/* The mock calls back for the whole domain, but for single resources. */
DOUBLE_EXPORT int cuptiEnableCallback(uint32_t on, struct subscriber *s, int domain, uint32_t cbid)
{
	GATE("%u %d %u", on, domain, cbid);
	if (domain == DOMAIN_RESOURCE && s && s->used) {
		s->resources = on ? s->resources | 1ull << cbid : s->resources & ~(1ull << cbid);
		RETURN(cbid < 64 ? CUPTI_OK : CUPTI_INVALID_PARAMETER);
	}
	RETURN(enable_domains(on, s, 1ull << domain));
}

/* ---- activities */

DOUBLE_EXPORT int cuptiActivityRegisterCallbacks(requested_fn requested, completed_fn completed)
{
	int err;

	GATE("%p %p", (void *)requested, (void *)completed);
	err = use_scope(SCOPE_GLOBAL);
	if (err)
		RETURN(err);
	if (!requested || !completed)
		RETURN(CUPTI_INVALID_PARAMETER);
	account->callback_registrations++;
	collect_register(requested, completed);
	RETURN(CUPTI_OK);
}

DOUBLE_EXPORT int cuptiActivityRegisterTimestampCallback(timestamp_fn f)
{
	GATE("%p", (void *)f);
	if (version < API_SINCE_OF_CLOCK || !f)
		RETURN(CUPTI_INVALID_PARAMETER);
	account->timestamp_registrations++;
	account->mixed_clocks += enabled_kinds() != 0;
	clock_replace(f);
	/* From the second registration on the first records have wrong times, one more with each registration. */
	collect_corrupt(account->timestamp_registrations - 1);
	RETURN(CUPTI_OK);
}

/* Kinds that a client may enable although the mock makes no records of them. */
static bool silent(int kind)
{
	static const int kinds[] = {9, 11, 12, 13, 36, 37, 39, 49, 50};
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i] == kind)
			return true;
	return false;
}

static int enable(int kind, bool on, enum scope wanted)
{
	int err = use_scope(wanted);

	if (err)
		return err;
	if (kind < 0 || kind >= KINDS || (!silent(kind) && !record_bytes((uint32_t)kind, version) && !replay_on()))
		return CUPTI_INVALID_KIND;
	err = on ? gate_failure_of_kind(kind) : 0;
	if (err)
		return err;
	if (kind == KIND_GRAPH && on)
		collect_graph_level();
	collect_enable((uint32_t)kind, on);
	if (replay_on() && on)
		replay_start();
	gate_at_exit();
	return CUPTI_OK;
}

DOUBLE_EXPORT int cuptiActivityEnable(int kind)
{
	GATE("%d", kind);
	RETURN(enable(kind, true, SCOPE_GLOBAL));
}

DOUBLE_EXPORT int cuptiActivityEnableAndDump(int kind)
{
	int err;

	GATE("%d", kind);
	err = enable(kind, true, SCOPE_GLOBAL);
	if (!err && kind == KIND_DEVICE)
		collect_devices();
	RETURN(err);
}

DOUBLE_EXPORT int cuptiActivityDisable(int kind)
{
	GATE("%d", kind);
	RETURN(enable(kind, false, SCOPE_GLOBAL));
}

DOUBLE_EXPORT int cuptiActivityEnableContext(void *context, int kind)
{
	GATE("%d", kind);
	RETURN(enable(kind, true, SCOPE_GLOBAL));
}

DOUBLE_EXPORT int cuptiActivityFlushAll(uint32_t flag)
{
	int err;

	GATE("%u", flag);
	err = use_scope(SCOPE_GLOBAL);
	if (!err)
		collect_flush(flag & FORCED);
	RETURN(err);
}

DOUBLE_EXPORT int cuptiActivityFlushPeriod(uint32_t ms)
{
	GATE("%u", ms);
	RETURN(CUPTI_OK);
}

/* Neither logged nor refused: a client calls it for each record. */
DOUBLE_EXPORT int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record)
{
	uint32_t kind;
	uint8_t *next = buffer;

	if (*record) {
		memcpy(&kind, *record, 4);
		next = *record + record_bytes(kind, version);
		if (next == *record)
			return CUPTI_INVALID_KIND;
	}
	if (next >= buffer + valid)
		return CUPTI_MAX_LIMIT_REACHED;
	memcpy(&kind, next, 4);
	if (!kind) /* incomplete; those behind it cannot be read either */
		return CUPTI_INVALID_KIND;
	*record = next;
	return CUPTI_OK;
}

DOUBLE_EXPORT int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *n)
{
	GATE("%p %u", context, stream);
	*n = collect_take_dropped();
	RETURN(CUPTI_OK);
}

DOUBLE_EXPORT int cuptiActivityGetAttribute(int attribute, size_t *bytes, void *value)
{
	GATE("%d", attribute);
	memset(value, 0, *bytes);
	if (attribute == 9) /* PER_THREAD_ACTIVITY_BUFFER */
		*(uint8_t *)value = version >= 130000;
	RETURN(CUPTI_OK);
}

DOUBLE_EXPORT int cuptiActivitySetAttribute(int attribute, size_t *bytes, void *value)
{
	GATE("%d", attribute);
	RETURN(CUPTI_OK);
}

DOUBLE_EXPORT int cuptiSetThreadIdType(int type)
{
	GATE("%d", type);
	if (type != 0 && type != 1)
		RETURN(CUPTI_INVALID_PARAMETER);
	system_tids = type == 1;
	RETURN(CUPTI_OK);
}

DOUBLE_EXPORT int cuptiGetThreadIdType(int *type)
{
	GATE("");
	*type = system_tids;
	RETURN(CUPTI_OK);
}

DOUBLE_EXPORT int cuptiFinalize(void)
{
	GATE("");
	collect_reset();
	pthread_mutex_lock(&lock);
	memset(subscribers, 0, sizeof(subscribers));
	scope = SCOPE_NONE;
	callbacks_wanted = false;
	pthread_mutex_unlock(&lock);
	account->finalized++;
	RETURN(CUPTI_OK);
}

/* ---- the functions that came after CUDA 11; those of 13.2 only to be refused beside the older ones */

#ifndef DOUBLE_OLD
static int enable_call(uint32_t domain, uint32_t cbid, uint8_t on)
{
	int err = use_scope(SCOPE_GLOBAL);

	if (!err)
		enabled_set_call(domain, cbid, on != 0);
	return err;
}

DOUBLE_EXPORT int cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t on)
{
	GATE("%u %u", cbid, on);
	RETURN(enable_call(DOUBLE_DRIVER, cbid, on));
}

DOUBLE_EXPORT int cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t on)
{
	GATE("%u %u", cbid, on);
	RETURN(enable_call(DOUBLE_RUNTIME, cbid, on));
}

DOUBLE_EXPORT int cuptiActivityEnableAllSyncRecords(uint8_t on)
{
	GATE("%u", on);
	all_syncs = on;
	RETURN(CUPTI_OK);
}

DOUBLE_EXPORT int cuptiActivityEnable_v2(struct subscriber *s, int kind, void *config)
{
	GATE("%d", kind);
	RETURN(s && s->used ? enable(kind, true, SCOPE_SUBSCRIBER) : CUPTI_INVALID_PARAMETER);
}

DOUBLE_EXPORT int cuptiActivityDisable_v2(struct subscriber *s, int kind, void *config)
{
	GATE("%d", kind);
	RETURN(s && s->used ? enable(kind, false, SCOPE_SUBSCRIBER) : CUPTI_INVALID_PARAMETER);
}

DOUBLE_EXPORT int cuptiActivityRegisterCallbacks_v2(struct subscriber *s, void *requested, void *completed)
{
	GATE("");
	RETURN(s && s->used ? use_scope(SCOPE_SUBSCRIBER) : CUPTI_INVALID_PARAMETER);
}

DOUBLE_EXPORT int cuptiGetTimestamp_v2(struct subscriber *s, uint64_t *t)
{
	GATE("");
	*t = clock_now();
	RETURN(use_scope(SCOPE_SUBSCRIBER));
}
#endif
