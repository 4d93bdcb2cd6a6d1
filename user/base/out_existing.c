// SPDX-License-Identifier: Apache-2.0
/* Reads the content of a file that an output would replace. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/out.h"
#include "base/out_path.h"

/* No table of mxbpf is larger. The end of a larger file is not read. */
#define READ_BYTES_MAX (256u << 20)

/* Opens a plain file that is not empty, without following a symlink. Returns its fd or -1. */
static int open_plain(const char *path)
{
	struct out_place p;
	struct stat st;
	int fd = -1;

	if (out_place_find(path, &p, NULL))
		return -1;
	if (p.what == OUT_FILE)
		fd = openat(p.dirfd, p.base, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	out_place_fini(&p);
	if (fd < 0 || (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size))
		return fd;
	close(fd);
	return -1;
}

static size_t read_part(gzFile z, char *part)
{
	int n = gzread(z, part, OUT_PART_BYTES);

	return n > 0 ? (size_t)n : 0;
}

bool out_read_existing(const char *path, struct out_parts *p)
{
	int fd = open_plain(path);
	uint64_t all = 0;
	gzFile z;
	size_t n;

	p->head_len = p->tail_len = 0;
	if (fd < 0)
		return false;
	z = gzdopen(fd, "r"); /* gzopen also reads uncompressed files */
	if (!z) {
		close(fd);
		return true;
	}
	n = p->head_len = p->tail_len = read_part(z, p->head);
	memcpy(p->tail, p->head, n);
	while (n == OUT_PART_BYTES && all < READ_BYTES_MAX) {
		memmove(p->tail, p->tail + p->tail_len - OUT_PART_BYTES, OUT_PART_BYTES);
		n = read_part(z, p->tail + OUT_PART_BYTES);
		p->tail_len = OUT_PART_BYTES + n;
		all += n;
	}
	gzclose(z);
	return true;
}
