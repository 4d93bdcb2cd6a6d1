/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the agent's object, which runs inside the target. It uses only libc, and only what glibc
 * 2.17 has.
 */
#ifndef AGENT_LIB_AGENT_H
#define AGENT_LIB_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mxbpf_agent.h"

/* The parts of the agent; one row for each runtime. */
struct agent_module {
	const char *name;
	unsigned bit; /* enum mxbpf_agent_module */
	/* wanted: mask of enum mxbpf_agent_module. Returns 0 or -errno; may be called again after stop. */
	int (*start)(uint64_t wanted);
	void (*stop)(void); /* called by any thread that finds no mxbpf attached */
};
extern const struct agent_module agent_record_function, agent_gpu;
/* Tries to hold CUPTI in the calling thread, before the module agent_gpu is started. */
void agent_gpu_hold(struct mxbpf_gpu_shared *g);

extern struct mxbpf_agent_config mxbpf_agent_config;
extern volatile uint16_t mxbpf_agent_switch;

/*
 * The address of the shared memory, in a page that the kernel clears in every child (MADV_WIPEONFORK), whatever call
 * made the child. A kernel that cannot do so, such as gVisor's, copies the page: then `pid` says whose memory it is.
 */
struct agent_gate {
	struct mxbpf_agent_shared *volatile shared;
	long pid; /* 0: the kernel clears the page */
};
extern struct agent_gate *agent_gate;

/*
 * Slot of the calling thread, taken at its first call; NULL: none. Code that cannot record for lack of a slot
 * counts the call in no_slot.
 */
extern __thread struct mxbpf_agent_slot *agent_slot __attribute__((tls_model("initial-exec")));
extern __thread struct agent_gate *agent_slot_gate __attribute__((tls_model("initial-exec")));
/* In a forked child, the thread that called fork() still has the slot of its parent, whose memory is not there. */
static inline struct mxbpf_agent_slot *agent_own_slot(void)
{
	return agent_slot_gate == agent_gate ? agent_slot : NULL;
}
struct mxbpf_agent_slot *agent_take_slot(struct mxbpf_agent_shared *s);
/* Returns the slot of the calling thread, and takes one if it has none. Counts what cannot be recorded for lack of one.
 */
struct mxbpf_agent_slot *agent_my_slot(struct mxbpf_agent_shared *s);

uint64_t agent_now(void);						  /* CLOCK_MONOTONIC */
uint64_t agent_ran(void);						  /* time of the calling thread on CPUs, ns */
long agent_call(long nr, long a, long b, long c, long d, long e, long f); /* a system call: its result or -errno */
bool agent_is_pid(long pid);						  /* the calling process's id */

/* ---- on the path of each call: functions that the compiler puts into their callers */

/* Returns the shared memory, or NULL in a forked child until the agent has started there. */
static inline struct mxbpf_agent_shared *agent_shared(void)
{
	struct mxbpf_agent_shared *s = agent_gate->shared;

	return !s || !agent_gate->pid || agent_is_pid(agent_gate->pid) ? s : NULL;
}

static inline uint64_t agent_counter(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

/*
 * Returns CLOCK_MONOTONIC by the CPU's counter, which takes a third of the time that clock_gettime() takes. If mxbpf
 * does not renew the clock (it is not there, was killed or gets no CPU; the machine was suspended), this calls
 * clock_gettime().
 */
static inline uint64_t agent_clock(const struct mxbpf_agent_clock *c)
{
	uint64_t until = __atomic_load_n(&c->until, __ATOMIC_ACQUIRE);
	uint64_t base = __atomic_load_n(&c->base, __ATOMIC_ACQUIRE), ns = __atomic_load_n(&c->ns, __ATOMIC_ACQUIRE);
	uint64_t mult = __atomic_load_n(&c->mult, __ATOMIC_ACQUIRE), ticks = agent_counter() - base;

	if (__builtin_expect(ticks >= until - base || !until || __atomic_load_n(&c->until, __ATOMIC_ACQUIRE) != until,
			     0))
		return agent_now();
	return ns + (ticks * mult >> MXBPF_AGENT_CLOCK_SHIFT);
}

/* Returns the time for the calling thread, on which this clock never runs backwards. */
static inline uint64_t agent_time(const struct mxbpf_agent_shared *s, struct mxbpf_agent_slot *t)
{
	uint64_t ns = agent_clock(&s->clock);

	t->last_ns = ns > t->last_ns ? ns : t->last_ns;
	return t->last_ns;
}
/* Returns true if no mxbpf will attach after this start of the agent. Call it while none is attached. */
bool agent_is_forsaken(void);
/*
 * Starts the agent in a forked child, which has inherited its callbacks, if mxbpf records in the parent and wants the
 * children. Returns the shared memory, or NULL; then the call that is just beginning is counted in the parent's.
 */
struct mxbpf_agent_shared *agent_inherit(void);
/* Returns true if somebody wants what the agent hands over: mxbpf is attached, or it goes into a file. */
bool agent_is_heard(void);
void agent_hand_over(const struct mxbpf_agent_batch *b);
/* Returns the offset of a name's text in the shared memory, or 0 if there is no room. */
uint32_t agent_name(struct mxbpf_agent_shared *s, struct mxbpf_agent_slot *t, const char *text);
/*
 * Returns the place of the list of n words in t->list, which is kept once, or 0 if there is no room for it. A list that
 * has no room counts as truncated.
 */
uint32_t agent_list(struct mxbpf_agent_shared *s, struct mxbpf_agent_slot *t, enum mxbpf_agent_list kind, uint32_t n);
/* In a forked child: counts a call here and in the parent, because mxbpf has not attached to the child yet. */
void agent_orphan(void);
/* Hands over a full batch. */
void agent_batch_full(struct mxbpf_agent_slot *t);

/* Returns the place of a thread's next record. It counts from agent_recorded() on. */
static inline struct mxbpf_agent_call *agent_next(struct mxbpf_agent_slot *t)
{
	return &t->batch.calls[t->batch.ncalls];
}

/*
 * A reader outside takes the tail between two reads of seq, so seq changes between the changes of the number and of
 * the calls.
 */
static inline void agent_recorded(struct mxbpf_agent_slot *t)
{
	uint32_t n = t->batch.ncalls + 1;

	if (__builtin_expect(agent_gate->shared->unheard, 0))
		agent_orphan();
	__atomic_store_n(&t->calls, t->calls + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&t->batch.ncalls, n, __ATOMIC_RELEASE);
	if (n == MXBPF_AGENT_BATCH)
		agent_batch_full(t);
}

#endif
