/* SPDX-License-Identifier: Apache-2.0 */
/* The tracepoints of option --sched. */
#ifndef ATTACH_SCHED_H
#define ATTACH_SCHED_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "mxbpf_thread.h"

struct att;

/* Call these before and after loading. */
void sched_choose(struct att *a);
int sched_open(struct att *a);
void sched_close(struct att *a);
/* sched_join() is called for each new target, sched_attach() before the first. */
void sched_join(struct att *a, pid_t tgid);
int sched_attach(struct att *a, struct err *e);
/* Before activation: reads the current state of all targets' threads from /proc. */
void sched_seed(struct att *a);
void sched_detach(struct att *a);
/* Adds the counts of the scheduler programs to sum. */
void sched_counts(const struct att *a, uint64_t sum[MXBPF_COUNT_MAX]);

#endif
