/* SPDX-License-Identifier: Apache-2.0 */
/* Perf events of threads, by the names that perf uses. A set of events is a mask: bit i is ctr_name(i). */
#ifndef COUNTERS_COUNTERS_H
#define COUNTERS_COUNTERS_H

#include <sys/types.h>

#include "base/err.h"
#include "mxbpf_event.h"

const char *ctr_name(unsigned i); /* NULL after the last */

#define CTR_NAMES_BYTES 256
/* Writes "cycles, instructions". Returns buf. */
const char *ctr_names(unsigned mask, char buf[CTR_NAMES_BYTES]);

/* Removes events that this machine cannot count from a set. Returns 0, or -errno with e set if none is left. */
int ctr_keep_countable(unsigned *mask, struct err *e);

/*
 * Starts the events of one thread. The caller closes the fds, which are in the order of the bits. Returns their number,
 * or -errno and opens none.
 */
int ctr_open(pid_t tid, unsigned mask, int fds[MXBPF_COUNTERS_MAX]);

#endif
