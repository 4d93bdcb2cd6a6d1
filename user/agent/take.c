// SPDX-License-Identifier: Apache-2.0
/* Takes the calls that the agent has recorded. */
#include "agent/state.h"

#include <string.h>

uint64_t agt_sum_calls(const struct agt *a, uint64_t *too_deep)
{
	uint64_t n = 0;
	unsigned i;

	*too_deep = 0;
	for (i = 0; i < MXBPF_AGENT_THREADS; i++) {
		n += __atomic_load_n(&a->shared->slots[i].calls, __ATOMIC_RELAXED);
		*too_deep += __atomic_load_n(&a->shared->slots[i].too_deep, __ATOMIC_RELAXED);
	}
	return n;
}

/* Replaces thread ids by ours. The calls of a batch ended on the thread that hands it over. */
static const struct mxbpf_agent_call *numbered(struct agt *a, const struct mxbpf_agent_batch *b, unsigned from,
					       unsigned n)
{
	struct mxbpf_agent_call *c = a->numbered.calls;
	unsigned i;

	if (!a->threads.other)
		return b->calls + from;
	threads_learn(&a->threads, b->calls[from].end_tid, b->our_tid);
	memcpy(c, b->calls + from, (n - from) * sizeof(*c));
	for (i = 0; i < n - from; i++) {
		c[i].tid = threads_ours(&a->threads, c[i].tid);
		c[i].end_tid = threads_ours(&a->threads, c[i].end_tid);
	}
	return c;
}

/* Passes the calls of a batch to fn, without those taken before as a tail. */
static void hand_on(struct agt *a, const struct mxbpf_agent_batch *b, unsigned n)
{
	uint32_t slot = (uint32_t)(b->slot_use >> 32), uses = (uint32_t)b->slot_use, from = 0;
	struct taken *t = &a->taken[slot % MXBPF_AGENT_THREADS];
	uint64_t since_ns = __atomic_load_n(&a->since_ns, __ATOMIC_ACQUIRE);

	if (n > MXBPF_AGENT_BATCH || b->what != MXBPF_AGENT_CALLS)
		return;
	if (t->uses == uses && t->seq == b->seq)
		from = t->calls;
	/* Skip what an earlier session left: calls before the first activation, or all if there was none yet. */
	while (from < n && (!since_ns || b->calls[from].start_ns < since_ns))
		from++;
	if (from < n)
		a->fn(a->ctx, numbered(a, b, from, n), n - from);
	*t = (struct taken){uses, b->seq, n};
}

int agt_on_batch(void *ctx, void *data, size_t bytes)
{
	const struct mxbpf_agent_batch *b = data;

	if (bytes >= sizeof(*b))
		hand_on(ctx, b, b->ncalls);
	return 0;
}

/* Returns true if a later batch of the slot was taken. Both numbers may wrap. */
static bool is_behind(const struct taken *t, uint32_t uses, uint32_t seq)
{
	return t->uses != uses ? (int32_t)(t->uses - uses) > 0 : (int32_t)(t->seq - seq) > 0;
}

/*
 * Copies a batch before it is handed over, because its thread goes on writing. The ring is read first, so that
 * earlier batches of the thread come first. Otherwise the previous batch would count as one without taken calls. If
 * the thread hands this batch over during the copy, it is in the ring.
 */
static void take_tail(struct agt *a, const struct mxbpf_agent_slot *s)
{
	struct mxbpf_agent_batch copy;
	uint32_t seq = __atomic_load_n(&s->batch.seq, __ATOMIC_ACQUIRE);
	uint32_t n = __atomic_load_n(&s->batch.ncalls, __ATOMIC_ACQUIRE);

	if (!n || n > MXBPF_AGENT_BATCH)
		return;
	copy.slot_use = s->batch.slot_use;
	copy.seq = seq;
	copy.our_tid = 0;
	copy.what = MXBPF_AGENT_CALLS;
	memcpy(copy.calls, s->batch.calls, n * sizeof(copy.calls[0]));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (__atomic_load_n(&s->batch.seq, __ATOMIC_RELAXED) != seq || s->batch.slot_use != copy.slot_use)
		return;
	ring_buffer__consume(a->ring);
	if (!is_behind(&a->taken[s - a->shared->slots], (uint32_t)copy.slot_use, seq))
		hand_on(a, &copy, n);
}

void agt_take(struct agt *a, bool tails, agt_calls_fn fn, void *ctx)
{
	unsigned i;

	a->fn = fn;
	a->ctx = ctx;
	if (tails)
		threads_read(&a->threads);
	ring_buffer__consume(a->ring);
	if (!tails || !agt_is_in(a))
		return;
	for (i = 0; i < MXBPF_AGENT_THREADS; i++)
		take_tail(a, &a->shared->slots[i]);
	ring_buffer__consume(a->ring); /* handed over while their tails were read */
}

/*
 * Copies an open call. Returns false if it has ended. Its thread goes on, and writes the name of its next call here
 * before that call's start.
 */
static bool copy_open(const struct mxbpf_agent_open *from, struct mxbpf_agent_open *to)
{
	if (!__atomic_load_n(&from->call, __ATOMIC_ACQUIRE))
		return false;
	to->start_ns = __atomic_load_n(&from->start_ns, __ATOMIC_ACQUIRE);
	memcpy(to, from, sizeof(*to));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&from->call, __ATOMIC_ACQUIRE) &&
	       __atomic_load_n(&from->start_ns, __ATOMIC_RELAXED) == to->start_ns;
}

void agt_opens(struct agt *a, agt_open_fn fn, void *ctx)
{
	uint64_t since_ns = __atomic_load_n(&a->since_ns, __ATOMIC_ACQUIRE);
	struct mxbpf_agent_open o;
	unsigned i, k;

	for (i = 0; since_ns && agt_is_in(a) && i < MXBPF_AGENT_THREADS; i++) {
		const struct mxbpf_agent_slot *s = &a->shared->slots[i];
		uint32_t depth = __atomic_load_n(&s->depth, __ATOMIC_ACQUIRE), tid = s->tid;
		bool outlived = false;

		for (k = 0; tid && k < depth && k < MXBPF_AGENT_OPEN; k++)
			if (!copy_open(&s->open[k], &o)) {
				outlived = true;
			} else if (o.start_ns >= since_ns) {
				o.twin.tid = o.twin.end_tid = threads_ours(&a->threads, tid);
				fn(ctx, &o, o.twin.tid, k, outlived);
			}
	}
}

const char *agt_name(const struct agt *a, uint32_t name)
{
	return name < MXBPF_AGENT_TEXTS && memchr(a->shared->texts + name, '\0', MXBPF_AGENT_TEXTS - name)
		       ? a->shared->texts + name
		       : "";
}

void agt_loss(const struct agt *a, struct mxbpf_loss *loss)
{
	uint64_t too_deep, calls, unseen;

	*loss = (struct mxbpf_loss){0};
	if (!agt_is_in(a))
		return;
	calls = agt_sum_calls(a, &too_deep) - a->calls_before;
	unseen = too_deep - a->too_deep_before + a->shared->no_slot - a->no_slot_before;
	unseen += __atomic_load_n(&a->injected.missed, __ATOMIC_RELAXED);
	loss->attempted = calls + unseen;
	loss->dropped = unseen + __atomic_load_n(&a->skel->bss->lost_calls, __ATOMIC_RELAXED);
}
