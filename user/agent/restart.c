// SPDX-License-Identifier: Apache-2.0
#include "agent/restart.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define LONGER_MS  1000 /* delay of a restarted wait that is accepted */
#define NS_PER_MS  1000000
#define MS_PER_SEC 1000

/* Major numbers of devices that are terminals. */
#define TTY_MAJOR     4
#define TTYAUX_MAJOR  5
#define PTS_MAJOR     136
#define PTS_MAJOR_END 144

/*
 * The rule by which a waiting system call can be interrupted without harm. It depends on what the call waits for.
 *
 * Calls with a time limit start their whole wait again. For UPDATED calls, the kernel writes the remaining time to the
 * program's memory before it returns.
 *
 * The kernel restarts the other calls by itself, with the arguments that they had. A call that has already moved a part
 * of the data is not restarted: it returns the part. So calls that write are not in the table, nor is one that receives
 * several messages. A call on a socket with a time limit of its own fails with EINTR instead.
 */
enum rule {
	MILLISECONDS,
	TIMESPEC,
	UPDATED,
	SLEEP,
	FUTEX,
	ALWAYS,
	READ,	 /* from the file in the first argument */
	READV,	 /* from the pipe or socket in the first argument */
	RECEIVE, /* from the socket in the first argument */
	SOCKET,	 /* on the socket in the first argument */
};

static const struct row {
	int nr;
	enum rule rule;
	unsigned arg; /* index of the argument with the time limit, or with the flags of a RECEIVE call */
	bool may_fail;
} rows[] = {
	{SYS_poll, MILLISECONDS, 2, false},
	{SYS_epoll_wait, MILLISECONDS, 3, true},
	{SYS_epoll_pwait, MILLISECONDS, 3, true},
	{SYS_epoll_pwait2, TIMESPEC, 3, true},
	{SYS_ppoll, UPDATED, 2, false},
	{SYS_select, UPDATED, 4, false},
	{SYS_pselect6, UPDATED, 4, false},
	{SYS_nanosleep, TIMESPEC, 0, false},
	{SYS_clock_nanosleep, SLEEP, 2, false},
	{SYS_futex, FUTEX, 3, false},
	{SYS_read, READ, 0, true},
	{SYS_readv, READV, 0, true},
	{SYS_recvfrom, RECEIVE, 3, true},
	{SYS_recvmsg, RECEIVE, 2, true},
	{SYS_accept, SOCKET, 0, true},
	{SYS_accept4, SOCKET, 0, true},
	{SYS_connect, SOCKET, 0, true},
	{SYS_wait4, ALWAYS, 0, false},
	{SYS_waitid, ALWAYS, 0, false},
	{SYS_pause, ALWAYS, 0, false},
};

static const struct row *find_row(int32_t nr)
{
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].nr == nr)
			return &rows[i];
	return NULL;
}

/* ---- time limits */

/* Returns true if the time limit at an address of the process is short. NULL means no limit. */
static bool is_short(pid_t pid, uint64_t at)
{
	struct timespec ts;
	struct iovec local = {&ts, sizeof(ts)}, remote = {(void *)(uintptr_t)at, sizeof(ts)};

	if (!at)
		return true;
	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == sizeof(ts) && ts.tv_sec >= 0 &&
	       ts.tv_sec <= LONGER_MS / MS_PER_SEC && ts.tv_sec * MS_PER_SEC + ts.tv_nsec / NS_PER_MS <= LONGER_MS;
}

static bool futex_is_safe(pid_t pid, uint64_t op, uint64_t limit)
{
	switch (op & FUTEX_CMD_MASK) {
	case FUTEX_WAIT: /* takes a duration; FUTEX_WAIT_BITSET takes a point in time */
		return is_short(pid, limit);
	case FUTEX_WAIT_BITSET:
		return true;
	}
	return false;
}

/* ---- files */

/*
 * Returns a copy of the thread's descriptor, or -1. The copy must be of the file that was looked at, because threads
 * may have descriptors of their own. Only for files whose close() does nothing that could wait.
 */
static int copy_fd(pid_t pid, int fd, const struct statx *want)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	int copy = pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	struct statx st;

	if (pidfd >= 0)
		close(pidfd);
	if (copy < 0)
		return -1;
	if (!statx(copy, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &st) &&
	    st.stx_ino == want->stx_ino && st.stx_dev_major == want->stx_dev_major &&
	    st.stx_dev_minor == want->stx_dev_minor)
		return copy;
	close(copy);
	return -1;
}

static bool option_is(int fd, int name, int want)
{
	int value = -1;
	socklen_t n = sizeof(value);

	return !getsockopt(fd, SOL_SOCKET, name, &value, &n) && value == want;
}

static bool has_no_limit(int fd, int name)
{
	struct timeval tv = {.tv_sec = -1};
	socklen_t n = sizeof(tv);

	return !getsockopt(fd, SOL_SOCKET, name, &tv, &n) && !tv.tv_sec && !tv.tv_usec;
}

/* Only these kinds of sockets are known to restart. */
static bool socket_is_plain(int fd)
{
	return option_is(fd, SO_DOMAIN, AF_UNIX) ||
	       ((option_is(fd, SO_DOMAIN, AF_INET) || option_is(fd, SO_DOMAIN, AF_INET6)) &&
		(option_is(fd, SO_PROTOCOL, IPPROTO_TCP) || option_is(fd, SO_PROTOCOL, IPPROTO_UDP)));
}

/* With SO_RCVLOWAT, an interrupted call may have taken a part of its data. */
static bool socket_is_safe(int fd)
{
	return socket_is_plain(fd) && has_no_limit(fd, SO_RCVTIMEO) && has_no_limit(fd, SO_SNDTIMEO) &&
	       option_is(fd, SO_RCVLOWAT, 1);
}

/* In line mode, a terminal returns nothing before the line is complete. In other modes a read may return a part. */
static bool terminal_is_safe(int fd)
{
	struct termios t;

	return !tcgetattr(fd, &t) && t.c_lflag & ICANON;
}

static bool is_terminal(const struct statx *st)
{
	return st->stx_rdev_major == TTY_MAJOR || st->stx_rdev_major == TTYAUX_MAJOR ||
	       (st->stx_rdev_major >= PTS_MAJOR && st->stx_rdev_major < PTS_MAJOR_END);
}

static bool copy_is_safe(pid_t pid, int fd, const struct statx *st, bool (*is_safe)(int fd))
{
	int copy = copy_fd(pid, fd, st);
	bool safe = copy >= 0 && is_safe(copy);

	if (copy >= 0)
		close(copy);
	return safe;
}

/*
 * Returns true for an eventfd, a timerfd or inotify. One read() of these returns everything or nothing, but readv()
 * reads several times.
 */
static bool is_counter(const char *link)
{
	static const char *const names[] = {"anon_inode:[eventfd]", "anon_inode:[timerfd]", "anon_inode:inotify"};
	char to[64];
	ssize_t n = readlink(link, to, sizeof(to) - 1);
	size_t i;

	to[n > 0 ? n : 0] = '\0';
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(to, names[i]))
			return true;
	return false;
}

/* DONT_SYNC: the file may be on a file system that never answers, so the kernel uses only what it knows already. */
static bool file_is_safe(pid_t pid, pid_t tid, int fd, enum rule rule)
{
	struct statx st;
	char link[64];

	snprintf(link, sizeof(link), "/proc/%d/task/%d/fd/%d", pid, tid, fd);
	if (rule == READ && is_counter(link))
		return true;
	if (statx(AT_FDCWD, link, AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &st))
		return false;
	if (S_ISSOCK(st.stx_mode))
		return copy_is_safe(pid, fd, &st, socket_is_safe);
	if (S_ISFIFO(st.stx_mode))
		return rule == READ || rule == READV;
	return rule == READ && S_ISCHR(st.stx_mode) && is_terminal(&st) && copy_is_safe(pid, fd, &st, terminal_is_safe);
}

/* ---- the table */

bool restart_is_safe(pid_t pid, pid_t tid, int32_t syscall_nr, const uint64_t args[6])
{
	const struct row *r = find_row(syscall_nr);

	if (!r)
		return false;
	switch (r->rule) {
	case MILLISECONDS:
		return (int32_t)args[r->arg] < 0 || (int32_t)args[r->arg] <= LONGER_MS;
	case TIMESPEC:
		return is_short(pid, args[r->arg]);
	case SLEEP:
		return args[1] & TIMER_ABSTIME || is_short(pid, args[r->arg]);
	case FUTEX:
		return futex_is_safe(pid, args[1], args[r->arg]);
	case UPDATED:
	case ALWAYS:
		return true;
	case RECEIVE:
		return !(args[r->arg] & MSG_WAITALL) && file_is_safe(pid, tid, (int)args[0], RECEIVE);
	case READ:
	case READV:
	case SOCKET:
		return file_is_safe(pid, tid, (int)args[0], r->rule);
	}
	return false;
}

bool restart_may_fail(int32_t syscall_nr)
{
	const struct row *r = find_row(syscall_nr);

	return r && r->may_fail;
}
