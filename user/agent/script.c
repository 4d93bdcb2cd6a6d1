// SPDX-License-Identifier: Apache-2.0
#include "agent/script.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/inotify.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/image.h"
#include "agent/libc.h"
#include "agent/priv.h"
#include "agent/threads.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/open_in.h"
#include "python/python.h"

#define EXECUTED_MS   10000 /* time limit from the moment when the interpreter took the request */
#define KEPT_MS	      200   /* time for which the empty file is kept for a process that is about to open it */
#define POLL_NS	      100000
#define POLL_LATER_NS 1000000
#define LATER_MS      50

/*
 * Where the script writes its result: the end of the buffer for its path, of which the interpreter reads only the
 * part up to the NUL.
 */
struct box {
	char state; /* written by enter.py and failed.py */
	char pad[7];
	char text[240];
};
#define BOX_DONE '1'

/*
 * All data that the helper needs. The helper is a forked copy of this process, in which other threads may have held
 * locks.
 */
struct ask {
	struct py_exec x;
	int root, mem, other; /* /proc/PID/root, /proc/PID/mem, end of a socket pair */
	int dir, file, opens; /* opens: inotify instance of the file */
	uid_t uid;
	gid_t gid;
	char name[32], path[64];
	struct buf text;
	bool withdrawn;
};

struct answer {
	int code;
	uint64_t held_ns;
	char why[320];
};

static uint64_t box_at(const struct py_exec *x)
{
	return x->path + x->path_bytes - sizeof(struct box);
}

/*
 * Returns -EPERM if the process has a filter. It may kill the process for the script's system calls, and it can be
 * read only while the thread is stopped.
 */
static int refuse_filter(struct tgt *t, struct err *e)
{
	const char *seccomp = NULL;
	struct buf status = {0};
	bool filtered;

	if (!tgt_peek_status(tgt_pid(t), tgt_pid(t), &status))
		seccomp = tgt_status_field(status.data, "Seccomp");
	filtered = seccomp && atoi(seccomp);
	buf_fini(&status);
	return filtered ? err_set(e, ERR_TARGET, -EPERM, "it has a seccomp filter, which may forbid what a script does")
			: 0;
}

int agt_script_usable(struct tgt *t, struct err *e)
{
	struct agt_libc libc;
	struct tgt_stop stop;
	struct py_exec x;
	int err = py_exec_find(t, &x, e);

	err = err ? err : agt_libc_find(t, &libc, e);
	err = err ? err : refuse_filter(t, e);
	if (!err && tgt_peek_stop(tgt_pid(t), &stop))
		err = err_set(e, ERR_TARGET, -EAGAIN, "it is stopped");
	return err;
}

/* ---- in the helper: the file */

static int open_in_root(const struct ask *a, const char *path, uint64_t flags)
{
	const struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};

	return open_in(a->root, path, how);
}

/* Returns true if no third user can replace the file in this directory. */
static bool is_safe(const struct ask *a, int dir)
{
	struct stat st;

	return !fstat(dir, &st) && S_ISDIR(st.st_mode) && (!st.st_uid || st.st_uid == a->uid) &&
	       (!(st.st_mode & (S_IWGRP | S_IWOTH)) || st.st_mode & S_ISVTX);
}

/*
 * Opens with the rights of the process's user, who may have mounted a directory of somebody else at this path. The
 * groups of mxbpf do not count: start_helper() drops them.
 */
static int open_as_user(const struct ask *a, int dir, const char *path, uint64_t flags)
{
	const struct open_how how = {.flags = flags | O_NOFOLLOW | O_CLOEXEC,
				     .mode = flags & O_CREAT ? 0444 : 0,
				     .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	gid_t gid = (gid_t)setfsgid(a->gid);
	uid_t uid = (uid_t)setfsuid(a->uid);
	int fd = open_in(dir, path, how);

	setfsuid(uid);
	setfsgid(gid);
	return fd;
}

/* Returns true if the path leads the process's user to this very file. */
static bool is_found(const struct ask *a)
{
	int fd = open_as_user(a, a->root, a->path, O_RDONLY);
	struct stat here, there;
	bool same = fd >= 0 && !fstat(fd, &there) && !fstat(a->file, &here) && here.st_dev == there.st_dev &&
		    here.st_ino == there.st_ino;

	if (fd >= 0)
		close(fd);
	return same;
}

static int watch_opens(struct ask *a)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", a->file);
	a->opens = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	return a->opens < 0 || inotify_add_watch(a->opens, path, IN_OPEN) < 0 ? -errno : 0;
}

/* Returns true if the file was opened since the last call. */
static bool was_opened(const struct ask *a)
{
	char events[4096];
	bool any = false;
	unsigned i;

	/* The kernel merges equal events. A process that opens the file all the time could feed this for ever. */
	for (i = 0; i < 16 && read(a->opens, events, sizeof(events)) > 0; i++)
		any = true;
	return any;
}

static int write_text(const struct ask *a)
{
	const ssize_t n = write(a->file, a->text.data, a->text.len);

	return n < 0 ? -errno : n < (ssize_t)a->text.len ? -ENOSPC : 0;
}

static int put_file(struct ask *a, const char *dir)
{
	int err;

	a->dir = open_in_root(a, dir, O_PATH | O_DIRECTORY);
	if (a->dir < 0)
		return -errno;
	snprintf(a->path, sizeof(a->path), "%s/%s", dir, a->name);
	a->file = is_safe(a, a->dir) ? open_as_user(a, a->dir, a->name, O_RDWR | O_CREAT | O_EXCL) : -1;
	if (a->file < 0) {
		close(a->dir);
		return -EPERM;
	}
	err = fchmod(a->file, 0444) ? -errno : write_text(a);
	if (!err && !is_found(a))
		err = -EACCES;
	if (!err)
		err = watch_opens(a);
	if (!err)
		return 0;
	unlinkat(a->dir, a->name, 0);
	close(a->file);
	close(a->dir);
	return err;
}

/* ---- in the helper: the request */

static bool get(const struct ask *a, uint64_t addr, void *to, size_t n)
{
	return pread(a->mem, to, n, (off_t)addr) == (ssize_t)n;
}

static bool script_put(const struct ask *a, uint64_t addr, const void *from, size_t n)
{
	return pwrite(a->mem, from, n, (off_t)addr) == (ssize_t)n;
}

/* Returns 1 if our request is pending, 0 if it was taken or replaced, or -errno. */
static int is_pending(const struct ask *a)
{
	char path[sizeof(a->path)];
	uint32_t pending;

	if (!get(a, a->x.pending, &pending, sizeof(pending)) || !get(a, a->x.path, path, sizeof(path)))
		return -ESRCH;
	path[sizeof(path) - 1] = '\0';
	return pending && !strcmp(path, a->path);
}

/*
 * Sets the bits that make the thread look at the request. Other threads change bits of the byte at any time, and a bit
 * that is set between the read and the write (about a microsecond) is lost if it is none of ours (see
 * user/python/exec.c). A thread that wants the lock and the garbage collector repeat their requests. Only with a global
 * lock, an exception that another thread raises for this one in that time is delayed until the next of these bits.
 */
static bool put_breaker(const struct ask *a)
{
	uint8_t bits;

	if (!get(a, a->x.breaker, &bits, sizeof(bits)))
		return false;
	bits |= a->x.breaker_bits;
	return script_put(a, a->x.breaker, &bits, sizeof(bits));
}

static int put_request(const struct ask *a)
{
	const struct box empty = {.state = 0};
	uint32_t pending;

	if (!get(a, a->x.pending, &pending, sizeof(pending)))
		return -ESRCH;
	if (pending)
		return -EBUSY;
	pending = 1;
	return script_put(a, box_at(&a->x), &empty, sizeof(empty)) &&
			       script_put(a, a->x.path, a->path, strlen(a->path) + 1) &&
			       script_put(a, a->x.pending, &pending, sizeof(pending)) && put_breaker(a)
		       ? 0
		       : -ESRCH;
}

/*
 * Empties the file, so that whoever opens it from now on reads nothing. The interpreter may be between the request
 * and the file: if it opened the file before it was emptied, was_opened() returns true afterwards.
 */
static void withdraw(struct ask *a)
{
	const uint32_t none = 0;

	a->withdrawn = true;
	if (!ftruncate(a->file, 0) && is_pending(a) > 0) {
		script_put(a, a->x.path, &none, 1);
		script_put(a, a->x.pending, &none, sizeof(none));
	}
}

/* Sleeps for ns. Returns at once when the other process has ended, and sets *alone. */
static void pause_for(const struct ask *a, long ns, bool *alone)
{
	struct pollfd other = {.fd = a->other};

	*alone |= ppoll(&other, !*alone, &(struct timespec){.tv_nsec = ns}, NULL) > 0;
}

static int script_tell(struct answer *r, int code, const char *why)
{
	snprintf(r->why, sizeof(r->why), "%s", why);
	return r->code = code;
}

static int read_box(const struct box *box, struct answer *r)
{
	if (box->state == BOX_DONE)
		return r->code = 0;
	snprintf(r->why, sizeof(r->why), "the script failed: %.*s", (int)sizeof(box->text), box->text);
	return r->code = -ENOTSUP;
}

/*
 * Waits for the result of the script. While the request is pending, the interpreter has not opened the file, but
 * others may have. If the file was opened after that, the script may be running, and the agent must not be loaded
 * in another way. Otherwise the request is withdrawn.
 */
static int wait_script(struct ask *a, struct answer *r)
{
	uint64_t begun_ns = clock_ns(CLOCK_MONOTONIC), taken_ns = begun_ns, now, limit_ns;
	const char *why = "its main thread executed no Python code in 2 s";
	bool opened = false, alone = false;
	struct box box;

	for (;;) {
		bool opens = was_opened(a);
		int pending = is_pending(a);

		now = clock_ns(CLOCK_MONOTONIC);
		if (pending < 0 || !get(a, box_at(&a->x), &box, sizeof(box)))
			return script_tell(r, -ESRCH, "the process has ended");
		r->held_ns = now - taken_ns;
		if (box.state)
			return read_box(&box, r);
		if (pending)
			taken_ns = now;
		opened = !pending && (opened || opens);
		limit_ns = pending ? begun_ns + AGT_SCRIPT_MS * MS
				   : taken_ns + (opened ? EXECUTED_MS : AGT_SCRIPT_MS) * MS;
		if (opened && now > limit_ns)
			return script_tell(r, -EINPROGRESS, "the script has begun and not ended");
		if (!opened && a->withdrawn)
			return script_tell(r, -ETIME, why);
		if (!opened && ((alone && pending) || now > limit_ns)) {
			why = pending ? why : "the interpreter did not open the script; an audit hook may forbid it";
			withdraw(a);
			continue;
		}
		pause_for(a, now - begun_ns < LATER_MS * MS ? POLL_NS : POLL_LATER_NS, &alone);
	}
}

static const char *const dirs[] = {"/tmp", "/var/tmp", "/dev/shm"};

/*
 * The file is removed some time after the answer. A child that the process has just forked may have the request
 * too. It then finds an empty file and not a missing one, about which its interpreter would complain.
 */
static void answer(struct ask *a)
{
	struct answer r = {.code = -EACCES};
	bool full = false;
	size_t i;

	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]) && r.code; i++) {
		r.code = put_file(a, dirs[i]);
		full |= r.code == -ENOSPC || r.code == -EDQUOT;
	}
	if (r.code) {
		script_tell(&r, r.code,
			    full ? "cannot create the script's file in its /tmp, /var/tmp or /dev/shm: no space is left"
				 : "cannot create the script's file in its /tmp, /var/tmp or /dev/shm");
		send(a->other, &r, sizeof(r), MSG_NOSIGNAL);
		return;
	}
	r.code = put_request(a);
	if (r.code)
		script_tell(&r, r.code,
			    r.code == -EBUSY ? "another tool's request is pending" : "cannot write to its memory");
	else
		wait_script(a, &r);
	if (!ftruncate(a->file, 0) && r.code != -EINPROGRESS)
		script_put(a, box_at(&a->x), &(const struct box){.state = 0}, sizeof(struct box));
	send(a->other, &r, sizeof(r), MSG_NOSIGNAL);
	nanosleep(&(struct timespec){.tv_nsec = KEPT_MS * MS}, NULL);
	unlinkat(a->dir, a->name, 0);
}

/* Starts the helper process. If mxbpf is killed, the helper withdraws the request and removes the file. */
static pid_t start_helper(struct ask *a, int end)
{
	pid_t pid = fork();
	sigset_t all;

	if (pid)
		return pid;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	setgroups(0, NULL);
	dup2(a->root, 0);
	dup2(a->mem, 1);
	dup2(end, 2);
	close_range(3, ~0u, 0);
	a->root = 0;
	a->mem = 1;
	a->other = 2;
	answer(a);
	_exit(0);
}

/* ---- in mxbpf */

/*
 * The two parts are compiled when they are executed, so that compiling the file takes a fraction of the time. If a
 * signal comes while the interpreter reads and compiles the file, its handler runs before the first instruction,
 * where nothing catches its exceptions.
 */
static int make_text(struct ask *a, const struct agt_script_opts *o, uint32_t pid)
{
	const unsigned char *image = o->image;
	int err = buf_printf(&a->text, "script = set()\npid, box, start, modules = %u, %#llx, %#llx, %#llx\nimage = '",
			     pid, (unsigned long long)box_at(&a->x), (unsigned long long)o->start,
			     (unsigned long long)o->arg);
	size_t i;

	for (i = 0; !err && !o->start && i < o->image_bytes; i++)
		err = buf_printf(&a->text, "%02x", image[i]);
	return err ? err
		   : buf_printf(&a->text,
				"'\ntry:\n    exec(r'''%s''')\nexcept BaseException as raised:\n"
				"    exec(r'''%s''')\ndel script\n",
				agent_enter, agent_failed);
}

/*
 * Reads with which ids the process opens files. The owner of /proc/PID is another one if the process has made itself
 * undumpable. Returns 0, or -1 with errno.
 */
static int read_user(struct ask *a, pid_t pid)
{
	const char *uids, *gids;
	struct buf status = {0};
	int err = tgt_peek_status(pid, pid, &status);
	bool found;

	uids = err ? NULL : tgt_status_field(status.data, "Uid");
	gids = err ? NULL : tgt_status_field(status.data, "Gid");
	found = uids && gids && sscanf(uids, "%*u %*u %*u %u", &a->uid) == 1 &&
		sscanf(gids, "%*u %*u %*u %u", &a->gid) == 1;
	buf_fini(&status);
	errno = found ? 0 : err ? -err : EBADMSG;
	return found ? 0 : -1;
}

/* Collects the data of the process, with ids as the process itself sees them. */
static int prepare(struct ask *a, const struct agt_script_opts *o, struct err *e)
{
	pid_t pid = tgt_pid(o->t);
	uint64_t number;
	char path[64];
	unsigned levels;

	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	a->root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	a->mem = open(path, O_RDWR | O_CLOEXEC);
	if (a->root < 0 || a->mem < 0 || read_user(a, pid) || getrandom(&number, sizeof(number), 0) != sizeof(number))
		return err_set(e, ERR_PRIVILEGE, -errno, "cannot open the memory or the files of process %d: %s", pid,
			       strerror(errno));
	snprintf(a->name, sizeof(a->name), ".mxbpf-%016llx.py", (unsigned long long)number);
	/* The memory was opened before. This checks that it still belongs to the same program. */
	if (py_exec_find(o->t, &a->x, e))
		return e->code;
	if (make_text(a, o, tgt_peek_number(pid, pid, &levels)))
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	return 0;
}

static int ask_helper(struct ask *a, struct answer *r, pid_t *helper)
{
	ssize_t n;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return script_tell(r, -errno, "cannot create a socket");
	*helper = start_helper(a, ends[1]);
	close(ends[1]);
	if (*helper < 0) {
		*helper = 0;
		script_tell(r, -EAGAIN, "cannot start a helper process");
	} else {
		do {
			n = recv(ends[0], r, sizeof(*r), 0);
		} while (n < 0 && errno == EINTR);
		if (n != (ssize_t)sizeof(*r))
			script_tell(r, -EINPROGRESS, "the helper process was killed");
	}
	close(ends[0]);
	return r->code;
}

int agt_script(const struct agt_script_opts *o, struct agt_injected *out, pid_t *helper, struct err *e)
{
	struct ask a = {.root = -1, .mem = -1};
	struct answer r = {0};
	int err = prepare(&a, o, e);

	*helper = 0;
	if (!err && ask_helper(&a, &r, helper))
		err = err_set(e, ERR_TARGET, r.code,
			      "cannot load the agent by a script in Python 3.%u of process %d: %s", a.x.minor,
			      tgt_pid(o->t), r.why);
	if (!err)
		*out = (struct agt_injected){.tid = tgt_pid(o->t),
					     .pause_ns = r.held_ns,
					     .longest_ns = r.held_ns,
					     .stops = 1,
					     .route = "PEP 768: a script that Python executed"};
	if (a.root >= 0)
		close(a.root);
	if (a.mem >= 0)
		close(a.mem);
	buf_fini(&a.text);
	return err;
}

void agt_script_end(pid_t *helper)
{
	while (*helper > 0 && waitpid(*helper, NULL, 0) < 0 && errno == EINTR)
		;
	*helper = 0;
}
