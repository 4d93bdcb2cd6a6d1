// SPDX-License-Identifier: Apache-2.0
/* --sched in a live session. */
#include "feature/sched/sched.h"
#include "session/feature.h"
#include "session/priv.h"

uint64_t sched_ended(const struct session *ses)
{
	return *(const uint64_t *)ses_state(ses, &sched_session);
}

static bool sched_asked(const struct ses_opts *o)
{
	return o->sched;
}

static int sched_describe(struct session *ses, const struct ses_target *of, struct mdl_session *s)
{
	s->sched = true;
	return 0;
}

static void sched_keep(void *ctx, struct mxbpf_sched *r)
{
	buf_put(ctx, r, sizeof(*r)); /* without memory the record is lost, and the loss of its source says so */
}

/* A thread that is off the CPU at this moment has no record yet. */
static void rest_of(struct ses_build *b)
{
	uint64_t *ended = ses_state(b->ses, &sched_session);
	const struct mxbpf_rec *r;
	struct buf recs = {0};
	size_t pos = 0;

	*ended += att_sched_end(b->att, sched_keep, &recs);
	while ((r = kind_next(recs.data, recs.len, &pos)))
		ses_agent_fill(b->ses, (struct mxbpf_rec *)r);
	if (recs.len)
		ses_fold(b, ATT_SWITCHES, recs.data, recs.len);
	buf_fini(&recs);
}

static void rest(struct session *ses)
{
	struct ses_build *b;

	SES_EACH_BUILD(ses, b)
	rest_of(b);
}

const struct ses_feature sched_session = {
	.state_bytes = sizeof(uint64_t), /* sched_ended() */
	.asked = sched_asked,
	.of_calls = true,
	.describe = sched_describe,
	.rest = rest,
};
