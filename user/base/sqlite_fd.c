// SPDX-License-Identifier: Apache-2.0
#include "base/sqlite_fd.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WRITE_VERSION 18 /* offsets in the header: 2 means that a log belongs to the file, which is not read */
#define READ_VERSION  19

struct file {
	sqlite3_file base;
	int fd;
	bool written; /* it is ours: it may be written, and no log can belong to it */
};

static int file_close(sqlite3_file *f)
{
	return SQLITE_OK;
}

static void hide_log(unsigned char *to, int n, sqlite3_int64 off)
{
	sqlite3_int64 at;

	for (at = WRITE_VERSION; at <= READ_VERSION; at++)
		if (at >= off && at < off + n && to[at - off] == 2)
			to[at - off] = 1;
}

/* Bytes beyond the end of the file are 0. */
static int file_read(sqlite3_file *f, void *to, int n, sqlite3_int64 off)
{
	const struct file *file = (const void *)f;
	int got = 0;
	ssize_t one;

	while (got < n) {
		one = pread(file->fd, (char *)to + got, (size_t)(n - got), (off_t)(off + got));
		if (one < 0 && errno == EINTR)
			continue;
		if (one < 0)
			return SQLITE_IOERR_READ;
		if (!one)
			break;
		got += (int)one;
	}
	memset((char *)to + got, 0, (size_t)(n - got));
	if (!file->written)
		hide_log(to, n, off);
	return got == n ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 off)
{
	const struct file *file = (const void *)f;
	int done = 0;
	ssize_t one;

	while (file->written && done < n) {
		one = pwrite(file->fd, (const char *)from + done, (size_t)(n - done), (off_t)(off + done));
		if (one < 0 && errno == EINTR)
			continue;
		if (one < 0)
			return errno == ENOSPC || errno == EDQUOT ? SQLITE_FULL : SQLITE_IOERR_WRITE;
		done += (int)one;
	}
	return file->written ? SQLITE_OK : SQLITE_READONLY;
}

static int file_truncate(sqlite3_file *f, sqlite3_int64 bytes)
{
	const struct file *file = (const void *)f;

	if (!file->written)
		return SQLITE_READONLY;
	return ftruncate(file->fd, (off_t)bytes) ? SQLITE_IOERR_TRUNCATE : SQLITE_OK;
}

static int file_sync(sqlite3_file *f, int flags)
{
	return SQLITE_OK;
}

static int file_size(sqlite3_file *f, sqlite3_int64 *bytes)
{
	const struct file *file = (const void *)f;
	struct stat st;

	if (fstat(file->fd, &st))
		return SQLITE_IOERR_FSTAT;
	*bytes = st.st_size;
	return SQLITE_OK;
}

static int file_lock(sqlite3_file *f, int level)
{
	return SQLITE_OK;
}

static int file_reserved(sqlite3_file *f, int *out)
{
	*out = 0;
	return SQLITE_OK;
}

static int file_control(sqlite3_file *f, int op, void *arg)
{
	return SQLITE_NOTFOUND;
}

static int file_sector(sqlite3_file *f)
{
	return 0;
}

static int file_traits(sqlite3_file *f)
{
	return ((const struct file *)(const void *)f)->written ? 0 : SQLITE_IOCAP_IMMUTABLE;
}

static const sqlite3_io_methods methods = {
	.iVersion = 1,
	.xClose = file_close,
	.xRead = file_read,
	.xWrite = file_write,
	.xTruncate = file_truncate,
	.xSync = file_sync,
	.xFileSize = file_size,
	.xLock = file_lock,
	.xUnlock = file_lock,
	.xCheckReservedLock = file_reserved,
	.xFileControl = file_control,
	.xSectorSize = file_sector,
	.xDeviceCharacteristics = file_traits,
};

/* There are no temporary files: what SQLite must keep stays in its memory, which is limited. */
static int vfs_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *out)
{
	struct file *file = (void *)f;

	memset(file, 0, sizeof(*file));
	if (!name || !(flags & SQLITE_OPEN_MAIN_DB))
		return SQLITE_CANTOPEN;
	file->fd = atoi(name);
	file->written = flags & SQLITE_OPEN_READWRITE;
	file->base.pMethods = &methods;
	if (out)
		*out = flags;
	return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *v, const char *name, int sync)
{
	return SQLITE_READONLY;
}

static int vfs_access(sqlite3_vfs *v, const char *name, int flags, int *out)
{
	*out = 0;
	return SQLITE_OK;
}

static int vfs_path(sqlite3_vfs *v, const char *name, int n, char *out)
{
	return snprintf(out, (size_t)n, "%s", name) < n ? SQLITE_OK : SQLITE_CANTOPEN;
}

static int vfs_random(sqlite3_vfs *v, int n, char *out)
{
	memset(out, 0, (size_t)n);
	return n;
}

static int vfs_sleep(sqlite3_vfs *v, int us)
{
	return us;
}

static int vfs_time(sqlite3_vfs *v, double *days)
{
	*days = 0;
	return SQLITE_OK;
}

static int vfs_error(sqlite3_vfs *v, int n, char *text)
{
	return 0;
}

static sqlite3_vfs fd_vfs = {
	.iVersion = 1,
	.szOsFile = sizeof(struct file),
	.mxPathname = 32,
	.zName = SQLITE_FD_VFS,
	.xOpen = vfs_open,
	.xDelete = vfs_delete,
	.xAccess = vfs_access,
	.xFullPathname = vfs_path,
	.xRandomness = vfs_random,
	.xSleep = vfs_sleep,
	.xCurrentTime = vfs_time,
	.xGetLastError = vfs_error,
};

int sqlite_fd_register(void)
{
	return sqlite3_vfs_register(&fd_vfs, 0) == SQLITE_OK ? 0 : -ENOMEM;
}
