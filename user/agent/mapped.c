// SPDX-License-Identifier: Apache-2.0
#include "agent/mapped.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* PROCMAP_QUERY of Linux 6.11 returns one mapping without the text of all. <linux/fs.h> of 6.1 lacks it. */
struct query {
	uint64_t size, flags, addr;
	uint64_t start, end, vma_flags, page_size, off, ino;
	uint32_t dev_major, dev_minor;
	uint32_t name_size, build_id_size;
	uint64_t name_addr, build_id_addr;
};
#define QUERY		  _IOWR('f', 17, struct query)
#define QUERY_EXEC	  0x04
#define QUERY_OR_NEXT	  0x10
#define QUERY_FILE_BACKED 0x20

#define CHUNK_BYTES 16384 /* bytes of text; the kernel returns whole lines, at most a page at a time */

/* Calls fn for each line. Returns the first nonzero result of fn, 0, or -errno. */
static int each_line(int fd, int (*fn)(void *ctx, const char *line), void *ctx)
{
	char chunk[CHUNK_BYTES + 1], *line, *end;
	size_t kept = 0;
	off_t at = 0;
	ssize_t n;
	int err;

	while ((n = pread(fd, chunk + kept, CHUNK_BYTES - kept, at)) > 0) {
		at += n;
		kept += (size_t)n;
		chunk[kept] = '\0';
		for (line = chunk; (end = strchr(line, '\n')); line = end + 1) {
			*end = '\0';
			err = fn(ctx, line);
			if (err)
				return err;
		}
		kept -= (size_t)(line - chunk);
		if (kept == CHUNK_BYTES)
			return -E2BIG;
		memmove(chunk, line, kept);
	}
	return n < 0 ? -errno : 0;
}

static int on_file_line(void *ctx, const char *line)
{
	const char *name = strstr(line, "/memfd:");
	struct mapped_file *f = ctx;
	uint64_t start, off, ino;
	size_t n = strlen(f->name);
	char perms[5];

	if (!name || strncmp(name + 7, f->name, n) || (name[7 + n] && name[7 + n] != ' '))
		return 0;
	if (sscanf(line, "%" SCNx64 "-%*x %4s %" SCNx64 " %*x:%*x %" SCNu64, &start, perms, &off, &ino) != 4 ||
	    (f->ino && ino != f->ino))
		return 0;
	if (!f->base && !off)
		f->base = start;
	f->exec |= perms[2] == 'x';
	return 0;
}

/*
 * Finds the first mapping with these flags at or after an address. Returns 0, -ENOENT if there is none, or -errno
 * if the kernel does not support the query.
 */
static int query(int fd, uint64_t addr, uint64_t flags, struct query *q)
{
	*q = (struct query){.size = sizeof(*q), .addr = addr, .flags = flags};
	return ioctl(fd, QUERY, q) ? -errno : 0;
}

static bool is_file(const struct query *q, const struct mapped_file *f)
{
	return q->ino == f->ino && makedev(q->dev_major, q->dev_minor) == f->dev;
}

/* Searches the executable mappings, since a process has few of them. */
static int find_by_query(int fd, struct mapped_file *f)
{
	struct query q = {.end = 0};
	uint64_t base;
	int err;

	do {
		err = query(fd, q.end, QUERY_FILE_BACKED | QUERY_EXEC | QUERY_OR_NEXT, &q);
	} while (!err && !is_file(&q, f));
	if (err)
		return err;
	base = q.start - q.off; /* valid for files laid out by ld; else the text is read */
	err = query(fd, base, QUERY_FILE_BACKED, &q);
	if (err || !is_file(&q, f) || q.off || q.start != base)
		return -ENOENT;
	f->base = base;
	f->exec = true;
	return 0;
}

int mapped_find(int fd, struct mapped_file *f)
{
	f->base = 0;
	f->exec = false;
	if (f->ino && !find_by_query(fd, f))
		return 0;
	return each_line(fd, on_file_line, f);
}

static int on_stack_line(void *ctx, const char *line)
{
	struct mapped_range r;
	char perms[5];

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &r.start, &r.end, perms) != 3 || perms[1] != 'w')
		return 0;
	r.main = strstr(line, " [stack]");
	return buf_put(ctx, &r, sizeof(r));
}

int mapped_stacks(int fd, struct buf *ranges)
{
	return each_line(fd, on_stack_line, ranges);
}
