// SPDX-License-Identifier: Apache-2.0
#include "base/gzip.h"

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>
#include <zlib.h>

#define WINDOW (15 + 16) /* the largest one, with a header of gzip */
#define MEMORY 8

int gzip_buf(struct buf *b)
{
	z_stream z = {.next_in = (unsigned char *)b->data, .avail_in = (unsigned)b->len};
	struct buf out = {0};
	bool done = false;

	if (b->len > UINT32_MAX ||
	    deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, WINDOW, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	z.next_out = buf_add(&out, deflateBound(&z, b->len));
	if (z.next_out) {
		z.avail_out = (unsigned)out.len;
		done = deflate(&z, Z_FINISH) == Z_STREAM_END;
		out.len = z.total_out;
	}
	deflateEnd(&z);
	if (!done) {
		buf_fini(&out);
		return -ENOMEM;
	}
	buf_fini(b);
	*b = out;
	return 0;
}

gzFile gzip_reader(int fd)
{
	const int own = lseek(fd, 0, SEEK_SET) ? -1 : dup(fd);
	gzFile z = own < 0 ? NULL : gzdopen(own, "rb");

	if (!z && own >= 0)
		close(own);
	return z;
}
