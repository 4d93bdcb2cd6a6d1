// SPDX-License-Identifier: Apache-2.0
/* Tests lines for a reader that may be slow or may never come, and files that cannot be written. */
#include "cmd/serve/stream.h"

#include <pthread.h>

#include "unit.h"

#define LINE_BYTES 100000u
#define LINES	   200u /* five times what may wait */

static char folder[] = "/tmp/test_stream.XXXXXX", path[64];

static struct stream *opened(void)
{
	struct stream *s = NULL;
	struct err e = {0};

	if (stream_open(path, &s, &e))
		printf("# %s\n", e.why);
	CHECK(s);
	return s;
}

/* "7 3 xxx...": the seventh line, before which three were left out. */
static void put(struct stream *s, unsigned nth)
{
	static char line[LINE_BYTES];
	const uint64_t told = stream_left_out(s);
	const int n = snprintf(line, sizeof(line), "%u %u ", nth, (unsigned)told);

	memset(line + n, 'x', sizeof(line) - 1 - (size_t)n);
	line[sizeof(line) - 1] = '\n';
	stream_put(s, line, sizeof(line), told);
}

/* Every line that arrives is whole, and says how many are missing before it. Returns how many there are in all. */
static unsigned check_lines(FILE *f)
{
	static char got[LINE_BYTES + 2];
	unsigned nth, told, next = 0;

	while (fgets(got, sizeof(got), f)) {
		CHECK(strlen(got) == LINE_BYTES && sscanf(got, "%u %u x", &nth, &told) == 2);
		CHECK(nth == next + told);
		next = nth + 1;
	}
	return next;
}

static void *read_all(void *ctx)
{
	unsigned *n = ctx;
	FREED(file_closed) FILE *f = fopen(path, "r");

	CHECK(f);
	*n = f ? check_lines(f) : 0;
	return NULL;
}

static void test_slow(void)
{
	struct stream *s;
	pthread_t reader;
	unsigned n = 0, i;

	CHECK(!mkfifo(path, 0600));
	s = opened();
	for (i = 0; i < LINES || !stream_left_out(s); i++) /* nobody reads: a put that waited would wait for ever */
		put(s, i);
	CHECK(!pthread_create(&reader, NULL, read_all, &n));
	for (; stream_left_out(s); i++) {
		usleep(1000);
		put(s, i);
	}
	stream_close(s);
	pthread_join(reader, NULL);
	CHECK(n == i);
	/* Nobody reads, also not at the end. */
	s = opened();
	for (i = 0; i < LINES; i++)
		put(s, i);
	stream_close(s);
	unlink(path);
}

static void test_file(void)
{
	char other[80];
	struct err e = {0};
	struct stream *s;
	struct stat st;
	unsigned i;
	FILE *f;

	for (i = 0; i < 4; i += 2) {
		s = opened();
		put(s, i);
		put(s, i + 1);
		stream_close(s);
	}
	f = fopen(path, "r");
	CHECK(f && check_lines(f) == 4 && !fstat(fileno(f), &st) && (st.st_mode & 0777) == 0600);
	fclose(f);
	snprintf(other, sizeof(other), "%s.link", path);
	CHECK(!symlink(path, other));
	CHECK(stream_open(other, &s, &e) && !s && e.code);
	unlink(other);
	if (!geteuid()) {
		e = (struct err){0};
		CHECK(!chown(path, 12345, 12345) && stream_open(path, &s, &e) && !s && e.code);
	}
	unlink(path);
}

static void test_full(void)
{
	struct stream *s = NULL;
	struct err e = {0};
	unsigned i;

	CHECK(!stream_open("/dev/full", &s, &e));
	for (i = 0; s && i < 3; i++)
		put(s, 0);
	while (s && stream_left_out(s) < 3)
		usleep(1000);
	stream_skip(s);
	CHECK(stream_left_out(s) == 4);
	stream_close(s);
	stream_close(NULL);
}

int main(void)
{
	CHECK(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/lines", folder);
	TEST("a reader that does not read holds nothing up, and the next line says how many it has missed")
	test_slow();
	TEST("a file goes on, and belongs to nobody else")
	test_file();
	TEST("lines that cannot be written are left out")
	test_full();
	rmdir(folder);
	UNIT_MAIN_END;
}
