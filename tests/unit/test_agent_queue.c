// SPDX-License-Identifier: Apache-2.0
/* Tests what becomes of an agent's calls that come faster than they are ordered: a call takes 10 ns, and ends with the
 * next. */
#include "source/agent_queue.h"
#include "unit.h"

#define PER_ITEM 255u
#define MANY	 6000u /* batches: 94 MiB */
#define EACH_NS	 10u

static bool keeps_annotations(void *proc, const struct mxbpf_agent_call *c, bool first)
{
	(void)proc;
	(void)first;
	return c->scope == MXBPF_AGENT_USER;
}

static bool keeps_all(void *proc, const struct mxbpf_agent_call *c, bool first)
{
	(void)proc;
	(void)c;
	(void)first;
	return true;
}

static uint64_t put_batch(struct agent_queue *q, uint64_t from_ns)
{
	struct agent_item *i = agent_item_new(NULL, PER_ITEM);
	unsigned k;

	for (k = 0; i && k < PER_ITEM; k++)
		i->calls[k] = (struct mxbpf_agent_call){.start_ns = from_ns + k * EACH_NS,
							.dur_ns = EACH_NS,
							.scope = k ? MXBPF_AGENT_FUNCTION : MXBPF_AGENT_USER};
	if (i)
		agent_queue_put(q, i);
	return from_ns + PER_ITEM * EACH_NS;
}

static void put_moment(struct agent_queue *q, uint64_t until_ns)
{
	struct agent_item *i = agent_item_new(NULL, 0);

	CHECK(i);
	if (!i)
		return;
	i->until_ns = until_ns;
	agent_queue_put(q, i);
}

/* Puts MANY batches, and after each tenth one what is known then. Returns the end of the last call. */
static uint64_t fill(struct agent_queue *q)
{
	uint64_t ns = 1000;
	unsigned i;

	for (i = 0; i < MANY; i++) {
		ns = put_batch(q, ns);
		if (i % 10 == 9)
			put_moment(q, ns);
	}
	return ns;
}

struct seen {
	uint64_t calls, annotations, last_ns, until_ns, lost, lost_from_ns, lost_to_ns;
	unsigned moments, tellers;
	bool ends_lost, ordered, outside;
};

/* Takes all that is left. outside: no call but annotations is of the time that is said to be lost. */
static struct seen take_all(struct agent_queue *q)
{
	struct seen s = {.ordered = true, .outside = true};
	struct agent_item *i;
	uint32_t k;

	while ((i = agent_queue_take(q))) {
		s.tellers += i->lost_to_ns != 0;
		s.lost += i->lost;
		s.ends_lost |= i->ends_lost;
		s.lost_from_ns = i->lost_to_ns ? i->lost_from_ns : s.lost_from_ns;
		s.lost_to_ns = i->lost_to_ns ? i->lost_to_ns : s.lost_to_ns;
		s.ordered &= !i->until_ns || i->until_ns > s.until_ns;
		s.moments += i->until_ns != 0;
		s.until_ns = i->until_ns ? i->until_ns : s.until_ns;
		s.calls += i->n;
		for (k = 0; k < i->n; k++) {
			s.annotations += i->calls[k].scope == MXBPF_AGENT_USER;
			s.outside &= i->calls[k].scope == MXBPF_AGENT_USER || i->calls[k].start_ns >= s.lost_to_ns;
			s.ordered &= i->calls[k].start_ns >= s.last_ns;
			s.last_ns = i->calls[k].start_ns;
		}
		agent_item_free(i);
	}
	return s;
}

static void test_bound(void)
{
	struct agent_queue q;
	struct seen s;
	uint64_t end_ns, given_up;

	TEST("a queue that is too long gives up the oldest calls, says when they were made, and keeps what ends "
	     "iterations")
	{
		agent_queue_init(&q, keeps_annotations);
		end_ns = fill(&q);
		CHECK(q.bytes <= AGENT_QUEUE_BYTES && q.bytes > AGENT_QUEUE_BYTES / 2);
		given_up = agent_queue_given_up(&q);
		CHECK(given_up > 0 && given_up < (uint64_t)MANY * PER_ITEM / 2);
		s = take_all(&q);
		CHECK(s.calls + given_up == (uint64_t)MANY * PER_ITEM && s.lost == given_up);
		CHECK(s.annotations == MANY && s.moments == MANY / 10);
		CHECK(s.ordered && s.outside && !s.ends_lost && s.until_ns == end_ns);
		CHECK(s.lost_from_ns == 1000 + EACH_NS); /* the first call was kept */
		CHECK(s.last_ns == end_ns - EACH_NS);
		CHECK(agent_queue_nput(&q) == agent_queue_ntaken(&q));
		agent_queue_fini(&q);
	}
	TEST("a queue that is told to keep everything gives it up all the same, and says that ends of iterations are "
	     "lost")
	{
		agent_queue_init(&q, keeps_all);
		fill(&q);
		CHECK(q.bytes <= AGENT_QUEUE_BYTES);
		s = take_all(&q);
		CHECK(s.ends_lost && s.lost == agent_queue_given_up(&q) && s.moments == MANY / 10 && s.outside);
		CHECK(agent_queue_nput(&q) == agent_queue_ntaken(&q));
		agent_queue_fini(&q);
	}
	TEST("a queue that is read in time gives up nothing, however much passes it")
	{
		agent_queue_init(&q, keeps_annotations);
		for (end_ns = 1000, s.calls = 0; s.calls < (uint64_t)MANY * PER_ITEM; s.calls += PER_ITEM) {
			end_ns = put_batch(&q, end_ns);
			agent_item_free(agent_queue_take(&q));
		}
		CHECK(!agent_queue_given_up(&q) && !q.bytes);
		agent_queue_fini(&q);
	}
}

int main(void)
{
	test_bound();
	UNIT_MAIN_END;
}
