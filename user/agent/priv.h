/* SPDX-License-Identifier: Apache-2.0 */
/* One injection, for the files that do it. */
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

/* Everything of one injection. */
struct inject {
	const struct agt_inject_opts *o;
	struct agt_injected *out;
	const char *name;
	pid_t pid;
	struct tgt *t;
	struct agt_libc libc;
	int mapsfd;
	uint64_t present; /* base of an agent that was mapped already; 0: none */
	bool filtered;	  /* the thread has seccomp filters */
	int free_fd;	  /* the lowest descriptor that was free before the stop; -1: not known */
	struct inject_bpf *skel;
	/* Of a process that was launched. */
	struct ring_buffer *firsts;
	bool armed;   /* a call may stop the process at any time */
	bool stopped; /* a call has: it has to be let go */
	int link;
	struct buf stacks;
	struct remote remote;
	struct err err; /* of the tracer's thread */
	int code;
};

void inject_tell(const struct inject *x, enum agt_step step);
int inject_ended(const struct inject *x, struct err *e); /* -ESRCH */

/*
 * stop.c: which thread is stopped, and where. A stop_load() that succeeded has the probe at the function's entry.
 * stop_wait_caller, stop_wait_first: a thread that calls, of a process that runs or was launched; 0: none did.
 */
int stop_load(struct inject *x, struct err *e);
uint64_t stop_limit_ns(const struct inject *x); /* of a first call */
pid_t stop_wait_caller(struct inject *x);
int stop_cancelled(const struct inject *x, struct err *e); /* -ECANCELED */
/* Of a launched process: the next call of any thread stops it; it goes on; no call stops it any more, and it goes on.
 */
int stop_arm_any(struct inject *x, struct err *e);
void stop_go_on(struct inject *x);
void stop_disarm_any(struct inject *x);
pid_t stop_wait_first(struct inject *x);
/* In the tracer's thread, which has seized the thread. 0: that is stopped for it; -EAGAIN: it is not. */
int stop_thread(struct inject *x, struct err *e);
/* After remote_begin(): whether it stands where the agent may be loaded. */
bool stop_is_right(struct inject *x);
/* Calls that went on without the agent: `own` at which the thread was stopped, and those of other threads since then.
 */
void stop_add_missed(struct inject *x, unsigned own);

#endif
