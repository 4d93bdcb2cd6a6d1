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

int shared_open(struct shared *s, pid_t pid, const struct mxbpf_agent_config *c, uint64_t bytes, struct err *e)
{
	struct stat link;
	char path[96];
	void *page;
	int err;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, (uint64_t)c->shared,
		 (uint64_t)c->shared + bytes);
	err = lstat(path, &link)       ? -errno
	      : link.st_mode & S_IWUSR ? 0
				       : -EPERM; /* as the process has opened the file */
	s->fd = err ? err : memfd_open(path);
	err = s->fd < 0 ? s->fd : 0;
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
