// SPDX-License-Identifier: Apache-2.0
#include "source/agent_cost.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"

#define ENDED_MAX   4096 /* calls of a thread that may still turn out to be nested in another one */
#define THREADS_MAX 1024 /* the process chooses the numbers of threads; calls of further ones have no cost */

/* A call that has ended. */
struct ended {
	uint64_t start_ns;
	uint64_t cost_ns, outside_ns; /* between its start and its end, and around it */
};

struct agent_costs {
	struct hash threads; /* tid -> struct buf * of struct ended, owned */
};

struct agent_costs *agent_costs_new(void)
{
	return calloc(1, sizeof(struct agent_costs));
}

void agent_costs_free(struct agent_costs *c)
{
	const struct hash_entry *e;
	size_t pos = 0;

	if (!c)
		return;
	while ((e = hash_next(&c->threads, &pos)))
		if (e->val) {
			buf_fini((struct buf *)(uintptr_t)e->val);
			free((void *)(uintptr_t)e->val);
		}
	hash_fini(&c->threads);
	free(c);
}

static struct buf *ended_of(struct agent_costs *c, uint32_t tid)
{
	const bool full = c->threads.len >= THREADS_MAX;
	uint64_t *at = full ? hash_get(&c->threads, tid, 0) : hash_put(&c->threads, tid, 0);

	if (at && !*at)
		*at = (uintptr_t)calloc(1, sizeof(struct buf));
	return at ? (struct buf *)(uintptr_t)*at : NULL;
}

/* Forgets the older half. */
static void shrink(struct buf *ended)
{
	const size_t half = ENDED_MAX / 2 * sizeof(struct ended);

	ended->len -= half;
	memmove(ended->data, ended->data + half, ended->len);
}

/* Nothing to speak of lies between the two readings of the clock. Arguments and stacks are read before the first. */
static uint64_t outside_of(const struct mxbpf_span *s)
{
	return MXBPF_AGENT_CALL_NS + (s->args_id ? MXBPF_AGENT_ARGS_NS : 0) + (s->stack_id ? MXBPF_AGENT_STACK_NS : 0);
}

void agent_costs_fill(struct agent_costs *c, struct mxbpf_span *s)
{
	struct buf *ended = s->flags & MXBPF_SPAN_ASYNC ? NULL : ended_of(c, s->tid);
	struct ended its = {s->h.ts_ns, 0, outside_of(s)}, *last;
	uint64_t self_ns = 0;
	size_t n;

	if (!ended)
		return;
	while ((n = buf_count(ended, struct ended))) {
		last = buf_at(ended, struct ended, n - 1);
		if (last->start_ns < its.start_ns)
			break;
		its.cost_ns += last->cost_ns + last->outside_ns;
		self_ns += last->outside_ns;
		ended->len -= sizeof(*last);
	}
	s->cost = (struct mxbpf_span_cost){.all = mxbpf_cost_units(its.cost_ns),
					   .self = mxbpf_cost_units(self_ns),
					   .before = mxbpf_cost_units(its.outside_ns)};
	if (n >= ENDED_MAX)
		shrink(ended);
	buf_put(ended, &its, sizeof(its)); /* without memory the call around it costs less */
}
