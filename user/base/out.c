// SPDX-License-Identifier: Apache-2.0
#include "base/out.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/out_path.h"

#define BUF_BYTES     (256u << 10)
#define RESERVE_BYTES 4096u
/* Bytes of text to escape at once. One byte becomes at most 6 bytes (\u00XX), so all of them fit into RESERVE_BYTES. */
#define PART_BYTES 512u

struct out {
	int fd;
	int error;
	struct out_place place;
	char *path;   /* owned; place.shown */
	char tmp[64]; /* name of the temporary file, if it has one */
	bool gzip, deflating;
	bool shared;		       /* out_share() */
	bool growing;		       /* out_open_growing(): the file has its final name from the start */
	bool join_lines, behind_break; /* out_join_lines() */
	enum out_filter filter;
	z_stream z;
	unsigned char *zbuf; /* BUF_BYTES, if gzip */
	uint64_t flushed;    /* bytes that have left buf */
	out_take take;	     /* gets them instead of fd; NULL: none */
	void *take_ctx;
	size_t len;
	char buf[BUF_BYTES];
};

/* ---- checks before probes are attached */

/* Creates a file there. Only this is a reliable test, even for root on a read-only file system. */
static int try_create(const struct out_place *p)
{
	char tmp[64];
	int fd = out_place_unnamed(p->dirfd, O_WRONLY, tmp);

	if (fd < 0)
		return fd;
	if (*tmp)
		unlinkat(p->dirfd, tmp, 0);
	close(fd);
	return 0;
}

/*
 * rename() replaces an existing file. In a sticky directory only the file's owner, the directory's owner or root may do
 * so.
 */
static int may_replace(const struct out_place *p)
{
	struct stat dir, st;

	if (p->what != OUT_FILE || geteuid() == 0)
		return 0;
	if (fstat(p->dirfd, &dir) || fstatat(p->dirfd, p->base, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	if ((dir.st_mode & S_ISVTX) && st.st_uid != geteuid() && dir.st_uid != geteuid())
		return -EPERM;
	return 0;
}

int out_check(const char *path, struct err *e)
{
	struct out_place p;
	int ret = out_place_find(path, &p, e);

	if (ret)
		return ret;
	if (p.what == OUT_STDOUT)
		ret = out_place_stdout();
	else if (p.what == OUT_STREAM)
		ret = faccessat(p.dirfd, p.base, W_OK, AT_EACCESS) ? -errno : 0;
	else
		ret = try_create(&p);
	if (!ret)
		ret = may_replace(&p);
	if (ret)
		out_place_err(e, p.what == OUT_STDOUT ? "standard output" : path, ret);
	out_place_fini(&p);
	return ret;
}

/* ---- opening */

static int open_fd(struct out *o, struct err *e)
{
	switch (o->place.what) {
	case OUT_STDOUT:
		return STDOUT_FILENO;
	case OUT_STREAM:
		return out_place_open_stream(&o->place);
	default:
		return o->growing ? out_create(o->path, e) : out_place_unnamed(o->place.dirfd, O_WRONLY, o->tmp);
	}
}

static int start_gzip(struct out *o)
{
	o->zbuf = malloc(BUF_BYTES);
	if (!o->zbuf)
		return -ENOMEM;
	/* 15 + 16 means a gzip header. Level 1 shrinks traces 15 times; the next levels take twice the time. */
	if (deflateInit2(&o->z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	o->deflating = true;
	return 0;
}

enum open_flag { GZIP = 1, GROWING = 2 };

/* dirfd: the directory of path; -1: the one that path names. */
static int open_out(const char *path, int dirfd, unsigned flags, struct out **op, struct err *e)
{
	struct out *o = malloc(sizeof(*o)); /* not calloc(): untouched pages of the buffer cost no memory */
	int ret;

	*op = NULL;
	if (!o)
		return out_place_err(e, path, -ENOMEM);
	memset(o, 0, offsetof(struct out, buf));
	o->fd = -1;
	o->gzip = flags & GZIP;
	o->growing = flags & GROWING;
	o->place.dirfd = -1;
	o->path = strdup(path);
	ret = o->path ? 0 : -ENOMEM;
	if (!ret && dirfd < 0)
		ret = out_place_find(o->path, &o->place, e);
	else if (!ret)
		ret = out_place_in(dirfd, o->path, &o->place, e);
	if (!ret) {
		o->fd = open_fd(o, e);
		ret = o->fd < 0 ? o->fd : 0;
	}
	if (!ret && o->gzip)
		ret = start_gzip(o);
	if (ret) {
		out_place_err(e, path, ret);
		out_abort(o);
		return ret;
	}
	*op = o;
	return 0;
}

int out_open(const char *path, bool gzip, struct out **o, struct err *e)
{
	return open_out(path, -1, gzip ? GZIP : 0, o, e);
}

int out_open_growing(const char *path, bool gzip, struct out **o, struct err *e)
{
	return open_out(path, -1, (gzip ? GZIP : 0) | GROWING, o, e);
}

int out_open_in(int dirfd, const char *path, struct out **o, struct err *e)
{
	return open_out(path, dirfd, 0, o, e);
}

void out_share(struct out *o)
{
	o->shared = true;
}

int out_open_take(out_take take, void *ctx, struct out **op)
{
	struct out *o = *op = malloc(sizeof(*o));

	if (!o)
		return -ENOMEM;
	memset(o, 0, offsetof(struct out, buf));
	o->fd = -1;
	o->place.dirfd = -1;
	o->take = take;
	o->take_ctx = ctx;
	return 0;
}

/* ---- writing */

static int write_all(int fd, const void *data, size_t n)
{
	const char *p = data;
	ssize_t done;

	while (n) {
		done = write(fd, p, n);
		if (done < 0 && errno == EAGAIN) /* somebody made our stdout non-blocking */
			poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
		else if (done < 0 && errno != EINTR)
			return -errno;
		if (done <= 0)
			continue;
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

static int deflate_all(struct out *o, const void *data, size_t n, int flush)
{
	int ret = 0, z;

	o->z.next_in = (Bytef *)data;
	o->z.avail_in = (uInt)n;
	do {
		o->z.next_out = o->zbuf;
		o->z.avail_out = BUF_BYTES;
		z = deflate(&o->z, flush);
		if (z == Z_STREAM_ERROR)
			return -EIO;
		ret = write_all(o->fd, o->zbuf, BUF_BYTES - o->z.avail_out);
	} while (!ret && !o->z.avail_out);
	return ret;
}

static void out_put(struct out *o, const void *data, size_t n)
{
	o->flushed += n;
	if (o->error || !n)
		return;
	if (o->take) {
		o->take(o->take_ctx, data, n);
		return;
	}
	while (!o->error && n) {
		size_t part = n < (1u << 30) ? n : 1u << 30;

		o->error = o->gzip ? deflate_all(o, data, part, Z_NO_FLUSH) : write_all(o->fd, data, part);
		data = (const char *)data + part;
		n -= part;
	}
}

/* Joins lines in place. */
static void join_lines(struct out *o)
{
	size_t i, n = 0;

	for (i = 0; i < o->len; i++) {
		o->behind_break = o->buf[i] == '\n' || (o->behind_break && o->buf[i] == ' ');
		if (!o->behind_break)
			o->buf[n++] = o->buf[i];
	}
	o->len = n;
}

static int write_failed(const struct out *o, int code, struct err *e)
{
	return out_place_err(e, o->place.what == OUT_STDOUT ? "standard output" : o->path, code);
}

static const char *entity(enum out_filter filter, char c)
{
	if (filter == OUT_SCRIPT)
		return c == '<' ? "\\u003c" : NULL;
	switch (c) {
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '&':
		return "&amp;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	}
	return NULL;
}

static void put_filtered(struct out *o)
{
	const char *instead;
	size_t i, from = 0;

	for (i = 0; i < o->len; i++) {
		instead = entity(o->filter, o->buf[i]);
		if (!instead)
			continue;
		out_put(o, o->buf + from, i - from);
		out_put(o, instead, strlen(instead));
		from = i + 1;
	}
	out_put(o, o->buf + from, o->len - from);
}

static void flush(struct out *o)
{
	if (o->join_lines)
		join_lines(o);
	if (o->filter)
		put_filtered(o);
	else
		out_put(o, o->buf, o->len);
	o->len = 0;
}

void out_filter(struct out *o, enum out_filter filter)
{
	flush(o);
	o->filter = filter;
}

void out_join_lines(struct out *o, bool on)
{
	flush(o);
	o->join_lines = on;
	o->behind_break = false;
}

void out_write(struct out *o, const void *data, size_t n)
{
	for (; (o->join_lines || o->filter) && n > BUF_BYTES; n -= BUF_BYTES) {
		flush(o);
		memcpy(o->buf, data, o->len = BUF_BYTES);
		data = (const char *)data + BUF_BYTES;
	}
	if (n > BUF_BYTES - o->len)
		flush(o);
	if (n > BUF_BYTES) {
		out_put(o, data, n);
		return;
	}
	memcpy(o->buf + o->len, data, n);
	o->len += n;
}

void out_puts(struct out *o, const char *text)
{
	out_write(o, text, strlen(text));
}

char *out_reserve(struct out *o, size_t n)
{
	if (n > BUF_BYTES - o->len)
		flush(o);
	return o->buf + o->len;
}

void out_filled(struct out *o, size_t used)
{
	o->len += used;
}

/* Returns how much of the text fits into one part without splitting a UTF-8 sequence. */
static size_t part_len(const char *text, size_t len)
{
	size_t n = len < PART_BYTES ? len : PART_BYTES, back;

	for (back = 0; n < len && back < 4; back++)
		if (((unsigned char)text[n - back] & 0xc0) != 0x80)
			return n - back;
	return n;
}

void out_escaped(struct out *o, out_escape escape, const char *text, size_t len)
{
	size_t n;
	char *p;

	for (; len; text += n, len -= n) {
		n = part_len(text, len);
		p = out_reserve(o, RESERVE_BYTES);
		out_filled(o, escape(p, RESERVE_BYTES, text, n));
	}
}

void out_printf(struct out *o, const char *fmt, ...)
{
	char *p = out_reserve(o, RESERVE_BYTES);
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(p, RESERVE_BYTES, fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < RESERVE_BYTES) {
		out_filled(o, (size_t)n);
		return;
	}
	va_start(ap, fmt);
	n = vasprintf(&p, fmt, ap);
	va_end(ap);
	if (n < 0) {
		o->error = o->error ? o->error : -ENOMEM;
		return;
	}
	out_write(o, p, (size_t)n);
	free(p);
}

int out_flush(struct out *o, struct err *e)
{
	flush(o);
	if (!o->error && o->gzip)
		o->error = deflate_all(o, "", 0, Z_SYNC_FLUSH);
	return o->error ? write_failed(o, o->error, e) : 0;
}

int out_error(const struct out *o)
{
	return o->error;
}

void out_fail(struct out *o, int err)
{
	o->error = o->error ? o->error : err;
}

uint64_t out_bytes(const struct out *o)
{
	return o->flushed + o->len;
}

/* ---- closing */

static void release(struct out *o)
{
	if (o->deflating)
		deflateEnd(&o->z);
	if (o->fd >= 0 && o->place.what != OUT_STDOUT)
		close(o->fd);
	if (*o->tmp)
		unlinkat(o->place.dirfd, o->tmp, 0);
	out_place_fini(&o->place);
	free(o->zbuf);
	free(o->path);
	free(o);
}

/* Gives an O_TMPFILE a name next to the final one. linkat() cannot replace a file, but rename() can. */
static int give_name(struct out *o)
{
	char self[32], tmp[64];

	if (*o->tmp)
		return 0;
	out_place_tmp(tmp);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", o->fd);
	if (linkat(o->fd, "", o->place.dirfd, tmp, AT_EMPTY_PATH) &&
	    linkat(AT_FDCWD, self, o->place.dirfd, tmp, AT_SYMLINK_FOLLOW))
		return -errno;
	memcpy(o->tmp, tmp, sizeof(tmp));
	return 0;
}

/* Closes before the rename, because close() may be the first call to report a full quota. */
static int install(struct out *o)
{
	int ret = out_place_chown(o->fd), copy;

	if (!ret && (o->shared ? fchmod(o->fd, 0644) : fsync(o->fd)))
		ret = -errno;
	/* Some file systems tell only at a close that they could not write. The file itself keeps its lock until the
	 * end. */
	copy = fcntl(o->fd, F_DUPFD_CLOEXEC, 0);
	if ((copy < 0 || close(copy)) && !ret)
		ret = -errno;
	if (!ret && !o->growing) {
		out_place_sweep(o->place.dirfd);
		ret = give_name(o);
	}
	if (!ret && !o->growing && renameat(o->place.dirfd, o->tmp, o->place.dirfd, o->place.base))
		ret = -errno;
	close(o->fd);
	o->fd = -1;
	if (!ret)
		*o->tmp = '\0';
	return ret;
}

int out_commit(struct out *o, struct err *e)
{
	int ret;

	flush(o);
	if (!o->error && o->gzip)
		o->error = deflate_all(o, "", 0, Z_FINISH);
	ret = o->error;
	if (!ret && (o->place.what == OUT_FILE || o->place.what == OUT_NOTHING)) {
		ret = install(o);
	} else if (!ret && o->place.what == OUT_STREAM) {
		ret = close(o->fd) ? -errno : 0;
		o->fd = -1;
	}
	if (ret)
		write_failed(o, ret, e);
	release(o);
	return ret;
}

void out_abort(struct out *o)
{
	if (o)
		release(o);
}

/* ---- recordings and scratch files */

int out_create_new(int dirfd, const char *path, struct err *e)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const int fd = openat(dirfd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int ret = fd < 0 ? -errno : out_place_chown(fd);

	if (!ret)
		return fd;
	if (fd >= 0) {
		unlinkat(dirfd, name, 0);
		close(fd);
	}
	return out_place_err(e, path, ret);
}

int out_create(const char *path, struct err *e)
{
	struct out_place p;
	int ret = out_place_find(path, &p, e);

	if (ret)
		return ret;
	if (p.what == OUT_STREAM || p.what == OUT_STDOUT)
		ret = err_set(e, ERR_RUNTIME, -ESPIPE,
			      "cannot write %s: a recording is read back while it is made and needs a plain file",
			      path);
	else if (p.what == OUT_FILE && unlinkat(p.dirfd, p.base, 0) && errno != ENOENT)
		ret = out_place_err(e, path, -errno);
	else
		ret = out_create_new(p.dirfd, path, e);
	out_place_fini(&p);
	return ret;
}

int out_remove(const char *path, struct err *e)
{
	struct out_place p;

	if (out_place_find(path, &p, e))
		return e->code;
	if (p.what != OUT_FILE)
		err_set(e, ERR_RUNTIME, -ENOENT, "cannot delete %s: it is no plain file", path);
	else if (unlinkat(p.dirfd, p.base, 0))
		err_set(e, ERR_RUNTIME, -errno, "cannot delete %s: %s", path, strerror(errno));
	out_place_fini(&p);
	return e->code;
}

int out_scratch(const char *path, struct err *e)
{
	struct out_place p = {.what = OUT_STDOUT, .dirfd = -1};
	const char *dir = getenv("TMPDIR");
	char tmp[64] = "";
	int fd = path ? out_place_find(path, &p, e) : 0;

	if (fd)
		return fd;
	if (!dir || !*dir)
		dir = "/tmp";
	/* The directory of a device is in memory (devtmpfs), with no space for gigabytes. */
	if (p.what == OUT_STDOUT || p.what == OUT_STREAM) {
		out_place_fini(&p);
		p.dirfd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		p.shown = dir;
	}
	fd = p.dirfd < 0 ? -errno : out_place_unnamed(p.dirfd, O_RDWR, tmp);
	if (fd < 0)
		err_set(e, ERR_RUNTIME, fd, "cannot create a scratch file next to %s: %s", p.shown, strerror(-fd));
	else if (*tmp)
		unlinkat(p.dirfd, tmp, 0);
	out_place_fini(&p);
	return fd;
}
