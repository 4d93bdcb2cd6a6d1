/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing byte buffer, also used as a vector of items of one size. Zero-initialise it, and call buf_fini() at the
 * end.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	char *data; /* owned; NULL while empty */
	size_t len, cap;
	bool lacks; /* something could not be appended, because there was no memory */
};

/* Does the same as buf_add(), which calls it if the buffer is full. */
void *buf_add_any(struct buf *b, size_t n);
/* Appends n bytes. Returns 0 or -ENOMEM. */
int buf_put(struct buf *b, const void *data, size_t n);
/* Appends an item. If there are `max` already, the half that came first is forgotten. Returns 0 or -ENOMEM. */
int buf_put_latest(struct buf *b, const void *item, size_t bytes, size_t max);
/* Sorts items of one size. */
void buf_sort(struct buf *b, size_t bytes, int (*order)(const void *, const void *));
/* Returns the index of the first item that is not before `like`, or the number of items. They have that order. */
size_t buf_first(const struct buf *b, size_t bytes, const void *like, int (*order)(const void *, const void *));
int buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_fini(struct buf *b);

/* Appends n uninitialised bytes and adds them to len. Returns their address, or NULL without memory. */
static inline void *buf_add(struct buf *b, size_t n)
{
	if (n >= b->cap - b->len)
		return buf_add_any(b, n);
	b->len += n;
	return b->data + b->len - n;
}

/* For such an order: returns from the function if the two differ. */
#define BUF_ORDER(a, b)                                                                                                \
	do {                                                                                                           \
		if ((a) != (b))                                                                                        \
			return (a) < (b) ? -1 : 1;                                                                     \
	} while (0)

#define buf_count(b, type) ((b)->len / sizeof(type))
#define buf_at(b, type, i) ((type *)buf_place((b), (i) * sizeof(type)))

/* The address of a byte. In integers, because an empty buffer has none, and nothing may be added to NULL. */
static inline void *buf_place(const struct buf *b, size_t off)
{
	return (void *)((uintptr_t)b->data + off);
}

#endif
