// SPDX-License-Identifier: Apache-2.0
#include "base/out.h"

#include "dir_entries.h"
#include "unit.h"

#define MARK "_mark"

static char dir[] = "/tmp/test_out_dir.XXXXXX";
static struct err e;

static int checked(const char *path)
{
	e = (struct err){0};
	return out_dir_check(path, MARK, &e);
}

static int opened(const char *path, struct out_dir **d)
{
	e = (struct err){0};
	return out_dir_open(path, MARK, "said\n", d, &e);
}

static int written(const struct out_dir *d, const char *at, const char *text)
{
	struct out *o;

	e = (struct err){0};
	if (out_dir_file(d, at, &o, &e))
		return e.code;
	out_puts(o, text);
	return out_commit(o, &e);
}

static bool holds(const char *path, const char *want)
{
	char text[64] = "";
	FREED(file_closed) FILE *f = fopen(path, "r");
	const bool same = f && fgets(text, sizeof(text), f) && !strcmp(text, want);

	return same;
}

static bool is(const char *path, mode_t type, mode_t mode, uid_t owner)
{
	struct stat st;

	return !lstat(path, &st) && (st.st_mode & S_IFMT) == type && (st.st_mode & 07777) == mode && st.st_uid == owner;
}

static void new_directory(void)
{
	struct out_dir *d;
	struct out *o;

	umask(0);
	CHECK(!checked("a") && access("a", F_OK));
	CHECK(!opened("a/", &d) && holds("a/" MARK, "said\n"));
	CHECK(!written(d, "x/y=1/f", "one\n") && holds("a/x/y=1/f", "one\n"));
	CHECK(is("a", S_IFDIR, 0700, geteuid()) && is("a/x/y=1", S_IFDIR, 0700, geteuid()));
	CHECK(is("a/x/y=1/f", S_IFREG, 0600, geteuid()) && is("a/" MARK, S_IFREG, 0600, geteuid()));
	CHECK(!out_dir_file(d, "x/y=1/f", &o, &e));
	out_puts(o, "half");
	CHECK(holds("a/x/y=1/f", "one\n"));
	out_abort(o);
	CHECK(holds("a/x/y=1/f", "one\n") && entries("a/x/y=1") == 1);
	CHECK(!written(d, "x/y=1/f", "two\n") && holds("a/x/y=1/f", "two\n"));
	out_dir_close(d);
	CHECK(!checked("a") && !opened("a", &d) && !written(d, "z/f", "three\n") && holds("a/x/y=1/f", "two\n"));
	CHECK(entries("a") == 3);
	out_dir_close(d);
}

static void refuses(const char *path, int code)
{
	struct out_dir *d;

	CHECK(checked(path) == code && strstr(e.why, path));
	CHECK(opened(path, &d) == code && !d && strstr(e.why, path));
}

static void foreign(void)
{
	struct out_dir *d;
	FILE *f;

	CHECK(!mkdir("theirs", 0700) && !mkdir("theirs/sub", 0700));
	refuses("theirs", -EEXIST);
	CHECK(entries("theirs") == 1);
	f = fopen("file", "w");
	CHECK(f && !fclose(f));
	refuses("file", -ENOTDIR);
	CHECK(!symlink("a", "link"));
	refuses("link", -ELOOP);
	refuses("nowhere/b", -ENOENT);
	refuses("..", -EISDIR);
	CHECK(!mkdir("empty", 0700) && !checked("empty") && !opened("empty", &d));
	out_dir_close(d);
}

/* Whoever can write into the directory may have put a link there. */
static void links_inside(void)
{
	struct out_dir *d;

	CHECK(!opened("a", &d) && !mkdir("outside", 0700) && !symlink("../outside", "a/trap"));
	CHECK(written(d, "trap/f", "no\n") == -ELOOP && strstr(e.why, "a/trap/f") && !entries("outside"));
	CHECK(!symlink("../../outside/f", "a/x/f") && written(d, "x/f", "no\n") == -ELOOP && !entries("outside"));
	out_dir_close(d);
}

static void owner(void)
{
	struct out_dir *d;

	setenv("SUDO_UID", "1234", 1);
	setenv("SUDO_GID", "1234", 1);
	CHECK(!opened("sudo", &d) && !written(d, "x/f", "mine\n"));
	out_dir_close(d);
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	CHECK(is("sudo", S_IFDIR, 0700, 1234) && is("sudo/x", S_IFDIR, 0700, 1234) &&
	      is("sudo/x/f", S_IFREG, 0600, 1234));
	CHECK(!mkdir("tmp", 0) && !chmod("tmp", 01777) && !mkdir("tmp/bait", 0777) && !chown("tmp/bait", 1234, 1234));
	refuses("tmp/bait", -EPERM);
}

int main(void)
{
	char rm[64];

	CHECK(mkdtemp(dir) && !chdir(dir));
	TEST("files get their names when they are complete, in private folders, and other files stay")
	new_directory();
	TEST("a directory, a file or a link of somebody else is refused in advance and left alone")
	foreign();
	TEST("no link within the directory is followed")
	links_inside();
	if (geteuid() == 0) {
		TEST("folders and files belong to the caller of sudo, and a directory planted by another user is "
		     "refused")
		owner();
	} else {
		TEST("folders and files belong to the caller of sudo # SKIP needs root: chown")
		{
		}
	}
	snprintf(rm, sizeof(rm), "rm -r %s", dir);
	CHECK(!chdir("/") && !system(rm));
	UNIT_MAIN_END;
}
