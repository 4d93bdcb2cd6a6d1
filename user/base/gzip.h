/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_GZIP_H
#define BASE_GZIP_H

#include <zlib.h>

#include "base/buf.h"

/*
 * Opens a file to be read from its start with gzread(), compressed or not. gzclose_r() leaves fd open. Both have one
 * place in the file. NULL: it cannot be read twice, or there is no memory.
 */
gzFile gzip_reader(int fd);

/*
 * Replaces bytes, less than 4 GiB, by what gzip makes of them at the lowest level, which is the fastest. Returns 0, or
 * -ENOMEM, and then they stay as they are.
 */
int gzip_buf(struct buf *b);

#endif
