// SPDX-License-Identifier: Apache-2.0
#include "records/gate.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define PAGE	     4096u
#define ERRNO_MAX    4095
#define ADDRESS_BITS 47 /* of a process */
#define SHARED	     struct mxbpf_agent_shared
#define SLOT(i)	     (offsetof(SHARED, slots) + (uint64_t)(i) * sizeof(struct mxbpf_agent_slot))

/* ---- the gate */

int gate_break(struct gate *g, const char *why, ...)
{
	int whole = 0;
	va_list args;

	if (!__atomic_compare_exchange_n(&g->state, &whole, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return -EPROTO;
	va_start(args, why);
	vsnprintf(g->why, sizeof(g->why), why, args);
	va_end(args);
	__atomic_store_n(&g->state, 2, __ATOMIC_RELEASE);
	return -EPROTO;
}

static bool is_shut(const struct gate *g)
{
	return __atomic_load_n(&g->state, __ATOMIC_ACQUIRE);
}

const char *gate_why(const struct gate *g)
{
	return __atomic_load_n(&g->state, __ATOMIC_ACQUIRE) == 2 ? g->why : NULL;
}

/* Copies a piece of the shared memory. */
static int gate_copy(struct gate *g, uint64_t off, void *to, size_t bytes)
{
	size_t got = 0;
	ssize_t n = 1;

	if (is_shut(g))
		return -EPROTO;
	while (got < bytes && n > 0) {
		n = pread(g->fd, (char *)to + got, bytes - got, (off_t)(off + got));
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n > 0)
			got += (size_t)n;
	}
	if (n < 0)
		return gate_break(g, "its shared memory cannot be read (%s)", strerror(errno));
	return got == bytes ? 0 : gate_break(g, "its shared memory is shorter than %zu bytes", sizeof(SHARED));
}

/* ---- the configuration, and the beginning of the shared memory */

int gate_config(struct gate *g, const struct mxbpf_agent_config *c, uint64_t *bytes)
{
	*bytes = (sizeof(SHARED) + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	if (c->error > 0 || c->error < -ERRNO_MAX)
		return gate_break(g, "its configuration has no valid error number");
	if (c->shared % PAGE || c->shared > UINT64_MAX - *bytes)
		return gate_break(g, "its configuration has no valid address of the shared memory");
	return 0;
}

int gate_head(struct gate *g, struct gate_head *to)
{
	struct {
		uint64_t words[offsetof(SHARED, names) / sizeof(uint64_t)];
	} raw;
	const char *at = (const char *)raw.words;

	if (gate_copy(g, 0, &raw, sizeof(raw)))
		return -EPROTO;
	memcpy(&to->magic, at + offsetof(SHARED, magic), sizeof(to->magic));
	memcpy(&to->version, at + offsetof(SHARED, version), sizeof(to->version));
	memcpy(&to->no_slot, at + offsetof(SHARED, no_slot), sizeof(to->no_slot));
	memcpy(&to->no_name, at + offsetof(SHARED, no_name), sizeof(to->no_name));
	memcpy(&to->orphans, at + offsetof(SHARED, orphans), sizeof(to->orphans));
	memcpy(&to->unheard, at + offsetof(SHARED, unheard), sizeof(to->unheard));
	memcpy(&to->unheard_calls, at + offsetof(SHARED, unheard_calls), sizeof(to->unheard_calls));
	memcpy(&to->nbeats, at + offsetof(SHARED, nbeats), sizeof(to->nbeats));
	memcpy(&to->registered, at + offsetof(SHARED, registered), sizeof(to->registered));
	memcpy(&to->numbers, at + offsetof(SHARED, numbers), sizeof(to->numbers));
	if (to->numbers > MXBPF_AGENT_NUMBERS_WRONG || to->registered > MXBPF_AGENT_REGISTERED_BEATS)
		return gate_break(g, "its shared memory has a state that does not exist");
	return 0;
}

int gate_beats(struct gate *g, struct mxbpf_agent_beat *to)
{
	struct mxbpf_agent_beat *at = malloc(sizeof(*at) * MXBPF_AGENT_BEATS);
	struct gate_head head;
	uint64_t n, i;
	int err = at ? gate_head(g, &head) : -ENOMEM;

	if (!err)
		err = gate_copy(g, offsetof(SHARED, beats), at, sizeof(*at) * MXBPF_AGENT_BEATS);
	n = err ? 0 : head.nbeats < MXBPF_AGENT_BEATS ? head.nbeats : MXBPF_AGENT_BEATS;
	for (i = 0; i < n;
	     i++) /* a beat that is just being written does not fit to the others, and is left out later */
		to[i] = at[(head.nbeats - n + i) % MXBPF_AGENT_BEATS];
	free(at);
	return err ? err : (int)n;
}

/* ---- calls */

#define DEVICES_MAX 128 /* device types and ordinals, which are bytes in the runtime */

/* Returns what is wrong with a record of memory that was made before now_ns, or NULL. */
static const char *memory_fault(const struct mxbpf_agent_call *c, uint64_t now_ns)
{
	const uint32_t type = c->name >> 16, ordinal = c->name & 0xffff;

	if (!c->start_ns || c->start_ns > now_ns)
		return "a record of memory has a time that is not in the past";
	if (c->flags & ~MXBPF_AGENT_CALL_FREED || c->args)
		return "a record of memory has what only calls have";
	if (!c->seq || c->origin >> ADDRESS_BITS || c->dur_ns >> ADDRESS_BITS || c->self_ns >> ADDRESS_BITS ||
	    (!c->origin && !(c->flags & MXBPF_AGENT_CALL_FREED)))
		return "a record of memory has no address, no bytes, or more bytes than there are";
	return !type || type > DEVICES_MAX || ordinal >= DEVICES_MAX ? "a record of memory has no valid device" : NULL;
}

/* Returns the latest time that the agent can have written, as its clock may be slightly ahead. */
static uint64_t latest_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC) + MXBPF_AGENT_CLOCK_AHEAD_NS;
}

static const char *times_fault(const struct mxbpf_agent_call *c, uint64_t now_ns)
{
	if (!c->start_ns || c->start_ns > now_ns || c->dur_ns > now_ns - c->start_ns)
		return "a call has times that are not in the past";
	if (c->scope == MXBPF_AGENT_RANGE && (c->dur_ns || c->flags || c->seq || c->origin || c->args || c->stack))
		return "an annotation that begins has what only calls have that have ended";
	if (c->self_ns > c->dur_ns)
		return "a call took longer without its inner calls than with them";
	if (c->scope > MXBPF_AGENT_RANGE || c->flags & ~(MXBPF_AGENT_CALL_ASYNC | MXBPF_AGENT_CALL_SEQ))
		return "a call has a scope or a flag that does not exist";
	return c->name >= MXBPF_AGENT_TEXTS ? "a call has a name outside of the texts" : NULL;
}

/* Returns what is wrong with a call that ended before now_ns, or with a record of memory, or NULL. */
static const char *call_fault(const struct mxbpf_agent_call *c, uint64_t now_ns)
{
	const char *fault = c->scope == MXBPF_AGENT_MEMORY ? memory_fault(c, now_ns) : times_fault(c, now_ns);

	if (fault)
		return fault;
	if (!c->tid || !c->end_tid || c->tid > GATE_TID_MAX || c->end_tid > GATE_TID_MAX)
		return "a call has a thread number that does not exist";
	if (c->tid != c->end_tid && !(c->flags & MXBPF_AGENT_CALL_ASYNC))
		return "a call ended on another thread without saying so";
	if (c->args >= MXBPF_AGENT_WORDS || c->stack >= MXBPF_AGENT_WORDS)
		return "a call has arguments or a stack outside of the words";
	return NULL;
}

static int check_calls(struct gate *g, const struct mxbpf_agent_call *calls, unsigned n)
{
	const uint64_t now_ns = latest_ns();
	const char *fault = NULL;
	unsigned i;

	for (i = 0; i < n && !fault; i++)
		fault = call_fault(&calls[i], now_ns);
	return fault ? gate_break(g, "%s", fault) : 0;
}

int gate_slot(struct gate *g, unsigned slot, struct gate_slot *to)
{
	char raw[offsetof(struct mxbpf_agent_slot, batch)];

	if (gate_copy(g, SLOT(slot), raw, sizeof(raw)))
		return -EPROTO;
	memcpy(&to->tid, raw + offsetof(struct mxbpf_agent_slot, tid), sizeof(to->tid));
	memcpy(&to->uses, raw + offsetof(struct mxbpf_agent_slot, uses), sizeof(to->uses));
	memcpy(&to->depth, raw + offsetof(struct mxbpf_agent_slot, depth), sizeof(to->depth));
	memcpy(&to->calls, raw + offsetof(struct mxbpf_agent_slot, calls), sizeof(to->calls));
	memcpy(&to->too_deep, raw + offsetof(struct mxbpf_agent_slot, too_deep), sizeof(to->too_deep));
	memcpy(&to->unreadable, raw + offsetof(struct mxbpf_agent_slot, unreadable), sizeof(to->unreadable));
	memcpy(&to->truncated, raw + offsetof(struct mxbpf_agent_slot, truncated), sizeof(to->truncated));
	if (to->tid > GATE_TID_MAX || to->depth > MXBPF_AGENT_OPEN)
		return gate_break(g, "a thread's slot has numbers that no thread has");
	return 0;
}

/*
 * The thread goes on writing. Between two batches it changes seq after the number of calls and before the calls, so a
 * copy that lies between two equal readings of the head is one batch.
 */
int gate_tail(struct gate *g, unsigned slot, struct mxbpf_agent_batch *to)
{
	const uint64_t off = SLOT(slot) + offsetof(struct mxbpf_agent_slot, batch);
	struct mxbpf_agent_batch after;
	uint32_t n;

	if (gate_copy(g, off, to, MXBPF_AGENT_BATCH_HEAD))
		return -EPROTO;
	n = to->ncalls;
	if (!n)
		return 0;
	if (n > MXBPF_AGENT_BATCH)
		return gate_break(g, "a batch has %u calls", n);
	if (gate_copy(g, off + MXBPF_AGENT_BATCH_HEAD, to->calls, n * sizeof(to->calls[0])) ||
	    gate_copy(g, off, &after, MXBPF_AGENT_BATCH_HEAD))
		return -EPROTO;
	if (after.seq != to->seq || after.slot_use != to->slot_use)
		return 0;
	if (to->slot_use >> 32 != slot)
		return gate_break(g, "a batch belongs to another slot than the one that it is in");
	to->our_tid = 0;
	to->what = MXBPF_AGENT_CALLS;
	return check_calls(g, to->calls, n) ? -EPROTO : (int)n;
}

int gate_spilled(struct gate *g, unsigned i, struct mxbpf_agent_batch *to)
{
	const uint64_t off = offsetof(SHARED, spill) + (uint64_t)i * sizeof(*to);
	uint32_t complete;

	if (gate_copy(g, offsetof(SHARED, is_spilled) + i * sizeof(complete), &complete, sizeof(complete)))
		return -EPROTO;
	if (!complete)
		return -EAGAIN;
	if (gate_copy(g, off, to, sizeof(*to)))
		return -EPROTO;
	to->our_tid = 0;
	return gate_batch(g, to, sizeof(*to)) ? -EPROTO : (int)to->ncalls;
}

/* Checks the twin that an open call keeps. It may change while it is copied, so an inconsistent copy is dropped. */
static void check_twin(struct mxbpf_agent_open *o, uint64_t now_ns)
{
	if (o->inner == MXBPF_AGENT_INNER_TWIN &&
	    (o->twin.start_ns < o->start_ns || o->twin.scope >= MXBPF_AGENT_SCOPES || call_fault(&o->twin, now_ns)))
		o->inner = MXBPF_AGENT_INNER_NONE;
}

/*
 * The thread goes on writing: it writes the name of its next call here before that call's start, and the start before
 * the call.
 */
int gate_open(struct gate *g, unsigned slot, unsigned level, struct mxbpf_agent_open *to)
{
	const uint64_t off = SLOT(slot) + offsetof(struct mxbpf_agent_slot, open) +
			     (uint64_t)level * sizeof(struct mxbpf_agent_open);
	struct {
		uint64_t call, start_ns;
	} before, after;
	uint64_t now_ns;

	_Static_assert(offsetof(struct mxbpf_agent_open, start_ns) == sizeof(uint64_t),
		       "call and start_ns are read at once");
	if (gate_copy(g, off, &before, sizeof(before)))
		return -EPROTO;
	if (!before.call)
		return 0;
	if (gate_copy(g, off, to, sizeof(*to)) || gate_copy(g, off, &after, sizeof(after)))
		return -EPROTO;
	if (after.call != before.call || after.start_ns != before.start_ns || to->call != before.call ||
	    to->start_ns != before.start_ns)
		return 0;
	now_ns = latest_ns();
	if (!to->start_ns || to->start_ns > now_ns)
		return gate_break(g, "an open call has a start that is not in the past");
	if (to->scope >= MXBPF_AGENT_SCOPES || to->inner > MXBPF_AGENT_INNER_MORE || to->name >= MXBPF_AGENT_TEXTS ||
	    to->args >= MXBPF_AGENT_WORDS || to->stack >= MXBPF_AGENT_WORDS)
		return gate_break(g, "an open call has a scope, a state, a name or a list that does not exist");
	check_twin(to, now_ns);
	return 1;
}

int gate_batch(struct gate *g, const struct mxbpf_agent_batch *b, size_t bytes)
{
	if (is_shut(g))
		return -EPROTO;
	if (bytes < sizeof(*b) || b->what != MXBPF_AGENT_CALLS || b->ncalls > MXBPF_AGENT_BATCH)
		return gate_break(g, "a batch of kind %u has %u calls", b->what, b->ncalls);
	if (b->slot_use >> 32 >= MXBPF_AGENT_THREADS)
		return gate_break(g, "a batch belongs to slot %u", (unsigned)(b->slot_use >> 32));
	return check_calls(g, b->calls, b->ncalls);
}

/* ---- names */

/* Reads a text of fewer than max bytes that begins at a place in a table of texts. If it fails, the text is "". */
static int text_at(struct gate *g, uint64_t texts, uint64_t texts_bytes, uint32_t name, char *to, size_t max)
{
	const size_t n = name >= texts_bytes ? 0 : texts_bytes - name < max ? texts_bytes - name : max;
	int err;

	if (!n)
		return gate_break(g, "a name lies outside of the texts");
	err = gate_copy(g, texts + name, to, n);
	if (!err && !memchr(to, '\0', n))
		err = gate_break(g, "a name has more than %zu bytes", max - 1);
	if (err)
		*to = '\0';
	return err;
}

static bool are_too_many(uint32_t *names, uint32_t max)
{
	return __atomic_add_fetch(names, 1, __ATOMIC_RELAXED) > max;
}

int gate_name(struct gate *g, uint32_t name, char to[MXBPF_AGENT_NAME_BYTES])
{
	*to = '\0';
	if (!name)
		return 0;
	if (are_too_many(&g->names, MXBPF_AGENT_NAMES))
		return gate_break(g, "calls have more than %u names", MXBPF_AGENT_NAMES);
	return text_at(g, offsetof(SHARED, texts), MXBPF_AGENT_TEXTS, name, to, MXBPF_AGENT_NAME_BYTES);
}

int gate_gpu_name(struct gate *g, uint32_t name, char to[MXBPF_GPU_NAME_BYTES])
{
	*to = '\0';
	if (!name)
		return 0;
	if (are_too_many(&g->gpu_names, MXBPF_GPU_NAMES))
		return gate_break(g, "records of the GPU have more than %u names", MXBPF_GPU_NAMES);
	return text_at(g, offsetof(SHARED, gpu_names) + offsetof(struct mxbpf_gpu_names, texts), MXBPF_GPU_TEXTS, name,
		       to, MXBPF_GPU_NAME_BYTES);
}

/* ---- lists */

#define FRAME_WORDS (sizeof(struct mxbpf_stack_frame) / sizeof(uint64_t))

static bool is_size_of(enum mxbpf_agent_list kind, uint64_t n)
{
	if (kind == MXBPF_AGENT_LIST_STACK)
		return n && !((n - 1) % FRAME_WORDS) && (n - 1) / FRAME_WORDS <= MXBPF_STACK_FRAMES_MAX;
	return n && n <= MXBPF_AGENT_LIST_WORDS;
}

int gate_list(struct gate *g, uint32_t place, enum mxbpf_agent_list kind, uint64_t list[MXBPF_AGENT_LIST_WORDS],
	      uint32_t *n)
{
	const uint64_t off = offsetof(SHARED, words) + (uint64_t)place * sizeof(uint64_t);
	uint64_t head;

	*n = 0;
	if (are_too_many(&g->lists, MXBPF_AGENT_LISTS))
		return gate_break(g, "calls have more than %u lists", MXBPF_AGENT_LISTS);
	if (!place || place >= MXBPF_AGENT_WORDS)
		return gate_break(g, "a list lies outside of the words");
	if (gate_copy(g, off, &head, sizeof(head)))
		return -EPROTO;
	if (head >> 32 != kind || !is_size_of(kind, (uint32_t)head) || (uint32_t)head >= MXBPF_AGENT_WORDS - place)
		return gate_break(g, "a list is of another kind, or of a size that no list has");
	if (gate_copy(g, off + sizeof(head), list, (uint32_t)head * sizeof(uint64_t)))
		return -EPROTO;
	*n = (uint32_t)head;
	return 0;
}

/* ---- the GPU */

static void terminate(char *text, size_t bytes)
{
	text[bytes - 1] = '\0';
}

int gate_gpu(struct gate *g, struct mxbpf_gpu_shared *to)
{
	unsigned i;

	if (gate_copy(g, offsetof(SHARED, gpu), to, sizeof(*to)))
		return -EPROTO;
	if (to->state > MXBPF_GPU_FAILED || to->failed > MXBPF_GPU_AT_ELSEWHERE || to->thread > 1 ||
	    to->ndevices > MXBPF_GPU_DEVICES || to->metrics.state > MXBPF_GPU_METRICS_FAILED ||
	    to->metrics.step > MXBPF_GPU_STEP_RECORDS)
		return gate_break(g, "its client of CUPTI is in a state that does not exist");
	terminate(to->library, sizeof(to->library));
	terminate(to->path, sizeof(to->path));
	terminate(to->holder, sizeof(to->holder));
	terminate(to->metrics.pattern, sizeof(to->metrics.pattern));
	terminate(to->metrics.chip, sizeof(to->metrics.chip));
	for (i = 0; i < MXBPF_GPU_DEVICES; i++)
		terminate(to->devices[i].name, sizeof(to->devices[i].name));
	return 0;
}

const char *gate_gpu_rec(const struct mxbpf_gpu_rec *r)
{
	if (r->kind < MXBPF_GPU_KERNEL || r->kind > MXBPF_GPU_METRIC)
		return "a record of the GPU is of a kind that does not exist";
	if (r->name >= MXBPF_GPU_TEXTS)
		return "a record of the GPU has a name outside of the texts";
	return NULL;
}

int gate_gpu_batch(struct gate *g, const struct mxbpf_agent_batch *b, size_t bytes)
{
	const char *fault = NULL;
	unsigned i;

	if (is_shut(g))
		return -EPROTO;
	if (bytes < sizeof(*b) || b->what != MXBPF_AGENT_GPU || b->ncalls > MXBPF_AGENT_GPU_BATCH)
		return gate_break(g, "a batch of kind %u has %u records of the GPU", b->what, b->ncalls);
	for (i = 0; i < b->ncalls && !fault; i++)
		fault = gate_gpu_rec(&b->gpu[i]);
	return fault ? gate_break(g, "%s", fault) : 0;
}
