// SPDX-License-Identifier: Apache-2.0
/*
 * PyTorch: memory. Allocators tell two classes of functions of each block, through the import tables of their
 * libraries: the CPU's own one c10::ProfiledCPUMemoryReporter, all others c10::reportMemoryUsageToProfiler(). While
 * mxbpf is attached, entries of these tables lead here. mxbpf has checked them: they can be written, are bound to the
 * functions that are called from here, and their libraries are not unloaded.
 */
#include "memory.h"

#include <errno.h>

#include "agent.h"
#include "details.h"

typedef void (*alloc_fn)(void *reporter, void *block, size_t bytes);
typedef void (*free_fn)(void *reporter, void *block);
/* The device is a c10::Device. The last argument is only for mxbpf's probe, see MXBPF_AGENT_REPORTED. */
typedef void (*report_fn)(void *block, int64_t bytes, size_t allocated, size_t reserved, uint16_t device,
			  uint64_t reported);

/* Returns the place of the stack of the innermost open call, or of the thread if there is no call. */
static uint32_t stack_of(struct mxbpf_agent_shared *s, struct mxbpf_agent_slot *t)
{
	__u64 top;

	return t->depth ? t->open[t->depth - 1].stack : agent_stack(s, t, NULL, &top);
}

/* c10::DeviceType counts from 0, and types of mxbpf from 1. An index of -1 means the current device. */
#define DEVICE_TYPE(device)  (((device)&0xff) + 1u)
#define DEVICE_INDEX(device) ((int8_t)((device) >> 8) < 0 ? 0u : (uint32_t)((device) >> 8))
#define DEVICE_CPU	     0

struct totals {
	uint64_t allocated, reserved; /* of the allocator; 0: it does not reserve */
};

static void note(const void *block, uint64_t bytes, struct totals of, uint16_t device, unsigned flags)
{
	struct mxbpf_agent_shared *s = agent_shared();
	struct mxbpf_agent_slot *t;

	if (!s)
		s = agent_inherit();
	/* The program may have removed the callbacks that restore the entries, and a forked child has none. */
	if (!s || (!mxbpf_agent_switch && agent_is_forsaken())) {
		agent_memory_stop();
		return;
	}
	if (!mxbpf_agent_switch || !block || !s->memory || !s->since_ns)
		return;
	t = agent_my_slot(s);
	if (!t)
		return;
	*agent_next(t) = (struct mxbpf_agent_call){
		.start_ns = agent_time(s, t),
		.dur_ns = of.reserved,
		.self_ns = of.allocated,
		.seq = (uint64_t)(uintptr_t)block,
		.origin = bytes,
		.name = MXBPF_DEVICE(DEVICE_TYPE(device), DEVICE_INDEX(device)),
		.tid = t->tid,
		.end_tid = t->tid,
		.scope = MXBPF_AGENT_MEMORY,
		.flags = (uint8_t)flags,
	};
	if (!(flags & MXBPF_AGENT_CALL_FREED) && s->details.wanted & MXBPF_AGENT_STACK_ALLOC)
		agent_next(t)->stack = stack_of(s, t);
	agent_recorded(t);
}

static void on_alloc(void *reporter, void *block, size_t bytes)
{
	((alloc_fn)mxbpf_agent_config.hooked[MXBPF_AGENT_HOOK_ALLOC])(reporter, block, bytes);
	if (bytes)
		note(block, bytes, (struct totals){0}, DEVICE_CPU, 0);
}

/* The allocator frees the block after this, so no other thread can have it yet. */
static void on_free(void *reporter, void *block)
{
	note(block, 0, (struct totals){0}, DEVICE_CPU, MXBPF_AGENT_CALL_FREED);
	((free_fn)mxbpf_agent_config.hooked[MXBPF_AGENT_HOOK_FREE])(reporter, block);
}

/* Negative bytes are freed. CPU memory has no total and no reservation here. */
static void on_report(void *block, int64_t bytes, size_t allocated, size_t reserved, uint16_t device)
{
	const bool cpu = (device & 0xff) == DEVICE_CPU;
	const struct totals of = {cpu ? 0 : allocated, cpu ? 0 : reserved};

	if (bytes)
		note(block, bytes < 0 ? -(uint64_t)bytes : (uint64_t)bytes, of, device,
		     bytes < 0 ? MXBPF_AGENT_CALL_FREED : 0);
	((report_fn)mxbpf_agent_config.hooked[MXBPF_AGENT_HOOK_REPORT])(block, bytes, allocated, reserved, device,
									MXBPF_AGENT_REPORTED);
}

/*
 * required: without this entry the agent would see only half of an allocator's calls. Where another kind of entry
 * cannot be changed, mxbpf's probe sees the calls.
 */
static const struct {
	uint64_t instead;
	bool required;
} kinds[MXBPF_AGENT_HOOK_KINDS] = {
	[MXBPF_AGENT_HOOK_ALLOC] = {(uint64_t)(uintptr_t)on_alloc, true},
	[MXBPF_AGENT_HOOK_FREE] = {(uint64_t)(uintptr_t)on_free, true},
	[MXBPF_AGENT_HOOK_REPORT] = {(uint64_t)(uintptr_t)on_report, false},
};

static bool exchange(uint64_t entry, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n((uint64_t *)entry, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
	       from == to;
}

int agent_memory_start(void)
{
	const struct mxbpf_agent_hook *h = mxbpf_agent_config.hooks;
	unsigned i;

	for (i = 0; i < MXBPF_AGENT_HOOKS && h[i].entry; i++) {
		if (exchange(h[i].entry, mxbpf_agent_config.hooked[h[i].kind], kinds[h[i].kind].instead) ||
		    !kinds[h[i].kind].required)
			continue;
		agent_memory_stop();
		return -EBUSY;
	}
	return 0;
}

/*
 * Redirects the entries again: a thread that found nobody listening may restore them after the next session has begun.
 * The first two entries are those of one allocator, or of one library.
 */
void agent_memory_keep(void)
{
	const struct mxbpf_agent_config *c = &mxbpf_agent_config;
	unsigned i;

	for (i = 0; i < 2 && c->hooks[i].entry; i++)
		if (*(volatile uint64_t *)c->hooks[i].entry == c->hooked[c->hooks[i].kind])
			agent_memory_start();
}

/* Restores the entries, but not one that somebody else has changed since. */
void agent_memory_stop(void)
{
	const struct mxbpf_agent_hook *h = mxbpf_agent_config.hooks;
	unsigned i;

	for (i = 0; i < MXBPF_AGENT_HOOKS && h[i].entry; i++)
		exchange(h[i].entry, kinds[h[i].kind].instead, mxbpf_agent_config.hooked[h[i].kind]);
}
