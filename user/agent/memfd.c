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
 * Returns true for memory that memfd_create() or a shared anonymous mapping has made. The kernel keeps it in one file
 * system, which nobody can mount. A name in /proc proves nothing: in a mount namespace of its own, a process can give
 * any file the name of a memfd. DONT_SYNC keeps the kernel from asking the file system, which may never answer.
 */
static bool is_kernels_memory(int held)
{
	int fd = memfd_create("mxbpf", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
	struct statx own, st;
	bool same;

	if (fd < 0) /* before Linux 6.3 */
		fd = memfd_create("mxbpf", MFD_CLOEXEC);
	same = fd >= 0 && !statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &own) &&
	       !statx(held, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) &&
	       own.stx_dev_major == st.stx_dev_major && own.stx_dev_minor == st.stx_dev_minor && S_ISREG(st.stx_mode);
	if (fd >= 0)
		close(fd);
	return same;
}

/* Opens a file, again after EINTR: the timer of an injection interrupts every system call of this thread. */
static int open_again(const char *path, int flags)
{
	int fd;

	do
		fd = open(path, flags | O_CLOEXEC);
	while (fd < 0 && errno == EINTR);
	return fd;
}

int memfd_open(const char *path)
{
	int held = open_again(path, O_PATH), fd = -EPERM;
	char self[32];

	if (held < 0)
		return -errno;
	if (is_kernels_memory(held)) {
		snprintf(self, sizeof(self), "/proc/self/fd/%d", held);
		fd = open_again(self, O_RDWR);
		fd = fd < 0 ? -errno : fd;
	}
	close(held);
	return fd;
}
