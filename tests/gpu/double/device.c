// SPDX-License-Identifier: Apache-2.0
/*
 * A simulated device. The times of an operation are known when it is queued: it begins when the operation before it in
 * its stream has ended, and lasts as long as its function says. So the device needs no thread, and only those who wait
 * for it sleep.
 */
#include "device.h"

#include <errno.h>
#include <pthread.h>

#define LATENCY_NS     3000 /* from the launching call to the start on an idle stream */
#define DEVICE_MEMORY  0x200000000000ull
#define DEVICE_BYTES   (1ull << 40)
#define PINNED_MAX     4096
#define GRAPH_NODE_BIT 32 /* a node's id has the graph's id above this bit */

struct pinned {
	const char *p;
	size_t bytes;
};

const struct double_hooks *device_hooks;
__thread uint32_t device_current;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects all below */
static struct stream defaults[DEVICES];
static struct stream *streams; /* without the default ones */
static uint32_t nstreams, ngraphs;
static uint64_t next_address = DEVICE_MEMORY;
static struct pinned pinned[PINNED_MAX];
static unsigned npinned;

void device_count(uint64_t *counter, uint64_t n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

static uint32_t context_of(uint32_t device)
{
	return 1 + device;
}

struct stream *device_stream(void *handle)
{
	struct stream *s = &defaults[device_current];

	if ((uintptr_t)handle > 2)
		return handle;
	if (!__atomic_load_n(&s->id, __ATOMIC_ACQUIRE)) {
		s->device = device_current;
		s->context = context_of(device_current);
		__atomic_store_n(&s->id, DEFAULT_STREAM, __ATOMIC_RELEASE);
	}
	return s;
}

struct stream *device_stream_new(void)
{
	struct stream *s = calloc(1, sizeof(*s));

	pthread_mutex_lock(&lock);
	s->id = DEFAULT_STREAM + ++nstreams;
	s->device = device_current;
	/* With MXBPF_DOUBLE=contexts every other stream is in a second context. */
	s->context = context_of(s->device) + (double_option("contexts") && nstreams & 1);
	s->next = streams;
	streams = s;
	pthread_mutex_unlock(&lock);
	return s;
}

void device_stream_free(struct stream *s)
{
	struct stream **at;

	pthread_mutex_lock(&lock);
	for (at = &streams; *at && *at != s; at = &(*at)->next)
		;
	if (*at) {
		*at = s->next;
		free(s);
	}
	pthread_mutex_unlock(&lock);
}

/* Returns the new node. The lock is held. */
static const struct double_node *add_node(struct graph *g, const struct double_op *op, uint64_t ns)
{
	struct double_node *node = calloc(1, sizeof(*node));

	if (!g->id)
		g->id = ++ngraphs;
	if (g->n == g->room) {
		g->room = g->room ? 2 * g->room : 16;
		g->nodes = realloc(g->nodes, g->room * sizeof(*g->nodes));
		g->handles = realloc(g->handles, g->room * sizeof(void *));
		g->ns = realloc(g->ns, g->room * sizeof(*g->ns));
	}
	node->graph = g->id;
	node->id = (uint64_t)g->id << GRAPH_NODE_BIT | (g->n + 1);
	node->type = op->kind == KIND_KERNEL ? 0 : op->kind == KIND_SET ? 2 : 1;
	g->nodes[g->n] = *op;
	g->nodes[g->n].graph = g->id;
	g->nodes[g->n].node = node->id;
	g->handles[g->n] = node;
	g->ns[g->n++] = ns;
	return node;
}

static void tell_node(const struct double_node *node, const struct double_node *original)
{
	if (device_hooks && device_hooks->node)
		device_hooks->node(node, original);
}

/* Sets the times. The lock is held. */
static void queue(struct stream *s, struct double_op *op, uint64_t ns)
{
	uint64_t now = double_now();

	op->called = device_called();
	op->start = now + LATENCY_NS > s->free_at ? now + LATENCY_NS : s->free_at;
	op->end = op->start + ns;
	op->context = s->context;
	op->stream = s->id;
	op->device = s->device;
	s->free_at = op->end;
	device_count(&double_account()->launched[op->kind], 1);
	if (op->kind == KIND_KERNEL)
		device_count(&double_account()->launched_ns, ns);
}

void device_run(struct stream *s, struct double_op *op, uint64_t ns)
{
	const struct double_node *node;

	pthread_mutex_lock(&lock);
	if (s->capture) {
		node = add_node(s->capture, op, ns);
		pthread_mutex_unlock(&lock);
		tell_node(node, NULL);
		return;
	}
	queue(s, op, ns);
	pthread_mutex_unlock(&lock);
	if (device_hooks)
		device_hooks->op(op);
}

void device_graph_run(struct stream *s, const struct graph *g)
{
	struct double_op op;
	size_t i;

	for (i = 0; i < g->n; i++) {
		op = g->nodes[i];
		op.correlation = double_corr();
		device_run(s, &op, g->ns[i]);
	}
}

struct graph *device_graph_copy(const struct graph *g)
{
	struct graph *copy = calloc(1, sizeof(*copy));
	const struct double_node *node;
	size_t i;

	for (i = 0; i < g->n; i++) {
		pthread_mutex_lock(&lock);
		node = add_node(copy, &g->nodes[i], g->ns[i]);
		pthread_mutex_unlock(&lock);
		tell_node(node, g->handles[i]);
	}
	return copy;
}

void device_graph_free(struct graph *g)
{
	size_t i;

	if (!g)
		return;
	for (i = 0; i < g->n; i++)
		free(g->handles[i]);
	free(g->handles);
	free(g->nodes);
	free(g->ns);
	free(g);
}

uint64_t device_free_at(void)
{
	const struct stream *s;
	uint64_t at = 0;

	pthread_mutex_lock(&lock);
	for (s = streams; s; s = s->next)
		if (s->device == device_current && s->free_at > at)
			at = s->free_at;
	at = defaults[device_current].free_at > at ? defaults[device_current].free_at : at;
	pthread_mutex_unlock(&lock);
	return at;
}

void device_sleep_until(uint64_t at)
{
	struct timespec t = {.tv_sec = (time_t)(at / 1000000000), .tv_nsec = (long)(at % 1000000000)};

	while (at > double_now() && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

void *device_alloc(size_t bytes)
{
	uint64_t rounded = (bytes + 511) & ~511ull;

	return (void *)(uintptr_t)__atomic_fetch_add(&next_address, rounded, __ATOMIC_RELAXED);
}

void *device_alloc_pinned(size_t bytes)
{
	void *p = malloc(bytes ? bytes : 1);

	pthread_mutex_lock(&lock);
	if (p && npinned < PINNED_MAX)
		pinned[npinned++] = (struct pinned){p, bytes};
	pthread_mutex_unlock(&lock);
	return p;
}

void device_free_pinned(void *p)
{
	unsigned i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < npinned; i++)
		if (pinned[i].p == p) {
			pinned[i] = pinned[--npinned];
			break;
		}
	pthread_mutex_unlock(&lock);
	free(p);
}

unsigned device_memory_kind(const void *p)
{
	uintptr_t at = (uintptr_t)p;
	unsigned i, kind = MEMORY_PAGEABLE;

	if (at >= DEVICE_MEMORY && at < DEVICE_MEMORY + DEVICE_BYTES)
		return MEMORY_DEVICE;
	pthread_mutex_lock(&lock);
	for (i = 0; i < npinned && kind == MEMORY_PAGEABLE; i++)
		if ((const char *)p >= pinned[i].p && (const char *)p < pinned[i].p + pinned[i].bytes)
			kind = MEMORY_PINNED;
	pthread_mutex_unlock(&lock);
	return kind;
}
