/* SPDX-License-Identifier: Apache-2.0 */
/* A server with a few pages, and clients that send it any bytes. The test is the caller that answers. */
#ifndef HTTP_CLIENT_H
#define HTTP_CLIENT_H

#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "serve/serve.h"
#include "unit.h"

#define TOKEN	 "0123456789abcdef-secret"
#define BIG	 (8u << 20)
#define HOST	 "Host: localhost\r\n"
#define GET(url) "GET " url " HTTP/1.1\r\n" HOST "\r\n"

static const struct srv_route routes[] = {{"/metrics", false}, {"/echo", false}, {"/text", false},
					  {"/big", false},     {"/late", false}, {"/page", false},
					  {"/odd", false},     {"/trace", true}, {NULL, false}};

static struct srv *s;
static struct err e;
static unsigned asked, posted; /* requests that came to the caller */
static bool late = true;       /* /late is left waiting */

static char got[BIG + 4096]; /* the last reply */
static size_t got_len;

/* ---- the caller */

static inline bool page(void *ctx, const struct srv_request *q, struct srv_reply *a)
{
	const char *path = q->route->path, *d = srv_query(q, "d");
	unsigned i;

	(void)ctx;
	asked++;
	posted += q->route->post;
	if (!strcmp(path, "/late") && late) {
		buf_printf(&a->body, "too early");
		return false;
	}
	if (!strcmp(path, "/echo")) {
		buf_printf(&a->body, "d=%s none=%d accept=%s\n", d ? d : "-", !srv_query(q, "none"), q->accept);
	} else if (!strcmp(path, "/text")) {
		for (i = 0; i < 4000; i++)
			buf_printf(&a->body, "line %u\n", i);
	} else if (!strcmp(path, "/big")) {
		memset(buf_add(&a->body, BIG), 'x', BIG);
	} else if (!strcmp(path, "/page")) {
		a->type = "text/html; charset=utf-8";
		a->csp = "default-src 'self'";
		buf_printf(&a->body, "<p>");
	} else if (!strcmp(path, "/odd")) {
		a->status = 42;
	} else {
		buf_printf(&a->body, "ok %s\n", path);
	}
	return true;
}

static inline bool open_with(const struct srv_opts *o)
{
	struct srv_opts opts = *o;

	opts.routes = routes;
	opts.listen = o->listen ? o->listen : "127.0.0.1:0";
	s = NULL;
	e = (struct err){0};
	asked = posted = 0;
	return !srv_open(&s, &opts, &e);
}

static inline void close_server(void)
{
	srv_close(s);
	s = NULL;
}

/* ---- clients */

/* Connects to the server, or with `to` to its port at another address. */
static inline int client_at(const char *to)
{
	const char *address = srv_address(s);
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	struct sockaddr_in in = {.sin_family = AF_INET};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	const uint16_t port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
	struct sockaddr *a = (void *)&in;
	socklen_t size = sizeof(in);
	int fd;

	in.sin_port = in6.sin6_port = port;
	inet_pton(AF_INET, to ? to : "127.0.0.1", &in.sin_addr);
	if (!strncmp(address, "unix:", 5)) {
		strcpy(un.sun_path, address + 5);
		a = (void *)&un;
		size = sizeof(un);
	} else if (!to && *address == '[') {
		a = (void *)&in6;
		size = sizeof(in6);
	}
	fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0 && !connect(fd, a, size));
	return fd;
}

static inline int client(void)
{
	return client_at(NULL);
}

/* An address of this machine that is not its loopback. */
static inline const char *own_address(void)
{
	static char text[INET_ADDRSTRLEN];
	struct ifaddrs *all, *a;

	if (getifaddrs(&all))
		return NULL;
	for (a = all; a && !*text; a = a->ifa_next)
		if (a->ifa_addr && a->ifa_addr->sa_family == AF_INET && !(a->ifa_flags & IFF_LOOPBACK))
			inet_ntop(AF_INET, &((struct sockaddr_in *)(void *)a->ifa_addr)->sin_addr, text, sizeof(text));
	freeifaddrs(all);
	return *text ? text : NULL;
}

static inline bool put(int fd, const void *bytes, size_t n)
{
	return send(fd, bytes, n, MSG_NOSIGNAL) == (ssize_t)n;
}

static inline int ask(const char *request)
{
	int fd = client();

	CHECK(put(fd, request, strlen(request)));
	return fd;
}

static inline bool is_ready(void)
{
	struct pollfd p = {.fd = srv_fd(s), .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* Waits for requests without answering them. */
static inline void await_request(void)
{
	struct pollfd p = {.fd = srv_fd(s), .events = POLLIN};

	CHECK(poll(&p, 1, 30000) == 1);
}

/*
 * Reads a reply until the server closes the connection, and meanwhile answers what comes. Returns the reply in `got`,
 * or "" if there was none.
 */
static inline const char *finish(int fd, bool answering)
{
	struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = answering ? srv_fd(s) : -1, .events = POLLIN}};
	ssize_t n = 1;

	got_len = 0;
	while (n > 0 && poll(p, 2, 30000) > 0) {
		if (p[1].revents)
			srv_answer(s, page, NULL);
		if (!p[0].revents)
			continue;
		n = recv(fd, got + got_len, sizeof(got) - 1 - got_len, 0);
		got_len += n > 0 ? (size_t)n : 0;
	}
	CHECK(n == 0 || (n < 0 && errno == ECONNRESET));
	close(fd);
	got[got_len] = '\0';
	return got;
}

static inline const char *talk(const char *request)
{
	return finish(ask(request), true);
}

/* Returns the status of a reply, or 0 if there was none. */
static inline int status_of(const char *reply)
{
	return strncmp(reply, "HTTP/1.", 7) ? 0 : atoi(reply + 9);
}

static inline int status(const char *request)
{
	return status_of(talk(request));
}

static inline bool has(const char *text)
{
	return strstr(got, text) != NULL;
}

static inline const char *body(void)
{
	const char *end = strstr(got, "\r\n\r\n");

	return end ? end + 4 : "";
}

/* ---- files */

static inline int open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n - 3; /* ".", ".." and the directory itself */
}

static inline void put_file(const char *name, const char *text, mode_t mode)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && !fchmod(fd, mode) && !close(fd));
}

/* Enters a new directory. Whatever hangs is ended. */
static inline void enter(char *dir)
{
	alarm(100);
	signal(SIGPIPE, SIG_IGN);
	umask(0);
	CHECK(mkdtemp(dir) && !chdir(dir));
	put_file("token", TOKEN "\n", 0600);
}

/* Deletes the directory with its files. */
static inline void leave(const char *dir)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	CHECK(!chdir("/") && !system(command));
}

/* Runs a test with a server whose token is in the file "token". */
static inline void with_server(void (*test)(void))
{
	CHECK(open_with(&(struct srv_opts){.token_file = "token"}));
	if (s)
		test();
	close_server();
}

#endif
