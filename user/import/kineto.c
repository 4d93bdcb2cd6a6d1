// SPDX-License-Identifier: Apache-2.0
/*
 * Traces that torch.profiler writes (Kineto, since PyTorch 1.8): calls of operators, CUDA's runtime, kernels, copies,
 * waits for devices, memory, functions of Python and the job's ranks.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/adapter.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/json_read.h"
#include "import/json.h"
#include "import/nest.h"
#include "import/sink.h"
#include "mxbpf_collective.h"
#include "mxbpf_config.h"
#include "mxbpf_memory.h"
#include "mxbpf_name.h"
#include "mxbpf_step.h"
#include "source/gpu_words.h"

struct kineto {
	struct sink *s;
	bool stacks, shapes;
	bool exact;	  /* a time has a part of a us; old traces have whole ones */
	uint64_t unknown; /* calls of categories that are not read */
	struct buf text;
};

/* ---- texts */

static uint64_t name_of(struct kineto *k, struct json_text t)
{
	return sink_name(k->s, MXBPF_NAME_SPAN, t.at, t.len);
}

static uint64_t arg_u64(const struct json_event *e, const char *key)
{
	uint64_t n;

	return json_u64_of(json_arg_of(e, key), &n) ? n : 0;
}

/* Numbers of "[1, 2, 3]". */
static void take_numbers(struct json_text t, uint32_t *to, unsigned n)
{
	struct json_text rest = t;
	uint64_t v;
	unsigned i;

	for (i = 0; i < n; i++) {
		while (rest.at && rest.len && !isdigit((unsigned char)*rest.at))
			rest.at++, rest.len--;
		if (!json_u64_of(rest, &v))
			return;
		to[i] = v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
		while (rest.len && isdigit((unsigned char)*rest.at))
			rest.at++, rest.len--;
	}
}

/* ---- calls of the host */

/* The JSON of an argument that is a list. */
static struct json_text list_of(const struct json_event *e, const char *key)
{
	size_t i;

	for (i = 0; i < e->nargs; i++)
		if (json_is(e->args[i].key, key) && !e->args[i].string && json_begins(e->args[i].value, "["))
			return e->args[i].value;
	return (struct json_text){0};
}

/* Three lines of JSON, as mxbpf keeps arguments: sizes, types, strides. */
static uint64_t args_of(struct kineto *k, const struct json_event *e)
{
	const struct json_text dims = list_of(e, "Input Dims"), types = list_of(e, "Input type"),
			       strides = list_of(e, "Input Strides");

	if (!dims.at && !types.at)
		return 0;
	k->text.len = 0;
	if (buf_put(&k->text, dims.at ? dims.at : "[]", dims.at ? dims.len : 2) || buf_put(&k->text, "\n", 1) ||
	    buf_put(&k->text, types.at ? types.at : "[]", types.at ? types.len : 2) || buf_put(&k->text, "\n", 1) ||
	    buf_put(&k->text, strides.at ? strides.at : "[]", strides.at ? strides.len : 2))
		return 0;
	if (k->text.len > MXBPF_TEXT_BYTES_MAX) /* a part of it would be no JSON */
		return 0;
	k->shapes = true;
	return sink_name(k->s, MXBPF_NAME_ARGS, k->text.data, k->text.len);
}

/* PyTorch 1.8 to 1.11 have the stack of a call as "file(line): function;..." from the innermost to the outermost. */
static uint64_t stack_in(struct kineto *k, const struct json_event *e)
{
	const struct json_text stack = json_arg_of(e, "Call stack");
	char *c;

	k->text.len = 0;
	if (!stack.len || buf_put(&k->text, stack.at, stack.len))
		return 0;
	k->stacks = true;
	for (c = k->text.data; c < k->text.data + k->text.len; c++)
		if (*c == ';')
			*c = '\n';
	return sink_name(k->s, MXBPF_NAME_STACK, k->text.data, k->text.len);
}

static bool host_thread(struct kineto *k, const struct json_event *e, uint32_t *tgid, uint32_t *tid)
{
	struct mdl_session *about = sink_about(k->s);
	uint64_t pid, thread;

	if (!json_u64_of(e->pid, &pid) || !json_u64_of(e->tid, &thread))
		return false;
	*tgid = (uint32_t)pid & MDL_PID_MASK;
	*tid = (uint32_t)thread;
	if (!about->pid)
		about->pid = *tgid;
	return true;
}

static int kineto_span(struct kineto *k, const struct json_event *e, enum mxbpf_class cls, uint8_t flags)
{
	struct json_text seq = json_arg_of(e, "Sequence number");
	const uint64_t forward = arg_u64(e, "Fwd thread id");
	uint32_t tgid, tid;
	struct mxbpf_span span;
	int64_t nr;

	if (!host_thread(k, e, &tgid, &tid))
		return 0;
	span = sink_span(tgid, tid, e->ts_ns, e->dur_ns, name_of(k, e->name), cls);
	span.flags = flags;
	span.args_id = args_of(k, e);
	span.stack_id = stack_in(k, e);
	if (json_i64_of(seq, &nr) && nr >= 0) {
		span.flags |= MXBPF_SPAN_SEQ | (forward ? MXBPF_SPAN_BACKWARD : 0);
		span.seq = MXBPF_SEQ(forward, (uint64_t)nr);
	}
	return sink_put(k->s, &span.h);
}

static int kineto_operator(struct kineto *k, const struct json_event *e)
{
	return kineto_span(k, e, MXBPF_CLASS_OPERATOR, 0);
}

/* A step of the profiler is an iteration from its start to its end. What is between two of them is none. */
static int put_step(struct kineto *k, const struct json_event *e)
{
	struct mxbpf_step step = {
		.h = {.kind = MXBPF_STEP, .size = sizeof(step), .ts_ns = e->ts_ns},
		.what = MXBPF_STEP_COUNTED,
		.flags = MXBPF_STEP_OPENS,
	};
	int err;

	if (!host_thread(k, e, &step.h.tgid, &step.tid))
		return 0;
	err = sink_put(k->s, &step.h);
	step.h.ts_ns += e->dur_ns;
	step.flags = 0;
	return err ? err : sink_put(k->s, &step.h);
}

/* Steps have one row, as in the profiler's own table. */
static int kineto_annotation(struct kineto *k, const struct json_event *e)
{
	static const char steps[] = "ProfilerStep*";
	struct json_event step = *e;
	int err;

	if (!json_begins(e->name, "ProfilerStep#"))
		return kineto_span(k, e, MXBPF_CLASS_OPERATOR, MXBPF_SPAN_USER);
	step.name = (struct json_text){steps, strlen(steps)};
	err = put_step(k, e);
	return err ? err : kineto_span(k, &step, MXBPF_CLASS_OPERATOR, MXBPF_SPAN_USER);
}

static int kineto_frame(struct kineto *k, const struct json_event *e)
{
	uint32_t tgid, tid;
	struct mxbpf_span frame;

	if (!host_thread(k, e, &tgid, &tid))
		return 0;
	k->stacks = true;
	frame = sink_span(tgid, tid, e->ts_ns, e->dur_ns, name_of(k, e->name), MXBPF_CLASS_PYTHON);
	sink_name(k->s, MXBPF_NAME_STACK, e->name.at, e->name.len); /* the same id: it is a line of stacks, too */
	return sink_put(k->s, &frame.h);
}

static int kineto_cuda(struct kineto *k, const struct json_event *e)
{
	uint32_t tgid, tid;
	struct mxbpf_span span;
	char name[256];

	if (!host_thread(k, e, &tgid, &tid))
		return 0;
	span = sink_span(tgid, tid, e->ts_ns, e->dur_ns, name_of(k, e->name), MXBPF_CLASS_CUDA);
	snprintf(name, sizeof(name), "%.*s", (int)(e->name.len < sizeof(name) ? e->name.len : sizeof(name) - 1),
		 e->name.at ? e->name.at : "");
	return sink_cuda_call(k->s, &span, name, arg_u64(e, "correlation"));
}

/* ---- work of devices */

static struct mxbpf_activity activity_of(struct kineto *k, const struct json_event *e, enum mxbpf_activity_class cls)
{
	struct mxbpf_activity a = sink_activity(cls, e->ts_ns, e->dur_ns, name_of(k, e->name));

	a.track.device = (uint32_t)arg_u64(e, "device");
	a.track.context = (uint32_t)arg_u64(e, "context");
	a.track.stream = (uint32_t)arg_u64(e, "stream");
	a.edge_id = arg_u64(e, "correlation");
	a.domain = a.edge_id ? MXBPF_DOMAIN_CUPTI : MXBPF_DOMAIN_NONE;
	a.graph = (uint32_t)arg_u64(e, "graph id");
	a.graph_node = arg_u64(e, "graph node id");
	a.bytes = arg_u64(e, "bytes");
	return a;
}

/* Bytes of an element by PyTorch's name of its type, or 0. */
static uint64_t element_bytes(struct json_text type)
{
	static const struct {
		const char *begins;
		uint8_t bytes;
	} types[] = {{"Float8", 1},	    {"Float", 4},	{"Double", 8},
		     {"Half", 2},	    {"BFloat16", 2},	{"Long", 8},
		     {"UInt64", 8},	    {"Int", 4},		{"UInt32", 4},
		     {"Short", 2},	    {"UInt16", 2},	{"ComplexFloat", 8},
		     {"ComplexDouble", 16}, {"ComplexHalf", 4}, {"Char", 1},
		     {"Byte", 1},	    {"Bool", 1}};
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (json_begins(type, types[i].begins))
			return types[i].bytes;
	return 0;
}

/* Processes of a group know it by the same name and ranks. */
static uint64_t process_group(const struct json_event *e)
{
	static const char *const keys[] = {"Process Group Name", "Process Group Description", "Process Group Ranks",
					   "Process Group ID"};
	uint64_t group = 0;
	struct json_text t;
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		t = json_arg_of(e, keys[i]);
		if (t.len)
			group = hash_text(group ? group : HASH_SEED, t.at, t.len);
	}
	return group;
}

/*
 * Puts what PyTorch says of a kernel of NCCL: how many bytes the process gives, and the group. The kernel itself must
 * have been put before.
 */
static int put_collective(struct kineto *k, const struct json_event *e, const struct mxbpf_activity *a)
{
	struct mxbpf_collective c = {
		.h = {.kind = MXBPF_COLLECTIVE, .size = sizeof(c), .ts_ns = e->ts_ns},
		.dur_ns = e->dur_ns,
		.bytes = MXBPF_COLLECTIVE_UNSIZED,
		.group = process_group(e),
		.lane = (uint64_t)a->track.context << 32 | a->track.stream,
		.device = a->track.device,
		.backend = MXBPF_BACKEND_NCCL,
		.ranks = (uint32_t)arg_u64(e, "Group size"),
	};
	const uint64_t size = element_bytes(json_arg_of(e, "dtype"));
	uint64_t n, bytes;

	if (!json_arg_of(e, "Collective name").at)
		return 0;
	if (size && json_u64_of(json_arg_of(e, "In msg nelems"), &n) && !__builtin_mul_overflow(n, size, &bytes)) {
		c.bytes = bytes;
		c.source = MXBPF_COLLECTIVE_FROM_ARGS;
	}
	c.seq = c.group ? arg_u64(e, "Seq") : 0;
	return sink_put(k->s, &c.h);
}

static int kineto_kernel(struct kineto *k, const struct json_event *e)
{
	struct mxbpf_activity a = activity_of(k, e, MXBPF_ACTIVITY_KERNEL);
	uint32_t block[3] = {0};
	unsigned i;
	int err;

	take_numbers(json_arg_of(e, "grid"), a.grid, 3);
	take_numbers(json_arg_of(e, "block"), block, 3);
	for (i = 0; i < 3; i++)
		a.block[i] = (uint16_t)block[i];
	a.registers = (uint16_t)arg_u64(e, "registers per thread");
	a.static_shared = (uint32_t)arg_u64(e, "shared memory"); /* static and dynamic together */
	err = sink_put(k->s, &a.h);
	return err ? err : put_collective(k, e, &a);
}

/* The number of the word at the start of a text, or 0. */
static uint8_t word_at(const char *const *words, const char *text)
{
	uint8_t i;

	for (i = 1; words[i]; i++)
		if (!strncmp(text, words[i], strlen(words[i])))
			return i;
	return 0;
}

/* "Memcpy HtoD (Pageable -> Device)", "Memset (Device)" */
static void read_copy(struct mxbpf_activity *a, struct json_text name)
{
	char text[GPU_NAME_BYTES];
	const char *open, *arrow;

	snprintf(text, sizeof(text), "%.*s", (int)(name.len < sizeof(text) ? name.len : sizeof(text) - 1), name.at);
	a->copy = strncmp(text, "Memcpy ", 7) ? 0 : word_at(gpu_copies, text + 7);
	open = strchr(text, '(');
	arrow = open ? strstr(open, " -> ") : NULL;
	a->from = arrow ? word_at(gpu_memories, open + 1) : 0;
	a->to = open ? word_at(gpu_memories, arrow ? arrow + 4 : open + 1) : 0;
}

static int kineto_copy(struct kineto *k, const struct json_event *e)
{
	struct mxbpf_activity a = activity_of(k, e, MXBPF_ACTIVITY_COPY);

	if (e->name.at)
		read_copy(&a, e->name);
	return sink_put(k->s, &a.h);
}

static int kineto_set(struct kineto *k, const struct json_event *e)
{
	struct mxbpf_activity a = activity_of(k, e, MXBPF_ACTIVITY_SET);

	if (e->name.at)
		read_copy(&a, e->name);
	return sink_put(k->s, &a.h);
}

static int kineto_sync(struct kineto *k, const struct json_event *e)
{
	static const char *const kinds[] = {"", "Event", "Stream Wait", "Stream", "Context"};
	struct mxbpf_activity a = activity_of(k, e, MXBPF_ACTIVITY_SYNC);
	struct json_text kind = json_arg_of(e, "cuda_sync_kind");
	uint8_t i;

	kind = kind.at ? kind : e->name;
	for (i = sizeof(kinds) / sizeof(kinds[0]) - 1; i && !a.sync_type; i--)
		if (json_begins(kind, kinds[i]) && (i != MXBPF_SYNC_STREAM || !json_begins(kind, kinds[2])))
			a.sync_type = i;
	a.domain = MXBPF_DOMAIN_NONE; /* the call of the same correlation waited; it launched nothing */
	a.edge_id = 0;
	return sink_put(k->s, &a.h);
}

/* ---- memory */

static int kineto_memory(struct kineto *k, const struct json_event *e)
{
	struct mxbpf_alloc a = {.h = {.kind = MXBPF_ALLOC, .size = MXBPF_ALLOC_BYTES_PLAIN, .ts_ns = e->ts_ns}};
	struct mdl_session *about = sink_about(k->s);
	int64_t bytes, device = 0, type = 0;

	if (!json_is(e->name, "[memory]") || !json_i64_of(json_arg_of(e, "Bytes"), &bytes) ||
	    !host_thread(k, e, &a.h.tgid, &a.tid))
		return 0;
	json_i64_of(json_arg_of(e, "Device Id"), &device);
	json_i64_of(json_arg_of(e, "Device Type"), &type);
	if (!about->mem_title) {
		about->mem_title = strdup(adapter_pytorch.mem_title);
		if (!about->mem_title)
			return -ENOMEM;
	}
	a.bytes = bytes;
	a.addr = arg_u64(e, "Addr");
	a.device = MXBPF_DEVICE((uint32_t)type + 1, device < 0 ? 0u : (uint32_t)device);
	return sink_put(k->s, &a.h);
}

/* ---- events by their categories */

static int kineto_none(struct kineto *k, const struct json_event *e)
{
	return 0;
}

/* The names of PyTorch 1.8 and 1.9 begin with a capital letter. */
static const struct {
	const char *cat;
	char ph;
	int (*take)(struct kineto *k, const struct json_event *e);
} takers[] = {
	{"cpu_op", 'X', kineto_operator},
	{"Operator", 'X', kineto_operator},
	{"user_annotation", 'X', kineto_annotation},
	{"python_function", 'X', kineto_frame},
	{"cuda_runtime", 'X', kineto_cuda},
	{"Runtime", 'X', kineto_cuda},
	{"cuda_driver", 'X', kineto_cuda},
	{"hip_runtime", 'X', kineto_cuda},
	{"kernel", 'X', kineto_kernel},
	{"Kernel", 'X', kineto_kernel},
	{"gpu_memcpy", 'X', kineto_copy},
	{"Memcpy", 'X', kineto_copy},
	{"gpu_memset", 'X', kineto_set},
	{"Memset", 'X', kineto_set},
	{"cuda_sync", 'X', kineto_sync},
	{"cpu_instant_event", 'i', kineto_memory},
	{"Memory", 'i', kineto_memory},
	/* These repeat what other events say: ranges as the devices saw them, and the length of the trace. */
	{"gpu_user_annotation", 'X', kineto_none},
	{"Trace", 'X', kineto_none},
};

/* "thread 4711 (python)" */
static int kineto_thread(struct kineto *k, const struct json_event *e)
{
	struct json_text name = json_arg_of(e, "name"), inside = name;
	uint32_t tgid, tid;
	uint64_t pid, thread;

	if (!json_u64_of(e->pid, &pid) || !json_u64_of(e->tid, &thread) || !name.at)
		return 0;
	tgid = (uint32_t)pid & MDL_PID_MASK;
	tid = (uint32_t)thread;
	inside.at = memchr(name.at, '(', name.len);
	inside.len = inside.at ? (size_t)(name.at + name.len - inside.at) : 0;
	if (json_begins(name, "thread ") && inside.len > 2 && inside.at[inside.len - 1] == ')')
		sink_thread(k->s, tgid, tid, inside.at + 1, inside.len - 2);
	return 0;
}

static int kineto_event(void *ctx, const struct json_event *e)
{
	struct kineto *k = ctx;
	size_t i;

	if (e->ph == 'M')
		return json_is(e->name, "thread_name") ? kineto_thread(k, e) : 0;
	for (i = 0; i < sizeof(takers) / sizeof(takers[0]); i++)
		if (e->ph == takers[i].ph && json_is(e->cat, takers[i].cat))
			break;
	if (i == sizeof(takers) / sizeof(takers[0])) {
		k->unknown += e->ph == 'X';
		return 0;
	}
	if (!e->timed || e->ts_ns > INT64_MAX || e->dur_ns > INT64_MAX) {
		sink_lost(k->s, 1);
		return 0;
	}
	k->exact |= e->ts_ns % 1000 || e->dur_ns % 1000;
	return takers[i].take(k, e);
}

/* ---- what stands beside the events */

static uint64_t number_in(const cJSON *o, const char *key)
{
	const cJSON *n = cJSON_GetObjectItemCaseSensitive(o, key);

	return cJSON_IsNumber(n) && n->valuedouble > 0 && n->valuedouble < 0x1p63 ? (uint64_t)n->valuedouble : 0;
}

static const char *text_in(const cJSON *o, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));

	return text ? text : "";
}

static int kineto_device(struct kineto *k, const cJSON *o)
{
	const char *name = text_in(o, "name");
	const struct mxbpf_gpu_device d = {
		.h = {.kind = MXBPF_GPU_DEVICE, .size = sizeof(d)},
		.name_id = sink_name(k->s, MXBPF_NAME_SPAN, name, strlen(name)),
		.memory_bytes = number_in(o, "totalGlobalMem"),
		.device = (uint32_t)number_in(o, "id"),
		.multiprocessors = (uint32_t)number_in(o, "numSms"),
		.major = (uint16_t)number_in(o, "computeMajor"),
		.minor = (uint16_t)number_in(o, "computeMinor"),
		.threads_per_mp = (uint32_t)number_in(o, "maxThreadsPerMultiprocessor"),
		.registers_per_mp = (uint32_t)number_in(o, "regsPerMultiprocessor"),
		.shared_per_mp = (uint32_t)number_in(o, "sharedMemPerMultiprocessor"),
		.warp = (uint32_t)number_in(o, "warpSize"),
	};

	return sink_put(k->s, &d.h);
}

static int take_devices(struct kineto *k, const cJSON *list)
{
	const cJSON *o;
	int err = 0;

	cJSON_ArrayForEach(o, list) if (!err) err = kineto_device(k, o);
	return err;
}

static int take_job(struct kineto *k, const cJSON *o)
{
	struct mdl_session *about = sink_about(k->s);

	about->rank = (uint32_t)number_in(o, "rank");
	about->world_size = (uint32_t)number_in(o, "world_size");
	if (about->rank >= about->world_size)
		about->rank = about->world_size = 0;
	if (!about->job_backend && *text_in(o, "backend"))
		about->job_backend = strdup(text_in(o, "backend"));
	return 0;
}

static int kineto_member(void *ctx, const struct json_arg *m)
{
	static const struct {
		const char *key;
		int (*take)(struct kineto *k, const cJSON *value);
	} members[] = {{"deviceProperties", take_devices}, {"distributedInfo", take_job}};
	struct kineto *k = ctx;
	cJSON *value;
	size_t i;
	int err = 0, bad;

	if (json_is(m->key, "baseTimeNanoseconds"))
		json_u64_of(m->value, &sink_about(k->s)->start_unix_ns); /* it stands behind the events */
	for (i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		if (!json_is(m->key, members[i].key))
			continue;
		value = json_read(m->value.at, m->value.len, &bad);
		err = value ? members[i].take(k, value) : 0;
		cJSON_Delete(value);
	}
	return err;
}

/* ---- the file */

static bool kineto_is(int fd, const void *head, size_t n)
{
	static const char *const members[] = {"\"traceEvents\"", "\"schemaVersion\"", "\"deviceProperties\""};
	const unsigned char *at = head, *end = at + n;
	size_t i;

	if (n >= 3 && !memcmp(at, "\xef\xbb\xbf", 3))
		at += 3;
	while (at < end && isspace(*at))
		at++;
	for (i = 0; at < end && *at == '{' && i < sizeof(members) / sizeof(members[0]); i++)
		if (memmem(at, (size_t)(end - at), members[i], strlen(members[i])))
			return true;
	return at < end && *at == '[';
}

static int kineto_describe(struct kineto *k)
{
	struct mdl_session *s = sink_about(k->s);

	s->details = (k->shapes ? MXBPF_DETAIL_ARGS : 0) | (k->stacks ? MXBPF_DETAIL_STACK : 0) | MXBPF_DETAIL_SEQ;
	s->comm = strdup("python");
	return s->comm ? sink_runtime(k->s, &adapter_pytorch) : -ENOMEM;
}

static int kineto_read(struct sink *s, int fd, struct err *e)
{
	static const struct json_hooks hooks = {kineto_member, kineto_event};
	struct kineto k = {.s = s};
	struct json_end end;
	int err = json_each(fd, &hooks, &k, &end, e);

	if (!err && !end.events)
		err = err_set(e, ERR_RUNTIME, -EINVAL, "%s", end.why[0] ? end.why : "it has no events of a profiler");
	if (!err && end.why[0])
		err = sink_note(s, "trace", "only a part of the file could be read: %s", end.why);
	if (!err && k.unknown)
		err = sink_note(s, "trace", "%llu events of categories that mxbpf does not know are left out",
				(unsigned long long)k.unknown);
	if (!k.exact)
		sink_rounded(s, 1000);
	err = err ? err : kineto_describe(&k);
	buf_fini(&k.text);
	return err;
}

const struct import_format import_kineto = {"PyTorch trace", "torch.profiler", kineto_is, kineto_read};
