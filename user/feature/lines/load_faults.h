/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which lines of a program make its memory grow: samples of page faults with their Python stacks, of which those count
 * that touched a page which is still there later, and which nobody touched anew.
 */
#ifndef FEATURE_LINES_LOAD_FAULTS_H
#define FEATURE_LINES_LOAD_FAULTS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "python/python.h"

struct session;
struct touches;

/* NULL: the kernel does not allow it, or there is no memory. layout: of the processes that will be watched. */
struct touches *touches_new(struct session *ses, const struct mxbpf_python *layout);
/*
 * Watches a thread. py: the interpreter of its process, which must live until touches_forget(). forked: the process
 * shares pages by fork().
 */
void touches_watch(struct touches *t, pid_t tgid, pid_t tid, struct py *py, bool forked);
void touches_tidy(struct touches *t); /* forgets threads that have ended */
void touches_forget(struct touches *t, pid_t tgid);
/* Takes new samples, and appends a struct mxbpf_touched to recs for each that counts. last: the session ends. */
void touches_look(struct touches *t, bool last, struct buf *recs);
void touches_free(struct touches *t); /* NULL is legal */

#endif
