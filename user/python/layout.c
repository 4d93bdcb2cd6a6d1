// SPDX-License-Identifier: Apache-2.0
/*
 * Offsets in CPython's structures, from the headers of each version. They are the same in all its releases. From 3.13
 * on, the process describes itself.
 */
#include "python/priv.h"

#include <errno.h>
#include <string.h>

#define MINOR_COPIES  14
#define COUNT(a)      (sizeof(a) / sizeof((a)[0]))
#define HEAD	      16 /* bytes of an object's head in a build with a global lock */
#define FREE_HEAD     32 /* bytes of an object's head in a build without one */
#define FREE_SHIFT    6	 /* of the state of a string: whether it is interned takes 8 bits instead of 2 */
#define OF_CODE(off)  ((off)-HEAD)
#define OF_TEXT(off)  ((off)-HEAD)
#define LOCKED	      .head = HEAD, .frame_copy = MXBPF_PY_NONE
#define OF_FRAME(off) ((off)-FRAME_START)

/* Frames are objects: back, code and the last instruction are at offset 24 and later. */
#define FRAME_START 24
#define FRAMES_OF_OBJECTS                                                                                              \
	.state_start = 24, .state_thread = 176 - 24, .state_frame = 0, .cframe_frame = MXBPF_PY_NONE,                  \
	.frame_start = FRAME_START, .frame_bytes = MXBPF_PY_FRAME_BYTES, .frame_back = OF_FRAME(24),                   \
	.frame_code = OF_FRAME(32), .frame_owner = MXBPF_PY_NONE, .code_name = 112, .code_file = OF_CODE(104), LOCKED, \
	.text = OF_TEXT(48), .code_print = {OF_CODE(40), OF_CODE(48), OF_CODE(104), OF_CODE(112), OF_CODE(120)}
/* first line; code, file, name, lines */
#define CODE_OF_OBJECTS                                                                                                \
	.code_first = 40, .code_name = 112, .code_file = 104, .code_lines = 120, .wide_text = OF_TEXT(72)
#define OLD_STATES .runtime_interp = 32, .interp_states = 8, .state_next = 8

/* From 3.11 on the instructions follow the code object, and frames are on a stack of their own. */
#define NEW_PRINT(first)                                                                                               \
	LOCKED, .code_print = {OF_CODE(first), OF_CODE(88), OF_CODE(112), OF_CODE(120), OF_CODE(136)},                 \
		.code_file = OF_CODE(112), .code_name = 120
#define NEW_CODE .code_name = 120, .code_file = 112, .code_lines = 136

static const struct py_layout layouts[] = {
	{
		.minor = 8,
		.version = "3.8",
		.walk = {FRAMES_OF_OBJECTS, .frame_instr = OF_FRAME(104), .instr_bytes = 1, .frame_local = 360},
		.line = py_line_lnotab,
		OLD_STATES,
		CODE_OF_OBJECTS,
	},
	{
		.minor = 9,
		.version = "3.9",
		.walk = {FRAMES_OF_OBJECTS, .frame_instr = OF_FRAME(104), .instr_bytes = 1, .frame_local = 360},
		.line = py_line_lnotab,
		OLD_STATES,
		CODE_OF_OBJECTS,
	},
	{
		.minor = 10,
		.version = "3.10",
		.walk = {FRAMES_OF_OBJECTS, .frame_instr = OF_FRAME(96), .instr_bytes = 2, .frame_local = 352},
		.line = py_line_ranges,
		OLD_STATES,
		CODE_OF_OBJECTS,
	},
	{
		.minor = 11,
		.version = "3.11",
		.walk = {.state_thread = 152,
			 .state_frame = 56,
			 .cframe_frame = 8,
			 .frame_bytes = 64,
			 .frame_back = 48,
			 .frame_code = 32,
			 .frame_instr = 56,
			 .frame_owner = MXBPF_PY_NONE,
			 .frame_local = 72,
			 .code_instrs = 184,
			 .text = OF_TEXT(48),
			 NEW_PRINT(72)},
		.line = py_line_location,
		.runtime_interp = 40,
		.interp_states = 16,
		.state_next = 8,
		.code_first = 72,
		NEW_CODE,
		.wide_text = OF_TEXT(72),
	},
	{
		.minor = 12,
		.version = "3.12",
		.walk = {.state_thread = 136,
			 .state_frame = 56,
			 .cframe_frame = 0,
			 .frame_bytes = 72,
			 .frame_back = 8,
			 .frame_code = 0,
			 .frame_instr = 56,
			 .frame_owner = 70,
			 .frame_local = 72,
			 .code_instrs = 192,
			 .text = OF_TEXT(40),
			 NEW_PRINT(64)},
		.line = py_line_location,
		.runtime_interp = 40,
		.interp_states = 72,
		.state_next = 8,
		.code_first = 68,
		NEW_CODE,
		.wide_text = OF_TEXT(56),
	},
	{
		.minor = 13,
		.version = "3.13",
		.walk = {.cframe_frame = MXBPF_PY_NONE, .frame_bytes = 72, .text = OF_TEXT(40), NEW_PRINT(64)},
		.line = py_line_location,
		.described = {3, 6, 19, 28, 34},
		.described_thread = 5,
		.wide_text = OF_TEXT(56),
	},
	{
		.minor = 14,
		.version = "3.14",
		.walk = {.cframe_frame = MXBPF_PY_NONE, .frame_bytes = 80, .text = OF_TEXT(40), NEW_PRINT(64)},
		.line = py_line_location,
		.described = {3, 6, 22, 31, 39},
		.described_thread = 5,
		.wide_text = OF_TEXT(56),
	},
	{
		.minor = 15,
		.version = "3.15",
		.walk = {.cframe_frame = MXBPF_PY_NONE, .frame_bytes = 80, .text = OF_TEXT(40), NEW_PRINT(64)},
		.line = py_line_location,
		.described = {3, 6, 22, 39, 47},
		.described_thread = 8,
		.wide_text = OF_TEXT(56),
	},
};

const struct py_layout *py_layout_of(unsigned minor)
{
	size_t i;

	for (i = 0; i < COUNT(layouts); i++)
		if (layouts[i].minor == minor)
			return &layouts[i];
	return NULL;
}

/* struct _Py_DebugOffsets, as 8-byte words from its start. */
enum {
	DESC_COOKIE = 0,
	DESC_VERSION = 1,
	DESC_FREE_THREADED = 2,
	DESC_FRAME_COPY = 7, /* from the first word of its part, as the next one */
	DESC_CODE_COPIES = 10,
	DESC_WORDS = 58
};

/* Fields that all these versions have in the same order, as words from the start of their part. */
#define FIELD(part, word, f)                                                                                           \
	{                                                                                                              \
		PY_PART_##part, word, offsetof(struct py_layout, f)                                                    \
	}
static const struct {
	unsigned part, word;
	size_t field;
} described[] = {
	FIELD(RUNTIME, 2, runtime_interp), FIELD(INTERP, 2, interp_next),     FIELD(INTERP, 3, interp_states),
	FIELD(STATE, 2, state_next),	   FIELD(STATE, 4, walk.state_start), FIELD(FRAME, 1, walk.frame_back),
	FIELD(FRAME, 2, walk.frame_code),  FIELD(FRAME, 3, walk.frame_instr), FIELD(FRAME, 4, walk.frame_local),
	FIELD(FRAME, 5, walk.frame_owner), FIELD(CODE, 1, code_file),	      FIELD(CODE, 2, code_name),
	FIELD(CODE, 2, walk.code_name),	   FIELD(CODE, 4, code_lines),	      FIELD(CODE, 5, code_first),
	FIELD(CODE, 9, walk.code_instrs),
};

/* A field lies at a multiple of its bytes. */
static bool in_frame(const struct mxbpf_python *w, uint64_t off, uint64_t bytes)
{
	return off % bytes == 0 && off + bytes <= w->frame_bytes;
}

static bool in_code(const struct mxbpf_python *w, uint64_t off, uint64_t bytes)
{
	return off % bytes == 0 && off >= w->head && off <= w->head + MXBPF_PY_CODE_BYTES - 8ull;
}

/* Checks that all fields are within the bytes of an object that BPF reads at once. */
static bool layout_fits(const struct py_layout *l)
{
	const struct mxbpf_python *w = &l->walk;

	return w->state_thread >= w->state_start && w->state_thread - w->state_start <= MXBPF_PY_STATE_BYTES - 8 &&
	       in_frame(w, w->frame_back, 8) && in_frame(w, w->frame_code, 8) && in_frame(w, w->frame_instr, 8) &&
	       in_frame(w, w->frame_owner, 1) && (w->frame_copy == MXBPF_PY_NONE || in_frame(w, w->frame_copy, 4)) &&
	       in_code(w, l->code_file, 8) && in_code(w, l->code_name, 8) && in_code(w, l->code_lines, 8) &&
	       in_code(w, l->code_first, 4);
}

/*
 * Changes the layout to that of a build without a global lock. From 3.14 on, its strings have a wider state, and its
 * threads have copies of code.
 */
static bool free_threaded(struct py_layout *l, const uint64_t *d)
{
	const uint64_t copy = d[l->described[PY_PART_FRAME] + DESC_FRAME_COPY];
	const uint64_t copies = d[l->described[PY_PART_CODE] + DESC_CODE_COPIES];

	l->walk.head = FREE_HEAD;
	if (l->minor < MINOR_COPIES)
		return true;
	l->walk.text_shift = FREE_SHIFT;
	l->walk.frame_copy = (uint16_t)copy;
	l->walk.code_copies = (uint16_t)copies;
	return copy < MXBPF_PY_NONE && copies < MXBPF_PY_NONE;
}

int py_describe(struct py *p, struct err *e)
{
	uint64_t d[DESC_WORDS], thread;
	bool fit;
	size_t i;

	if (!p->l.described[0])
		return 0;
	if (tgt_read(p->t, p->runtime, d, sizeof(d)) || memcmp(&d[DESC_COOKIE], PY_COOKIE, sizeof(d[0])))
		return err_set(e, ERR_TARGET, -ENOTSUP, "its Python %s has no table of its offsets", p->l.version);
	fit = py_is_release(d[DESC_VERSION], p->l.minor) && (!d[DESC_FREE_THREADED] || free_threaded(&p->l, d));
	for (i = 0; i < COUNT(described); i++) {
		uint64_t word = d[p->l.described[described[i].part] + described[i].word];
		uint16_t off = (uint16_t)word;

		fit = fit && off == word;
		memcpy((char *)&p->l + described[i].field, &off, sizeof(off));
	}
	thread = d[p->l.described[PY_PART_STATE] + p->l.described_thread];
	p->l.walk.state_thread = (uint16_t)thread;
	if (!fit || thread >= MXBPF_PY_NONE || !layout_fits(&p->l))
		return err_set(e, ERR_TARGET, -ENOTSUP, "its Python %s has another layout than the release",
			       p->l.version);
	p->l.walk.code_file = (uint16_t)(p->l.code_file - p->l.walk.head);
	p->l.walk.state_thread -= p->l.walk.state_start;
	return 0;
}
