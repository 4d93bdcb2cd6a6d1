// SPDX-License-Identifier: Apache-2.0
/* Tests the answers of the server, who gets them, and where it listens. test_serve_hostile has clients that mean harm.
 */

#include <sys/syscall.h>
#include <zlib.h>

#include "http_client.h"

#define AUTH(token)    "Authorization: Bearer " token "\r\n"
#define POST(headers)  "POST /trace?duration=5s HTTP/1.1\r\n" HOST headers "\r\n"
#define WITH(headers)  "GET /metrics HTTP/1.1\r\n" headers "\r\n"
#define ZIPPED(url, c) "GET " url " HTTP/1.1\r\n" HOST "Accept-Encoding: " c "\r\n\r\n"

static char dir[] = "/tmp/test_serve.XXXXXX";

/* ---- writes that fail */

static unsigned failing; /* so many of the next writes of eight bytes, as to an eventfd */

ssize_t write(int fd, const void *buf, size_t n)
{
	if (n == sizeof(uint64_t) && failing) {
		failing--;
		errno = EINTR;
		return -1;
	}
	return syscall(SYS_write, fd, buf, n);
}

/* Another thread would wait for the server's for ever. */
static void failed_wake(void)
{
	int status_ = 1;
	pid_t pid = fork();

	if (!pid) {
		alarm(10);
		if (!open_with(&(struct srv_opts){.listen = "127.0.0.1:0"}))
			_exit(2);
		failing = 3;
		close_server();
		_exit(failing ? 3 : 0);
	}
	CHECK(waitpid(pid, &status_, 0) == pid && !status_);
}

/* ---- replies */

static void get(void)
{
	CHECK(status(GET("/metrics")) == 200);
	CHECK(!strcmp(body(), "ok /metrics\n"));
	CHECK(has("Content-Type: text/plain; charset=utf-8\r\n") && has("Content-Length: 12\r\n"));
	CHECK(status("HEAD /metrics HTTP/1.1\r\n" HOST "\r\n") == 200);
	CHECK(!*body() && has("Content-Length: 12\r\n"));
	CHECK(status("GET /metrics HTTP/1.0\r\n\r\n") == 200);
	CHECK(asked == 3);
}

static void safe_headers(void)
{
	static const char *const requests[] = {GET("/metrics"), GET("/nothing"),
					       "OPTIONS /metrics HTTP/1.1\r\n" HOST "\r\n", POST("")};
	size_t i;

	for (i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		CHECK(status(requests[i]));
		CHECK(has("X-Content-Type-Options: nosniff\r\n") && has("Cache-Control: no-store\r\n"));
		CHECK(has("Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n"));
		CHECK(has("Cross-Origin-Resource-Policy: same-origin\r\n") && has("Connection: close\r\n"));
		CHECK(!has("Access-Control") && !has("Set-Cookie"));
	}
	CHECK(status(GET("/page")) == 200 && has("Content-Type: text/html; charset=utf-8\r\n"));
	CHECK(has("Content-Security-Policy: default-src 'self'\r\n") && has("nosniff") && has("no-store"));
}

static void methods(void)
{
	CHECK(status(GET("/nothing")) == 404 && status(GET("/metrics/")) == 404 && status(GET("/")) == 404);
	CHECK(status(GET("/metrics%00")) == 404 && status(GET("/metrics%00x")) == 404);
	CHECK(status("POST /metrics HTTP/1.1\r\n" HOST "\r\n") == 405 && has("Allow: GET, HEAD\r\n"));
	CHECK(status("DELETE /metrics HTTP/1.1\r\n" HOST "\r\n") == 405 && has("Allow: GET, HEAD\r\n"));
	CHECK(status(GET("/trace")) == 405 && has("Allow: POST\r\n"));
	CHECK(!asked);
	CHECK(status(GET("/m%65trics")) == 200);
	CHECK(status(GET("/odd")) == 500);
}

static void queries(void)
{
	CHECK(status(GET("/echo?d=5s")) == 200 && !strcmp(body(), "d=5s none=1 accept=\n"));
	CHECK(status(GET("/echo?x=1&d=a%20b%26c&d=2&none")) == 200 && !strcmp(body(), "d=a b&c none=0 accept=\n"));
	CHECK(status(GET("/echo?")) == 200 && status(GET("/echo?&&=1&")) == 200 && has("d=- none=1"));
	CHECK(status("GET /echo HTTP/1.1\r\n" HOST "Accept: text/plain;version=0.0.4\r\n\r\n") == 200);
	CHECK(!strcmp(body(), "d=- none=1 accept=text/plain;version=0.0.4\n"));
	CHECK(status(GET("/echo?d=a%00b")) == 200 && !strcmp(body(), "d=a%00b none=1 accept=\n"));
	CHECK(asked == 6);
}

/* Fills the query with n times a text. */
static const char *long_query(const char *text, unsigned n)
{
	static char request[12000];
	char *at = stpcpy(request, "GET /echo?");

	while (n--)
		at = stpcpy(at, text);
	strcpy(at, " HTTP/1.1\r\n" HOST "\r\n");
	return request;
}

static void bad_queries(void)
{
	CHECK(status(GET("/echo?d=a%0ab")) == 400 && status(GET("/echo?d=a%1b[2J")) == 400);
	CHECK(status(long_query("a=1&", 17)) == 400 && status(long_query("a", 2100)) == 400);
	CHECK(!asked);
	CHECK(status(long_query("a=1&", 16)) == 200 && status(long_query("a", 2000)) == 200);
}

/* ---- compression */

/* Returns whether the body is the compressed text of length n. */
static bool inflates_to(const char *text, size_t n)
{
	static char out[100000];
	z_stream z = {.next_in = (void *)(uintptr_t)body(), .next_out = (void *)out, .avail_out = sizeof(out)};
	bool same;

	z.avail_in = (unsigned)(got + got_len - body());
	if (inflateInit2(&z, 15 + 16) != Z_OK)
		return false;
	same = inflate(&z, Z_FINISH) == Z_STREAM_END && !z.avail_in && z.total_out == n && !memcmp(out, text, n);
	inflateEnd(&z);
	return same;
}

static void compression(void)
{
	static const char *const refused[] = {ZIPPED("/text", "identity"), ZIPPED("/text", "gzip;q=0"),
					      ZIPPED("/text", "br, gzip; q=0.00"), ZIPPED("/text", "xgzip, gzipped"),
					      ZIPPED("/metrics", "gzip")};
	static const char *const taken[] = {ZIPPED("/text", "gzip"), ZIPPED("/text", "deflate, GZIP;q=0.5, br"),
					    ZIPPED("/text", ",gzip ,")};
	FREED(memory_freed) char *text = NULL;
	size_t i, n;

	CHECK(status(GET("/text")) == 200 && !has("Content-Encoding"));
	text = strdup(body());
	n = strlen(text);
	CHECK(n > 30000);
	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		CHECK(status(refused[i]) == 200 && !has("Content-Encoding"));
	for (i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		CHECK(status(taken[i]) == 200 && has("Content-Encoding: gzip\r\n") && got_len < n / 2 &&
		      inflates_to(text, n));
}

/* ---- names of the host */

static int status_at(const char *to, const char *request)
{
	int fd = client_at(to);

	CHECK(put(fd, request, strlen(request)));
	return status_of(finish(fd, true));
}

static int status_for(const char *to, const char *host)
{
	char request[200];

	snprintf(request, sizeof(request), WITH("Host: %s\r\n"), host);
	return status_at(to, request);
}

/* A browser sends this for a page of evil.example, after that name has got the address of this machine. */
static void rebinding(void)
{
	static const char *const ours[] = {"localhost",	  "LocalHost:9464", "127.0.0.1",
					   "127.0.0.1:1", "[::1]:8080",	    "127.0.0.5:80"};
	static const char *const others[] = {"evil.example",
					     "evil.example:9464",
					     "127.0.0.1.evil.example",
					     "localhost.evil.example",
					     "localhost:1.evil.example",
					     "localhost:",
					     "xlocalhost",
					     "127.0.0.2",
					     "10.0.0.1",
					     ""};
	static const char to[] = "127.0.0.5";
	size_t i;

	CHECK(open_with(&(struct srv_opts){.listen = "127.0.0.5:0"}));
	for (i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		CHECK(status_for(to, ours[i]) == 200);
	CHECK(asked == sizeof(ours) / sizeof(ours[0]));
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		CHECK(status_for(to, others[i]) == 421);
	CHECK(status_at(to, WITH("Host: localhost\r\nHost: evil.example\r\n")) == 421);
	CHECK(status_at(to, WITH("Host: evil.example\r\nHost: localhost\r\n")) == 421);
	CHECK(status_at(to, WITH("X: y\r\n")) == 400);
	CHECK(status_at(to, "GET http://evil.example/metrics HTTP/1.1\r\n" HOST "\r\n") == 404);
	CHECK(asked == sizeof(ours) / sizeof(ours[0]));
	close_server();
	CHECK(open_with(&(struct srv_opts){.listen = ":0"}));
	CHECK(status_for("127.0.0.1", "localhost") == 200 && status_for("127.0.0.9", "127.0.0.9:1") == 200);
	CHECK(status_for("127.0.0.1", "node7.cluster:9464") == 421);
	if (own_address())
		CHECK(status_for(own_address(), "node7.cluster:9464") == 200);
	close_server();
}

/* ---- tokens */

static void posts(void)
{
	static const char *const refused[] = {POST(""),
					      POST("Authorization: Bearer \r\n"),
					      POST("Authorization:\r\n"),
					      POST("Authorization: Basic " TOKEN "\r\n"),
					      POST("Authorization: " TOKEN "\r\n"),
					      POST(AUTH("0123456789abcdef-secre")),
					      POST(AUTH("0123456789abcdef-secrett")),
					      POST(AUTH(TOKEN TOKEN)),
					      POST(AUTH("x123456789abcdef-secret")),
					      POST(AUTH("wrong") AUTH(TOKEN)),
					      POST(AUTH(TOKEN) AUTH(TOKEN)),
					      POST(AUTH(TOKEN) "Origin: http://localhost\r\n"),
					      POST(AUTH(TOKEN) "Origin: null\r\n"),
					      POST("Cookie: token=" TOKEN "\r\n"),
					      "POST /trace?token=" TOKEN " HTTP/1.1\r\n" HOST "\r\n"};
	char first[4096] = "";
	size_t i;

	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		CHECK(status(refused[i]) == 403);
		memset(strstr(got, "Date: "), '-', strlen("Date: Thu, 01 Jan 1970 00:00:00 GMT"));
		if (!i)
			strcpy(first, got);
		CHECK(!strcmp(got, first));
	}
	CHECK(!asked);
	CHECK(status(POST(AUTH(TOKEN))) == 200 && posted == 1);
	CHECK(status(POST(AUTH(TOKEN) "Content-Length: 0\r\n")) == 200 && posted == 2);
	CHECK(status(POST("authorization: bearer " TOKEN "\r\n")) == 200 && posted == 3);
}

static void bodies(void)
{
	CHECK(status(POST(AUTH(TOKEN) "Content-Length: 4\r\n") "a=1&") == 413);
	CHECK(status(POST(AUTH(TOKEN) "Content-Length: 99999999999\r\n")) == 413);
	CHECK(status(POST(AUTH(TOKEN) "Content-Length: 4\r\nExpect: 100-continue\r\n")) == 413 && !has("100 Continue"));
	CHECK(status(POST(AUTH(TOKEN) "Transfer-Encoding: chunked\r\n") "0\r\n\r\n") == 413);
	CHECK(status(WITH(HOST "Content-Length: 3\r\n") "abc") == 413);
	CHECK(status(WITH(HOST "Content-Length: 0\r\nContent-Length: 3\r\n") "abc") == 413);
	CHECK(status(WITH(HOST "Content-Length: 3\r\nContent-Length: 0\r\n") "abc") == 413);
	CHECK(!asked);
	CHECK(status(WITH(HOST "Content-Length: 0\r\n")) == 200);
}

#define NEW "another-token-of-32-characters!!"

static void rotation(void)
{
	struct err t;

	CHECK(status(POST(AUTH(TOKEN))) == 200);
	put_file("token", NEW, 0600);
	CHECK(status(POST(AUTH(TOKEN))) == 403 && status(POST(AUTH(NEW))) == 200);
	put_file("token.new", TOKEN, 0400);
	CHECK(!rename("token.new", "token"));
	CHECK(status(POST(AUTH(NEW))) == 403 && status(POST(AUTH(TOKEN))) == 200);
	CHECK(!srv_trouble(s, &t));
	CHECK(!chmod("token", 0644));
	CHECK(status(POST(AUTH(TOKEN))) == 403 && status(POST(AUTH(TOKEN))) == 403);
	CHECK(srv_trouble(s, &t) && strstr(t.why, "chmod 600 token"));
	CHECK(status(POST(AUTH(TOKEN))) == 403 && !srv_trouble(s, &t));
	CHECK(!unlink("token"));
	CHECK(status(POST(AUTH(TOKEN))) == 403 && status(POST(AUTH(""))) == 403);
	CHECK(srv_trouble(s, &t) && strstr(t.why, "token: No such file"));
	put_file("token", TOKEN "\r\n", 0600);
	CHECK(status(POST(AUTH(TOKEN))) == 200 && !srv_trouble(s, &t));
}

static void without_token(void)
{
	CHECK(open_with(&(struct srv_opts){0}));
	CHECK(status(POST("")) == 403 && status(POST(AUTH(""))) == 403 && status(POST(AUTH(TOKEN))) == 403);
	CHECK(!asked);
	close_server();
}

static bool refuses_token(const char *path, const char *why)
{
	const bool opened = open_with(&(struct srv_opts){.token_file = path});
	const bool said = strstr(e.why, why) && strstr(e.why, path);

	close_server();
	return !opened && said;
}

static bool refuses_text(const char *text)
{
	put_file("odd", text, 0600);
	return refuses_token("odd", "openssl rand -hex 32 >odd");
}

static void token_files(void)
{
	static const mode_t modes[] = {0640, 0604, 0620, 0602, 0610, 0644, 0666};
	char longest[300];
	size_t i;

	for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		put_file("open", TOKEN, modes[i]);
		CHECK(refuses_token("open", "chmod 600 open"));
	}
	CHECK(refuses_text("") && refuses_text("\n") && refuses_text("fifteen-letters") && refuses_text(TOKEN " "));
	CHECK(refuses_text(TOKEN "\n" TOKEN) && refuses_text("sixteen blank let") && refuses_text(TOKEN "\xc3\xa4"));
	memset(longest, 'x', sizeof(longest));
	longest[257] = '\0';
	CHECK(refuses_text(longest));
	CHECK(!mkfifo("fifo", 0600) && refuses_token("fifo", "no plain file"));
	CHECK(!mkdir("folder", 0700) && refuses_token("folder", "no plain file"));
	CHECK(refuses_token("missing", "No such file"));
	longest[256] = '\0';
	put_file("longest", longest, 0600);
	CHECK(open_with(&(struct srv_opts){.token_file = "longest"}));
	close_server();
}

static void token_of_others(void)
{
	put_file("theirs", TOKEN, 0600);
	CHECK(!chown("theirs", 12345, 12345));
	CHECK(refuses_token("theirs", "belongs to another user"));
	setenv("SUDO_UID", "12345", 1);
	CHECK(open_with(&(struct srv_opts){.token_file = "theirs"}));
	close_server();
	unsetenv("SUDO_UID");
}

/* ---- waiting */

static void left_waiting(void)
{
	int fd = ask(GET("/late")), other;

	late = true;
	await_request();
	srv_answer(s, page, NULL);
	CHECK(asked == 1 && !is_ready());
	srv_answer(s, page, NULL);
	CHECK(asked == 2 && !is_ready());
	/* One that comes later is not held up. */
	CHECK(status(GET("/metrics")) == 200 && asked == 4);
	other = ask(GET("/late"));
	await_request();
	late = false;
	srv_answer(s, page, NULL);
	CHECK(asked == 6 && status_of(finish(fd, false)) == 200 && !strcmp(body(), "ok /late\n"));
	CHECK(status_of(finish(other, false)) == 200 && !is_ready());
}

static int nested = -1;

/* While it answers, another request comes. */
static bool ask_another(void *ctx, const struct srv_request *q, struct srv_reply *a)
{
	if (nested < 0)
		nested = ask(GET("/metrics"));
	await_request();
	return page(ctx, q, a);
}

static void rounds(void)
{
	int fd = ask(GET("/metrics"));

	await_request();
	srv_answer(s, ask_another, NULL);
	CHECK(asked == 1 && status_of(finish(fd, false)) == 200);
	CHECK(is_ready() && status_of(finish(nested, true)) == 200 && asked == 2);
}

/* Calls as a caller that has been silent, and then answers one request. Returns the status. */
static int after_silence(const char *request)
{
	struct pollfd p = {.fd = srv_fd(s), .events = POLLIN};
	int fd;

	srv_answer(s, page, NULL);
	fd = ask(request);
	poll(&p, 1, 1000);
	srv_answer(s, page, NULL);
	return status_of(finish(fd, false));
}

static void silence(void)
{
	unsigned i;
	int fds[16];

	late = true;
	CHECK(open_with(&(struct srv_opts){.silent_ns = 50000000}));
	for (i = 0; i < 16; i++)
		fds[i] = ask(GET("/metrics"));
	for (i = 0; i < 16; i++)
		CHECK(status_of(finish(fds[i], false)) == 503 && has("Retry-After: 5\r\n"));
	/* Now every request is refused at once, without the caller. */
	CHECK(status_of(finish(ask(GET("/metrics")), false)) == 503 && status_of(finish(ask(GET("/x")), false)) == 404);
	CHECK(!asked);
	/* On a busy machine the silence may begin again before the request has come. */
	for (i = 0; i < 1000 && after_silence(GET("/metrics")) != 200; i++)
		;
	CHECK(i < 1000);
	/* A request that was left waiting is not forgotten. */
	asked = 0;
	for (i = 0; i < 1000 && !asked; i++)
		CHECK(after_silence(GET("/late")) == 503);
	CHECK(asked);
	close_server();
}

static void closing(void)
{
	const int fds = open_fds();
	int waits, idle, half;

	late = true;
	CHECK(open_with(&(struct srv_opts){.token_file = "token"}));
	waits = ask(GET("/late"));
	await_request();
	srv_answer(s, page, NULL);
	idle = client();
	half = ask("GET /metrics HT");
	close_server();
	CHECK(status_of(finish(waits, false)) == 503);
	CHECK(!*finish(idle, false) && !*finish(half, false));
	CHECK(open_fds() == fds);
}

/* ---- addresses */

static int refuses_address(const char *address, const char *why)
{
	const bool opened = open_with(&(struct srv_opts){.listen = address});
	const enum err_class cls = e.cls;
	const bool said = strstr(e.why, why) && strstr(e.why, address);

	close_server();
	return opened || !said ? 0 : (int)cls;
}

static void addresses(void)
{
	static const char *const bad[] = {"",
					  "9464",
					  "127.0.0.1",
					  "127.0.0.1:",
					  "127.0.0.1:x",
					  "127.0.0.1:-1",
					  "127.0.0.1:65536",
					  "1.2.3:80",
					  "::1:80",
					  "[::1]",
					  "[::1:80",
					  "example.com:80",
					  "127.0.0.1:80x",
					  "[127.0.0.1]:80",
					  "localhost:080808"};
	char address[64];
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(refuses_address(bad[i], "127.0.0.1:9464") == ERR_USAGE);
	CHECK(refuses_address("192.0.2.1:9464", "no such address") == ERR_USAGE);
	CHECK(open_with(&(struct srv_opts){.listen = "localhost:0"}) && !strncmp(srv_address(s), "127.0.0.1:", 10));
	CHECK(status(GET("/metrics")) == 200);
	snprintf(address, sizeof(address), "%s", srv_address(s));
	{
		struct srv *first = s;

		CHECK(refuses_address(address, "is in use: another mxbpf serve?") == ERR_RUNTIME);
		s = first;
	}
	close_server();
	/* The port is free again at once. */
	CHECK(open_with(&(struct srv_opts){.listen = address}));
	close_server();
}

/* The port may be taken by another program on this machine. */
static void default_address(void)
{
	bool opened;

	e = (struct err){0};
	opened = !srv_open(&s, &(struct srv_opts){.routes = routes}, &e);
	CHECK(opened ? !strcmp(srv_address(s), "127.0.0.1:9464") : !!strstr(e.why, "127.0.0.1:9464 is in use"));
	if (opened)
		close_server();
}

static bool has_ipv6(void)
{
	const struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const bool can = fd >= 0 && !bind(fd, (const void *)&a, sizeof(a));

	close(fd);
	return can;
}

static void ipv6(void)
{
	CHECK(open_with(&(struct srv_opts){.listen = "[::1]:0"}) && !strncmp(srv_address(s), "[::1]:", 6));
	CHECK(status(GET("/metrics")) == 200 && status(WITH("Host: [::1]\r\n")) == 200);
	CHECK(status(WITH("Host: evil.example\r\n")) == 421);
	close_server();
}

static void low_port(void)
{
	pid_t pid = fork();
	int status_;

	if (!pid) {
		const bool dropped = !setgid(12345) && !setuid(12345);

		_exit(!dropped || refuses_address("127.0.0.1:80", "CAP_NET_BIND_SERVICE") != ERR_PRIVILEGE);
	}
	CHECK(waitpid(pid, &status_, 0) == pid && !status_);
}

/* ---- Unix sockets */

static void unix_socket(void)
{
	struct stat st;

	CHECK(open_with(&(struct srv_opts){.listen = "unix:sock", .token_file = "token"}));
	CHECK(!strcmp(srv_address(s), "unix:sock"));
	CHECK(!lstat("sock", &st) && S_ISSOCK(st.st_mode) && (st.st_mode & 07777) == 0600);
	CHECK(status(GET("/metrics")) == 200 && status(WITH("Host: mxbpf\r\n")) == 200);
	CHECK(status(POST("")) == 403 && status(POST(AUTH(TOKEN))) == 200);
	close_server();
	CHECK(lstat("sock", &st) && errno == ENOENT);
}

static void stale_socket(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "sock"};
	struct srv *first;
	struct stat st;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(!bind(fd, (void *)&a, sizeof(a)) && !listen(fd, 1));
	CHECK(refuses_address("unix:sock", "sock is in use") == 0); /* the message has the path alone */
	CHECK(!open_with(&(struct srv_opts){.listen = "unix:sock"}) &&
	      strstr(e.why, "sock is in use: another mxbpf serve?"));
	close(fd);
	CHECK(open_with(&(struct srv_opts){.listen = "unix:sock"}) && status(GET("/metrics")) == 200);
	first = s;
	CHECK(!open_with(&(struct srv_opts){.listen = "unix:sock"}) && strstr(e.why, "is in use"));
	s = first;
	CHECK(status(GET("/metrics")) == 200);
	/* Files of others stay. */
	CHECK(!unlink("sock"));
	put_file("sock", "precious", 0600);
	close_server();
	CHECK(!lstat("sock", &st) && S_ISREG(st.st_mode));
	CHECK(!open_with(&(struct srv_opts){.listen = "unix:sock"}) && strstr(e.why, "it is no socket"));
	CHECK(!lstat("sock", &st) && S_ISREG(st.st_mode) && st.st_size == 8 && !unlink("sock"));
}

static bool refuses_socket(const char *listen, const char *why)
{
	return !open_with(&(struct srv_opts){.listen = listen}) && strstr(e.why, why);
}

static void socket_paths(void)
{
	static const char sixteen[] = "sixteen-letters.";
	char longname[200] = "unix:";
	int i;

	for (i = 0; i < 6; i++)
		strcat(longname, sixteen);
	CHECK(refuses_socket(longname, "longer than 80 bytes"));
	CHECK(refuses_socket("unix:", "empty") && refuses_socket("unix:nowhere/s", "directory does not exist"));
	CHECK(refuses_socket("unix:folder/", "names a directory") && refuses_socket("unix:folder", "no socket"));
	CHECK(!symlink("elsewhere", "link") && refuses_socket("unix:link", "no socket") && access("elsewhere", F_OK));
}

/* Another user of /tmp prepares a socket, or a link to a directory. */
static void planted(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "sticky/sock"};
	struct stat st;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(!mkdir("sticky", 01777) && !bind(fd, (void *)&a, sizeof(a)) && !lchown("sticky/sock", 12345, 12345));
	close(fd);
	CHECK(refuses_socket("unix:sticky/sock", "of another user") && !lstat("sticky/sock", &st) &&
	      st.st_uid == 12345);
	CHECK(!symlink("../folder", "sticky/way") && !lchown("sticky/way", 12345, 12345));
	CHECK(refuses_socket("unix:sticky/way/sock", "symbolic link of another user") && access("folder/sock", F_OK));
}

int main(void)
{
	enter(dir);
	TEST("a page is sent to GET, without its body to HEAD, and to HTTP/1.0") with_server(get);
	TEST("every reply forbids to store, embed and reinterpret it, and allows no other site to read it")
	with_server(safe_headers);
	TEST("unknown paths get 404, other methods 405 with those that the path has") with_server(methods);
	TEST("the caller gets decoded parameters and the header Accept") with_server(queries);
	TEST("a query with control characters, or too long, never reaches the caller") with_server(bad_queries);
	TEST("a large reply is compressed if the client accepts gzip") with_server(compression);
	TEST("a request through a loopback address must be to a name of it") rebinding();
	TEST("POST needs exactly the token, not from a browser, and no refusal differs from another")
	with_server(posts);
	TEST("a request with a body is refused") with_server(bodies);
	TEST("a new token holds from the next request on, and a bad token file is told once") with_server(rotation);
	TEST("without a token file every POST is refused") without_token();
	TEST("a token file that others can use, or that has no good token, is refused with the remedy") token_files();
	TEST_IF(!geteuid(), "a token file of another user is refused, unless he called sudo", "needs root")
	token_of_others();
	TEST("a request that the caller leaves waiting is asked again at the next call") with_server(left_waiting);
	TEST("a request that comes while another one is answered waits for the next call") with_server(rounds);
	TEST("when the caller is silent, requests get 503 until it answers again") silence();
	TEST("a server that is closed answers those who wait, and leaves no descriptor open") closing();
	TEST("a server is closed although the first writes that wake its thread fail") failed_wake();
	TEST("an address that is wrong, in use or of another machine is refused with the reason") addresses();
	TEST("without an address the server listens on this machine alone") default_address();
	TEST_IF(has_ipv6(), "IPv6 has the same rules", "no IPv6 on this machine") ipv6();
	TEST_IF(!geteuid(), "a port that needs a privilege says so", "needs root to give it up") low_port();
	TEST("a Unix socket has mode 0600 whatever the umask, and is deleted at the end") unix_socket();
	TEST("the socket of a dead server is replaced, no other file is") stale_socket();
	TEST("a path that cannot have a socket is refused") socket_paths();
	TEST_IF(!geteuid(), "neither a socket nor a link of another user is followed", "needs root") planted();
	leave(dir);
	return unit_end();
}
