// SPDX-License-Identifier: Apache-2.0
/*
 * The Python stack of the calling thread. A thread's frames do not change while it is in a call of C, even if it does
 * not hold the interpreter's lock, and they hold references to their code objects. So all that is read here is alive.
 * mxbpf has found and checked the layout from outside (user/python/).
 *
 * A stack is walked in two steps. The first one computes a hash of all frames. If the thread has not seen that hash,
 * the second step makes the list.
 */
#include <string.h>

#include "details.h"

/* Frames that are looked at; half of them may belong to the interpreter itself. */
#define LOOKED_MAX (2 * MXBPF_STACK_FRAMES_MAX)

typedef int (*ending_fn)(void);

static uint64_t word_at(uint64_t addr)
{
	return *(const uint64_t *)addr;
}

static uint64_t thread_base(void)
{
	uint64_t base;

	__asm__("mov %%fs:0, %0" : "=r"(base));
	return base;
}

/* Returns the address of the calling thread's innermost frame, or 0 if the thread has no frame or no state. */
static uint64_t top_frame(const struct mxbpf_python *py)
{
	const uint64_t base = thread_base();
	uint64_t state = word_at(base + (uint64_t)(int64_t)py->tls), frame;

	if (state && py->tls_key)
		state = word_at(state + 8ull * (py->tls_key - 1u));
	if (!state || word_at(state + py->state_start + py->state_thread) != base)
		return 0;
	frame = word_at(state + py->state_start + py->state_frame);
	return frame && py->cframe_frame != MXBPF_PY_NONE ? word_at(frame + py->cframe_frame) : frame;
}

/*
 * Returns the address of the first instruction of the code that a frame executes. Threads without a global lock execute
 * copies of it; copy 0 is in the code object.
 */
static uint64_t first_instr(const struct mxbpf_python *py, uint64_t frame, uint64_t code)
{
	const uint32_t copy = py->frame_copy == MXBPF_PY_NONE ? 0 : *(const uint32_t *)(frame + py->frame_copy);

	return copy ? word_at(word_at(code + py->code_copies) + 8 + 8ull * copy) : code + py->code_instrs;
}

/* Reads a Python frame, and moves *frame on to the next. Returns false for a frame of the interpreter itself. */
static bool next_frame(const struct mxbpf_python *py, uint64_t *frame, struct mxbpf_stack_frame *f)
{
	const uint64_t at = *frame + py->frame_start;
	uint64_t instr;

	*frame = word_at(at + py->frame_back);
	if (py->frame_owner != MXBPF_PY_NONE && *(const uint8_t *)(at + py->frame_owner) >= MXBPF_PY_OWNER_C)
		return false;
	f->code = word_at(at + py->frame_code) & MXBPF_PY_POINTER;
	instr = word_at(at + py->frame_instr);
	if (!f->code)
		return false;
	f->instr = (uint32_t)(py->instr_bytes ? instr * py->instr_bytes : instr - first_instr(py, at, f->code));
	return true;
}

/* Returns the class of the object that the call of a module has as its first argument, or 0. */
static uint64_t module_type(const struct mxbpf_python *py, uint64_t frame)
{
	const uint64_t self = word_at(frame + py->frame_local) & MXBPF_PY_POINTER;

	return self ? word_at(self + MXBPF_PY_CLASS(py)) : 0;
}

/* A hash of what mxbpf_code_print() covers, without the text of the file's name. */
static uint64_t code_hash(const struct mxbpf_python *py, uint64_t code)
{
	uint64_t h = 0;
	int i;

	for (i = 0; i < MXBPF_PY_PRINT_WORDS; i++)
		h = (h << 13 | h >> 51) ^ word_at(code + py->head + py->code_print[i]);
	return h;
}

/* The first step. Returns 0 if there is no frame. */
static uint64_t hash_stack(const struct mxbpf_python *py, uint64_t frame, uint64_t module_code)
{
	struct mxbpf_stack_frame f = {0};
	unsigned left = LOOKED_MAX, n = 0;
	uint64_t h = 1, at;

	while (frame && left-- && n < MXBPF_STACK_FRAMES_MAX) {
		at = frame;
		if (!next_frame(py, &frame, &f))
			continue;
		n++;
		h = mxbpf_stack_fold(h, code_hash(py, f.code) ^ f.code << 16 ^ f.instr);
		if (f.code == module_code)
			h = mxbpf_stack_fold(h, module_type(py, at));
	}
	return n ? h | 1 : 0;
}

/* The second step: fills t->list, and returns the number of its words. */
static uint32_t fill_list(struct mxbpf_agent_slot *t, const struct mxbpf_python *py, uint64_t frame)
{
	struct mxbpf_stack_frame *f = (void *)&t->list[1];
	unsigned left = LOOKED_MAX, n = 0;
	uint64_t at, file;

	while (frame && left-- && n < MXBPF_STACK_FRAMES_MAX) {
		at = frame;
		f[n] = (struct mxbpf_stack_frame){0};
		if (!next_frame(py, &frame, &f[n]))
			continue;
		file = word_at(f[n].code + py->head + py->code_file);
		f[n].print = mxbpf_code_print(py, (const void *)(f[n].code + py->head),
					      mxbpf_text_print(py, (const void *)(file + py->head)));
		if (f[n].code == t->module_code)
			f[n].type = module_type(py, at);
		n++;
	}
	t->list[0] = frame != 0;
	return 1 + n * (uint32_t)(sizeof(*f) / sizeof(t->list[0]));
}

static bool is_named(const struct mxbpf_python *py, uint64_t code, const char *name)
{
	const uint64_t text = word_at(code + py->code_name) + py->head;
	const uint64_t len = strlen(name);

	return word_at(text) == len && !memcmp((const void *)(text + py->text), name, len);
}

/*
 * Returns the code object of a module's call among the frames, or 0. If there are two, it is the wrapper: it makes no
 * closures, so its first argument is never kept in a cell.
 */
static uint64_t find_module(const struct mxbpf_agent_slot *t, const struct mxbpf_python *py, uint32_t words)
{
	const struct mxbpf_stack_frame *f = (const void *)&t->list[1];
	const uint32_t n = (words - 1) / (uint32_t)(sizeof(*f) / sizeof(t->list[0]));
	uint64_t code = 0;
	uint32_t i;

	for (i = 0; i < n; i++) {
		if (is_named(py, f[i].code, "_wrapped_call_impl"))
			return f[i].code;
		if (!code && is_named(py, f[i].code, "_call_impl"))
			code = f[i].code;
	}
	return code;
}

/* A new stack may be the first one with modules. */
static uint32_t new_stack(struct mxbpf_agent_shared *s, struct mxbpf_agent_slot *t, uint64_t frame, uint64_t *h)
{
	const struct mxbpf_python *py = &s->details.python;
	uint32_t words = fill_list(t, py, frame);
	uint64_t module = find_module(t, py, words);

	if (module && module != t->module_code) {
		t->module_code = module;
		words = fill_list(t, py, frame);
		*h = hash_stack(py, frame, module);
	}
	return agent_list(s, t, MXBPF_AGENT_LIST_STACK, words);
}

static struct mxbpf_agent_walked *walked(struct mxbpf_agent_slot *t, uint64_t h)
{
	return &t->walked[(h ^ h >> 32) >> 1 & (MXBPF_AGENT_WALKED - 1)];
}

uint32_t agent_stack(struct mxbpf_agent_shared *s, struct mxbpf_agent_slot *t, const struct mxbpf_agent_open *outer,
		     __u64 *top)
{
	const struct mxbpf_python *py = &s->details.python;
	struct mxbpf_agent_walked *w;
	uint64_t frame, h;
	uint32_t stack;

	*top = 0;
	/* The interpreter frees the frames of other threads when it ends. */
	if (!s->details.is_finalizing || ((ending_fn)s->details.is_finalizing)())
		return 0;
	frame = top_frame(py);
	if (!frame)
		return 0;
	*top = mxbpf_stack_fold(frame, word_at(frame + py->frame_start + py->frame_instr)) | 1;
	if (outer && outer->stack && outer->top == *top)
		return outer->stack;
	h = hash_stack(py, frame, t->module_code);
	w = walked(t, h);
	if (w->hash == h && w->stack)
		return w->stack;
	stack = h ? new_stack(s, t, frame, &h) : 0;
	w = walked(t, h);
	*w = (struct mxbpf_agent_walked){.hash = h, .stack = stack};
	return stack;
}
