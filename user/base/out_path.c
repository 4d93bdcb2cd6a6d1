// SPDX-License-Identifier: Apache-2.0
#include "base/out_path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/out.h"

#define TMP_PREFIX ".mxbpf-"
#define LEFT_S	   60
#define LINKS_MAX  40 /* the limit of the kernel */

int out_place_err(struct err *e, const char *path, int code)
{
	return err_set(e, ERR_RUNTIME, code, "cannot write %s: %s", path, strerror(-code));
}

/*
 * Does what fs.protected_symlinks does, which is off on some machines: in a directory where anybody may create names
 * (/tmp), it accepts only links that we, root or the directory's owner created.
 */
bool out_place_planted(int dirfd, const struct stat *st)
{
	struct stat dir;

	if (fstat(dirfd, &dir))
		return true;
	if (!(dir.st_mode & S_ISVTX) || !(dir.st_mode & S_IWOTH))
		return false;
	return st->st_uid != geteuid() && st->st_uid != 0 && st->st_uid != dir.st_uid;
}

/* Who owns a link in a path decides where root writes, in whatever directory the link is. */
static bool foreign_link(int dirfd, const struct stat *st)
{
	return out_place_planted(dirfd, st) || (geteuid() == 0 && st->st_uid != 0 && st->st_uid != out_owner());
}

/* Returns true if no user other than the owner of the files, or root, can exchange what this directory holds. */
static bool is_guarded(int dirfd)
{
	struct stat st;

	return !fstat(dirfd, &st) && (st.st_uid == 0 || st.st_uid == geteuid() || st.st_uid == out_owner()) &&
	       (st.st_mode & S_ISVTX || !(st.st_mode & (S_IWOTH | (st.st_gid ? S_IWGRP : 0))));
}

/* A path on which mxbpf goes from directory to directory. */
struct walk {
	int fd; /* owned: where it is */
	unsigned links;
	bool guarded;	     /* each directory was, so far */
	char left[PATH_MAX]; /* of the path */
};

/* Goes to a directory whose descriptor it gets, or -1. Returns 0 or -errno. */
static int out_path_enter(struct walk *w, int fd)
{
	if (fd < 0)
		return -errno;
	if (w->fd >= 0)
		close(w->fd);
	w->fd = fd;
	w->guarded &= is_guarded(fd);
	return 0;
}

/*
 * The text of a link comes before what is left. The kernel would follow links of anybody in it, and the name may be
 * another link by now. Only the kernel can follow links of /proc, where no user makes any.
 */
static int follow(struct walk *w, int link, const char *name)
{
	char text[PATH_MAX];
	struct statfs fs;
	size_t n = strlen(w->left);
	ssize_t got;

	if (++w->links > LINKS_MAX)
		return -EMLINK;
	if (!fstatfs(link, &fs) && fs.f_type == PROC_SUPER_MAGIC)
		return out_path_enter(w, openat(w->fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC));
	got = readlinkat(link, "", text, sizeof(text));
	if (got <= 0)
		return got ? -errno : -ENOENT;
	if ((size_t)got + n >= sizeof(w->left))
		return -ENAMETOOLONG;
	memmove(w->left + got, w->left, n + 1);
	memcpy(w->left, text, (size_t)got);
	return *text == '/' ? out_path_enter(w, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)) : 0;
}

/* Goes on to one component of a path. Follows a symlink unless it is of another user. */
static int out_path_step(struct walk *w, const char *name)
{
	int fd = openat(w->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), err;
	struct stat st;

	if (fd < 0)
		return -errno;
	err = fstat(fd, &st) ? -errno : 0;
	if (!err && S_ISDIR(st.st_mode))
		return out_path_enter(w, fd);
	if (!err && S_ISLNK(st.st_mode))
		err = foreign_link(w->fd, &st) ? -ELOOP : follow(w, fd, name);
	else if (!err)
		err = -ENOTDIR;
	close(fd);
	return err;
}

/* Walks to the directory of path. The part after the last slash goes to base. Returns 0 or -errno. */
static int walk(struct walk *w, const char *path, char base[256])
{
	size_t n = strlen(path);
	char *slash;
	int err;

	if (n >= sizeof(w->left))
		return -ENAMETOOLONG;
	memcpy(w->left, path, n + 1);
	w->guarded = true;
	err = out_path_enter(w, open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
	while (!err) {
		n = strspn(w->left, "/");
		memmove(w->left, w->left + n, strlen(w->left + n) + 1);
		slash = strchr(w->left, '/');
		n = slash ? (size_t)(slash - w->left) : strlen(w->left);
		if (n > NAME_MAX)
			return -ENAMETOOLONG;
		snprintf(base, 256, "%.*s", (int)n, w->left);
		if (!slash)
			return 0;
		memmove(w->left, slash, strlen(slash) + 1);
		err = out_path_step(w, base);
	}
	return err;
}

/*
 * Accepts /dev/fd/63 of a shell's >(command): a link to a pipe or device, in a directory that no other user can change.
 */
static bool system_link(const struct out_place *p)
{
	struct stat dir, st;

	return !fstat(p->dirfd, &dir) && (dir.st_uid == 0 || dir.st_uid == geteuid()) && !(dir.st_mode & 022) &&
	       !fstatat(p->dirfd, p->base, &st, 0) && (S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode));
}

bool out_foreign_pipe(const struct stat *st)
{
	return S_ISFIFO(st->st_mode) && geteuid() == 0 && st->st_uid != 0 && st->st_uid != out_owner();
}

static int out_path_look(struct out_place *p, struct err *e)
{
	struct stat st;
	int ret;

	if (!*p->base)
		return err_set(e, ERR_RUNTIME, -EISDIR, "cannot write %s: it names a directory", p->shown);
	if (fstatat(p->dirfd, p->base, &st, AT_SYMLINK_NOFOLLOW)) {
		ret = -errno;
		p->what = OUT_NOTHING;
		return ret == -ENOENT ? 0 : out_place_err(e, p->shown, ret);
	}
	p->link = S_ISLNK(st.st_mode) && system_link(p);
	if (p->link)
		p->what = OUT_STREAM;
	else if (S_ISLNK(st.st_mode))
		return err_set(
			e, ERR_RUNTIME, -ELOOP,
			"cannot write %s: it is a symbolic link, which is not followed; give the path it leads to",
			p->shown);
	else if (S_ISDIR(st.st_mode))
		return err_set(e, ERR_RUNTIME, -EISDIR, "cannot write %s: it is a directory", p->shown);
	else if (S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode))
		p->what = OUT_STREAM;
	else if (S_ISREG(st.st_mode))
		p->what = OUT_FILE;
	else
		return err_set(e, ERR_RUNTIME, -EINVAL,
			       "cannot write %s: it is neither a file, a pipe nor a character device", p->shown);
	if (p->what == OUT_STREAM && !p->link && out_place_planted(p->dirfd, &st))
		return err_set(e, ERR_RUNTIME, -EPERM,
			       "cannot write %s: it belongs to another user, in a directory open to all", p->shown);
	if (p->what == OUT_STREAM && !p->link && out_foreign_pipe(&st))
		return err_set(e, ERR_RUNTIME, -EPERM, "cannot write %s: it is a pipe of another user", p->shown);
	return 0;
}

int out_place_open_stream(const struct out_place *p)
{
	const int at = openat(p->dirfd, p->base, O_PATH | O_CLOEXEC | (p->link ? 0 : O_NOFOLLOW));
	struct stat st;
	char self[32];
	int fd;

	if (at < 0)
		return -errno;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", at);
	if (fstat(at, &st) || !(S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode)) ||
	    (!p->link && (out_place_planted(p->dirfd, &st) || out_foreign_pipe(&st))))
		fd = -ELOOP;
	else
		fd = open(self, O_WRONLY | O_NOCTTY | O_CLOEXEC);
	fd = fd == -1 ? -errno : fd;
	close(at);
	return fd;
}

int out_place_reach(const char *path, struct out_place *p, struct err *e)
{
	struct walk w;
	int ret;

	*p = (struct out_place){.dirfd = -1, .shown = path};
	w.fd = -1;
	w.links = 0;
	if (!*path)
		return err_set(e, ERR_RUNTIME, -ENOENT, "the output path is empty");
	ret = walk(&w, path, p->base);
	if (!ret) {
		p->dirfd = w.fd;
		p->guarded = w.guarded;
		return 0;
	}
	if (w.fd >= 0)
		close(w.fd);
	if (ret == -ELOOP)
		return err_set(e, ERR_RUNTIME, ret,
			       "cannot write %s: a directory in it is a symbolic link of another user; give the path "
			       "it leads to",
			       path);
	if (ret == -ENOENT)
		return err_set(e, ERR_RUNTIME, ret, "cannot write %s: its directory does not exist", path);
	if (ret == -ENOTDIR)
		return err_set(e, ERR_RUNTIME, ret, "cannot write %s: a part of its path is not a directory", path);
	return out_place_err(e, path, ret);
}

int out_open_dir(const char *path, char base[256], struct err *e)
{
	struct out_place p;

	if (out_place_reach(path, &p, e))
		return e->code;
	if (!*p.base || !strcmp(p.base, ".") || !strcmp(p.base, "..")) {
		out_place_fini(&p);
		return err_set(e, ERR_RUNTIME, -EISDIR, "cannot write %s: it names a directory", path);
	}
	memcpy(base, p.base, sizeof(p.base));
	return p.dirfd;
}

static int look_or_fini(struct out_place *p, struct err *e)
{
	int ret = out_path_look(p, e);

	if (ret)
		out_place_fini(p);
	return ret;
}

int out_place_find(const char *path, struct out_place *p, struct err *e)
{
	int ret;

	/* A redirected stdout may be something that cannot be opened again. */
	if (!strcmp(path, "-") || !strcmp(path, "/dev/stdout")) {
		*p = (struct out_place){.dirfd = -1, .shown = path, .what = OUT_STDOUT};
		return 0;
	}
	ret = out_place_reach(path, p, e);
	return ret ? ret : look_or_fini(p, e);
}

int out_place_in(int dirfd, const char *path, struct out_place *p, struct err *e)
{
	const char *slash = strrchr(path, '/');

	*p = (struct out_place){.shown = path, .dirfd = fcntl(dirfd, F_DUPFD_CLOEXEC, 0)};
	if (p->dirfd < 0)
		return out_place_err(e, path, -errno);
	snprintf(p->base, sizeof(p->base), "%s", slash ? slash + 1 : path);
	return look_or_fini(p, e);
}

/* If stdout was closed at the start, main() has opened it for reading only. */
int out_place_stdout(void)
{
	int flags = fcntl(STDOUT_FILENO, F_GETFL);

	if (flags < 0)
		return -errno;
	return (flags & O_ACCMODE) == O_RDONLY ? -EBADF : 0;
}

void out_place_fini(struct out_place *p)
{
	if (p->dirfd >= 0)
		close(p->dirfd);
	p->dirfd = -1;
}

void out_place_tmp(char tmp[64])
{
	uint64_t random = 0;

	/* O_EXCL protects the file; randomness only avoids collisions, so the clock is good enough as a fallback. */
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		random ^= (uint64_t)getpid() << 32;
	snprintf(tmp, 64, TMP_PREFIX "%016llx", (unsigned long long)random);
}

/* A lock says that the file is still being written: out_place_sweep(). Some file systems have none. */
static int locked(int fd)
{
	(void)flock(fd, LOCK_EX | LOCK_NB);
	return fd;
}

int out_place_unnamed(int dirfd, int flags, char tmp[64])
{
	int fd = openat(dirfd, ".", O_TMPFILE | flags | O_CLOEXEC, 0600);
	int tries;

	*tmp = '\0';
	if (fd >= 0)
		return locked(fd);
	/* File systems without O_TMPFILE (overlay on old kernels, NFS, FAT) return different errors. */
	if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOENT)
		return -errno;
	for (tries = 0; tries < 16; tries++) {
		out_place_tmp(tmp);
		fd = openat(dirfd, tmp, O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
		if (fd >= 0)
			return locked(fd);
		if (errno != EEXIST)
			break;
	}
	*tmp = '\0';
	return -errno;
}

static bool is_left(int dirfd, const char *name)
{
	const size_t prefix = strlen(TMP_PREFIX);
	struct stat st;
	bool left;
	int fd;

	if (strncmp(name, TMP_PREFIX, prefix) || strspn(name + prefix, "0123456789abcdef") != 16 || name[prefix + 16])
		return false;
	fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	left = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	       (st.st_uid == geteuid() || st.st_uid == out_owner()) && st.st_mtime + LEFT_S < time(NULL) &&
	       !flock(fd, LOCK_EX | LOCK_NB);
	if (fd >= 0)
		close(fd);
	return left;
}

void out_place_sweep(int dirfd)
{
	const int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(d)))
		if (is_left(dirfd, entry->d_name))
			unlinkat(dirfd, entry->d_name, 0);
	closedir(d);
}

/* Parses digits only. It refuses (uid_t)-1, which means "no change" to fchown(). */
static int parse_id(const char *text, unsigned *id)
{
	char *end;
	unsigned long v;

	if (!text || *text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	v = strtoul(text, &end, 10);
	if (errno || *end || v >= UINT_MAX)
		return -EINVAL;
	*id = (unsigned)v;
	return 0;
}

int out_place_chown(int fd)
{
	unsigned uid, gid;

	if (geteuid() != 0 || parse_id(getenv("SUDO_UID"), &uid) || parse_id(getenv("SUDO_GID"), &gid))
		return 0;
	return fchown(fd, uid, gid) ? -errno : 0;
}

uid_t out_owner(void)
{
	unsigned uid, gid;

	if (geteuid() != 0 || parse_id(getenv("SUDO_UID"), &uid) || parse_id(getenv("SUDO_GID"), &gid))
		return geteuid();
	return uid;
}
