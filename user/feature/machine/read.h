/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine around a process, as its gauges (mdl_gauges[]) say: files of /proc, /sys and of the process's control
 * groups, opened once and read again and again. Changes nothing, and needs no more rights than the files ask for.
 */
#ifndef MACHINE_MACHINE_H
#define MACHINE_MACHINE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"

struct mach;

/* Told of gauges that cannot be read, with commas, and why; both texts are borrowed. */
typedef void (*mach_absent_fn)(void *ctx, const char *gauges, const char *why);

/* What is not there is left out; absent may be NULL. NULL: out of memory. */
struct mach *mach_open(pid_t pid, mach_absent_fn absent, void *ctx);
void mach_close(struct mach *m); /* NULL is legal */

/*
 * Appends a GAUGE record for each gauge that can be read now, and before the first of a scope its NAME. resumed: what
 * came since the last reading is not to count. A process that was moved is followed into its new groups. 0, -ENOMEM.
 */
int mach_read(struct mach *m, bool resumed, struct buf *out);

#endif
