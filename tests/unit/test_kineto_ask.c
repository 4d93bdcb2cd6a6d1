// SPDX-License-Identifier: Apache-2.0
/* Tests the datagrams of Kineto's requests, honest and hostile, and what stands in the place of its trace. */

#include "kineto/priv.h"
#include "unit.h"

/* Builds a datagram with any size in its head. Returns its bytes. */
static size_t message(char *to, uint64_t size, const char *type, const void *payload, size_t bytes)
{
	struct kin_head h = {.size = size};

	memcpy(h.type, type, strnlen(type, sizeof(h.type)));
	memcpy(to, &h, sizeof(h));
	memcpy(to + sizeof(h), payload, bytes);
	return sizeof(h) + bytes;
}

static enum kin_kind parse(uint64_t size, const char *type, const void *payload, size_t bytes)
{
	char text[KIN_DATAGRAM_MAX + 1];
	size_t n = message(text + 1, size, type, payload, bytes); /* at an odd address */

	return kin_parse(text + 1, n);
}

static enum kin_kind parse_request(int32_t type, int32_t n, size_t pids)
{
	char payload[sizeof(struct kin_request) + KIN_PIDS_MAX * sizeof(int32_t)] = {0};
	struct kin_request r = {.type = type, .n = n};
	size_t bytes = sizeof(r) + pids * sizeof(int32_t);

	memcpy(payload, &r, sizeof(r));
	return parse(bytes, "req", payload, bytes);
}

static bool has(const struct buf *b, const char *line)
{
	return memmem(b->data, b->len, line, strlen(line));
}

/* Opens a file of the directory as a trace of the user. */
static int try_open(int dir, const char *name, uid_t uid, struct err *e)
{
	uint64_t bytes = 0;
	int fd;

	*e = (struct err){0};
	fd = kin_file_open(dir, name, uid, &bytes, e);
	if (fd >= 0)
		close(fd);
	return fd >= 0 ? (int)bytes : fd;
}

static void put(int dir, const char *name, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static void test_files(void)
{
	char path[] = "/tmp/mxbpf-test-XXXXXX";
	int dir = mkdtemp(path) ? open(path, O_RDONLY | O_DIRECTORY) : -1;
	static const char *const names[] = {"dir", "plain", "two", "second", "empty", "link", "fifo"};
	const uid_t uid = geteuid();
	struct stat st;
	struct err e;
	size_t i;

	put(dir, "plain", "{}");
	put(dir, "two", "{}");
	put(dir, "empty", "");
	CHECK(!linkat(dir, "two", dir, "second", 0) && !symlinkat("plain", dir, "link") && !mkdirat(dir, "dir", 0700) &&
	      !mkfifoat(dir, "fifo", 0600));
	TEST("a plain file of the user is a trace")
	CHECK(try_open(dir, "plain", uid, &e) == 2 && !kin_file_look(dir, "plain", &st) && st.st_size == 2);
	TEST("a link, a pipe, a directory, a file with two names and one of another user are not read")
	{
		CHECK(try_open(dir, "link", uid, &e) == -EPERM);
		CHECK(try_open(dir, "fifo", uid, &e) == -EPERM && strstr(e.why, "not a plain file"));
		CHECK(try_open(dir, "dir", uid, &e) == -EPERM);
		CHECK(try_open(dir, "two", uid, &e) == -EPERM);
		CHECK(try_open(dir, "plain", uid + 1, &e) == -EPERM);
		CHECK(try_open(dir, "empty", uid, &e) == -ENODATA);
		CHECK(try_open(dir, "../etc/passwd", 0, &e) < 0 && try_open(dir, "/etc/passwd", 0, &e) < 0);
		CHECK(try_open(dir, "none", uid, &e) == -ENOENT && kin_file_look(dir, "none", &st) == -ENOENT);
	}
	TEST("a file that is larger than a trace can be is not read")
	{
		int fd = openat(dir, "plain", O_WRONLY);

		CHECK(!ftruncate(fd, 9ll << 30) && try_open(dir, "plain", uid, &e) == -EFBIG);
		close(fd);
	}
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlinkat(dir, names[i], i ? 0 : AT_REMOVEDIR);
	close(dir);
	rmdir(path);
}

int main(void)
{
	struct sockaddr_un a;
	struct buf b = {0};

	TEST("a context and a request of Kineto are understood")
	{
		struct kin_context c = {.pid = 7};

		CHECK(parse(sizeof(c), "ctxt", &c, sizeof(c)) == KIN_CONTEXT);
		CHECK(parse_request(2, 3, 3) == KIN_REQUEST && parse_request(3, 0, 0) == KIN_REQUEST);
		CHECK(parse_request(2, KIN_PIDS_MAX, KIN_PIDS_MAX) == KIN_REQUEST);
	}
	TEST("a profiler that is in use says so by a request for nothing")
	CHECK(parse_request(0, 3, 3) == KIN_BUSY);
	TEST("a datagram is refused if a number in it does not fit its length")
	{
		struct kin_context c = {.pid = 7};

		CHECK(parse_request(2, -1, 0) == KIN_MALFORMED && parse_request(2, 4, 3) == KIN_MALFORMED);
		CHECK(parse_request(2, 2, 3) == KIN_MALFORMED && parse_request(2, INT32_MIN, 3) == KIN_MALFORMED);
		CHECK(parse_request(2, INT32_MAX, 3) == KIN_MALFORMED);
		CHECK(parse_request(2, KIN_PIDS_MAX + 1, KIN_PIDS_MAX) == KIN_MALFORMED);
		CHECK(parse(UINT64_MAX, "ctxt", &c, sizeof(c)) == KIN_MALFORMED);
		CHECK(parse(sizeof(c) - 1, "ctxt", &c, sizeof(c)) == KIN_MALFORMED);
		CHECK(parse(sizeof(c) - 1, "ctxt", &c, sizeof(c) - 1) == KIN_MALFORMED);
	}
	TEST("a datagram of an unknown type, or without an end of the type, is refused")
	{
		char payload[16] = {0}, text[KIN_DATAGRAM_MAX];
		size_t n = message(text, sizeof(payload), "ctxt", payload, sizeof(payload)), i;

		CHECK(parse(16, "", payload, 16) == KIN_MALFORMED && parse(16, "ctx", payload, 16) == KIN_MALFORMED);
		CHECK(parse(16, "rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr", payload, 16) == KIN_MALFORMED);
		for (i = 0; i < n; i++)
			CHECK(kin_parse(text, i) == KIN_MALFORMED);
	}
	TEST("an answer has the bytes that Kineto reads")
	{
		const int32_t one = 1;

		CHECK(!kin_answer(&b, "ctxt", &one, 4) && b.len == 44 && b.data[0] == 4 &&
		      !strcmp(b.data + 8, "ctxt") && b.data[40] == 1);
		b.len = 0;
		CHECK(!kin_answer(&b, "req", NULL, 0) && b.len == 40 && !b.data[0]);
	}
	TEST("the configuration has what was asked for, and nothing else")
	{
		const struct kin_opts o = {.duration_ns = 1500000000, .with = 1}, steps = {.steps = 3};

		b.len = 0;
		CHECK(!kin_config(&b, &o, "/tmp/x/trace-7", false) && has(&b, "ACTIVITIES_LOG_FILE=/tmp/x/trace-7\n") &&
		      has(&b, "ACTIVITIES_DURATION_MSECS=1500\n") && has(&b, "ACTIVITIES_WARMUP_PERIOD_SECS=0\n"));
		CHECK(has(&b, "PROFILE_REPORT_INPUT_SHAPES=true\n") && !has(&b, "STACK") && !has(&b, "ITERATION"));
		b.len = 0;
		CHECK(!kin_config(&b, &steps, "/x", true) && has(&b, "ACTIVITIES_ITERATIONS=3\n") &&
		      !has(&b, "WARMUP_PERIOD"));
	}
	TEST("a path that Kineto would cut or refuse is not sent to it")
	{
		CHECK(kin_path_fits("/tmp") && kin_path_fits("/a-b/c.d/"));
		CHECK(!kin_path_fits("") && !kin_path_fits("tmp") && !kin_path_fits("/a b") && !kin_path_fits("/a#b") &&
		      !kin_path_fits("/a\nPROFILE=1") && !kin_path_fits("/a/../b"));
	}
	TEST("the daemon's address has a NUL before its name and one behind it")
	{
		CHECK(kin_address("", &a) == 11 && !memcmp(a.sun_path, "\0dynolog", 9));
		CHECK(kin_address("/run/k/", &a) == 2 + 16 && !strcmp(a.sun_path, "/run/k//dynolog"));
		CHECK(!kin_address(
			"/0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890"
			"123456789",
			&a));
	}
	buf_fini(&b);
	test_files();
	UNIT_MAIN_END;
}
