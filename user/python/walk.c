// SPDX-License-Identifier: Apache-2.0
/* Walks the frames of a thread that does not run, as BPF walks those of a running thread (bpf/read/stack.bpf.h). */
#include "python/priv.h"

#include <errno.h>

/* Returns the innermost frame, or 0 if the thread runs no Python. */
static uint64_t top_frame(const struct py *p, uint64_t fs_base)
{
	const struct mxbpf_python *w = &p->l.walk;
	uint64_t state, thread, frame;

	if (!py_word(p, fs_base + (uint64_t)w->tls, &state) ||
	    !py_word(p, state + w->state_start + w->state_thread, &thread) || thread != fs_base ||
	    !py_word(p, state + w->state_start + w->state_frame, &frame))
		return 0;
	if (w->cframe_frame != MXBPF_PY_NONE && !py_word(p, frame + w->cframe_frame, &frame))
		return 0;
	return frame;
}

/* Reads one frame, unless it belongs to the interpreter itself. *frame becomes the next frame. */
static bool take_frame(const struct py *p, uint64_t *frame, struct mxbpf_stack *s)
{
	const struct mxbpf_python *w = &p->l.walk;
	uint64_t bytes[MXBPF_PY_FRAME_BYTES / 8 + 1], instr, print;
	struct mxbpf_stack_frame *f = &s->frames[s->n];

	if (tgt_read(p->t, *frame + w->frame_start, bytes, w->frame_bytes))
		return false;
	*frame = MXBPF_PY_WORD(bytes, w->frame_back);
	if (w->frame_owner != MXBPF_PY_NONE && *((uint8_t *)bytes + w->frame_owner) >= MXBPF_PY_OWNER_C)
		return true;
	*f = (struct mxbpf_stack_frame){.code = MXBPF_PY_WORD(bytes, w->frame_code) & MXBPF_PY_POINTER};
	instr = MXBPF_PY_WORD(bytes, w->frame_instr);
	f->instr = w->instr_bytes ? (uint32_t)instr * w->instr_bytes : (uint32_t)(instr - f->code - w->code_instrs);
	if (!py_code_print(p, f->code, &print))
		return false;
	f->print = print;
	s->n++;
	return true;
}

int py_thread_stack(const struct py *p, uint64_t fs_base, struct mxbpf_stack *s)
{
	uint64_t frame = top_frame(p, fs_base);
	unsigned left = 2 * MXBPF_STACK_FRAMES_MAX; /* half of them may belong to the interpreter itself */

	s->n = 0;
	while (frame && left-- && s->n < MXBPF_STACK_FRAMES_MAX)
		if (!take_frame(p, &frame, s))
			break;
	s->cut = !!frame;
	return s->n ? 0 : -ENOENT;
}

#define MINOR_NATIVE_ID 11 /* from this version on, the native id stands behind the base of the thread */

int py_thread_id(const struct py *p, uint64_t fs_base)
{
	const struct mxbpf_python *w = &p->l.walk;
	uint64_t state, id;

	if (p->l.minor < MINOR_NATIVE_ID || !py_word(p, fs_base + (uint64_t)w->tls, &state) ||
	    !py_word(p, state + w->state_start + w->state_thread + sizeof(id), &id))
		return 0;
	return (int)id;
}
