/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/*
 * The watch ABI. User space says which processes to watch, and BPF reports the events that change where probes
 * belong. None of this is part of a recording.
 */
#ifndef MXBPF_WATCH_H
#define MXBPF_WATCH_H

#include "mxbpf_event.h"

#define MXBPF_WATCHED_MAX     1024
#define MXBPF_WATCHED_HOST    32768 /* if any process of the machine may be one */
#define MXBPF_SIGHTINGS_BYTES (256u << 10)

/* Value of map `watched`, by tgid. */
struct mxbpf_watched {
	__u64 code_pages; /* executable pages mapped at the loader's last event */
	__u32 stop;	  /* 1: launched by mxbpf; it is stopped until user space has handled its event */
	__u32 any;	  /* 1: the loader's events are reported however small the mapped code is */
	__u64 execs;	  /* number of calls of exec since it is watched */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_watched) == 24);

enum mxbpf_sight {
	MXBPF_SIGHT_FORK = 1,	/* a watched process has a child with its own memory */
	MXBPF_SIGHT_EXEC = 2,	/* it has called exec and has not run an instruction of the new program */
	MXBPF_SIGHT_MAPPED = 3, /* its loader has mapped more code, which has not run yet */
	MXBPF_SIGHT_EXIT = 4,	/* its last thread has ended */
	MXBPF_SIGHT_NEW = 5,	/* a process that is not watched has called exec; only while all are told */
};

struct mxbpf_sighting {
	__u32 kind; /* enum mxbpf_sight */
	__u32 tgid;
	__u32 parent;  /* for FORK */
	__u32 stopped; /* SIGSTOP was sent, so user space has to send SIGCONT */
	__u64 ts_ns;
	__u32 covered; /* for FORK: it is already a target, through shared links */
	__u32 pad;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_sighting) == 32);

#endif
