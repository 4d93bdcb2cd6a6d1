// SPDX-License-Identifier: Apache-2.0
/* The request: finds the processes, answers each once with its configuration, and waits for the files. */
#include "kineto/kineto.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fmt.h"
#include "kineto/priv.h"

#define NS_PER_S     1000000000ull
#define TICK_MS	     100
#define CLIENTS_MAX  256
#define DRAIN_MAX    256	     /* datagrams at a time: a stranger may send without an end */
#define REQUEST_NS   (11 * NS_PER_S) /* Kineto asks every 5 s, and sleeps up to 5.1 s if nobody answered before */
#define BEGIN_NS     (15 * NS_PER_S) /* an answer that came too late for one question is read with the next */
#define LOST_NS	     (3 * NS_PER_S)  /* from the answer to the file, which takes Kineto a second or two */
#define ANSWERS_MAX  3
#define GPU_NS	     (5 * NS_PER_S)   /* the warm-up with a GPU */
#define QUIET_NS     (300 * NS_PER_S) /* from the end of the window, or of the last growth of the file, to its name */
#define NO_KINETO    "Kineto of process %d "
#define LIBRARY_GLOB "libtorch_cpu.so*"

enum state {
	ASKED_BY_NOBODY, /* waits for the question of the process */
	ANSWERED,	 /* it has its configuration */
	WRITING,	 /* the file has its first name */
	WRITTEN,
	FAILED,
};

struct client {
	struct kin_client at;
	struct tgt *tgt; /* owned */
	bool gpu, busy;
	unsigned answers; /* with the configuration */
	enum state state;
	uint64_t since_ns; /* when it came into the state, or the file has grown */
	uint64_t size;	   /* of the growing file, or of the trace */
	int fd;		   /* of the trace; -1 */
	struct err why;	   /* FAILED */
};

struct kineto {
	struct kin_opts o;
	struct kin_place place;
	struct client *clients; /* owned */
	unsigned nclients;
	struct err left_out; /* why the first process that could not be asked was left out */
};

static void kineto_tell(const struct kineto *k, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void kineto_tell(const struct kineto *k, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	if (!k->o.tell)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	k->o.tell(k->o.ctx, text);
}

/* ---- which processes */

static bool known(const struct kineto *k, uint64_t ino)
{
	unsigned i;

	for (i = 0; i < k->nclients; i++)
		if (k->clients[i].at.ino == ino)
			return true;
	return false;
}

/* Adds the process if it asks. A child that was forked has its parent's socket, but nothing that asks by it. */
static void kineto_add(struct kineto *k, pid_t pid)
{
	struct client *c = &k->clients[k->nclients];

	if (k->nclients == CLIENTS_MAX)
		return;
	*c = (struct client){.fd = -1};
	if (!kin_client_find(pid, &c->at) || known(k, c->at.ino) || tgt_open(pid, &c->tgt, NULL))
		return;
	c->gpu = tgt_find_lib(c->tgt, "libcuda.so*");
	k->nclients++;
}

static void add_tree(void *ctx, pid_t pid)
{
	struct kineto *k = ctx;

	kineto_add(k, pid);
	if (k->o.descendants && k->nclients < CLIENTS_MAX)
		tgt_each_child(pid, add_tree, k);
}

static int refuse_silent(const struct kineto *k, struct tgt *t, struct err *e)
{
	const pid_t pid = k->o.pid;
	char value[8];

	if (k->o.descendants)
		return err_set(
			e, ERR_TARGET, -ENOENT,
			"neither process %d nor a descendant was started with KINETO_USE_DAEMON=1 and has loaded "
			"PyTorch, so no Kineto takes requests; restart the job with the variable",
			pid);
	if (!tgt_find_lib(t, LIBRARY_GLOB))
		return err_set(e, ERR_TARGET, -ENOENT,
			       "process %d has not loaded PyTorch (looked for libtorch_cpu.so); sudo mxbpf list shows "
			       "the processes that have",
			       pid);
	if (!tgt_env_text(t, "KINETO_USE_DAEMON", value, sizeof(value)))
		return err_set(e, ERR_TARGET, -ENOENT,
			       "process %d was not started with KINETO_USE_DAEMON=1, so its Kineto takes no requests; "
			       "restart it with the variable, or use sudo mxbpf --pid %d --trace FILE, which does not",
			       pid, pid);
	return err_set(e, ERR_TARGET, -ENOENT,
		       "process %d was started with KINETO_USE_DAEMON, but its PyTorch has no socket to ask by: it is "
		       "still starting, or was built without this part of Kineto; use sudo mxbpf --pid %d --trace FILE",
		       pid, pid);
}

static bool same_place(const struct client *a, const struct client *b)
{
	static const char *const own[] = {"ns/net", "ns/mnt", "root"};
	char path[2][64];
	struct stat x, y;
	size_t i;

	for (i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		snprintf(path[0], sizeof(path[0]), "/proc/%d/%s", a->at.pid, own[i]);
		snprintf(path[1], sizeof(path[1]), "/proc/%d/%s", b->at.pid, own[i]);
		if (stat(path[0], &x) || stat(path[1], &y) || x.st_dev != y.st_dev || x.st_ino != y.st_ino)
			return false;
	}
	return !strcmp(a->at.dir, b->at.dir);
}

/* One socket and one directory are for all, so all must be in the place of the first. */
static void leave_out_others(struct kineto *k)
{
	unsigned i;

	for (i = 1; i < k->nclients; i++) {
		if (same_place(&k->clients[0], &k->clients[i]))
			continue;
		kineto_tell(k,
			    "process %d is left out: it is in another container than process %d; ask it by a command "
			    "of its "
			    "own",
			    k->clients[i].at.pid, k->clients[0].at.pid);
		tgt_close(k->clients[i].tgt);
		memmove(&k->clients[i], &k->clients[i + 1], (k->nclients - i - 1) * sizeof(*k->clients));
		k->nclients--;
		i--;
	}
}

int kin_open(const struct kin_opts *o, struct kineto **out, struct err *e)
{
	struct kineto *k = calloc(1, sizeof(*k));
	struct tgt *t = NULL;
	int err;

	*out = k;
	if (k)
		k->clients = calloc(CLIENTS_MAX, sizeof(*k->clients));
	if (!k || !k->clients)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	k->o = *o;
	k->place = (struct kin_place){.link = -1, .dir = -1, .sock = -1};
	err = tgt_open(o->pid, &t, e);
	if (!err) {
		add_tree(k, tgt_pid(t));
		err = k->nclients ? 0 : refuse_silent(k, t, e);
	}
	if (!err) {
		leave_out_others(k);
		err = kin_place_open(&k->place, k->clients[0].tgt, &k->clients[0].at, e);
	}
	tgt_close(t);
	return err;
}

void kin_close(struct kineto *k)
{
	unsigned i;

	for (i = 0; k && k->clients && i < k->nclients; i++) {
		tgt_close(k->clients[i].tgt);
		if (k->clients[i].fd >= 0)
			close(k->clients[i].fd);
	}
	if (k) {
		kin_place_close(&k->place);
		free(k->clients);
	}
	free(k);
}

/* ---- answers */

/* Kineto puts the number of the process into a name that ends with .json, but it may be another number there. */
static void file_name(const struct client *c, const char *end, char name[64])
{
	snprintf(name, 64, "trace-%d%s", c->at.pid, end);
}

static void kineto_enter(struct client *c, enum state state)
{
	c->state = state;
	c->since_ns = clock_ns(CLOCK_MONOTONIC);
}

/*
 * Kineto may lose a configuration: it reads each answer with the next question if it once gave up too early, so after a
 * request that was interrupted it gets that one first, and is busy when it reads this one.
 */
static bool wants_config(const struct client *c, enum kin_kind kind)
{
	return kind == KIN_REQUEST &&
	       (c->state == ASKED_BY_NOBODY || (c->state == ANSWERED && c->answers < ANSWERS_MAX &&
						clock_ns(CLOCK_MONOTONIC) - c->since_ns > LOST_NS));
}

/* Returns the answer to a message in *b. 0 or -ENOMEM. */
static int answer_of(const struct kineto *k, const struct client *c, enum kin_kind kind, struct buf *b)
{
	const int32_t instances = 1;
	char name[64], path[PATH_MAX + 64];
	struct buf text = {0};
	int err = 0;

	if (kind == KIN_CONTEXT)
		return kin_answer(b, "ctxt", &instances, sizeof(instances));
	if (wants_config(c, kind)) {
		file_name(c, "", name);
		snprintf(path, sizeof(path), "%s/%s", k->place.name, name);
		err = kin_config(&text, &k->o, path, c->gpu);
	}
	if (!err)
		err = kin_answer(b, "req", text.data, text.len);
	buf_fini(&text);
	return err;
}

static void say_answered(const struct kineto *k, const struct client *c)
{
	char time[24];

	if (k->o.steps)
		kineto_tell(k, NO_KINETO "traces %u steps, or %s if the program counts none", c->at.pid, k->o.steps,
			    fmt_ns(k->o.duration_ns, time));
	else
		kineto_tell(k, NO_KINETO "traces %s%s", c->at.pid, fmt_ns(k->o.duration_ns, time),
			    c->gpu ? " after a warm-up of 5 s" : "");
}

static void answer(struct kineto *k, struct client *c, enum kin_kind kind, const struct sockaddr_un *to,
		   socklen_t bytes)
{
	const bool config = wants_config(c, kind);
	struct buf b = {0};

	c->busy = kind == KIN_BUSY;
	if (!answer_of(k, c, kind, &b) &&
	    sendto(k->place.sock, b.data, b.len, MSG_DONTWAIT | MSG_NOSIGNAL, (const void *)to, bytes) ==
		    (ssize_t)b.len &&
	    config) {
		kineto_enter(c, ANSWERED);
		if (!c->answers++)
			say_answered(k, c);
	}
	buf_fini(&b);
}

/* The kernel says who sent the message. */
static struct client *sender_of(struct kineto *k, struct msghdr *m)
{
	struct cmsghdr *h = CMSG_FIRSTHDR(m);
	struct ucred who;
	unsigned i;

	if (!h || h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_CREDENTIALS ||
	    h->cmsg_len != CMSG_LEN(sizeof(who)))
		return NULL;
	memcpy(&who, CMSG_DATA(h), sizeof(who));
	for (i = 0; i < k->nclients; i++)
		if (k->clients[i].at.pid == who.pid && tgt_alive(k->clients[i].tgt))
			return &k->clients[i];
	return NULL;
}

/* Takes one message. The buffer for control data has no room for descriptors, so none can be sent. */
static bool kineto_take(struct kineto *k)
{
	char data[KIN_DATAGRAM_MAX];
	union {
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control;
	struct sockaddr_un from = {0};
	struct iovec part = {data, sizeof(data)};
	struct msghdr m = {.msg_name = &from,
			   .msg_namelen = sizeof(from),
			   .msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(k->place.sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct client *c = n < 0 ? NULL : sender_of(k, &m);
	enum kin_kind kind;

	if (n < 0)
		return errno == EINTR;
	kind = m.msg_flags & MSG_TRUNC ? KIN_MALFORMED : kin_parse(data, (size_t)n);
	if (c && kind != KIN_MALFORMED && m.msg_namelen > sizeof(from.sun_family) && m.msg_namelen <= sizeof(from))
		answer(k, c, kind, &from, m.msg_namelen);
	return true;
}

/* ---- the files */

static void kineto_fail(struct client *c, enum err_class cls, int code, const char *why)
{
	err_set(&c->why, cls, code, NO_KINETO "%s", c->at.pid, why);
	kineto_enter(c, FAILED);
}

static void kineto_finish(const struct kineto *k, struct client *c, const char *name)
{
	c->fd = kin_file_open(k->place.dir, name, k->place.uid, &c->size, &c->why);
	kineto_enter(c, c->fd < 0 ? FAILED : WRITTEN);
}

static void wait_for_question(struct client *c, uint64_t waited_ns)
{
	if (waited_ns < REQUEST_NS)
		return;
	if (c->busy)
		kineto_fail(c, ERR_RUNTIME, -EBUSY,
			    "is in use: the program runs its own profiler, or another request; try again later");
	else
		kineto_fail(c, ERR_TARGET, -ETIMEDOUT,
			    "has not asked for 11 s, and it does so every 5 s: the process is stopped, or was forked "
			    "from one "
			    "that asked; use sudo mxbpf --pid PID --trace FILE");
}

static uint64_t window_ns(const struct kineto *k, const struct client *c)
{
	return k->o.duration_ns + (c->gpu ? GPU_NS : 0);
}

static void wait_for_end(const struct kineto *k, struct client *c, const struct stat *st, uint64_t waited_ns)
{
	if ((uint64_t)st->st_size != c->size) {
		c->size = (uint64_t)st->st_size;
		kineto_enter(c, WRITING);
	} else if (!k->o.steps && waited_ns > window_ns(k, c) + QUIET_NS) {
		kineto_fail(c, ERR_RUNTIME, -ETIMEDOUT, "began a trace and did not end it");
	}
}

/* Kineto opens NAME.tmp when it begins, and renames it to NAME when it is complete. */
static void kineto_look(const struct kineto *k, struct client *c)
{
	const uint64_t waited_ns = clock_ns(CLOCK_MONOTONIC) - c->since_ns;
	const bool alive = tgt_alive(c->tgt); /* before the look, because a process may end just after the rename */
	char name[64], tmp[64];
	struct stat st;

	file_name(c, "", name);
	file_name(c, ".tmp", tmp);
	if (c->state >= WRITTEN)
		return;
	if (c->state != ASKED_BY_NOBODY && !kin_file_look(k->place.dir, name, &st)) {
		kineto_finish(k, c, name);
	} else if (!alive) {
		kineto_fail(c, ERR_TARGET, -ESRCH, "wrote no trace: the process has ended");
	} else if (c->state == ASKED_BY_NOBODY) {
		wait_for_question(c, waited_ns);
	} else if (!kin_file_look(k->place.dir, tmp, &st)) {
		if (c->state != WRITING)
			kineto_enter(c, WRITING);
		wait_for_end(k, c, &st, waited_ns);
	} else if (c->state == WRITING && kin_file_look(k->place.dir, name, &st)) {
		kineto_fail(c, ERR_RUNTIME, -ECANCELED,
			    "gave the trace up: the program may have started its own profiler");
	} else if (c->state == ANSWERED && !k->o.steps && waited_ns > BEGIN_NS) {
		kineto_fail(
			c, ERR_RUNTIME, -ETIMEDOUT,
			"took the request and began no trace: it may be in use, or write elsewhere, if the program has "
			"set "
			"KINETO_ONDEMAND_TRACE_DIR itself");
	}
}

static bool interrupted(int signals)
{
	struct signalfd_siginfo s;

	while (read(signals, &s, sizeof(s)) == sizeof(s))
		if (s.ssi_signo != SIGUSR1 && s.ssi_signo != SIGUSR2)
			return true;
	return false;
}

static bool pending(const struct kineto *k)
{
	unsigned i;

	for (i = 0; i < k->nclients; i++)
		if (k->clients[i].state < WRITTEN)
			return true;
	return false;
}

/* 0 if there is one trace at least. Tells why others are missing, or else sets e to the first reason. */
static int result(const struct kineto *k, struct err *e)
{
	const struct client *c;
	unsigned i, good = 0;

	for (i = 0; i < k->nclients; i++)
		good += k->clients[i].state == WRITTEN;
	for (i = 0; i < k->nclients; i++) {
		c = &k->clients[i];
		if (c->state == FAILED && good)
			kineto_tell(k, "%s", c->why.why);
		else if (c->state == FAILED)
			err_set(e, c->why.cls, c->why.code, "%s", c->why.why);
	}
	return e->code;
}

int kin_run(struct kineto *k, struct err *e)
{
	struct pollfd fds[] = {{.fd = k->place.sock, .events = POLLIN}, {.fd = k->o.signals, .events = POLLIN}};
	unsigned i, n;

	for (i = 0; i < k->nclients; i++)
		kineto_enter(&k->clients[i], ASKED_BY_NOBODY);
	if (k->nclients == 1)
		kineto_tell(k, "waiting for Kineto of process %d, which asks every 5 s", k->clients[0].at.pid);
	else
		kineto_tell(k, "waiting for Kineto of %u processes, which ask every 5 s", k->nclients);
	while (pending(k)) {
		poll(fds, 2, TICK_MS);
		if (interrupted(k->o.signals))
			return err_set(e, ERR_RUNTIME, -EINTR, "interrupted before there was a trace");
		for (n = 0; n < DRAIN_MAX && kineto_take(k); n++)
			;
		for (i = 0; i < k->nclients; i++)
			kineto_look(k, &k->clients[i]);
	}
	return result(k, e);
}

/* ---- results */

pid_t kin_pid(const struct kineto *k, unsigned i)
{
	return i < k->nclients ? k->clients[i].at.pid : 0;
}

uint64_t kin_bytes(const struct kineto *k, unsigned i)
{
	return k->clients[i].state == WRITTEN ? k->clients[i].size : 0;
}

int kin_copy(const struct kineto *k, unsigned i, struct out *out, struct err *e)
{
	return kin_file_copy(k->clients[i].fd, k->clients[i].size, out, e);
}
