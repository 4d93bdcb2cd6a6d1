// SPDX-License-Identifier: Apache-2.0
/* Whether the control group of a process is frozen, which no other file of /proc tells on all kernels. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "target/priv.h"

static bool has(const char *mount, const char *path, const char *file, const char *text)
{
	char name[PATH_MAX];
	struct buf now = {0};
	bool found;

	found = snprintf(name, sizeof(name), "/sys/fs/cgroup%s%s/%s", mount, path, file) < (int)sizeof(name) &&
		!tgt_slurp(AT_FDCWD, name, 4096, &now) && strstr(now.data, text);
	buf_fini(&now);
	return found;
}

/* A line is ID:CONTROLLERS:PATH; that of version 2 has no controllers. */
static bool is_frozen(const char *line)
{
	const char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;

	if (!path)
		return false;
	if (path == controllers + 1)
		return has("", path + 1, "cgroup.events", "frozen 1") ||
		       has("/unified", path + 1, "cgroup.events", "frozen 1");
	return !strncmp(controllers, ":freezer:", 9) && has("/freezer", path + 1, "freezer.state", "FROZEN");
}

bool tgt_peek_frozen(pid_t pid)
{
	struct buf text = {0};
	char *line, *save = NULL;
	bool frozen = false;

	if (!tgt_peek_cgroup(pid, &text))
		for (line = strtok_r(text.data, "\n", &save); line && !frozen; line = strtok_r(NULL, "\n", &save))
			frozen = is_frozen(line);
	buf_fini(&text);
	return frozen;
}
