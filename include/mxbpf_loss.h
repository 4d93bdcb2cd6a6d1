/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause */
/* How many records a source lost, which each chunk of a recording has (mxbpf_file.h), and when it lost them. */
#ifndef MXBPF_LOSS_H
#define MXBPF_LOSS_H

#include "mxbpf_event.h"

/*
 * Losses, counted where they happen, cumulative over a session. attempted == stored + dropped when nothing is in
 * transit.
 */
struct mxbpf_loss {
	__u64 attempted;  /* records that BPF tried to send */
	__u64 stored;	  /* records that reached the model */
	__u64 dropped;	  /* records lost: ring full, too many threads, nesting too deep */
	__u64 truncated;  /* names longer than MXBPF_NAME_BYTES_MAX */
	__u64 unreadable; /* fetches of target memory that failed (page not resident) */
	__u64 unmatched;  /* starts without an end, ends without a start (calls in flight at attach or detach) */
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_loss) == 48);

static inline void mxbpf_loss_add(struct mxbpf_loss *to, const struct mxbpf_loss *l)
{
	to->attempted += l->attempted;
	to->stored += l->stored;
	to->dropped += l->dropped;
	to->truncated += l->truncated;
	to->unreadable += l->unreadable;
	to->unmatched += l->unmatched;
}

static inline void mxbpf_loss_subtract(struct mxbpf_loss *from, const struct mxbpf_loss *l)
{
	from->attempted -= l->attempted;
	from->stored -= l->stored;
	from->dropped -= l->dropped;
	from->truncated -= l->truncated;
	from->unreadable -= l->unreadable;
	from->unmatched -= l->unmatched;
}

/*
 * User: in this time, from h.ts_ns on, records that ended then were lost, of any process. What ended outside of it is
 * complete, as far as this source is concerned.
 */
#define MXBPF_LOST ((enum mxbpf_kind)75)
enum mxbpf_lost_flag {
	MXBPF_LOST_ENDS = 1 << 0, /* also those that say where iterations end; otherwise they are all there */
};
struct mxbpf_lost {
	struct mxbpf_rec h;
	__u64 to_ns;
	__u64 lost;  /* records; a source may not know it */
	__u32 flags; /* enum mxbpf_lost_flag */
	__u32 pad;
};
MXBPF_STATIC_ASSERT(sizeof(struct mxbpf_lost) == 40);

#endif
