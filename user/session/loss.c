// SPDX-License-Identifier: Apache-2.0
/* Every output shows its loss: what each source lost, and what the session itself lost. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "feature/sched/sched.h"
#include "session/priv.h"

static void loss_add_up(struct mdl_session *s)
{
	size_t i;

	s->loss = (struct mxbpf_loss){0};
	for (i = 0; i < s->nsources; i++)
		mxbpf_loss_add(&s->loss, &s->sources[i].loss);
}

/* Reads the loss that the sources count. */
static int read_sources(const struct session *ses, struct mdl_session *s)
{
	unsigned i, n = src_count(ses->hub);

	s->nsources = 0;
	s->sources = calloc(n, sizeof(*s->sources));
	if (!s->sources)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		src_loss(src_at(ses->hub, i), &s->sources[i].loss);
		s->sources[i].late = src_late(src_at(ses->hub, i));
		s->sources[i].name = strdup(src_at(ses->hub, i)->name);
		s->nsources++;
		if (!s->sources[i].name)
			return -ENOMEM;
	}
	return 0;
}

static struct mxbpf_loss *loss_of(const struct ses_build *b, struct mdl_session *s, enum att_ring ring)
{
	return &s->sources[b->rings[ring]->number].loss;
}

/* Adds frames of stacks that were not readable. If both calls and samples have stacks, most are of calls. */
static void add_unread(const struct session *ses, struct mdl_session *s)
{
	bool of_calls = ses->details & MXBPF_DETAIL_STACK || !ses->first->rings[ATT_SAMPLES];

	const struct ses_build *b;

	SES_EACH_BUILD(ses, b)
	loss_of(b, s, of_calls ? ATT_CALLS : ATT_SAMPLES)->unreadable += sym_lost(b->symbols);
	loss_of(ses->first, s, of_calls ? ATT_CALLS : ATT_SAMPLES)->unreadable += mdl_texts_left_out(ses->model);
}

/* The sources have delivered these records, and there was no memory for them. */
static void drop_unkept(const struct session *ses, struct mdl_session *s)
{
	struct mxbpf_loss *l;
	size_t i;

	for (i = 0; i < s->nsources; i++) {
		l = &s->sources[i].loss;
		l->stored -= ses->kept.dropped[i] < l->stored ? ses->kept.dropped[i] : l->stored;
		l->dropped += ses->kept.dropped[i];
	}
}

/*
 * Records between a source and the model are in no table yet, so the next interval counts them. Open calls are not
 * lost, because they can still end.
 */
int ses_loss_now(const struct session *ses, struct mdl_session *s)
{
	struct mxbpf_loss *l;
	size_t i;
	int err = read_sources(ses, s);

	if (err)
		return err;
	for (i = 0; i < s->nsources; i++)
		s->sources[i].loss.stored = ses->kept.folded[i];
	drop_unkept(ses, s);
	for (i = 0; i < s->nsources; i++) {
		l = &s->sources[i].loss;
		l->attempted = l->stored + l->dropped;
	}
	add_unread(ses, s);
	loss_add_up(s);
	return 0;
}

static void loss_check(const struct session *ses, const struct mdl_source *of, uint64_t malformed)
{
	const struct mxbpf_loss *l = &of->loss;

	if (l->stored + l->dropped != l->attempted)
		ses_warn(ses,
			 "the counts of %s do not agree: %llu attempted, %llu stored, %llu dropped, %llu malformed",
			 of->name, (unsigned long long)l->attempted, (unsigned long long)l->stored,
			 (unsigned long long)l->dropped, (unsigned long long)malformed);
}

int ses_loss_end(struct session *ses)
{
	struct mdl_session *s = &ses->about;
	int err = read_sources(ses, s);

	if (err)
		return err;
	drop_unkept(ses, s);
	add_unread(ses, s);
	return 0;
}

void ses_loss_close(struct session *ses, unsigned left)
{
	struct mdl_session *s = &ses->about;
	struct mxbpf_loss *l;
	size_t i;

	if (s->nsources < src_count(ses->hub)) { /* out of memory: the sum is what the sources count now */
		src_loss_all(ses->hub, &s->loss);
		return;
	}
	l = loss_of(ses->first, s, ATT_CALLS);
	l->attempted += left;
	l->stored += left;
	l->unmatched += s->open_spans;
	if (ses->first->rings[ATT_SWITCHES]) {
		l = loss_of(ses->first, s, ATT_SWITCHES);
		l->attempted += sched_ended(ses);
		l->stored += sched_ended(ses);
	}
	for (i = 0; i < s->nsources; i++) {
		loss_check(ses, &s->sources[i], src_at(ses->hub, i)->malformed);
		l = &s->sources[i].loss;
		if (l->stored + l->dropped <
		    l->attempted) /* records that the session dropped when it was out of memory */
			l->dropped = l->attempted - l->stored;
	}
	loss_add_up(s);
}

void ses_loss_subtract(struct mdl_session *s, const struct ses_totals *from)
{
	size_t i;

	for (i = 0; i < s->nsources; i++) {
		mxbpf_loss_subtract(&s->sources[i].loss, &from->losses[i]);
		s->sources[i].late -= from->late[i];
	}
	loss_add_up(s);
}
