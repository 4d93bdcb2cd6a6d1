/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the agent by a script that the process's own interpreter executes (PEP 768: CPython 3.14). The main thread
 * executes it where it may also run a signal handler; no thread is stopped from outside. This is for a process in which
 * no thread can be stopped at an operator: the interpreter loses what the handler of a signal raises before the
 * script's first instruction.
 */
#ifndef AGENT_SCRIPT_H
#define AGENT_SCRIPT_H

#include <stddef.h>
#include <stdint.h>

#include "agent/inject.h"
#include "target/target.h"

#define AGT_SCRIPT_MS 2000 /* in which the interpreter has to begin */

struct agt_script_opts {
	struct tgt *t;
	const void *image; /* the shared object, with its configuration */
	size_t image_bytes;
	uint64_t start; /* address of the start function of an agent that is mapped; 0: none is */
};

/* Whether the interpreter of a process takes such requests. Nothing is touched. 0 or -errno. */
int agt_script_usable(struct tgt *t, struct err *e);

/*
 * 0: the start function has returned; out has pause_ns and route. -EINPROGRESS: the interpreter has begun and not
 * ended; no other way may be taken. Any other error: nothing of it will be executed any more, and another way may be
 * taken. *helper: a child process that removes the script's file, and takes back the request if this process is killed;
 * for agt_script_end(). 0: there is none.
 */
int agt_script(const struct agt_script_opts *o, struct agt_injected *out, pid_t *helper, struct err *e);
/* Waits until the file is removed, for a fraction of a second. */
void agt_script_end(pid_t *helper);

#endif
