/* SPDX-License-Identifier: Apache-2.0 */
/* Says which system calls of a sleeping thread can be interrupted without effect on its program. */
#ifndef AGENT_RESTART_H
#define AGENT_RESTART_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Returns true if a system call in which the thread sleeps, with these arguments, can be interrupted and begin anew.
 * Its result is then what it would have been, and it comes on time or at most a second late.
 */
bool restart_is_safe(pid_t pid, pid_t tid, int32_t syscall_nr, const uint64_t args[6]);
/*
 * Returns true if an interrupted call of this kind may fail with EINTR, as it does for a signal of which the program
 * knows nothing.
 */
bool restart_may_fail(int32_t syscall_nr);

#endif
