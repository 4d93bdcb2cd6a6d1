/* SPDX-License-Identifier: Apache-2.0 */
/* The life of the processes of a session, from being chosen to their end: what others call of it. */
#ifndef TARGETS_TARGETS_H
#define TARGETS_TARGETS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "targets/builds.h"

struct mdl_session;
struct session;
struct ses_process;
struct tgt;
struct watch;

/*
 * roles.c. ses_role_fits: returns true if --role selects a process. ses_role_note, ses_role_join: describe the role of
 * the first process, and of each process that is followed.
 */
bool ses_role_fits(const struct session *ses, const struct tgt *t);
int ses_role_note(struct session *ses, const struct tgt *t);
void ses_role_join(struct session *ses, uint32_t tgid, uint32_t parent);
int ses_describe_host(struct mdl_session *s); /* 0 or -ENOMEM */
/*
 * labels.c: keeps the labels of a process. Returns 0 or -ENOMEM. ses_labels_gone: of one that has ended already only
 * the runtime is known.
 */
int ses_labels_note(struct session *ses, const struct tgt *t);
int ses_labels_gone(struct session *ses, uint32_t tgid, uint32_t parent);

/*
 * follow.c: watches processes start, execute programs and end.
 * await.c: ses_await: runs the command until it or a child maps a runtime. That process is the first target, and it is
 * stopped until ses_go_on(). ERR_TARGET if the command ends before. ses_follow: attaches to children and late libraries
 * of an attached target. ses_sight: handles what was seen.
 */
int ses_await(struct session *ses, struct err *e);
/* --pid: finds the runtime in the process; with --wait, waits for one. */
int ses_await_pid(struct session *ses, struct err *e);
/*
 * Call before attaching to a target, so that its children are seen from then on. Does nothing if no process is
 * followed.
 */
int ses_follow_open(struct session *ses, struct err *e);
struct watch *ses_follow_watch(const struct session *ses); /* NULL: nothing is followed; borrowed */
bool ses_follows(const struct session *ses);		   /* true if children are followed now */
pid_t ses_root(const struct session *ses);		   /* the command, or the process that the user named first */
int ses_follow(struct session *ses, struct err *e);
void ses_go_on(struct session *ses);
/*
 * Handles the sightings that have come. Those that come meanwhile wait for the next call, or a process that maps
 * libraries without end would hold up everything else, and Ctrl-C.
 */
void ses_sight(struct session *ses);
bool ses_sight_waits(const struct session *ses); /* true if ses_sight() has something to do */
void ses_sweep(struct session *ses);	     /* frees what belongs to processes that have ended; called once a second */
int ses_sight_fd(const struct session *ses); /* -1: none */
int ses_more(struct session *ses, struct err *e); /* att_more() for all processes */
void ses_follow_free(struct session *ses);

/*
 * roots.c: the processes that the user chose. ses_roots_open: says whether they are or may become several.
 * ses_roots_find: finds those that run now; call it when processes are watched. ses_roots_new: a process has begun to
 * execute a program; returns 1 if the user wants it, and it is then watched. ses_roots_ended: takes those that have
 * ended; true if the session has to end. ses_roots_join: a process has a runtime, which makes it a chosen one with
 * --host. ses_roots_left: a process has ended.
 */
int ses_roots_open(struct session *ses, struct err *e);
int ses_roots_find(struct session *ses, struct err *e);
int ses_roots_new(struct session *ses, pid_t pid, struct err *e);
bool ses_roots_ended(struct session *ses);
int ses_roots_join(struct session *ses, pid_t pid); /* 0 or -errno */
void ses_roots_left(struct session *ses, struct ses_process *p);
/* Calls fn for each process that the user chose and that has not ended, or for the command. */
void ses_each_root(struct session *ses, void (*fn)(void *ctx, pid_t pid), void *ctx);
bool ses_is_root(const struct session *ses, pid_t pid);
void ses_roots_close(struct session *ses);

/*
 * share.c: whether processes share links. Call ses_share_start() between att_load() and att_attach(), and
 * ses_share_at_fork() before attaching to a child of a process with its own links.
 */
int ses_share_start(struct session *ses, struct err *e);
int ses_share_at_fork(struct session *ses, struct err *e);
/* Notes how long a process ran, while events were taken, before its probes were active. */
void ses_share_gap(struct session *ses, uint32_t tgid, uint64_t gap_ns);
/* Warns of a stranger that works, if the session records every call. Call it before the window. */
void ses_share_warn(const struct session *ses);
/* Reads the cost for processes that are no targets but hit shared links. While probes are attached. */
void ses_share_account(const struct session *ses, struct mdl_session *s);

/*
 * late.c: libraries that a process maps while it runs. ses_late_look: probes those that it has mapped by now.
 * ses_late_fork: a child has those of its parent. With --gpu, only launches of
 * CUDA are counted until ses_late_cuda() asks for spans of its calls, because CUPTI does not deliver them; it may
 * change as often as CUPTI comes and goes. ses_late_launches: launches that were counted so far, a lower bound; 0: not
 * probed. ses_late_keep: which of them are probed between slices from now on; ses_late_slice adds the others to the
 * slice of a process that is about to begin.
 */
bool ses_late_wanted(const struct ses_build *b);
void ses_late_look(struct ses_build *b, struct tgt *t);
void ses_late_cuda(struct session *ses, bool spans);
uint64_t ses_late_launches(const struct session *ses);
void ses_late_fork(struct session *ses, struct ses_process *child, uint32_t parent);
int ses_late_share(struct ses_build *b, struct err *e);
void ses_late_keep(struct ses_build *b, enum late_kept kept);
void ses_late_slice(struct ses_build *b, uint32_t tgid);
void ses_late_free(struct ses_build *b);

#endif
