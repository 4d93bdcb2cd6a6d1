/* SPDX-License-Identifier: Apache-2.0 */
/* The ways of attaching, inside this room. */
#ifndef ATTACH_BACKEND_H
#define ATTACH_BACKEND_H

#include "attach/attach.h"
#include "base/buf.h"

extern const struct att_backend att_backend_multi;
extern const struct att_backend att_backend_perf;

/* fd of a program that does nothing, to try links with; -errno with e set. */
int backend_trial_prog(int attach_type, struct err *e);

/*
 * In a container, /proc and the command line speak of numbers of its pid namespace, and BPF has to as well. The kernel
 * gives a thread's number in its own namespace only. 0, 0: mxbpf is in the first one.
 */
void backend_namespace(__u64 *dev, __u64 *ino);
/* What it means that the BPF programs were not loaded. Returns err. */
int backend_load_failed(int err, struct err *e);
/*
 * Closes a vector of fds of links, and frees it. Each waits for grace periods of the kernel; side by side, all of them
 * wait for the same ones. Without `wait` they do so later.
 */
void backend_close(struct buf *fds, bool wait);

/* Returns when every BPF program that runs now has ended. */
void backend_grace(void);

/* libbpf says nothing more on stderr: what is wrong goes by struct err. */
void backend_quiet(void);

#endif
