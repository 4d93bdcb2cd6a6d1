/* SPDX-License-Identifier: Apache-2.0 */
/* Makes records of a GPU's work and of the calls that launch it, in one process. */
#ifndef GPU_RECORDS_H
#define GPU_RECORDS_H

#include "mxbpf_track.h"
#include "records.h"

#define PID    77u
#define HELPER 78u /* another thread of the process */
#define BASE   5000000000ull

/* Ids of names. Those of a test begin at GPU_NAMES. */
enum { GEMM = 11, LAUNCH, GPU_NAMES };

static inline void put_gpu_names(struct buf *b)
{
	put_name(b, GEMM, MXBPF_NAME_SPAN, "gemm");
	put_name(b, LAUNCH, MXBPF_NAME_SPAN, "cudaLaunchKernel");
}

static inline void *rec(struct buf *b, unsigned kind, size_t bytes, uint64_t at_ns)
{
	return put_rec(b, kind, bytes, PID, BASE + at_ns);
}

/* An activity of the launch with its start as id. */
static inline struct mxbpf_activity *work(struct buf *b, uint64_t launched_ns, uint64_t start_ns, uint64_t end_ns)
{
	struct mxbpf_activity *a = rec(b, MXBPF_ACTIVITY, sizeof(*a), start_ns);

	a->dur_ns = end_ns - start_ns;
	a->name_id = GEMM;
	a->edge_id = launched_ns + 1;
	a->domain = MXBPF_DOMAIN_CUPTI;
	a->cls = MXBPF_ACTIVITY_KERNEL;
	a->track = (struct mxbpf_track){.context = 1, .stream = 7};
	return a;
}

static inline struct mxbpf_launch *launch(struct buf *b, uint64_t at_ns)
{
	struct mxbpf_launch *l = rec(b, MXBPF_LAUNCH, sizeof(*l), at_ns);

	l->edge_id = at_ns + 1;
	l->tid = PID;
	l->domain = MXBPF_DOMAIN_CUPTI;
	l->dur_ns = 10;
	l->call_id = LAUNCH;
	return l;
}

static inline struct mxbpf_span *call(struct buf *b, unsigned cls, uint64_t name_id, uint64_t start_ns, uint64_t end_ns)
{
	struct mxbpf_span *s = rec(b, MXBPF_SPAN, sizeof(*s), start_ns);

	s->dur_ns = s->self_ns = end_ns - start_ns;
	s->name_id = name_id;
	s->tid = s->end_tid = PID;
	s->cls = (uint8_t)cls;
	return s;
}

/* Feeds the records one by one from the last to the first, as a source could that is late. */
static inline int feed_backwards(struct mdl *m, const struct buf *b)
{
	const struct mxbpf_rec *all[256], *r;
	size_t pos = 0, n = 0;
	int err = 0;

	while ((r = kind_next(b->data, b->len, &pos)) && n < 256)
		all[n++] = r;
	while (n--)
		err |= mdl_feed(m, all[n], all[n]->size);
	return err;
}

#endif
