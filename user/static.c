// SPDX-License-Identifier: Apache-2.0
/*
 * Functions of the C library that the static binary replaces. Those of a static glibc load libraries or locales of the
 * machine, which may be missing or belong to another glibc. `make static` links this file, and nothing else does.
 */
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#define GROUPS 256 /* of one user */

/* libdw looks for libdebuginfod, which mxbpf does not use. The C library needs its own dlopen(), so the linker wraps
 * this one. */
void *__wrap_dlopen(const char *path, int flags);

void *__wrap_dlopen(const char *path, int flags)
{
	return NULL;
}

/* Knows the users of /etc/passwd, and none of LDAP and the like. name: NULL: by the number. */
static struct passwd *find_user(const char *name, uid_t uid)
{
	FILE *f = fopen("/etc/passwd", "re");
	struct passwd *pw;

	if (!f)
		return NULL;
	do
		pw = fgetpwent(f);
	while (pw && (name ? strcmp(pw->pw_name, name) != 0 : pw->pw_uid != uid));
	fclose(f);
	return pw;
}

struct passwd *getpwuid(uid_t uid)
{
	return find_user(NULL, uid);
}

struct passwd *getpwnam(const char *name)
{
	return find_user(name, 0);
}

static bool has_member(const struct group *gr, const char *user)
{
	char **member;

	for (member = gr->gr_mem; *member; member++)
		if (!strcmp(*member, user))
			return true;
	return false;
}

/* Knows the groups of /etc/group. */
int initgroups(const char *user, gid_t first)
{
	FILE *f = fopen("/etc/group", "re");
	gid_t gids[GROUPS] = {first};
	const struct group *gr;
	size_t n = 1;

	while (f && n < GROUPS && (gr = fgetgrent(f)))
		if (gr->gr_gid != first && has_member(gr, user))
			gids[n++] = gr->gr_gid;
	if (f)
		fclose(f);
	return setgroups(n, gids);
}

/* Columns of a character without the locale C.UTF-8, which a bare root lacks. */
int wcwidth(wchar_t c)
{
	static const struct {
		unsigned from, to;
		int columns;
	} ranges[] = {
#include "columns.h"
	};
	size_t low = 0, high = sizeof(ranges) / sizeof(ranges[0]), mid;

	while (low < high) {
		mid = (low + high) / 2;
		if ((unsigned)c > ranges[mid].to)
			low = mid + 1;
		else
			high = mid;
	}
	return low < sizeof(ranges) / sizeof(ranges[0]) && (unsigned)c >= ranges[low].from ? ranges[low].columns : 1;
}
