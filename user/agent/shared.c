// SPDX-License-Identifier: Apache-2.0
#include "agent/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096u
#define WANT offsetof(struct mxbpf_agent_shared, gpu.want)

/* The number of the file system of memory without a path, which is one for the whole machine. */
static int memory_dev(struct statx *st)
{
	const int fd = memfd_create("mxbpf", MFD_CLOEXEC);
	const int err = fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, st) ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return err;
}

/*
 * Returns 0 if a file of a process's mapping may be opened. Neither this call nor the opening of such a file asks the
 * file system, which may be one that never answers. The link has the mode in which the process has opened the file.
 */
static int check_file(int path_fd, const char *path)
{
	struct statx memory, st;
	struct stat link;

	if (lstat(path, &link) || memory_dev(&memory) ||
	    statx(path_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st))
		return -errno;
	if (st.stx_dev_major != memory.stx_dev_major || st.stx_dev_minor != memory.stx_dev_minor ||
	    !S_ISREG(st.stx_mode) || !(link.st_mode & S_IWUSR))
		return -EBADF;
	return 0;
}

int shared_open(struct shared *s, pid_t pid, const struct mxbpf_agent_config *c, uint64_t bytes, struct err *e)
{
	char path[96], again[32];
	int path_fd, err;
	void *page;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, (uint64_t)c->shared,
		 (uint64_t)c->shared + bytes);
	path_fd = open(path, O_PATH | O_CLOEXEC);
	err = path_fd < 0 ? -errno : check_file(path_fd, path);
	if (!err) {
		snprintf(again, sizeof(again), "/proc/self/fd/%d", path_fd);
		s->fd = open(again, O_RDWR | O_CLOEXEC);
		err = s->fd < 0 ? -errno : 0;
	}
	if (path_fd >= 0)
		close(path_fd);
	if (err == -EBADF)
		return err_set(e, ERR_TARGET, err,
			       "cannot use the agent in process %d: what it shares is a file, not memory of its own",
			       pid);
	if (err)
		return err_set(e, err == -ENOENT ? ERR_TARGET : ERR_PRIVILEGE, err,
			       "cannot open the agent's memory in process %d: %s", pid, strerror(-err));
	page = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, s->fd, WANT / PAGE * PAGE);
	s->page = page == MAP_FAILED ? NULL : page;
	return 0;
}

void shared_close(struct shared *s)
{
	if (s->page)
		munmap((void *)s->page, PAGE);
	if (s->fd >= 0)
		close(s->fd);
	*s = (struct shared){.fd = -1};
}

void shared_write(const struct shared *s, uint64_t off, const void *from, size_t bytes)
{
	while (s->fd >= 0 && pwrite(s->fd, from, bytes, (off_t)off) < 0 && errno == EINTR)
		;
}

/* Only the kernel looks at the page. If the memory does not reach so far any more, the call fails. */
void shared_wake(const struct shared *s)
{
	if (s->page)
		syscall(SYS_futex, s->page + WANT % PAGE, FUTEX_WAKE, 1, NULL, NULL, 0);
}
