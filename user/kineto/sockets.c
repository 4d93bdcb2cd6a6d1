// SPDX-License-Identifier: Apache-2.0
/* Finds sockets by /proc/PID/net/unix, which lists those of the process's network namespace. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kineto/priv.h"

#define CLIENT "dynoconfigclient" /* and a random number */
#define DAEMON "dynolog"

/* Calls fn for each descriptor of a process that is a socket, until it returns true. Returns whether one did. */
static bool each_socket(pid_t pid, bool (*fn)(void *ctx, uint64_t ino), void *ctx)
{
	char path[64], link[64];
	struct dirent *d;
	bool found = false;
	uint64_t ino;
	ssize_t n;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	while (dir && !found && (d = readdir(dir))) {
		n = readlinkat(dirfd(dir), d->d_name, link, sizeof(link) - 1);
		if (n <= 0)
			continue;
		link[n] = '\0';
		found = sscanf(link, "socket:[%" SCNu64 "]", &ino) == 1 && fn(ctx, ino);
	}
	if (dir)
		closedir(dir);
	return found;
}

static bool is_number(void *ctx, uint64_t ino)
{
	return ino == *(uint64_t *)ctx;
}

static bool owns(pid_t pid, uint64_t ino)
{
	return each_socket(pid, is_number, &ino);
}

/*
 * Calls fn with each socket of datagrams that has a name, until it returns true. In the list a name that is abstract
 * begins with @, and each of its NULs is an @.
 */
static bool each_name(pid_t pid, bool (*fn)(void *ctx, uint64_t ino, const char *name), void *ctx)
{
	char path[64], *line = NULL;
	bool found = false;
	size_t cap = 0;
	unsigned type;
	uint64_t ino;
	ssize_t len;
	int at;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/net/unix", pid);
	f = fopen(path, "re");
	while (f && !found && (len = getline(&line, &cap, f)) > 0) {
		if (line[len - 1] == '\n')
			line[len - 1] = '\0';
		at = 0;
		if (sscanf(line, "%*s %*s %*s %*s %x %*s %" SCNu64 " %n", &type, &ino, &at) == 2 && at &&
		    type == SOCK_DGRAM && line[at])
			found = fn(ctx, ino, line + at);
	}
	if (f)
		fclose(f);
	free(line);
	return found;
}

static bool is_client(void *ctx, uint64_t ino, const char *name)
{
	struct kin_client *c = ctx;
	const char *slash = strrchr(name, '/');
	const char *base = *name == '@' ? name + 1 : *name == '/' && slash ? slash + 1 : "";

	if (strncmp(base, CLIENT, strlen(CLIENT)) || (size_t)(base - name) > sizeof(c->dir) || !owns(c->pid, ino))
		return false;
	c->ino = ino;
	snprintf(c->dir, sizeof(c->dir), "%.*s", *name == '@' ? 0 : (int)(slash - name), name);
	return true;
}

bool kin_client_find(pid_t pid, struct kin_client *c)
{
	*c = (struct kin_client){.pid = pid};
	return each_name(pid, is_client, c);
}

struct search {
	char name[KIN_DIR_BYTES + 16];
	uint64_t ino;
	pid_t owner;
};

static bool is_wanted(void *ctx, uint64_t ino, const char *name)
{
	struct search *s = ctx;

	s->ino = ino;
	return !strcmp(name, s->name);
}

static void sockets_look_at(void *ctx, pid_t pid)
{
	struct search *s = ctx;

	if (!s->owner && pid != getpid() && owns(pid, s->ino))
		s->owner = pid;
}

pid_t kin_owner(const struct kin_client *c)
{
	struct search s = {0};

	snprintf(s.name, sizeof(s.name), *c->dir ? "%s/" DAEMON : "%s@" DAEMON "@", c->dir);
	if (each_name(c->pid, is_wanted, &s))
		tgt_each_process(sockets_look_at, &s);
	return s.owner;
}

socklen_t kin_address(const char *dir, struct sockaddr_un *a)
{
	size_t len;

	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (!*dir) { /* a NUL, the name, a NUL, and both NULs count */
		memcpy(a->sun_path + 1, DAEMON, sizeof(DAEMON));
		return offsetof(struct sockaddr_un, sun_path) + 1 + sizeof(DAEMON);
	}
	len = (size_t)snprintf(a->sun_path, sizeof(a->sun_path), "%s/" DAEMON, dir);
	return len < sizeof(a->sun_path) ? offsetof(struct sockaddr_un, sun_path) + len + 1 : 0;
}
