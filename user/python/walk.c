// SPDX-License-Identifier: Apache-2.0
/* Walks the frames of a thread that does not run, as BPF walks those of a running thread (bpf/read/stack.bpf.h). */
#include "python/priv.h"

#include <errno.h>
#include <string.h>

/* Returns the innermost frame, or 0 if the thread runs no Python. */
uint64_t py_top_frame(const struct py *p, uint64_t of_state)
{
	const struct mxbpf_python *w = &p->l.walk;
	uint64_t frame = of_state;

	return w->cframe_frame == MXBPF_PY_NONE || py_word(p, of_state + w->cframe_frame, &frame) ? frame : 0;
}

/* Finds the first instruction of the code that a frame executes, as BPF does. Returns false if it is not mapped. */
static bool first_instr(const struct py *p, const void *frame, uint64_t code, uint64_t *first)
{
	const struct mxbpf_python *w = &p->l.walk;
	uint32_t copy = 0;

	if (w->frame_copy != MXBPF_PY_NONE)
		memcpy(&copy, (const char *)frame + w->frame_copy, sizeof(copy));
	*first = code + w->code_instrs;
	return !copy ||
	       (py_word(p, code + w->code_copies, first) && py_word(p, *first + 8 + 8ull * copy, first) && *first);
}

/* Reads one frame, unless it belongs to the interpreter itself. *frame becomes the next frame. */
static bool take_frame(const struct py *p, uint64_t *frame, struct mxbpf_stack *s)
{
	const struct mxbpf_python *w = &p->l.walk;
	uint64_t bytes[MXBPF_PY_FRAME_BYTES / 8 + 1], instr, print, first;
	struct mxbpf_stack_frame *f = &s->frames[s->n];

	if (tgt_read(p->t, *frame + w->frame_start, bytes, w->frame_bytes))
		return false;
	*frame = MXBPF_PY_WORD(bytes, w->frame_back);
	if (w->frame_owner != MXBPF_PY_NONE && *((uint8_t *)bytes + w->frame_owner) >= MXBPF_PY_OWNER_C)
		return true;
	*f = (struct mxbpf_stack_frame){.code = MXBPF_PY_WORD(bytes, w->frame_code) & MXBPF_PY_POINTER};
	instr = MXBPF_PY_WORD(bytes, w->frame_instr);
	if (!py_code_print(p, f->code, &print) || (!w->instr_bytes && !first_instr(p, bytes, f->code, &first)))
		return false;
	f->instr = (uint32_t)(w->instr_bytes ? instr * w->instr_bytes : instr - first);
	f->print = print;
	s->n++;
	return true;
}

static int take_frames(const struct py *p, uint64_t *frame, struct mxbpf_stack *s)
{
	unsigned left = 2 * MXBPF_STACK_FRAMES_MAX; /* half of them may belong to the interpreter itself */

	s->n = 0;
	while (*frame && left-- && s->n < MXBPF_STACK_FRAMES_MAX)
		if (!take_frame(p, frame, s))
			break;
	s->cut = !!*frame;
	return s->n ? 0 : -ENOENT;
}

int py_stack_of(const struct py *p, const struct py_thread *t, struct mxbpf_stack *s)
{
	uint64_t frame = py_top_frame(p, t->frame);

	return take_frames(p, &frame, s);
}

int py_stack_part(const struct py *p, const struct py_thread *t, uint64_t *next, struct mxbpf_stack *s)
{
	if (!*next)
		*next = py_top_frame(p, t->frame);
	return take_frames(p, next, s);
}

int py_thread_stack(const struct py *p, uint64_t fs_base, struct mxbpf_stack *s)
{
	struct py_thread t;
	uint64_t state, next;

	s->n = 0;
	if (!py_current_state(p, fs_base, &state) || !py_read_state(p, state, &t, &next) || t.fs_base != fs_base)
		return -ENOENT;
	return py_stack_of(p, &t, s);
}
