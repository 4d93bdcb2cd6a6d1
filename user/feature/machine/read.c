// SPDX-License-Identifier: Apache-2.0
#include "feature/machine/read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "feature/machine/read_priv.h"
#include "mxbpf_name.h"
#include "mxbpf_table.h"
#include "records/kinds.h"

#define NSOURCES (sizeof(machine_gauges[0].from) / sizeof(machine_gauges[0].from[0]))

/* A gauge that can be read. */
struct item {
	uint16_t id;
	uint16_t scope;
	const struct machine_source *from;
	int fd, fd2; /* owned by the first of consecutive items with the same file; -1: none */
	bool again;  /* it reads the same file as the item before */
};

struct mach {
	pid_t pid;
	mach_absent_fn absent;
	void *ctx;
	int cgroup_fd;			  /* /proc/PID/cgroup of the process; -1: it has none */
	char cgroup[4 * MACH_PATH_BYTES]; /* its last content */
	struct buf items;		  /* struct item */
	struct buf groups;		  /* struct mach_group */
	uint16_t nscopes; /* scopes used so far; after a move to another group the process gets new ones */
	struct mach_freq freq;
	char text[MACH_TEXT_BYTES];
};

ssize_t mach_pread(int fd, char *text, size_t cap)
{
	size_t n = 0;
	ssize_t got;

	do {
		got = pread(fd, text + n, cap - 1 - n, (off_t)n);
		if (got > 0)
			n += (size_t)got;
	} while ((got > 0 && n < cap - 1) || (got < 0 && errno == EINTR));
	text[n] = '\0';
	return got < 0 ? -errno : (ssize_t)n;
}

ssize_t mach_slurp(const char *path, char *text, size_t cap)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -errno : mach_pread(fd, text, cap);

	if (fd >= 0)
		close(fd);
	return n;
}

/* ---- reading */

static int read_files(struct mach *m, const struct item *it)
{
	ssize_t n = mach_pread(it->fd, m->text, sizeof(m->text));

	if (n >= 0 && it->fd2 >= 0)
		n = mach_pread(it->fd2, m->text + n, sizeof(m->text) - (size_t)n);
	return n < 0 ? (int)n : 0;
}

static int read_item(struct mach *m, const struct item *it, uint64_t *value)
{
	if (it->from->form == MACHINE_FORM_KHZ)
		return mach_freq(&m->freq, m->text, value);
	if (it->from->form == MACHINE_FORM_KHZ_MAX) {
		*value = m->freq.khz_max;
		return *value ? 0 : -ENODATA;
	}
	return mach_parse(it->from, m->text, value);
}

static int put_scopes(struct mach *m, struct buf *out)
{
	struct mach_group *g;
	size_t i;
	int err = 0;

	for (i = 0; i < buf_count(&m->groups, struct mach_group) && !err; i++) {
		g = buf_at(&m->groups, struct mach_group, i);
		if (!g->named && g->scope)
			err = kind_put_name(out, MXBPF_NAME_SCOPE, 0, g->scope, g->name,
					    strnlen(g->name, MXBPF_NAME_BYTES_MAX));
		g->named = true;
	}
	return err;
}

static int put_gauge(const struct item *it, uint64_t value, bool resumed, struct buf *out)
{
	struct timespec t;
	struct mxbpf_gauge g = {
		.h = {.kind = MXBPF_GAUGE, .size = MXBPF_GAUGE_BYTES_MIN},
		.value = value,
		.id = it->id,
		.scope = it->scope,
		.flags = resumed ? MXBPF_GAUGE_RESUMED : 0,
	};

	clock_gettime(CLOCK_MONOTONIC, &t);
	g.h.ts_ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	return buf_put(out, &g, MXBPF_GAUGE_BYTES_MIN);
}

/* ---- opening */

static void close_items(struct mach *m, size_t from)
{
	size_t i;

	for (i = from; i < buf_count(&m->items, struct item); i++) {
		const struct item *it = buf_at(&m->items, struct item, i);

		if (!it->again)
			close(it->fd);
		if (!it->again && it->fd2 >= 0)
			close(it->fd2);
	}
	m->items.len = from * sizeof(struct item);
}

/*
 * Returns the last item if it has this file open. Rows of one file are adjacent in the table, and so are those of a
 * scope here.
 */
static const struct item *has_open(const struct mach *m, const struct machine_source *from, uint16_t scope)
{
	size_t n = buf_count(&m->items, struct item);
	const struct item *last = n ? buf_at(&m->items, struct item, n - 1) : NULL;

	return last && last->scope == scope && !strcmp(last->from->file, from->file) ? last : NULL;
}

static int open_source(struct mach *m, unsigned id, const struct machine_source *from, int dirfd, uint16_t scope)
{
	const struct item *last = has_open(m, from, scope);
	struct item it = {.id = (uint16_t)id, .scope = scope, .from = from, .fd = -1, .fd2 = -1, .again = !!last};
	uint64_t value;
	int err = 0;

	if (last) {
		it.fd = last->fd;
		it.fd2 = last->fd2;
	} else {
		it.fd = openat(dirfd, from->file, O_RDONLY | O_CLOEXEC);
		err = it.fd < 0 ? -errno : 0;
	}
	if (!err && !last && from->file2) {
		it.fd2 = openat(dirfd, from->file2, O_RDONLY | O_CLOEXEC);
		err = it.fd2 < 0 ? -errno : 0;
	}
	if (!err)
		err = read_files(m, &it);
	/* The first reading cannot tell which CPUs were busy. */
	if (!err && from->form != MACHINE_FORM_KHZ && from->form != MACHINE_FORM_KHZ_MAX)
		err = read_item(m, &it, &value);
	if (!err && !buf_put(&m->items, &it, sizeof(it)))
		return 0;
	if (!last && it.fd >= 0)
		close(it.fd);
	if (!last && it.fd2 >= 0)
		close(it.fd2);
	return err ? err : -ENOMEM;
}

/* The result of opening a gauge. */
struct outcome {
	const char *file; /* the file tried first; NULL: none was there */
	int err;
	bool in_v2;
};

static int open_machine(struct mach *m, struct outcome *all)
{
	unsigned id;
	int err;

	for (id = 1; id < MXBPF_GAUGE_IDS; id++) {
		const struct machine_source *from = &machine_gauges[id].from[0];

		if (!machine_gauges[id].name || machine_gauges[id].of != MACHINE_OF_MACHINE)
			continue;
		err = open_source(m, id, from, AT_FDCWD, 0);
		if (err == -ENOMEM)
			return err;
		all[id] = (struct outcome){.file = from->file, .err = err};
	}
	return 0;
}

/* On a machine with cgroup versions 1 and 2, a gauge is read in only one of them. */
static bool is_of(unsigned id, const struct mach_group *g, const struct outcome *all)
{
	const struct machine_gauge *gauge = &machine_gauges[id];
	const char *controller = gauge->from[!!g->controller].controller;

	if (gauge->of == MACHINE_OF_MACHINE || (g->level && gauge->of == MACHINE_OF_GROUP))
		return false;
	return g->controller ? controller && !strcmp(controller, g->controller) && !all[id].in_v2
			     : !!gauge->from[0].file;
}

static int open_group(struct mach *m, const struct mach_group *g, struct outcome *all)
{
	unsigned id;
	int err;

	for (id = 1; id < MXBPF_GAUGE_IDS; id++) {
		const struct machine_source *from = &machine_gauges[id].from[!!g->controller];

		if (!is_of(id, g, all))
			continue;
		err = open_source(m, id, from, g->dirfd, g->scope);
		if (err == -ENOMEM)
			return err;
		if (!err || !all[id].file)
			all[id] = (struct outcome){.file = from->file, .err = err, .in_v2 = !err && !g->controller};
	}
	return 0;
}

static int open_groups(struct mach *m, struct outcome *all, char why[256])
{
	/* NULL: version 2, which comes first */
	static const char *const controllers[] = {NULL, "cpu", "cpuacct", "cpuset", "memory"};
	size_t i, n = 0;
	int err = 0;

	why[0] = '\0';
	for (i = 0; i < sizeof(controllers) / sizeof(controllers[0]) && err != -ENOMEM; i++) {
		const char *name = controllers[i] ? controllers[i] : "cgroup2";

		err = mach_groups_open(m->pid, m->cgroup, controllers[i], &m->groups);
		if (err)
			n += (size_t)snprintf(why + n, 256 - n, "%s%s: %s", n ? "; " : "", name,
					      mach_groups_reason(err));
		n = n < 256 ? n : 255;
	}
	for (i = 0; i < buf_count(&m->groups, struct mach_group) && err != -ENOMEM; i++) {
		struct mach_group *g = buf_at(&m->groups, struct mach_group, i);

		if (m->nscopes == UINT16_MAX) /* it moves all the time; its last groups stay unread */
			break;
		g->scope = ++m->nscopes;
		err = open_group(m, g, all);
	}
	return err == -ENOMEM ? err : 0;
}

static bool same_outcome(const struct outcome *a, const struct outcome *b)
{
	return a->err == b->err && (a->file && b->file ? !strcmp(a->file, b->file) : a->file == b->file);
}

/* Reports gauges with the same reason by one call. */
static void machine_tell(const struct mach *m, const struct outcome *all, const char *no_group)
{
	bool told[MXBPF_GAUGE_IDS] = {false};
	char names[512], why[512];
	unsigned id, other;

	for (id = 1; id < MXBPF_GAUGE_IDS && m->absent; id++) {
		size_t n = 0;

		if (!machine_gauges[id].name || told[id] || (all[id].file && !all[id].err))
			continue;
		if (all[id].file)
			snprintf(why, sizeof(why), "%s: %s", all[id].file,
				 all[id].err == -ENODATA ? "the file does not contain it" : strerror(-all[id].err));
		for (other = id; other < MXBPF_GAUGE_IDS; other++) {
			if (!machine_gauges[other].name || !same_outcome(&all[other], &all[id]) || n >= sizeof(names))
				continue;
			told[other] = true;
			n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", n ? ", " : "",
					      machine_gauges[other].name);
		}
		m->absent(m->ctx, names, all[id].file ? why : no_group);
	}
}

static struct mach *open_all(pid_t pid, bool machine, mach_absent_fn absent, void *ctx)
{
	struct outcome all[MXBPF_GAUGE_IDS] = {0};
	struct mach *m = calloc(1, sizeof(*m));
	char path[64], why[256];
	int err;

	if (!m)
		return NULL;
	m->pid = pid;
	m->absent = absent;
	m->ctx = ctx;
	m->freq.sys = "/sys";
	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	m->cgroup_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (m->cgroup_fd >= 0)
		mach_pread(m->cgroup_fd, m->cgroup, sizeof(m->cgroup));
	err = machine ? open_machine(m, all) : 0;
	if (!err)
		err = open_groups(m, all, why);
	if (!err) {
		machine_tell(m, all, why);
		return m;
	}
	mach_close(m);
	return NULL;
}

struct mach *mach_open(pid_t pid, mach_absent_fn absent, void *ctx)
{
	return open_all(pid, true, absent, ctx);
}

struct mach *mach_open_groups(pid_t pid)
{
	return open_all(pid, false, NULL, NULL);
}

void mach_close(struct mach *m)
{
	if (!m)
		return;
	close_items(m, 0);
	mach_groups_close(&m->groups);
	buf_fini(&m->items);
	buf_fini(&m->groups);
	mach_freq_fini(&m->freq);
	if (m->cgroup_fd >= 0)
		close(m->cgroup_fd);
	free(m);
}

/* Reopens the group gauges if the process has moved. Gauges of the machine come first and stay. */
static int follow(struct mach *m)
{
	struct outcome all[MXBPF_GAUGE_IDS] = {0};
	char now[sizeof(m->cgroup)], why[256];
	size_t n = 0;

	if (m->cgroup_fd < 0 || mach_pread(m->cgroup_fd, now, sizeof(now)) <= 0 || !strcmp(now, m->cgroup))
		return 0;
	strcpy(m->cgroup, now);
	while (n < buf_count(&m->items, struct item) && !buf_at(&m->items, struct item, n)->scope)
		n++;
	close_items(m, n);
	mach_groups_close(&m->groups);
	return open_groups(m, all, why);
}

int mach_read(struct mach *m, bool resumed, struct buf *out)
{
	int err = follow(m), unread = 0;
	const struct item *it;
	uint64_t value;
	size_t i;

	if (!err)
		err = put_scopes(m, out);
	for (i = 0; !err && i < buf_count(&m->items, struct item); i++) {
		it = buf_at(&m->items, struct item, i);
		if (!it->again)
			unread = read_files(m, it);
		if (!unread && !read_item(m, it, &value))
			err = put_gauge(it, value, resumed, out);
	}
	return err;
}
