// SPDX-License-Identifier: Apache-2.0
/* Selects the thread to stop, and stops it. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/priv.h"
#include "agent/restart.h"
#include "attach/attach.h"
#include "attach/backend.h"
#include "base/clock.h"

#define ENTRY_BYTES_MAX 16     /* size of the first instruction, after which the signal stops the thread */
#define POLL_NS		200000 /* interval of checks until a thread has called */
#define PATIENT_POLL_NS 5000000
#define TWICE_MS	20   /* time for a second call of a thread */
#define FIRST_STOP_MS	2000 /* time limit from the stop of the process to that of the thread */

/* ---- the probe */

int stop_load(struct inject *x, struct err *e)
{
	const struct att_backend *backend = att_pick(NULL, e);
	uint64_t cookie = 0;
	int err;

	if (!backend)
		return e ? e->code : -ENOTSUP;
	x->skel = inject_bpf__open();
	if (!x->skel)
		return backend_load_failed(-errno, e);
	x->skel->rodata->cfg_tgid = (__u32)x->pid;
	backend_namespace(&x->skel->rodata->cfg_pidns_dev, &x->skel->rodata->cfg_pidns_ino);
	bpf_program__set_expected_attach_type(x->skel->progs.on_call, (enum bpf_attach_type)backend->attach_type);
	err = inject_bpf__load(x->skel);
	if (err)
		return backend_load_failed(err, e);
	err = backend->attach(bpf_program__fd(x->skel->progs.on_call), x->o->path, &x->o->off, &cookie, 1, x->pid,
			      &x->link);
	if (err > 0)
		return 0;
	x->link = -1;
	return err_set(e, ERR_RUNTIME, err ? err : -EINVAL,
		       "cannot load the agent: cannot probe the entry of an operator in process %d: %s", x->pid,
		       strerror(err ? -err : EINVAL));
}

static int on_first(void *ctx, void *data, size_t bytes)
{
	return 0;
}

int stop_arm_any(struct inject *x, struct err *e)
{
	if (!x->firsts)
		x->firsts = ring_buffer__new(bpf_map__fd(x->skel->maps.firsts), on_first, NULL, NULL);
	if (!x->firsts)
		return err_set(e, ERR_RUNTIME, -errno, "cannot wait for the first call: %s", strerror(errno));
	x->skel->bss->hit_tid = 0;
	x->armed = true;
	__atomic_store_n(&x->skel->bss->armed_any, 1, __ATOMIC_SEQ_CST);
	return 0;
}

void stop_go_on(struct inject *x)
{
	if (x->stopped)
		kill(x->pid, SIGCONT);
	x->stopped = false;
}

/* Makes calls stop the process no longer, and continues the process if a call has stopped it. */
void stop_disarm_any(struct inject *x)
{
	const struct timespec pause = {.tv_nsec = POLL_NS};
	__u32 armed = 1;

	if (x->armed && !__atomic_compare_exchange_n(&x->skel->bss->armed_any, &armed, 0, false, __ATOMIC_SEQ_CST,
						     __ATOMIC_SEQ_CST)) {
		while (!x->skel->bss->hit_tid) /* the BPF program is about to store the thread */
			nanosleep(&pause, NULL);
		x->stopped = true;
	}
	x->armed = false;
	stop_go_on(x);
}

int stop_cancelled(const struct inject *x, struct err *e)
{
	return err_set(e, ERR_TARGET, -ECANCELED, "cannot load the agent: process %d called no operator", x->pid);
}

/* Waits until a thread of a launched process calls the function, which stops the process. Returns it, or 0. */
pid_t stop_wait_first(struct inject *x)
{
	struct pollfd fds[] = {{.fd = ring_buffer__epoll_fd(x->firsts), .events = POLLIN},
			       {.fd = x->o->cancel_fd, .events = POLLIN},
			       {.fd = tgt_pidfd(x->t), .events = POLLIN}};

	while (!x->skel->bss->hit_tid && !fds[1].revents && !fds[2].revents)
		poll(fds, 3, -1);
	ring_buffer__consume(x->firsts);
	if (fds[1].revents || fds[2].revents) {
		stop_disarm_any(x);
		return 0;
	}
	x->armed = false;
	x->stopped = true;
	return (pid_t)x->skel->bss->hit_tid;
}

/*
 * Waits for a thread that calls the function. For a moment it prefers one that calls twice in a row, because a thread
 * that calls once may end. Returns 0 if no thread called.
 */
pid_t stop_wait_caller(struct inject *x)
{
	const struct timespec pause = {.tv_nsec = x->o->patient ? PATIENT_POLL_NS : POLL_NS};
	uint64_t deadline_ns = clock_ns(CLOCK_MONOTONIC) + stop_limit_ns(x), once_ns = 0, now;
	struct pollfd cancel = {.fd = x->o->cancel_fd, .events = POLLIN};
	pid_t tid;

	x->skel->bss->last_tid = x->skel->bss->caller_tid = 0;
	do {
		tid = (pid_t)x->skel->bss->caller_tid;
		if (tid || tgt_gone(x->t))
			return tid;
		if (x->o->patient && poll(&cancel, 1, 0) > 0)
			return 0;
		now = clock_ns(CLOCK_MONOTONIC);
		if (!once_ns && x->skel->bss->last_tid)
			once_ns = now;
		if (!x->o->patient && (now > deadline_ns || (once_ns && now > once_ns + TWICE_MS * MS)))
			return (pid_t)x->skel->bss->last_tid;
		nanosleep(&pause, NULL);
	} while (true);
}

uint64_t agt_inject_calls(const struct inject *x)
{
	return __atomic_load_n(&x->skel->bss->calls, __ATOMIC_RELAXED);
}

/* Adds calls made without the agent: `own` calls of stopped threads, and those of other threads since then. */
void stop_add_missed(struct inject *x, unsigned own)
{
	uint64_t others = __atomic_exchange_n(&x->skel->bss->others, 0, __ATOMIC_RELAXED);

	__atomic_fetch_add(&x->out->missed, own + others, __ATOMIC_RELAXED);
}

/*
 * Checks that the thread is stopped where the agent can be loaded: after the first instruction of the function, or
 * in the system call in which it waited. That call is restarted when the thread is let go, as the kernel itself
 * would do.
 */
bool stop_is_right(struct inject *x)
{
	const struct agt_wait *w = &x->o->wait;
	struct remote *r = &x->remote;
	const int32_t nr = (int32_t)r->regs.orig_rax;

	if (w->tid && r->regs.rsp == w->sp && r->regs.rip == w->pc)
		return remote_begin_anew(r, w->syscall);
	/* It is in another call by now. The kernel restarts most calls itself if no handler has run. */
	if (w->tid && restart_may_fail(nr))
		remote_begin_anew(r, nr);
	if (w->tid)
		return false;
	return r->regs.rip > x->skel->bss->hit_ip && r->regs.rip <= x->skel->bss->hit_ip + ENTRY_BYTES_MAX;
}

/* Disarms the probe. Returns true if the signal has been sent. */
static bool was_hit(struct inject *x)
{
	__u32 armed = (__u32)x->remote.tid;

	return !__atomic_compare_exchange_n(&x->skel->bss->armed_tid, &armed, 0, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
}

/* Returns 0 if the thread is stopped, or -EAGAIN if it did not call again. */
static int stop_at_call(struct inject *x, uint64_t limit_ns, struct err *e)
{
	struct remote *r = &x->remote;
	int err;

	r->deadline_ns = clock_ns(CLOCK_MONOTONIC) + limit_ns;
	x->skel->bss->hit_ns = 0;
	x->skel->bss->armed_signal = (__u32)r->signal;
	__atomic_store_n(&x->skel->bss->armed_tid, (__u32)r->tid, __ATOMIC_SEQ_CST);
	inject_tell(x, AGT_STEP_ARMED);
	err = remote_wait_hit(r);
	if (err == -ETIMEDOUT && was_hit(x)) {
		r->deadline_ns = clock_ns(CLOCK_MONOTONIC) + MS * 100;
		err = remote_wait_hit(r);
	}
	was_hit(x); /* the probe is never left armed */
	if (!err)
		return 0;
	if (x->skel->bss->hit_ns && x->skel->bss->hit_result)
		return err_set(e, ERR_RUNTIME, (int)x->skel->bss->hit_result,
			       "cannot stop thread %d: the kernel did not send the signal: %s", r->tid,
			       strerror((int)-x->skel->bss->hit_result));
	return -EAGAIN;
}

/*
 * The whole process is stopped, with the thread at its call. The thread gets another signal before the process
 * continues. It takes the signal before it runs an instruction, and stops there for its tracer. Returns 0, or
 * -EAGAIN if it did not stop.
 */
static int stop_when_it_goes_on(struct inject *x)
{
	struct remote *r = &x->remote;
	int err = syscall(SYS_tgkill, x->pid, r->tid, r->signal) ? -EAGAIN : 0;

	r->own_signal = true;
	r->deadline_ns = clock_ns(CLOCK_MONOTONIC) + FIRST_STOP_MS * MS;
	inject_tell(x, AGT_STEP_ARMED);
	stop_go_on(x);
	return err || remote_wait_hit(r) ? -EAGAIN : 0;
}

uint64_t stop_limit_ns(const struct inject *x)
{
	return (x->o->first_call_ms ? x->o->first_call_ms : AGT_FIRST_CALL_MS) * MS;
}

/*
 * Stops a sleeping thread. A signal wakes it, and it takes the signal before it returns to its program. Returns 0,
 * or -EAGAIN if it did not stop.
 */
static int stop_where_it_waits(struct inject *x)
{
	const struct agt_wait *w = &x->o->wait;
	struct remote *r = &x->remote;
	struct tgt_doing now;

	/*
	 * Checked as late as possible: the thread may be in another call by now, which fails when a signal comes, or
	 * wait in the same one for another file.
	 */
	if (!restart_is_safe(x->pid, w->tid, w->syscall, w->args) || tgt_peek_doing(x->pid, w->tid, &now) ||
	    now.syscall != w->syscall || now.sp != w->sp || now.pc != w->pc ||
	    memcmp(now.args, w->args, sizeof(now.args)))
		return -EAGAIN;
	r->own_signal = true;
	r->deadline_ns = clock_ns(CLOCK_MONOTONIC) + FIRST_STOP_MS * MS;
	x->skel->bss->hit_ns = clock_ns(CLOCK_MONOTONIC);
	inject_tell(x, AGT_STEP_ARMED);
	return syscall(SYS_tgkill, x->pid, r->tid, r->signal) || remote_wait_hit(r) ? -EAGAIN : 0;
}

/* Returns 0 if the thread is stopped, -EAGAIN if not. */
int stop_thread(struct inject *x, struct err *e)
{
	if (x->o->wait.tid)
		return stop_where_it_waits(x);
	return x->o->launched ? stop_when_it_goes_on(x) : stop_at_call(x, stop_limit_ns(x), e);
}
