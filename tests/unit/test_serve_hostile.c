// SPDX-License-Identifier: Apache-2.0
/* Clients that mean harm: slow ones, many, and requests that are no HTTP. Other clients are served all the while. */

#include <sys/resource.h>

#include "http_client.h"

#define CONNS	(32 + 8) /* what the server has at most */
#define FAST_NS 50000000 /* a limit for slow clients that a test can wait for */

static char dir[] = "/tmp/test_serve_hostile.XXXXXX";

static bool served(void)
{
	return status(GET("/metrics")) == 200 && !strcmp(body(), "ok /metrics\n");
}

/* The server may still have replies for clients that have gone. */
static bool served_at_last(void)
{
	int i;

	for (i = 0; i < 1000; i++) {
		if (served())
			return true;
		poll(NULL, 0, 10);
	}
	return false;
}

static void close_all(int *fds, size_t n)
{
	while (n--)
		close(fds[n]);
}

/* ---- slow clients */

/* Each of them is somewhere else in its request when another one is served. */
static void byte_by_byte(void)
{
	static const char request[] = GET("/metrics");
	int fds[12];
	size_t i, at, n = sizeof(fds) / sizeof(fds[0]);

	for (i = 0; i < n; i++)
		fds[i] = client();
	for (at = 0; at < strlen(request); at++)
		for (i = 0; i < n; i++) {
			CHECK(put(fds[i], request + at, 1));
			if (i == at % n)
				CHECK(served());
		}
	for (i = 0; i < n; i++)
		CHECK(status_of(finish(fds[i], true)) == 200);
}

/* Sends a byte from time to time until the server closes the connection. Returns what poll() saw last. */
static short drip(int fd, const char *text)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	size_t i;

	for (i = 0; i < 2000 && poll(&p, 1, FAST_NS / 5000000) == 0; i++)
		send(fd, text[i] ? &text[i] : "x", 1, MSG_NOSIGNAL);
	return p.revents;
}

static void too_slow(void)
{
	static char text[2001] = "GET /metrics HTTP/1.1\r\nX: ";
	int idle, slow;

	CHECK(open_with(&(struct srv_opts){.request_ns = FAST_NS}));
	idle = client();
	slow = client();
	memset(text + strlen(text), 'a', sizeof(text) - 1 - strlen(text));
	CHECK(drip(slow, text));
	CHECK(!*finish(slow, false) && !*finish(idle, false));
	close_server();
}

/* Asks for a large reply and does not read it. */
static int ask_much(void)
{
	int fd = ask(GET("/big"));

	await_request();
	srv_answer(s, page, NULL);
	return fd;
}

static void unread(void)
{
	int fds[2], i;

	for (i = 0; i < 2; i++)
		fds[i] = ask_much();
	CHECK(status(GET("/metrics")) == 503 && asked == 2);
	close_all(fds, 2);
	CHECK(served_at_last());
}

static void read_slowly(void)
{
	int fd, fds, i;

	CHECK(open_with(&(struct srv_opts){.reply_ns = FAST_NS}));
	fds = open_fds();
	fd = ask_much();
	for (i = 0; i < 1000 && open_fds() > fds + 1; i++)
		poll(NULL, 0, 10);
	CHECK(i > 0 && i < 1000);
	finish(fd, false);
	CHECK(got_len < BIG);
	close_server();
}

static void all_read(void)
{
	int i;

	for (i = 0; i < 4; i++)
		CHECK(status(GET("/big")) == 200 && strlen(body()) == BIG);
	CHECK(served());
}

/* ---- many clients */

static void crowd(void)
{
	static int fds[300];
	const int before = open_fds();
	size_t i, n = sizeof(fds) / sizeof(fds[0]);

	for (i = 0; i < n; i++) {
		fds[i] = client();
		if (i % 3)
			put(fds[i], "GET /met", i % 8);
		if (i % 50 == 49)
			CHECK(served());
		CHECK(open_fds() <= before + (int)i + 1 + CONNS);
	}
	CHECK(served());
	close_all(fds, n);
	CHECK(served());
}

/* They have sent their requests, so they are not slow, but there are too many. */
static void queue(void)
{
	int fds[16];
	size_t i;

	late = true;
	for (i = 0; i < 16; i++) {
		fds[i] = ask(GET("/late"));
		await_request();
		srv_answer(s, page, NULL);
	}
	CHECK(status_of(finish(ask(GET("/late")), false)) == 503 && has("Retry-After: 5\r\n"));
	late = false;
	srv_answer(s, page, NULL);
	for (i = 0; i < 16; i++)
		CHECK(status_of(finish(fds[i], false)) == 200);
	CHECK(served());
}

/* The process has none left, for example because it probes many libraries. */
static void no_descriptor(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons((uint16_t)atoi(strrchr(srv_address(s), ':') + 1))};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct rlimit before, none;

	CHECK(!getrlimit(RLIMIT_NOFILE, &before));
	/* A new descriptor gets the lowest free number, so all numbers below are taken. */
	none = (struct rlimit){.rlim_cur = (rlim_t)fd + 1, .rlim_max = before.rlim_max};
	CHECK(!setrlimit(RLIMIT_NOFILE, &none));
	inet_pton(AF_INET, "127.0.0.1", &a.sin_addr);
	CHECK(!connect(fd, (void *)&a, sizeof(a)) && !*finish(fd, false));
	CHECK(!setrlimit(RLIMIT_NOFILE, &before));
	CHECK(served());
}

static void one_client(void)
{
	int fds[9], local[12], i;

	CHECK(open_with(&(struct srv_opts){.listen = ":0"}));
	for (i = 0; i < 9; i++)
		fds[i] = client_at(own_address());
	CHECK(!*finish(fds[8], false));
	CHECK(served());
	for (i = 0; i < 8; i++) {
		CHECK(put(fds[i], GET("/metrics"), strlen(GET("/metrics"))));
		CHECK(status_of(finish(fds[i], true)) == 200);
	}
	/* Clients on this machine have no such limit. */
	for (i = 0; i < 12; i++)
		local[i] = client();
	CHECK(served());
	close_all(local, 12);
	close_server();
}

/* ---- requests that are no HTTP */

static int status_of_bytes(const char *bytes, size_t n)
{
	int fd = client();

	put(fd, bytes, n);
	shutdown(fd, SHUT_WR);
	return status_of(finish(fd, true));
}

static bool refused(const char *bytes, size_t n)
{
	const int code = status_of_bytes(bytes, n);

	return !asked && (!code || code >= 400);
}

#define REFUSED(bytes) CHECK(refused(bytes, sizeof(bytes) - 1))

static void malformed(void)
{
	CHECK(open_with(&(struct srv_opts){.request_ns = FAST_NS, .token_file = "token"}));
	REFUSED("");
	REFUSED("\r\n\r\n\r\n\r\n");
	REFUSED("\0\0\0\0\0\0\r\n\r\n");
	REFUSED("GET\r\n\r\n");
	REFUSED("GET /metrics HTTP/9.9\r\n" HOST "\r\n");
	REFUSED("GET /metrics HTTP/1.1x\r\n" HOST "\r\n");
	REFUSED("GET /metrics FTP/1.1\r\n" HOST "\r\n");
	REFUSED("GET /metrics HTTP/1.1\r\n\r\n");
	REFUSED("GET /metrics HTTP/1.1\r\nHost localhost\r\n\r\n");
	REFUSED("GET /../metrics HTTP/1.1\r\n" HOST "\r\n");
	REFUSED("GET //metrics HTTP/1.1\r\n" HOST "\r\n");
	REFUSED("GET http://localhost/metrics HTTP/1.1\r\n" HOST "\r\n");
	REFUSED("GET metrics HTTP/1.1\r\n" HOST "\r\n");
	REFUSED("GET * HTTP/1.1\r\n" HOST "\r\n");
	REFUSED("CONNECT localhost:80 HTTP/1.1\r\n" HOST "\r\n");
	REFUSED("GET\0/metrics HTTP/1.1\r\n" HOST "\r\n");
	REFUSED("GET /met\0rics HTTP/1.1\r\n" HOST "\r\n");

	REFUSED("get /metrics HTTP/1.1\r\n" HOST "\r\n");
	REFUSED("GET /metrics HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n");
	REFUSED("GET /metrics HTTP/1.1\r\n" HOST "Content-Length: 0x0\r\n\r\n");
	REFUSED("GET /metrics HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999999\r\n\r\n");
	REFUSED("GET /metrics HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\nzz\r\n");
	REFUSED("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
	REFUSED("\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03");
	REFUSED("\xff\xfe\xfd\x80 \xc0\x80 \xf5\r\n\r\n");
	REFUSED("POST /trace HTTP/1.1\r\n" HOST "Authorization: Bearer \0\r\n\r\n");
	close_server();
}

/* Ends in the middle, at every second byte. */
static void cut_short(void)
{
	static const char request[] = GET("/metrics");
	int fds[sizeof(request) / 2];
	size_t i;

	CHECK(open_with(&(struct srv_opts){.request_ns = FAST_NS}));
	for (i = 0; i < sizeof(request) / 2; i++) {
		fds[i] = client();
		put(fds[i], request, 2 * i);
		shutdown(fds[i], SHUT_WR);
	}
	for (i = 0; i < sizeof(request) / 2; i++)
		CHECK(status_of(finish(fds[i], true)) != 200 && !asked);
	close_server();
}

/* A head that does not end. An empty line would end it. */
static void endless(void)
{
	static const char *const parts[] = {"a", "a: b\r\n", "%00", " ", "\r ", "?&="};
	static const char *const starts[] = {"", "\r\n", "GET /", "GET /metrics?", "GET /metrics HTTP/1.1\r\n" HOST};
	size_t i, k, n, used;
	char *text = malloc(100000);

	CHECK(open_with(&(struct srv_opts){.request_ns = FAST_NS}));
	for (i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		for (k = 0; k < sizeof(parts) / sizeof(parts[0]); k++) {
			used = (size_t)(stpcpy(text, starts[i]) - text);
			for (n = strlen(parts[k]); used + n < 100000; used += n)
				memcpy(text + used, parts[k], n);
			CHECK(refused(text, used));
		}
	free(text);
	close_server();
}

static void pipelined(void)
{
	CHECK(status(GET("/metrics") GET("/echo?d=5s") "POST /trace HTTP/1.1\r\n\r\n") == 200);
	CHECK(asked == 1 && !strcmp(body(), "ok /metrics\n"));
}

/* Closes its connection while the request waits, or while the reply is sent. */
static void vanishing(void)
{
	int i, fd;

	late = false;
	for (i = 0; i < 40; i++) {
		fd = ask(i % 2 ? GET("/big") : GET("/late"));
		if (i % 4 < 2)
			await_request();
		if (i % 3)
			shutdown(fd, SHUT_RDWR);
		close(fd);
		if (i % 8 == 7)
			CHECK(served_at_last());
	}
	CHECK(served_at_last());
}

int main(void)
{
	const int fds = open_fds();

	enter(dir);
	TEST("clients that send a byte at a time delay no other client") with_server(byte_by_byte);
	TEST("a client that takes too long for its request is cut off, whether it sends nothing or byte by byte")
	too_slow();
	TEST("while too many bytes of replies are not read, no further ones are made") with_server(unread);
	TEST("a client that takes too long to read its reply is cut off") read_slowly();
	TEST("large replies that are read are sent whole") with_server(all_read);
	TEST("any number of idle clients takes at most 40 descriptors, and new clients are served") with_server(crowd);
	TEST("of more than 16 requests that wait the last ones are refused") with_server(queue);
	TEST("without a free descriptor a client is turned away at once") with_server(no_descriptor);
	TEST_IF(own_address(), "another machine has at most 8 connections",
		"this machine has only its loopback address")
	one_client();
	TEST("what is no HTTP is refused, and never reaches the caller") malformed();
	TEST("a request that ends in the middle is not answered") cut_short();
	TEST("a head without an end is refused") endless();
	TEST("a connection carries one request") with_server(pipelined);
	TEST("a client that vanishes harms nothing") with_server(vanishing);
	TEST("nothing of all this leaves a descriptor open") CHECK(open_fds() == fds);
	leave(dir);
	return unit_end();
}
