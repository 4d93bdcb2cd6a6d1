/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sees what processes do that changes where probes belong: fork, exec, code mapped by their loader, exit. One that
 * mxbpf launched itself is stopped at exec and when its loader has mapped code, until watch_continue(), and so are its
 * children while probes are laid; what was attached to never is.
 */
#ifndef ATTACH_WATCH_H
#define ATTACH_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "mxbpf_watch.h"

struct watch;

/* follow: children of what is watched are watched as well. backend: as in struct att_opts. */
int watch_open(bool follow, const char *backend, struct watch **out, struct err *e);
/* launched: it is ours to stop. Before it runs. */
int watch_add(struct watch *w, pid_t tgid, bool launched, struct err *e);

/*
 * The loader of a process: sightings of MAPPED come from there. path opens the inode (it is opened here once more), off
 * is the file offset of its hook. A process whose loader is known already, from before an exec, is left as it is.
 */
int watch_loader(struct watch *w, pid_t tgid, const char *path, uint64_t off, struct err *e);
/* However little a process maps, it is seen: not only what may be a runtime. */
void watch_any(struct watch *w, pid_t tgid);
/* A forked child has the loader of its parent. */
void watch_inherit(struct watch *w, pid_t child, pid_t parent);
/* The map of targets, for att_opts.targets_fd; borrowed. */
int watch_targets_fd(const struct watch *w);
/* From now on a forked child of a target is one from its first instruction: its sighting says `covered`. */
void watch_cover(struct watch *w);
/* How often it has become another program while it was watched; WATCH_ENDED: it has ended. */
#define WATCH_ENDED UINT64_MAX
uint64_t watch_execs(const struct watch *w, pid_t tgid);
/* It has ended. */
void watch_forget(struct watch *w, pid_t tgid);

int watch_fd(const struct watch *w); /* polls readable while there are sightings; borrowed */
typedef void (*watch_fn)(void *ctx, const struct mxbpf_sighting *s);
void watch_take(struct watch *w, watch_fn fn, void *ctx);
/* Stops a forked child of a launched process, which BPF cannot: it has run a little by now. */
void watch_stop(struct mxbpf_sighting *s);
/* Lets a stopped process go on. */
void watch_continue(const struct mxbpf_sighting *s);
uint64_t watch_missed(const struct watch *w); /* processes and sightings for which there was no room */

/* Lets everything go on that is stopped, and sees no more. NULL is legal. */
void watch_close(struct watch *w);

#endif
