/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads a shared object into a running process. This happens at the entry of a function that the threads of the
 * process call, where a thread holds no lock of the allocator or of the loader. One thread is stopped, for about a
 * millisecond. Other threads are stopped only if mxbpf has launched the process.
 */
#ifndef AGENT_INJECT_H
#define AGENT_INJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "mxbpf_agent.h"

#define AGT_NAME	  MXBPF_AGENT_FILE
#define AGT_FIRST_CALL_MS 2000

/* Steps of an injection, in order. If mxbpf is killed after any of them, the target is unharmed. */
enum agt_step {
	AGT_STEP_SEIZED, /* a thread is traced, and runs */
	AGT_STEP_ARMED,	 /* the thread's next call will stop it */
	AGT_STEP_STOPPED,
	AGT_STEP_FRAMED,  /* a signal frame is on its stack */
	AGT_STEP_MEMFD,	  /* the thread has created the file in memory */
	AGT_STEP_WRITTEN, /* the file holds the shared object */
	AGT_STEP_LOADED,  /* dlopen() has returned */
	AGT_STEP_STARTED, /* the agent's start function has returned */
	AGT_STEP_LET_GO,
};

/* A thread that sleeps in a system call, found by agt_find_waiting(). */
struct agt_wait {
	pid_t tid; /* 0: none */
	int32_t syscall;
	uint64_t sp, pc; /* user registers of the thread */
	uint64_t args[6];
};

/* Another shared object, which is loaded after the agent has started, in the same stop. */
struct agt_beside {
	const void *image;
	size_t image_bytes;
	const char *name;     /* of its mapping. If it is mapped already, it is not loaded again. */
	uint64_t call_va;     /* the address in it of void call(uint64_t arg), from agt_start_va() */
	const uint64_t *args; /* it is called once for each of them */
	size_t nargs;
};

struct agt_inject_opts {
	pid_t pid;
	/* File of the function at whose entry a thread is stopped; opens the inode that the process maps. */
	const char *path;
	uint64_t off; /* offset of the function in the file */
	/* The shared object, and the address in it of void start(uint64_t arg), from agt_start_va(). */
	const void *image;
	size_t image_bytes;
	uint64_t start_va;
	uint64_t arg;
	bool reuse;	  /* if an agent is mapped, call its start function instead of returning -EEXIST */
	const char *name; /* name of the mapping; NULL: AGT_NAME */
	const struct agt_beside *beside; /* NULL: none. The agent works without it, see agt_injected.beside. */
	uint32_t first_call_ms;		 /* time limit for the first call of the function; 0: AGT_FIRST_CALL_MS */
	/* For an idle process: this thread is interrupted in its system call, and restarts the call afterwards. */
	struct agt_wait wait;
	/*
	 * mxbpf has launched the process and may stop it. The first thread that calls the function is stopped at
	 * that call, however late it comes, and the whole process with it. The guard of attach/watch.h knows the
	 * process. The other threads then go on, because one of them may hold a lock that dlopen() takes. Their
	 * calls are counted.
	 */
	bool launched;
	bool patient;  /* no time limit: wait for a call until cancel_fd; implied by `launched` */
	int cancel_fd; /* with `patient` or `launched`: the wait ends when this is readable */
	/*
	 * Called when the agent has started and the thread is still stopped at the function's entry. Its result
	 * becomes that of the injection. It runs in another thread than agt_inject(). May be NULL.
	 */
	int (*on_started)(void *ctx, struct err *e);
	/* Called after each step, in that other thread. May be NULL. */
	void (*on_step)(void *ctx, enum agt_step step);
	void *ctx;
};

struct agt_injected {
	uint64_t base;	     /* address of the agent in the process; set with -EEXIST too */
	pid_t tid;	     /* thread that loaded the agent */
	uint64_t missed;     /* launched: calls that the agent missed, from the first one on; atomic */
	uint64_t pause_ns;   /* total time for which the thread was stopped, from its call on */
	uint64_t longest_ns; /* longest single stop */
	uint32_t stops;
	int beside;	   /* 0, or -errno: why it was not loaded */
	const char *route; /* how the agent was loaded; static text */
};

/*
 * Returns 0; -EEXIST: an agent is mapped already, at out->base; -ETIME: no thread called the function; -ESRCH: the
 * process ended. On an error, e says what failed and why. Until this returns, no other thread of the caller may
 * wait for the process with waitpid().
 */
int agt_inject(const struct agt_inject_opts *o, struct agt_injected *out, struct err *e);

/*
 * Does the work of agt_inject() in two parts. agt_inject_arm() does all that is possible before a thread calls the
 * function. o and out are borrowed until agt_inject_free(), which is needed after an error too. agt_inject_run()
 * does the rest, if need be in another thread. A launched process that waits for mxbpf can go on between the two.
 * -ECANCELED: the wait was cancelled, or the process ended without a call.
 */
struct inject;
int agt_inject_arm(const struct agt_inject_opts *o, struct agt_injected *out, struct inject **x, struct err *e);
int agt_inject_run(struct inject *x, struct err *e);
void agt_inject_free(struct inject *x); /* NULL is allowed */
/* Calls of the function by any thread since agt_inject_arm(). Any thread may call this. */
uint64_t agt_inject_calls(const struct inject *x);

/* Finds the address of an exported function, relative to the start of the shared object. Returns 0 or -errno. */
int agt_start_va(const void *image, size_t bytes, const char *name, uint64_t *va, struct err *e);

#endif
