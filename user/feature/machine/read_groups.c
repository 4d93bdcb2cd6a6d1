// SPDX-License-Identifier: Apache-2.0
/* Finds the cgroups of a process, from its own up to the highest that is visible from here. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/open_in.h"
#include "feature/machine/read_priv.h"

#define MOUNTS_MAX_BYTES (16u << 20)

/* Checks the file system, because whoever made the process's mounts could have mounted anything there. */
static bool is_group(int dirfd, const char *controller)
{
	struct statfs fs;

	return !fstatfs(dirfd, &fs) && fs.f_type == (controller ? CGROUP_SUPER_MAGIC : CGROUP2_SUPER_MAGIC);
}

/* The root cgroup limits nobody, and its counts are those of the machine. */
static bool is_root(int dirfd, const char *controller)
{
	return controller ? !faccessat(dirfd, "release_agent", F_OK, 0) : !!faccessat(dirfd, "cgroup.type", F_OK, 0);
}

static int add_group(struct buf *groups, const char *controller, int dirfd, const char *path, unsigned level)
{
	struct mach_group g = {.controller = controller, .dirfd = dirfd, .level = level};

	if (asprintf(&g.name, "%s%s%s", controller ? controller : "", controller ? ":" : "", *path ? path : "/") < 0)
		return -ENOMEM;
	if (!buf_put(groups, &g, sizeof(g)))
		return 0;
	free(g.name);
	return -ENOMEM;
}

/* A path of the process has no links, because it is that of a mount. Whoever puts one there leads to nothing. */
static int open_dir(int root, const char *dir)
{
	const struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				     .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS};

	return root < 0 ? open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC) : open_in(root, dir, how);
}

/*
 * Adds the groups from dir up to its first mount_len bytes. `path` loses one name per step. Returns -EDOM if it is the
 * root.
 */
static int climb(struct buf *groups, const char *controller, int root, char *dir, size_t mount_len, char *path)
{
	unsigned level;
	int fd, err = 0;
	char *slash;

	for (level = 0; !err && level < MACH_LEVELS_MAX; level++) {
		fd = open_dir(root, dir);
		if (fd < 0)
			return level ? 0 : -ENXIO;
		if (!is_group(fd, controller) || is_root(fd, controller)) {
			err = is_group(fd, controller) ? -EDOM : -ENXIO;
			close(fd);
			return level ? 0 : err;
		}
		err = add_group(groups, controller, fd, path, level);
		if (err)
			close(fd);
		slash = strrchr(dir, '/');
		if (strlen(dir) <= mount_len || slash < dir + mount_len)
			break;
		*slash = '\0';
		slash = strrchr(path, '/');
		if (slash)
			*slash = '\0';
	}
	return err;
}

/* A machine with many containers has a thousand mounts. */
static int slurp_mounts(const char *path, struct buf *text)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : 1;
	char part[16384];

	while (n > 0 && text->len < MOUNTS_MAX_BYTES) {
		n = read(fd, part, sizeof(part));
		if (n > 0 && buf_put(text, part, (size_t)n))
			n = -1;
	}
	if (fd >= 0)
		close(fd);
	return n < 0 || buf_put(text, "", 1) ? -ENXIO : 0;
}

/* Opens through our own mounts (pid 0) or those of the process, which may show a part of the tree that ours do not. */
static int open_by_mounts(pid_t pid, const char *controller, const char *path, struct buf *groups)
{
	char name[64] = "/proc/self/mountinfo";
	char dir[MACH_PATH_BYTES], rest[MACH_PATH_BYTES];
	struct buf text = {0};
	size_t mount_len;
	int err, root = -1;

	if (pid)
		snprintf(name, sizeof(name), "/proc/%d/mountinfo", pid);
	err = slurp_mounts(name, &text);
	if (!err)
		err = mach_group_dir(text.data, controller, path, dir, &mount_len);
	buf_fini(&text);
	if (err)
		return -ENXIO;
	if (pid) {
		snprintf(name, sizeof(name), "/proc/%d/root", pid);
		root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (root < 0)
			return -ENXIO;
	}
	strcpy(rest, path);
	err = climb(groups, controller, root, dir, mount_len, rest);
	if (root >= 0)
		close(root);
	return err;
}

const char *mach_groups_reason(int err)
{
	switch (err) {
	case -ENOENT:
		return "the process has none";
	case -EDOM:
		return "the process is in the root group";
	case -ENXIO:
		return "no mount shows the group of the process";
	case -ESTALE:
		return "the group of the process was removed";
	}
	return strerror(-err);
}

int mach_groups_open(pid_t pid, const char *cgroup, const char *controller, struct buf *groups)
{
	char path[MACH_PATH_BYTES];
	int err = mach_group_path(cgroup, controller, path);

	if (!err)
		err = open_by_mounts(0, controller, path, groups);
	if (err == -ENXIO)
		err = open_by_mounts(pid, controller, path, groups);
	return err;
}

void mach_groups_close(struct buf *groups)
{
	size_t i;

	for (i = 0; i < buf_count(groups, struct mach_group); i++) {
		close(buf_at(groups, struct mach_group, i)->dirfd);
		free(buf_at(groups, struct mach_group, i)->name);
	}
	groups->len = 0;
}
