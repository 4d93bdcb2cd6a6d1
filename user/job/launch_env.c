// SPDX-License-Identifier: Apache-2.0
#include "job/launch_env.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"

#define ENV_BYTES_MAX (4u << 20)

/* Variables that sudo sets itself. */
static const char *const sudo_sets[] = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "MAIL", NULL};

static bool is_named(const char *entry, const char *name, size_t len)
{
	return !strncmp(entry, name, len) && entry[len] == '=';
}

static bool has(const struct buf *env, const char *entry)
{
	size_t i, len = strcspn(entry, "=");

	for (i = 0; i < buf_count(env, char *); i++)
		if (is_named(*buf_at(env, char *, i), entry, len))
			return true;
	return false;
}

static bool by_sudo(const char *entry)
{
	int i;

	for (i = 0; sudo_sets[i]; i++)
		if (is_named(entry, sudo_sets[i], strlen(sudo_sets[i])))
			return true;
	return false;
}

/* Returns the environment that sudo was called with: entries that end with NUL, and one more NUL; NULL: not readable.
 */
static char *sudo_environ(void)
{
	char path[64], exe[PATH_MAX] = "";
	struct buf env = {0};
	FILE *f;
	size_t n;
	char *p;

	snprintf(path, sizeof(path), "/proc/%d/exe", getppid());
	if (readlink(path, exe, sizeof(exe) - 1) < 0 || !(p = strrchr(exe, '/')) || strcmp(p, "/sudo"))
		return NULL;
	snprintf(path, sizeof(path), "/proc/%d/environ", getppid());
	f = fopen(path, "re");
	if (!f)
		return NULL;
	while (env.len < ENV_BYTES_MAX && (p = buf_add(&env, 4096))) {
		n = fread(p, 1, 4096, f);
		env.len -= 4096 - n;
		if (!n)
			break;
	}
	fclose(f);
	if (env.len && !buf_put(&env, "\0", 2))
		return env.data;
	buf_fini(&env);
	return NULL;
}

static int launch_env_add(struct buf *env, const char *entry)
{
	return has(env, entry) ? 0 : buf_put(env, &entry, sizeof(entry));
}

static int add_value(struct buf *env, const char *name, const char *value)
{
	char *entry;

	return asprintf(&entry, "%s=%s", name, value) < 0 ? -ENOMEM : launch_env_add(env, entry);
}

static int of_passwd(struct buf *env, const struct passwd *pw)
{
	return add_value(env, "HOME", pw->pw_dir) || add_value(env, "USER", pw->pw_name) ||
	       add_value(env, "LOGNAME", pw->pw_name) || add_value(env, "SHELL", pw->pw_shell);
}

char **launch_env(const struct passwd *pw, bool user)
{
	char *of_sudo = user ? sudo_environ() : NULL, *p, *none = NULL;
	struct buf env = {0};
	int i, err = 0;

	if (!user)
		return environ;
	for (i = 0; !err && environ[i]; i++)
		if (strncmp(environ[i], "SUDO_", 5) && !by_sudo(environ[i]))
			err = launch_env_add(&env, environ[i]);
	for (p = of_sudo; p && *p && !err; p += strlen(p) + 1)
		err = launch_env_add(&env, p);
	if (!err && pw)
		err = of_passwd(&env, pw);
	for (i = 0; !err && environ[i]; i++) /* at least PATH, if the environment of sudo is not readable */
		if (strncmp(environ[i], "SUDO_", 5))
			err = launch_env_add(&env, environ[i]);
	if (err || buf_put(&env, &none, sizeof(none)))
		return NULL;
	return (char **)env.data;
}
