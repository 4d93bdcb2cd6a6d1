// SPDX-License-Identifier: Apache-2.0
/* --sched: threads off the CPU. What of it ends with the window. */
#include "feature/sched/sched.h"
#include <errno.h>

#include "session/priv.h"

static void keep(void *ctx, struct mxbpf_sched *r)
{
	buf_put(ctx, r, sizeof(*r)); /* for want of memory it is lost, and the account says so */
}

void ses_sched_end(struct session *ses)
{
	const struct mxbpf_rec *r;
	struct buf recs = {0};
	size_t pos = 0;

	if (!ses->o->sched) /* what ended in the window has its account */
		return;
	ses->sched_ended += att_sched_end(ses->att, keep, &recs);
	while ((r = kind_next(recs.data, recs.len, &pos)))
		ses_agent_fill(ses, (struct mxbpf_rec *)r);
	if (recs.len)
		ses_fold(ses, ATT_SWITCHES, recs.data, recs.len);
	buf_fini(&recs);
}
