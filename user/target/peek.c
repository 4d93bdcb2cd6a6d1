// SPDX-License-Identifier: Apache-2.0
/* Quick looks at a process, cheap enough to do for all processes. They keep nothing open and read only /proc. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "target/priv.h"

#define STATUS_MAX_BYTES    (64u << 10) /* a process may be in thousands of groups */
#define CONTAINER_ID_DIGITS 64		/* in ids of docker, containerd, podman, cri-o, and therefore kubernetes */

static int slurp_proc(pid_t pid, const char *name, size_t cap, struct buf *out)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return tgt_slurp(AT_FDCWD, path, cap, out);
}

/* perms: the second field of a line of maps. */
static struct tgt_file file_of(const char *perms)
{
	struct tgt_file f = {0};
	unsigned maj, min;

	if (sscanf(perms, " %*s %*s %x:%x %" SCNu64, &maj, &min, &f.ino) == 3)
		f.dev = makedev(maj, min);
	return f;
}

/* This scans lines itself, because parsing them as tgt_maps_libs() does would take several times as long. */
unsigned tgt_maps_match(char *text, const char *const *globs, struct tgt_file *files)
{
	char *line, *save = NULL, *perms, *base, *deleted;
	unsigned mask = 0, i;

	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		perms = strchr(line, ' ');
		base = strrchr(line, '/');
		if (!base || !perms || strnlen(perms, 4) < 4 || perms[3] != 'x')
			continue;
		deleted = strstr(base, " (deleted)");
		if (deleted)
			*deleted = '\0';
		for (i = 0; globs[i]; i++)
			if (!(mask >> i & 1) && !fnmatch(globs[i], base + 1, 0)) {
				mask |= 1u << i;
				if (files)
					files[i] = file_of(perms);
			}
	}
	return mask;
}

int tgt_peek(pid_t pid, const char *const *globs, struct tgt_file *files, unsigned *mask)
{
	struct buf maps = {0};
	int err = slurp_proc(pid, "maps", TGT_MAPS_MAX_BYTES, &maps);

	*mask = err ? 0 : tgt_maps_match(maps.data, globs, files);
	buf_fini(&maps);
	return err;
}

bool tgt_peek_maps(pid_t pid, const struct tgt_lib *const *libs, unsigned n)
{
	struct buf maps = {0};
	char file[64];
	bool found = false, read = !slurp_proc(pid, "maps", TGT_MAPS_MAX_BYTES, &maps);
	unsigned i;

	for (i = 0; read && i < n && !found; i++) {
		snprintf(file, sizeof(file), " %02x:%02x %" PRIu64 " ", major(libs[i]->dev), minor(libs[i]->dev),
			 libs[i]->ino);
		found = strstr(maps.data, file);
	}
	buf_fini(&maps);
	return found;
}

struct family {
	int parent, group; /* 0, -1: the process has ended */
};

/* The name in the second field may contain any character, even ")". */
static struct family peek_family(pid_t pid)
{
	struct family f = {0}, none = {0, -1};
	struct buf stat = {0};
	bool read = false;
	char *end;

	if (!slurp_proc(pid, "stat", 4096, &stat)) {
		end = strrchr(stat.data, ')');
		read = end && sscanf(end, ") %*c %d %d", &f.parent, &f.group) == 2;
	}
	buf_fini(&stat);
	return read ? f : none;
}

pid_t tgt_peek_parent(pid_t pid)
{
	return peek_family(pid).parent;
}

pid_t tgt_peek_group(pid_t pid)
{
	return peek_family(pid).group;
}

int tgt_peek_usage(pid_t pid, struct tgt_usage *u)
{
	unsigned long long minor, major, user, system, started;
	struct buf stat = {0};
	int err = slurp_proc(pid, "stat", 4096, &stat), parent;
	long pages;
	char *open = err ? NULL : strchr(stat.data, '('), *end = err ? NULL : strrchr(stat.data, ')');

	*u = (struct tgt_usage){0};
	if (!err &&
	    (!open || !end ||
	     sscanf(end,
		    ") %*c %d %*d %*d %*d %*d %*u %llu %*u %llu %*u %llu %llu %*d %*d %*d %*d %*d %*d %llu %*u %ld",
		    &parent, &minor, &major, &user, &system, &started, &pages) != 7))
		err = -EBADMSG;
	if (!err) {
		*end = '\0';
		snprintf(u->comm, sizeof(u->comm), "%s", open + 1);
		u->parent = parent;
		u->started = started;
		u->cpu_ns = (user + system) * (1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK));
		u->faults = minor + major;
		u->major = major;
		u->resident_bytes = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
	}
	buf_fini(&stat);
	return err;
}

uint64_t tgt_peek_resident(pid_t pid)
{
	unsigned long long resident, shared;
	struct buf text = {0};
	uint64_t bytes = 0;

	if (!slurp_proc(pid, "statm", 4096, &text) && sscanf(text.data, "%*u %llu %llu", &resident, &shared) == 2 &&
	    resident > shared)
		bytes = (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
	buf_fini(&text);
	return bytes;
}

/* The number behind a word at the start of a line; 0: there is none. */
static uint64_t number_in(pid_t pid, const char *file, const char *name, uint64_t times)
{
	struct buf text = {0};
	const char *field = slurp_proc(pid, file, 4096, &text) ? NULL : tgt_status_field(text.data, name);
	const uint64_t n = field ? strtoull(field, NULL, 10) : 0;

	buf_fini(&text);
	return n * times;
}

uint64_t tgt_peek_read(pid_t pid)
{
	return number_in(pid, "io", "read_bytes", 1);
}

uint64_t tgt_peek_private(pid_t pid)
{
	return number_in(pid, "smaps_rollup", "Private_Dirty", 1024);
}

bool tgt_peek_forked(pid_t pid)
{
	enum { NOT_EXECUTED = 0x40 }; /* PF_FORKNOEXEC among the flags of the ninth field */
	struct stat its, parents;
	struct buf text = {0};
	const char *end = slurp_proc(pid, "stat", 4096, &text) ? NULL : strrchr(text.data, ')');
	unsigned flags = 0;
	char path[64];
	bool known;

	known = end && sscanf(end, ") %*c %*d %*d %*d %*d %*d %u", &flags) == 1 && flags & NOT_EXECUTED;
	buf_fini(&text);
	if (!known)
		return false;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	known = !stat(path, &its);
	snprintf(path, sizeof(path), "/proc/%d/exe", tgt_peek_parent(pid));
	return known && !stat(path, &parents) && its.st_dev == parents.st_dev && its.st_ino == parents.st_ino;
}

int tgt_peek_cgroup(pid_t pid, struct buf *text)
{
	return slurp_proc(pid, "cgroup", 65536, text);
}

int tgt_peek_comm(pid_t pid, pid_t tid, char comm[32])
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid, tid);
	return tgt_slurp_comm(AT_FDCWD, path, comm);
}

int tgt_peek_status(pid_t pid, pid_t tid, struct buf *text)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	return tgt_slurp(AT_FDCWD, path, STATUS_MAX_BYTES, text);
}

const char *tgt_status_field(const char *text, const char *name)
{
	size_t n = strlen(name);

	for (; text; text = strchr(text, '\n')) {
		text += *text == '\n';
		if (!strncmp(text, name, n) && text[n] == ':')
			return text + n + 1 + strspn(text + n + 1, "\t ");
	}
	return NULL;
}

uint32_t tgt_peek_number(pid_t pid, pid_t tid, unsigned *levels)
{
	struct buf status = {0};
	uint32_t number = 0, next;
	const char *at = NULL;
	char *end;

	*levels = 0;
	if (!tgt_peek_status(pid, tid, &status))
		at = tgt_status_field(status.data, "NSpid");
	while (at && *at != '\n' && (next = (uint32_t)strtoul(at, &end, 10), end != at)) {
		number = next;
		++*levels;
		at = end;
	}
	buf_fini(&status);
	return number;
}

/* Takes the last id, which is that of the innermost container. */
bool tgt_cgroup_container(const char *text, char id[TGT_CONTAINER_BYTES])
{
	const char *p = text;
	bool found = false;
	size_t n;

	while (*p) {
		n = strspn(p, "0123456789abcdef");
		if (n == CONTAINER_ID_DIGITS) {
			snprintf(id, TGT_CONTAINER_BYTES, "%s", p);
			found = true;
		}
		p += n ? n : 1;
	}
	return found;
}

static bool other_namespace(pid_t pid, const char *kind)
{
	char path[64], own[64], its[64];
	ssize_t n, m;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
	n = readlink(path, own, sizeof(own));
	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, kind);
	m = readlink(path, its, sizeof(its));
	return n > 0 && m > 0 && (n != m || memcmp(own, its, (size_t)n));
}

void tgt_container(pid_t pid, struct tgt_container *c)
{
	struct buf cgroup = {0};

	*c = (struct tgt_container){0};
	if (!tgt_peek_cgroup(pid, &cgroup))
		tgt_cgroup_container(cgroup.data, c->id);
	c->other_pid_ns = other_namespace(pid, "pid");
	c->other_mount_ns = other_namespace(pid, "mnt");
	buf_fini(&cgroup);
}

int tgt_each_process(void (*fn)(void *ctx, pid_t pid), void *ctx)
{
	DIR *proc = opendir("/proc");
	struct dirent *d;

	if (!proc)
		return -errno;
	while ((d = readdir(proc)))
		if (isdigit((unsigned char)d->d_name[0]))
			fn(ctx, (pid_t)strtol(d->d_name, NULL, 10));
	closedir(proc);
	return 0;
}

void tgt_each_child(pid_t pid, void (*fn)(void *ctx, pid_t child), void *ctx)
{
	char pattern[64], *list = NULL, *p, *end;
	glob_t threads = {0};
	size_t cap = 0, i;
	long child;
	FILE *f;

	snprintf(pattern, sizeof(pattern), "/proc/%d/task/*/children", pid);
	if (glob(pattern, GLOB_NOSORT, NULL, &threads))
		return; /* it has ended */
	for (i = 0; i < threads.gl_pathc; i++) {
		f = fopen(threads.gl_pathv[i], "re");
		if (f && getline(&list, &cap, f) > 0)
			for (p = list; (child = strtol(p, &end, 10)) > 0; p = end)
				fn(ctx, (pid_t)child);
		if (f)
			fclose(f);
	}
	globfree(&threads);
	free(list);
}

bool tgt_peek_same_program(pid_t a, pid_t b)
{
	const pid_t pids[2] = {a, b};
	struct stat process[2], exe[2];
	char path[64];
	unsigned i;

	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/proc/%d", pids[i]);
		if (stat(path, &process[i]))
			return false;
		snprintf(path, sizeof(path), "/proc/%d/exe", pids[i]);
		if (stat(path, &exe[i]))
			return false;
	}
	return process[0].st_uid == process[1].st_uid && exe[0].st_dev == exe[1].st_dev &&
	       exe[0].st_ino == exe[1].st_ino;
}
