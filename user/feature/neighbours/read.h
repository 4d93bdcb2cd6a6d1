/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NEIGHBOURS_READ_H
#define NEIGHBOURS_READ_H

#include <sys/types.h>

#include "base/buf.h"

struct neighbours;

/* Reads the CPU time of all processes. `job` is the process whose descendants count as the job. NULL: out of memory. */
struct neighbours *neighbours_begin(pid_t job);
/*
 * Reads them again and appends a struct mxbpf_neighbour for each that took CPU time since then. This process is left
 * out. 0 or -errno.
 */
int neighbours_end(struct neighbours *n, struct buf *out);
void neighbours_free(struct neighbours *n); /* NULL is legal */

#endif
