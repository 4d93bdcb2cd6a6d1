// SPDX-License-Identifier: Apache-2.0
#include "agent/inject.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
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
#include "agent/remote.h"
#include "agent/seccomp.h"
#include "attach/attach.h"
#include "attach/backend.h"
#include "base/buf.h"
#include "base/clock.h"
#include "inject.skel.h"
#include "target/target.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x10 /* Linux 6.3 */
#endif
#define ENTRY_BYTES_MAX 16	     /* of the function's first instruction, behind which the signal stops */
#define STACK_ROOM	(256u << 10) /* dlopen() of a small object takes less than 20 KB */
#define CALL_MS		10000	     /* for the loading, once it has begun */
#define THREADS_TRIED	3	     /* for so many times the limit of a first call */
#define POLL_NS		200000	     /* while no thread has called */
#define SIGNAL_TRIES	100	     /* while a thread starts or ends another, it blocks all signals */
#define MS		1000000ull
#define FREE_FD_MAX	4096

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
	int link;
	struct buf stacks;
	struct remote remote;
	struct err err; /* of the tracer's thread */
	int code;
};

static void tell(const struct inject *x, enum agt_step step)
{
	if (x->o->on_step)
		x->o->on_step(x->o->ctx, step);
}

/* ---- refusals, before anything is touched */

/* A field of /proc/PID/task/TID/status; NULL: it has none. */
static const char *status_field(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? at + strlen(name) + strspn(at + strlen(name), "\t ") : NULL;
}

/* 0 or -errno: text is cut at its end. */
static int read_status(pid_t pid, pid_t tid, char *text, size_t max)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -ESRCH;
	n = read(fd, text, max - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0 ? 0 : -ESRCH;
}

static int ended(const struct inject *x, struct err *e)
{
	return err_set(e, ERR_TARGET, -ESRCH, "process %d ended before the agent was loaded", x->pid);
}

static int refuse_thread(const struct inject *x, pid_t tid, struct err *e)
{
	const char *tracer, *features;
	char text[4096];

	if (read_status(x->pid, tid, text, sizeof(text)))
		return -ESRCH; /* the thread has ended, or the process */
	tracer = status_field(text, "\nTracerPid:");
	if (tracer && atoi(tracer))
		return err_set(
			e, ERR_TARGET, -EBUSY,
			"process %d is traced by process %d (a debugger, strace): no agent can be loaded into it",
			x->pid, atoi(tracer));
	features = status_field(text, "\nx86_Thread_features:");
	if (features && strstr(features, "shstk") && strstr(features, "shstk") < strchrnul(features, '\n'))
		return err_set(e, ERR_TARGET, -ENOTSUP,
			       "process %d uses a shadow stack, with which no agent can be loaded from outside",
			       x->pid);
	return 0;
}

static int refuse(struct inject *x, struct err *e)
{
	struct mapped_file agent = {.name = ""};
	struct tgt_stop stop;
	int err;

	snprintf(agent.name, sizeof(agent.name), "%s", x->name);
	err = refuse_thread(x, x->pid, e);
	if (err)
		return err == -ESRCH ? ended(x, e) : err;
	if (tgt_peek_stop(x->pid, &stop))
		return err_set(e, ERR_TARGET, stop.tracer ? -EBUSY : -EAGAIN,
			       stop.tracer ? "process %d is stopped by a debugger: no agent can be loaded into it"
					   : "process %d is stopped (SIGSTOP, Ctrl-Z): continue it first",
			       x->pid);
	err = mapped_find(x->mapsfd, &agent);
	if (err)
		return err_set(e, ERR_RUNTIME, err, "cannot read the mappings of process %d: %s", x->pid,
			       strerror(-err));
	if (agent.base && agent.exec)
		x->present = agent.base;
	x->out->base = x->present;
	if (x->present && !x->o->reuse)
		return err_set(e, ERR_TARGET, -EEXIST, "process %d has an agent already, at %#llx", x->pid,
			       (unsigned long long)x->present);
	return agt_libc_find(x->t, &x->libc, e);
}

static int look(struct inject *x, struct err *e)
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
	return refuse(x, e);
}

/* ---- the probe */

static int load_probe(struct inject *x, struct err *e)
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
		       "the function at whose entry the agent is loaded cannot be probed in process %d: %s", x->pid,
		       strerror(err ? -err : EINVAL));
}

/*
 * A thread that calls the function, one that called it twice in a row if there is any in time: it is no thread that
 * calls it once and ends. 0: none did.
 */
static pid_t wait_for_caller(struct inject *x, uint64_t deadline_ns)
{
	const struct timespec pause = {.tv_nsec = POLL_NS};
	pid_t tid;

	x->skel->bss->last_tid = x->skel->bss->caller_tid = 0;
	do {
		tid = (pid_t)x->skel->bss->caller_tid;
		if (tid || tgt_gone(x->t))
			return tid;
		if (clock_ns(CLOCK_MONOTONIC) > deadline_ns)
			return (pid_t)x->skel->bss->last_tid;
		nanosleep(&pause, NULL);
	} while (true);
}

/* ---- in the tracer's thread */

/*
 * The signal that stops a thread: the thread ignores it by default, does not block it, and has no handler for it, so
 * that nothing happens if mxbpf is killed before it takes the signal away. 0: it has none.
 */
static int choose_signal(const char *status)
{
	static const int candidates[] = {SIGURG, SIGWINCH, SIGCHLD, SIGCONT};
	const char *blocked = status_field(status, "\nSigBlk:"), *caught = status_field(status, "\nSigCgt:");
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

static int seize(struct inject *x, struct err *e)
{
	const struct timespec pause = {.tv_nsec = POLL_NS};
	struct remote *r = &x->remote;
	const char *seccomp;
	char text[4096];
	unsigned tries;
	int err;

	err = refuse_thread(x, r->tid, e);
	if (err)
		return err == -ESRCH ? -EAGAIN : err;
	for (r->signal = 0, tries = 0; !r->signal && tries < SIGNAL_TRIES; tries++) {
		if (tries)
			nanosleep(&pause, NULL);
		if (read_status(x->pid, r->tid, text, sizeof(text)))
			return -EAGAIN;
		r->signal = choose_signal(text);
	}
	seccomp = status_field(text, "\nSeccomp:");
	x->filtered = seccomp && *seccomp != '0';
	if (!r->signal)
		return err_set(e, ERR_TARGET, -EBUSY,
			       "thread %d of process %d handles or blocks every signal with which it could be stopped",
			       r->tid, x->pid);
	if (!ptrace(PTRACE_SEIZE, r->tid, NULL, (void *)(intptr_t)PTRACE_O_TRACESYSGOOD))
		return 0;
	if (errno == ESRCH)
		return -EAGAIN; /* the thread has ended; another one may call */
	return err_set(
		e, ERR_PRIVILEGE, -errno,
		"thread %d of process %d cannot be traced (%s): another tracer is attached, or a security module "
		"or Yama forbids it",
		r->tid, x->pid, strerror(errno));
}

/* The highest address below which the stack of the first thread cannot grow. */
static uint64_t main_stack_floor(const struct inject *x, const struct mapped_range *m)
{
	struct rlimit limit;

	if (prlimit(x->pid, RLIMIT_STACK, NULL, &limit) || limit.rlim_cur > m->end)
		return m->start;
	return m->end - limit.rlim_cur < m->start ? m->end - limit.rlim_cur : m->start;
}

/*
 * Whether the thread runs on its own stack and that has room. The top of such a stack holds what fs points to; memory
 * that does not is that of a coroutine, or of a signal handler, and may be small.
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

/* The descriptor that the process's next file gets, unless another thread opens one before; -1: not known. */
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

static bool is_memfd(const struct inject *x, int fd)
{
	char path[64], want[128], name[128];
	ssize_t n;

	snprintf(want, sizeof(want), "/memfd:%s (deleted)", x->name);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", x->pid, fd);
	n = readlink(path, name, sizeof(name) - 1);
	name[n > 0 ? n : 0] = '\0';
	return !strcmp(name, want);
}

/*
 * Returns the descriptor. Watching the system call for its result costs two more stops, in each of which the thread
 * waits for a CPU: so the descriptor is first looked for where it should be.
 */
static int create_memfd(struct inject *x, struct err *e)
{
	const uint64_t flags[] = {MFD_CLOEXEC | MFD_EXEC, MFD_CLOEXEC}; /* before 6.3 the first is refused */
	struct remote *r = &x->remote;
	uint64_t args[] = {SYS_memfd_create, r->text, flags[0], 0};
	int64_t fd = -EINVAL;
	unsigned i;
	int err = remote_put_text(r, x->name);

	if (!err && x->free_fd >= 0) {
		err = remote_call(r, x->libc.syscall, args, -1, NULL, e);
		if (!err && is_memfd(x, x->free_fd))
			return x->free_fd;
	}
	for (i = 0; !err && fd == -EINVAL && i < 2; i++) {
		args[2] = flags[i];
		err = remote_call(r, x->libc.syscall, args, SYS_memfd_create, &fd, e);
	}
	if (err)
		return err_set(e, ERR_RUNTIME, err, "the stack of thread %d cannot be written: %s", r->tid,
			       strerror(-err));
	if (fd < 0)
		return err_set(e, ERR_TARGET, (int)fd,
			       "process %d may not create a file in memory (%s): a seccomp filter or "
			       "vm.memfd_noexec forbids it",
			       x->pid, strerror((int)-fd));
	return (int)fd;
}

static int write_image(struct inject *x, int remote_fd, struct mapped_file *agent, struct err *e)
{
	const char *from = x->o->image;
	size_t left = x->o->image_bytes;
	struct stat st;
	char path[64];
	ssize_t n = 0;
	int fd, err;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", x->pid, remote_fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	err = fd < 0 || fstat(fd, &st) ? -errno : 0;
	for (; !err && left; left -= (size_t)n, from += n) {
		n = write(fd, from, left);
		if (n <= 0)
			err = n ? -errno : -EIO;
	}
	if (!err) {
		agent->dev = st.st_dev;
		agent->ino = st.st_ino;
	}
	if (fd >= 0)
		close(fd);
	return err ? err_set(e, ERR_RUNTIME, err, "the agent cannot be written to %s: %s", path, strerror(-err)) : 0;
}

static int load(struct inject *x, struct err *e)
{
	struct mapped_file agent = {.name = ""};
	struct remote *r = &x->remote;
	int fd = create_memfd(x, e), err;
	char path[64];

	if (fd < 0)
		return fd;
	tell(x, AGT_STEP_MEMFD);
	err = write_image(x, fd, &agent, e);
	if (err)
		return err;
	tell(x, AGT_STEP_WRITTEN);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = remote_put_text(r, path);
	if (!err)
		err = remote_call(r, x->libc.dlopen, (uint64_t[]){r->text, x->libc.dlopen_flags, 0, 0}, -1, NULL, e);
	if (err)
		return err_set(e, ERR_RUNTIME, err, "the stack of thread %d cannot be written: %s", r->tid,
			       strerror(-err));
	tell(x, AGT_STEP_LOADED);
	snprintf(agent.name, sizeof(agent.name), "%s", x->name);
	err = mapped_find(x->mapsfd, &agent);
	if (!err && (!agent.base || !agent.exec))
		err = -ENOEXEC;
	if (err)
		return err_set(e, ERR_TARGET, err,
			       "dlopen() of the agent failed in process %d: vm.memfd_noexec, a security module or a "
			       "mount namespace without /proc may forbid it",
			       x->pid);
	x->out->base = agent.base;
	return 0;
}

static int refuse_stopped(const struct inject *x, struct err *e)
{
	const char *call = x->filtered && !x->present ? agt_seccomp_refuses(x->remote.tid) : NULL;

	if (call)
		return err_set(e, ERR_TARGET, -EPERM,
			       "a seccomp filter of process %d refuses %s(), which loading an agent needs", x->pid,
			       call);
	if (!stack_has_room(x))
		return err_set(e, ERR_TARGET, -ENOSPC,
			       "thread %d of process %d has less than %u KB left on its stack, or runs on another one",
			       x->remote.tid, x->pid, STACK_ROOM >> 10);
	return 0;
}

/* The thread is stopped. -EAGAIN: not where it should be; it is let go, and another call may do. */
static int work_stopped(struct inject *x, struct err *e)
{
	struct remote *r = &x->remote;
	int err;

	tell(x, AGT_STEP_STOPPED);
	err = remote_begin(r, e);
	if (err)
		return err;
	if (r->regs.rip <= x->skel->bss->hit_ip || r->regs.rip > x->skel->bss->hit_ip + ENTRY_BYTES_MAX)
		return -EAGAIN;
	err = refuse_stopped(x, e);
	if (!err)
		err = remote_put_frame(r, e);
	if (err)
		return err;
	tell(x, AGT_STEP_FRAMED);
	r->deadline_ns = clock_ns(CLOCK_MONOTONIC) + CALL_MS * MS;
	if (!x->present) {
		err = load(x, e);
		if (err)
			return err;
	}
	err = remote_call(r, x->out->base + x->o->start_va, (uint64_t[]){x->o->arg, 0, 0, 0}, -1, NULL, e);
	if (!err)
		tell(x, AGT_STEP_STARTED);
	return err;
}

/* Disarms the probe; whether the signal is on its way. */
static bool was_hit(struct inject *x)
{
	__u32 armed = (__u32)x->remote.tid;

	return !__atomic_compare_exchange_n(&x->skel->bss->armed_tid, &armed, 0, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
}

/* 0: the thread is stopped; -EAGAIN: it did not call again. */
static int stop_at_call(struct inject *x, uint64_t limit_ns, struct err *e)
{
	struct remote *r = &x->remote;
	int err;

	r->deadline_ns = clock_ns(CLOCK_MONOTONIC) + limit_ns;
	x->skel->bss->hit_ns = 0;
	x->skel->bss->armed_signal = (__u32)r->signal;
	__atomic_store_n(&x->skel->bss->armed_tid, (__u32)r->tid, __ATOMIC_SEQ_CST);
	tell(x, AGT_STEP_ARMED);
	err = remote_wait_hit(r);
	if (err == -ETIMEDOUT && was_hit(x)) {
		r->deadline_ns = clock_ns(CLOCK_MONOTONIC) + MS * 100;
		err = remote_wait_hit(r);
	}
	was_hit(x); /* nothing stays armed, whatever happened */
	if (!err)
		return 0;
	if (x->skel->bss->hit_ns && x->skel->bss->hit_result)
		return err_set(e, ERR_RUNTIME, (int)x->skel->bss->hit_result,
			       "the kernel did not send the signal that stops thread %d: %s", r->tid,
			       strerror((int)-x->skel->bss->hit_result));
	return -EAGAIN;
}

static uint64_t limit_ns(const struct inject *x)
{
	return (x->o->first_call_ms ? x->o->first_call_ms : AGT_FIRST_CALL_MS) * MS;
}

/*
 * The tracer. All requests of ptrace come from this thread. Its end detaches a thread that still runs without
 * interrupting it, which a request would do.
 */
static void *trace(void *arg)
{
	struct inject *x = arg;
	struct remote_timer timer = {0};
	struct remote *r = &x->remote;
	uint64_t pause_ns;

	/* The target waits for this thread. Where this is not permitted the pause is longer. */
	sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
	x->code = remote_timer_start(&timer);
	if (x->code)
		err_set(&x->err, ERR_RUNTIME, x->code, "no timer can be made: %s", strerror(-x->code));
	if (!x->code)
		x->code = seize(x, &x->err);
	if (!x->code) {
		tell(x, AGT_STEP_SEIZED);
		x->stacks.len = 0;
		x->code = mapped_stacks(x->mapsfd, &x->stacks);
		x->free_fd = lowest_free_fd(x->pid);
	}
	if (!x->code)
		x->code = stop_at_call(x, limit_ns(x), &x->err);
	if (!x->code) {
		x->code = work_stopped(x, &x->err);
		remote_end(r);
		pause_ns = clock_ns(CLOCK_MONOTONIC) - x->skel->bss->hit_ns;
		x->out->pause_ns += pause_ns;
		x->out->longest_ns = pause_ns > x->out->longest_ns ? pause_ns : x->out->longest_ns;
		x->out->stops++;
		tell(x, AGT_STEP_LET_GO);
	}
	remote_timer_stop(&timer);
	return NULL;
}

/* ---- all together */

static int try_thread(struct inject *x, pid_t tid, struct err *e)
{
	pthread_t thread;
	int err;

	x->remote = (struct remote){.pid = x->pid, .tid = tid, .restorer = x->libc.restorer};
	x->err = (struct err){0};
	err = pthread_create(&thread, NULL, trace, x);
	if (err)
		return err_set(e, ERR_RUNTIME, -err, "no thread can be made: %s", strerror(err));
	pthread_join(thread, NULL);
	x->out->tid = tid;
	if (x->code && tgt_gone(x->t))
		return ended(x, e);
	if (x->err.code)
		return err_set(e, x->err.cls, x->err.code, "%s", x->err.why);
	return x->code;
}

/* A thread in a blocking call would do as well. This is the place to look for one. */
static int no_call(const struct inject *x, bool any, struct err *e)
{
	unsigned ms = (unsigned)(limit_ns(x) / MS);

	if (tgt_gone(x->t))
		return ended(x, e);
	return err_set(e, ERR_TARGET, -ETIME,
		       any ? "process %d called an operator, but no thread called a second one within %u ms: the agent "
			     "can be loaded only while operators are called"
			   : "process %d called no operator within %u ms: the agent can be loaded only while operators "
			     "are called",
		       x->pid, ms);
}

static int inject(struct inject *x, struct err *e)
{
	uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + THREADS_TRIED * limit_ns(x);
	bool any = false;
	int err = -EAGAIN;
	pid_t tid;

	/* A thread that ends is soon known to; one that does not call again takes all its time. */
	for (; err == -EAGAIN && clock_ns(CLOCK_MONOTONIC) < until_ns; any = true) {
		tid = wait_for_caller(x, clock_ns(CLOCK_MONOTONIC) + limit_ns(x));
		if (!tid)
			return no_call(x, any, e);
		err = try_thread(x, tid, e);
	}
	return err == -EAGAIN ? no_call(x, true, e) : err;
}

int agt_inject(const struct agt_inject_opts *o, struct agt_injected *out, struct err *e)
{
	struct inject x = {.o = o, .out = out, .name = o->name ? o->name : AGT_NAME, .mapsfd = -1, .link = -1};
	int err;

	*out = (struct agt_injected){.route = "ptrace, at the entry of an operator"};
	err = look(&x, e);
	if (!err)
		err = load_probe(&x, e);
	if (!err)
		err = inject(&x, e);
	if (x.link >= 0)
		close(x.link);
	inject_bpf__destroy(x.skel);
	if (x.mapsfd >= 0)
		close(x.mapsfd);
	buf_fini(&x.stacks);
	tgt_close(x.t);
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
		err_set(e, ERR_RUNTIME, err, "the agent cannot be copied: %s", strerror(-err));
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
