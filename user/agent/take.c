// SPDX-License-Identifier: Apache-2.0
/* Takes the calls that the agent has recorded. */
#include "agent/state.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"

#define BATCHES_MAX   256   /* batches per call; a process that hands over too fast cannot hold mxbpf up */
#define TIDS_MAX      65536 /* threads whose calls ended on another thread */
#define CALL_NS_LEAST 20    /* no CPU records calls faster */

/* Reads a slot. Returns true if it was ever used. The agent takes the first free one, so those behind an unused one are
 * unused.
 */
static bool read_slot(struct agt *a, unsigned i, struct gate_slot *slot)
{
	return i < MXBPF_AGENT_THREADS && !gate_slot(&a->gate, i, slot) && slot->uses;
}

void agt_sum(struct agt *a, struct agt_sums *to)
{
	struct gate_slot slot;
	unsigned i;

	*to = (struct agt_sums){0};
	for (i = 0; read_slot(a, i, &slot); i++) {
		to->calls += slot.calls;
		to->too_deep += slot.too_deep;
		to->unreadable += slot.unreadable;
		to->truncated += slot.truncated;
	}
}

/* Replaces thread ids by ours. The calls of a batch ended on the thread that hands it over. */
static const struct mxbpf_agent_call *numbered(struct agt *a, const struct mxbpf_agent_batch *b, unsigned from,
					       unsigned n)
{
	struct mxbpf_agent_call *c = a->numbered.calls;
	unsigned i;

	if (!a->threads.other)
		return b->calls + from;
	threads_learn_ours(&a->threads, b->our_tid, b->calls[from].end_tid);
	memcpy(c, b->calls + from, (n - from) * sizeof(*c));
	for (i = 0; i < n - from; i++) {
		c[i].tid = threads_ours(&a->threads, c[i].tid);
		c[i].end_tid = threads_ours(&a->threads, c[i].end_tid);
	}
	return c;
}

/* Limits the threads that are known only because they ended calls of others: a process could name many. */
static int count_tids(struct agt *a, const struct mxbpf_agent_batch *b, unsigned from, unsigned n)
{
	for (; from < n; from++)
		if (b->calls[from].flags & MXBPF_AGENT_CALL_ASYNC)
			hash_put(&a->tids, b->calls[from].tid, 0);
	return a->tids.len > TIDS_MAX ? gate_break(&a->gate, "its calls name more than %d threads", TIDS_MAX) : 0;
}

/* Passes the calls of a checked batch to fn, without those taken before as a tail. */
static void hand_on(struct agt *a, const struct mxbpf_agent_batch *b, unsigned n)
{
	uint32_t slot = (uint32_t)(b->slot_use >> 32), uses = (uint32_t)b->slot_use, from = 0;
	struct taken *t = &a->taken[slot];
	uint64_t since_ns = __atomic_load_n(&a->since_ns, __ATOMIC_ACQUIRE);

	if (t->uses == uses && t->seq == b->seq)
		from = t->calls;
	/* Skip what an earlier session left: calls before the first activation, or all if there was none yet. */
	while (from < n && (!since_ns || b->calls[from].start_ns < since_ns))
		from++;
	if (from < n && a->fn && !count_tids(a, b, from, n)) {
		__atomic_fetch_add(&a->received, n - from, __ATOMIC_RELAXED);
		a->fn(a->ctx, numbered(a, b, from, n), n - from);
	}
	*t = (struct taken){uses, b->seq, n};
}

/* Batches that a forked child spilled before mxbpf was attached come before all others of it. */
static void take_spilled(struct agt *a)
{
	struct mxbpf_agent_batch *b = &a->spill;
	int n = 0;

	for (; a->spilled < MXBPF_AGENT_SPILL && (n = gate_spilled(&a->gate, a->spilled, b)) >= 0; a->spilled++)
		hand_on(a, b, (unsigned)n);
}

/* After enough batches it returns an error, which ends ring_buffer__consume(). The batch is taken nevertheless. */
int agt_on_batch(void *ctx, void *data, size_t bytes)
{
	const struct mxbpf_agent_batch *b = data;
	struct agt *a = ctx;

	if (a->born && b->ncalls)
		take_spilled(a);
	if (!gate_batch(&a->gate, b, bytes))
		hand_on(a, b, b->ncalls);
	return ++a->batches % BATCHES_MAX ? 0 : -EAGAIN;
}

/* Returns true if a later batch of the slot was taken. Both numbers may wrap. */
static bool is_behind(const struct taken *t, uint32_t uses, uint32_t seq)
{
	return t->uses != uses ? (int32_t)(t->uses - uses) > 0 : (int32_t)(t->seq - seq) > 0;
}

/*
 * Takes what was in the ring at the beginning, and not more, because the stream may be endless. A copied tail counts as
 * the thread's newest batch, so an older batch that stayed in the ring would make its calls count twice.
 */
static void consume_all(struct agt *a)
{
	uint64_t rounds = a->all->ring_bytes / sizeof(struct mxbpf_agent_batch) / BATCHES_MAX + 2;

	while (rounds-- && ring_buffer__consume(a->ring) == -EAGAIN)
		;
}

/*
 * Copies a batch before it is handed over, because its thread goes on writing. The ring is read first, so that
 * earlier batches of the thread come first. Otherwise the previous batch would count as one without taken calls. If
 * the thread hands this batch over during the copy, it is in the ring.
 */
static void take_tail(struct agt *a, unsigned slot)
{
	struct mxbpf_agent_batch *copy = &a->tail;
	int n = gate_tail(&a->gate, slot, copy);

	if (n <= 0)
		return;
	consume_all(a);
	if (!is_behind(&a->taken[slot], (uint32_t)copy->slot_use, copy->seq))
		hand_on(a, copy, (unsigned)n);
}

void agt_check_bell(struct agt *a)
{
	if (__atomic_load_n(&a->skel->bss->impossible[a->number], __ATOMIC_RELAXED))
		gate_break(&a->gate, "a batch has more calls than a batch can have, or a kind that does not exist");
}

/*
 * Breaks the gate if the counts are impossible. The agent counts a call before it hands it over, so mxbpf never has
 * more calls than were counted, and there cannot be more than the CPUs had time for.
 */
static void check_counts(struct agt *a)
{
	const uint64_t ns = clock_ns(CLOCK_MONOTONIC) - a->opened_ns;
	const uint64_t most = (ns / CALL_NS_LEAST + 1) * a->ncpus;
	struct gate_head head;
	struct agt_sums now;

	agt_sum(a, &now);
	if (gate_head(&a->gate, &head))
		return;
	agt_check_bell(a);
	if (head.magic != MXBPF_AGENT_MAGIC || head.version != MXBPF_AGENT_VERSION)
		gate_break(&a->gate, "its shared memory does not begin any more as it did");
	else if (now.calls < a->before.calls || now.calls - a->before.calls < a->received)
		gate_break(&a->gate, "it counted fewer calls than it handed over");
	else if (now.calls - a->before.calls > most || now.too_deep - a->before.too_deep > most ||
		 now.unreadable - a->before.unreadable > most || now.truncated - a->before.truncated > most ||
		 head.no_slot - a->no_slot_before > most)
		gate_break(&a->gate, "it counted more calls than the CPUs had time for");
}

static void take_tails(struct agt *a)
{
	struct gate_slot slot;
	unsigned i;

	take_spilled(a);
	for (i = 0; read_slot(a, i, &slot); i++)
		take_tail(a, i);
	consume_all(a); /* takes the batches that were handed over while the tails were read */
	check_counts(a);
}

void agt_receive(struct agt *a, agt_calls_fn fn, void *ctx)
{
	a->fn = fn;
	a->ctx = ctx;
}

bool agt_births(struct agt *a)
{
	if (!agt_is_unborn(a))
		return false;
	agt_look_born(a);
	return true;
}

void agt_renew(struct agt *a)
{
	if (agt_is_in(a))
		keeper_renew(&a->keeper, &a->shared);
}

void agt_tails(struct agt *a)
{
	agt_births(a);
	if (!agt_is_in(a))
		return;
	threads_read(&a->threads);
	take_tails(a);
}

void agt_opens(struct agt *a, agt_open_fn fn, void *ctx)
{
	uint64_t since_ns = __atomic_load_n(&a->since_ns, __ATOMIC_ACQUIRE);
	struct mxbpf_agent_open o;
	struct gate_slot slot;
	bool outlived;
	unsigned i, k;
	int is_open;

	for (i = 0; since_ns && agt_is_in(a) && read_slot(a, i, &slot); i++) {
		outlived = false;
		for (k = 0; slot.tid && k < slot.depth; k++) {
			is_open = gate_open(&a->gate, i, k, &o);
			if (is_open < 0)
				return;
			if (!is_open) {
				outlived = true;
			} else if (o.start_ns >= since_ns) {
				o.twin.tid = o.twin.end_tid = threads_ours(&a->threads, slot.tid);
				fn(ctx, &o, o.twin.tid, k, outlived);
			}
		}
	}
}

int agt_list(struct agt *a, uint32_t place, enum mxbpf_agent_list kind, uint64_t list[MXBPF_AGENT_LIST_WORDS],
	     uint32_t *n)
{
	return gate_list(&a->gate, place, kind, list, n) ? -ENOENT : 0;
}

void agt_name(struct agt *a, uint32_t name, char to[MXBPF_AGENT_NAME_BYTES])
{
	gate_name(&a->gate, name, to);
}

void agt_loss(struct agt *a, struct mxbpf_loss *loss)
{
	struct gate_head head;
	struct agt_sums now;
	uint64_t unseen;

	*loss = (struct mxbpf_loss){0};
	loss->attempted = loss->dropped = __atomic_load_n(&a->injected.missed, __ATOMIC_RELAXED);
	if (!agt_is_in(a))
		return;
	agt_sum(a, &now);
	if (gate_head(&a->gate, &head)) {
		loss->attempted += __atomic_load_n(&a->received, __ATOMIC_RELAXED);
		return;
	}
	unseen = now.too_deep - a->before.too_deep + head.no_slot - a->no_slot_before;
	if (a->o.children)
		unseen += head.orphans - a->orphans_before - head.unheard_calls; /* orphans of the parent, too */
	loss->attempted += now.calls - a->before.calls + unseen;
	loss->unreadable = now.unreadable - a->before.unreadable;
	loss->truncated = now.truncated - a->before.truncated;
	loss->dropped += unseen;
}
