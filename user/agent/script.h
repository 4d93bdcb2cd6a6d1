/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the agent by a script that the interpreter of the process executes (PEP 768: CPython 3.14). The main thread
 * executes it at a point where it may also run a signal handler, and no thread is stopped from outside. This is for
 * a process in which no thread can be stopped at an operator. Its weakness: an exception that a signal handler
 * raises before the script's first instruction is lost.
 */
#ifndef AGENT_SCRIPT_H
#define AGENT_SCRIPT_H

#include <stddef.h>
#include <stdint.h>

#include "agent/inject.h"
#include "target/target.h"

#define AGT_SCRIPT_MS 2000 /* time limit for the interpreter to begin */

struct agt_script_opts {
	struct tgt *t;
	const void *image; /* the shared object with its configuration */
	size_t image_bytes;
	uint64_t start; /* address of the start function of a mapped agent; 0: not mapped */
	uint64_t arg;	/* its argument */
};

/* Checks that the interpreter of a process accepts such requests, without touching it. Returns 0 or -errno. */
int agt_script_usable(struct tgt *t, struct err *e);

/*
 * Returns 0 when the start function has returned, with pause_ns and route set in out. -EINPROGRESS: the interpreter
 * has begun and not ended, so the agent must not be loaded in another way. After any other error the script will
 * not be executed any more. *helper is a child process that removes the script's file, and withdraws the request if
 * mxbpf is killed; pass it to agt_script_end(). 0: there is no helper.
 */
int agt_script(const struct agt_script_opts *o, struct agt_injected *out, pid_t *helper, struct err *e);
/* Waits until the file is removed, a fraction of a second. */
void agt_script_end(pid_t *helper);

#endif
