// SPDX-License-Identifier: Apache-2.0
#include "agent/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x8 /* Linux 6.3 */
#endif

/*
 * The kernel has one file system for all such memory, which nobody can mount. A name in /proc proves nothing: a process
 * can give any file the name of a memfd in a mount namespace of its own.
 */
static bool is_kernels_memory(const struct stat *st)
{
	int fd = memfd_create("mxbpf", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
	struct stat own;
	bool same;

	if (fd < 0) /* before Linux 6.3 */
		fd = memfd_create("mxbpf", MFD_CLOEXEC);
	same = fd >= 0 && !fstat(fd, &own) && own.st_dev == st->st_dev && S_ISREG(st->st_mode);
	if (fd >= 0)
		close(fd);
	return same;
}

int memfd_open(const char *path)
{
	int held = open(path, O_PATH | O_CLOEXEC), fd = -EPERM;
	char self[32];
	struct stat st;

	if (held < 0)
		return -errno;
	if (!fstat(held, &st) && is_kernels_memory(&st)) {
		snprintf(self, sizeof(self), "/proc/self/fd/%d", held);
		fd = open(self, O_RDWR | O_CLOEXEC);
		fd = fd < 0 ? -errno : fd;
	}
	close(held);
	return fd;
}
