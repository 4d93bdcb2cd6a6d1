/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the feature: the latest activities. feature/idle keeps the latest spans. */
#ifndef FEATURE_PATH_STATE_H
#define FEATURE_PATH_STATE_H

#include "feature/activity/activity.h"
#include "feature/idle/state.h"
#include "feature/path/path.h"
#include "mxbpf_step.h"

struct path_state {
	struct buf work;      /* struct win_work */
	struct buf waits;     /* struct win_work: streams were told to wait for an event, as SYNC activities */
	struct buf parts;     /* struct mxbpf_gpu_path: of recordings */
	struct buf sequences; /* struct path_sequence: of recordings */
	uint64_t lost_ns;     /* latest end of an activity that was forgotten */
};

/* The launch of an activity, or NULL. */
static inline const struct activity_call *path_launch_of(const struct mdl *m, const struct win_work *w)
{
	return activity_call_of(m, w->tgid, w->domain, w->edge_id, w->start_ns);
}

/* fold.c: returns the latest end of a span or activity that was forgotten. */
uint64_t path_lost_ns(const struct mdl *m, const struct path_state *t);
/* walk.c: appends the parts of the path of an iteration. Returns 0 or -ENOMEM. */
int path_walk(const struct mdl *m, const struct path_state *t, const struct mxbpf_iteration *it, struct buf *parts);
/* sequences.c: appends the sequences of what is kept. Returns 0 or -ENOMEM. */
int path_find_sequences(const struct mdl *m, const struct path_state *t, struct buf *out);

#endif
