// SPDX-License-Identifier: Apache-2.0
/*
 * PyTorch: CPU memory. Its allocator tells c10::ProfiledCPUMemoryReporter of each block, through the import table of
 * its library. While mxbpf is attached, two entries of that table lead here. mxbpf has checked them: they can be
 * written, and are bound to the functions that are called from here.
 */
#include "memory.h"

#include <errno.h>

#include "agent.h"

typedef void (*alloc_fn)(void *reporter, void *block, size_t bytes);
typedef void (*free_fn)(void *reporter, void *block);

/* bytes 0: the block is freed. */
static void note(const void *block, size_t bytes)
{
	struct mxbpf_agent_shared *s = agent_shared();
	struct mxbpf_agent_slot *t;
	struct mxbpf_agent_call c;

	if (!s)
		s = agent_inherit();
	if (!s || !mxbpf_agent_switch || !block || !s->memory || !s->since_ns)
		return;
	t = agent_my_slot(s);
	if (!t)
		return;
	c = (struct mxbpf_agent_call){
		.start_ns = agent_now(),
		.seq = (uint64_t)(uintptr_t)block,
		.origin = bytes,
		.tid = t->tid,
		.end_tid = t->tid,
		.scope = MXBPF_AGENT_MEMORY,
	};
	agent_record(t, &c);
}

static void on_alloc(void *reporter, void *block, size_t bytes)
{
	((alloc_fn)mxbpf_agent_config.alloc)(reporter, block, bytes);
	if (bytes)
		note(block, bytes);
}

/* The allocator frees the block after this, so no other thread can have it yet. */
static void on_free(void *reporter, void *block)
{
	note(block, 0);
	((free_fn)mxbpf_agent_config.free)(reporter, block);
}

static bool exchange(uint64_t entry, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n((uint64_t *)entry, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
	       from == to;
}

int agent_memory_start(void)
{
	const struct mxbpf_agent_config *c = &mxbpf_agent_config;

	if (!c->alloc_entry)
		return 0;
	if (!exchange(c->alloc_entry, c->alloc, (uint64_t)(uintptr_t)on_alloc))
		return -EBUSY;
	if (exchange(c->free_entry, c->free, (uint64_t)(uintptr_t)on_free))
		return 0;
	agent_memory_stop();
	return -EBUSY;
}

/* An entry that somebody else has changed since is left alone. */
void agent_memory_stop(void)
{
	const struct mxbpf_agent_config *c = &mxbpf_agent_config;

	if (!c->alloc_entry)
		return;
	exchange(c->alloc_entry, (uint64_t)(uintptr_t)on_alloc, c->alloc);
	exchange(c->free_entry, (uint64_t)(uintptr_t)on_free, c->free);
}
