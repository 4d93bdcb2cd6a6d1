// SPDX-License-Identifier: Apache-2.0
#include "agent/inject.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/libc.h"
#include "agent/mapped.h"
#include "agent/memfd.h"
#include "agent/priv.h"
#include "agent/seccomp.h"
#include "attach/backend.h"
#include "base/clock.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x10 /* Linux 6.3 */
#endif
#define STACK_ROOM    (256u << 10) /* bytes; dlopen() of a small object takes less than 20 KB */
#define CALL_MS	      10000	   /* time limit for loading, once it has begun */
#define THREADS_TRIED 3		   /* attempts with one thread each; each may take the time limit of a first call */
#define POLL_NS	      200000	   /* interval of checks until a thread has called */
#define SIGNAL_TRIES  100	   /* a thread that starts or ends another one blocks all signals for a moment */
#define FREE_FD_MAX   4096

void inject_tell(const struct inject *x, enum agt_step step)
{
	if (x->o->on_step)
		x->o->on_step(x->o->ctx, step);
}

/* ---- checks before the process is touched */

int inject_ended(const struct inject *x, struct err *e)
{
	return err_set(e, ERR_TARGET, -ESRCH, "cannot load the agent: process %d has ended", x->pid);
}

static int refuse_status(const struct inject *x, const char *status, struct err *e)
{
	const char *tracer = tgt_status_field(status, "TracerPid"),
		   *features = tgt_status_field(status, "x86_Thread_features");

	if (tracer && atoi(tracer))
		return err_set(e, ERR_TARGET, -EBUSY,
			       "cannot load the agent: process %d is traced by process %d (a debugger, strace); end "
			       "the tracer "
			       "first",
			       x->pid, atoi(tracer));
	if (features && strstr(features, "shstk") && strstr(features, "shstk") < strchrnul(features, '\n'))
		return err_set(e, ERR_TARGET, -ENOTSUP,
			       "cannot load the agent: process %d uses a shadow stack, which is not supported", x->pid);
	return 0;
}

static int refuse_thread(const struct inject *x, pid_t tid, struct err *e)
{
	struct buf status = {0};
	int err = tgt_peek_status(x->pid, tid, &status) ? -ESRCH : refuse_status(x, status.data, e);

	buf_fini(&status);
	return err;
}

static int inject_refuse(struct inject *x, struct err *e)
{
	struct mapped_file agent = {.name = ""};
	struct tgt_stop stop;
	int err;

	snprintf(agent.name, sizeof(agent.name), "%s", x->name);
	err = refuse_thread(x, x->pid, e);
	if (err)
		return err == -ESRCH ? inject_ended(x, e) : err;
	if (!x->o->launched &&
	    tgt_peek_stop(x->pid, &stop)) /* a launched process is stopped because it waits for mxbpf */
		return err_set(
			e, ERR_TARGET, stop.tracer ? -EBUSY : -EAGAIN,
			stop.tracer ? "cannot load the agent: process %d is stopped by a debugger; detach it first"
			: !stop.stopped
				? "cannot load the agent: process %d is frozen by its control group; thaw that first"
				: "cannot load the agent: process %d is stopped (SIGSTOP, Ctrl-Z); continue it first",
			x->pid);
	err = mapped_find(x->mapsfd, &agent);
	if (err)
		return err_set(e, ERR_RUNTIME, err, "cannot read the mappings of process %d: %s", x->pid,
			       strerror(-err));
	if (agent.base && agent.exec)
		x->present = agent.base;
	x->out->base = x->present;
	if (x->present && !x->o->reuse)
		return err_set(e, ERR_TARGET, -EEXIST, "cannot load the agent: process %d already has one, at %#llx",
			       x->pid, (unsigned long long)x->present);
	return agt_libc_find(x->t, &x->libc, e);
}

static int inject_look(struct inject *x, struct err *e)
{
	char path[64];
	int err = tgt_open(x->o->pid, &x->t, e);

	if (err)
		return err;
	x->pid = tgt_pid(x->t);
	snprintf(path, sizeof(path), "/proc/%d/maps", x->pid);
	x->mapsfd = open(path, O_RDONLY | O_CLOEXEC);
	if (x->mapsfd < 0)
		return err_set(e, ERR_PRIVILEGE, -errno, "cannot read the mappings of process %d: %s", x->pid,
			       strerror(errno));
	return inject_refuse(x, e);
}

/* ---- in the tracer's thread */

/*
 * Chooses the signal that stops a thread: one that it ignores by default, does not block and has no handler for. If
 * mxbpf is killed before it takes the signal back, nothing happens. Returns 0 if there is none.
 */
static int choose_signal(const char *status)
{
	static const int candidates[] = {SIGURG, SIGWINCH, SIGCHLD, SIGCONT};
	const char *blocked = tgt_status_field(status, "SigBlk"), *caught = tgt_status_field(status, "SigCgt");
	unsigned long long not_these;
	unsigned i;

	if (!blocked || !caught)
		return 0;
	not_these = strtoull(blocked, NULL, 16) | strtoull(caught, NULL, 16);
	for (i = 0; i < sizeof(candidates) / sizeof(candidates[0]); i++)
		if (!(not_these >> (candidates[i] - 1) & 1))
			return candidates[i];
	return 0;
}

static int read_status(struct inject *x)
{
	struct buf status = {0};
	int err = tgt_peek_status(x->pid, x->remote.tid, &status);

	if (!err)
		x->remote.signal = choose_signal(status.data);
	buf_fini(&status);
	return err;
}

static int seize(struct inject *x, struct err *e)
{
	const struct timespec pause = {.tv_nsec = POLL_NS};
	struct remote *r = &x->remote;
	unsigned tries;
	int err;

	err = refuse_thread(x, r->tid, e);
	if (err)
		return err == -ESRCH ? -EAGAIN : err;
	for (r->signal = 0, tries = 0; !r->signal && tries < SIGNAL_TRIES; tries++) {
		if (tries)
			nanosleep(&pause, NULL);
		if (read_status(x))
			return -EAGAIN;
	}
	if (!r->signal)
		return err_set(
			e, ERR_TARGET, -EBUSY,
			"cannot stop thread %d of process %d: it handles or blocks every signal that mxbpf can use",
			r->tid, x->pid);
	if (!ptrace(PTRACE_SEIZE, r->tid, NULL, (void *)(intptr_t)PTRACE_O_TRACESYSGOOD))
		return 0;
	if (errno == ESRCH)
		return -EAGAIN; /* the thread has ended; another one may call */
	return err_set(
		e, ERR_PRIVILEGE, -errno,
		"cannot trace thread %d of process %d (%s): another tracer is attached, or Yama or a security module "
		"forbids it",
		r->tid, x->pid, strerror(errno));
}

/* Returns the lowest address to which the stack of the first thread may grow. */
static uint64_t main_stack_floor(const struct inject *x, const struct mapped_range *m)
{
	struct rlimit limit;

	if (prlimit(x->pid, RLIMIT_STACK, NULL, &limit) || limit.rlim_cur > m->end)
		return m->start;
	return m->end - limit.rlim_cur < m->start ? m->end - limit.rlim_cur : m->start;
}

/*
 * Returns true if the thread runs on its own stack and has room on it. The top of its own stack holds the address
 * in fs. Other memory is the stack of a coroutine or a signal handler, and may be small.
 */
static bool stack_has_room(const struct inject *x)
{
	const struct user_regs_struct *u = &x->remote.regs;
	const struct mapped_range *m = (const struct mapped_range *)x->stacks.data;
	const struct mapped_range *end = m + buf_count(&x->stacks, struct mapped_range);
	uint64_t floor;

	while (m < end && (u->rsp < m->start || u->rsp >= m->end))
		m++;
	if (m == end || (!m->main && (u->fs_base <= u->rsp || u->fs_base >= m->end)))
		return false;
	floor = m->main ? main_stack_floor(x, m) : m->start;
	return u->rsp - floor >= STACK_ROOM;
}

/* Returns the descriptor that the process's next file gets, unless another thread opens one first. -1: unknown. */
static int lowest_free_fd(pid_t pid)
{
	bool used[FREE_FD_MAX] = {false};
	char path[64];
	struct dirent *entry;
	int fd;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	if (!dir)
		return -1;
	while ((entry = readdir(dir))) {
		fd = atoi(entry->d_name);
		if (entry->d_name[0] != '.' && fd < FREE_FD_MAX)
			used[fd] = true;
	}
	closedir(dir);
	for (fd = 0; fd < FREE_FD_MAX; fd++)
		if (!used[fd])
			return fd;
	return -1;
}

static bool is_memfd(const struct inject *x, int fd, const char *of)
{
	char path[64], want[128], name[128];
	ssize_t n;

	snprintf(want, sizeof(want), "/memfd:%s (deleted)", of);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", x->pid, fd);
	n = readlink(path, name, sizeof(name) - 1);
	name[n > 0 ? n : 0] = '\0';
	return !strcmp(name, want);
}

/*
 * Returns the descriptor. Reading it from the system call's result takes two more stops, in each of which the
 * thread waits for a CPU. So the expected descriptor is checked first.
 */
static int create_memfd(struct inject *x, const char *name, struct err *e)
{
	const uint64_t flags[] = {MFD_CLOEXEC | MFD_EXEC, MFD_CLOEXEC}; /* kernels before 6.3 refuse the first */
	struct remote *r = &x->remote;
	uint64_t args[] = {SYS_memfd_create, r->text, flags[0], 0};
	int64_t fd = -EINVAL;
	unsigned i;
	int err = remote_put_text(r, name);

	if (!err && x->free_fd >= 0) {
		err = remote_call(r, x->libc.syscall, args, -1, NULL, e);
		if (!err && is_memfd(x, x->free_fd, name))
			return x->free_fd;
	}
	for (i = 0; !err && fd == -EINVAL && i < 2; i++) {
		args[2] = flags[i];
		err = remote_call(r, x->libc.syscall, args, SYS_memfd_create, &fd, e);
	}
	if (err)
		return err_set(e, ERR_RUNTIME, err, "cannot write to the stack of thread %d: %s", r->tid,
			       strerror(-err));
	if (fd < 0)
		return err_set(
			e, ERR_TARGET, (int)fd,
			"cannot load the agent: process %d may not create a file in memory (%s); a seccomp filter or "
			"vm.memfd_noexec forbids it",
			x->pid, strerror((int)-fd));
	return (int)fd;
}

static int write_image(struct inject *x, int remote_fd, const char *from, size_t left, struct mapped_file *agent,
		       struct err *e)
{
	struct stat st;
	char path[64];
	ssize_t n = 0;
	int fd, err;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", x->pid, remote_fd);
	fd = memfd_open(path);
	err = fd < 0 ? fd : fstat(fd, &st) ? -errno : 0;
	for (; !err && left; left -= (size_t)n, from += n) {
		n = write(fd, from, left);
		if (n < 0 && errno == EINTR)
			n = 0;
		else if (n <= 0)
			err = n ? -errno : -EIO;
	}
	if (!err) {
		agent->dev = st.st_dev;
		agent->ino = st.st_ino;
	}
	if (fd >= 0)
		close(fd);
	if (err == -ENOENT) /* only the end of the process closes a descriptor behind its back */
		return inject_ended(x, e);
	return err ? err_set(e, ERR_RUNTIME, err, "cannot write the agent to %s: %s", path, strerror(-err)) : 0;
}

/* *base receives the address of the object in the process. */
static int inject_load(struct inject *x, const char *name, const void *image, size_t bytes, uint64_t *base,
		       struct err *e)
{
	struct mapped_file agent = {.name = ""};
	struct remote *r = &x->remote;
	int fd = create_memfd(x, name, e), err;
	char path[64];

	if (fd < 0)
		return fd;
	inject_tell(x, AGT_STEP_MEMFD);
	err = write_image(x, fd, image, bytes, &agent, e);
	if (err)
		return err;
	inject_tell(x, AGT_STEP_WRITTEN);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = remote_put_text(r, path);
	if (!err)
		err = remote_call(r, x->libc.dlopen, (uint64_t[]){r->text, x->libc.dlopen_flags, 0, 0}, -1, NULL, e);
	if (err)
		return err_set(e, ERR_RUNTIME, err, "cannot write to the stack of thread %d: %s", r->tid,
			       strerror(-err));
	inject_tell(x, AGT_STEP_LOADED);
	snprintf(agent.name, sizeof(agent.name), "%s", name);
	err = mapped_find(x->mapsfd, &agent);
	if (!err && (!agent.base || !agent.exec))
		err = -ENOEXEC;
	if (err)
		return err_set(e, ERR_TARGET, err,
			       "cannot load the agent: dlopen() of the agent failed in process %d; vm.memfd_noexec, a "
			       "security module or a mount namespace without /proc may forbid it",
			       x->pid);
	*base = agent.base;
	return 0;
}

/* Loads the second object if it is not mapped yet. If a call crashes, remote_call() undoes it. */
static int load_beside(struct inject *x)
{
	const struct agt_beside *b = x->o->beside;
	struct mapped_file there = {.name = ""};
	struct err e = {0};
	size_t i;
	int err;

	snprintf(there.name, sizeof(there.name), "%s", b->name);
	err = mapped_find(x->mapsfd, &there);
	x->free_fd = -1;
	if (!err && !there.base)
		err = inject_load(x, b->name, b->image, b->image_bytes, &there.base, &e);
	for (i = 0; !err && i < b->nargs; i++)
		err = remote_call(&x->remote, there.base + b->call_va, (uint64_t[]){b->args[i], 0, 0, 0}, -1, NULL, &e);
	return err;
}

static int refuse_filters(const struct inject *x, struct err *e)
{
	const char *call = NULL;
	int err = x->filters && !x->present ? agt_seccomp_refuses(x->filters, x->remote.tid, &call) : 0;

	if (call)
		return err_set(
			e, ERR_TARGET, -EPERM,
			"cannot load the agent: a seccomp filter of process %d refuses %s(), which loading needs",
			x->pid, call);
	return err ? err_set(e, ERR_TARGET, -EPERM,
			     "cannot load the agent: a seccomp filter of process %d cannot be read, and it may end the "
			     "process for a system call that loading needs",
			     x->pid)
		   : 0;
}

static int refuse_stopped(const struct inject *x, struct err *e)
{
	if (refuse_filters(x, e))
		return e->code;
	if (!stack_has_room(x))
		return err_set(
			e, ERR_TARGET, -ENOSPC,
			"cannot load the agent: thread %d of process %d has less than %u KB left on its stack, or "
			"runs on another stack",
			x->remote.tid, x->pid, STACK_ROOM >> 10);
	return 0;
}

/* Works in the stopped thread. Returns -EAGAIN if the thread is not at the right place; a later call may be better. */
static int work_stopped(struct inject *x, struct err *e)
{
	struct remote *r = &x->remote;
	int err;

	inject_tell(x, AGT_STEP_STOPPED);
	err = remote_begin(r, e);
	if (err)
		return err;
	if (!stop_is_right(x))
		return -EAGAIN;
	err = refuse_stopped(x, e);
	if (!err)
		err = remote_put_frame(r, e);
	if (err)
		return err;
	inject_tell(x, AGT_STEP_FRAMED);
	r->deadline_ns = clock_ns(CLOCK_MONOTONIC) + CALL_MS * MS;
	if (!x->present) {
		err = inject_load(x, x->name, x->o->image, x->o->image_bytes, &x->out->base, e);
		if (err)
			return err;
	}
	err = remote_call(r, x->out->base + x->o->start_va, (uint64_t[]){x->o->arg, 0, 0, 0}, -1, NULL, e);
	if (err)
		return err;
	inject_tell(x, AGT_STEP_STARTED);
	if (x->o->beside)
		x->out->beside = load_beside(x);
	err = x->o->on_started ? x->o->on_started(x->o->ctx, e) : 0;
	if (!err)
		stop_add_missed(x, 0);
	return err;
}

/*
 * The tracer's thread. All ptrace requests come from it. Its end detaches a target thread that still runs without
 * interrupting it, which a request would do.
 */
static void *trace(void *arg)
{
	struct inject *x = arg;
	struct remote_timer timer = {0};
	struct remote *r = &x->remote;
	uint64_t pause_ns;

	x->tracer = gettid();
	/* The target waits for this thread, so it asks for a real-time priority, which shortens the pause. */
	sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
	x->code = remote_timer_start(&timer);
	if (x->code)
		err_set(&x->err, ERR_RUNTIME, x->code, "cannot create a timer: %s", strerror(-x->code));
	if (!x->code)
		x->code = seize(x, &x->err);
	if (!x->code) {
		inject_tell(x, AGT_STEP_SEIZED);
		x->stacks.len = 0;
		x->code = mapped_stacks(x->mapsfd, &x->stacks);
		x->free_fd = lowest_free_fd(x->pid);
	}
	if (!x->code)
		x->code = stop_thread(x, &x->err);
	if (!x->code) {
		x->code = work_stopped(x, &x->err);
		remote_end(r);
		pause_ns = clock_ns(CLOCK_MONOTONIC) - x->skel->bss->hit_ns;
		x->out->pause_ns += pause_ns;
		x->out->longest_ns = pause_ns > x->out->longest_ns ? pause_ns : x->out->longest_ns;
		x->out->stops++;
		inject_tell(x, AGT_STEP_LET_GO);
	}
	remote_timer_stop(&timer);
	return NULL;
}

/* ---- the whole injection */

/* Reports that no thread called. A process that ends after one of its threads was seized did call. */
static int not_called(const struct inject *x, bool any, struct err *e)
{
	return any && tgt_gone(x->t) ? inject_ended(x, e) : stop_cancelled(x, e);
}

/*
 * pthread_join() returns a moment before the kernel detaches what the thread traced. A retry in that moment would find
 * the target traced, by mxbpf itself. The kernel detaches before it forgets the thread.
 */
static void join_tracer(const struct inject *x, pthread_t thread)
{
	const struct timespec pause = {.tv_nsec = POLL_NS};

	pthread_join(thread, NULL);
	while (!syscall(SYS_tgkill, getpid(), x->tracer, 0))
		nanosleep(&pause, NULL);
}

/* Prepares to read the seccomp filters of a thread, if it has any. */
static int open_filters(struct inject *x, pid_t tid, struct err *e)
{
	struct buf status = {0};
	const char *mode = tgt_peek_status(x->pid, tid, &status) ? NULL : tgt_status_field(status.data, "Seccomp");
	const bool filtered = mode && *mode != '0';

	buf_fini(&status);
	return filtered && !x->filters ? agt_filters_open(&x->filters, e) : 0;
}

static int try_thread(struct inject *x, pid_t tid, struct err *e)
{
	pthread_t thread;
	int err = open_filters(x, tid, e);

	if (err)
		return err;
	x->remote = (struct remote){.pid = x->pid, .tid = tid, .restorer = x->libc.restorer};
	x->err = (struct err){0};
	err = pthread_create(&thread, NULL, trace, x);
	if (err)
		return err_set(e, ERR_RUNTIME, -err, "cannot start a thread: %s", strerror(err));
	join_tracer(x, thread);
	x->out->tid = tid;
	if (x->code && tgt_gone(x->t))
		return inject_ended(x, e);
	if (x->err.code)
		return err_set(e, x->err.cls, x->err.code, "%s", x->err.why);
	return x->code;
}

static int no_call(const struct inject *x, bool any, struct err *e)
{
	unsigned ms = (unsigned)(stop_limit_ns(x) / MS);

	if (tgt_gone(x->t))
		return inject_ended(x, e);
	return err_set(e, ERR_TARGET, -ETIME,
		       any ? "cannot load the agent: process %d called an operator, but no thread called a second one "
			     "within %u ms"
			   : "cannot load the agent: process %d called no operator within %u ms",
		       x->pid, ms);
}

static int inject(struct inject *x, struct err *e)
{
	uint64_t until_ns = x->o->patient ? UINT64_MAX : clock_ns(CLOCK_MONOTONIC) + THREADS_TRIED * stop_limit_ns(x);
	bool any = false;
	int err = -EAGAIN;
	pid_t tid;

	/* The end of a thread is noticed soon, but a thread that does not call again uses its whole time limit. */
	for (; err == -EAGAIN && clock_ns(CLOCK_MONOTONIC) < until_ns; any = true) {
		tid = stop_wait_caller(x);
		if (!tid && x->o->patient)
			return not_called(x, any, e);
		if (!tid)
			return no_call(x, any, e);
		err = try_thread(x, tid, e);
	}
	return err == -EAGAIN ? no_call(x, true, e) : err;
}

/* Retries, because the calling thread may be in a signal handler or short of stack, and the next one may not be. */
static int inject_at_first(struct inject *x, struct err *e)
{
	int err = 0;
	pid_t tid;

	do {
		if (err && stop_arm_any(x, e))
			return e->code;
		tid = stop_wait_first(x);
		if (!tid)
			return not_called(x, err, e);
		err = try_thread(x, tid, e);
		stop_go_on(x); /* no effect if the process was continued before */
		if (err == -EAGAIN)
			stop_add_missed(x, 1);
	} while (err == -EAGAIN);
	return err;
}

int agt_inject_arm(const struct agt_inject_opts *o, struct agt_injected *out, struct inject **x, struct err *e)
{
	struct inject *new = *x = calloc(1, sizeof(*new));
	int err;

	if (!new)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	*new = (struct inject){.o = o, .out = out, .name = o->name ? o->name : AGT_NAME, .mapsfd = -1, .link = -1};
	*out = (struct agt_injected){.route = "ptrace, at the entry of an operator"};
	err = inject_look(new, e);
	err = err ? err : stop_load(new, e);
	return err || !o->launched ? err : stop_arm_any(new, e);
}

static int inject_waiting(struct inject *x, struct err *e)
{
	int err = try_thread(x, x->o->wait.tid, e);

	x->out->route = "ptrace, in a thread that waited";
	if (err == -EAGAIN)
		err_set(e, ERR_TARGET, err,
			"cannot load the agent: thread %d of process %d does not wait any more; try again",
			x->o->wait.tid, x->pid);
	return err;
}

int agt_inject_run(struct inject *x, struct err *e)
{
	if (x->o->wait.tid)
		return inject_waiting(x, e);
	return x->o->launched ? inject_at_first(x, e) : inject(x, e);
}

void agt_inject_free(struct inject *x)
{
	struct buf links = {0};

	if (!x)
		return;
	stop_disarm_any(x);
	/*
	 * The kernel removes the probe at once, but closing the link then waits for all CPUs (40 ms), so nobody
	 * waits for that here.
	 */
	if (x->link >= 0 && buf_put(&links, &x->link, sizeof(x->link)))
		close(x->link);
	backend_close(&links, false);
	ring_buffer__free(x->firsts);
	inject_bpf__destroy(x->skel);
	agt_filters_close(x->filters);
	if (x->mapsfd >= 0)
		close(x->mapsfd);
	buf_fini(&x->stacks);
	tgt_close(x->t);
	free(x);
}

int agt_inject(const struct agt_inject_opts *o, struct agt_injected *out, struct err *e)
{
	struct inject *x;
	int err = agt_inject_arm(o, out, &x, e);

	if (!err)
		err = agt_inject_run(x, e);
	agt_inject_free(x);
	return err;
}

int agt_start_va(const void *image, size_t bytes, const char *name, uint64_t *va, struct err *e)
{
	int fd = memfd_create("mxbpf-image", MFD_CLOEXEC), err = fd < 0 ? -errno : 0;
	struct elf_sym sym = {.va = 0};
	struct elf *f = NULL;

	if (!err && write(fd, image, bytes) != (ssize_t)bytes)
		err = -EIO;
	if (err)
		err_set(e, ERR_RUNTIME, err, "cannot copy the agent: %s", strerror(-err));
	if (!err)
		err = elf_open(fd, &f, e);
	if (!err)
		err = elf_find_sym(f, name, &sym, e);
	if (!err)
		*va = sym.va;
	elf_close(f);
	if (fd >= 0)
		close(fd);
	return err;
}
