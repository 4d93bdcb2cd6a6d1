/* SPDX-License-Identifier: Apache-2.0 */
/* A thread of an idle process in which the agent can be loaded although it calls no operator. */
#ifndef AGENT_WAITING_H
#define AGENT_WAITING_H

#include "agent/inject.h"
#include "plan/plan.h"
#include "target/target.h"

/*
 * Looks for a thread that sleeps in poll(), select(), epoll_wait() or nanosleep(), or below pthread_cond_wait() or
 * sem_wait(), with no frame of a signal handler, an allocator or the dynamic loader on its stack: so it holds none of
 * their locks. Its wait can begin anew, and then ends when it would have ended, or a second later at most. No thread is
 * stopped. 0, or -ENOENT with the reason.
 */
int agt_find_waiting(struct tgt *t, const struct plan *p, struct agt_wait *w, struct err *e);
/* Whether a system call is one of those, by its arguments. */
bool agt_may_begin_anew(pid_t pid, int32_t syscall_nr, const uint64_t args[6]);

#endif
