/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps forks apart from changes of PyTorch's list of callbacks and from calls of the loader. Any thread may call these
 * functions. */
#ifndef AGENT_LIB_FORK_H
#define AGENT_LIB_FORK_H

#include <stdbool.h>

/* Call before the agent changes the list for the first time. */
void agent_fork_watch(void);
/* Waits until no thread forks. Returns false if one still forks after ten seconds. */
bool agent_fork_stop(void);
/* Returns false if a thread forks. */
bool agent_fork_try(void);
/* Lets threads fork again, after agent_fork_stop() or agent_fork_try() has returned true. */
void agent_fork_go(void);
/*
 * Call them around calls of the loader, and of other functions that take a lock which a child would inherit. A thread
 * that forks meanwhile waits, a second at most. Calls nest. Give the result of the first function to the second.
 */
bool agent_fork_enter_loader(void);
void agent_fork_leave_loader(bool entered);

#endif
