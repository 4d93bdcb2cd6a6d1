// SPDX-License-Identifier: Apache-2.0
/* The server's thread: it alone calls libmicrohttpd, and it closes connections whose client is too slow. */
#include "serve/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "serve/priv.h"

#define WAIT_NS_MAX 60000000000ull

/* ---- connections */

/* IPv4 addresses in IPv6's form. Clients of a Unix socket and of this machine are not far. */
static bool is_far(const struct sockaddr *a, struct in6_addr *client)
{
	const struct sockaddr_in *v4 = (const void *)a;

	*client = in6addr_any;
	if (a->sa_family == AF_INET6) {
		*client = ((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
	} else if (a->sa_family == AF_INET) {
		client->s6_addr[10] = client->s6_addr[11] = 0xff;
		memcpy(&client->s6_addr[12], &v4->sin_addr, sizeof(v4->sin_addr));
	} else {
		return false;
	}
	return !IN6_IS_ADDR_LOOPBACK(client) &&
	       !(IN6_IS_ADDR_V4MAPPED(client) && client->s6_addr[12] == IN_LOOPBACKNET);
}

/* A single other machine cannot take all connections. */
static enum MHD_Result on_accept(void *ctx, const struct sockaddr *a, socklen_t size)
{
	const struct srv *s = ctx;
	struct in6_addr client;
	unsigned n = 0;
	size_t i;

	if (!is_far(a, &client))
		return MHD_YES;
	for (i = 0; i < SRV_CONNS + SRV_SPARE; i++)
		n += s->conns[i].used && s->conns[i].far && IN6_ARE_ADDR_EQUAL(&s->conns[i].client, &client);
	return n < SRV_CONNS_CLIENT ? MHD_YES : MHD_NO;
}

static void begin_phase(struct srv_conn *c, enum srv_phase phase)
{
	c->phase = phase;
	c->since_ns = clock_ns(CLOCK_MONOTONIC);
}

static void on_connection(void *ctx, struct MHD_Connection *mc, void **of_conn,
			  enum MHD_ConnectionNotificationCode what)
{
	struct srv *s = ctx;
	struct srv_conn *c = *of_conn;
	unsigned port;
	size_t i;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		c->used = false;
		s->nconns--;
		return;
	}
	for (i = 0; s->conns[i].used; i++) /* libmicrohttpd accepts no more than there are */
		;
	c = *of_conn = &s->conns[i];
	*c = (struct srv_conn){.used = true};
	c->fd = MHD_get_connection_info(mc, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	c->far = is_far(MHD_get_connection_info(mc, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr, &c->client);
	c->loopback = srv_own_address(c->fd, c->own, &port);
	begin_phase(c, SRV_READS);
	s->nconns++;
}

static void end_conn(struct srv_conn *c)
{
	c->ended = true;
	shutdown(c->fd, SHUT_RDWR);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a && (!b || a < b) ? a : b;
}

/* When the connection has to be closed, or 0. What waits for the caller is not the client's fault. */
static uint64_t due(const struct srv *s, const struct srv_conn *c)
{
	if (!c->used || c->ended || c->phase == SRV_WAITS)
		return 0;
	return c->since_ns + (c->phase == SRV_READS ? s->o.request_ns : s->o.reply_ns);
}

/* The connection that makes room for a newer one: one that sends no request before one that reads no reply. */
static struct srv_conn *longest_idle(struct srv *s)
{
	struct srv_conn *best = NULL, *c;

	for (c = s->conns; c < s->conns + SRV_CONNS + SRV_SPARE; c++)
		if (due(s, c) &&
		    (!best || c->phase < best->phase || (c->phase == best->phase && c->since_ns < best->since_ns)))
			best = c;
	return best;
}

/* Closes connections that are too slow or too many. Returns when there will be the next one, or 0. */
static uint64_t close_slow(struct srv *s)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	unsigned live = 0;
	struct srv_conn *c;
	uint64_t next = 0;

	for (c = s->conns; c < s->conns + SRV_CONNS + SRV_SPARE; c++) {
		if (due(s, c) && due(s, c) <= now)
			end_conn(c);
		next = earlier(due(s, c), next);
		live += c->used && !c->ended;
	}
	for (; live > SRV_CONNS && (c = longest_idle(s)); live--) {
		if (now < c->since_ns + SRV_GRACE_NS)
			return earlier(c->since_ns + SRV_GRACE_NS, next);
		end_conn(c);
	}
	return next;
}

/* ---- requests */

static enum MHD_Result on_new_request(struct srv *s, struct MHD_Connection *mc, struct srv_conn *conn, const char *path,
				      const char *method, void **of_request)
{
	struct srv_ask *r = calloc(1, sizeof(*r));
	const char *allow = NULL;
	unsigned status;

	if (!r)
		return MHD_NO;
	r->mc = mc;
	r->conn = conn;
	status = srv_check(s, r, path, method, &allow);
	if (!status && srv_ask_wait(s, r)) {
		*of_request = r;
		begin_phase(conn, SRV_WAITS);
		MHD_suspend_connection(mc);
		return MHD_YES;
	}
	begin_phase(conn, SRV_SENDS);
	free(r);
	return srv_refuse(mc, status ? status : MHD_HTTP_SERVICE_UNAVAILABLE, allow);
}

/* libmicrohttpd calls it when the head of a request has arrived, and again when the connection is resumed. */
static enum MHD_Result on_request(void *ctx, struct MHD_Connection *mc, const char *path, const char *method,
				  const char *version, const char *body, size_t *body_bytes, void **of_request)
{
	struct srv_conn *conn = MHD_get_connection_info(mc, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;

	if (*of_request)
		return srv_send(ctx, *of_request);
	return on_new_request(ctx, mc, conn, path, method, of_request);
}

/* Leaves a text with a NUL as it was sent, because the NUL would hide what follows it. */
static size_t on_escaped(void *ctx, struct MHD_Connection *mc, char *text)
{
	return strstr(text, "%00") ? strlen(text) : MHD_http_unescape(text);
}

static void on_completed(void *ctx, struct MHD_Connection *mc, void **of_request, enum MHD_RequestTerminationCode why)
{
	if (*of_request)
		srv_ask_free(ctx, *of_request);
	*of_request = NULL;
}

/* ---- the thread */

/* MHD_get_timeout() does not know of what it resumes, so MHD_run() must be next. */
static bool resume_answered(struct srv *s)
{
	struct srv_ask *r;
	bool some = false;

	while ((r = srv_ask_done(s))) {
		begin_phase(r->conn, SRV_SENDS);
		MHD_resume_connection(r->mc);
		some = true;
	}
	return some;
}

static int wait_ms(struct srv *s, uint64_t until)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	MHD_UNSIGNED_LONG_LONG ms;

	if (MHD_get_timeout(s->daemon, &ms) == MHD_YES && !ms)
		return 0;
	if (!until)
		return -1;
	if (until > now + WAIT_NS_MAX)
		until = now + WAIT_NS_MAX;
	return until <= now ? 0 : (int)((until - now) / 1000000 + 1);
}

/*
 * While the process has no descriptor left, libmicrohttpd would try to accept a first connection without a pause. So
 * the connection is accepted in the place of the spare descriptor, and closed.
 */
static void refuse_without_fd(struct srv *s)
{
	int fd = fcntl(s->wake_fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0) {
		if (s->spare_fd >= 0)
			close(s->spare_fd);
		fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			close(fd);
		s->spare_fd = s->wake_fd < 0 ? -1 : fcntl(s->wake_fd, F_DUPFD_CLOEXEC, 0);
	} else {
		close(fd);
	}
}

void srv_turn(struct srv *s, bool wait)
{
	struct pollfd fds[] = {{.fd = s->wake_fd, .events = POLLIN}, {.fd = s->epoll_fd, .events = POLLIN}};
	uint64_t count, until = close_slow(s);
	unsigned conns;

	until = earlier(srv_ask_refuse(s, false), until);
	wait = !resume_answered(s) && wait;
	if (poll(fds, 2, wait ? wait_ms(s, until) : 0) > 0 && fds[0].revents &&
	    read(s->wake_fd, &count, sizeof(count)) < 0)
		return;
	resume_answered(s);
	conns = s->nconns;
	if (!conns)
		refuse_without_fd(s);
	MHD_run(s->daemon);
	if (s->nconns < conns) /* it may have stopped to accept, and only now it does so again */
		MHD_run(s->daemon);
}

static bool is_stopped(struct srv *s)
{
	bool stop;

	pthread_mutex_lock(&s->lock);
	stop = s->stop;
	pthread_mutex_unlock(&s->lock);
	return stop;
}

static bool has_replies(const struct srv *s)
{
	size_t i;

	for (i = 0; i < SRV_CONNS + SRV_SPARE; i++)
		if (s->conns[i].used && s->conns[i].phase != SRV_READS && !s->conns[i].ended)
			return true;
	return false;
}

/* No connection may be suspended when libmicrohttpd is stopped. */
static void serve_finish(struct srv *s)
{
	const uint64_t end = clock_ns(CLOCK_MONOTONIC) + SRV_CLOSE_NS;
	struct pollfd p = {.fd = s->epoll_fd, .events = POLLIN};

	srv_ask_refuse(s, true);
	resume_answered(s);
	for (;;) {
		MHD_run(s->daemon);
		if (!has_replies(s) || clock_ns(CLOCK_MONOTONIC) >= end)
			break;
		poll(&p, 1, wait_ms(s, end));
	}
}

static void *serve_run(void *arg)
{
	struct srv *s = arg;

	while (!is_stopped(s))
		srv_turn(s, true);
	return NULL;
}

/* ---- open and close */

static int start_daemon(struct srv *s)
{
	const union MHD_DaemonInfo *info;

	s->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_PEDANTIC_CHECKS, 0, on_accept,
				     s, on_request, s, MHD_OPTION_LISTEN_SOCKET, s->place.fd,
				     MHD_OPTION_CONNECTION_LIMIT, (unsigned)(SRV_CONNS + SRV_SPARE),
				     MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)SRV_HEAD_BYTES,
				     MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_NOTIFY_COMPLETED,
				     on_completed, s, MHD_OPTION_UNESCAPE_CALLBACK, on_escaped, s, MHD_OPTION_END);
	s->listen_fd = s->place.fd;
	s->place.fd = -1; /* libmicrohttpd closes it, also if it cannot start */
	info = s->daemon ? MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	if (!info)
		return -ENOMEM;
	s->epoll_fd = info->epoll_fd;
	return 0;
}

static int check_token_file(const struct srv_opts *o, struct err *e)
{
	char token[SRV_TOKEN_MAX + 1];
	int ret = o->token_file ? srv_token_read(o->token_file, token, e) : 0;

	explicit_bzero(token, sizeof(token));
	return ret < 0 ? ret : 0;
}

int srv_make(struct srv **out, const struct srv_opts *o, struct err *e)
{
	struct srv *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	s->o = *o;
	s->o.request_ns = o->request_ns ? o->request_ns : SRV_REQUEST_NS;
	s->o.reply_ns = o->reply_ns ? o->reply_ns : SRV_REPLY_NS;
	s->place = (struct srv_place){.fd = -1, .dirfd = -1};
	s->answer_ns = clock_ns(CLOCK_MONOTONIC);
	pthread_mutex_init(&s->lock, NULL);
	srv_list_init(&s->waiting);
	srv_list_init(&s->done);
	s->ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->spare_fd = fcntl(s->wake_fd, F_DUPFD_CLOEXEC, 0);
	err = s->ready_fd < 0 || s->wake_fd < 0 || s->spare_fd < 0 ? -errno : 0;
	if (err)
		err_set(e, ERR_RUNTIME, err, "cannot create an eventfd: %s", strerror(-err));
	err = err ? err : check_token_file(o, e);
	err = err ? err : srv_listen(&s->place, o->listen ? o->listen : SRV_LISTEN_DEFAULT, e);
	if (!err && start_daemon(s))
		err = err_set(e, ERR_RUNTIME, -ENOMEM, "cannot start the HTTP server: out of memory or files");
	if (err)
		srv_close(s);
	else
		*out = s;
	return err;
}

int srv_open(struct srv **out, const struct srv_opts *o, struct err *e)
{
	struct srv *s = NULL;
	int err = srv_make(&s, o, e);

	if (err || !s)
		return err;
	err = thread_start(&s->thread, serve_run, s);
	if (err) {
		srv_close(s);
		return err_set(e, ERR_RUNTIME, err, "cannot start a thread: %s", strerror(-err));
	}
	s->running = true;
	*out = s;
	return 0;
}

const char *srv_address(const struct srv *s)
{
	return s->place.address;
}

int srv_fd(const struct srv *s)
{
	return s->ready_fd;
}

bool srv_trouble(struct srv *s, struct err *e)
{
	bool some;

	pthread_mutex_lock(&s->lock);
	some = s->trouble.code;
	*e = s->trouble;
	s->trouble = (struct err){0};
	pthread_mutex_unlock(&s->lock);
	return some;
}

static void stop_thread(struct srv *s)
{
	const uint64_t one = 1;

	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_mutex_unlock(&s->lock);
	/* The thread waits for it without end, so a write that failed is repeated. A counter that is full is readable.
	 */
	while (write(s->wake_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		;
	pthread_join(s->thread, NULL);
}

void srv_close(struct srv *s)
{
	if (!s)
		return;
	if (s->running)
		stop_thread(s);
	if (s->daemon) {
		s->stop = true;
		serve_finish(s);
		MHD_stop_daemon(s->daemon);
	}
	srv_unlisten(&s->place);
	if (s->ready_fd >= 0)
		close(s->ready_fd);
	if (s->wake_fd >= 0)
		close(s->wake_fd);
	if (s->spare_fd >= 0)
		close(s->spare_fd);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
