// SPDX-License-Identifier: Apache-2.0
#include "agent/shared.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/memfd.h"

#define PAGE 4096u
#define WANT offsetof(struct mxbpf_agent_shared, gpu.want)

static int open_mapping(struct shared *s, pid_t pid, uint64_t at, uint64_t bytes)
{
	struct stat link;
	char path[96];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, at, at + bytes);
	err = lstat(path, &link)       ? -errno
	      : link.st_mode & S_IWUSR ? 0
				       : -EPERM; /* the process itself may not write to it */
	s->fd = err ? err : memfd_open(path);
	return s->fd < 0 ? s->fd : 0;
}

int shared_open_family(struct shared *s, pid_t pid, const struct mxbpf_agent_config *c)
{
	int err = open_mapping(s, pid, c->shared, PAGE);

	s->page = NULL;
	s->fd = err ? -1 : s->fd;
	return err;
}

/* The first page, which children inherit, may be a mapping of its own in the kernel's list. */
int shared_open(struct shared *s, pid_t pid, const struct mxbpf_agent_config *c, uint64_t bytes, struct err *e)
{
	void *page;
	int err = open_mapping(s, pid, c->shared + PAGE, bytes - PAGE);

	err = err == -ENOENT ? open_mapping(s, pid, c->shared, bytes) : err;
	if (err == -EPERM)
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
