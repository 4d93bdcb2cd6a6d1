// SPDX-License-Identifier: Apache-2.0
/* Files of `mxbpf serve`: the last seconds as recordings, what a job that hangs does, and how many of both are kept. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fmt.h"
#include "cmd/serve/serve.h"
#include "mxbpf_file.h"
#include "record/record.h"

#define PREFIX	   "mxbpf-"
#define NAME_BYTES 64
#define NAMES_MAX  100		 /* of one second */
#define NOW_HEAD   "mxbpf now: " /* first bytes of what a job that hangs does */

/* ---- names: mxbpf-20261126T072812Z-iteration.mxd, so that they sort by time */

static void name_file(const char *word, const char *suffix, unsigned nth, char name[NAME_BYTES])
{
	char stamp[CMD_STAMP_BYTES];

	cmd_stamp(stamp);
	if (nth)
		snprintf(name, NAME_BYTES, PREFIX "%s-%s-%u%s", stamp, word, nth, suffix);
	else
		snprintf(name, NAME_BYTES, PREFIX "%s-%s%s", stamp, word, suffix);
}

/*
 * The folder is opened once for all that is done in it, because it may be exchanged meanwhile, and each time anew,
 * because the next one may be right again. Returns a descriptor, or -errno with e set.
 */
static int open_folder(const char *path, struct err *e)
{
	char any[PATH_MAX], base[256];

	snprintf(any, sizeof(any), "%s/.mxbpf", path);
	return out_open_dir(any, base, e);
}

/* A file with a new name. */
static int create(int folder, const char *folder_path, const char *word, const char *suffix, char path[PATH_MAX],
		  struct err *e)
{
	char name[NAME_BYTES];
	unsigned nth = 0;
	int fd;

	do {
		name_file(word, suffix, nth++, name);
		snprintf(path, PATH_MAX, "%s/%s", folder_path, name);
		*e = (struct err){0};
		fd = out_create_new(folder, path, e);
	} while (fd == -EEXIST && nth < NAMES_MAX);
	if (fd == -EEXIST)
		err_set(e, ERR_RUNTIME, -EEXIST, "%s exists, and so do %d others of this second", path, NAMES_MAX - 1);
	return fd;
}

/* A part of a file would take the room that is missing. */
static void remove_part(int folder, const char *path)
{
	unlinkat(folder, strrchr(path, '/') + 1, 0);
}

/* The name is one that mxbpf gives: digits where the time is, and a suffix. */
static bool is_own_name(const char *name)
{
	static const char form[] = PREFIX "00000000T000000Z-";
	size_t i;

	for (i = 0; form[i]; i++)
		if (form[i] == '0' ? name[i] < '0' || name[i] > '9' : name[i] != form[i])
			return false;
	return fmt_ends_with(name, ".mxd") || fmt_ends_with(name, ".txt");
}

/* ---- how many are kept */

static int is_own(const struct dirent *d)
{
	return is_own_name(d->d_name);
}

/*
 * Others may give their files such a name, by chance or to have root delete them. A file is mxbpf's own if it has the
 * first bytes that mxbpf writes, and its owner.
 */
static bool is_written(int folder, const char *name, struct stat *st)
{
	const char *head = fmt_ends_with(name, ".mxd") ? MXBPF_FILE_MAGIC : NOW_HEAD;
	const size_t n = strlen(head);
	char first[sizeof(NOW_HEAD)];
	int fd;
	bool is;

	fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return false;
	is = !fstat(fd, st) && S_ISREG(st->st_mode) && st->st_uid == out_owner() && read(fd, first, n) == (ssize_t)n &&
	     !memcmp(first, head, n);
	close(fd);
	return is;
}

/* A time in a name that is still to come was written before the clock was set back. */
static bool is_of_future(const char *name)
{
	char now[NAME_BYTES];

	name_file("", "", 0, now);
	return strncmp(name, now, strlen(now) - 1) > 0;
}

/* The oldest first. Where the clock was set back, the order of names is not that of writing. */
static int by_age(const struct dirent **a, const struct dirent **b)
{
	const bool fa = is_of_future((*a)->d_name), fb = is_of_future((*b)->d_name);

	return fa != fb ? (fa ? -1 : 1) : strcmp((*a)->d_name, (*b)->d_name);
}

/*
 * Deletes the oldest files while there are too many of them, or too many bytes. The one just written, whose name may be
 * "", stays.
 */
static void files_forget(const struct cmd_opts *o, int folder, const char *written)
{
	struct dirent **all = NULL;
	int n = scandirat(folder, ".", &all, is_own, by_age), i;
	struct stat st;
	const bool has = *written && !fstatat(folder, written, &st, AT_SYMLINK_NOFOLLOW);
	unsigned kept = has;
	uint64_t bytes = has ? (uint64_t)st.st_size : 0;

	for (i = n - 1; i >= 0; i--) { /* the newest first */
		if (!strcmp(all[i]->d_name, written) || !is_written(folder, all[i]->d_name, &st))
			continue;
		if (kept < o->keep && bytes + (uint64_t)st.st_size <= o->ses.max_bytes) {
			bytes += (uint64_t)st.st_size;
			kept++;
			continue;
		}
		if (unlinkat(folder, all[i]->d_name, 0) && errno != ENOENT)
			cmd_warn("cannot delete %s/%s: %s", o->trace_dir, all[i]->d_name, strerror(errno));
	}
	for (i = 0; i < n; i++)
		free(all[i]);
	free(all);
}

/* ---- what a job that hangs does */

/*
 * Runs `mxbpf now` with its output in a file. Signals that this process holds must reach it. Returns 0, or -errno with
 * e set.
 */
static int run_now(const char *pids, int fd, struct err *e)
{
	char *const argv[] = {"mxbpf", "now", "--quiet", "--pid", (char *)(uintptr_t)pids, NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none;
	pid_t pid;
	int status = 0, err;

	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, fd, STDOUT_FILENO);
	err = posix_spawn(&pid, "/proc/self/exe", &files, &attr, argv, environ);
	while (!err && waitpid(pid, &status, 0) < 0)
		err = errno == EINTR ? 0 : errno;
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	if (err)
		err_set(e, ERR_RUNTIME, -err, "mxbpf now cannot run: %s", strerror(err));
	else if (status)
		err_set(e, ERR_RUNTIME, -EIO, "mxbpf now --pid %s ended with %s %d", pids,
			WIFEXITED(status) ? "exit code" : "signal",
			WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	return e->code;
}

/* The recording is written also if this fails, because it needs neither the process nor so much room. */
static void write_now(const struct serve *s, const struct serve_dump *d, int folder)
{
	char path[PATH_MAX];
	struct err e = {0};
	const int fd = create(folder, s->run.o->trace_dir, d->word, ".txt", path, &e);

	if (fd >= 0) {
		if (dprintf(fd, NOW_HEAD "%s\n\n", d->pids) < 0)
			err_set(&e, ERR_RUNTIME, -errno, "cannot write %s: %s", path, strerror(errno));
		else
			run_now(d->pids, fd, &e);
		if (e.code)
			remove_part(folder, path);
		close(fd);
	}
	if (e.code)
		cmd_warn("what each thread does was not written: %s", e.why);
	else
		cmd_say(CMD_INFO, "wrote %s: what each thread does", path);
}

/* ---- the last seconds */

static void tell_client(struct serve *s, const char *path)
{
	const uint64_t one = 1;

	snprintf(s->file, sizeof(s->file), "%s", path);
	if (write(s->written, &one, sizeof(one)) < 0)
		cmd_warn("a client is not told of its recording: %s", strerror(errno));
}

/* The name of a recording without its folder is one that mxbpf gives, so it is short. */
static void name_slow(struct serve *s, const struct serve_dump *d, const char *path)
{
	struct met_recorded r = d->slow;

	snprintf(r.file, sizeof(r.file), "%s", strrchr(path, '/') + 1);
	pthread_mutex_lock(&s->lock);
	if (s->nslow < SERVE_DUMPS)
		s->slow[s->nslow++] = r;
	pthread_mutex_unlock(&s->lock);
}

static void write_last(struct serve *s, int fd, const struct serve_dump *d, int folder, char path[PATH_MAX],
		       struct err *e)
{
	struct rec_reader *r = NULL;
	int to;

	if (run_open_events(fd, &r, e))
		return;
	to = create(folder, s->run.o->trace_dir, d->word, ".mxd", path, e);
	if (to >= 0 && rec_write_tail(r, d->ns, to, e))
		remove_part(folder, path);
	rec_reader_close(r);
}

int serve_write(struct serve *s, int fd, const struct serve_dump *d)
{
	char path[PATH_MAX] = "";
	struct err e = {0};
	const int folder = open_folder(s->run.o->trace_dir, &e);

	if (folder >= 0 && *d->pids) /* first: what it does now may change */
		write_now(s, d, folder);
	if (folder >= 0)
		write_last(s, fd, d, folder, path, &e);
	if (d->asked)
		tell_client(s, e.code ? "" : path);
	if (!e.code && d->slow.series)
		name_slow(s, d, path);
	if (e.code)
		cmd_warn("the last seconds were not written (%s): %s", d->why, e.why);
	else
		cmd_say(CMD_INFO, "wrote %s: %s", path, d->why);
	if (folder >= 0) {
		files_forget(s->run.o, folder, e.code ? "" : strrchr(path, '/') + 1);
		close(folder);
	}
	return CMD_OK; /* the session goes on: the next time there may be room */
}
