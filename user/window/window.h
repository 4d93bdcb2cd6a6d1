/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events that wait until they can be taken in the order of time. Sources deliver them in any order, and an activity of
 * a device can be late by WIN_HOLD_NS. Each item of a store here begins with struct win_times, and all have one size.
 */
#ifndef WINDOW_WINDOW_H
#define WINDOW_WINDOW_H

#include "base/buf.h"
#include "mxbpf_track.h"

#define WIN_HOLD_NS 2000000000ull

struct win_times {
	uint64_t start_ns, end_ns;
};

/* An activity of a device. */
struct win_work {
	uint64_t start_ns, end_ns;
	uint64_t edge_id, name_id;
	struct mxbpf_track track;
	uint32_t tgid;
	uint16_t domain;
	uint8_t cls; /* enum mxbpf_activity_class */
};
struct win_work win_work_of(const struct mxbpf_activity *a);

/* Returns a stream and its context as one number. */
static inline uint64_t win_stream(const struct mxbpf_track *t)
{
	return (uint64_t)t->context << 32 | t->stream;
}

struct win_queue {
	struct buf all;	    /* items that were not taken yet */
	size_t kept;	    /* number of items that the last sweep left, set by the caller */
	uint64_t newest_ns; /* latest start of an item */
	uint64_t taken_ns;  /* latest start of an item that was taken */
};

/* Appends an item. Returns 0 or -ENOMEM. */
int win_put(struct win_queue *q, const void *item, size_t bytes);
/* Returns whether a sweep is worth while: there are `least` items, and twice as many as were kept, or `most`. */
bool win_is_due(size_t n, size_t kept, size_t least, size_t most);
/* Returns the time before which no item can be missing any more. */
uint64_t win_horizon(const struct win_queue *q);
/* The same, or a later time, so that half of the items start before it, if there are `most` of them. */
uint64_t win_until(struct win_queue *q, size_t bytes, size_t most);
/* Sorts the items by an order that begins with their starts. Returns the number of those that start before until_ns. */
size_t win_ready(struct win_queue *q, size_t bytes, int (*order)(const void *, const void *), uint64_t until_ns);
/* Removes the first n items after win_ready(). */
void win_take(struct win_queue *q, size_t bytes, size_t n);
/* Returns whether an item with this start came after others that start later were taken. */
bool win_is_late(const struct win_queue *q, uint64_t start_ns);
int win_copy(struct win_queue *to, const struct win_queue *from);

/* By start and end. */
int win_by_times(const void *va, const void *vb);

/* Calls buf_put_latest(). *lost_ns receives the latest end of the items that were forgotten, if it is later. */
int win_put_latest(struct buf *b, const void *item, size_t bytes, size_t max, uint64_t *lost_ns);

#endif
