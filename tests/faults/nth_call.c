// SPDX-License-Identifier: Apache-2.0
/*
 * usage: nth_call FILE CALLS FAULT N COMMAND [ARGUMENT...]
 * Runs a command in which one system call goes wrong.
 *   CALLS  names joined by commas, or "all"
 *   FAULT  the name of an error with which the call fails without being made, or KILL: the command is killed instead
 *   N      at the N-th of these calls, counted over all threads and children; "N+": at the N-th and all later ones;
 *          0: never; /PATH: at each one while this file is there
 * The first line of FILE gets the number of these calls and the name of the one that went wrong, or "-". The other
 * lines get the number of each. Returns the command's status, or 128 + signal. Returns 125 if a process that the
 * command started outlives it by more than ten seconds.
 *
 * The kernel hands over each call by seccomp. Unlike strace this leaves ptrace to the command, and costs microseconds.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALL(name)                                                                                                     \
	{                                                                                                              \
#name, SYS_##name                                                                                      \
	}
#define ERROR(name)                                                                                                    \
	{                                                                                                              \
#name, name                                                                                            \
	}
#define N_OF(table) (sizeof(table) / sizeof((table)[0]))
#define LEFT_MS	    10000
#define CALLS_MAX   1024

struct word {
	const char *name;
	int number;
};

static const struct word calls[] = {
	CALL(bpf),
	CALL(capget),
	CALL(clock_adjtime),
	CALL(clone),
	CALL(clone3),
	CALL(close),
	CALL(connect),
	CALL(dup3),
	CALL(epoll_create1),
	CALL(epoll_ctl),
	CALL(epoll_wait),
	CALL(eventfd2),
	CALL(execve),
	CALL(faccessat2),
	CALL(fallocate),
	CALL(fchmod),
	CALL(fchown),
	CALL(fcntl),
	CALL(fdatasync),
	CALL(flock),
	CALL(fork),
	CALL(fstat),
	CALL(fstatfs),
	CALL(fsync),
	CALL(ftruncate),
	CALL(futex),
	CALL(getdents64),
	CALL(getpid),
	CALL(getrandom),
	CALL(ioctl),
	CALL(kill),
	CALL(kcmp),
	CALL(linkat),
	CALL(lseek),
	CALL(madvise),
	CALL(membarrier),
	CALL(memfd_create),
	CALL(mkdirat),
	CALL(mmap),
	CALL(mprotect),
	CALL(mremap),
	CALL(munmap),
	CALL(newfstatat),
	CALL(open),
	CALL(openat),
	CALL(openat2),
	CALL(perf_event_open),
	CALL(pidfd_getfd),
	CALL(pidfd_open),
	CALL(pidfd_send_signal),
	CALL(pipe2),
	CALL(poll),
	CALL(ppoll),
	CALL(prctl),
	CALL(pread64),
	CALL(prlimit64),
	CALL(process_vm_readv),
	CALL(process_vm_writev),
	CALL(ptrace),
	CALL(pwrite64),
	CALL(read),
	CALL(readlink),
	CALL(readlinkat),
	CALL(rename),
	CALL(renameat),
	CALL(renameat2),
	CALL(rt_sigaction),
	CALL(rt_sigprocmask),
	CALL(sched_getaffinity),
	CALL(sched_setaffinity),
	CALL(sendmsg),
	CALL(sendto),
	CALL(setns),
	CALL(signalfd4),
	CALL(socket),
	CALL(socketpair),
	CALL(statx),
	CALL(sysinfo),
	CALL(tgkill),
	CALL(timerfd_create),
	CALL(timerfd_settime),
	CALL(uname),
	CALL(unlinkat),
	CALL(unshare),
	CALL(wait4),
	CALL(waitid),
	CALL(write),
	CALL(writev),
};

static const struct word errors[] = {
	ERROR(EACCES), ERROR(EAGAIN), ERROR(EBADF),  ERROR(EBUSY),  ERROR(EDQUOT), ERROR(EFAULT), ERROR(EINTR),
	ERROR(EINVAL), ERROR(EIO),    ERROR(EMFILE), ERROR(ENFILE), ERROR(ENODEV), ERROR(ENOENT), ERROR(ENOMEM),
	ERROR(ENOSPC), ERROR(ENOSYS), ERROR(EPERM),  ERROR(ESRCH),  {"KILL", 0},
};

/* Shared with the child until it executes the command: the number of the descriptor of its filter, 0 before, or -errno.
 */
static volatile int *shared;

static void die(const char *what)
{
	fprintf(stderr, "nth_call: %s: %s\n", what, strerror(errno));
	exit(126);
}

static int number_of(const struct word *table, size_t n, const char *name)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!strcmp(table[i].name, name))
			return table[i].number;
	errno = EINVAL;
	die(name);
	return -1;
}

static const char *name_of(int number)
{
	static char other[32];
	size_t i;

	for (i = 0; i < N_OF(calls); i++)
		if (calls[i].number == number)
			return calls[i].name;
	snprintf(other, sizeof(other), "call_%d", number);
	return other;
}

/* "all" but what a process does when it returns from a signal handler or ends. */
static size_t make_filter(struct sock_filter *f, char *names)
{
	const bool all = !strcmp(names, "all");
	size_t n = 0;
	char *name;

	f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	if (all)
		names = strdup("rt_sigreturn,exit,exit_group,restart_syscall");
	for (name = strtok(names, ","); name; name = strtok(NULL, ",")) {
		const int nr = !all			       ? number_of(calls, N_OF(calls), name)
			       : !strcmp(name, "rt_sigreturn") ? SYS_rt_sigreturn
			       : !strcmp(name, "exit")	       ? SYS_exit
			       : !strcmp(name, "exit_group")   ? SYS_exit_group
							       : SYS_restart_syscall;

		f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)nr, 0, 1);
		f[n++] =
			(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, all ? SECCOMP_RET_ALLOW : SECCOMP_RET_USER_NOTIF);
	}
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, all ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW);
	return n;
}

/* The parent takes the filter's descriptor before the command begins, because exec closes it. */
static void be_command(const struct sock_filter *filter, size_t n, char **argv)
{
	struct sock_fprog program = {(unsigned short)n, (struct sock_filter *)filter};
	long fd;

	fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		     SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &program);
	*shared = fd < 0 ? -errno : (int)fd;
	while (*shared)
		;
	execvp(argv[0], argv);
	die(argv[0]);
}

static int take_filter(pid_t pid)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0), fd;

	while (!*shared)
		;
	errno = *shared < 0 ? -*shared : 0;
	fd = *shared < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, *shared, 0);
	if (fd < 0)
		die("seccomp");
	close(pidfd);
	*shared = 0;
	return fd;
}

struct fault {
	int error; /* 0: SIGKILL */
	unsigned long at;
	bool from_there;
	const char *while_there; /* a file, or NULL */
	unsigned long seen, seen_of[CALLS_MAX];
	int hit; /* the system call, or -1 */
};

static void answer(int fd, struct fault *f, pid_t pid)
{
	struct seccomp_notif call = {0};
	struct seccomp_notif_resp reply = {0};

	if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &call))
		return; /* a signal has ended the call */
	f->seen++;
	f->seen_of[call.data.nr & (CALLS_MAX - 1)]++;
	reply.id = call.id;
	if ((f->at && (f->seen == f->at || (f->from_there && f->seen > f->at))) ||
	    (f->while_there && !access(f->while_there, F_OK))) {
		f->hit = f->hit < 0 ? call.data.nr : f->hit;
		reply.error = -f->error;
		if (!f->error)
			kill(pid, SIGKILL);
	}
	if (!reply.error)
		reply.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &reply);
}

/* Returns when no process has the filter any more. Children of a command that has ended become this process's. */
static int watch(int fd, struct fault *f, pid_t pid)
{
	struct pollfd p = {fd, POLLIN, 0};
	int status = 0, one, waited = 0;
	bool ended = false;
	pid_t who;

	for (;;) {
		const int n = poll(&p, 1, 20);

		if (n > 0 && p.revents & POLLIN)
			answer(fd, f, pid);
		else
			while ((who = waitpid(-1, &one, WNOHANG)) > 0) {
				status = who == pid ? one : status;
				ended = ended || who == pid;
			}
		waited += ended && !n ? 20 : 0;
		if (ended && n > 0 && p.revents & POLLHUP)
			return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
		if (waited > LEFT_MS)
			return 125;
	}
}

int main(int argc, char **argv)
{
	struct sock_filter filter[2 * N_OF(calls) + 16];
	struct fault f = {.hit = -1};
	size_t n;
	pid_t pid;
	char *end;
	int status;
	FILE *out;

	if (argc < 6) {
		fprintf(stderr, "usage: nth_call FILE CALLS FAULT N[+]|/PATH COMMAND [ARGUMENT...]\n");
		return 126;
	}
	f.error = number_of(errors, N_OF(errors), argv[3]);
	f.at = strtoul(argv[4], &end, 10);
	f.from_there = *end == '+';
	f.while_there = *end == '/' ? end : NULL;
	n = make_filter(filter, argv[2]);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid = fork();
	if (!pid)
		be_command(filter, n, argv + 5);
	status = watch(take_filter(pid), &f, pid);
	out = fopen(argv[1], "w");
	if (!out)
		die(argv[1]);
	fprintf(out, "%lu %s\n", f.seen, f.hit < 0 ? "-" : name_of(f.hit));
	for (n = 0; n < CALLS_MAX; n++)
		if (f.seen_of[n])
			fprintf(out, "%s %lu\n", name_of((int)n), f.seen_of[n]);
	fclose(out);
	return status;
}
