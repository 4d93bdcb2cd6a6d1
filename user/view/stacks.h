/* SPDX-License-Identifier: Apache-2.0 */
/* Samples for outputs that show whole stacks: equal ones counted, their frames from the outermost to the innermost. */
#ifndef VIEW_STACKS_H
#define VIEW_STACKS_H

#include "base/buf.h"
#include "base/hash.h"
#include "mxbpf_sample.h"
#include "view/view.h"

/* Samples that differ in nothing that is looked at. Behind it stand its spans. */
struct view_stack {
	uint64_t count;
	uint64_t stack_id, code_id;
	uint32_t tgid, tid; /* 0 if threads are not told apart */
	uint32_t nspans;
	struct mxbpf_sample_span spans[];
};

struct view_stacks {
	bool by_thread;
	struct hash index; /* of what they are -> struct view_stack *, owned */
	struct buf list;   /* struct view_stack *, in the order in which they were first seen */
};

/* Counts a record, unless it is none. 0, -ENOMEM. */
int view_stacks_add(struct view_stacks *t, const struct mxbpf_rec *r);
void view_stacks_fini(struct view_stacks *t);

/* A frame; texts are borrowed from the model, and hostile. */
struct view_stack_frame {
	enum { VIEW_FRAME_SPAN, VIEW_FRAME_PYTHON, VIEW_FRAME_CODE } kind;
	const char *name, *file; /* file: of Python its source, of machine code its library; NULL: none */
	size_t name_len, file_len;
	uint32_t line; /* of Python; 0: not known */
};

/* From the outermost on; a sample outside of all spans begins with "[no operator]". fn returns 0, or an error that
 * ends the walk and is returned. */
int view_stack_frames(const struct mdl *m, const struct view_stack *s,
		      int (*fn)(void *ctx, const struct view_stack_frame *f), void *ctx);

#endif
