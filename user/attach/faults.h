/* SPDX-License-Identifier: Apache-2.0 */
/* Samples page faults of threads that run Python, with their stacks. */
#ifndef ATTACH_FAULTS_H
#define ATTACH_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "mxbpf_faults.h"

struct faults;

#define FAULTS_THREADS_MAX 96 /* each has two descriptors */

/* layout: of the interpreters of all processes that will be watched. 0 or -errno. */
int faults_open(const struct mxbpf_python *layout, struct faults **out);
/* Watches a thread, of FAULTS_THREADS_MAX at most. One that is watched already stays. */
void faults_watch(struct faults *f, pid_t tgid, pid_t tid);
void faults_tidy(struct faults *f); /* forgets threads that have ended */
bool faults_is_thread(pid_t tgid, pid_t tid);
void faults_forget(struct faults *f, pid_t tgid); /* all threads of a process */
/* Calls fn for each sample since the last call. The frames of s->stack that are in use are there, no more. */
typedef void (*faults_fn)(void *ctx, const struct mxbpf_fault *s);
void faults_take(struct faults *f, faults_fn fn, void *ctx);
void faults_close(struct faults *f); /* NULL is legal */

#endif
