/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the agent's shared object into this process and calls it as PyTorch would. Tests that its memory stays flat,
 * that it counts what it cannot record, and that it is silent when nobody listens. MXBPF_TEST_CALLS sets the number of
 * calls; the default is ten million.
 */
#include "unit.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>

#include "base/clock.h"
#include "mxbpf_agent.h"

#define CALLS	      10000000ull
#define DEEP	      (MXBPF_AGENT_OPEN + 88)
#define THREADS	      (MXBPF_AGENT_THREADS + 20)
#define NAMES	      (MXBPF_AGENT_NAMES + 100)
#define FORK_WAITS_NS 150000000ull /* a fork waits a little longer than this */
#define SLACK_KB      256	   /* tolerance for memory that is allocated once */

/* ---- stand-in for PyTorch */

/* Layout of at::RecordFunctionCallback in torch. */
struct callback {
	void *(*start)(void **context, const void *call);
	void (*end)(const void *call, void *context);
	double sampling;
	uint8_t scopes[10];
	uint8_t needs[3];
};
_Static_assert(sizeof(struct callback) == 40, "as in ATen/record_function.h");

static struct callback callbacks[10]; /* by scope */
static unsigned nadded, nremoved;
static bool needs_args;

static uint64_t add_callback(struct callback c)
{
	unsigned i;

	CHECK(c.sampling == 1 && c.needs[0] == needs_args && !c.needs[1] && !c.needs[2]);
	for (i = 0; i < 10; i++)
		if (c.scopes[i])
			callbacks[i] = c;
	return ++nadded;
}

/* Callbacks are removed, from the first one until the last one, while another thread forks. */
static pthread_t forker;
static bool changing, trying, forked_between;
static uint64_t changed_ns;

static void *fork_now(void *unused)
{
	pid_t pid;

	__atomic_store_n(&trying, true, __ATOMIC_RELEASE);
	pid = fork();
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	return unused;
}

static void remove_callback(uint64_t handle)
{
	unsigned i;

	nremoved += handle <= nadded;
	if (nremoved == 1) {
		changed_ns = clock_ns(CLOCK_MONOTONIC);
		__atomic_store_n(&changing, true, __ATOMIC_RELEASE);
		if (pthread_create(&forker, NULL, fork_now, NULL))
			abort();
		for (i = 0; i < 100 || !__atomic_load_n(&trying, __ATOMIC_ACQUIRE); i++)
			sched_yield();
	}
	if (nremoved < 4)
		return;
	changed_ns = clock_ns(CLOCK_MONOTONIC) - changed_ns;
	__atomic_store_n(&changing, false, __ATOMIC_RELEASE);
}

/* Stand-in for at::getStepCallbacks(), which reads the list of callbacks if it has changed. */
static __thread unsigned nread;

static void step_callbacks(void *result, uint64_t scope)
{
	CHECK(result && scope < 10 && !callbacks[scope].start);
	forked_between |= __atomic_load_n(&changing, __ATOMIC_ACQUIRE);
	nread++;
}

/* Stand-in for an IValue. */
struct value {
	uint64_t word;
	uint32_t tag, pad;
};
enum { TAG_TENSOR = 1, TAG_INT = 5, TAG_STRING = 12, TAG_LIST = 14 };

/* Stand-in for at::RecordFunction. The configuration tells the agent where its fields lie. */
struct record {
	const char *name;
	uint64_t number, of_thread;
	const struct value *values;
	uint64_t nvalues;
};
#define NO_NUMBER ((uint64_t)-1)

static const char *name_of(const void *call)
{
	return ((const struct record *)call)->name;
}

static uint64_t next_number = 100;

static uint64_t peek(void)
{
	return next_number;
}

static uint64_t thread_number(void)
{
	return 3;
}

/* Stand-in for c10::ProfiledCPUMemoryReporter, and for the two entries of an import table that lead to it. */
typedef void (*alloc_fn)(void *, void *, size_t);
typedef void (*free_fn)(void *, void *);
static unsigned nallocs, nfrees;

static void reporter_new(void *reporter, void *block, size_t bytes)
{
	CHECK(reporter && block && bytes);
	nallocs++;
}

static void reporter_delete(void *reporter, void *block)
{
	CHECK(reporter && block);
	nfrees++;
}

/* Stand-in for c10::reportMemoryUsageToProfiler(), with the argument that only mxbpf's probe looks at. */
typedef void (*report_fn)(void *, int64_t, size_t, size_t, uint16_t, uint64_t);
static unsigned nreports;

static void reporter_usage(void *block, int64_t bytes, size_t allocated, size_t reserved, uint16_t device,
			   uint64_t reported)
{
	CHECK(block && bytes && allocated == 4000 && reserved == 5000 && (device == 0x0301 || !device));
	CHECK(reported == MXBPF_AGENT_REPORTED);
	nreports++;
}

static void another_tool(void *reporter, void *block)
{
	reporter_delete(reporter, block);
}

static volatile alloc_fn alloc_entry = reporter_new;
static volatile free_fn free_entry = reporter_delete;
static volatile report_fn report_entry = reporter_usage;
static void *volatile foreign_entry = &nreports; /* another tool has changed it before the agent came */

/* ---- the agent */

static long (*start)(uint64_t modules);
static volatile uint16_t *listens;
static struct mxbpf_agent_config *config;
static struct mxbpf_agent_shared *shared;

static bool load(const char *dir)
{
	char path[300];
	void *lib;

	snprintf(path, sizeof(path), "%s/gen/agent.so", dir);
	lib = dlopen(path, RTLD_NOW);
	if (!lib) {
		printf("# %s\n", dlerror());
		return false;
	}
	start = (long (*)(uint64_t))dlsym(lib, MXBPF_AGENT_START);
	config = dlsym(lib, MXBPF_AGENT_CONFIG);
	listens = dlsym(lib, MXBPF_AGENT_SWITCH);
	if (!start || !config || !listens)
		return false;
	config->add_callback = (uint64_t)(uintptr_t)add_callback;
	config->remove_callback = (uint64_t)(uintptr_t)remove_callback;
	config->step_callbacks = (uint64_t)(uintptr_t)step_callbacks;
	config->name = (uint64_t)(uintptr_t)name_of;
	config->hooked[MXBPF_AGENT_HOOK_ALLOC] = (uint64_t)(uintptr_t)reporter_new;
	config->hooked[MXBPF_AGENT_HOOK_FREE] = (uint64_t)(uintptr_t)reporter_delete;
	config->hooked[MXBPF_AGENT_HOOK_REPORT] = (uint64_t)(uintptr_t)reporter_usage;
	config->hooks[0] = (struct mxbpf_agent_hook){(uint64_t)(uintptr_t)&alloc_entry, MXBPF_AGENT_HOOK_ALLOC};
	config->hooks[1] = (struct mxbpf_agent_hook){(uint64_t)(uintptr_t)&free_entry, MXBPF_AGENT_HOOK_FREE};
	config->hooks[2] = (struct mxbpf_agent_hook){(uint64_t)(uintptr_t)&foreign_entry, MXBPF_AGENT_HOOK_REPORT};
	config->hooks[3] = (struct mxbpf_agent_hook){(uint64_t)(uintptr_t)&report_entry, MXBPF_AGENT_HOOK_REPORT};
	config->next_number = (uint64_t)(uintptr_t)peek;
	config->thread_number = (uint64_t)(uintptr_t)thread_number;
	config->number_off = offsetof(struct record, number);
	config->of_thread_off = offsetof(struct record, of_thread);
	if (start(MXBPF_AGENT_MODULE_CALLS) || config->error)
		return false;
	shared = (struct mxbpf_agent_shared *)(uintptr_t)config->shared;
	return true;
}

/* Starts recording, as mxbpf does. */
static void listen_now(void)
{
	*listens = 1;
	shared->since_ns = clock_ns(CLOCK_MONOTONIC);
}

static uint64_t recorded(void)
{
	uint64_t n = 0;
	unsigned i;

	for (i = 0; i < MXBPF_AGENT_THREADS; i++)
		n += shared->slots[i].calls;
	return n;
}

/* Makes one call of a scope, with `depth` more calls nested in it. */
static void call(unsigned scope, const char *name, unsigned depth)
{
	struct record r = {.name = name, .number = next_number, .of_thread = scope == MXBPF_AGENT_BACKWARD ? 3 : 0};
	void *context = &context;

	callbacks[scope].start(&context, &r);
	if (depth)
		call(scope, name, depth - 1);
	callbacks[scope].end(&r, context);
	CHECK(!context);
}

/* Allocates and frees as PyTorch's allocator does. */
static void use_memory(uint64_t *block, size_t bytes)
{
	alloc_entry(block, block, bytes);
	free_entry(block, block);
}

static uint64_t memory_kb(void)
{
	char line[200];
	uint64_t kb = 0;
	FREED(file_closed) FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "VmRSS:", 6))
			kb = strtoull(line + 6, NULL, 10);
	return kb;
}

/* ---- tests */

static uint64_t calls_asked_for(void)
{
	const char *text = getenv("MXBPF_TEST_CALLS");
	uint64_t n = text ? strtoull(text, NULL, 10) : 0;

	return n ? n : CALLS;
}

static void test_many(bool numbers)
{
	static const char *const names[] = {"aten::add", "aten::mul", "aten::linear", "AddBackward0"};
	uint64_t n = calls_asked_for() / (numbers ? 8 : 2), i, before = recorded(), kb, began;

	shared->numbers = numbers ? MXBPF_AGENT_NUMBERS_ON : MXBPF_AGENT_NUMBERS_OFF;
	for (i = 0; i < 10000; i++)
		call(0, names[i & 3], 1);
	kb = memory_kb();
	began = clock_ns(CLOCK_MONOTONIC);
	for (i = 0; i < n; i++)
		call(i & 1, names[i & 3], 1);
	printf("# %.0f ns a call\n", (double)(clock_ns(CLOCK_MONOTONIC) - began) / (double)(2 * n));
	/* A call and a nested call of the same name count as one call, as with torch.profiler. */
	CHECK(recorded() - before == n + 10000);
	CHECK(memory_kb() <= kb + SLACK_KB && !shared->no_name && !shared->no_slot);
	CHECK(shared->numbers == (numbers ? MXBPF_AGENT_NUMBERS_ON : MXBPF_AGENT_NUMBERS_OFF));
	shared->numbers = MXBPF_AGENT_NUMBERS_OFF;
}

/* ---- sequence numbers */

/*
 * Makes a call with these fields and one call nested in it. The outer call makes `nodes` graph nodes, the inner one
 * none. Returns their two records, the inner one first.
 */
static const struct mxbpf_agent_call *numbered(unsigned scope, const char *name, uint64_t number, uint64_t of_thread,
					       unsigned nodes)
{
	struct record r = {.name = name, .number = number, .of_thread = of_thread};
	void *context;

	callbacks[scope].start(&context, &r);
	call(0, "aten::inner", 0);
	next_number += nodes;
	callbacks[scope].end(&r, context);
	CHECK(shared->slots[0].batch.ncalls >= 2);
	return &shared->slots[0].batch.calls[shared->slots[0].batch.ncalls - 2];
}

static bool joins(const struct mxbpf_agent_call *c, uint64_t seq)
{
	return c->flags & MXBPF_AGENT_CALL_SEQ && c->seq == seq;
}

static bool bears(const struct mxbpf_agent_call *c, uint64_t seq)
{
	return !(c->flags & MXBPF_AGENT_CALL_SEQ) && c->seq == seq;
}

static void test_numbers(void)
{
	const struct mxbpf_agent_call *c;

	shared->numbers = MXBPF_AGENT_NUMBERS_ON;
	shared->slots[0].batch.ncalls = 0;
	c = numbered(0, "aten::mul", 100, 0, 1);
	CHECK(bears(&c[0], 100) && joins(&c[1], MXBPF_SEQ(3, 100)) && !c[1].origin);
	c = numbered(0, "aten::size", 101, 0, 0);
	CHECK(bears(&c[1], 101));
	c = numbered(0, "aten::mul_", NO_NUMBER, 0, 1);
	CHECK(bears(&c[1], 0));
	/* The call runs on another thread than the operator; that thread has another next number. */
	c = numbered(0, "autograd::engine::evaluate_function: MulBackward0", 100, 0, 0);
	CHECK(bears(&c[1], 100));
	c = numbered(1, "MulBackward0", 7, 2, 0);
	CHECK(joins(&c[1], MXBPF_SEQ(2, 7)) && bears(&c[0], 102) && c[0].origin == MXBPF_SEQ(2, 7) && !c[1].origin);
	c = numbered(1, "AccumulateGrad", NO_NUMBER, 2, 0);
	CHECK(bears(&c[1], 0));
	c = numbered(7, "a mark", 5, 0, 0);
	CHECK(bears(&c[1], 0) && shared->numbers == MXBPF_AGENT_NUMBERS_ON);
}

/* After a call with an impossible field, no call gets a number. */
static void test_wrong_numbers(void)
{
	static const struct {
		unsigned scope;
		uint64_t number, of_thread;
	} wrong[] = {{0, 4711, 0}, {0, 102, 1}, {0, 1ull << 48, 0}, {1, 7, 0}, {1, 0x7ffe00001000, 2ull << 48}};
	const struct mxbpf_agent_call *c;
	unsigned i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		shared->numbers = MXBPF_AGENT_NUMBERS_ON;
		c = numbered(wrong[i].scope, "wrong", wrong[i].number, wrong[i].of_thread, 0);
		CHECK(bears(&c[1], 0) && (i == 4 || (shared->numbers == MXBPF_AGENT_NUMBERS_WRONG && bears(&c[0], 0))));
	}
	shared->numbers = MXBPF_AGENT_NUMBERS_OFF;
	c = numbered(0, "aten::mul", 102, 0, 1);
	CHECK(bears(&c[1], 0));
}

static void test_deep(void)
{
	uint64_t before = recorded();
	struct mxbpf_agent_slot *t = &shared->slots[0];

	call(0, "outer", DEEP - 1);
	CHECK(t->too_deep == DEEP - MXBPF_AGENT_OPEN && !t->depth);
	before = recorded();
	call(0, "after", 0);
	CHECK(recorded() - before == 1);
}

static void test_names(void)
{
	uint64_t before = recorded();
	char name[40];
	unsigned i;

	for (i = 0; i < NAMES; i++) { /* an annotation has a record when it begins, and one when it ends */
		snprintf(name, sizeof(name), "a name of its own %u", i);
		call(7, name, 0);
	}
	CHECK(recorded() - before == 2 * NAMES && shared->no_name > 0 && shared->no_name <= NAMES);
	CHECK(shared->texts_len <= MXBPF_AGENT_TEXTS);
}

static pthread_barrier_t all_there;

static void *call_once(void *alone)
{
	call(0, "aten::add", 0);
	if (!alone)
		pthread_barrier_wait(&all_there);
	return NULL;
}

static void test_threads(void)
{
	static pthread_t threads[THREADS];
	uint64_t before = recorded(), none = shared->no_slot;
	pthread_attr_t small;
	unsigned i, used = 0;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	pthread_barrier_init(&all_there, NULL, THREADS);
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], &small, call_once, NULL))
			abort(); /* the other threads would wait forever */
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	/* The main thread has a slot, too. */
	CHECK(recorded() - before == MXBPF_AGENT_THREADS - 1 &&
	      shared->no_slot - none == THREADS - MXBPF_AGENT_THREADS + 1);
	before = recorded();
	for (i = 0; i < THREADS; i++) { /* run one after another, they need one slot */
		if (pthread_create(&threads[0], &small, call_once, &before))
			abort();
		pthread_join(threads[0], NULL);
	}
	for (i = 0; i < MXBPF_AGENT_THREADS; i++)
		used += shared->slots[i].tid != 0;
	CHECK(recorded() - before == THREADS && used == 1);
	pthread_attr_destroy(&small);
	pthread_barrier_destroy(&all_there);
}

static void test_fork(void)
{
	uint64_t before = recorded();
	int status = -1;
	pid_t pid;

	nread = 0;
	pid = fork();
	if (!pid) {
		if (nread != 1) /* before the fork, because the child may never get the lock of the list */
			_exit(2);
		for (unsigned i = 0; i < 1000; i++)
			call(0, "aten::add", 1);
		use_memory(&before, 64);
		_exit(alloc_entry != reporter_new || free_entry != reporter_delete || report_entry != reporter_usage);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status && recorded() == before);
}

static void test_memory(void)
{
	const struct mxbpf_agent_call *c = shared->slots[0].batch.calls;
	uint64_t before = recorded(), block = 0;
	uint32_t n;

	CHECK(alloc_entry != reporter_new && free_entry != reporter_delete);
	use_memory(&block, 64);
	CHECK(recorded() == before && nallocs == 1 && nfrees == 1); /* mxbpf has not asked for memory */
	shared->memory = 1;
	while (shared->slots[0].batch.ncalls > MXBPF_AGENT_BATCH / 2) /* both records are in one batch */
		call(0, "aten::add", 0);
	before = recorded();
	n = shared->slots[0].batch.ncalls;
	use_memory(&block, 64);
	CHECK(recorded() == before + 2 && nallocs == 2 && nfrees == 2);
	CHECK(c[n].scope == MXBPF_AGENT_MEMORY && c[n].seq == (uintptr_t)&block && c[n].origin == 64);
	CHECK(c[n + 1].scope == MXBPF_AGENT_MEMORY && c[n + 1].seq == (uintptr_t)&block && !c[n + 1].origin &&
	      c[n + 1].flags == MXBPF_AGENT_CALL_FREED);
	CHECK(c[n].name == MXBPF_DEVICE(1, 0) && c[n + 1].name == c[n].name);
	CHECK(c[n].start_ns && c[n].start_ns <= c[n + 1].start_ns && c[n].tid == (uint32_t)gettid() && !c[n].dur_ns);
	shared->since_ns = 0;
	use_memory(&block, 64);
	CHECK(recorded() == before + 2 && nallocs == 3 && nfrees == 3);
	listen_now();
}

static void test_reports(void)
{
	const struct mxbpf_agent_call *c = shared->slots[0].batch.calls;
	uint32_t n;

	CHECK(foreign_entry == &nreports && report_entry != reporter_usage);
	while (shared->slots[0].batch.ncalls > MXBPF_AGENT_BATCH / 2)
		call(0, "aten::add", 0);
	n = shared->slots[0].batch.ncalls;
	report_entry(&n, 700, 4000, 5000, 0x0301, 0);
	report_entry(&n, -700, 4000, 5000, 0x0301, 0);
	report_entry(&n, 700, 4000, 5000, 0, 0);
	CHECK(nreports == 3 && shared->slots[0].batch.ncalls == n + 3);
	CHECK(c[n].scope == MXBPF_AGENT_MEMORY && c[n].seq == (uintptr_t)&n && c[n].origin == 700 && !c[n].flags);
	CHECK(c[n].name == MXBPF_DEVICE(2, 3) && c[n].dur_ns == 5000);
	CHECK(c[n + 1].flags == MXBPF_AGENT_CALL_FREED && c[n + 1].origin == 700);
	CHECK(c[n + 2].name == MXBPF_DEVICE(1, 0) && !c[n + 2].dur_ns); /* the CPU's is not reserved */
}

/* ---- arguments */

/* Stand-in for a tensor: the words before its key set, which mxbpf finds in the code of the library. */
struct tensor {
	uint64_t before[6], ndim, sizes[5], strides[5], other, numel, dtype, keys;
};

/* Stand-in for a list of boxed values. */
struct list {
	uint64_t head[2];
	const struct value *from, *to, *room;
	const struct type {
		uint64_t methods;
		uint32_t kind;
	} * type;
};
enum { KIND_TENSOR = 3, KIND_OPTIONAL = 23 };

/* Makes a call with arguments, and returns the words of its list, or NULL if it has none. */
static const uint64_t *with_args(const struct value *values, uint64_t n)
{
	struct record r = {.name = "aten::add", .number = NO_NUMBER, .values = values, .nvalues = n};
	const struct mxbpf_agent_batch *b = &shared->slots[0].batch;
	void *context;
	uint32_t place;

	while (b->ncalls > MXBPF_AGENT_BATCH / 2)
		call(1, "aten::inner", 0);
	callbacks[0].start(&context, &r);
	callbacks[0].end(&r, context);
	place = b->calls[b->ncalls - 1].args;
	return place ? (const uint64_t *)&shared->words[place] : NULL;
}

static void test_args(void)
{
	static const struct type tensors = {0, KIND_TENSOR}, optional = {0, KIND_OPTIONAL};
	struct tensor two = {.ndim = 2, .sizes = {3, 4}, .strides = {4, 1}, .numel = 12, .dtype = 6}, wrong = two, many,
		      undefined;
	int64_t six[12] = {1, 1, 1, 1, 2, 3, 6, 6, 6, 6, 3, 1};
	struct value elements[] = {{(uintptr_t)&two, TAG_TENSOR, 0}, {(uintptr_t)&undefined, TAG_TENSOR, 0}};
	struct list some = {{0}, elements, elements + 2, NULL, &tensors},
		    none = {{0}, elements, elements, NULL, &tensors};
	struct list maybe = {{0}, elements, elements + 2, NULL, &optional};
	struct value v[MXBPF_ARG_LIST_MAX + 1] = {{(uintptr_t)&two, TAG_TENSOR, 0}, {7, TAG_INT, 0}};
	struct mxbpf_agent_slot *t = &shared->slots[0];
	const uint64_t *w, *again;
	const unsigned removed = nremoved, added = nadded;
	uint64_t truncated = t->truncated, unreadable = t->unreadable;

	wrong.numel = 11;
	many = (struct tensor){.ndim = 6, .sizes = {(uintptr_t)six}, .numel = 6, .dtype = 6};
	shared->details = (struct mxbpf_agent_details){.wanted = MXBPF_AGENT_ARGS,
						       .inputs_off = offsetof(struct record, values),
						       .keys_off = offsetof(struct tensor, keys),
						       .list_off = offsetof(struct list, from),
						       .list_tag = TAG_LIST,
						       .list_kind = KIND_TENSOR,
						       .undefined = (uintptr_t)&undefined};
	needs_args = true;
	free_entry = reporter_delete;
	listen_now();
	CHECK(!start(MXBPF_AGENT_MODULE_CALLS | MXBPF_AGENT_MODULE_ARGS) && nadded == added + MXBPF_AGENT_SCOPES);
	CHECK(shared->registered == MXBPF_AGENT_REGISTERED_ARGS);
	w = with_args(v, 2);
	CHECK(w && w[0] == MXBPF_AGENT_LIST(MXBPF_AGENT_LIST_ARGS, 6) && w[1] == MXBPF_AGENT_TENSOR_WORD(6, 2, 1));
	CHECK(w && w[2] == 3 && w[3] == 4 && w[4] == 4 && w[5] == 1 && w[6] == MXBPF_WORD_SCALAR);
	again = with_args(v, 2);
	CHECK(again == w); /* each list is kept once */
	v[1] = (struct value){(uintptr_t)&some, TAG_LIST, 0};
	w = with_args(v + 1, 1);
	CHECK(w && w[1] == MXBPF_WORD_LIST + 2 && w[2] == MXBPF_AGENT_TENSOR_WORD(6, 2, 1) && w[7] == MXBPF_WORD_OTHER);
	v[1].word = (uintptr_t)&none;
	w = with_args(v + 1, 1);
	CHECK(w && w[0] == MXBPF_AGENT_LIST(MXBPF_AGENT_LIST_ARGS, 1) && w[1] == MXBPF_WORD_LIST);
	v[1].word = (uintptr_t)&maybe;
	w = with_args(v + 1, 1);
	CHECK(w && w[0] == MXBPF_AGENT_LIST(MXBPF_AGENT_LIST_ARGS, 1) && w[1] == MXBPF_WORD_OTHER);
	v[1] = (struct value){(uintptr_t)&many, TAG_TENSOR, 0};
	w = with_args(v + 1, 1);
	CHECK(w && w[1] == MXBPF_AGENT_TENSOR_WORD(6, 6, 1) && w[5] == 1 && w[6] == 2 && w[7] == 3 && w[13] == 1);
	CHECK(!with_args(v, 0) && t->truncated == truncated && t->unreadable == unreadable);
	v[1].word = (uintptr_t)&wrong;
	w = with_args(v + 1, 1);
	CHECK(w && w[1] == MXBPF_WORD_UNREADABLE && t->unreadable == unreadable + 1);
	CHECK(!with_args(v, MXBPF_ARG_LIST_MAX + 1) && t->truncated == truncated + 1);
	/* When there is no room for another list, calls go on without, and are counted. */
	shared->words_len = MXBPF_AGENT_WORDS - 3;
	v[1] = (struct value){0, TAG_STRING, 0};
	CHECK(!with_args(v, 2) && t->truncated == truncated + 2 && shared->words_len == MXBPF_AGENT_WORDS - 3);
	shared->details.wanted = 0;
	needs_args = false;
	CHECK(!start(MXBPF_AGENT_MODULE_CALLS) && nremoved == removed + MXBPF_AGENT_SCOPES);
	CHECK(nadded == added + 2 * MXBPF_AGENT_SCOPES && !with_args(v, 2));
}

static void test_silent(void)
{
	uint64_t before = recorded();

	*listens = 0;
	use_memory(&before, 64); /* the program may have removed the callbacks, so this must do */
	CHECK(!nremoved && recorded() == before);
	CHECK(alloc_entry == reporter_new && free_entry == reporter_delete && report_entry == reporter_usage);
	*listens = 1; /* the next session finds the callbacks registered, and starts nothing */
	call(0, "aten::add", 0);
	CHECK(alloc_entry != reporter_new && free_entry != reporter_delete && report_entry != reporter_usage);
	before = recorded();
	free_entry = another_tool;
	*listens = 0;
	call(0, "aten::add", 1);
	CHECK(recorded() == before && nremoved == MXBPF_AGENT_SCOPES && nadded == MXBPF_AGENT_SCOPES);
	CHECK(alloc_entry == reporter_new && free_entry == another_tool && report_entry == reporter_usage);
	pthread_join(forker, NULL);
	CHECK(!forked_between || changed_ns > FORK_WAITS_NS); /* another thread's fork has waited */
	call(0, "aten::add", 1);			      /* torch may call a removed callback late */
	CHECK(recorded() == before && nremoved == MXBPF_AGENT_SCOPES);
}

static void test_rest(void)
{
	const unsigned removed = nremoved, added = nadded;
	const uint64_t beats = shared->nbeats;
	const struct mxbpf_agent_beat *b = &shared->beats[beats % MXBPF_AGENT_BEATS];
	uint64_t before;

	listen_now();
	call(7, "Optimizer.step#SGD.step", 0);
	call(7, "Optimizer.zero_grad#SGD.zero_grad", 0);
	CHECK(shared->nbeats == beats + 1 && b[0].tid == (uint32_t)gettid() && b[0].ns && b[0].cpu_ns);
	CHECK(b[0].registered == MXBPF_AGENT_REGISTERED && alloc_entry != reporter_new);
	before = recorded();
	shared->since_ns = 0;
	shared->rest = 1;
	call(0, "aten::add", 0);
	CHECK(nremoved == removed + MXBPF_AGENT_SCOPES - 1 && shared->registered == MXBPF_AGENT_REGISTERED_BEATS);
	CHECK(alloc_entry == reporter_new);
	call(7, "Optimizer.step#SGD.step", 0);
	CHECK(shared->nbeats == beats + 2 && b[1].registered == MXBPF_AGENT_REGISTERED_BEATS && recorded() == before);
	CHECK(b[1].cpu_ns > b[0].cpu_ns && b[1].ns - b[0].ns >= b[1].cpu_ns - b[0].cpu_ns);
	shared->rest = 0;
	CHECK(!start(MXBPF_AGENT_MODULE_CALLS) && nadded == added + MXBPF_AGENT_SCOPES);
	CHECK(nremoved == removed + MXBPF_AGENT_SCOPES && shared->registered == MXBPF_AGENT_REGISTERED);
}

int main(void)
{
	char dir[200];
	ssize_t n = readlink("/proc/self/exe", dir, sizeof(dir) - 1);

	dir[n > 0 ? n : 0] = '\0';
	for (n = 0; n < 2 && strrchr(dir, '/'); n++) /* strips unit/NAME to get the build folder */
		*strrchr(dir, '/') = '\0';
	TEST("the agent starts and registers callbacks for four scopes")
	{
		CHECK(load(dir));
		if (!shared)
			return 1;
		CHECK(nadded == 4 && callbacks[0].start && callbacks[1].start && callbacks[2].start &&
		      callbacks[7].start);
		listen_now();
	}
	TEST("the agent counts each of millions of calls, and its memory does not grow")
	test_many(false);
	TEST("the agent counts each of millions of calls with sequence numbers, and its memory does not grow")
	test_many(true);
	TEST("a call gets torch's sequence number, and joins a node only if it is one or has made one")
	test_numbers();
	TEST("an impossible sequence number turns off the sequence numbers of all later calls")
	test_wrong_numbers();
	TEST("calls beyond the maximum depth are counted, and later calls are still paired")
	test_deep();
	TEST("threads beyond the slots are counted, and a thread that ends releases its slot")
	test_threads();
	TEST("memory is recorded through the import table, and only while mxbpf asks for it")
	test_memory();
	TEST("memory of a device is recorded with its allocator's reserve, and an entry of another tool is left alone")
	test_reports();
	TEST("a forked child records nothing, has no list of callbacks to read, and restores the entries that it has "
	     "inherited")
	test_fork();
	TEST("calls are recorded without a name if the name table is full, and these calls are counted")
	test_names();
	TEST("after recording is switched off, the agent records nothing, removes its callbacks while nobody forks, "
	     "and "
	     "restores entries that no other tool has changed")
	test_silent();
	TEST("arguments are read while mxbpf asks for them, and what cannot be read or kept is counted")
	test_args();
	TEST("the agent notes steps of an optimizer, and when it rests nothing else, until it is started again")
	test_rest();
	UNIT_MAIN_END;
}
