/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads a shared object into a running process, at the entry of a function that its threads call: there no lock of the
 * allocator or of the loader is held. One thread is stopped, for about a millisecond; no other thread is.
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
	/* NULL: none. It is called in another thread than that of agt_inject(). */
	void (*on_step)(void *ctx, enum agt_step step);
	void *ctx;
};

struct agt_injected {
	uint64_t base;	     /* of the agent in the process; set also with -EEXIST */
	pid_t tid;	     /* of the thread that loaded it */
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

/* The address of a function that a shared object exports, from its first byte. 0 or -errno. */
int agt_start_va(const void *image, size_t bytes, const char *name, uint64_t *va, struct err *e);

#endif
