// SPDX-License-Identifier: Apache-2.0
/* Directories with several output files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/out.h"
#include "base/out_path.h"

#define FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct out_dir {
	int fd;
	char *path;
};

/* "a.arrow/" means a.arrow. Returns an owned text, or NULL without memory. */
static char *without_slashes(const char *path)
{
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	return strndup(path, n);
}

/* Returns 1 if there is a directory that may be ours, 0 if there is nothing, or -errno with e set. */
static int out_dir_look(const struct out_place *p, struct err *e)
{
	struct stat st;

	if (!*p->base || !strcmp(p->base, ".") || !strcmp(p->base, ".."))
		return err_set(e, ERR_RUNTIME, -EISDIR, "cannot write %s: give the directory a name of its own",
			       p->shown);
	if (fstatat(p->dirfd, p->base, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : out_place_err(e, p->shown, -errno);
	if (S_ISLNK(st.st_mode))
		return err_set(
			e, ERR_RUNTIME, -ELOOP,
			"cannot write %s: it is a symbolic link, which is not followed; give the path it leads to",
			p->shown);
	if (!S_ISDIR(st.st_mode))
		return err_set(e, ERR_RUNTIME, -ENOTDIR,
			       "cannot write %s: this output is a directory, and there is a file of this name",
			       p->shown);
	if (out_place_planted(p->dirfd, &st))
		return err_set(e, ERR_RUNTIME, -EPERM,
			       "cannot write %s: it belongs to another user, in a directory open to all", p->shown);
	return 1;
}

static bool is_empty(int fd)
{
	const int copy = openat(fd, ".", FOLDER);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	unsigned n = 0;

	while (dir && n < 3 && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	else if (copy >= 0)
		close(copy);
	return n == 2; /* "." and ".." */
}

static bool has_mark(int fd, const char *mark)
{
	struct stat st;

	return !fstatat(fd, mark, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode);
}

/* Opens an existing directory, if it is one that may be written. Returns an fd, or -errno with e set. */
static int open_ours(const struct out_place *p, const char *mark, struct err *e)
{
	const int fd = openat(p->dirfd, p->base, FOLDER);
	int ret = fd;

	if (fd < 0)
		return out_place_err(e, p->shown, -errno);
	if (!has_mark(fd, mark) && !is_empty(fd))
		ret = err_set(e, ERR_RUNTIME, -EEXIST,
			      "%s exists and is not a directory that mxbpf wrote; give another name", p->shown);
	else if (faccessat(fd, ".", W_OK, AT_EACCESS))
		ret = out_place_err(e, p->shown, -errno);
	if (ret < 0)
		close(fd);
	return ret;
}

int out_dir_check(const char *path, const char *mark, struct err *e)
{
	char *plain = without_slashes(path);
	struct out_place p;
	int ret = plain ? out_place_reach(plain, &p, e) : out_place_err(e, path, -ENOMEM), fd;

	if (plain && !ret) {
		ret = out_dir_look(&p, e);
		if (ret > 0) {
			fd = open_ours(&p, mark, e);
			ret = fd < 0 ? fd : close(fd);
		} else if (!ret && faccessat(p.dirfd, ".", W_OK, AT_EACCESS)) {
			ret = out_place_err(e, plain, -errno);
		}
		out_place_fini(&p);
	}
	free(plain);
	return ret;
}

/* Opens a folder, which is new if it was just made. Returns an fd or -errno. */
static int open_made(int dirfd, const char *name, bool is_new)
{
	struct stat st;
	int fd, ret;

	fd = openat(dirfd, name, FOLDER);
	if (fd < 0)
		return errno == ENOTDIR ? -ELOOP : -errno;
	ret = fstat(fd, &st) ? -errno : 0;
	/* Somebody who may write here can exchange the folder before it is opened. */
	if (!ret && is_new)
		ret = st.st_uid == geteuid() ? out_place_chown(fd) : -EPERM;
	if (ret)
		close(fd);
	return ret ? ret : fd;
}

/* Makes a folder unless it is there, and opens it. Returns an fd or -errno. */
static int base_out_dir_make(int dirfd, const char *name)
{
	const bool is_new = !mkdirat(dirfd, name, 0700);

	return is_new || errno == EEXIST ? open_made(dirfd, name, is_new) : -errno;
}

int out_dir_make(const char *path, struct err *e)
{
	char *plain = without_slashes(path);
	struct out_place p;
	struct stat st;
	int ret = plain ? out_place_reach(plain, &p, e) : out_place_err(e, path, -ENOMEM), fd = 0;

	if (!ret) {
		if (*p.base && fstatat(p.dirfd, p.base, &st, AT_SYMLINK_NOFOLLOW))
			fd = errno == ENOENT ? base_out_dir_make(p.dirfd, p.base) : -errno;
		if (fd < 0)
			ret = err_set(e, ERR_RUNTIME, fd, "cannot create %s: %s", path, strerror(-fd));
		else if (fd > 0)
			close(fd);
		out_place_fini(&p);
	}
	free(plain);
	return ret;
}

int out_dir_beside(const char *path, char name[64], int *parent, struct err *e)
{
	struct out_place p;
	int fd = out_place_reach(path, &p, e), tries;

	if (fd)
		return fd;
	if (!out_owner() && !p.guarded) {
		out_place_fini(&p);
		return err_set(e, ERR_RUNTIME, -EPERM,
			       "another user can exchange what is in %s, and a command of root would load a library "
			       "from there; write into a directory of root's with -o FILE",
			       path);
	}
	for (fd = -EEXIST, tries = 0; fd == -EEXIST && tries < 16; tries++) {
		out_place_tmp(name);
		name[OUT_BESIDE_BYTES] = '\0';
		fd = mkdirat(p.dirfd, name, 0700) ? -errno : open_made(p.dirfd, name, true);
	}
	if (fd >= 0) {
		*parent = p.dirfd;
		return fd;
	}
	out_place_fini(&p);
	return err_set(e, ERR_RUNTIME, fd, "cannot make a directory beside %s: %s", path, strerror(-fd));
}

static int open_or_make(struct out_dir *d, const char *mark, struct err *e)
{
	struct out_place p;
	int ret = out_place_reach(d->path, &p, e);

	if (ret)
		return ret;
	ret = out_dir_look(&p, e);
	if (ret > 0)
		ret = d->fd = open_ours(&p, mark, e);
	else if (!ret && (ret = d->fd = base_out_dir_make(p.dirfd, p.base)) < 0)
		out_place_err(e, d->path, ret);
	out_place_fini(&p);
	return ret < 0 ? ret : 0;
}

static int put_mark(const struct out_dir *d, const char *mark, const char *text, struct err *e)
{
	struct out *o;
	int ret = out_dir_file(d, mark, &o, e);

	if (ret)
		return ret;
	out_puts(o, text);
	return out_commit(o, e);
}

int out_dir_open(const char *path, const char *mark, const char *text, struct out_dir **to, struct err *e)
{
	struct out_dir *d = calloc(1, sizeof(*d));
	int ret;

	*to = NULL;
	if (!d)
		return out_place_err(e, path, -ENOMEM);
	d->fd = -1;
	d->path = without_slashes(path);
	ret = d->path ? open_or_make(d, mark, e) : out_place_err(e, path, -ENOMEM);
	if (!ret && !has_mark(d->fd, mark))
		ret = put_mark(d, mark, text, e);
	if (ret) {
		out_dir_close(d);
		return ret;
	}
	*to = d;
	return 0;
}

/* Opens the folder of a file, and makes it if it is missing. Returns an fd or -errno. */
static int out_dir_enter(const struct out_dir *d, const char *at)
{
	int fd = fcntl(d->fd, F_DUPFD_CLOEXEC, 0), next;
	const char *slash;
	char name[256];

	for (; fd >= 0 && (slash = strchr(at, '/')); at = slash + 1) {
		next = (size_t)(slash - at) < sizeof(name) ? 0 : -ENAMETOOLONG;
		if (!next) {
			snprintf(name, sizeof(name), "%.*s", (int)(slash - at), at);
			next = base_out_dir_make(fd, name);
		}
		close(fd);
		fd = next;
		if (fd < 0)
			return fd;
	}
	return fd < 0 ? -errno : fd;
}

int out_dir_file(const struct out_dir *d, const char *at, struct out **o, struct err *e)
{
	char *path;
	int fd, ret;

	*o = NULL;
	if (asprintf(&path, "%s/%s", d->path, at) < 0)
		return out_place_err(e, at, -ENOMEM);
	fd = ret = out_dir_enter(d, at);
	if (fd == -ELOOP)
		err_set(e, ERR_RUNTIME, fd, "cannot write %s: a part of its path is no directory", path);
	else if (fd < 0)
		out_place_err(e, path, fd);
	if (fd >= 0) {
		ret = out_open_in(fd, path, o, e);
		close(fd);
	}
	free(path);
	return ret;
}

void out_dir_close(struct out_dir *d)
{
	if (!d)
		return;
	if (d->fd >= 0)
		close(d->fd);
	free(d->path);
	free(d);
}
