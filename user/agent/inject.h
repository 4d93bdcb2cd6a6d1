/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads a shared object into a running process, at the entry of a function that its threads call: there no lock of the
 * allocator or of the loader is held. One thread is stopped, for about a millisecond; no other thread is, unless mxbpf
 * has launched the process.
 */
#ifndef AGENT_INJECT_H
#define AGENT_INJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define AGT_NAME	  "mxbpf-agent" /* the mapping's name in /proc/PID/maps is /memfd:mxbpf-agent */
#define AGT_FIRST_CALL_MS 2000

/* The steps of an injection, in order; after each of them the target is unharmed if mxbpf is killed. */
enum agt_step {
	AGT_STEP_SEIZED, /* one thread is traced, and runs */
	AGT_STEP_ARMED,	 /* its next call stops it */
	AGT_STEP_STOPPED,
	AGT_STEP_FRAMED,  /* the signal frame is on its stack */
	AGT_STEP_MEMFD,	  /* it has created the file in memory */
	AGT_STEP_WRITTEN, /* that holds the agent */
	AGT_STEP_LOADED,  /* dlopen() has returned */
	AGT_STEP_STARTED, /* the agent's function has returned */
	AGT_STEP_LET_GO,
};

/* A thread that sleeps in a system call, as agt_find_waiting() has seen it. */
struct agt_wait {
	pid_t tid; /* 0: none */
	int32_t syscall;
	uint64_t sp, pc; /* of its program */
};

struct agt_inject_opts {
	pid_t pid;
	/* The function at whose entry a thread is stopped. path opens the inode that the process maps. */
	const char *path;
	uint64_t off; /* in the file */
	/* The shared object, and the address of its function void start(uint64_t arg), from agt_start_va(). */
	const void *image;
	size_t image_bytes;
	uint64_t start_va;
	uint64_t arg;
	bool reuse;		/* call start of an agent that is mapped already, instead of -EEXIST */
	const char *name;	/* of the mapping; NULL: AGT_NAME */
	uint32_t first_call_ms; /* in which any thread has to call the function; 0: AGT_FIRST_CALL_MS */
	/* Of an idle process: this thread is interrupted in its system call, which begins anew afterwards. */
	struct agt_wait wait;
	/*
	 * mxbpf has launched the process and may stop it: whichever thread calls first is stopped at that very call,
	 * however late it comes, and so is the process for a moment. The guard of attach/watch.h knows the process.
	 * Then the other threads go on, as one may hold a lock that dlopen() takes; their calls are counted.
	 */
	bool launched;
	bool patient;  /* waits for a call not so long, but until cancel_fd says so; `launched` does so, too */
	int cancel_fd; /* for these: when it polls readable, nobody waits for the call any more */
	/* Called while the thread still stands at its entry and the agent has started; its result is that of the
	 * injection. NULL: none. It is called in another thread than that of agt_inject(). */
	int (*on_started)(void *ctx, struct err *e);
	/* NULL: none. Called in that other thread, too. */
	void (*on_step)(void *ctx, enum agt_step step);
	void *ctx;
};

struct agt_injected {
	uint64_t base;	     /* of the agent in the process; set also with -EEXIST */
	pid_t tid;	     /* of the thread that loaded it */
	uint64_t missed;     /* launched: calls from the first one on that went on without the agent; atomic */
	uint64_t pause_ns;   /* from the thread's call of the function until it was let go, all stops together */
	uint64_t longest_ns; /* of one stop */
	uint32_t stops;
	const char *route; /* how it came in; never freed */
};

/*
 * 0; -EEXIST: an agent is mapped already, out->base says where; -ETIME: nobody called the function; -ESRCH: the process
 * ended. e says which and why in a sentence. Until this returns, no other thread of the caller may wait for the process
 * with waitpid().
 */
int agt_inject(const struct agt_inject_opts *o, struct agt_injected *out, struct err *e);

/*
 * The same in two parts. agt_inject_arm: all that can be done before a thread calls; o and out are borrowed until
 * agt_inject_free(), also after an error. agt_inject_run: the rest; it may be in another thread. A launched process
 * that waits for mxbpf can go on between the two. -ECANCELED: it was told to wait no longer, or the process has ended
 * without a call.
 */
struct inject;
int agt_inject_arm(const struct agt_inject_opts *o, struct agt_injected *out, struct inject **x, struct err *e);
int agt_inject_run(struct inject *x, struct err *e);
void agt_inject_free(struct inject *x); /* NULL is legal */

/* The address of a function that a shared object exports, from its first byte. 0 or -errno. */
int agt_start_va(const void *image, size_t bytes, const char *name, uint64_t *va, struct err *e);

#endif
