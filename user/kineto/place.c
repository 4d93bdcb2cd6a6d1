// SPDX-License-Identifier: Apache-2.0
/*
 * The socket that Kineto sends to, and a directory that it can write to, must be where the job sees them: in its
 * network namespace, below its root, owned by its user. A helper process goes there, becomes that user, makes both, and
 * hands them over. So root follows no path of the job, and whatever ends mxbpf, the helper sees it and deletes
 * everything.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fmt.h"
#include "kineto/priv.h"

#define HELPER_MS  5000 /* the job's user may stop the helper, which must not stop mxbpf */
#define GROUPS_MAX 64
#define FILES_MAX  4096
#define DIR_ENV	   "KINETO_ONDEMAND_TRACE_DIR"
#define DIR_BYTES  1024

enum step { STEP_NET, STEP_ROOT, STEP_USER, STEP_DIR, STEP_BIND, STEP_DONE };

/* Where the helper goes, and as whom. */
struct site {
	uid_t uid;
	gid_t gid, groups[GROUPS_MAX];
	size_t ngroups;
	int net, root; /* owned; -1: those of mxbpf */
	char dir[DIR_BYTES];
	struct sockaddr_un address;
	socklen_t address_bytes;
};

struct result {
	enum step step; /* that failed, or STEP_DONE */
	int err;
	char name[PATH_MAX]; /* of the directory */
};

/* ---- in the helper */

static int enter_root(const struct site *s)
{
	if (s->root < 0)
		return 0;
	return fchdir(s->root) || chroot(".") || chdir("/") ? -errno : 0;
}

static int become_user(const struct site *s)
{
	if (s->uid == geteuid())
		return 0;
	if (setgroups(s->ngroups, s->groups) || setresgid(s->gid, s->gid, s->gid) || setresuid(s->uid, s->uid, s->uid))
		return -errno;
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* it has the memory of mxbpf */
	return setuid(0) && geteuid() == s->uid ? 0 : -EPERM;
}

static int make_dir(const struct site *s, char name[PATH_MAX])
{
	int fd;

	snprintf(name, PATH_MAX, "%s%smxbpf-kineto-XXXXXX", s->dir, s->dir[strlen(s->dir) - 1] == '/' ? "" : "/");
	if (!mkdtemp(name))
		return -errno;
	fd = open(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* A daemon that was killed leaves its socket, which refuses every message. */
static bool is_stale(const struct site *s)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool stale;

	stale = fd >= 0 && connect(fd, (const void *)&s->address, s->address_bytes) && errno == ECONNREFUSED;
	if (fd >= 0)
		close(fd);
	return stale;
}

static int make_socket(const struct site *s)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1, err;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)))
		return -errno;
	err = bind(fd, (const void *)&s->address, s->address_bytes) ? -errno : 0;
	if (err == -EADDRINUSE && *s->address.sun_path && is_stale(s) && !unlink(s->address.sun_path))
		err = bind(fd, (const void *)&s->address, s->address_bytes) ? -errno : 0;
	return err ? err : fd;
}

static enum step make_all(const struct site *s, struct result *r, int fds[2])
{
	if (s->net >= 0 && setns(s->net, CLONE_NEWNET)) {
		r->err = -errno;
		return STEP_NET;
	}
	r->err = enter_root(s);
	if (r->err)
		return STEP_ROOT;
	r->err = become_user(s);
	if (r->err)
		return STEP_USER;
	r->err = fds[0] = make_dir(s, r->name);
	if (r->err < 0)
		return STEP_DIR;
	r->err = fds[1] = make_socket(s);
	return r->err < 0 ? STEP_BIND : STEP_DONE;
}

static void hand_over(int link, struct result *r, const int fds[2])
{
	char control[CMSG_SPACE(2 * sizeof(int))] = {0};
	struct iovec part = {r, sizeof(*r)};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
	struct cmsghdr *c;

	if (r->step == STEP_DONE) {
		m.msg_control = control;
		m.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&m);
		*c = (struct cmsghdr){CMSG_LEN(2 * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
		memcpy(CMSG_DATA(c), fds, 2 * sizeof(int));
	}
	if (sendmsg(link, &m, MSG_NOSIGNAL) < 0)
		return; /* mxbpf has ended */
	if (fds[1] >= 0)
		close(fds[1]); /* the name goes with the last descriptor */
}

/* Only the job can have put a directory there, and only one with something in it stays. */
static void empty_dir(int fd)
{
	DIR *dir = fdopendir(fd);
	struct dirent *d;
	unsigned i;

	for (i = 0; dir && i < FILES_MAX && (d = readdir(dir)); i++)
		if (strcmp(d->d_name, ".") && strcmp(d->d_name, "..") && unlinkat(fd, d->d_name, 0))
			unlinkat(fd, d->d_name, AT_REMOVEDIR);
	if (dir)
		closedir(dir);
}

__attribute__((noreturn)) static void help(const struct site *s, int link)
{
	struct result r = {.step = STEP_DONE};
	int fds[2] = {-1, -1};
	sigset_t all;
	char c;

	sigfillset(&all); /* Ctrl-C is for the whole group */
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_NAME, "mxbpf-kineto");
	umask(077);
	r.step = make_all(s, &r, fds);
	hand_over(link, &r, fds);
	while (read(link, &c, 1) < 0 && errno == EINTR)
		;
	if (fds[0] >= 0) {
		empty_dir(fds[0]);
		rmdir(r.name);
	}
	if (r.step == STEP_DONE && *s->address.sun_path)
		unlink(s->address.sun_path);
	_exit(0);
}

/* ---- in mxbpf */

static int place_refuse(const struct result *r, const struct site *s, const struct kin_client *c, struct err *e)
{
	const char *why = strerror(-r->err);

	switch (r->step) {
	case STEP_NET:
		return err_set(e, ERR_PRIVILEGE, r->err,
			       "process %d is in another network namespace, where its Kineto looks for a daemon, and "
			       "entering it failed: %s; it needs root (sudo), or restart the job with "
			       "KINETO_IPC_SOCKET_DIR=DIR, a directory that it can write to",
			       c->pid, why);
	case STEP_ROOT:
		return err_set(e, ERR_PRIVILEGE, r->err,
			       "process %d sees other files, and entering its root directory failed: %s; it needs root "
			       "(sudo)",
			       c->pid, why);
	case STEP_USER:
		return err_set(
			e, ERR_PRIVILEGE, r->err,
			"process %d belongs to another user (%u), and becoming that user failed: %s; it needs root "
			"(sudo)",
			c->pid, s->uid, why);
	case STEP_DIR:
		return err_set(e, ERR_RUNTIME, r->err,
			       "user %u, who runs process %d, cannot make a directory in %s, where Kineto writes: %s; "
			       "restart the job with " DIR_ENV "=DIR",
			       s->uid, c->pid, s->dir, why);
	default:
		return err_set(e, ERR_RUNTIME, r->err, "cannot answer Kineto of process %d by the socket %s%s: %s",
			       c->pid, *c->dir ? s->address.sun_path : "@dynolog", *c->dir ? "" : " (abstract)", why);
	}
}

static int refuse_owned(const struct kin_client *c, struct err *e)
{
	pid_t owner = kin_owner(c);
	char comm[32] = "", safe[128], who[192] = "a process that is not visible from here";

	if (owner) {
		tgt_peek_comm(owner, owner, comm);
		fmt_safe(safe, sizeof(safe), comm, strlen(comm));
		snprintf(who, sizeof(who), "process %d (%s)", owner, safe);
	}
	return err_set(e, ERR_RUNTIME, -EADDRINUSE,
		       "%s answers Kineto here already, by the name dynolog, and mxbpf does not take its place; ask it "
		       "for a trace (dyno gputrace --pids %d), or use sudo mxbpf --pid %d --trace FILE, which needs "
		       "no Kineto",
		       who, c->pid, c->pid);
}

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Opens a namespace or the root of the process, unless mxbpf has the same. 0 or -errno. */
static int open_own(pid_t pid, const char *ns, const char *name, int *fd)
{
	char its[64], ours[64], path[64];

	snprintf(its, sizeof(its), "/proc/%d/ns/%s", pid, ns);
	snprintf(ours, sizeof(ours), "/proc/self/ns/%s", ns);
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	if (same_file(its, ours) && (strcmp(name, "root") || same_file(path, "/")))
		return 0;
	*fd = open(path, O_RDONLY | O_CLOEXEC);
	return *fd < 0 ? -errno : 0;
}

static int read_user(struct site *s, pid_t pid, struct err *e)
{
	struct buf text = {0};
	int err = tgt_peek_status(pid, pid, &text);
	const char *uid = err ? NULL : tgt_status_field(text.data, "Uid");
	const char *gid = err ? NULL : tgt_status_field(text.data, "Gid");
	const char *groups = err ? NULL : tgt_status_field(text.data, "Groups");
	char *end;

	if (!uid || !gid || sscanf(uid, "%*u %*u %*u %u", &s->uid) != 1 || sscanf(gid, "%*u %*u %*u %u", &s->gid) != 1)
		err = err_set(e, ERR_TARGET, -ESRCH, "process %d has ended", pid);
	while (!err && groups && s->ngroups < GROUPS_MAX && *groups >= '0' && *groups <= '9') {
		s->groups[s->ngroups++] = (gid_t)strtoul(groups, &end, 10);
		groups = end + (*end == ' ');
	}
	buf_fini(&text);
	return err;
}

static int prepare(struct site *s, struct tgt *t, const struct kin_client *c, struct err *e)
{
	int err;

	if (!tgt_env_text(t, DIR_ENV, s->dir, sizeof(s->dir)) || !*s->dir)
		snprintf(s->dir, sizeof(s->dir), "/tmp");
	if (!kin_path_fits(s->dir) || strlen(s->dir) == sizeof(s->dir) - 1)
		return err_set(e, ERR_TARGET, -EINVAL,
			       "process %d was started with a " DIR_ENV " that mxbpf cannot name in a request; it must "
			       "be a short absolute path without blanks, # and ..",
			       c->pid);
	s->address_bytes = kin_address(c->dir, &s->address);
	if (!s->address_bytes)
		return err_set(e, ERR_TARGET, -ENAMETOOLONG, "KINETO_IPC_SOCKET_DIR of process %d is too long", c->pid);
	err = *c->dir ? 0 : open_own(c->pid, "net", "ns/net", &s->net);
	if (!err)
		err = open_own(c->pid, "mnt", "root", &s->root);
	if (err)
		return err_set(e, ERR_PRIVILEGE, err,
			       "cannot look at the namespaces of process %d: %s; it needs root (sudo)", c->pid,
			       strerror(-err));
	return read_user(s, c->pid, e);
}

/* Waits for the result. 0 or -errno. */
static int receive(int link, struct result *r, int fds[2])
{
	char control[CMSG_SPACE(2 * sizeof(int))];
	struct iovec part = {r, sizeof(*r)};
	struct msghdr m = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	struct pollfd p = {.fd = link, .events = POLLIN};
	struct cmsghdr *c;

	if (poll(&p, 1, HELPER_MS) != 1)
		return -ETIMEDOUT;
	if (recvmsg(link, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != sizeof(*r))
		return -EPIPE;
	c = CMSG_FIRSTHDR(&m);
	if (r->step == STEP_DONE && c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(2 * sizeof(int)))
		memcpy(fds, CMSG_DATA(c), 2 * sizeof(int));
	else if (r->step == STEP_DONE)
		return -EMFILE;
	r->name[sizeof(r->name) - 1] = '\0';
	return 0;
}

static int place_start(struct kin_place *p, const struct site *s, const struct kin_client *c, struct err *e)
{
	struct result r = {.step = STEP_BIND};
	int link[2], fds[2] = {-1, -1}, err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link))
		return err_set(e, ERR_RUNTIME, -errno, "cannot start a helper: %s", strerror(errno));
	p->helper = fork();
	if (!p->helper) {
		close(link[0]);
		help(s, link[1]);
	}
	close(link[1]);
	p->link = link[0];
	if (p->helper < 0) {
		p->helper = 0;
		return err_set(e, ERR_RUNTIME, -errno, "cannot start a helper: %s", strerror(errno));
	}
	err = receive(p->link, &r, fds);
	if (err)
		return err_set(e, ERR_RUNTIME, err, "the helper that makes the socket for Kineto failed: %s",
			       strerror(-err));
	if (r.step == STEP_BIND && r.err == -EADDRINUSE)
		return refuse_owned(c, e);
	if (r.step != STEP_DONE)
		return place_refuse(&r, s, c, e);
	p->dir = fds[0];
	p->sock = fds[1];
	p->uid = s->uid;
	memcpy(p->name, r.name, sizeof(p->name));
	return 0;
}

int kin_place_open(struct kin_place *p, struct tgt *t, const struct kin_client *c, struct err *e)
{
	struct site s = {.net = -1, .root = -1};
	int err;

	*p = (struct kin_place){.link = -1, .dir = -1, .sock = -1};
	err = prepare(&s, t, c, e);
	if (!err)
		err = place_start(p, &s, c, e);
	if (s.net >= 0)
		close(s.net);
	if (s.root >= 0)
		close(s.root);
	if (err)
		kin_place_close(p);
	return err;
}

/* The helper is waited for, so that nothing is left when mxbpf ends, unless somebody has stopped it. */
void kin_place_close(struct kin_place *p)
{
	struct pollfd end = {.fd = p->link, .events = 0};

	if (p->sock >= 0)
		close(p->sock);
	if (p->dir >= 0)
		close(p->dir);
	if (p->link >= 0) {
		shutdown(p->link, SHUT_WR); /* read() of the helper returns 0, and its end is a hang-up here */
		if (p->helper && poll(&end, 1, HELPER_MS) == 1)
			waitpid(p->helper, NULL, 0);
		close(p->link);
	}
	*p = (struct kin_place){.link = -1, .dir = -1, .sock = -1};
}
