// SPDX-License-Identifier: Apache-2.0
#include "source/recording.h"

#include <errno.h>
#include <string.h>

struct recording {
	struct rec_reader *reader;
	bool events;
	struct mdl *model;
	int fold_error; /* first error of the model */
};

static int deliver(void *source, const void *recs, size_t bytes)
{
	struct src *s = source;
	const struct recording *r = s->ctx;

	src_deliver(s, (void *)recs, bytes); /* the reader owns this memory until the next batch */
	return r->fold_error;
}

static int recording_open(struct src *s, struct err *e)
{
	struct recording *r = s->ctx;

	return rec_reader_each(r->reader, r->events, r->model, deliver, s, e);
}

static void recording_loss(const struct src *s, struct mxbpf_loss *loss)
{
	const struct recording *r = s->ctx;

	*loss = rec_reader_session(r->reader)->loss;
}

static const struct src_ops ops = {.open = recording_open, .loss = recording_loss, .checked = true};

static void recording_fold(void *ctx, unsigned number, void *recs, size_t bytes)
{
	struct recording *r = ctx;
	int err;

	mdl_begin(r->model, number);
	err = mdl_fold_all(r->model, recs, bytes);
	r->fold_error = r->fold_error ? r->fold_error : err;
}

int src_read_recording(struct rec_reader *reader, bool events, struct mdl *m, struct err *e)
{
	struct recording r = {.reader = reader, .events = events, .model = m};
	struct src_hub *h = src_hub_new(recording_fold, &r);
	int err;

	if (!h || !src_add(h, &ops, "recording", &r))
		err = err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	else
		err = src_open(h, e);
	src_hub_free(h);
	return err;
}
