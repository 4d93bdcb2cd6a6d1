/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of a process's threads. The agent knows a thread by the number that the process itself has for it. In a pid
 * namespace of its own, as in a container, this side has another one, which all other records bear. Any thread may call
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
	bool other; /* the numbers differ; else the functions below have nothing to do */
	pthread_mutex_t lock;
	struct hash ours; /* with the lock: its number -> ours */
};

/* The number that a thread has in its own namespace; 0: it has ended. *levels: namespaces from here to that one. */
uint32_t threads_its_number(pid_t pid, pid_t tid, unsigned *levels);

void threads_init(struct threads *t, pid_t pid);
void threads_fini(struct threads *t);
/* Reads the numbers of all threads that are there. */
void threads_read(struct threads *t);
/* A thread's numbers, from elsewhere. */
void threads_learn(struct threads *t, uint32_t its, uint32_t ours);
/* Our number of a thread; its own if ours is not known: the thread had ended before it was seen. */
uint32_t threads_ours(struct threads *t, uint32_t its);

#endif
