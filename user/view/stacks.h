/* SPDX-License-Identifier: Apache-2.0 */
/* Samples for outputs that show whole stacks. Equal samples are counted, and frames stand from the outermost to the
 * innermost. */
#ifndef VIEW_STACKS_H
#define VIEW_STACKS_H

#include "base/buf.h"
#include "base/hash.h"
#include "mxbpf_sample.h"
#include "view/view.h"

/* Samples with the same stack, spans and, if asked, thread. */
struct view_stack {
	uint64_t count;
	uint64_t stack_id, code_id;
	uint32_t tgid, tid; /* 0 if threads are merged */
	uint32_t nspans;
	bool between; /* slices */
	struct mxbpf_sample_span spans[];
};

struct view_stacks {
	bool by_thread;
	struct hash index; /* hash of all fields -> struct view_stack *, owned */
	struct buf list;   /* struct view_stack *, in the order in which they were first seen */
};

/* Counts the record if it is a sample. Returns 0 or -ENOMEM. */
int view_stacks_add(struct view_stacks *t, const struct mxbpf_rec *r);
void view_stacks_fini(struct view_stacks *t);

/* A frame; texts are borrowed from the model, and hostile. */
struct view_stack_frame {
	enum { VIEW_FRAME_SPAN, VIEW_FRAME_PYTHON, VIEW_FRAME_CODE } kind;
	const char *name, *file; /* file: the source of Python code, the library of machine code; NULL: unknown */
	size_t name_len, file_len;
	uint32_t line; /* of Python code; 0: unknown */
};

/*
 * Calls fn for each frame, the outermost first. A sample without spans begins with VIEW_NO_OPERATOR, or with
 * VIEW_BETWEEN_SLICES. fn returns 0, or an error, which ends the walk and is returned.
 */
int view_stack_frames(const struct mdl *m, const struct view_stack *s,
		      int (*fn)(void *ctx, const struct view_stack_frame *f), void *ctx);
/* Calls fn for each frame as view_stack_frames() does, of a Python stack alone. */
int view_stack_python(const struct mdl *m, uint64_t stack_id, int (*fn)(void *ctx, const struct view_stack_frame *f),
		      void *ctx);

#endif
