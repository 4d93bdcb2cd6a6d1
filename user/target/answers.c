// SPDX-License-Identifier: Apache-2.0
/*
 * Whether a file can be read. A server of NFS that is down, or a FUSE file system of the target's own, need not answer,
 * and no signal, not even SIGKILL, ends the wait of a thread that has asked it. So a child process asks first.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "target/priv.h"

#define ANSWER_MS 2000
#define SHORT_MS  100 /* once FEW devices were silent, because a user can make many */
#define FEW	  4
/* A device that did not answer is not asked again for this time: a walk over all processes meets it often. */
#define SILENT_NS   60000000000ull
#define SILENT_MAX  16
#define BLOCK_BYTES 4096

static struct {
	pthread_mutex_t lock;
	struct {
		uint64_t dev, until_ns;
	} silent[SILENT_MAX];
	unsigned next;
} asked = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Returns how long to wait for a device; 0: it was silent. */
static int patience_ms(uint64_t dev)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	unsigned i, n = 0;
	bool silent = false;

	pthread_mutex_lock(&asked.lock);
	for (i = 0; i < SILENT_MAX; i++) {
		if (now >= asked.silent[i].until_ns)
			continue;
		silent |= asked.silent[i].dev == dev;
		n++;
	}
	pthread_mutex_unlock(&asked.lock);
	return silent ? 0 : n < FEW ? ANSWER_MS : SHORT_MS;
}

static void keep_silent(uint64_t dev)
{
	pthread_mutex_lock(&asked.lock);
	asked.silent[asked.next].dev = dev;
	asked.silent[asked.next].until_ns = clock_ns(CLOCK_MONOTONIC) + SILENT_NS;
	asked.next = (asked.next + 1) % SILENT_MAX;
	pthread_mutex_unlock(&asked.lock);
}

/*
 * The child. Other threads of mxbpf may have held locks, so it makes system calls only. It keeps none of mxbpf's files,
 * because it may remain when mxbpf has ended, and a probe lives as long as a file of it.
 */
static void ask(int dirfd, const char *path)
{
	char block[BLOCK_BYTES], self[32];
	struct statx st;
	int fd;

	prctl(PR_SET_NAME, "mxbpf-asks");
	if (dirfd >= 0 && dup2(dirfd, 0) < 0)
		_exit(1);
	close_range(dirfd >= 0, ~0u, 0);
	fd = openat(dirfd >= 0 ? 0 : dirfd, path, O_PATH | O_CLOEXEC);
	/* A server is asked, also if the kernel remembers the answer. */
	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &st) ||
	    !S_ISREG(st.stx_mode))
		_exit(0); /* it answers; the caller finds the reason */
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && pread(fd, block, sizeof(block), 0) > 0)
		fd = (int)pread(fd, block, sizeof(block), (off_t)(st.stx_size - (st.stx_size ? 1 : 0)));
	_exit(0);
}

static bool ends(pid_t child, int within_ms)
{
	const int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + (uint64_t)within_ms * 1000000, now;
	int n = 0;

	do {
		now = clock_ns(CLOCK_MONOTONIC);
		n = now < end_ns && pidfd >= 0 ? poll(&p, 1, (int)((end_ns - now) / 1000000) + 1) : 0;
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		kill(child, SIGKILL);
	/* Nobody waits for a child that does not end. Its parent is init when mxbpf has ended. */
	waitpid(child, NULL, n > 0 ? 0 : WNOHANG);
	if (pidfd >= 0)
		close(pidfd);
	return n > 0 || pidfd < 0; /* a lack of descriptors says nothing of the file */
}

bool tgt_answers(int dirfd, const char *path, uint64_t dev)
{
	sigset_t all, old;
	pid_t child;
	int wait_ms;
	bool answers;

	if (major(dev)) /* a disk */
		return true;
	wait_ms = patience_ms(dev);
	if (!wait_ms)
		return false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* Ctrl-C is for mxbpf, not for the child */
	child = fork();
	if (!child)
		ask(dirfd, path);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (child < 0)
		return true; /* a lack of processes says nothing of the file */
	answers = ends(child, wait_ms);
	if (!answers && dev)
		keep_silent(dev);
	return answers;
}
