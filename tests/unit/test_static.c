// SPDX-License-Identifier: Apache-2.0
/* Functions of the C library that only the static binary replaces, against those of the C library. */
#include <grp.h>
#include <locale.h>
#include <pwd.h>
#include <wchar.h>

#include "unit.h"

static struct passwd *libc_user(uid_t uid)
{
	return getpwuid(uid);
}

static int libc_columns(wchar_t c)
{
	return wcwidth(c);
}

static gid_t set[256];
static size_t nset;

static int keep_groups(size_t n, const gid_t *gids)
{
	nset = n;
	memcpy(set, gids, n * sizeof(*gids));
	return 0;
}

#define getpwuid   static_getpwuid
#define initgroups static_initgroups
#define wcwidth	   static_wcwidth
#define setgroups  keep_groups
struct passwd *static_getpwuid(uid_t uid);
int static_initgroups(const char *user, gid_t first);
int static_wcwidth(wchar_t c);
#include "../../user/static.c"

static void check_user(uid_t uid)
{
	struct passwd *pw = static_getpwuid(uid);
	FREED(memory_freed) char *name = pw ? strdup(pw->pw_name) : NULL, *home = pw ? strdup(pw->pw_dir) : NULL;
	struct passwd *want = libc_user(uid);

	CHECK(name && want && !strcmp(name, want->pw_name) && !strcmp(home, want->pw_dir));
}

/* The groups of the user, in any order. */
static void check_groups(const char *user)
{
	gid_t want[256];
	int n = 256, i;
	size_t found;

	CHECK(getgrouplist(user, 4711, want, &n) >= 0);
	CHECK(!static_initgroups(user, 4711) && nset == (size_t)n);
	for (i = 0; i < n; i++) {
		for (found = 0; found < nset && set[found] != want[i]; found++)
			;
		CHECK(found < nset);
	}
}

int main(void)
{
	wchar_t c, wrong = 0;

	TEST("the static binary has the C library's columns for every character without a locale")
	{
		CHECK(static_wcwidth(0x4e2d) == 2 && static_wcwidth(0x301) == 0 && static_wcwidth('a') == 1);
		setlocale(LC_CTYPE, "C.UTF-8");
		for (c = 1; c < 0x110000; c++)
			wrong += static_wcwidth(c) != libc_columns(c);
		CHECK(!wrong);
	}

	TEST("the static binary finds users in /etc/passwd, and none that is not there")
	{
		check_user(0);
		check_user(65534);
		CHECK(!static_getpwuid(3999999999u));
	}

	TEST("the static binary gives a user the groups of /etc/group")
	{
		struct group *gr;

		check_groups("root");
		check_groups("nobody");
		setgrent();
		while ((gr = getgrent()))
			if (gr->gr_mem[0])
				check_groups(strdupa(gr->gr_mem[0]));
		endgrent();
	}
	UNIT_MAIN_END;
}
