// SPDX-License-Identifier: Apache-2.0
/*
 * A client sends any bytes to the HTTP server. 0xff in the input stands for the token, and 0xfe divides what is sent
 * at once. The server's thread is this one, so an input always does the same. An input that begins with 0xfd comes from
 * another machine, or from this one, over TCP; its second byte says so, whether time passes fast, and whether there are
 * as many clients as the server takes, who send nothing.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve/priv.h"

#define TOKEN	   "0123456789-fuzz-token" /* begins with a digit, so that it is no word of the dictionary */
#define LATE_TURNS 8			   /* turns for which the caller leaves a request waiting */
#define IDLE_TURNS 32 /* turns after which a client that got no reply and is not closed has used up its time */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int __real_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
bool __wrap_srv_own_address(int fd, char text[64], unsigned *port);

static const struct srv_route routes[] = {{"/metrics", false}, {"/late", false}, {"/trace", true}, {NULL, false}};
static char dir[] = "/tmp/fuzz_http.XXXXXX", listen_at[64], token_file[64];
static struct srv *s;
static bool told; /* the client has sent the token */
static unsigned late;
static bool tcp;
static unsigned flags;
static time_t passed; /* seconds */

enum { V6 = 1, LOOPBACK = 2, FAST = 4, CROWD = 8 };

/* With FAST, a turn takes a second. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	const int err = __real_clock_gettime(clock, t);

	t->tv_sec += passed;
	return err;
}

/* The address that the client has connected to. */
bool __wrap_srv_own_address(int fd, char text[64], unsigned *port)
{
	(void)fd;
	strcpy(text, tcp ? "127.0.0.2" : "");
	*port = 9464;
	return tcp;
}

static bool page(void *ctx, const struct srv_request *q, struct srv_reply *a)
{
	const char *p, *value = srv_query(q, "a");
	const size_t n = value ? 2000 : 10; /* a large one may be compressed */

	(void)ctx;
	if (q->route->post && !told)
		abort();
	for (p = value ? value : ""; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			abort();
	if (!strcmp(q->route->path, "/late") && late++ < LATE_TURNS)
		return false;
	memset(buf_add(&a->body, n), 'x', n);
	return true;
}

static void close_server(void)
{
	srv_close(s);
	unlink(token_file);
	rmdir(dir);
}

static void open_server(void)
{
	struct err e = {0};
	int fd;

	if (!mkdtemp(dir))
		abort();
	snprintf(listen_at, sizeof(listen_at), "unix:%s/sock", dir);
	snprintf(token_file, sizeof(token_file), "%s/token", dir);
	fd = open(token_file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, TOKEN, strlen(TOKEN)) < 0 || close(fd))
		abort();
	if (srv_make(&s, &(struct srv_opts){.listen = listen_at, .token_file = token_file, .routes = routes}, &e))
		abort();
	atexit(close_server);
}

/* Lets the server do what there is to do. Returns whether the client has received something; *open gets false at the
 * end. */
static bool turn(int fd, bool *open)
{
	char got[4096];
	ssize_t n;

	passed += flags & FAST ? 1 : 0;
	srv_turn(s, false);
	srv_answer(s, page, NULL);
	n = recv(fd, got, sizeof(got), MSG_DONTWAIT);
	if (n == 0 || (n < 0 && errno != EAGAIN))
		*open = false;
	return n > 0;
}

static void put(int fd, const char *bytes, size_t n, bool *open)
{
	ssize_t sent;

	while (n && *open) {
		sent = send(fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0 && errno != EAGAIN)
			return;
		bytes += sent > 0 ? sent : 0;
		n -= sent > 0 ? (size_t)sent : 0;
		turn(fd, open);
	}
}

static void put_input(int fd, const uint8_t *data, size_t size, bool *open)
{
	const uint8_t *end = data + size, *p;

	for (; data < end; data = p + 1) {
		for (p = data; p < end && *p < 0xfe; p++)
			;
		put(fd, (const char *)data, (size_t)(p - data), open);
		if (p == end)
			return;
		if (*p == 0xff) {
			told = true;
			put(fd, TOKEN, strlen(TOKEN), open);
		}
	}
}

static struct sockaddr_in6 client_address(void)
{
	struct sockaddr_in6 a = {.sin6_family = AF_UNIX};

	if (tcp)
		a.sin6_family = flags & V6 ? AF_INET6 : AF_INET;
	if (flags & V6 && inet_pton(AF_INET6, flags & LOOPBACK ? "::1" : "2001:db8::1", &a.sin6_addr) != 1)
		abort();
	return a;
}

/* Returns the client's end. -1: the server takes no more. */
static int add_client(void)
{
	const struct sockaddr_in6 a = client_address();
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		abort();
	if (MHD_add_connection(s->daemon, fds[1], (const struct sockaddr *)(const void *)&a,
			       tcp ? sizeof(a) : sizeof(a.sin6_family)) == MHD_YES)
		return fds[0];
	close(fds[0]);
	return -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int crowd[SRV_CONNS + SRV_SPARE], fd;
	unsigned idle = 0, n = 0;
	bool open = true;

	if (!s)
		open_server();
	told = false;
	late = 0;
	tcp = size > 1 && *data == 0xfd;
	flags = tcp ? data[1] : 0;
	data += tcp ? 2 : 0;
	size -= tcp ? 2 : 0;
	while (flags & CROWD && n < SRV_CONNS + SRV_SPARE - 1 && (crowd[n] = add_client()) >= 0)
		n++;
	fd = add_client();
	if (fd >= 0) {
		put_input(fd, data, size, &open);
		shutdown(fd, SHUT_WR);
		while (open && idle < 2 * IDLE_TURNS) {
			if (idle == IDLE_TURNS)
				passed += (SRV_REQUEST_NS + SRV_REPLY_NS) / 1000000000;
			idle = turn(fd, &open) ? 0 : idle + 1;
		}
		close(fd);
	}
	if (open && fd >= 0)
		abort(); /* it neither replies nor closes, not even when its time is over */
	if (fd < 0 && !tcp)
		abort();
	while (n)
		close(crowd[--n]);
	for (n = 0; flags & CROWD && n < 4; n++)
		srv_turn(s, false);
	return 0;
}
