// SPDX-License-Identifier: Apache-2.0
/* Tests what sends bytes to a URL: that nobody waits for it, that only the newest batch waits, and what it tells. */
#include "push/push.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "unit.h"

#define NS_PER_S 1000000000ull
#define MS	 1000000ull

/* ---- a receiver that takes one request after another */

struct receiver {
	int fd;
	char url[64];
};

static void receiver_open(struct receiver *r)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(a);

	r->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(!bind(r->fd, (void *)&a, size) && !listen(r->fd, 8) && !getsockname(r->fd, (void *)&a, &size));
	snprintf(r->url, sizeof(r->url), "http://127.0.0.1:%u/to", ntohs(a.sin_port));
}

/* Reads a request with a body of `body_len` bytes, terminated. Returns the connection. */
static int receive(const struct receiver *r, char text[4096], size_t body_len)
{
	const int fd = accept(r->fd, NULL, NULL);
	const char *body;
	size_t len = 0;
	ssize_t n;

	do {
		n = read(fd, text + len, 4095 - len);
		len += n > 0 ? (size_t)n : 0;
		text[len] = '\0';
		body = strstr(text, "\r\n\r\n");
	} while (n > 0 && (!body || strlen(body + 4) < body_len));
	return fd;
}

static void reply(int fd, const char *head)
{
	char text[256];
	const int n = snprintf(text, sizeof(text), "HTTP/1.1 %s\r\nConnection: close\r\n\r\n", head);

	CHECK(write(fd, text, (size_t)n) == n);
	close(fd);
}

/* ---- what it tells */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char told[4096];
static unsigned ntold;

static void tell(void *ctx, const char *text, bool well)
{
	pthread_mutex_lock(&lock);
	snprintf(told + strlen(told), sizeof(told) - strlen(told), "%s|", text);
	ntold++;
	pthread_mutex_unlock(&lock);
}

static struct push *opened(const char *url, uint64_t timeout_ns)
{
	struct push_opts o = {.what = "things", .url = url, .timeout_ns = timeout_ns, .tell = tell};
	struct err e = {0};
	struct push *p;

	told[0] = '\0';
	ntold = 0;
	CHECK(!push_open(&p, &o, &e));
	return p;
}

static void give(struct push *p, unsigned number)
{
	struct push_request q = {.query = strdup("key=secret"), .type = "x/y"};
	struct buf batch = {0};

	CHECK(!buf_printf(&q.body, "%04u", number) && !buf_put(&batch, &q, sizeof(q)));
	push_send(p, &batch);
	CHECK(!batch.len);
}

static void test_newest(void)
{
	struct receiver r;
	struct push *p;
	char text[4096];
	unsigned i;
	int fd;

	receiver_open(&r);
	p = opened(r.url, 0);
	give(p, 1);
	fd = receive(&r, text, 4); /* and does not answer yet */
	CHECK(strstr(text, "POST /to?key=secret HTTP/1.1\r\n") && strstr(text, "\r\nContent-Type: x/y\r\n"));
	CHECK(strstr(text, "\r\n\r\n0001") && !strstr(text, "Expect:"));
	for (i = 2; i <= 500; i++)
		give(p, i);
	reply(fd, "200 OK");
	fd = receive(&r, text, 4);
	CHECK(strstr(text, "\r\n\r\n0500"));
	reply(fd, "200 OK");
	push_close(p, 10 * NS_PER_S);
	CHECK(!ntold);
	close(r.fd);
}

static void test_end(void)
{
	uint64_t from;
	struct receiver r;
	struct push *p;
	char text[4096];
	int fd;

	receiver_open(&r);
	p = opened(r.url, 3600 * NS_PER_S);
	give(p, 1);
	fd = receive(&r, text, 4);
	give(p, 2);
	from = clock_ns(CLOCK_MONOTONIC);
	push_close(p, 50 * MS);
	CHECK(clock_ns(CLOCK_MONOTONIC) - from < 30 * NS_PER_S);
	close(fd);
	/* At the end the batch that waits is still sent if the receiver answers. */
	p = opened(r.url, 0);
	give(p, 3);
	fd = receive(&r, text, 4);
	give(p, 4);
	reply(fd, "200 OK");
	fd = 0;
	while (!strstr(text, "0004")) {
		fd = receive(&r, text, 4);
		reply(fd, "200 OK");
	}
	push_close(p, 10 * NS_PER_S);
	CHECK(!ntold);
	close(r.fd);
}

static void answer_next(const struct receiver *r, struct push *p, const char *head)
{
	char text[4096];

	give(p, 1);
	reply(receive(r, text, 4), head);
}

static void test_told(void)
{
	char url[128], *at;
	struct receiver r;
	struct push *p;

	receiver_open(&r);
	snprintf(url, sizeof(url), "http://me:password@%s", r.url + 7);
	p = opened(url, 0);
	CHECK(!strcmp(push_place(p), r.url));
	answer_next(&r, p, "204 No Content");
	answer_next(&r, p, "500 No");
	answer_next(&r, p, "502 No");
	answer_next(&r, p, "302 Found\r\nLocation: http://127.0.0.1:1/password");
	answer_next(&r, p, "200 OK");
	answer_next(&r, p, "200 OK");
	answer_next(&r, p, "not HTTP");
	push_close(p, 10 * NS_PER_S);
	CHECK(ntold == 3 && !strstr(told, "password") && !strstr(told, "secret"));
	at = strstr(told, "500");
	CHECK(at && strstr(at, "|things are sent to ") && !strstr(told, "502") && !strstr(told, "302"));
	close(r.fd);
}

static void test_refused(void)
{
	static const char *const bad[] = {"ftp://h/x", "file:///etc/passwd", "gopher://h", "http://", "h:4318",
					  "",	       "http://secret@h:x"};
	struct push_opts o = {.what = "things", .tell = tell};
	struct push *p;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct err e = {0};

		o.url = bad[i];
		CHECK(push_open(&p, &o, &e) && !p && e.cls == ERR_USAGE && !strstr(e.why, "secret"));
	}
	push_close(NULL, 0);
}

int main(void)
{
	unsetenv("http_proxy");
	if (!dlopen("libcurl.so.4", RTLD_NOW) && !dlopen("libcurl-gnutls.so.4", RTLD_NOW)) {
		printf("1..0 # SKIP no libcurl: apt-get install libcurl4\n");
		return 0;
	}
	TEST("nobody waits for a receiver, and only the newest batch does")
	test_newest();
	TEST("the end waits for no receiver that does not answer, and sends what waits to one that does")
	test_end();
	TEST("trouble is told once, without secrets, and when it is over")
	test_told();
	TEST("other protocols than http and https are refused")
	test_refused();
	UNIT_MAIN_END;
}
