// SPDX-License-Identifier: Apache-2.0
/*
 * PyTorch: a callback of RecordFunction for each scope, as in torch.profiler. The agent calls exported functions of
 * the library. It learns a call's scope from the callback that is called. It reads only two fields of a
 * RecordFunction, the sequence number and its thread, if mxbpf has found them in the library's code and a session
 * wants them.
 */
#include <errno.h>
#include <string.h>

#include "agent.h"
#include "details.h"
#include "fork.h"
#include "memory.h"

/*
 * at::RecordFunctionCallback, passed by value. The headers of 2.1 to 2.13 declare these fields and 40 bytes. A
 * later version may append fields. The callee reads the object from the caller's stack, so `later` makes such
 * fields zero.
 */
struct record_callback {
	void *(*start)(void **context, const void *call);
	void (*end)(const void *call, void *context);
	double sampling_probability;
	uint8_t scopes[10];
	uint8_t needs_inputs, needs_outputs, needs_ids;
	uint8_t later[91];
};
_Static_assert(offsetof(struct record_callback, later) == 37, "as in ATen/record_function.h");

typedef uint64_t (*add_fn)(struct record_callback);
typedef void (*remove_fn)(uint64_t);
typedef const char *(*name_fn)(const void *);
typedef uint64_t (*number_fn)(void);

/* Name of the RECORD_FUNCTION that the engine puts around a node. It has the node's number and creates no node. */
#define EVALUATE "autograd::engine::evaluate_function: "

#define NO_NUMBER	  ((uint64_t)-1) /* number of a call that creates no node */
#define THREAD_NUMBER_MAX 0xffff	 /* largest thread number that MXBPF_SEQ() can hold */

/*
 * Longest time between start() and the attach of mxbpf, even on an overloaded machine. After it, mxbpf must have
 * been killed.
 */
#define STOP_AFTER_NS 15000000000ull

static uint64_t handles[MXBPF_AGENT_SCOPES];
static uint64_t started_ns; /* atomic */
static bool heard;	    /* atomic: mxbpf was attached since start() */

/* ---- sequence numbers */

static uint64_t field(const void *rf, uint32_t off)
{
	uint64_t value;

	memcpy(&value, (const char *)rf + off, sizeof(value));
	return value;
}

static bool torch_begins(const char *text, const char *with)
{
	while (*with && *text == *with)
		text++, with++;
	return !*with;
}

static uint64_t next_number(void)
{
	return ((number_fn)mxbpf_agent_config.next_number)();
}

/*
 * Reads the numbers of a call. An operator has its thread's next number and no thread. A node has the number and
 * the thread of its operator. Any other values mean that the fields are not at these offsets, and no numbers are
 * read any more.
 */
static void __attribute__((noinline))
read_number(struct mxbpf_agent_shared *s, struct mxbpf_agent_open *o, const void *rf, const char *name)
{
	uint64_t number = field(rf, mxbpf_agent_config.number_off);
	uint64_t thread = field(rf, mxbpf_agent_config.of_thread_off);
	bool node = o->scope == MXBPF_AGENT_BACKWARD, evaluate;

	if (number == NO_NUMBER)
		return;
	evaluate = !node && name && torch_begins(name, EVALUATE);
	if (number != MXBPF_SEQ_NR(number) || (node ? !thread : thread) ||
	    (!node && !evaluate && number != next_number())) {
		__atomic_store_n(&s->numbers, MXBPF_AGENT_NUMBERS_WRONG, __ATOMIC_RELAXED);
		return;
	}
	if (thread > THREAD_NUMBER_MAX)
		return;
	o->seq = MXBPF_SEQ(thread, number);
	if (!evaluate)
		o->join = node ? MXBPF_AGENT_JOIN_BACKWARD : MXBPF_AGENT_JOIN_FORWARD;
}

static void begin_number(struct mxbpf_agent_shared *s, struct mxbpf_agent_open *o, const struct mxbpf_agent_open *outer,
			 const void *rf, const char *name)
{
	o->seq = o->origin = 0;
	o->join = MXBPF_AGENT_JOIN_NONE;
	if (__atomic_load_n(&s->numbers, __ATOMIC_RELAXED) != MXBPF_AGENT_NUMBERS_ON)
		return;
	if (outer)
		o->origin = outer->scope == MXBPF_AGENT_BACKWARD ? outer->seq : outer->origin;
	if (mxbpf_agent_config.number_off && (o->scope == MXBPF_AGENT_FUNCTION || o->scope == MXBPF_AGENT_BACKWARD))
		read_number(s, o, rf, name);
}

/* Completes the numbers of a call, on the thread that began it. */
static void end_number(struct mxbpf_agent_call *c, const struct mxbpf_agent_open *o)
{
	uint64_t thread;

	if (o->join == MXBPF_AGENT_JOIN_FORWARD) {
		if (next_number() <= o->seq)
			return;
		thread = ((number_fn)mxbpf_agent_config.thread_number)();
		if (thread > THREAD_NUMBER_MAX)
			return;
		c->seq = MXBPF_SEQ(thread, o->seq);
	}
	if (o->join != MXBPF_AGENT_JOIN_NONE)
		c->flags |= MXBPF_AGENT_CALL_SEQ;
}

/* ---- the end of a call */

/* Returns true if the call began while mxbpf was recording, and mxbpf is still recording. */
static bool is_wanted(const struct mxbpf_agent_shared *s, const struct mxbpf_agent_open *o)
{
	uint64_t since = __atomic_load_n(&s->since_ns, __ATOMIC_ACQUIRE);

	return since && o->start_ns >= since;
}

/* Returns the number of open calls without ended ones at the top. */
static uint32_t trim(const struct mxbpf_agent_slot *t, uint32_t depth)
{
	while (depth && !__atomic_load_n(&t->open[depth - 1].call, __ATOMIC_ACQUIRE))
		depth--;
	return depth;
}

/* Pops the innermost call and returns the enclosing one, or NULL. */
static struct mxbpf_agent_open *pop(struct mxbpf_agent_slot *t)
{
	uint32_t depth = trim(t, t->depth - 1);

	__atomic_store_n(&t->depth, depth, __ATOMIC_RELEASE);
	return depth ? &t->open[depth - 1] : NULL;
}

static inline void torch_fill(struct mxbpf_agent_call *c, const struct mxbpf_agent_open *o, uint32_t tid,
			      uint32_t end_tid, uint64_t now, unsigned flags)
{
	uint64_t dur_ns = now > o->start_ns ? now - o->start_ns : 0; /* another thread's clock may be behind */

	c->start_ns = o->start_ns;
	c->dur_ns = dur_ns;
	c->self_ns = flags & MXBPF_AGENT_CALL_ASYNC || o->inner_ns > dur_ns ? 0 : dur_ns - o->inner_ns;
	c->seq = o->seq;
	c->origin = o->origin;
	c->name = o->name;
	c->end_tid = end_tid;
	c->tid = tid;
	c->scope = o->scope;
	c->flags = (uint8_t)flags;
	c->pad[0] = c->pad[1] = 0;
	c->args = o->args;
	c->stack = o->stack;
}

static void __attribute__((noinline)) record_twin(struct mxbpf_agent_slot *t, const struct mxbpf_agent_open *o)
{
	*agent_next(t) = o->twin;
	agent_recorded(t);
}

/* Records the innermost call of a thread, which ends, or keeps it as the twin of the enclosing call. */
static void torch_record(const struct mxbpf_agent_shared *s, struct mxbpf_agent_slot *t, struct mxbpf_agent_open *o,
			 uint64_t now)
{
	struct mxbpf_agent_open *outer = pop(t);
	struct mxbpf_agent_call *c;
	bool twin = false;

	if (o->inner == MXBPF_AGENT_INNER_TWIN)
		o->inner_ns -= o->twin.self_ns;
	if (outer) {
		outer->inner_ns += now - o->start_ns;
		twin = outer->inner == MXBPF_AGENT_INNER_NONE && outer->name == o->name && is_wanted(s, outer);
		if (outer->inner == MXBPF_AGENT_INNER_TWIN)
			record_twin(t, outer);
		if (!twin)
			outer->inner = MXBPF_AGENT_INNER_MORE;
	}
	c = twin ? &outer->twin : agent_next(t);
	torch_fill(c, o, t->tid, t->tid, now, 0);
	end_number(c, o);
	if (twin)
		__atomic_store_n(&outer->inner, MXBPF_AGENT_INNER_TWIN, __ATOMIC_RELEASE);
	else
		agent_recorded(t);
}

/* Records a call that is not its thread's innermost or that another thread ends, and the twin that was kept for it. */
static void record_elsewhere(struct mxbpf_agent_shared *s, const struct mxbpf_agent_slot *of,
			     struct mxbpf_agent_slot *to, const struct mxbpf_agent_open *o, uint64_t now)
{
	bool twin = o->inner == MXBPF_AGENT_INNER_TWIN;

	if (!to) {
		__atomic_fetch_add(&s->no_slot, 1 + twin, __ATOMIC_RELAXED);
		return;
	}
	if (twin)
		record_twin(to, o);
	torch_fill(agent_next(to), o, of->tid, to->tid, now, MXBPF_AGENT_CALL_ASYNC);
	agent_recorded(to);
}

/*
 * Ends a call that is not its thread's innermost, or that another thread ends. to: slot of the ending thread, or
 * NULL. The call's own thread may move it down meanwhile, see close_gaps(): whoever clears `call` ends it.
 */
static bool end_within(struct mxbpf_agent_shared *s, struct mxbpf_agent_slot *of, struct mxbpf_agent_slot *to,
		       uint64_t call, uint64_t now)
{
	uint32_t depth = __atomic_load_n(&of->depth, __ATOMIC_ACQUIRE), i;
	struct mxbpf_agent_open o;

	for (i = depth < MXBPF_AGENT_OPEN ? depth : MXBPF_AGENT_OPEN; i--;) {
		uint64_t found = call;

		if (__atomic_load_n(&of->open[i].call, __ATOMIC_ACQUIRE) != call)
			continue;
		o = of->open[i];
		if (!__atomic_compare_exchange_n(&of->open[i].call, &found, 0, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_ACQUIRE))
			continue;
		if (is_wanted(s, &o))
			record_elsewhere(s, of, to, &o, now);
		return true;
	}
	return false;
}

/*
 * Moves the open calls of the calling thread down over those that have ended below them. Coroutines of one thread can
 * have annotations open such that there is always one, and the room for open calls would fill. A call is at its new
 * place before it leaves the old one, so that a search from above finds it.
 */
static void close_gaps(struct mxbpf_agent_slot *t)
{
	uint32_t depth = t->depth, i, to = 0;

	for (i = 0; i < depth; i++) {
		uint64_t call = __atomic_load_n(&t->open[i].call, __ATOMIC_ACQUIRE);

		if (!call)
			continue;
		if (i != to) {
			__atomic_store_n(&t->open[to].call, 0, __ATOMIC_RELEASE);
			t->open[to] = t->open[i];
			__atomic_store_n(&t->open[to].call, call, __ATOMIC_RELEASE);
			if (!__atomic_compare_exchange_n(&t->open[i].call, &call, 0, false, __ATOMIC_ACQ_REL,
							 __ATOMIC_ACQUIRE))
				__atomic_store_n(&t->open[to].call, 0, __ATOMIC_RELEASE); /* it ended meanwhile */
		}
		to++;
	}
	__atomic_store_n(&t->depth, to, __ATOMIC_RELEASE);
}

static void end_elsewhere(struct mxbpf_agent_shared *s, struct mxbpf_agent_slot *t, uint64_t call, uint64_t now)
{
	unsigned i;

	if (!t && s->since_ns)
		t = agent_take_slot(s);
	if (t && end_within(s, t, t, call, now)) {
		close_gaps(t);
		return;
	}
	for (i = 0; i < MXBPF_AGENT_THREADS; i++)
		if (&s->slots[i] != t && __atomic_load_n(&s->slots[i].depth, __ATOMIC_RELAXED) &&
		    end_within(s, &s->slots[i], t, call, now))
			return;
}

static void on_end(const void *rf, void *context)
{
	struct mxbpf_agent_shared *s = agent_shared();
	struct mxbpf_agent_slot *t = agent_own_slot();
	uint64_t call = (uint64_t)(uintptr_t)rf, now;
	struct mxbpf_agent_open *top;

	(void)context;
	if (!s || (!mxbpf_agent_switch && (!t || !t->depth)))
		return;
	now = t ? agent_time(s, t) : agent_clock(&s->clock);
	top = t && t->depth ? &t->open[t->depth - 1] : NULL;
	if (!top || top->call != call) {
		end_elsewhere(s, t, call, now);
		return;
	}
	__atomic_store_n(&top->call, 0, __ATOMIC_RELEASE);
	if (is_wanted(s, top))
		torch_record(s, t, top, now);
	else
		pop(t);
}

/* ---- the start of a call */

/* Removes all callbacks, or all but that of annotations, which is the last one. */
static void keep_only(enum mxbpf_agent_registered what)
{
	struct mxbpf_agent_shared *s = agent_shared();
	unsigned i, end = what ? MXBPF_AGENT_USER : MXBPF_AGENT_SCOPES;
	uint32_t was;

	if (!s || !agent_fork_try()) /* the next call tries again */
		return;
	was = s->registered;
	for (i = was == MXBPF_AGENT_REGISTERED_BEATS ? MXBPF_AGENT_USER : 0; was && i < end; i++)
		((remove_fn)mxbpf_agent_config.remove_callback)(handles[i]);
	if (was) {
		agent_memory_stop();
		__atomic_store_n(&s->registered, what, __ATOMIC_RELEASE);
		mxbpf_agent_config.registered = what;
	}
	agent_fork_go();
}

static void stop(void)
{
	keep_only(MXBPF_AGENT_NOT_REGISTERED);
}

/* Keeps only beats: mxbpf measures how fast the program is without the agent. */
static void __attribute__((noinline, cold)) rest(struct mxbpf_agent_shared *s)
{
	uint32_t was = __atomic_load_n(&s->registered, __ATOMIC_RELAXED);

	if (was && was != MXBPF_AGENT_REGISTERED_BEATS)
		keep_only(MXBPF_AGENT_REGISTERED_BEATS);
}

static void __attribute__((noinline)) begin_beat(struct mxbpf_agent_shared *s, const char *name)
{
	struct mxbpf_agent_slot *t = name && torch_begins(name, "Optimizer.step#") ? agent_my_slot(s) : NULL;

	if (!t)
		return;
	s->beats[__atomic_fetch_add(&s->nbeats, 1, __ATOMIC_RELAXED) & (MXBPF_AGENT_BEATS - 1)] =
		(struct mxbpf_agent_beat){agent_time(s, t), agent_ran(), t->tid, s->registered};
}

/* After start(), mxbpf has a limited time to attach. */
bool agent_is_forsaken(void)
{
	return __atomic_load_n(&heard, __ATOMIC_RELAXED) ||
	       agent_now() - __atomic_load_n(&started_ns, __ATOMIC_RELAXED) > STOP_AFTER_NS;
}

/* Removes the callbacks if no mxbpf is attached and none will attach. */
static void __attribute__((noinline, cold)) nobody_listens(struct mxbpf_agent_shared *s)
{
	if (s && __atomic_load_n(&s->registered, __ATOMIC_RELAXED) && agent_is_forsaken())
		stop();
}

/* Reads the details of a call. mxbpf reads open calls at any time, so details are set before the call is. */
static void __attribute__((noinline))
begin_details(struct mxbpf_agent_shared *s, struct mxbpf_agent_slot *t, struct mxbpf_agent_open *o,
	      const struct mxbpf_agent_open *outer, const void *rf)
{
	if (s->details.wanted & MXBPF_AGENT_ARGS)
		o->args = agent_args(s, t, rf);
	if (s->details.wanted & MXBPF_AGENT_STACK)
		o->stack = agent_stack(s, t, outer, &o->top);
}

/* Records that an annotation begins, so that mxbpf knows it while the calls inside it end. */
static void __attribute__((noinline)) begin_range(struct mxbpf_agent_slot *t, const struct mxbpf_agent_open *o)
{
	*agent_next(t) = (struct mxbpf_agent_call){
		.start_ns = o->start_ns,
		.name = o->name,
		.tid = t->tid,
		.end_tid = t->tid,
		.scope = MXBPF_AGENT_RANGE,
	};
	agent_recorded(t);
}

static void torch_begin(const void *rf, unsigned scope)
{
	struct mxbpf_agent_shared *s = agent_shared();
	struct mxbpf_agent_slot *t;
	struct mxbpf_agent_open *o;
	const char *name;
	uint32_t depth;

	if (!s)
		s = agent_inherit();
	if (!s || !mxbpf_agent_switch) {
		nobody_listens(s);
		return;
	}
	if (!__atomic_load_n(&heard, __ATOMIC_RELAXED)) /* all threads read this line of the cache: written once */
		__atomic_store_n(&heard, true, __ATOMIC_RELAXED);
	if (s->rest)
		rest(s);
	if (scope == MXBPF_AGENT_USER)
		begin_beat(s, ((name_fn)mxbpf_agent_config.name)(rf));
	if (!s->since_ns)
		return;
	if (s->memory)
		agent_memory_keep();
	t = agent_my_slot(s);
	if (!t)
		return;
	depth = trim(t, t->depth); /* drops calls that other threads have ended */
	if (depth == MXBPF_AGENT_OPEN) {
		close_gaps(t);
		depth = t->depth;
	}
	if (depth == MXBPF_AGENT_OPEN) {
		__atomic_store_n(&t->too_deep, t->too_deep + 1, __ATOMIC_RELAXED);
		return;
	}
	o = &t->open[depth];
	o->inner_ns = 0;
	o->inner = MXBPF_AGENT_INNER_NONE;
	o->scope = (uint8_t)scope;
	name = ((name_fn)mxbpf_agent_config.name)(rf);
	o->name = agent_name(s, t, name);
	begin_number(s, o, depth ? o - 1 : NULL, rf, name);
	o->args = o->stack = 0;
	if (s->details.wanted)
		begin_details(s, t, o, depth ? o - 1 : NULL, rf);
	o->start_ns = agent_time(s, t);
	__atomic_store_n(&o->call, (uint64_t)(uintptr_t)rf, __ATOMIC_RELEASE);
	__atomic_store_n(&t->depth, depth + 1, __ATOMIC_RELEASE);
	if (scope == MXBPF_AGENT_USER)
		begin_range(t, o);
}

/* The callback returns a std::unique_ptr through its first argument. It stays empty. */
#define START(name, scope)                                                                                             \
	static void *name(void **context, const void *rf)                                                              \
	{                                                                                                              \
		*context = NULL;                                                                                       \
		torch_begin(rf, scope);                                                                                \
		return context;                                                                                        \
	}
START(on_function, MXBPF_AGENT_FUNCTION)
START(on_backward, MXBPF_AGENT_BACKWARD)
START(on_script, MXBPF_AGENT_SCRIPT)
START(on_user, MXBPF_AGENT_USER)

static const struct {
	void *(*start)(void **context, const void *rf);
	unsigned scope; /* at::RecordScope */
} callbacks[MXBPF_AGENT_SCOPES] = {
	[MXBPF_AGENT_FUNCTION] = {on_function, 0},
	[MXBPF_AGENT_BACKWARD] = {on_backward, 1},
	[MXBPF_AGENT_SCRIPT] = {on_script, 2},
	[MXBPF_AGENT_USER] = {on_user, 7},
};

/* Callbacks that were registered without arguments, or with arguments that nobody wants any more, are replaced. */
static int start(uint64_t wanted)
{
	const bool args = wanted & MXBPF_AGENT_MODULE_ARGS;
	const uint32_t registered = args ? MXBPF_AGENT_REGISTERED_ARGS : MXBPF_AGENT_REGISTERED;
	struct mxbpf_agent_shared *s = agent_shared();
	bool no_fork;
	unsigned i;
	int err;

	if (!mxbpf_agent_config.add_callback || !mxbpf_agent_config.remove_callback || !mxbpf_agent_config.name)
		return -ENOSYS;
	__atomic_store_n(&started_ns, agent_now(), __ATOMIC_RELAXED);
	__atomic_store_n(&heard, false, __ATOMIC_RELAXED);
	if (s->registered != registered)
		stop();
	err = agent_memory_start();
	if (err || s->registered)
		return err;
	agent_fork_watch();
	no_fork = agent_fork_stop();
	for (i = 0; i < MXBPF_AGENT_SCOPES; i++) {
		struct record_callback c = {.start = callbacks[i].start, .end = on_end, .sampling_probability = 1};

		c.scopes[callbacks[i].scope] = 1;
		c.needs_inputs = args;
		handles[i] = ((add_fn)mxbpf_agent_config.add_callback)(c);
	}
	__atomic_store_n(&s->registered, registered, __ATOMIC_RELEASE);
	mxbpf_agent_config.registered = registered;
	if (no_fork)
		agent_fork_go();
	return 0;
}

const struct agent_module agent_record_function = {"torch", MXBPF_AGENT_MODULE_CALLS, start, stop};
