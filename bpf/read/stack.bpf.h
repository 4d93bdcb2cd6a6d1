/* SPDX-License-Identifier: (GPL-2.0 OR BSD-2-Clause) */
/*
 * Python stacks of the running thread, interned like names: the frames are hashed, and a new stack is put into a
 * map. Operators run without the interpreter's lock, so the thread state is found through the thread itself and not
 * through the lock. The thread's own frames do not change while it is in the probe, even if it does not hold the
 * lock.
 */
#ifndef STACK_BPF_H
#define STACK_BPF_H

#include "common.bpf.h"
#include "mxbpf_stack.h"

const volatile struct mxbpf_python cfg_python;

/* Entries of the caches for one walk, by address; powers of two. */
#define STACK_FILES 4
#define STACK_CODES 8

/* The comparison bounds the size for the verifier: it must see that the bytes fit r->frame. */
#define FRAME_BYTES (cfg_python.frame_bytes <= MXBPF_PY_FRAME_BYTES ? cfg_python.frame_bytes : MXBPF_PY_FRAME_BYTES)

/* Scratch area of a thread for a walk. */
struct stack_room {
	struct mxbpf_stack stack;
	__u64 state[MXBPF_PY_STATE_BYTES / 8];
	__u64 frame[MXBPF_PY_FRAME_BYTES / 8]; /* the frame at `next` */
	__u64 code[MXBPF_PY_CODE_BYTES / 8];
	__u64 text[MXBPF_PY_TEXT_BYTES / 8];
	__u64 next; /* frame to read; 0: there are no more */
	__u64 hash;
	__u64 files[STACK_FILES], file_prints[STACK_FILES];
	__u64 codes[STACK_CODES], code_prints[STACK_CODES];
	struct {
		__u64 frame, instr;
	} tops[MXBPF_SLOT_FRAMES]; /* innermost Python frames at the start of the thread's outer spans */
	__u32 failed;
	__u32 read; /* 1: `frame` already holds the frame at `next` */
};

/* By slot. User space gives this map and the next one their full size if stacks were asked for. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stack_room);
} stack_rooms SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct mxbpf_stack);
} stacks SEC(".maps");

/*
 * Reads a string into r->text. A short string may be followed by an unmapped page, so a failed read is tried again
 * with its length.
 */
__noinline int text_read(struct stack_room *r, __u64 addr)
{
	__u64 len;

	if (!r)
		return -1;
	if (!bpf_probe_read_user(r->text, sizeof(r->text), (void *)(addr + cfg_python.head)))
		return 0;
	if (bpf_probe_read_user(r->text, MXBPF_PY_TEXT_HEAD, (void *)(addr + cfg_python.head)))
		return -1;
	len = r->text[0];
	if (len > MXBPF_PY_PRINT_TEXT)
		len = MXBPF_PY_PRINT_TEXT;
	return bpf_probe_read_user((char *)r->text + cfg_python.text, len,
				   (void *)(addr + cfg_python.head + cfg_python.text));
}

/* Returns a hash of the content of the code object at addr. */
__noinline __u64 code_print(struct stack_room *r, __u64 addr)
{
	__u32 at = addr >> 5 & (STACK_CODES - 1), i;
	__u64 file;

	if (!r)
		return 0;
	if (r->codes[at] == addr)
		return r->code_prints[at];
	r->failed = 1;
	if (bpf_probe_read_user(r->code, sizeof(r->code), (void *)(addr + cfg_python.head)))
		return 0;
	file = MXBPF_PY_WORD(r->code, cfg_python.code_file);
	i = file >> 5 & (STACK_FILES - 1);
	if (file != r->files[i]) {
		if (text_read(r, file))
			return 0;
		r->files[i] = file;
		r->file_prints[i] = mxbpf_text_print(&cfg_python, r->text);
	}
	r->failed = 0;
	r->codes[at] = addr;
	r->code_prints[at] = mxbpf_code_print(&cfg_python, r->code, r->file_prints[i]);
	return r->code_prints[at];
}

/*
 * Reads the class of the object that a module's call has as its first argument. Returns nonzero if it cannot be
 * read.
 */
static __always_inline int module_type(__u64 local, __u64 *type)
{
	__u64 self = 0;

	if (bpf_probe_read_user(&self, sizeof(self), (void *)local))
		return -1;
	self &= MXBPF_PY_POINTER;
	return self && bpf_probe_read_user(type, sizeof(*type), (void *)(self + MXBPF_PY_CLASS(&cfg_python)));
}

/*
 * Returns the address of the first instruction of the code that the frame in r->frame executes. Threads without a
 * global lock execute copies of it; copy 0 is in the code object.
 */
static __always_inline __u64 first_instr(struct stack_room *r, __u64 code)
{
	__u64 at = 0;
	__u32 copy;

	if (cfg_python.frame_copy == MXBPF_PY_NONE)
		return code + cfg_python.code_instrs;
	copy = *(const __u32 *)((const char *)r->frame + cfg_python.frame_copy);
	if (!copy)
		return code + cfg_python.code_instrs;
	if (bpf_probe_read_user(&at, sizeof(at), (void *)(code + cfg_python.code_copies)) ||
	    bpf_probe_read_user(&at, sizeof(at), (void *)(at + 8 + 8ull * copy)) || !at)
		r->failed = 1;
	return at;
}

/* Appends the frame at r->next as frame i. Returns 0 if there is none. */
__noinline int stack_frame(struct stack_room *r, __u32 i, __u64 module_code)
{
	__u64 addr, instr, code, print, type = 0;
	struct mxbpf_stack_frame *f;

	if (!r || !r->next || i >= MXBPF_STACK_FRAMES_MAX)
		return 0;
	asm volatile("%0 &= %1" : "+r"(i) : "i"(MXBPF_STACK_FRAMES_MAX - 1));
	f = &r->stack.frames[i];
	addr = r->next;
	if (!r->read && bpf_probe_read_user(r->frame, FRAME_BYTES, (void *)(addr + cfg_python.frame_start))) {
		r->failed = 1;
		return 0;
	}
	r->read = 0;
	r->next = MXBPF_PY_WORD(r->frame, cfg_python.frame_back);
	if (cfg_python.frame_owner != MXBPF_PY_NONE && *((__u8 *)r->frame + cfg_python.frame_owner) >= MXBPF_PY_OWNER_C)
		return 1;
	code = MXBPF_PY_WORD(r->frame, cfg_python.frame_code) & MXBPF_PY_POINTER;
	instr = MXBPF_PY_WORD(r->frame, cfg_python.frame_instr);
	print = code_print(r, code);
	if (!r->failed && code == module_code)
		r->failed = module_type(addr + cfg_python.frame_local, &type);
	if (!r->failed)
		instr = cfg_python.instr_bytes ? instr * cfg_python.instr_bytes : instr - first_instr(r, code);
	if (r->failed)
		return 0;
	f->code = code;
	f->print = print;
	f->instr = (__u32)instr;
	f->type = type;
	f->pad = 0;
	print = mxbpf_stack_fold(r->hash, print ^ code << 16 ^ f->instr);
	r->hash = type ? mxbpf_stack_fold(print, type) : print;
	r->stack.n = i + 1;
	return 1;
}

/* Appends all frames, starting with `frame`. */
__noinline int stack_walk(struct stack_room *r, __u64 frame, __u64 module_code)
{
	int i;

	if (!r)
		return 0;
	r->next = frame;
	r->stack.n = r->failed = 0;
	r->hash = 1;
	__builtin_memset(r->files, 0, sizeof(r->files));
	__builtin_memset(r->codes, 0, sizeof(r->codes));
	for (i = 0; i < 2 * MXBPF_STACK_FRAMES_MAX; i++) /* there may be as many C frames again */
		if (!stack_frame(r, r->stack.n, module_code))
			break;
	r->stack.cut = r->next || r->failed;
	r->hash = (r->hash << 1 | r->stack.cut) | 1ull << 63;
	return 0;
}

#define CHARS(a, b, c, d, e, f, g, h)                                                                                  \
	((__u64)(a) | (__u64)(b) << 8 | (__u64)(c) << 16 | (__u64)(d) << 24 | (__u64)(e) << 32 | (__u64)(f) << 40 |    \
	 (__u64)(g) << 48 | (__u64)(h) << 56)

/*
 * Returns nonzero if frame i may be a module's call, by the name of its function: 1 for _call_impl, 2 for
 * _wrapped_call_impl.
 */
__noinline int frame_is_module(struct stack_room *r, __u32 i)
{
	__u64 name = 0, len = 0, chars[2] = {};

	if (!r || i >= MXBPF_STACK_FRAMES_MAX)
		return 0;
	asm volatile("%0 &= %1" : "+r"(i) : "i"(MXBPF_STACK_FRAMES_MAX - 1));
	if (bpf_probe_read_user(&name, sizeof(name), (void *)(r->stack.frames[i].code + cfg_python.code_name)) ||
	    bpf_probe_read_user(&len, sizeof(len), (void *)(name + cfg_python.head)))
		return 0;
	if (len != sizeof("_call_impl") - 1 && len != sizeof("_wrapped_call_impl") - 1)
		return 0;
	if (bpf_probe_read_user(chars, 10, (void *)(name + cfg_python.head + cfg_python.text)))
		return 0;
	if (len == sizeof("_call_impl") - 1)
		return chars[0] == CHARS('_', 'c', 'a', 'l', 'l', '_', 'i', 'm');
	return chars[0] == CHARS('_', 'w', 'r', 'a', 'p', 'p', 'e', 'd') ? 2 : 0;
}

/*
 * Returns the code object of a module's call among the frames, or 0. If there are two, it is the wrapper: it makes
 * no closures, so its first argument is never kept in a cell.
 */
__noinline __u64 stack_module(struct stack_room *r)
{
	__u64 code = 0;
	int i, found, best = 0;

	if (!r)
		return 0;
	for (i = 0; i < MXBPF_STACK_FRAMES_MAX; i++) {
		if (i >= r->stack.n)
			break;
		found = frame_is_module(r, i);
		if (found > best) {
			best = found;
			code = r->stack.frames[i].code;
		}
	}
	return code;
}

/* Returns the innermost frame of a thread state, or 0 if the state is not the running thread's or runs nothing. */
__noinline __u64 state_frame(struct stack_room *r, __u64 state)
{
	__u64 frame;

	if (!r || !state || bpf_probe_read_user(r->state, sizeof(r->state), (void *)(state + cfg_python.state_start)) ||
	    MXBPF_PY_WORD(r->state, cfg_python.state_thread) != bpf_get_current_task_btf()->thread.fsbase)
		return 0;
	frame = MXBPF_PY_WORD(r->state, cfg_python.state_frame);
	if (cfg_python.cframe_frame != MXBPF_PY_NONE &&
	    bpf_probe_read_user(&frame, sizeof(frame), (void *)(frame + cfg_python.cframe_frame)))
		return 0;
	return frame;
}

/*
 * Reads the address of the running thread's state; 0: it has none. A thread that enters another interpreter has another
 * state from then on. Returns false if it is not mapped.
 */
static __always_inline bool current_state(__u64 *state)
{
	if (bpf_probe_read_user(state, sizeof(*state),
				(void *)(bpf_get_current_task_btf()->thread.fsbase + cfg_python.tls)))
		return false;
	return !cfg_python.tls_key || !*state ||
	       !bpf_probe_read_user(state, sizeof(*state), (void *)(*state + 8ull * (cfg_python.tls_key - 1)));
}

/*
 * Finds and reads the innermost frame of the running thread. Returns 0 if the thread runs no Python, or if that is
 * unknown.
 */
__noinline __u64 stack_top(struct mxbpf_thread *t, struct stack_room *r)
{
	__u64 frame, state;

	if (!t || !r)
		return 0;
	if (!current_state(&state))
		return 0;
	frame = state_frame(r, state);
	r->read = 1;
	if (frame && bpf_probe_read_user(r->frame, FRAME_BYTES, (void *)(frame + cfg_python.frame_start))) {
		t->counts[MXBPF_COUNT_UNREADABLE]++;
		return 0;
	}
	return frame;
}

/* Interns the stack that begins with the innermost frame, and returns its id. */
__noinline __u64 stack_intern(struct mxbpf_thread *t, __u64 frame)
{
	__u32 slot = t ? t->slot : 0;
	struct stack_room *r;
	__u64 id, module;

	r = bpf_map_lookup_elem(&stack_rooms, &slot);
	if (!r || !t)
		return 0;
	stack_walk(r, frame, t->module_code);
	id = r->hash;
	if (r->stack.n && bpf_map_lookup_elem(&stacks, &id))
		return id;
	/* A new stack may be the first one with modules. */
	module = stack_module(r);
	if (module && module != t->module_code) {
		t->module_code = module;
		stack_walk(r, frame, module);
		id = r->hash;
	}
	t->counts[MXBPF_COUNT_UNREADABLE] += !!r->failed;
	if (!r->stack.n)
		return 0;
	if (bpf_map_update_elem(&stacks, &id, &r->stack, BPF_ANY)) {
		t->counts[MXBPF_COUNT_TRUNCATED]++;
		return 0;
	}
	t->wake++;
	return id;
}

/*
 * Returns the stack_id of a span that opens at depth d, or 0 if its thread runs no interpreter or the stack cannot
 * be read. If the enclosing span began in the same Python frame, at the same instruction, its stack is reused: this
 * frame and all outer ones wait for that call, so none has moved. The instruction is compared because an exception
 * may have left that call unseen. Spans deeper than one slot are not compared.
 */
static __always_inline __u64 stack_of(struct mxbpf_thread *t, __u32 d, struct mxbpf_frame *parent)
{
	__u32 slot = t->slot, at = d - 1;
	struct stack_room *r = bpf_map_lookup_elem(&stack_rooms, &slot);
	__u64 frame, instr;

	frame = r ? stack_top(t, r) : 0;
	if (!frame)
		return 0;
	if (d >= MXBPF_SLOT_FRAMES)
		return stack_intern(t, frame);
	instr = MXBPF_PY_WORD(r->frame, cfg_python.frame_instr);
	asm volatile("%0 &= %1" : "+r"(d) : "i"(MXBPF_SLOT_FRAMES - 1));
	asm volatile("%0 &= %1" : "+r"(at) : "i"(MXBPF_SLOT_FRAMES - 1));
	r->tops[d].frame = frame;
	r->tops[d].instr = instr;
	if (parent && parent->stack_id && parent->sp != ~0ull && r->tops[at].frame == frame &&
	    r->tops[at].instr == instr)
		return parent->stack_id;
	return stack_intern(t, frame);
}

#endif
