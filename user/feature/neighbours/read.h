/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NEIGHBOURS_READ_H
#define NEIGHBOURS_READ_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"

struct neighbours;

/* Says whether a process and all that descends from it are of the job. */
struct neighbours_job {
	bool (*is)(const void *ctx, pid_t pid);
	uint32_t (*rank)(pid_t pid);		    /* its number in a distributed job, plus 1; 0: not known */
	int (*cgroup)(pid_t pid, struct buf *text); /* as tgt_peek_cgroup() */
	const void *ctx;
};

/* Reads the CPU time of all processes. job's ctx is borrowed until neighbours_free(). NULL: out of memory. */
struct neighbours *neighbours_begin(const struct neighbours_job *job);
/*
 * Reads them again and appends a struct mxbpf_neighbour for each that took CPU time since then. This process is left
 * out. 0 or -errno.
 */
int neighbours_end(struct neighbours *n, struct buf *out);
void neighbours_free(struct neighbours *n); /* NULL is legal */

/* Returns how long a thread has been ready without a CPU so far, in ns. 0: it has ended, or the kernel does not say. */
uint64_t neighbours_runq(pid_t pid, pid_t tid);

#endif
