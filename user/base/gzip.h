/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_GZIP_H
#define BASE_GZIP_H

#include "base/buf.h"

/*
 * Replaces bytes, less than 4 GiB, by what gzip makes of them at the lowest level, which is the fastest. Returns 0, or
 * -ENOMEM, and then they stay as they are.
 */
int gzip_buf(struct buf *b);

#endif
