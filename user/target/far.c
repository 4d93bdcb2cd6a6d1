// SPDX-License-Identifier: Apache-2.0
#include "target/far.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/open_in.h"

#define ANSWER_MS 2000
#define SHORT_MS  100 /* once FEW devices were silent, because a user can make many */
#define FEW	  4
/* A device that did not answer is not asked again for this time: a walk over all processes meets it often. */
#define SILENT_NS   60000000000ull
#define SILENT_MAX  16
#define BLOCK_BYTES 4096
#define PART_BYTES  (64u << 10) /* a message of a socket has 200 KiB at most */
#define SLOTS	    1024
#define LEFT_MAX    64 /* children that were killed and wait for a server: SHORT_MS each, so they are few */
#define SOCKET	    0  /* the child's files */

#ifndef ZFS_SUPER_MAGIC
#define ZFS_SUPER_MAGIC 0x2fc12fc1
#endif
#ifndef BCACHEFS_SUPER_MAGIC
#define BCACHEFS_SUPER_MAGIC 0xca451a4e
#endif

enum what { OPEN, READ, CLOSE, MEMORY };

struct question {
	uint32_t what, slot, bytes;
	pid_t pid;
	uint64_t at;
	char name[PATH_MAX]; /* only as much as it has is sent */
};

struct answer {
	int64_t got;
	bool near;
	uint64_t dev, ino, size_bytes;
	char bytes[PART_BYTES];
};

#define QUESTION_HEAD offsetof(struct question, name)
#define ANSWER_HEAD   offsetof(struct answer, bytes)

/* ---- devices that did not answer */

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
		silent |= dev && asked.silent[i].dev == dev;
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

/* ---- messages, which may have a descriptor */

union passed {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int))];
};

static ssize_t far_put(int socket, const void *head, size_t n, const void *rest, size_t nrest, int fd)
{
	struct iovec parts[2] = {{(void *)head, n}, {(void *)rest, nrest}};
	union passed passed = {.bytes = {0}};
	struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};

	if (fd >= 0) {
		m.msg_control = passed.bytes;
		m.msg_controllen = sizeof(passed.bytes);
		passed.head = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
		memcpy(CMSG_DATA(&passed.head), &fd, sizeof(fd));
	}
	return sendmsg(socket, &m, MSG_NOSIGNAL);
}

static ssize_t get(int socket, void *to, size_t n, int *fd, int flags)
{
	struct iovec part = {to, n};
	union passed passed = {.bytes = {0}};
	struct msghdr m = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = passed.bytes, .msg_controllen = sizeof(passed)};
	ssize_t got;

	do
		got = recvmsg(socket, &m, MSG_CMSG_CLOEXEC | flags);
	while (got < 0 && errno == EINTR);
	*fd = -1;
	if (got >= 0 && CMSG_FIRSTHDR(&m))
		memcpy(fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(*fd));
	return got;
}

/* ---- the child. Other threads of mxbpf may have held locks, so it makes system calls only. */

static struct question heard;
static struct answer said;
static int slots[SLOTS]; /* 1 + the descriptor */

/* Returns true for file systems that are no server's. An overlay may lie over one, so one block is read of it. */
static bool is_near(int fd)
{
	static const uint32_t types[] = {TMPFS_MAGIC,	  RAMFS_MAGIC,	  BTRFS_SUPER_MAGIC,	OVERLAYFS_SUPER_MAGIC,
					 ZFS_SUPER_MAGIC, SQUASHFS_MAGIC, BCACHEFS_SUPER_MAGIC, HUGETLBFS_MAGIC};
	struct statfs fs;

	if (!fstatfs(fd, &fs))
		for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
			if ((uint32_t)fs.f_type == types[i])
				return true;
	return false;
}

/*
 * Opens a name without opening the file (O_PATH). A name that begins with "root/" is one of the process's files: links
 * lead to where they lead the process, and not to files of mxbpf's root. Returns a descriptor, or -1 with errno.
 */
static int open_name(int dirfd, const char *name)
{
	const struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	int root, fd, err;

	if (strncmp(name, "root/", 5) != 0)
		return openat(dirfd, name, O_PATH | O_CLOEXEC);
	root = openat(dirfd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -1;
	fd = open_in(root, name + 4, how);
	err = errno;
	close(root);
	errno = err;
	return fd;
}

/* Opens the file that a descriptor names, and reads its first and its last block. */
static int open_for_reading(int path_fd, uint64_t size_bytes)
{
	char self[32];
	int fd;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
	fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* see open_now.h */
	if (fd < 0)
		return -errno;
	if (pread(fd, said.bytes, BLOCK_BYTES, 0) > 0 && size_bytes > 1)
		(void)!pread(fd, said.bytes, BLOCK_BYTES, (off_t)(size_bytes - 1));
	return fd;
}

/* Returns the file as a name, or -errno. */
static int open_one(int dirfd)
{
	const int path_fd = open_name(dirfd < 0 ? AT_FDCWD : dirfd, heard.name);
	struct statx st;
	int fd;

	said.got = path_fd < 0 ? -errno : 0;
	/* A server is asked, also if the kernel remembers the answer. */
	if (path_fd < 0 || statx(path_fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &st)) {
		said.got = -errno;
		return path_fd;
	}
	said.dev = makedev(st.stx_dev_major, st.stx_dev_minor);
	said.ino = st.stx_ino;
	said.size_bytes = st.stx_size;
	said.near = is_near(path_fd);
	said.got = S_ISREG(st.stx_mode) ? 0 : -ESTALE;
	fd = said.got ? -1 : open_for_reading(path_fd, st.stx_size);
	if (fd < 0)
		said.got = said.got ? said.got : fd;
	else if (said.near)
		close(fd);
	else
		slots[heard.slot] = 1 + fd;
	return path_fd;
}

static ssize_t read_memory(pid_t pid, uint64_t addr, void *buf, size_t n)
{
	struct iovec here = {buf, n}, there = {(void *)(uintptr_t)addr, n};
	const ssize_t got = process_vm_readv(pid, &here, 1, &there, 1, 0);

	return got < 0 ? -errno : got;
}

/* Returns a descriptor to be sent, or -1. */
static int answer(int dirfd)
{
	int *slot = &slots[heard.slot];
	ssize_t got;

	memset(&said, 0, ANSWER_HEAD);
	switch (heard.what) {
	case OPEN:
		return open_one(dirfd);
	case READ:
		got = *slot ? pread(*slot - 1, said.bytes, heard.bytes, (off_t)heard.at) : -1;
		said.got = got < 0 ? *slot ? -errno : -EBADF : got;
		break;
	case CLOSE:
		if (*slot)
			close(*slot - 1);
		*slot = 0;
		break;
	default:
		said.got = read_memory(heard.pid, heard.at, said.bytes, heard.bytes);
	}
	return -1;
}

/* It keeps none of mxbpf's files, because it may remain when mxbpf has ended, and a probe lives as long as a file of
 * it. */
static void be_child(int socket)
{
	int dirfd, fd;
	ssize_t n;

	prctl(PR_SET_NAME, "mxbpf-reads");
	if (dup2(socket, SOCKET) < 0)
		_exit(1);
	close_range(SOCKET + 1, ~0u, 0);
	while ((n = get(SOCKET, &heard, sizeof(heard) - 1, &dirfd, 0)) >= (ssize_t)QUESTION_HEAD) {
		((char *)&heard)[n] = '\0';
		fd = answer(dirfd);
		n = far_put(SOCKET, &said, ANSWER_HEAD, said.bytes, said.got > 0 ? (size_t)said.got : 0, fd);
		if (fd >= 0)
			close(fd);
		if (dirfd >= 0)
			close(dirfd);
		if (n < 0)
			break;
	}
	_exit(0);
}

/* ---- mxbpf */

struct far {
	pthread_mutex_t lock;
	int socket; /* -1: the child has ended, or did not answer */
	pid_t child;
	uint32_t life;
	bool mute, closed; /* memory was not answered; far_end() */
	bool used[SLOTS];
	struct answer answer;
};

/*
 * Waits for children that were killed, so that they do not stay as zombies. killed is a new one, or 0. It does not
 * block: a child that has not ended yet is waited for by a later call.
 */
static void reap(pid_t killed)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static pid_t left[LEFT_MAX];

	pthread_mutex_lock(&lock);
	if (killed && waitpid(killed, NULL, WNOHANG))
		killed = 0;
	for (unsigned i = 0; i < LEFT_MAX; i++) {
		if (left[i] && waitpid(left[i], NULL, WNOHANG))
			left[i] = 0;
		if (left[i])
			continue;
		left[i] = killed;
		killed = 0;
	}
	pthread_mutex_unlock(&lock);
}

static void far_start(struct far *far)
{
	sigset_t all, old;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return;
	reap(0);
	far->life++;
	memset(far->used, 0, sizeof(far->used));
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* Ctrl-C is for mxbpf, not for the child */
	far->child = fork();
	if (!far->child)
		be_child(ends[1]);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	close(ends[1]);
	if (far->child < 0)
		close(ends[0]);
	else
		far->socket = ends[0];
}

/* Nobody waits for a child that does not end. Its parent is init when mxbpf has ended. */
static void target_far_end(struct far *far)
{
	if (far->socket < 0)
		return;
	close(far->socket);
	far->socket = -1;
	kill(far->child, SIGKILL);
	reap(far->child);
}

struct far *far_new(void)
{
	struct far *far = calloc(1, sizeof(*far));

	if (far) {
		pthread_mutex_init(&far->lock, NULL);
		far->socket = -1;
	}
	return far;
}

void far_end(struct far *far)
{
	pthread_mutex_lock(&far->lock);
	target_far_end(far);
	far->closed = true;
	pthread_mutex_unlock(&far->lock);
}

void far_free(struct far *far)
{
	if (!far)
		return;
	target_far_end(far);
	pthread_mutex_destroy(&far->lock);
	free(far);
}

static bool answers_within(int socket, int ms)
{
	const uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + (uint64_t)ms * 1000000;
	struct pollfd p = {.fd = socket, .events = POLLIN};
	uint64_t now;
	int n;

	do {
		now = clock_ns(CLOCK_MONOTONIC);
		n = poll(&p, 1, now < end_ns ? (int)((end_ns - now) / 1000000) + 1 : 0);
	} while (n < 0 && errno == EINTR);
	return n > 0;
}

/* Returns 0 with far->answer, or -ETIMEDOUT, also if there is no child any more. The caller has the lock. */
static int ask(struct far *far, const struct question *q, int dirfd, int ms, int *fd)
{
	ssize_t n = far->socket < 0 ? -1 : far_put(far->socket, q, QUESTION_HEAD, q->name, strlen(q->name), dirfd);

	*fd = -1;
	if (n < 0)
		return -ETIMEDOUT;
	if (!answers_within(far->socket, ms)) {
		target_far_end(far);
		return -ETIMEDOUT;
	}
	n = get(far->socket, &far->answer, sizeof(far->answer), fd, MSG_DONTWAIT);
	if (n >= (ssize_t)ANSWER_HEAD && far->answer.got <= n - (ssize_t)ANSWER_HEAD)
		return 0;
	target_far_end(far);
	return -ETIMEDOUT;
}

static uint32_t free_slot(struct far *far)
{
	uint32_t i = 0;

	while (i < SLOTS - 1 && far->used[i])
		i++;
	return i;
}

static int open_near(int dirfd, const char *name, struct far_file *f)
{
	const int path_fd = open_name(dirfd, name);
	char self[32];
	struct stat st;
	int err = path_fd < 0 || fstat(path_fd, &st) ? -errno : S_ISREG(st.st_mode) ? 0 : -ESTALE;

	if (!err) {
		*f = (struct far_file){.dev = st.st_dev, .ino = st.st_ino, .size_bytes = (uint64_t)st.st_size};
		snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
		f->fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		err = f->fd < 0 ? -errno : 0;
	}
	if (path_fd >= 0)
		close(path_fd);
	return err;
}

int far_open(struct far *far, int dirfd, const char *name, uint64_t dev, struct far_file *f)
{
	struct question q = {.what = OPEN};
	int ms, err, fd = -1;

	*f = (struct far_file){.fd = -1};
	if (major(dev)) /* a disk */
		return open_near(dirfd, name, f);
	ms = patience_ms(dev);
	if (!ms)
		return -ETIMEDOUT;
	snprintf(q.name, sizeof(q.name), "%s", name);
	pthread_mutex_lock(&far->lock);
	if (far->socket < 0 && !far->closed)
		far_start(far);
	q.slot = free_slot(far);
	err = ask(far, &q, dirfd, ms, &fd);
	if (!err) {
		err = (int)far->answer.got;
		*f = (struct far_file){.far = far->answer.near ? NULL : far,
				       .fd = fd,
				       .slot = q.slot,
				       .life = far->life,
				       .dev = far->answer.dev,
				       .ino = far->answer.ino,
				       .size_bytes = far->answer.size_bytes};
		far->used[q.slot] = !err && f->far;
	}
	pthread_mutex_unlock(&far->lock);
	if (err == -ETIMEDOUT && dev)
		keep_silent(dev);
	if (!err && f->far)
		return 0;
	if (fd >= 0)
		close(fd);
	return err ? err : open_near(dirfd, name, f);
}

void far_close(const struct far_file *f)
{
	struct question q = {.what = CLOSE, .slot = f->slot};
	int fd;

	if (!f->far)
		return;
	pthread_mutex_lock(&f->far->lock);
	if (f->life == f->far->life) {
		f->far->used[f->slot] = false;
		ask(f->far, &q, -1, ANSWER_MS, &fd);
	}
	pthread_mutex_unlock(&f->far->lock);
}

/* Asks for at most PART_BYTES. */
static ssize_t part(struct far *far, struct question *q, uint32_t life, void *buf, size_t n)
{
	ssize_t got = -ETIMEDOUT;
	int fd;

	q->bytes = n < PART_BYTES ? (uint32_t)n : PART_BYTES;
	pthread_mutex_lock(&far->lock);
	if (!life && far->socket < 0 && !far->closed && !far->mute)
		far_start(far);
	if (life ? life == far->life : !far->mute)
		got = ask(far, q, -1, ANSWER_MS, &fd);
	far->mute |= !life && got == -ETIMEDOUT; /* it is asked once */
	if (!got)
		got = far->answer.got;
	if (got > 0)
		memcpy(buf, far->answer.bytes, (size_t)got);
	pthread_mutex_unlock(&far->lock);
	return got;
}

/* Asks for parts until one is shorter than it should be. life: that of a file; 0: memory. */
static ssize_t parts(struct far *far, struct question *q, uint32_t life, void *buf, size_t n)
{
	size_t done = 0;
	ssize_t got;

	if (!far)
		return -ENOMEM;
	do {
		got = part(far, q, life, (char *)buf + done, n - done);
		if (got > 0) {
			done += (size_t)got;
			q->at += (uint64_t)got;
		}
	} while (got == PART_BYTES && done < n);
	return done ? (ssize_t)done : got;
}

ssize_t far_pread(const struct far_file *f, void *buf, size_t n, uint64_t off)
{
	struct question q = {.what = READ, .slot = f->slot, .at = off};
	ssize_t got;

	if (f->far)
		return parts(f->far, &q, f->life, buf, n);
	got = pread(f->fd, buf, n, (off_t)off);
	return got < 0 ? -errno : got;
}

ssize_t far_memory(struct far *far, pid_t pid, uint64_t addr, void *buf, size_t n)
{
	struct question q = {.what = MEMORY, .pid = pid, .at = addr};

	if (!far)
		return read_memory(pid, addr, buf, n);
	return parts(far, &q, 0, buf, n);
}
