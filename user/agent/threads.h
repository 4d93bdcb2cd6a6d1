/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread ids of a process in its own pid namespace and in that of mxbpf. The agent knows a thread by its id inside
 * the process. In a container this differs from the id that mxbpf and all other records use. Any thread may call
 * these functions.
 */
#ifndef AGENT_THREADS_H
#define AGENT_THREADS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/hash.h"

struct threads {
	pid_t pid;
	bool other; /* the ids differ; if not, the functions below do nothing */
	pthread_mutex_t lock;
	struct hash ours;  /* guarded by the lock: maps the process's id to ours */
	struct hash known; /* guarded by the lock: our ids of threads that were learned */
};

void threads_init(struct threads *t, pid_t pid);
void threads_fini(struct threads *t);
/* Reads the ids of all present threads. */
void threads_read(struct threads *t);
/*
 * Asks the kernel for the process's own id of a thread that mxbpf knows as `ours`; 0: unknown. told: the id in a record
 * of the process, which is used only if the thread has ended.
 */
void threads_learn_ours(struct threads *t, uint32_t ours, uint32_t told);
/* Returns our id of a thread, or the process's own id if the thread ended before we saw it. */
uint32_t threads_ours(struct threads *t, uint32_t its);

#endif
