// SPDX-License-Identifier: Apache-2.0
#include "attach/apart.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK_BYTES 16384
#define READY_MS    1000 /* longest wait for processes to get ready to end */

/*
 * Starts a process that shares the memory. top: the end of its stack, which grows downward. Returns its id, or -1. It
 * sends no signal when it ends, so that nothing else waits for it by accident.
 */
static pid_t apart_start(int (*fn)(void *arg), char *top, int flags, void *arg)
{
	sigset_t all, before;
	pid_t pid;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = clone(fn, top, CLONE_VM | flags, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return pid;
}

static void await(pid_t pid)
{
	while (waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
		;
}

struct call {
	void (*fn)(void *ctx);
	void *ctx;
};

/*
 * Runs the call in a session of its own, outside of mxbpf's process group, which a shell or a terminal may kill or stop
 * as a whole.
 */
static int attach_apart_run(void *arg)
{
	const struct call *c = arg;

	syscall(SYS_setsid);
	c->fn(c->ctx);
	return 0;
}

void apart_run(void (*fn)(void *ctx), void *ctx)
{
	struct call c = {fn, ctx};
	char *stack = malloc(STACK_BYTES);
	const pid_t pid =
		stack ? apart_start(attach_apart_run, stack + STACK_BYTES, CLONE_FILES | CLONE_VFORK, &c) : -1;

	if (pid < 0)
		fn(ctx);
	else
		await(pid);
	free(stack);
}

/* ---- closing */

struct closing {
	const struct buf *fds;
	size_t n;	      /* number of processes; each has every n-th fd */
	int ready[2], end[2]; /* pipes */
};

/* A process that ends with some of the fds. */
struct last {
	const struct closing *all;
	size_t first;
	pid_t pid;
};

/*
 * Keeps some of the fds open until the others are ready, and then ends. The process has a descriptor table of its own,
 * but shares the variables of the thread that waits for it, including errno. So it makes only system calls that do not
 * fail.
 */
static int apart_hold(void *arg)
{
	const struct last *l = arg;
	const struct closing *c = l->all;
	char byte = 0;
	size_t i;

	syscall(SYS_close, c->end[1]);
	for (i = 0; i < buf_count(c->fds, int); i++)
		if (i % c->n != l->first)
			syscall(SYS_close, *buf_at(c->fds, int, i));
	syscall(SYS_write, c->ready[1], &byte, 1);
	syscall(SYS_read, c->end[0], &byte, 1); /* also returns when the parent is killed */
	return 0;
}

/* Waits until each process has closed the fds of the others. */
static void await_ready(const struct closing *c, size_t started)
{
	struct pollfd at = {.fd = c->ready[0], .events = POLLIN};
	char byte;

	while (started && poll(&at, 1, READY_MS) > 0 && read(at.fd, &byte, 1) == 1)
		started--;
}

static void close_here(const struct buf *fds)
{
	size_t i;

	for (i = 0; i < buf_count(fds, int); i++)
		close(*buf_at(fds, int, i));
}

static void close_by(struct closing *c, struct last *lasts, char *stacks)
{
	const char end = 0;
	size_t i, started = 0;

	for (i = 0; i < c->n; i++) {
		lasts[i] = (struct last){.all = c, .first = i};
		lasts[i].pid = apart_start(apart_hold, stacks + (i + 1) * STACK_BYTES, 0, &lasts[i]);
		started += lasts[i].pid > 0;
	}
	await_ready(c, started);
	close_here(c->fds);
	for (i = 0; i < started; i++)
		if (write(c->end[1], &end, 1) < 0)
			break; /* the end of the pipe tells the other processes */
	close(c->end[1]);
	for (i = 0; i < c->n; i++)
		if (lasts[i].pid > 0)
			await(lasts[i].pid);
}

void apart_close(const struct buf *fds, unsigned most)
{
	const size_t n = buf_count(fds, int);
	struct closing c = {.fds = fds, .n = n < most ? n : most};
	struct last *lasts = calloc(c.n + 1, sizeof(*lasts));
	char *stacks = malloc((c.n + 1) * STACK_BYTES);
	const bool ready = n && lasts && stacks && !pipe2(c.ready, O_CLOEXEC);
	const bool both = ready && !pipe2(c.end, O_CLOEXEC);

	if (both)
		close_by(&c, lasts, stacks);
	else
		close_here(fds);
	if (both)
		close(c.end[0]);
	if (ready) {
		close(c.ready[0]);
		close(c.ready[1]);
	}
	free(stacks);
	free(lasts);
}
