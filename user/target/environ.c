// SPDX-License-Identifier: Apache-2.0
/* The environment that a process started with. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "target/priv.h"

#define FIELDS_BEFORE 47 /* of stat, from the state to the end of the arguments; proc(5) counts from the pid */

/* Returns false if the kernel hides the addresses, which are 0 then. */
static bool find_region(int procfd, uint64_t *start, uint64_t *end)
{
	struct buf stat = {0};
	const char *at = NULL;
	bool found = false;
	unsigned i;

	if (!tgt_slurp(procfd, "stat", 4096, &stat))
		at = strrchr(stat.data, ')');
	for (i = 0; at && i <= FIELDS_BEFORE; i++)
		at = strchr(at + 1, ' ');
	if (at)
		found = sscanf(at, " %" SCNu64 " %" SCNu64, start, end) == 2 && *start && *start < *end;
	buf_fini(&stat);
	return found;
}

/* CAP_SYS_PTRACE permits to read memory, but not to open a file that only another user may read. */
static int read_memory(struct far *far, int procfd, pid_t pid, struct buf *text)
{
	uint64_t start, end;
	ssize_t got;

	if (!find_region(procfd, &start, &end))
		return -EACCES;
	if (end - start > TGT_ENVIRON_MAX_BYTES)
		end = start + TGT_ENVIRON_MAX_BYTES;
	text->len = 0;
	if (!buf_add(text, end - start + 1)) /* a NUL follows */
		return -ENOMEM;
	got = far_memory(far, pid, start, text->data, end - start);
	text->len = got > 0 ? (size_t)got : 0;
	text->data[text->len] = '\0';
	/* The directory is bound to the process, so this was its memory if the directory still has something in it. */
	return got < 0 || faccessat(procfd, "stat", F_OK, 0) ? -EACCES : 0;
}

int tgt_environ(struct far *far, int procfd, pid_t pid, struct buf *text)
{
	const int err = tgt_slurp(procfd, "environ", TGT_ENVIRON_MAX_BYTES, text);

	return err == -EACCES ? read_memory(far, procfd, pid, text) : err;
}

int tgt_peek_environ(pid_t pid, struct buf *text)
{
	struct far *far = far_new();
	char path[32];
	int dir, err;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = dir < 0 ? -errno : far ? tgt_environ(far, dir, pid, text) : -ENOMEM;
	far_free(far);
	if (dir >= 0)
		close(dir);
	return err;
}
