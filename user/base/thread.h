/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>

/*
 * Starts a thread that handles no signal of this process: the kernel hands a signal that the main thread blocks to any
 * thread that does not. 0 or -errno.
 */
int thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg);

#endif
