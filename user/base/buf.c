// SPDX-License-Identifier: Apache-2.0
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static void *lack(struct buf *b)
{
	b->lacks = true;
	return NULL;
}

void *buf_add_any(struct buf *b, size_t n)
{
	size_t cap = b->cap ? b->cap : 64;
	char *p;

	if (n > (size_t)-1 / 2 - b->len)
		return lack(b);
	while (cap < b->len + n)
		cap *= 2;
	if (cap != b->cap) {
		p = mem_resize(b->data, cap);
		if (!p)
			return lack(b);
		b->data = p;
		b->cap = cap;
	}
	p = b->data + b->len;
	b->len += n;
	return p;
}

int buf_put(struct buf *b, const void *data, size_t n)
{
	void *p = buf_add(b, n);

	if (!p)
		return -ENOMEM;
	if (n)
		memcpy(p, data, n);
	return 0;
}

int buf_put_latest(struct buf *b, const void *item, size_t bytes, size_t max)
{
	const size_t n = b->len / bytes, left = n / 2;

	if (n >= max) {
		memmove(b->data, b->data + (n - left) * bytes, left * bytes);
		b->len = left * bytes;
	}
	return buf_put(b, item, bytes);
}

void buf_sort(struct buf *b, size_t bytes, int (*order)(const void *, const void *))
{
	if (b->len)
		qsort(b->data, b->len / bytes, bytes, order);
}

size_t buf_first(const struct buf *b, size_t bytes, const void *like, int (*order)(const void *, const void *))
{
	size_t low = 0, high = b->len / bytes, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (order(buf_place(b, mid * bytes), like) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	char *text;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0) {
		lack(b);
		return -ENOMEM;
	}
	n = buf_put(b, text, (size_t)n);
	free(text);
	return n;
}

void buf_fini(struct buf *b)
{
	mem_free(b->data);
	*b = (struct buf){0};
}
