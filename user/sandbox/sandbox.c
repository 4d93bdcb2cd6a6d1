// SPDX-License-Identifier: Apache-2.0
/* Compiles rows into a program of seccomp. One program does for every glibc, because rows are numbers of system calls.
 */
#include "sandbox/sandbox.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/syscall.h"

#define KNOWN_MAX 450 /* the last system call of Linux 5.17, in whose time this table was closed */
#define TELL_MAX  16  /* a call that is refused again and again is told so often */

#ifndef __has_feature
#define __has_feature(x) 0 /* gcc has macros for it */
#endif

#define AT_NR	    offsetof(struct seccomp_data, nr)
#define AT_ARCH	    offsetof(struct seccomp_data, arch)
#define ERROR(code) (SECCOMP_RET_ERRNO | (code))

/* ---- the program */

static void sandbox_add(struct buf *b, uint16_t code, uint32_t k, unsigned jt, unsigned jf)
{
	const struct sock_filter s = {code, (uint8_t)jt, (uint8_t)jf, k};

	buf_put(b, &s, sizeof(s));
}

static void add_load(struct buf *b, size_t at)
{
	sandbox_add(b, BPF_LD | BPF_W | BPF_ABS, (uint32_t)at, 0, 0);
}

static void add_return(struct buf *b, uint32_t action)
{
	sandbox_add(b, BPF_RET | BPF_K, action, 0, 0);
}

/* The accumulator has the number before and after. The upper half of an argument is no part of an int or a mask. */
static void add_row(struct buf *b, const struct sbx_row *r)
{
	unsigned i;

	if (!r->nvalues && !r->without) {
		sandbox_add(b, BPF_JMP | BPF_JEQ | BPF_K, r->nr, 0, 1);
		add_return(b, SECCOMP_RET_ALLOW);
		return;
	}
	sandbox_add(b, BPF_JMP | BPF_JEQ | BPF_K, r->nr, 0, r->nvalues ? r->nvalues + 4 : 4);
	add_load(b, offsetof(struct seccomp_data, args) + r->arg * sizeof(uint64_t));
	for (i = 0; i < r->nvalues; i++)
		sandbox_add(b, BPF_JMP | BPF_JEQ | BPF_K, r->values[i], r->nvalues - i, 0);
	if (!r->nvalues)
		sandbox_add(b, BPF_JMP | BPF_JSET | BPF_K, r->without, 1, 0);
	else
		sandbox_add(b, BPF_JMP | BPF_JA, 1, 0, 0);
	add_return(b, SECCOMP_RET_ALLOW);
	add_load(b, AT_NR);
}

static void build(struct buf *b, unsigned needs, uint32_t refuse)
{
	const struct sbx_never *n;
	const struct sbx_row *r;

	add_load(b, AT_ARCH);
	sandbox_add(b, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
	add_return(b, SECCOMP_RET_KILL_PROCESS); /* a call of 32-bit code */
	add_load(b, AT_NR);
	for (r = sbx_rows; r->name; r++)
		if (!(r->need & ~needs))
			add_row(b, r);
	for (n = sbx_never; n->name; n++) {
		sandbox_add(b, BPF_JMP | BPF_JEQ | BPF_K, n->nr, 0, 1);
		add_return(b, SECCOMP_RET_KILL_PROCESS);
	}
	/* The C library falls back on clone(), whose flags can be seen, and on older calls where there is a newer one.
	 */
	sandbox_add(b, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 1, 0);
	sandbox_add(b, BPF_JMP | BPF_JGT | BPF_K, KNOWN_MAX, 0, 1);
	add_return(b, ERROR(ENOSYS));
	add_return(b, refuse);
}

/* ---- a call that is refused, with `tell` */

/* Runs in place of the call, which returns EPERM. Uses only what a signal handler may. */
static void on_refused(int sig, siginfo_t *info, void *context)
{
	static int told;
	ucontext_t *u = context;
	const char *name = syscall_name(info->si_syscall);
	char line[96] = "mxbpf: seccomp refused ";
	const int kept = errno;

	u->uc_mcontext.gregs[REG_RAX] = -EPERM;
	if (__atomic_fetch_add(&told, 1, __ATOMIC_RELAXED) >= TELL_MAX)
		return;
	strncat(line, name ? name : "an unknown system call", 40);
	strcat(line, "()\n");
	if (write(STDERR_FILENO, line, strlen(line)) < 0)
		errno = kept;
	errno = kept;
}

static int tell_refused(void)
{
	struct sigaction sa = {.sa_sigaction = on_refused, .sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER};

	return sigaction(SIGSYS, &sa, NULL) ? -errno : 0;
}

/* ---- */

bool sbx_disturbs(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) ||               \
	__has_feature(thread_sanitizer)
	return true;
#else
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "vgpreload");
#endif
}

/* Without CAP_SYS_ADMIN only a process that can gain no privileges may have a filter. mxbpf gains none. */
static int install(const struct buf *b)
{
	const struct sock_fprog program = {(unsigned short)buf_count(b, struct sock_filter), (void *)b->data};
	long err;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	err = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
	/* A filter of systemd or of a container may allow only the older call, which knows but this thread. */
	if (err < 0 && errno == EPERM && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 0;
	return err < 0 ? -errno : err ? -EAGAIN : 0; /* a number: that thread has another filter */
}

int sbx_enter(unsigned needs, bool tell, struct err *e)
{
	struct buf b = {0};
	int err = tell ? tell_refused() : 0;

	if (!err) {
		build(&b, needs, tell ? SECCOMP_RET_TRAP : ERROR(EPERM));
		err = b.lacks ? -ENOMEM : install(&b);
	}
	buf_fini(&b);
	return err ? err_set(e, ERR_RUNTIME, err, "cannot limit mxbpf by seccomp: %s", strerror(-err)) : 0;
}
