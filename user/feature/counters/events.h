/* SPDX-License-Identifier: Apache-2.0 */
/* Perf events of threads, by the names that perf gives them. A set of them is a mask: bit i is ctr_name(i). */
#ifndef COUNTERS_COUNTERS_H
#define COUNTERS_COUNTERS_H

#include <sys/types.h>

#include "base/err.h"
#include "mxbpf_event.h"

const char *ctr_name(unsigned i); /* NULL behind the last */

#define CTR_NAMES_BYTES 256
/* "cycles, instructions". Returns buf. */
const char *ctr_names(unsigned mask, char buf[CTR_NAMES_BYTES]);

/* Takes what this machine cannot count out of a set. 0; if nothing is left: -errno with e set. */
int ctr_keep_countable(unsigned *mask, struct err *e);

/* Begins to count them for one thread: fds, for the caller to close, in order of the bits. How many, or -errno: none.
 */
int ctr_open(pid_t tid, unsigned mask, int fds[MXBPF_COUNTERS_MAX]);

#endif
