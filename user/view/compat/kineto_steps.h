/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Iterations of a training loop whose program marks none. An iteration lasts from the end of one step of the optimizer
 * to the end of the next one on the same thread. If a thread has several optimizers, the first one counts. If spans
 * enclose only one such end, as an annotation of the iteration does, the iteration ends with the outermost of them. The
 * time before the first end and after the last one is in no iteration, and an iteration does not cross the start or the
 * end of a span that encloses several ends.
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
	uint32_t nr; /* counts the steps of the thread, from 0 on */
	uint64_t start_ns, end_ns;
};

/*
 * Call it for every span, in order, and then for those that have not ended. optimizer: the span is a step of an
 * optimizer. Returns 0 or -ENOMEM.
 */
int view_steps_survey(struct view_steps *p, const struct mxbpf_span *s, bool optimizer);
/* Iterates over the steps. *pos is {0} at first. Returns false at the end. */
struct view_steps_pos {
	size_t thread, mark;
};
bool view_steps_next(const struct view_steps *p, struct view_steps_pos *pos, struct view_step *step);
void view_steps_fini(struct view_steps *p);

#endif
