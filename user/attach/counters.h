/* SPDX-License-Identifier: Apache-2.0 */
/* Perf events for the threads of the target. */
#ifndef ATTACH_COUNTERS_H
#define ATTACH_COUNTERS_H

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

struct mxbpf_bpf;
struct ring_buffer;
struct bpf_link;

struct counters {
	unsigned mask;		  /* as ctr_name() numbers them; 0: nothing is counted */
	int events_fd, groups_fd; /* borrowed */
	uint32_t *tids;		  /* by group: who had it last; 0: nobody */
	uint32_t next;		  /* group to be tried first */
	struct ring_buffer *births;
	struct buf born; /* uint32_t: processes with new threads */
	struct bpf_link *birth_link;
};

/* Before and after loading. Without `mask` the maps are not made at all. 0 or -errno. */
void counters_choose(struct mxbpf_bpf *skel, unsigned mask);
int counters_open(struct counters *c, const struct mxbpf_bpf *skel, unsigned mask);
/* Gives events to the threads of a process that have none. One that cannot have any has spans without counters. */
void counters_count(struct counters *c, pid_t tgid);
/* Takes them from all. Safe to call twice. */
void counters_close(struct counters *c);

#endif
