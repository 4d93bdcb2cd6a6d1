/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the clock in the agent's memory (struct mxbpf_agent_clock), from pairs of readings of the CPU's counter and of
 * CLOCK_MONOTONIC. The clock is kept only if the kernel itself takes its time from that counter, which it then watches.
 * One thread at a time calls these functions.
 */
#ifndef AGENT_CLOCK_H
#define AGENT_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/shared.h"

struct keeper {
	bool usable;
	uint64_t counter, ns;		/* the last reading; ns 0: none */
	double rate;			/* ns per tick between the last two readings; 0: not known */
	struct mxbpf_agent_clock clock; /* as the agent has it */
};

/* Takes the first reading. */
void keeper_open(struct keeper *k, pid_t pid);
/*
 * Renews the clock. It comes into effect when two intervals between calls have had the same rate, and stays so for 0.1
 * s. Calls that follow another one within 5 ms do nothing.
 */
void keeper_renew(struct keeper *k, const struct shared *s);

#endif
