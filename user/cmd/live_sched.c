// SPDX-License-Identifier: Apache-2.0
/* --sched: threads off the CPU. What of it ends with the window. */
#include <errno.h>

#include "cmd/live.h"

static void keep(void *ctx, struct mxbpf_sched *r)
{
	buf_put(ctx, r, sizeof(*r)); /* for want of memory it is lost, and the account says so */
}

void live_sched_end(struct live *l)
{
	struct buf recs = {0};

	l->sched_ended += att_sched_end(l->att, keep, &recs);
	if (recs.len)
		live_fold(l, recs.data, recs.len);
	buf_fini(&recs);
}
