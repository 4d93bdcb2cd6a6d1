// SPDX-License-Identifier: Apache-2.0
#include "cmd/serve/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/out.h"
#include "base/thread.h"
#include "cmd/cmd.h"

#define LOOK_MS 200 /* how often a thread whose reader does not read looks whether it must end */
#define END_S	1

struct stream {
	pthread_t thread;
	char *path; /* owned */
	int fd;
	struct buf writing; /* these four are the thread's */
	struct buf writing_told;
	bool torn;	      /* a line was written in part */
	bool failed;	      /* that was said */
	pthread_mutex_t lock; /* protects what follows */
	pthread_cond_t wake;
	struct buf waiting;
	struct buf waiting_told; /* uint64_t of each line: how many it says were left out before it */
	uint64_t left_out;
	bool ends;
};

/* ---- the file */

/* Another user may have put a pipe of his own there, or a second name of a file of root's. */
static bool may_use(const struct stat *st)
{
	return S_ISFIFO(st->st_mode) ? !out_foreign_pipe(st)
	       : S_ISREG(st->st_mode)
		       ? st->st_nlink == 1 && (!st->st_uid || st->st_uid == geteuid() || st->st_uid == out_owner())
		       : S_ISCHR(st->st_mode);
}

/* A FIFO is opened for reading as well, so that it needs no reader yet. */
static int open_existing(const char *path, struct err *e)
{
	char base[256], self[32];
	struct stat st;
	const int dir = out_open_dir(path, base, e);
	int at, fd = -1;

	if (dir < 0)
		return dir;
	at = openat(dir, base, O_PATH | O_NOFOLLOW | O_CLOEXEC); /* what is checked is what is opened */
	close(dir);
	if (at < 0 && errno == ENOENT)
		return -ENOENT;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", at);
	if (at >= 0 && (fstat(at, &st) || !may_use(&st)))
		err_set(e, ERR_RUNTIME, -EPERM, "cannot write %s: it belongs to another user, or has a second name",
			path);
	else if (at >= 0)
		fd = open(self, O_RDWR | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 && !e->code)
		err_set(e, ERR_RUNTIME, -errno, "cannot write %s: %s", path, strerror(errno));
	if (at >= 0)
		close(at);
	return fd < 0 ? e->code : fd;
}

static int open_path(const char *path, struct err *e)
{
	int fd;

	if (out_check(path, e))
		return e->code;
	if (!strcmp(path, "-"))
		return fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	fd = open_existing(path, e);
	if (fd != -ENOENT || e->code)
		return fd;
	fd = out_create(path, e);
	if (fd >= 0)
		fcntl(fd, F_SETFL, O_APPEND | O_NONBLOCK);
	return fd;
}

/* ---- the thread */

static bool must_end(struct stream *s)
{
	bool ends;

	pthread_mutex_lock(&s->lock);
	ends = s->ends;
	pthread_mutex_unlock(&s->lock);
	return ends;
}

/* Returns how much was written. An error is reported once, until writing works again. */
static size_t write_some(struct stream *s, const char *data, size_t n)
{
	struct pollfd p = {.fd = s->fd, .events = POLLOUT};
	ssize_t did = write(s->fd, data, n);

	while (did < 0 && (errno == EAGAIN || errno == EINTR) && (poll(&p, 1, LOOK_MS) > 0 || !must_end(s)))
		did = write(s->fd, data, n);
	if (did < 0 && !s->failed && !must_end(s))
		cmd_warn("cannot write %s: %s; lines are left out", s->path, strerror(errno));
	s->failed = did < 0;
	return did < 0 ? 0 : (size_t)did;
}

static size_t count_lines(const char *data, size_t n)
{
	const char *end = data + n;
	size_t lines = 0;

	while (data < end && (data = memchr(data, '\n', (size_t)(end - data)))) {
		data++;
		lines++;
	}
	return lines;
}

/* A line that was written in part ends before the next one. Returns how many lines were not written. */
static size_t write_lines(struct stream *s)
{
	const char *data = s->writing.data;
	size_t n = s->writing.len, did = 1;

	if (s->torn && write_some(s, "\n", 1))
		s->torn = false;
	while (n && did && !s->torn) {
		did = write_some(s, data, n);
		data += did;
		n -= did;
	}
	if (n && data > s->writing.data)
		s->torn = data[-1] != '\n';
	return count_lines(data, n);
}

static void swap(struct buf *a, struct buf *b)
{
	const struct buf was = *a;

	*a = *b;
	*b = was;
}

/* The last lines of what was to be written are lost, and with them what they say. */
static uint64_t lost_with(const struct stream *s, size_t lines)
{
	const size_t n = buf_count(&s->writing_told, uint64_t);
	uint64_t sum = lines;
	size_t i;

	for (i = n - lines; i < n; i++)
		sum += *buf_at(&s->writing_told, uint64_t, i);
	return sum;
}

static void *stream_run(void *ctx)
{
	struct stream *s = ctx;
	uint64_t lost;

	pthread_mutex_lock(&s->lock);
	while (s->waiting.len || !s->ends) {
		if (!s->waiting.len) {
			pthread_cond_wait(&s->wake, &s->lock);
			continue;
		}
		swap(&s->writing, &s->waiting);
		swap(&s->writing_told, &s->waiting_told);
		pthread_mutex_unlock(&s->lock);
		lost = lost_with(s, write_lines(s));
		s->writing.len = s->writing_told.len = 0;
		pthread_mutex_lock(&s->lock);
		s->left_out += lost;
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* ---- for the session */

static void stream_free(struct stream *s)
{
	if (s->fd >= 0)
		close(s->fd);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	buf_fini(&s->waiting);
	buf_fini(&s->writing);
	buf_fini(&s->waiting_told);
	buf_fini(&s->writing_told);
	free(s->path);
	free(s);
}

int stream_open(const char *path, struct stream **to, struct err *e)
{
	struct stream *s = *to = calloc(1, sizeof(*s));
	int err = 0;

	if (!s)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->wake, NULL);
	s->path = strdup(strcmp(path, "-") ? path : "stdout");
	s->fd = open_path(path, e);
	if (s->fd >= 0)
		err = s->path ? thread_start(&s->thread, stream_run, s) : -ENOMEM;
	if (err)
		err_set(e, ERR_RUNTIME, err, "cannot start a thread: %s", strerror(-err));
	if (s->fd >= 0 && !err)
		return 0;
	stream_free(s);
	*to = NULL;
	return e->code;
}

uint64_t stream_left_out(struct stream *s)
{
	uint64_t n;

	pthread_mutex_lock(&s->lock);
	n = s->left_out;
	pthread_mutex_unlock(&s->lock);
	return n;
}

void stream_put(struct stream *s, const char *line, size_t len, uint64_t told)
{
	pthread_mutex_lock(&s->lock);
	if (s->waiting.len + len > STREAM_BYTES || buf_put(&s->waiting_told, &told, sizeof(told))) {
		s->left_out++;
	} else if (buf_put(&s->waiting, line, len)) {
		s->waiting_told.len -= sizeof(told);
		s->left_out++;
	} else {
		s->left_out -= told;
	}
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
}

void stream_skip(struct stream *s)
{
	pthread_mutex_lock(&s->lock);
	s->left_out++;
	pthread_mutex_unlock(&s->lock);
}

/* A thread that waits for a reader of stdout cannot be ended, and keeps its memory. */
void stream_close(struct stream *s)
{
	struct timespec until;

	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->ends = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += END_S;
	if (!pthread_timedjoin_np(s->thread, NULL, &until))
		stream_free(s);
}
