/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a thread of an idle process that can load the agent although it calls no operator. */
#ifndef AGENT_WAITING_H
#define AGENT_WAITING_H

#include "agent/inject.h"
#include "plan/plan.h"
#include "target/target.h"

/*
 * Looks for a thread that sleeps in a system call that can be restarted, see restart.h. Its stack must have no frame of
 * a signal handler, an allocator or the dynamic loader, so that it holds none of their locks; below a futex it must
 * wait for a condition variable or a semaphore. No thread is stopped. Returns 0, or -ENOENT with the reason in e.
 */
int agt_find_waiting(struct tgt *t, const struct plan *p, struct agt_wait *w, struct err *e);
/* The wait of a thread that sleeps in a system call. */
struct agt_wait agt_wait_of(pid_t tid, const struct tgt_doing *d);

#endif
