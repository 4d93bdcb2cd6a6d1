/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports events of processes that change where probes belong: fork, exec, code mapped by the loader, exit. A process
 * that mxbpf launched is stopped at exec and when its loader has mapped code, until watch_continue(). Its child
 * processes are stopped while probes are attached. A process that mxbpf attached to is never stopped.
 */
#ifndef ATTACH_WATCH_H
#define ATTACH_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "mxbpf_watch.h"

struct watch;

/*
 * With `follow`, child processes of watched processes are watched too. `most` of them at a time; the others are counted
 * as missed. `backend` and `verbose` are those of struct att_opts.
 */
int watch_open(bool follow, unsigned most, const char *backend, bool verbose, struct watch **out, struct err *e);
/*
 * `launched` means that mxbpf started the process and may stop it. Call it before the process runs. If there is no room
 * for a process that was not launched, it is counted as missed.
 */
int watch_add(struct watch *w, pid_t tgid, bool launched, struct err *e);

/*
 * Reports MAPPED from the loader of a process. `path` opens the inode (it is opened once more here), and `off` is the
 * file offset of the loader's hook. Returns 1, 0 if the loader was watched already, in this process or in all, or
 * -errno with e set.
 */
int watch_loader(struct watch *w, pid_t tgid, const char *path, uint64_t off, struct err *e);
/* Reports every mapping of the process, even one too small for a runtime. */
void watch_any(struct watch *w, pid_t tgid);
/* Gives a forked child process the loader of its parent. */
void watch_inherit(struct watch *w, pid_t child, pid_t parent);
/* The map of targets, for att_opts.targets_fd. Borrowed. */
int watch_targets_fd(const struct watch *w);
/*
 * From now on BPF makes a forked child of a target a target from its first instruction. Its sighting then says
 * `covered`.
 */
void watch_cover(struct watch *w);
/*
 * From now on each process that is not watched and calls exec is reported (NEW). A loader is then watched in all
 * processes at once, which costs those that are not watched a microsecond each time that they map libraries. Call it
 * before watch_loader().
 */
void watch_tell_all(struct watch *w);
/* Returns true if a hook in a loader is for all processes, so that each loader needs only one. */
bool watch_hooks_all(const struct watch *w);
/* Returns how often the process has called exec while it was watched, or one of these. */
#define WATCH_ENDED   UINT64_MAX
#define WATCH_UNKNOWN (UINT64_MAX - 1) /* BPF cannot be asked */
uint64_t watch_execs(const struct watch *w, pid_t tgid);
/* Forgets a process that has ended. */
void watch_forget(struct watch *w, pid_t tgid);

int watch_fd(const struct watch *w); /* readable while there are sightings; borrowed */
typedef void (*watch_fn)(void *ctx, const struct mxbpf_sighting *s);
void watch_take(struct watch *w, watch_fn fn, void *ctx);
/* Stops a forked child of a launched process. BPF cannot do this, so the child has run a little already. */
void watch_stop(struct mxbpf_sighting *s);
/* Continues a stopped process. */
void watch_continue(const struct mxbpf_sighting *s);
uint64_t
watch_missed(const struct watch *w); /* processes not watched and sightings not sent because a table was full */

/* Continues every stopped process and stops watching. NULL is legal. */
void watch_close(struct watch *w);

#endif
