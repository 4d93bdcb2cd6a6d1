/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_OPEN_IN_H
#define BASE_OPEN_IN_H

#include <errno.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OPEN_IN_TRIES 64

/*
 * Opens a path as openat2(2) does. The kernel answers EAGAIN if anybody renames or mounts anything while it walks a
 * path with "..", so that is repeated. Returns a descriptor, or -1 with errno set.
 */
static inline int open_in(int dirfd, const char *path, struct open_how how)
{
	unsigned tries = 0;
	int fd;

	do
		fd = (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
	while (fd < 0 && errno == EAGAIN && ++tries < OPEN_IN_TRIES);
	return fd;
}

#endif
