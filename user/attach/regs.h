/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the user-space registers of a process's threads while they sleep in the kernel. */
#ifndef ATTACH_REGS_H
#define ATTACH_REGS_H

#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "mxbpf_regs.h"

struct regs;

/* Loads the program. This is separate from reading because it takes long. */
int regs_open(pid_t tgid, struct regs **out, struct err *e);
/* Appends a struct mxbpf_regs for each thread. Returns 0 or -errno. */
int regs_read(const struct regs *r, struct buf *out);
void regs_close(struct regs *r); /* NULL is legal */

#endif
