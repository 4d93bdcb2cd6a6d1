/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/*
 * The watch ABI: which processes are looked at, told by user space; what they do that changes where probes belong, told
 * by BPF. None of it is a record of the recording.
 */
#ifndef MXBPF_WATCH_H
#define MXBPF_WATCH_H

#include "mxbpf_event.h"

#define MXBPF_WATCHED_MAX     1024
#define MXBPF_SIGHTINGS_BYTES (256u << 10)

/* Value of map `watched`, by tgid. */
struct mxbpf_watched {
	__u64 code_pages; /* executable pages mapped when its loader was last seen */
	__u32 stop;	  /* launched by mxbpf: it waits (SIGSTOP) until its sighting has been dealt with */
	__u32 any;	  /* however little code its loader maps, it is seen */
	__u64 execs;	  /* how often it has become another program since it is watched */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_watched) == 24);

enum mxbpf_sight {
	MXBPF_SIGHT_FORK = 1,	/* a watched process has a child with a memory of its own */
	MXBPF_SIGHT_EXEC = 2,	/* it has become another program and has not run an instruction of it */
	MXBPF_SIGHT_MAPPED = 3, /* its loader has mapped more code, which has not run */
	MXBPF_SIGHT_EXIT = 4,	/* its last thread has ended */
};

struct mxbpf_sighting {
	__u32 kind; /* enum mxbpf_sight */
	__u32 tgid;
	__u32 parent;  /* of FORK */
	__u32 stopped; /* SIGSTOP was sent: somebody has to send SIGCONT */
	__u64 ts_ns;
	__u32 covered; /* of FORK: it is a target already, by shared links */
	__u32 pad;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_sighting) == 32);

#endif
