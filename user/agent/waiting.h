/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a thread of an idle process that can load the agent although it calls no operator. */
#ifndef AGENT_WAITING_H
#define AGENT_WAITING_H

#include "agent/inject.h"
#include "plan/plan.h"
#include "target/target.h"

/*
 * Looks for a thread that sleeps in poll(), select(), epoll_wait() or nanosleep(), or below pthread_cond_wait() or
 * sem_wait(). Its stack must have no frame of a signal handler, an allocator or the dynamic loader, so that it
 * holds none of their locks. Its wait can be restarted, and then ends on time or at most a second late. No thread
 * is stopped. Returns 0, or -ENOENT with the reason in e.
 */
int agt_find_waiting(struct tgt *t, const struct plan *p, struct agt_wait *w, struct err *e);
/* Returns true if a system call with these arguments can be restarted. */
bool agt_may_begin_anew(pid_t pid, int32_t syscall_nr, const uint64_t args[6]);

#endif
