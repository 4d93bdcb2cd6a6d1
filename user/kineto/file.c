// SPDX-License-Identifier: Apache-2.0
/*
 * The trace is a file of the job's user, who may put anything in its place: a link, a pipe, a device, a file of
 * somebody else, another file system over it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fmt.h"
#include "base/open_in.h"
#include "base/open_now.h"
#include "kineto/priv.h"

#define BYTES_MAX  (8ull << 30)
#define PART_BYTES 4096 /* what out_reserve() gives at most */

/* Returns an O_PATH fd, which opens nothing that can act or wait, or -errno. */
static int file_find(int dir, const char *name)
{
	const struct open_how how = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
				     .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
	const int fd = open_in(dir, name, how);

	return fd < 0 ? -errno : fd;
}

int kin_file_look(int dir, const char *name, struct stat *st)
{
	int fd = file_find(dir, name), err;

	if (fd < 0)
		return fd;
	err = fstat(fd, st) ? -errno : 0;
	close(fd);
	return err;
}

static int file_check(const struct stat *st, uid_t uid, struct err *e)
{
	char bytes[24];

	if (!S_ISREG(st->st_mode) || st->st_uid != uid || st->st_nlink != 1)
		return err_set(e, ERR_RUNTIME, -EPERM,
			       "what is in the place of Kineto's trace is not a plain file of user %u; it is not read",
			       uid);
	if ((uint64_t)st->st_size > BYTES_MAX)
		return err_set(e, ERR_RUNTIME, -EFBIG, "Kineto's trace has more than %s; ask for a shorter one",
			       fmt_bytes(BYTES_MAX, bytes));
	return st->st_size ? 0 : err_set(e, ERR_RUNTIME, -ENODATA, "Kineto's trace is empty");
}

int kin_file_open(int dir, const char *name, uid_t uid, uint64_t *bytes, struct err *e)
{
	int at = file_find(dir, name), fd, err;
	char path[64];
	struct stat st;

	err = at < 0 ? at : fstat(at, &st) ? -errno : file_check(&st, uid, e);
	if (!err) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
		fd = open_now(AT_FDCWD, path);
		err = fd < 0 ? -errno : 0;
		*bytes = (uint64_t)st.st_size;
	}
	if (at >= 0)
		close(at);
	return err ? err_set(e, ERR_RUNTIME, err, "cannot open Kineto's trace: %s", strerror(-err)) : fd;
}

int kin_file_copy(int fd, uint64_t bytes, struct out *out, struct err *e)
{
	uint64_t at = 0;
	ssize_t n = 1;
	char *part;

	while (at < bytes && !out_error(out)) {
		part = out_reserve(out, PART_BYTES);
		n = pread(fd, part, bytes - at < PART_BYTES ? bytes - at : PART_BYTES, (off_t)at);
		if (n <= 0)
			return err_set(e, ERR_RUNTIME, n ? -errno : -EIO, "cannot read Kineto's trace: %s",
				       n ? strerror(errno) : "it was cut meanwhile");
		out_filled(out, (size_t)n);
		at += (uint64_t)n;
	}
	return 0;
}
