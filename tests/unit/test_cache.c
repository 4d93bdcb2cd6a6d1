/* SPDX-License-Identifier: Apache-2.0 */
/* Tests base/cache.h: a file that is not exactly what mxbpf wrote for the same subject counts as none. */
#include "unit.h"

#include "base/cache.h"

static char dir[] = "/tmp/mxbpf-cache-XXXXXX";
static char path[96];

static void put_two(const char *key)
{
	struct cache c;

	cache_open(&c, "lib", key, strlen(key));
	cache_put(&c, 1, 7, "seven", 6);
	cache_put(&c, 2, 7, "other", 6);
	cache_close(&c);
}

/* Returns the text of item (1, 7), or "" if the file does not count. */
static const char *text_of(const char *key)
{
	static char text[16];
	struct cache c;
	size_t n;
	const char *data;

	cache_open(&c, "lib", key, strlen(key));
	data = cache_get(&c, 1, 7, &n);
	snprintf(text, sizeof(text), "%.*s", (int)n, data ? data : "");
	cache_close(&c);
	return text;
}

static size_t read_all(char *bytes, size_t max)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = read(fd, bytes, max);

	close(fd);
	return n > 0 ? (size_t)n : 0;
}

static void write_all(const char *bytes, size_t n)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CREAT, 0600);

	CHECK(write(fd, bytes, n) == (ssize_t)n);
	close(fd);
}

int main(void)
{
	const bool root = !geteuid();
	char good[1024], bad[1024], link_path[128];
	size_t n;

	CHECK(mkdtemp(dir) && !setenv("XDG_CACHE_HOME", dir, 1));
	snprintf(path, sizeof(path), "%s/mxbpf/lib.plan", dir);
	snprintf(link_path, sizeof(link_path), "%s/elsewhere", dir);
	put_two("one");
	TEST_IF(root, "what was put is read again, by the same subject only", "needs root")
	{
		struct stat st;

		CHECK(!strcmp(text_of("one"), "seven"));
		CHECK(!strcmp(text_of("another"), ""));
		CHECK(!stat(path, &st) && (st.st_mode & 07777) == 0600);
	}
	TEST_IF(root, "a file with any byte changed, or cut at any length, counts as none", "needs root")
	{
		n = read_all(good, sizeof(good));
		CHECK(n > 64 && n < sizeof(good));
		for (size_t i = 0; i < n; i++) {
			memcpy(bad, good, n);
			bad[i] ^= 0x41;
			write_all(bad, n);
			CHECK(!strcmp(text_of("one"), ""));
			write_all(good, i);
			CHECK(!strcmp(text_of("one"), ""));
		}
		write_all(good, n);
		CHECK(!strcmp(text_of("one"), "seven"));
	}
	TEST_IF(root, "a file or a folder that others may write, and a link, count as none", "needs root")
	{
		snprintf(bad, sizeof(bad), "%s/mxbpf", dir);
		CHECK(!chmod(path, 0666) && !strcmp(text_of("one"), "") && !chmod(path, 0600));
		CHECK(!chown(path, 1, 1) && !strcmp(text_of("one"), "") && !chown(path, 0, 0));
		CHECK(!link(path, link_path) && !strcmp(text_of("one"), "") && !unlink(link_path));
		CHECK(!rename(path, link_path) && !symlink(link_path, path) && !strcmp(text_of("one"), ""));
		CHECK(!rename(link_path, path) && !strcmp(text_of("one"), "seven"));
	}
	TEST_IF(root, "items that were forgotten are in no file, and the folder keeps few files", "needs root")
	{
		struct cache c;
		char name[32];
		unsigned i;

		cache_open(&c, "lib", "one", 3);
		cache_forget(&c);
		CHECK(!cache_get(&c, 1, 7, &n));
		cache_put(&c, 3, 3, "new", 4);
		cache_close(&c);
		CHECK(!strcmp(text_of("one"), ""));
		for (i = 0; i < CACHE_FILES + 4; i++) {
			snprintf(name, sizeof(name), "many%u", i);
			cache_open(&c, name, "one", 3);
			cache_put(&c, 1, 1, "x", 2);
			cache_close(&c);
		}
		snprintf(bad, sizeof(bad), "test $(ls %s/mxbpf | wc -l) -eq %d", dir, CACHE_FILES);
		CHECK(!system(bad));
	}
	snprintf(bad, sizeof(bad), "rm -rf %s", dir);
	CHECK(!system(bad));
	UNIT_MAIN_END;
}
