// SPDX-License-Identifier: Apache-2.0
#include "source/agent_queue.h"

#include <string.h>

#include "base/memory.h"

#define GIVEN_UP_AT_ONCE (AGENT_QUEUE_BYTES / 4)

void agent_queue_init(struct agent_queue *q, bool (*keeps)(void *proc, const struct mxbpf_agent_call *c, bool first))
{
	*q = (struct agent_queue){.keeps = keeps};
	q->tail = &q->head;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->changed, NULL);
}

struct agent_item *agent_item_new(void *proc, uint32_t n)
{
	struct agent_item *i = mem_alloc(sizeof(*i) + n * sizeof(i->calls[0]));

	if (i)
		*i = (struct agent_item){.proc = proc, .n = n};
	return i;
}

void agent_item_free(struct agent_item *i)
{
	buf_fini(&i->opens);
	mem_free(i);
}

static size_t bytes_of(const struct agent_item *i)
{
	return sizeof(*i) + i->opens.cap + i->n * sizeof(i->calls[0]);
}

/* The time of a call becomes part of the time that is lost. */
static void lose(struct agent_item *told, const struct mxbpf_agent_call *c)
{
	const uint64_t end_ns = c->scope < MXBPF_AGENT_SCOPES ? c->start_ns + c->dur_ns : c->start_ns;

	if (!told->lost_to_ns || c->start_ns < told->lost_from_ns)
		told->lost_from_ns = c->start_ns;
	told->lost_to_ns = end_ns > told->lost_to_ns ? end_ns : told->lost_to_ns;
	told->lost++;
}

/* Leaves only what is kept in an item, which moves. told: the item that says what is lost; it may be the same. */
static struct agent_item *shrink(struct agent_queue *q, struct agent_item *i, struct agent_item *told, bool all)
{
	struct agent_item *less;
	uint32_t k, n = 0;

	for (k = 0; k < i->n; k++) {
		if (!all && q->keeps(i->proc, &i->calls[k], !k))
			i->calls[n++] = i->calls[k];
		else
			lose(told, &i->calls[k]);
	}
	told->ends_lost |= all && i->n;
	q->given_up += i->n - n;
	i->n = n;
	less = mem_resize(i, sizeof(*i) + n * sizeof(i->calls[0]));
	return less ? less : i;
}

/*
 * Gives up the oldest calls. The first item says for all of them what is lost, so that whoever takes it knows before he
 * takes what was kept of that time. all: keeps nothing, because too much was kept.
 */
static void give_up(struct agent_queue *q, bool all)
{
	const size_t until = q->bytes - GIVEN_UP_AT_ONCE;
	struct agent_item **at = &q->head, *i;

	while (q->bytes > until && (i = *at)) {
		q->bytes -= bytes_of(i);
		*at = i = shrink(q, i, at == &q->head ? i : q->head, all);
		if (i->n || i->until_ns || i->at_ns || i->lost_to_ns) {
			q->bytes += bytes_of(i);
			at = &i->next;
			continue;
		}
		*at = i->next;
		agent_item_free(i);
		q->taken++;
	}
	if (!*at)
		q->tail = at;
}

void agent_queue_put(struct agent_queue *q, struct agent_item *i)
{
	pthread_mutex_lock(&q->lock);
	*q->tail = i;
	q->tail = &i->next;
	q->bytes += bytes_of(i);
	q->put++;
	if (q->bytes > AGENT_QUEUE_BYTES)
		give_up(q, false);
	if (q->bytes > AGENT_QUEUE_BYTES)
		give_up(q, true);
	pthread_cond_signal(&q->changed);
	pthread_mutex_unlock(&q->lock);
}

bool agent_queue_wait(struct agent_queue *q)
{
	bool any;

	pthread_mutex_lock(&q->lock);
	while (!q->head && !q->ended)
		pthread_cond_wait(&q->changed, &q->lock);
	any = q->head;
	pthread_mutex_unlock(&q->lock);
	return any;
}

struct agent_item *agent_queue_take(struct agent_queue *q)
{
	struct agent_item *i;

	pthread_mutex_lock(&q->lock);
	i = q->head;
	if (i) {
		q->head = i->next;
		q->tail = q->head ? q->tail : &q->head;
		q->bytes -= bytes_of(i);
		q->taken++;
	}
	pthread_mutex_unlock(&q->lock);
	return i;
}

static uint64_t read_locked(struct agent_queue *q, const uint64_t *what)
{
	uint64_t n;

	pthread_mutex_lock(&q->lock);
	n = *what;
	pthread_mutex_unlock(&q->lock);
	return n;
}

uint64_t agent_queue_nput(struct agent_queue *q)
{
	return read_locked(q, &q->put);
}

uint64_t agent_queue_ntaken(struct agent_queue *q)
{
	return read_locked(q, &q->taken);
}

uint64_t agent_queue_given_up(struct agent_queue *q)
{
	return read_locked(q, &q->given_up);
}

void agent_queue_end(struct agent_queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->ended = true;
	pthread_cond_broadcast(&q->changed);
	pthread_mutex_unlock(&q->lock);
}

void agent_queue_fini(struct agent_queue *q)
{
	struct agent_item *i;

	while ((i = agent_queue_take(q)))
		agent_item_free(i);
	pthread_cond_destroy(&q->changed);
	pthread_mutex_destroy(&q->lock);
}
