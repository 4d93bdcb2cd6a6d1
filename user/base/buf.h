/* SPDX-License-Identifier: Apache-2.0 */
/* A byte buffer that grows. Zero-initialise; buf_fini() when done. Doubles as a vector of fixed-size items. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stddef.h>

struct buf {
	char *data; /* owned; NULL while empty */
	size_t len, cap;
};

/* Room for n more bytes at the end, uninitialised. Returns its address, counted into len, or NULL (-ENOMEM). */
void *buf_add(struct buf *b, size_t n);
/* 0 or -ENOMEM. */
int buf_put(struct buf *b, const void *data, size_t n);
int buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_fini(struct buf *b);

#define buf_count(b, type) ((b)->len / sizeof(type))
#define buf_at(b, type, i) (&((type *)(b)->data)[i])

#endif
