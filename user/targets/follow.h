/* SPDX-License-Identifier: Apache-2.0 */
/* The state of follow.c. await.c shares it, because it finds the first process with a runtime in the same way. */
#ifndef TARGETS_FOLLOW_H
#define TARGETS_FOLLOW_H

#include "attach/watch.h"
#include "session/priv.h"
#include "targets/targets.h"

/* A sighting that is not handled yet. */
struct sight {
	struct mxbpf_sighting seen;
	uint64_t ran_ns; /* how long the process ran before it was stopped; 0: it was not stopped */
};

struct follow {
	struct watch *watch;
	struct buf queue;     /* struct sight, oldest first */
	struct hash loaders;  /* (device, inode) of loaders that are watched in all processes */
	uint64_t left;	      /* processes that were followed and have ended */
	uint64_t missed;      /* sightings that were dropped because the queue was full, as of the last reading */
	struct buf strangers; /* struct stranger of share.c */
	struct sight found;   /* the sighting of a runtime that ses_await() waits for; kind 0: none yet */
};

/* sights.c: the queue of sightings. */
bool sights_next(struct buf *queue, struct sight *at); /* removes the oldest one; false: there is none */
/* A sighting for which this process is stopped; NULL: none. */
struct sight *sights_stopped(struct buf *queue, uint32_t tgid);
/* True if the process has told already that it has mapped code, and nothing else since: one look serves both. */
bool sights_cover(struct buf *queue, const struct mxbpf_sighting *seen);

int follow_open(struct session *ses, struct err *e);
/* Has the loader of a process tell when it maps more code. Returns true if it has not done so before. */
bool follow_loader(struct session *ses, struct tgt *t);
/*
 * Follows a process by what it has mapped by now. The first one with a runtime becomes the first target, and is not
 * attached to. at: the sighting that led to it; NULL: the process was there before.
 */
int follow_look(struct session *ses, uint32_t tgid, const struct sight *at, struct err *e);
bool follow_has(const struct session *ses, uint32_t tgid); /* the process is followed now */
/* A process cannot be followed. Says so, unless it has just ended. */
void follow_give_up(struct session *ses, uint32_t tgid, const struct err *e);

/*
 * walk.c: looks at processes that run already, once at each: all that descend from one, or all that the user chose with
 * all that descends from them. follow_again: does so when probes can be attached; of all processes of a machine only at
 * those that have mapped a runtime or were forked meanwhile, because the kernel tells what maps one later.
 */
void follow_children(struct session *ses, pid_t pid);
void follow_roots(struct session *ses);
void follow_again(struct session *ses);

#endif
