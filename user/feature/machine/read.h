/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the gauges of a process's machine (machine_gauges[]) from files of /proc, /sys and the process's cgroups. The
 * files are opened once and read repeatedly. Nothing is changed, and no rights are needed beyond those to open the
 * files.
 */
#ifndef MACHINE_MACHINE_H
#define MACHINE_MACHINE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"

struct mach;

/* Reports gauges that cannot be read (comma-separated) and the reason. Both texts are borrowed. */
typedef void (*mach_absent_fn)(void *ctx, const char *gauges, const char *why);

/* Opens the gauges and leaves out those that do not exist. absent may be NULL. Returns NULL without memory. */
struct mach *mach_open(pid_t pid, mach_absent_fn absent, void *ctx);
struct mach *mach_open_groups(pid_t pid); /* only those of its control groups */
void mach_close(struct mach *m);	  /* NULL is legal */

/*
 * Appends a GAUGE record for each gauge that can be read, and before the first one of a scope its NAME. With `resumed`,
 * the time since the last reading does not count. If the process has moved, its new groups are opened. Returns 0 or
 * -ENOMEM.
 */
int mach_read(struct mach *m, bool resumed, struct buf *out);

#endif
