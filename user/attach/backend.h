/* SPDX-License-Identifier: Apache-2.0 */
/* The backends, as the files of this room use them. */
#ifndef ATTACH_BACKEND_H
#define ATTACH_BACKEND_H

#include "attach/attach.h"
#include "base/buf.h"

extern const struct att_backend att_backend_multi;
extern const struct att_backend att_backend_perf;

/* Loads a program that does nothing, to try links with. Returns its fd, or -errno with e set. */
int backend_trial_prog(int attach_type, struct err *e);

/*
 * Returns the pid namespace of mxbpf, or leaves 0, 0 if it is the initial one. In a container, /proc and the command
 * line use pids of that namespace, so BPF must use them too. The kernel gives a thread's id in its own namespace only.
 */
void backend_namespace(__u64 *dev, __u64 *ino);
/* The last of the features that mxbpf requires and this kernel has not: "attach cookies: Linux 5.15 ...", or NULL. */
const char *features_missing(void);
/*
 * Returns the errno that an error of libbpf stands for. It says EINVAL where descriptors are missing. An error of
 * libelf means that memory is missing, because libelf reads only objects that are a part of mxbpf.
 */
int backend_errno(int err);
/* Sets e to the reason why the BPF programs were not loaded. Returns err. */
int backend_load_failed(int err, struct err *e);
/*
 * Closes a vector of link fds and frees the vector. Each close waits for grace periods of the kernel, so they are
 * closed side by side to wait for the same periods. Without `wait` this happens in the background.
 */
void backend_close(struct buf *fds, bool wait);
/* The number of fds that were given to the background so far, and whether so many of them are closed. */
uint64_t backend_handed(void);
bool backend_has_closed(uint64_t nhanded);

/* Returns when every BPF program that is running now has ended. */
void backend_grace(void);

/* Silences libbpf on stderr. Errors are reported by struct err instead. */
void backend_quiet(void);

#endif
