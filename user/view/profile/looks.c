// SPDX-License-Identifier: Apache-2.0
/* Looks at Python threads as a profile of pprof, for `mxbpf serve --push-profile`. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "feature/lines/lines.h"
#include "view/profile/profile.h"

static int looks_put_row(struct profile *p, const struct mdl *m, const struct mxbpf_agg_line *row)
{
	const uint64_t values[] = {row->count, row->count * LINES_LOOK_NS};
	struct view_stack_frame call = {.kind = VIEW_FRAME_SPAN};
	int err = view_stack_python(m, row->stack_id, profile_frame, p);

	if (!err && !p->depth) /* the stack is not known yet */
		return 0;
	if (row->cls)
		call.name = mdl_name(m, row->name_id, &call.name_len);
	if (!err && call.name)
		err = profile_frame(p, &call);
	if (err || profile_stack(p, values, 2) || profile_label(p, "state", row->sleeps ? "sleeps" : "runs", 0))
		return -ENOMEM;
	return profile_end_sample(p);
}

int profile_looks(struct profile *p, const struct view_input *in, bool (*of)(void *ctx, uint32_t tgid), void *ctx,
		  uint64_t *looks)
{
	const struct mdl_session *s = in->session;
	const struct profile_head head = {.count = {"samples", "count"},
					  .time = {"wall", "nanoseconds"},
					  .program = "mxbpf",
					  .start_unix_ns = s->start_unix_ns,
					  .duration_ns = s->duration_ns,
					  .period_ns = LINES_LOOK_NS};
	size_t n, i;
	const struct mxbpf_agg_line *rows = lines_rows(in->model, &n);
	int err = profile_head(p, &head);

	*looks = 0;
	for (i = 0; i < n && !err; i++) {
		if (rows[i].rank || !rows[i].stack_id || !of(ctx, rows[i].h.tgid))
			continue;
		err = looks_put_row(p, in->model, &rows[i]);
		*looks += rows[i].count;
	}
	return err;
}
