/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last times that each thread was off the CPU, in a hash: (tid, tgid) -> struct recent *, owned. mdl_owned_fini()
 * frees it. The functions that return int return 0 or -ENOMEM.
 */
#ifndef FEATURE_SLOW_RECENT_H
#define FEATURE_SLOW_RECENT_H

#include "base/hash.h"
#include "mxbpf_event.h"
#include "mxbpf_sched.h"
#include "mxbpf_table.h"

int recent_put(struct hash *threads, const struct mxbpf_sched *r);
/* Sets `kept` and `slept` of a slow span from the times off the CPU that lie in it. */
void recent_during(const struct hash *threads, struct mxbpf_slow *s);
/* Adds one more time off the CPU to a slow span, if it is of the same thread and lies in the span. */
void recent_late(struct mxbpf_slow *s, const struct mxbpf_sched *r);
int recent_copy(struct hash *to, const struct hash *from);

#endif
