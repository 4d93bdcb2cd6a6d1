/* SPDX-License-Identifier: Apache-2.0 */
/* The tracepoints of --sched. */
#ifndef ATTACH_SCHED_H
#define ATTACH_SCHED_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "mxbpf_thread.h"

struct att;

/* Before and after loading. */
void sched_choose(struct att *a);
int sched_open(struct att *a);
void sched_close(struct att *a);
/* A process is a target; attaching, once. */
void sched_join(struct att *a, pid_t tgid);
int sched_attach(struct att *a, struct err *e);
/* Before activation: what the threads of all targets are doing now, from /proc. */
void sched_seed(struct att *a);
void sched_detach(struct att *a);
/* Adds what its programs counted. */
void sched_counts(const struct att *a, uint64_t sum[MXBPF_COUNT_MAX]);

#endif
