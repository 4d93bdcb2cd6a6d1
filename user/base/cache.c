// SPDX-License-Identifier: Apache-2.0
#include "base/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/out_path.h"

#define SUFFIX ".plan"

/* `program` changes with every build of mxbpf, because another one may compute other results. */
struct head {
	uint64_t check; /* hash of everything behind it */
	uint64_t bytes; /* of the items */
	uint64_t program_bytes, program_ns;
	char key[CACHE_KEY_BYTES];
};

struct item {
	uint32_t kind, bytes; /* the data follows, padded to 8 bytes */
	uint64_t id;
};

static size_t padded(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

static bool is_ours(const struct stat *st)
{
	return st->st_uid == geteuid() && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* Opens a folder, or returns -1 if anybody else may write there. */
static int open_ours(int dirfd, const char *path, int flags)
{
	int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st) && is_ours(&st))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static int open_folder(void)
{
	const char *bases[] = {getenv("XDG_CACHE_HOME"), "/var/cache"};
	int fd = -1, base;

	/* Probes reach processes of all users, so only root may say where they are. */
	for (size_t i = 0; !geteuid() && fd < 0 && i < sizeof(bases) / sizeof(bases[0]); i++) {
		base = bases[i] && bases[i][0] == '/' ? open_ours(AT_FDCWD, bases[i], 0) : -1;
		if (base < 0)
			continue;
		mkdirat(base, "mxbpf", 0700);
		fd = open_ours(base, "mxbpf", O_NOFOLLOW);
		close(base);
	}
	return fd;
}

static struct head *head_of(const struct cache *c)
{
	return (struct head *)c->items.data;
}

static uint64_t check_of(const struct cache *c)
{
	const size_t from = sizeof(head_of(c)->check);

	return hash_text(HASH_SEED, c->items.data + from, c->items.len - from);
}

/* Reads a file that begins like the cache itself. Returns NULL if it is not good, or why. */
static const char *read_file(struct cache *c, int fd)
{
	const struct head own = *head_of(c);
	struct stat st;
	size_t n;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !is_ours(&st) || st.st_nlink != 1)
		return "is not root's own file";
	n = (size_t)st.st_size;
	if (n < sizeof(own) || n > CACHE_FILE_BYTES)
		return "is damaged";
	c->items.len = 0;
	if (!buf_add(&c->items, n))
		return "is too large for the memory";
	if (pread(fd, c->items.data, n, 0) != (ssize_t)n || head_of(c)->bytes != n - sizeof(own) ||
	    head_of(c)->check != check_of(c))
		return "is damaged";
	if (head_of(c)->program_bytes != own.program_bytes || head_of(c)->program_ns != own.program_ns ||
	    memcmp(head_of(c)->key, own.key, sizeof(own.key)))
		return "is of another file or of another mxbpf";
	return NULL;
}

static const struct item *item_at(const struct cache *c, size_t at)
{
	const struct item *item = buf_place(&c->items, at);

	if (at > c->items.len || c->items.len - at < sizeof(*item) ||
	    c->items.len - at - sizeof(*item) < padded(item->bytes))
		return NULL;
	return item;
}

/* Returns false if the items do not end with the file. */
static bool index_items(struct cache *c)
{
	const struct item *item;
	uint64_t *place;
	size_t at;

	for (at = sizeof(struct head); (item = item_at(c, at)); at += sizeof(*item) + padded(item->bytes)) {
		place = hash_put(&c->index, item->id, item->kind);
		if (!place)
			return false;
		*place = at;
	}
	return at == c->items.len;
}

static void cache_begin(struct cache *c, const struct head *head)
{
	c->items.len = 0;
	hash_clear(&c->index);
	if (buf_put(&c->items, head, sizeof(*head))) {
		close(c->dirfd);
		c->dirfd = -1;
	}
}

void cache_forget(struct cache *c)
{
	struct head head;

	if (c->dirfd < 0)
		return;
	head = *head_of(c);
	cache_begin(c, &head);
	c->stored = 0;
}

void cache_open(struct cache *c, const char *name, const void *key, size_t n)
{
	struct head head = {.check = 0};
	const char *why = NULL;
	struct stat st;
	int fd;

	memset(c, 0, sizeof(*c));
	c->dirfd = n <= sizeof(head.key) && !stat("/proc/self/exe", &st) ? open_folder() : -1;
	snprintf(c->said, sizeof(c->said), "plans are not kept: no folder that only root may write");
	if (c->dirfd < 0)
		return;
	memcpy(head.key, key, n);
	head.program_bytes = (uint64_t)st.st_size;
	head.program_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
	snprintf(c->name, sizeof(c->name), "%.48s" SUFFIX, name);
	cache_begin(c, &head);
	fd = c->dirfd < 0 ? -1 : openat(c->dirfd, c->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0)
		why = read_file(c, fd);
	if (fd >= 0 && !why && !index_items(c))
		why = "is damaged";
	if (fd < 0 || why)
		cache_begin(c, &head);
	else
		c->stored = c->items.len;
	snprintf(c->said, sizeof(c->said), "the kept plan %s%s", fd < 0 ? "does not exist yet" : "",
		 fd < 0 ? ""
		 : why	? why
			: "is used");
	if (fd >= 0)
		close(fd);
}

const void *cache_get(const struct cache *c, unsigned kind, uint64_t id, size_t *n)
{
	const uint64_t *place = hash_get(&c->index, id, kind);
	const struct item *item = place ? item_at(c, *place) : NULL;

	*n = item ? item->bytes : 0;
	return item ? item + 1 : NULL;
}

void cache_put(struct cache *c, unsigned kind, uint64_t id, const void *data, size_t n)
{
	const size_t bytes = sizeof(struct item) + padded(n), at = c->items.len;
	struct item *item;
	uint64_t *place;

	if (c->dirfd < 0 || n > CACHE_FILE_BYTES || bytes > CACHE_FILE_BYTES - at)
		return;
	place = hash_put(&c->index, id, kind);
	item = place ? buf_add(&c->items, bytes) : NULL;
	if (!item) {
		if (place)
			hash_del(&c->index, id, kind, &(uint64_t){0});
		return;
	}
	memset(item, 0, bytes);
	item->kind = kind;
	item->bytes = (uint32_t)n;
	item->id = id;
	memcpy(item + 1, data, n);
	*place = at;
}

/* Deletes the oldest file if there are too many. */
static void cache_sweep(int dirfd)
{
	char oldest[NAME_MAX + 1] = "";
	const int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	time_t at = 0;
	struct stat st;
	unsigned n = 0;

	while (d && (entry = readdir(d))) {
		const size_t len = strlen(entry->d_name);

		if (len < strlen(SUFFIX) || strcmp(entry->d_name + len - strlen(SUFFIX), SUFFIX) ||
		    fstatat(dirfd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		if (!n++ || st.st_mtime < at) {
			at = st.st_mtime;
			snprintf(oldest, sizeof(oldest), "%s", entry->d_name);
		}
	}
	if (n > CACHE_FILES)
		unlinkat(dirfd, oldest, 0);
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
	out_place_sweep(dirfd);
}

static void write_file(struct cache *c)
{
	char tmp[64];
	int fd;

	head_of(c)->bytes = c->items.len - sizeof(struct head);
	head_of(c)->check = check_of(c);
	out_place_tmp(tmp);
	fd = openat(c->dirfd, tmp, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (write(fd, c->items.data, c->items.len) != (ssize_t)c->items.len ||
	    renameat(c->dirfd, tmp, c->dirfd, c->name))
		unlinkat(c->dirfd, tmp, 0);
	close(fd);
	cache_sweep(c->dirfd);
}

void cache_close(struct cache *c)
{
	if (c->dirfd >= 0 && c->items.len > sizeof(struct head) && c->items.len != c->stored)
		write_file(c);
	if (c->dirfd >= 0)
		close(c->dirfd);
	buf_fini(&c->items);
	hash_fini(&c->index);
	c->dirfd = -1;
}
