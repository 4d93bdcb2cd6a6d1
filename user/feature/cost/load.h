/* SPDX-License-Identifier: Apache-2.0 */
/* --max-overhead in a live session. */
#ifndef FEATURE_COST_LOAD_H
#define FEATURE_COST_LOAD_H

#include <stdint.h>

struct limit;
struct plan;
struct session;

/* p: the plan whose probes may be left out; borrowed. NULL: out of memory. */
struct limit *limit_new(const struct plan *p);
void limit_free(struct limit *l); /* NULL is legal */
/* Looks whether watching costs too much. Returns when to call it again, in ns of CLOCK_MONOTONIC. */
uint64_t limit_tick(struct session *ses, struct limit *l);

#endif
