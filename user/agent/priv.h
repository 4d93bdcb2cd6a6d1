/* SPDX-License-Identifier: Apache-2.0 */
/* Internal interface between the files that do an injection. */
#ifndef AGENT_PRIV_H
#define AGENT_PRIV_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "agent/inject.h"
#include "agent/libc.h"
#include "agent/remote.h"
#include "base/buf.h"
#include "inject.skel.h"
#include "target/target.h"

#define MS 1000000ull

/* State of one injection. */
struct inject {
	const struct agt_inject_opts *o;
	struct agt_injected *out;
	const char *name;
	pid_t pid;
	struct tgt *t;
	struct agt_libc libc;
	int mapsfd;
	uint64_t present;	     /* address of an agent that was mapped before; 0: none */
	struct agt_filters *filters; /* NULL: no thread that was tried has seccomp filters */
	int free_fd;		     /* lowest free file descriptor before the stop; -1: unknown */
	struct inject_bpf *skel;
	/* For a launched process. */
	struct ring_buffer *firsts;
	bool armed;   /* a call may stop the process at any time */
	bool stopped; /* a call has stopped the process, which has to be continued */
	int link;
	struct buf stacks;
	struct remote remote;
	struct err err; /* error of the tracer's thread */
	pid_t tracer;	/* the id of that thread */
	int code;
};

void inject_tell(const struct inject *x, enum agt_step step);
int inject_ended(const struct inject *x, struct err *e); /* sets e; returns -ESRCH */

/*
 * stop.c selects the thread and stops it. After stop_load() has succeeded, the function's entry is probed.
 * stop_wait_caller() and stop_wait_first() return a thread that calls the function, in a running and in a launched
 * process; 0: no thread did.
 */
int stop_load(struct inject *x, struct err *e);
uint64_t stop_limit_ns(const struct inject *x); /* time limit of the first call */
pid_t stop_wait_caller(struct inject *x);
int stop_cancelled(const struct inject *x, struct err *e); /* sets e; returns -ECANCELED */
/*
 * For a launched process. stop_arm_any(): the next call of any thread stops the process. stop_go_on(): the process
 * continues. stop_disarm_any(): calls no longer stop the process, and it continues.
 */
int stop_arm_any(struct inject *x, struct err *e);
void stop_go_on(struct inject *x);
void stop_disarm_any(struct inject *x);
pid_t stop_wait_first(struct inject *x);
/* Runs in the tracer's thread, which has seized the target thread. Returns 0 if that is stopped, -EAGAIN if not. */
int stop_thread(struct inject *x, struct err *e);
/* Returns true if the thread is stopped where the agent can be loaded. Call it after remote_begin(). */
bool stop_is_right(struct inject *x);
/* Adds calls that the agent missed: `own` calls of stopped threads, and those of other threads since then. */
void stop_add_missed(struct inject *x, unsigned own);

#endif
