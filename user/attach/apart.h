/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes to the code of processes that a SIGKILL of mxbpf must not cut short. While a thread is being killed, the
 * kernel cannot change the code of another process: a link of a thousand probes whose creation or removal is under way
 * then leaves their breakpoints there, with nothing behind them, until the process ends. So processes of their own do
 * both. They share the memory of mxbpf, and a kill of mxbpf, or of its group of processes, does not reach them. Only a
 * kill of all processes of its control group does; what that leaves in a process goes with the next session on it.
 */
#ifndef ATTACH_APART_H
#define ATTACH_APART_H

#include "base/buf.h"

/*
 * Calls fn(ctx) in a process that shares memory and descriptors, and returns when fn has returned. The calling thread
 * takes no signal meanwhile. If there can be no such process, fn is called here. fn must not depend on its process id.
 */
void apart_run(void (*fn)(void *ctx), void *ctx);

/*
 * Closes a vector of fds. The last reference of each is given up by a process that ends, which no signal can cut short:
 * not even one to all processes of a group. There are at most `most` of these at a time, side by side.
 */
void apart_close(const struct buf *fds, unsigned most);

#endif
