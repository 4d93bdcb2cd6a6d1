/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

/*
 * Starts a thread that blocks all signals. Otherwise the kernel would deliver signals that the main thread blocks to
 * this thread. Returns 0 or -errno.
 */
int thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg);

#endif
