// SPDX-License-Identifier: Apache-2.0
#include "agent/remote.h"

#include <cpuid.h>
#include <errno.h>
#include <elf.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "target/target.h"

#ifndef NT_X86_XSTATE
#define NT_X86_XSTATE 0x202
#endif
#define RED_ZONE_BYTES	     128
#define TIMER_NS	     5000000
#define SYSCALL_STOP	     (SIGTRAP | 0x80) /* PTRACE_O_TRACESYSGOOD */
#define XSTATE_MAGIC1	     0x46505853u
#define XSTATE_MAGIC2	     0x46505845u
#define XSTATE_SW_OFF	     464 /* offset of struct sw_bytes in the legacy area */
#define XSTATE_HEADER_OFF    512
#define XSTATE_MIN_BYTES     576
#define XSTATE_TILE_DATA     18 /* AMX: the kernel allocates it when a thread first uses it */
#define UC_FP_XSTATE	     1
#define UC_SIGCONTEXT_SS     2
#define UC_STRICT_RESTORE_SS 4
#define EFLAGS_DF	     0x400
#define EFLAGS_RF	     0x10000
#define EFLAGS_TF	     0x100

/* Results inside the kernel when a signal has interrupted a call. */
#define ERESTARTSYS	      512
#define ERESTARTNOINTR	      513
#define ERESTARTNOHAND	      514
#define ERESTART_RESTARTBLOCK 516

/*
 * Neither SS_ONSTACK nor SS_DISABLE. rt_sigreturn fails to set an alternate signal stack with this value and
 * ignores the failure. So the thread's own alternate stack, which ptrace cannot read, stays as it is.
 */
#define NO_ALTSTACK 3

/* Signals of faults stay unblocked. Otherwise the kernel would reset their handlers and kill the process. */
#define FAULTS                                                                                                         \
	(1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1) | 1ull << (SIGILL - 1) | 1ull << (SIGFPE - 1) |                  \
	 1ull << (SIGTRAP - 1) | 1ull << (SIGSYS - 1))

/* struct sigcontext_64 of the kernel. */
struct context {
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15, di, si, bp, bx, dx, ax, cx, sp, ip, flags;
	uint16_t cs, gs, fs, ss;
	uint64_t err, trapno, oldmask, cr2, fpstate, reserved[8];
};

/* struct rt_sigframe of the kernel. */
struct frame {
	uint64_t pretcode;
	uint64_t uc_flags, uc_link;
	uint64_t stack_sp;
	uint32_t stack_flags, stack_pad;
	uint64_t stack_size;
	struct context c;
	uint64_t mask;
	uint8_t info[128];
};
_Static_assert(sizeof(struct frame) == 440, "as the kernel lays it out");

/* struct _fpx_sw_bytes of the kernel. */
struct sw_bytes {
	uint32_t magic1, extended_size;
	uint64_t xfeatures;
	uint32_t xstate_size, pad[7];
};
_Static_assert(sizeof(struct sw_bytes) == 48, "as the kernel lays it out");

/* ---- waiting */

static void on_timer(int sig)
{
}

int remote_timer_start(struct remote_timer *t)
{
	struct itimerspec every = {{0, TIMER_NS}, {0, TIMER_NS}};
	struct sigaction sa = {.sa_handler = on_timer}; /* no SA_RESTART, so that it interrupts waitpid() */
	struct sigevent ev = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMAX};
	sigset_t blocked;
	timer_t id;

	_Static_assert(sizeof(sigset_t) <= sizeof(t->old_mask), "it is kept there");
	sigfillset(&blocked);
	pthread_sigmask(SIG_SETMASK, &blocked, (sigset_t *)t->old_mask);
	ev._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	if (sigaction(SIGRTMAX, &sa, NULL) || timer_create(CLOCK_MONOTONIC, &ev, &id))
		return -errno;
	t->id = id;
	t->made = true;
	return timer_settime(id, 0, &every, NULL) ? -errno : 0;
}

void remote_timer_stop(struct remote_timer *t)
{
	if (t->made)
		timer_delete(t->id);
	pthread_sigmask(SIG_SETMASK, (sigset_t *)t->old_mask, NULL);
}

/*
 * Waits for the next stop of the thread. Returns 0, -ESRCH or -ETIMEDOUT. A timer's signal that comes before the wait
 * is no harm, because there will be another one.
 */
static int wait_stop(const struct remote *r, int *status)
{
	sigset_t ticks;
	pid_t got;

	sigemptyset(&ticks);
	sigaddset(&ticks, SIGRTMAX);
	pthread_sigmask(SIG_UNBLOCK, &ticks, NULL);
	do
		got = waitpid(r->tid, status, __WALL);
	while (got < 0 && errno == EINTR && clock_ns(CLOCK_MONOTONIC) <= r->deadline_ns);
	pthread_sigmask(SIG_BLOCK, &ticks, NULL); /* leaves errno as it is */
	if (got == r->tid)
		return WIFSTOPPED(*status) ? 0 : -ESRCH;
	return got < 0 && errno == EINTR ? -ETIMEDOUT : -ESRCH;
}

/* Returns why a request failed. ESRCH means that the thread was killed. */
static int refused(void)
{
	return errno == ESRCH ? -ESRCH : -EIO;
}

static int resume(const struct remote *r, int how, int sig)
{
	return ptrace(how, r->tid, NULL, (void *)(intptr_t)sig) ? refused() : 0;
}

static bool is_hit(const struct remote *r)
{
	siginfo_t info;

	if (ptrace(PTRACE_GETSIGINFO, r->tid, NULL, &info))
		return false;
	/* The kernel is the sender of a BPF program's signal. */
	if (!r->own_signal)
		return info.si_code == SI_KERNEL;
	/* In a pid namespace inside ours, the id of this process as a sender is 0. */
	return info.si_code == SI_TKILL && (info.si_pid == getpid() || !info.si_pid);
}

int remote_wait_hit(struct remote *r)
{
	int status, err, how, sig;

	for (;;) {
		err = wait_stop(r, &status);
		if (err)
			return err;
		sig = WSTOPSIG(status);
		how = PTRACE_CONT;
		if (status >> 16 == PTRACE_EVENT_STOP) {
			/* SIGSTOP stopped the process: the thread stays stopped until SIGCONT. */
			if (sig != SIGTRAP)
				how = PTRACE_LISTEN;
			sig = 0;
		} else if (status >> 16 || sig == SYSCALL_STOP) {
			sig = 0;
		} else if (sig == r->signal && is_hit(r)) {
			return 0;
		}
		err = resume(r, how, sig);
		if (err)
			return err;
	}
}

/* ---- the signal frame */

static int remote_write(const struct remote *r, uint64_t to, const void *from, size_t n)
{
	struct iovec local = {(void *)(uintptr_t)from, n}, remote = {(void *)(uintptr_t)to, n};
	ssize_t done = process_vm_writev(r->pid, &local, 1, &remote, 1, 0);

	return done == (ssize_t)n ? 0 : done < 0 ? -errno : -EFAULT;
}

/* Returns the bytes that these features take in the standard format of XSAVE. */
static size_t xsave_bytes(uint64_t features)
{
	unsigned size, off, c, d, i;
	size_t end = XSTATE_MIN_BYTES;

	for (i = 2; i < 63; i++) {
		if (!(features >> i & 1))
			continue;
		__cpuid_count(0xd, i, size, off, c, d);
		if (off + size > end)
			end = off + size;
	}
	return end;
}

/*
 * Turns the registers that ptrace returned into the area of a signal handler's frame. The kernel accepts the area
 * only if it is not larger than the thread's own, which has tile data only after the thread has used it.
 */
static int frame_xstate(const struct remote *r, uint8_t *area, size_t *bytes)
{
	struct sw_bytes sw = {.magic1 = XSTATE_MAGIC1};
	uint32_t magic2 = XSTATE_MAGIC2;
	uint64_t in_use;

	memcpy(area, r->xstate, r->xstate_bytes);
	memcpy(&sw.xfeatures, area + XSTATE_SW_OFF, sizeof(sw.xfeatures));
	memcpy(&in_use, area + XSTATE_HEADER_OFF, sizeof(in_use));
	if (!(in_use >> XSTATE_TILE_DATA & 1))
		sw.xfeatures &= ~(1ull << XSTATE_TILE_DATA);
	sw.xstate_size = (uint32_t)xsave_bytes(sw.xfeatures);
	sw.extended_size = sw.xstate_size + (uint32_t)sizeof(magic2);
	if (sw.xstate_size > r->xstate_bytes)
		return -ENOTSUP;
	memcpy(area + XSTATE_SW_OFF, &sw, sizeof(sw));
	memcpy(area + sw.xstate_size, &magic2, sizeof(magic2));
	*bytes = sw.extended_size;
	return 0;
}

static void fill_frame(const struct remote *r, uint64_t fpstate, struct frame *f)
{
	const struct user_regs_struct *u = &r->regs;

	*f = (struct frame){
		.pretcode = r->restorer,
		.uc_flags = UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS,
		.stack_flags = NO_ALTSTACK,
		.mask = r->mask,
		.c = {.r8 = u->r8,
		      .r9 = u->r9,
		      .r10 = u->r10,
		      .r11 = u->r11,
		      .r12 = u->r12,
		      .r13 = u->r13,
		      .r14 = u->r14,
		      .r15 = u->r15,
		      .di = u->rdi,
		      .si = u->rsi,
		      .bp = u->rbp,
		      .bx = u->rbx,
		      .dx = u->rdx,
		      .ax = u->rax,
		      .cx = u->rcx,
		      .sp = u->rsp,
		      .ip = u->rip,
		      .flags = u->eflags,
		      .cs = (uint16_t)u->cs,
		      .ss = (uint16_t)u->ss,
		      .fpstate = fpstate},
	};
}

static int put_frame(struct remote *r)
{
	uint8_t area[REMOTE_XSTATE_MAX + 64];
	uint64_t fpstate;
	struct frame f;
	size_t bytes;
	int err = frame_xstate(r, area, &bytes);

	if (err)
		return err;
	r->text = (r->regs.rsp - RED_ZONE_BYTES - REMOTE_TEXT_BYTES) & ~15ull;
	fpstate = (r->text - bytes) & ~63ull;
	/* At a function's entry, rsp is 8 below a multiple of 16: the return address is there. */
	r->frame = ((fpstate - sizeof(f)) & ~15ull) - 8;
	fill_frame(r, fpstate, &f);
	err = remote_write(r, fpstate, area, bytes);
	return err ? err : remote_write(r, r->frame, &f, sizeof(f));
}

int remote_begin(struct remote *r, struct err *e)
{
	struct iovec xstate = {r->xstate, sizeof(r->xstate)};
	int err = 0;

	r->resume_with = r->signal;
	if (ptrace(PTRACE_GETREGS, r->tid, NULL, &r->regs) ||
	    ptrace(PTRACE_GETREGSET, r->tid, (void *)NT_X86_XSTATE, &xstate) ||
	    ptrace(PTRACE_GETSIGMASK, r->tid, (void *)sizeof(r->mask), &r->mask))
		err = -errno;
	r->xstate_bytes = xstate.iov_len;
	if (!err && (r->xstate_bytes < XSTATE_MIN_BYTES || r->xstate_bytes >= sizeof(r->xstate)))
		err = -ENOTSUP;
	if (!err)
		return 0;
	return err_set(e, err == -ESRCH ? ERR_TARGET : ERR_RUNTIME, err, "cannot read the registers of thread %d: %s",
		       r->tid, strerror(-err));
}

bool remote_begin_anew(struct remote *r, int32_t syscall_nr)
{
	static const int64_t interrupted[] = {-EINTR, -ERESTARTSYS, -ERESTARTNOINTR, -ERESTARTNOHAND,
					      -ERESTART_RESTARTBLOCK};
	static const unsigned char instruction[] = {0x0f, 0x05}; /* the instruction `syscall` */
	unsigned char before[sizeof(instruction)];
	struct iovec local = {before, sizeof(before)},
		     remote = {(void *)(uintptr_t)(r->regs.rip - sizeof(before)), sizeof(before)};
	unsigned i;

	for (i = 0; i < sizeof(interrupted) / sizeof(interrupted[0]); i++)
		if ((int64_t)r->regs.rax == interrupted[i])
			break;
	if (i == sizeof(interrupted) / sizeof(interrupted[0]) || (int64_t)r->regs.orig_rax != syscall_nr ||
	    process_vm_readv(r->pid, &local, 1, &remote, 1, 0) != sizeof(before) ||
	    memcmp(before, instruction, sizeof(before)))
		return false;
	r->interrupted = r->regs;
	r->anew = true;
	r->regs.rip -= sizeof(before);
	r->regs.rax = r->regs.orig_rax;
	r->regs.orig_rax = (unsigned long long)-1;
	return !ptrace(PTRACE_SETREGS, r->tid, NULL, &r->regs);
}

int remote_put_frame(struct remote *r, struct err *e)
{
	int err = put_frame(r);

	if (!err)
		return 0;
	return err_set(e, err == -ESRCH ? ERR_TARGET : ERR_RUNTIME, err,
		       "cannot save the registers of thread %d on its stack: %s", r->tid, strerror(-err));
}

int remote_put_text(struct remote *r, const char *text)
{
	size_t n = strlen(text) + 1;

	return n > REMOTE_TEXT_BYTES ? -ENAMETOOLONG : remote_write(r, r->text, text, n);
}

/* ---- the call */

static bool is_back(const struct remote *r, const struct user_regs_struct *now)
{
	struct user_regs_struct a = *now, b = r->regs;

	a.orig_rax = b.orig_rax; /* rt_sigreturn does not restore it */
	a.eflags &= ~(unsigned long long)(EFLAGS_RF | EFLAGS_TF);
	b.eflags &= ~(unsigned long long)(EFLAGS_RF | EFLAGS_TF);
	return !memcmp(&a, &b, sizeof(a));
}

/* Restores the registers after a call that did not end by itself. */
static void restore(struct remote *r)
{
	struct iovec xstate = {r->xstate, r->xstate_bytes};

	ptrace(PTRACE_SETREGSET, r->tid, (void *)NT_X86_XSTATE, &xstate);
	ptrace(PTRACE_SETREGS, r->tid, NULL, &r->regs);
	ptrace(PTRACE_SETSIGMASK, r->tid, (void *)sizeof(r->mask), &r->mask);
	r->resume_with = 0;
	r->away = false;
}

/*
 * Starts the call. The registers are set before the signal mask. If mxbpf is killed in between, the call can be
 * interrupted by signals, but the thread does not block them for ever.
 */
static int start_call(struct remote *r, uint64_t fn, const uint64_t args[4], int how)
{
	struct user_regs_struct u = r->regs;
	uint64_t mask = ~FAULTS;
	int err;

	u.rip = fn;
	u.rsp = r->frame;
	u.rdi = args[0];
	u.rsi = args[1];
	u.rdx = args[2];
	u.rcx = args[3];
	u.rax = 0;
	u.orig_rax = (unsigned long long)-1;
	u.eflags &= ~(unsigned long long)(EFLAGS_DF | EFLAGS_RF | EFLAGS_TF);
	if (ptrace(PTRACE_SETREGS, r->tid, NULL, &u) ||
	    ptrace(PTRACE_SETSIGMASK, r->tid, (void *)sizeof(mask), &mask)) {
		err = refused();
		restore(r);
		return err;
	}
	/* The signal is blocked now, so it becomes pending, and stops the thread after rt_sigreturn. */
	r->away = true;
	return resume(r, how, r->resume_with);
}

/* Handles a signal that is not the call's end. Returns 0 if the thread goes on. */
static int on_other_signal(struct remote *r, int sig, int how)
{
	siginfo_t info = {0};

	if (FAULTS >> (sig - 1) & 1 && !ptrace(PTRACE_GETSIGINFO, r->tid, NULL, &info) && info.si_code > 0) {
		restore(r);
		return sig == SIGSYS ? -EPERM : -EFAULT;
	}
	return resume(r, how, sig);
}

/* Waits for the call's end. Returns 0 if the thread is stopped where it was before the call. */
static int finish_call(struct remote *r, int how, int syscall_nr, int64_t *result)
{
	struct user_regs_struct now;
	int status, sig, err = 0;
	unsigned stops = 0;

	while (!err) {
		err = wait_stop(r, &status);
		if (err)
			return err;
		sig = WSTOPSIG(status);
		if (status >> 16) { /* a stop of the whole process, which takes effect when the thread is let go */
			err = resume(r, how, 0);
			continue;
		}
		if (ptrace(PTRACE_GETREGS, r->tid, NULL, &now))
			return refused();
		if (sig == SYSCALL_STOP) {
			if (stops++ && (int)now.orig_rax == syscall_nr) {
				*result = (int64_t)now.rax;
				how = PTRACE_CONT;
			}
			err = resume(r, how, 0);
		} else if (is_back(r, &now)) {
			r->resume_with = sig;
			r->away = false;
			return 0;
		} else {
			err = on_other_signal(r, sig, how);
		}
	}
	return err;
}

int remote_call(struct remote *r, uint64_t fn, const uint64_t args[4], int syscall_nr, int64_t *result, struct err *e)
{
	int how = syscall_nr >= 0 ? PTRACE_SYSCALL : PTRACE_CONT;
	int err = start_call(r, fn, args, how);

	if (!err)
		err = finish_call(r, how, syscall_nr, result);
	if (!err)
		return 0;
	if (err == -ESRCH)
		return err_set(e, ERR_TARGET, err, "cannot load the agent: process %d ended meanwhile", r->pid);
	if (err == -EIO)
		return err_set(
			e, ERR_PRIVILEGE, err,
			"cannot load the agent: thread %d of process %d may not be traced any more, and continues",
			r->tid, r->pid);
	if (err == -ETIMEDOUT)
		return err_set(e, ERR_TARGET, err,
			       "cannot use the agent: thread %d of process %d has not finished loading it in time, and "
			       "continues",
			       r->tid, r->pid);
	if (err == -EPERM)
		return err_set(e, ERR_TARGET, err,
			       "cannot load the agent: a seccomp filter of process %d refused a system call that "
			       "loading needs",
			       r->pid);
	return err_set(e, ERR_TARGET, err,
		       "cannot load the agent: it crashed in thread %d of process %d, which was restored", r->tid,
		       r->pid);
}

/* ---- the end */

static uint64_t mask_in(const char *status, const char *field)
{
	const char *text = tgt_status_field(status, field);

	return text ? strtoull(text, NULL, 16) : 0;
}

/* Returns true if a signal handler runs as soon as the thread goes on. */
static bool handler_is_next(const struct remote *r)
{
	struct buf status = {0};
	uint64_t signals = 0;

	if (!tgt_peek_status(r->pid, r->tid, &status))
		signals = (mask_in(status.data, "SigPnd") | mask_in(status.data, "ShdPnd") |
			   1ull << r->resume_with >> 1) &
			  ~r->mask & mask_in(status.data, "SigCgt");
	buf_fini(&status);
	return signals;
}

/*
 * Gives a stopped thread back the registers with which its system call was interrupted. The kernel then restarts the
 * call itself, or lets it fail if a handler runs. For EINTR and ERESTART_RESTARTBLOCK it would let it fail without a
 * handler, too: the first is the call's result, and the calls of the agent have overwritten the block of the second.
 */
static void leave_to_kernel(const struct remote *r)
{
	const int64_t result = (int64_t)r->interrupted.rax;

	if ((result != -EINTR && result != -ERESTART_RESTARTBLOCK) || handler_is_next(r))
		ptrace(PTRACE_SETREGS, r->tid, NULL, &r->interrupted);
}

int remote_end(struct remote *r)
{
	/*
	 * The signal that stopped the thread is dropped. Another signal that came at the same time belongs to the
	 * thread.
	 */
	int sig = r->resume_with == r->signal ? 0 : r->resume_with;

	if (r->anew && !r->away)
		leave_to_kernel(r);
	return ptrace(PTRACE_DETACH, r->tid, NULL, (void *)(intptr_t)sig) ? -ESRCH : 0;
}
