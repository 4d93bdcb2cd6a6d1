// SPDX-License-Identifier: Apache-2.0
/*
 * Injects into real processes: no register may be lost, whatever happens to mxbpf meanwhile. Also tests the refusals.
 */

#include <elf.h>
#include <sys/eventfd.h>
#include <sys/ptrace.h>

#include "agent/restart.h"
#include "agent/waiting.h"
#include "base/clock.h"
#include "inject_targets.h"
#include "sandbox/sandbox.h"

#define FRESH_TARGETS	  50
#define EMULATED_TARGETS  3 /* under an emulator, everything takes at least ten times as long */
#define FRESH_TARGETS_MAX 2000
#define KILLS		  70
#define EMULATED_KILLS	  8
#define SIGNALS_TARGETS	  10
#define BLOCK_NS	  20000000000 /* until a thread blocks, or goes on */

static bool emulated; /* the test runs in a virtual machine of its own under an emulator */

/* ---- tests */

static bool injects(const struct agt_inject_opts *o, struct agt_injected *in)
{
	struct err e = {0};

	if (agt_inject(o, in, &e))
		printf("# %s: %s\n", o->name, e.why);
	return !e.code;
}

/* Returns true if an injection fails with this code and reason. */
static bool fails(const struct agt_inject_opts *o, int code, const char *why)
{
	struct agt_injected in;
	struct err e = {0};
	int err = agt_inject(o, &in, &e);

	if (err != code || !strstr(e.why, why))
		printf("# %d: %s\n", err, e.why);
	return err == code && strstr(e.why, why);
}

static void test_busy(void)
{
	struct agt_injected first, second;
	struct agt_inject_opts o;
	struct target t;
	struct err again = {0};

	CHECK(start_target(&t, "4", NULL));
	o = opts(&t);
	CHECK(injects(&o, &first));
	printf("# pause %.0f us\n", (double)first.pause_ns / 1e3);
	CHECK(first.stops == 1 && ran_once(&t, &first) && goes_on(&t));
	CHECK(agt_inject(&o, &second, &again) == -EEXIST && second.base == first.base && strstr(again.why, "already"));
	o.reuse = true;
	again = (struct err){0};
	CHECK(!agt_inject(&o, &second, &again) && second.base == first.base);
	CHECK(read_word(&t, first.base + calls_va) == 2 && goes_on(&t));
	end_target(&t);
}

static bool maps(const struct target *t, const char *path)
{
	char line[600], name[40];
	bool found = false;
	FREED(file_closed) FILE *f = NULL;

	snprintf(name, sizeof(name), "/proc/%d/maps", t->pid);
	f = fopen(name, "re");
	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, path);
	return found;
}

static void test_beside(void)
{
	static const uint64_t args[] = {8, ARG};
	struct agt_beside beside = {image, image_bytes, "mxbpf-test-beside", start_va, args, 2};
	struct agt_injected in;
	struct agt_inject_opts o;
	struct target t;

	CHECK(start_target(&t, "3", NULL));
	o = opts(&t);
	o.beside = &beside;
	CHECK(injects(&o, &in) && !in.beside && in.stops == 1 && ran_once(&t, &in));
	CHECK(maps(&t, beside.name) && goes_on(&t));
	beside.name = "mxbpf-test-crash";
	beside.call_va = calls_va; /* data, not code */
	o.reuse = true;
	CHECK(injects(&o, &in) && in.beside == -EFAULT && maps(&t, beside.name) && goes_on(&t));
	end_target(&t);
}

static int by_pause(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Returns the number of target processes. The environment variable MXBPF_TEST_TARGETS overrides it for longer runs. */
static unsigned fresh_targets(void)
{
	const char *text = getenv("MXBPF_TEST_TARGETS");
	int n = text ? atoi(text) : 0;

	if (n <= 0 || n > FRESH_TARGETS_MAX)
		return emulated ? EMULATED_TARGETS : FRESH_TARGETS;
	return (unsigned)n;
}

/* Checks that a call does not stop the process after the wait for it was cancelled. */
static void test_cancelled(void)
{
	const uint64_t one = 1;
	int fd = eventfd(0, EFD_CLOEXEC);
	struct agt_injected in;
	struct agt_inject_opts o;
	struct inject *x;
	struct target t;
	struct err e = {0};

	CHECK(fd >= 0 && start_target(&t, "2", NULL));
	o = opts(&t);
	o.off = offset_in(t.path, "main");
	o.launched = true;
	o.cancel_fd = fd;
	CHECK(!agt_inject_arm(&o, &in, &x, &e) && write(fd, &one, sizeof(one)) == sizeof(one));
	CHECK(agt_inject_run(x, &e) == -ECANCELED && !in.stops);
	agt_inject_free(x);
	/* Here the first call may come before anybody waits for it. */
	o.off = t.off;
	CHECK(!agt_inject_arm(&o, &in, &x, &e));
	CHECK(waitpid(t.pid, NULL, WUNTRACED) == t.pid);
	agt_inject_free(x);
	CHECK(goes_on(&t) && !maps(&t, AGT_NAME));
	end_target(&t);
	close(fd);
}

/* Every other launched target also handles signals that arrive all the time. */
static void test_fresh(bool launched)
{
	static uint64_t pauses[FRESH_TARGETS_MAX];
	const unsigned n = fresh_targets();
	struct agt_injected in;
	struct agt_inject_opts o;
	struct target t;
	unsigned i;

	for (i = 0; i < n; i++) {
		CHECK(start_target(&t, "3", launched && i & 1 ? "signals" : NULL));
		CHECK(!preload || maps(&t, strrchr(preload, '/')));
		o = opts(&t);
		o.launched = launched;
		o.cancel_fd = -1;
		CHECK(injects(&o, &in));
		CHECK(ran_once(&t, &in) && goes_on(&t));
		pauses[i] = in.longest_ns;
		end_target(&t);
	}
	qsort(pauses, n, sizeof(pauses[0]), by_pause);
	printf("# pause of %u: median %.0f us, longest %.0f us\n", n, (double)pauses[n / 2] / 1e3,
	       (double)pauses[n - 1] / 1e3);
}

static void test_allocator(const char *title, const char *file)
{
	static const char *const folders[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"};
	static char names[2][100], path[200];
	static unsigned k;
	unsigned i;

	for (i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folders[i], file);
		if (!access(path, R_OK))
			break;
	}
	preload = i < sizeof(folders) / sizeof(folders[0]) ? path : NULL;
	k ^= 1;
	snprintf(names[k], sizeof(names[k]), "injection harms no process that allocates with %s%s", title,
		 preload ? "" : " # SKIP it is not installed");
	TEST(names[k])
	{
		if (preload)
			test_fresh(false);
	}
	preload = NULL;
}

static bool is_waiting(const struct target *t, struct agt_wait *w)
{
	struct tgt_doing d;

	if (tgt_peek_doing(t->pid, t->pid, &d) || d.state != 'S' || !restart_is_safe(t->pid, t->pid, d.syscall, d.args))
		return false;
	*w = agt_wait_of(t->pid, &d);
	return true;
}

static bool is_traced(const struct target *t, pid_t tid)
{
	FREED(buf_fini) struct buf status = {0};
	const char *tracer = NULL;
	bool traced;

	if (tid && !tgt_peek_status(t->pid, tid, &status))
		tracer = tgt_status_field(status.data, "TracerPid");
	traced = tracer && atoi(tracer);
	return traced;
}

/* The waits of the target are short, so it has often moved on before it is interrupted. */
static void test_waiting(void)
{
	const unsigned n = fresh_targets();
	unsigned done = 0, moved = 0;
	struct agt_injected in;
	struct agt_inject_opts o;
	struct target t;
	struct err e;
	char name[32];

	CHECK(start_target(&t, "3", "waits"));
	o = opts(&t);
	o.name = name;
	while (done < n && moved < 1000 * n && goes_on(&t)) {
		e = (struct err){0};
		snprintf(name, sizeof(name), "waits-%u", done);
		if (!is_waiting(&t, &o.wait) || agt_inject(&o, &in, &e) == -EAGAIN) {
			CHECK(!is_traced(&t, o.wait.tid));
			moved++;
			continue;
		}
		if (e.code)
			printf("# %s\n", e.why);
		CHECK(!e.code && ran_once(&t, &in));
		done++;
	}
	printf("# %u times, and %u times it had moved\n", done, moved);
	CHECK(done == n && goes_on(&t));
	end_target(&t);
}

/* Waits until the thread sleeps in a system call. If `same` has a system call, that must be the one. */
static struct agt_wait blocked_in(const struct target *t, pid_t tid, const struct agt_wait *same)
{
	const uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + BLOCK_NS;
	struct agt_wait w = {0};
	struct tgt_doing d;

	while (!w.tid && clock_ns(CLOCK_MONOTONIC) < until_ns)
		if (!tgt_peek_doing(t->pid, tid, &d) && d.state == 'S' && d.syscall >= 0)
			w = agt_wait_of(tid, &d);
	return !same || !memcmp(&w, same, sizeof(w)) ? w : (struct agt_wait){0};
}

/* When to kill an injector: at a step, or some time after it has stopped the thread. */
struct death {
	int step;		    /* -1 means none */
	bool in_wait;		    /* the first thread is interrupted in a system call */
	struct agt_wait wait;	    /* this thread is interrupted in its system call; 0: none */
	volatile uint64_t *stopped; /* time when the thread was stopped; shared with the injector; NULL: not told */
};

static void on_step(void *ctx, enum agt_step step)
{
	struct death *d = ctx;

	if ((int)step == d->step)
		kill(getpid(), SIGKILL);
	if (step == AGT_STEP_STOPPED && d->stopped)
		*d->stopped = clock_ns(CLOCK_MONOTONIC);
}

/* Injects from a child process. */
static pid_t start_injector(const struct target *t, const char *name, struct death *d)
{
	struct agt_inject_opts o = opts(t);
	struct agt_injected in;
	struct err e = {0};
	pid_t pid = fork();
	int err;

	if (pid)
		return pid;
	o.name = name;
	o.wait = d->wait;
	o.on_step = on_step;
	o.ctx = d;
	do {
		while (d->in_wait && !is_waiting(t, &o.wait))
			;
		e = (struct err){0};
		err = agt_inject(&o, &in, &e);
	} while (d->in_wait && err == -EAGAIN);
	if (err)
		fprintf(stderr, "# %s: %s\n", name, e.why);
	_exit(err ? 1 : 0);
}

/* Returns true if a later injection succeeds or finds the agent that the killed injector has loaded. */
static bool can_inject(const struct target *t, const char *name)
{
	struct agt_inject_opts o = opts(t);
	struct agt_injected in;
	struct err e = {0};
	int err;

	o.name = name;
	err = agt_inject(&o, &in, &e);
	if (err && err != -EEXIST)
		printf("# %s\n", e.why);
	return !err || err == -EEXIST;
}

/* Sends a thread a signal when it is stopped. */
struct tap {
	pid_t pid, tid;
	int signal; /* 0: none */
};

static void send_tap(void *ctx, enum agt_step step)
{
	const struct tap *to = ctx;

	if (step == AGT_STEP_STOPPED && to->signal)
		tgkill(to->pid, to->tid, to->signal);
}

static bool inject_into(const struct target *t, const struct agt_wait *w, const char *name, int signal)
{
	struct tap tap = {t->pid, w->tid, signal};
	struct agt_inject_opts o = opts(t);
	struct agt_injected in;

	o.name = name;
	o.wait = *w;
	o.on_step = send_tap;
	o.ctx = &tap;
	return injects(&o, &in) && ran_once(t, &in);
}

/*
 * Interrupts each call twice: by an injector that is killed in the moment of the stop, after which the kernel restarts
 * the call, and by one that loads the agent. Returns false if the thread is not in the same call then. A call that a
 * signal may end is interrupted once, because epoll_wait() fails if the injector is killed.
 */
static bool interrupt(const struct target *t, const struct agt_wait *w, const char *name, int signal)
{
	struct death d = {.step = AGT_STEP_STOPPED, .wait = *w};
	int status;

	if (signal)
		return inject_into(t, w, name, signal);
	return waitpid(start_injector(t, name, &d), &status, 0) > 0 && WIFSIGNALED(status) &&
	       blocked_in(t, w->tid, w).tid && inject_into(t, w, name, 0) && blocked_in(t, w->tid, w).tid;
}

/* Returns true if the call was interrupted, or left alone because its result would be another one. */
static bool tries_row(const struct target *t, uint32_t i)
{
	const struct agt_wait w = blocked_in(t, t->shared->row[i].tid, NULL);
	const bool safe = w.tid && restart_is_safe(t->pid, w.tid, w.syscall, w.args);
	const char *name = t->shared->row[i].name;

	if (w.tid && safe != t->shared->row[i].refused && (!safe || interrupt(t, &w, name, t->shared->row[i].signal)))
		return true;
	printf("# %s: system call %d, %s\n", name, w.syscall, safe ? "interrupted" : "not interrupted");
	return false;
}

static void test_blocked(void)
{
	struct target t;
	uint64_t until_ns;
	uint32_t i;

	CHECK(start_program(&t, "blocked", NULL, NULL));
	for (i = 0; i < t.shared->rows; i++)
		CHECK(tries_row(&t, i));
	CHECK(i && !t.shared->damages && !kill(t.pid, SIGUSR1));
	until_ns = clock_ns(CLOCK_MONOTONIC) + BLOCK_NS;
	while (t.shared->calls < i && clock_ns(CLOCK_MONOTONIC) < until_ns && !waitpid(t.pid, NULL, WNOHANG))
		;
	for (i = 0; i < t.shared->rows; i++)
		if (!t.shared->row[i].done)
			printf("# %s: has not returned\n", t.shared->row[i].name);
	CHECK(t.shared->calls == i && !t.shared->damages);
	end_target(&t);
}

/*
 * If mxbpf is killed between the stop and the next step, epoll_wait() may fail with EINTR, as after any signal of a
 * tracer. So that step is left out for a waiting thread.
 */
static void test_killed_at_steps(bool in_wait)
{
	volatile uint64_t *stopped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct death d = {.stopped = stopped, .in_wait = in_wait};
	struct target t;
	char name[32];
	int status;

	CHECK(start_target(&t, "3", in_wait ? "waits" : NULL));
	for (d.step = AGT_STEP_SEIZED; d.step <= AGT_STEP_LET_GO; d.step++) {
		if (in_wait && d.step == AGT_STEP_STOPPED)
			continue;
		snprintf(name, sizeof(name), "step-%d", d.step);
		CHECK(waitpid(start_injector(&t, name, &d), &status, 0) > 0 && WIFSIGNALED(status));
		CHECK(goes_on(&t) && can_inject(&t, name) && goes_on(&t));
	}
	end_target(&t);
	munmap((void *)(uintptr_t)stopped, 4096);
}

/*
 * Kills the injector some time after it has stopped the thread: 10 us later each time, until the injection is over by
 * then.
 */
static void test_killed_at_times(void)
{
	volatile uint64_t *stopped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct death d = {.step = -1, .stopped = stopped};
	const unsigned n = emulated ? EMULATED_KILLS : KILLS;
	unsigned i, killed = 0;
	struct target t;
	char name[32];
	int status;
	pid_t pid;

	CHECK(start_target(&t, "2", NULL));
	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "time-%u", i);
		*stopped = 0;
		pid = start_injector(&t, name, &d);
		while (!*stopped || clock_ns(CLOCK_MONOTONIC) < *stopped + i * 10000)
			if (waitpid(pid, &status, WNOHANG) == pid)
				break;
		kill(pid, SIGKILL);
		if (waitpid(pid, &status, 0) == pid)
			killed += WIFSIGNALED(status);
		CHECK(goes_on(&t));
	}
	CHECK(can_inject(&t, AGT_NAME) && goes_on(&t));
	printf("# killed before its end %u times of %u\n", killed, n);
	end_target(&t);
	munmap((void *)(uintptr_t)stopped, 4096);
}

/* Interrupts an injection from within, at each step: kills or stops the target. */
struct blow {
	pid_t pid;
	int step, sig;
};

static void strike(void *ctx, enum agt_step step)
{
	struct blow *b = ctx;

	if ((int)step == b->step)
		kill(b->pid, b->sig);
}

static void test_target_killed(void)
{
	struct blow b = {.sig = SIGKILL};
	struct agt_inject_opts o;
	struct target t;
	unsigned i;

	for (i = 0; i < 2 * AGT_STEP_STARTED; i++) {
		b.step = (int)i / 2;
		CHECK(start_target(&t, "2", NULL));
		b.pid = t.pid;
		o = opts(&t);
		o.launched = i & 1;
		o.cancel_fd = -1;
		o.on_step = strike;
		o.ctx = &b;
		o.first_call_ms = 500;
		CHECK(fails(&o, -ESRCH, ""));
		end_target(&t);
	}
}

static void test_target_stopped(void)
{
	struct blow b = {.sig = SIGSTOP};
	struct agt_injected in;
	struct agt_inject_opts o;
	struct target t;
	char name[32];
	int status;

	CHECK(start_target(&t, "2", NULL));
	b.pid = t.pid;
	for (b.step = AGT_STEP_STOPPED; b.step < AGT_STEP_STARTED; b.step++) {
		snprintf(name, sizeof(name), "stop-%d", b.step);
		o = opts(&t);
		o.name = name;
		o.on_step = strike;
		o.ctx = &b;
		CHECK(injects(&o, &in));
		CHECK(waitpid(t.pid, &status, WUNTRACED) == t.pid && WIFSTOPPED(status));
		kill(t.pid, SIGCONT);
		CHECK(ran_once(&t, &in) && goes_on(&t));
	}
	end_target(&t);
}

static void test_signals(void)
{
	struct agt_injected in;
	struct agt_inject_opts o;
	struct target t;
	char name[32];
	unsigned i;

	CHECK(start_target(&t, "2", "signals"));
	for (i = 0; i < (emulated ? EMULATED_TARGETS : SIGNALS_TARGETS); i++) {
		snprintf(name, sizeof(name), "signals-%u", i);
		o = opts(&t);
		o.name = name;
		CHECK(injects(&o, &in));
		CHECK(ran_once(&t, &in) && goes_on(&t));
	}
	end_target(&t);
}

static void test_crash(void)
{
	struct agt_inject_opts o;
	struct target t;

	CHECK(start_target(&t, "2", NULL));
	o = opts(&t);
	o.start_va = calls_va; /* data, not code */
	CHECK(fails(&o, -EFAULT, "crashed") && goes_on(&t));
	o = opts(&t);
	o.name = "no-elf";
	o.image = "no shared object";
	o.image_bytes = 16;
	CHECK(fails(&o, -ENOEXEC, "dlopen() of the agent failed") && goes_on(&t));
	end_target(&t);
}

static bool is_refused(const struct target *t, int code, const char *why)
{
	struct agt_inject_opts o = opts(t);

	o.first_call_ms = 100;
	return fails(&o, code, why);
}

/* Starts a program without any library; its code jumps to itself. */
static pid_t start_static(void)
{
	static const struct {
		Elf64_Ehdr e;
		Elf64_Phdr p;
		uint8_t code[2];
	} program = {
		.e = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		      .e_type = ET_EXEC,
		      .e_machine = EM_X86_64,
		      .e_version = EV_CURRENT,
		      .e_entry = 0x400000 + sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr),
		      .e_phoff = sizeof(Elf64_Ehdr),
		      .e_ehsize = sizeof(Elf64_Ehdr),
		      .e_phentsize = sizeof(Elf64_Phdr),
		      .e_phnum = 1},
		.p = {.p_type = PT_LOAD,
		      .p_flags = PF_R | PF_X,
		      .p_vaddr = 0x400000,
		      .p_filesz = sizeof(program),
		      .p_memsz = sizeof(program),
		      .p_align = 4096},
		.code = {0xeb, 0xfe},
	};
	int fd = memfd_create("static", MFD_CLOEXEC), ends[2];
	char *const none[] = {NULL};
	pid_t pid;
	char c;

	if (fd < 0 || write(fd, &program, sizeof(program)) != sizeof(program) || pipe2(ends, O_CLOEXEC))
		return -1;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fexecve(fd, none, none);
		_exit(127);
	}
	close(fd);
	close(ends[1]);
	if (read(ends[0], &c, 1)) /* exec closes the child's end */
		pid = -1;
	close(ends[0]);
	return pid;
}

static void test_refusals(void)
{
	struct target t, other;
	int status;

	CHECK(start_target(&t, "2", NULL));
	kill(t.pid, SIGSTOP);
	CHECK(waitpid(t.pid, &status, WUNTRACED) == t.pid && WIFSTOPPED(status));
	CHECK(is_refused(&t, -EAGAIN, "is stopped"));
	kill(t.pid, SIGCONT);
	CHECK(goes_on(&t));
	other = t;
	other.pid = start_static();
	CHECK(is_refused(&other, -ENOTSUP, "has no glibc mapped"));
	kill(other.pid, SIGKILL);
	waitpid(other.pid, NULL, 0);
	CHECK(!ptrace(PTRACE_SEIZE, t.pid, NULL, NULL));
	CHECK(is_refused(&t, -EBUSY, "is traced by process"));
	end_target(&t);
	CHECK(start_target(&t, "2", "idle"));
	CHECK(is_refused(&t, -ETIME, "called no operator within 100 ms"));
	CHECK(!waitpid(t.pid, NULL, WNOHANG));
	end_target(&t);
	CHECK(is_refused(&t, -ESRCH, "no process"));
}

static const struct {
	const char *mode, *why; /* NULL: the agent is loaded */
} filtered[] = {
	{"errno", "refuses memfd_create()"},
	{"deadly", "refuses memfd_create()"},
	{"many", "cannot be read"},
	{"permits", NULL},
};
#define NFILTERED (sizeof(filtered) / sizeof(filtered[0]))

static bool is_filtered_right(const struct target *t, unsigned i)
{
	struct agt_inject_opts o = opts(t);
	struct agt_injected in;

	return filtered[i].why ? is_refused(t, -EPERM, filtered[i].why) : !agt_inject(&o, &in, NULL);
}

static void test_seccomp(void)
{
	struct target t;
	unsigned i;

	for (i = 0; i < NFILTERED; i++) {
		CHECK(start_target(&t, "2", filtered[i].mode));
		CHECK(is_filtered_right(&t, i) && goes_on(&t));
		end_target(&t);
	}
}

/* A child has the filter, because it can never be taken off. It must not be the one that starts programs. */
static void test_limited(void)
{
	struct target t[NFILTERED];
	int status, right = 0;
	pid_t child;
	unsigned i;

	for (i = 0; i < NFILTERED; i++)
		CHECK(start_target(&t[i], "2", filtered[i].mode));
	child = fork();
	if (!child) {
		right = !sbx_enter(SBX_LOOK | SBX_MAPS | SBX_LOAD | SBX_TRACE, false, NULL);
		for (i = 0; i < NFILTERED; i++)
			right &= is_filtered_right(&t[i], i);
		fflush(stdout);
		_exit(!right);
	}
	CHECK(waitpid(child, &status, 0) == child && !status);
	for (i = 0; i < NFILTERED; i++) {
		CHECK(goes_on(&t[i]));
		end_target(&t[i]);
	}
}

/* Yama forbids all tracers until the next boot, so this test needs a virtual machine of its own. */
static void test_yama(void)
{
	static const char no_tracers[] = "3";
	const char *path = "/proc/sys/kernel/yama/ptrace_scope";
	int fd = emulated ? open(path, O_WRONLY | O_CLOEXEC) : -1;
	struct target t;

	if (fd < 0) {
		TEST("the error names Yama if Yama forbids tracers # SKIP needs a machine of its own, with Yama")
		{
		}
		return;
	}
	TEST("the error names Yama if Yama forbids tracers, and the process goes on")
	{
		CHECK(start_target(&t, "2", NULL) && write(fd, no_tracers, 1) == 1);
		CHECK(is_refused(&t, -EPERM, "Yama") && goes_on(&t));
		end_target(&t);
	}
	close(fd);
}

int main(void)
{
	if (geteuid()) {
		TEST("an agent is loaded into a process # SKIP needs root") CHECK(1);
		UNIT_MAIN_END;
	}
	emulated = getenv("MXBPF_TEST_EMULATED");
	TEST("the functions of the agent are found in its image")
	CHECK(prepare());
	TEST("a busy process gets the agent once, the agent's function runs once with its argument, and no register "
	     "changes")
	test_busy();
	TEST("another object is loaded in the same stop and called; if that crashes, the process and the agent go on")
	test_beside();
	TEST("injection harms no process that allocates memory all the time")
	test_fresh(false);
	test_allocator("jemalloc with one arena", "libjemalloc.so.2");
	test_allocator("tcmalloc", "libtcmalloc_minimal.so.4");
	TEST("a launched process is stopped at its first call, gets the agent there, and is not harmed")
	test_fresh(true);
	TEST("a launched process goes on without the agent if the wait for it is cancelled")
	test_cancelled();
	TEST("a thread can be interrupted in a system call in which it waits, without effect on the program")
	test_waiting();
	TEST("a thread can be interrupted in each system call that the kernel restarts: bytes, files, connections and "
	     "children are what they would have been, signals end calls or let them go on, and calls that would return "
	     "something else are left alone")
	test_blocked();
	TEST("an injector killed at any of its steps leaves the process unharmed, and a later injection succeeds")
	test_killed_at_steps(false);
	TEST("an injector killed at any of its steps leaves a waiting thread unharmed")
	test_killed_at_steps(true);
	TEST("an injector killed at any moment of the stop leaves the process unharmed")
	test_killed_at_times();
	TEST("an injection harms no process that handles signals all the time")
	test_signals();
	TEST("a process stopped during an injection gets the agent and stays stopped until it is continued")
	test_target_stopped();
	TEST("an injection reports that its target was killed")
	test_target_killed();
	TEST("an agent that crashes or is refused by the loader leaves the process unharmed")
	test_crash();
	TEST("a static, stopped, traced or ended process, or one that calls no operator, is refused with the reason")
	test_refusals();
	TEST("a seccomp filter that rejects memfd_create() or kills for it prevents the injection without harm to the "
	     "process")
	test_seccomp();
	TEST_IF(!sbx_disturbs(), "mxbpf sees the filters of a process and enters it while it has a filter of its own",
		"sanitizers make other system calls")
	test_limited();
	test_yama();
	UNIT_MAIN_END;
}
