/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The iterations of a training loop, which its program marks for torch.profiler alone: from the end of one step of the
 * optimizer to the end of the next on a thread. Of several optimizers the one that a thread is first seen with counts.
 * Where spans enclose such an end and no other (an annotation around the iteration), the outermost's end is meant. What
 * lies before the first end and behind the last is in no step, and a step does not cross a span of several.
 */
#ifndef VIEW_KINETO_STEPS_H
#define VIEW_KINETO_STEPS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/hash.h"
#include "mxbpf_event.h"

struct view_steps {
	/* private */
	struct hash index;  /* (tgid, tid) -> index + 1 in threads */
	struct buf threads; /* struct step_thread */
};

struct view_step {
	uint32_t tgid, tid;
	uint32_t nr; /* from 0 on each thread */
	uint64_t start_ns, end_ns;
};

/* Every span, in order; optimizer: it is a step of one. 0, -ENOMEM. */
int view_steps_survey(struct view_steps *p, const struct mxbpf_span *s, bool optimizer);
/* Iterates: *pos begins as {0}. False at the end. */
struct view_steps_pos {
	size_t thread, mark;
};
bool view_steps_next(const struct view_steps *p, struct view_steps_pos *pos, struct view_step *step);
void view_steps_fini(struct view_steps *p);

#endif
