// SPDX-License-Identifier: Apache-2.0
#include "import/sort.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"

#define RUN_BYTES    (24u << 20)  /* of records in memory */
#define MERGE_BYTES  (16u << 20)  /* of all runs together, while they are merged */
#define WINDOW_BYTES (256u << 10) /* of a run that is read at once, at most */
#define RECORD_BYTES 65536

/* Stands before each record, in memory and in the file. */
struct head {
	uint64_t ns, order;
};

/* A place in the records that are in memory. */
struct item {
	struct head h;
	size_t off;
};

/* A sorted piece of the file, and the part of it that was read. */
struct run {
	uint64_t off, end; /* of what is not read yet */
	char *data;
	size_t len, at, size;
};

struct sort {
	int fd;
	uint64_t fd_bytes;
	struct buf recs, items; /* heads with records, struct item */
	struct buf runs;	/* struct run */
	struct run **heap;	/* by their first records */
	size_t nheap;
};

struct sort *sort_new(int fd)
{
	struct sort *s = calloc(1, sizeof(*s));

	if (s)
		s->fd = fd;
	return s;
}

static int head_order(const struct head *x, const struct head *y)
{
	BUF_ORDER(x->ns, y->ns);
	BUF_ORDER(x->order, y->order);
	return 0;
}

static int item_order(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	const int order = head_order(&x->h, &y->h);

	return order ? order : x->off < y->off ? -1 : x->off > y->off;
}

/* ---- runs in the file */

static int write_all(int fd, const char *data, size_t n, uint64_t off)
{
	ssize_t done;

	for (; n; data += done, n -= (size_t)done, off += (uint64_t)done) {
		done = pwrite(fd, data, n, (off_t)off);
		if (done < 0 && errno == EINTR)
			done = 0;
		else if (done <= 0)
			return done ? -errno : -ENOSPC;
	}
	return 0;
}

static const struct mxbpf_rec *rec_behind(const char *head)
{
	return (const void *)(head + sizeof(struct head));
}

/* Writes what is in memory as a run, through a window of bytes. */
static int write_run(struct sort *s)
{
	const size_t n = buf_count(&s->items, struct item);
	const struct run run = {.off = s->fd_bytes, .end = s->fd_bytes + s->recs.len};
	struct buf window = {0};
	const char *from;
	size_t i, len;
	int err = 0;

	buf_sort(&s->items, sizeof(struct item), item_order);
	for (i = 0; !err && i < n; i++) {
		from = s->recs.data + buf_at(&s->items, struct item, i)->off;
		len = sizeof(struct head) + rec_behind(from)->size;
		err = buf_put(&window, from, len);
		if (!err && (window.len >= WINDOW_BYTES || i + 1 == n)) {
			err = write_all(s->fd, window.data, window.len, s->fd_bytes);
			s->fd_bytes += window.len;
			window.len = 0;
		}
	}
	buf_fini(&window);
	s->recs.len = s->items.len = 0;
	return err ? err : buf_put(&s->runs, &run, sizeof(run));
}

int sort_put(struct sort *s, uint64_t order, const struct mxbpf_rec *r)
{
	const struct item i = {{r->ts_ns, order}, s->recs.len};

	if (buf_put(&s->recs, &i.h, sizeof(i.h)) || buf_put(&s->recs, r, r->size) || buf_put(&s->items, &i, sizeof(i)))
		return -ENOMEM;
	return s->recs.len + s->items.len >= RUN_BYTES ? write_run(s) : 0;
}

/* ---- merging */

static struct head head_of(const struct run *r)
{
	struct head h;

	memcpy(&h, r->data + r->at, sizeof(h));
	return h;
}

/* Brings the next record of a run into memory as a whole. Returns 1, 0 at the end of the run, or -errno. */
static int fill(const struct sort *s, struct run *r)
{
	const size_t left = r->len - r->at;
	ssize_t done;
	size_t want;

	if (left >= sizeof(struct head) + sizeof(struct mxbpf_rec) &&
	    left >= sizeof(struct head) + rec_behind(r->data + r->at)->size)
		return 1;
	memmove(r->data, r->data + r->at, left);
	r->at = 0;
	r->len = left;
	want = r->size - left;
	want = want < r->end - r->off ? want : (size_t)(r->end - r->off);
	while (want) {
		done = pread(s->fd, r->data + r->len, want, (off_t)r->off);
		if (done <= 0 && errno != EINTR)
			return done ? -errno : -EIO;
		done = done < 0 ? 0 : done;
		r->len += (size_t)done;
		r->off += (uint64_t)done;
		want -= (size_t)done;
	}
	return r->len > 0;
}

/* If the records of two runs are equal, the run that was written first comes first. */
static bool is_before(const struct run *a, const struct run *b)
{
	const struct head x = head_of(a), y = head_of(b);
	const int order = head_order(&x, &y);

	return order ? order < 0 : a < b;
}

static void sift(struct sort *s, size_t i)
{
	struct run *r = s->heap[i];
	size_t child;

	for (; (child = 2 * i + 1) < s->nheap; i = child) {
		child += child + 1 < s->nheap && is_before(s->heap[child + 1], s->heap[child]);
		if (is_before(r, s->heap[child]))
			break;
		s->heap[i] = s->heap[child];
	}
	s->heap[i] = r;
}

static int open_runs(struct sort *s)
{
	const size_t n = buf_count(&s->runs, struct run), share = MERGE_BYTES / n;
	struct run *r;
	size_t i;

	s->heap = calloc(n, sizeof(struct run *));
	if (!s->heap)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		r = buf_at(&s->runs, struct run, i);
		r->size = share > WINDOW_BYTES ? WINDOW_BYTES : share > 2 * RECORD_BYTES ? share : 2 * RECORD_BYTES;
		r->data = malloc(r->size);
		if (!r->data)
			return -ENOMEM;
		if (fill(s, r) == 1)
			s->heap[s->nheap++] = r;
	}
	for (i = s->nheap; i-- > 0;)
		sift(s, i);
	return 0;
}

static int merge(struct sort *s, int (*fn)(void *ctx, struct mxbpf_rec *r), void *ctx)
{
	struct run *r;
	struct mxbpf_rec *rec;
	int err = open_runs(s), more;
	size_t size;

	while (!err && s->nheap) {
		r = s->heap[0];
		rec = (struct mxbpf_rec *)rec_behind(r->data + r->at);
		size = sizeof(struct head) + rec->size;
		err = fn(ctx, rec);
		r->at += size;
		more = fill(s, r);
		if (more < 0)
			return more;
		if (!more)
			s->heap[0] = s->heap[--s->nheap];
		if (s->nheap)
			sift(s, 0);
	}
	return err;
}

int sort_each(struct sort *s, int (*fn)(void *ctx, struct mxbpf_rec *r), void *ctx)
{
	const size_t n = buf_count(&s->items, struct item);
	size_t i;
	int err = 0;

	if (s->runs.len) {
		err = s->items.len ? write_run(s) : 0;
		buf_fini(&s->recs);
		buf_fini(&s->items);
		return err ? err : merge(s, fn, ctx);
	}
	buf_sort(&s->items, sizeof(struct item), item_order);
	for (i = 0; !err && i < n; i++)
		err = fn(ctx, (void *)rec_behind(s->recs.data + buf_at(&s->items, struct item, i)->off));
	return err;
}

void sort_free(struct sort *s)
{
	size_t i;

	if (!s)
		return;
	for (i = 0; i < buf_count(&s->runs, struct run); i++)
		free(buf_at(&s->runs, struct run, i)->data);
	free(s->heap);
	buf_fini(&s->recs);
	buf_fini(&s->items);
	buf_fini(&s->runs);
	free(s);
}
