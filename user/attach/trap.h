/* SPDX-License-Identifier: Apache-2.0 */
/* What one hit costs on this machine. */
#ifndef ATTACH_TRAP_H
#define ATTACH_TRAP_H

#include "attach/priv.h"

/*
 * Returns the median time, in ns, that a hit of a loaded program takes in mxbpf itself, which is no target: the trap
 * and the part of the program that finds this out. Takes some 30 ms. Returns 0 if it cannot be measured. The hits count
 * among those of strangers; a->trap_trials has their number. It is measured once in a session.
 */
uint64_t trap_hit_ns(struct att *a, int prog_fd);

#endif
