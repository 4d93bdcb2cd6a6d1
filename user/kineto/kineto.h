/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks Kineto, PyTorch's own profiler, for a trace of a running process. A process that was started with
 * KINETO_USE_DAEMON asks a daemon named dynolog every 5 s whether somebody wants a trace; for the time of one request
 * mxbpf answers in its place. No code enters the process, and no probe is set.
 */
#ifndef KINETO_KINETO_H
#define KINETO_KINETO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/out.h"

/* What Kineto can record besides operators: bit i of kin_opts.with. Both return NULL behind the last. */
const char *kin_with_word(unsigned i);
const char *kin_with_help(unsigned i);

struct kin_opts {
	pid_t pid;
	bool descendants; /* its descendants, too */
	uint64_t duration_ns;
	unsigned steps; /* of the optimizer; 0: duration_ns counts. Without an optimizer, it counts, too */
	unsigned with;
	int signals; /* a signalfd, which does not block; any signal but USR1, USR2 ends the wait */
	void (*tell)(void *ctx, const char *text); /* progress, and processes that are left out; safe to print */
	void *ctx;
};

struct kineto;

/*
 * Finds the processes that ask, and becomes the one that answers them. ERR_TARGET if there is none and why,
 * ERR_RUNTIME if another process answers, ERR_PRIVILEGE with what is missing. No process notices anything yet.
 */
int kin_open(const struct kin_opts *o, struct kineto **out, struct err *e);
/* Asks, and waits for the traces. 0 if there is one at least; -EINTR after a signal, else -errno, with e set. */
int kin_run(struct kineto *k, struct err *e);
/* Returns the process of the i-th trace, of all that are asked for; 0 behind the last. */
pid_t kin_pid(const struct kineto *k, unsigned i);
/* Returns the size of the i-th trace; 0: there is none. */
uint64_t kin_bytes(const struct kineto *k, unsigned i);
/* Copies the i-th trace, which is JSON. Only its size was checked: it is a file of the process. 0 or -errno. */
int kin_copy(const struct kineto *k, unsigned i, struct out *out, struct err *e);
/* Deletes what the request has made. If Kineto still traces, it finds no place to write to. NULL is legal. */
void kin_close(struct kineto *k);

#endif
