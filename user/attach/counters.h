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
	unsigned mask;		  /* numbered as ctr_name() does; 0: no counters */
	int events_fd, groups_fd; /* borrowed */
	uint32_t *tids;		  /* last thread of each group; 0: none */
	uint32_t next;		  /* the search for a free group starts here */
	struct ring_buffer *births;
	struct buf born; /* uint32_t: processes that have new threads */
	struct bpf_link *birth_link;
};

/* Call these before and after loading. With an empty mask the maps are not created. Returns 0 or -errno. */
void counters_choose(struct mxbpf_bpf *skel, unsigned mask);
int counters_open(struct counters *c, const struct mxbpf_bpf *skel, unsigned mask);
/*
 * Starts counters for all threads of a process that have none. If that fails for a thread, its spans have no counters.
 */
void counters_count(struct counters *c, pid_t tgid);
/* Stops all counters. It is safe to call this twice. */
void counters_close(struct counters *c);

#endif
