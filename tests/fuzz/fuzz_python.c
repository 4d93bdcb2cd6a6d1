// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the interpreter of a hostile process: its table of offsets, thread states, frames, code objects, texts, and
 * where it accepts a script. The memory begins as a CPython has it, of the version that the first byte selects. The
 * rest of the input is patches of 12 bytes: offset, number of bytes, value. Each read applies the next one before it,
 * so the memory changes while it is read.
 */
#include <stdint.h>

#include "../../user/python/exec.c"
#include "../../user/python/find.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int __wrap_tgt_read(const struct tgt *t, uint64_t addr, void *buf, size_t n);
ssize_t __wrap_tgt_read_some(const struct tgt *t, uint64_t addr, void *buf, size_t n);

#define BASE   0x10000ull
#define BYTES  0x8000u
#define FRAMES 3

/* Where everything is. The runtime is at the beginning. */
enum {
	INTERP = 0x800,
	STATE = 0x2800,
	THREAD = 0x2c00,
	CFRAME = 0x3600,
	FRAME0 = 0x3800, /* 0x100 bytes each */
	CODE = 0x3c00,
	NAME = 0x4000,
	FILE_NAME = 0x4100,
	LINES = 0x4200,
	CODE_TYPE = 0x4400,
	TEXT_TYPE = 0x4600,
	BYTES_TYPE = 0x4800,
	CLASS = 0x4a00, /* of a module, as the first local variable of each frame has it */
	MODULE = 0x4c00,
};

static uint8_t memory[BYTES];
static const uint8_t *patches, *patches_end;

/* ---- the process */

static void apply_patch(void)
{
	uint64_t value;
	uint16_t off;
	unsigned bytes;

	if (patches_end - patches < 12)
		return;
	memcpy(&off, patches, sizeof(off));
	bytes = 1u << patches[2] % 4;
	memcpy(&value, patches + 4, sizeof(value));
	value += patches[2] & 0x80 ? BASE : 0; /* an address, which a fuzzer cannot guess */
	memcpy(memory + off % (BYTES - bytes + 1), &value, bytes);
	patches += 12;
}

ssize_t __wrap_tgt_read_some(const struct tgt *t, uint64_t addr, void *buf, size_t n)
{
	(void)t;
	apply_patch();
	if (addr - BASE >= BYTES)
		return -EFAULT;
	n = n < BYTES - (addr - BASE) ? n : BYTES - (addr - BASE);
	memcpy(buf, memory + (addr - BASE), n);
	return (ssize_t)n;
}

int __wrap_tgt_read(const struct tgt *t, uint64_t addr, void *buf, size_t n)
{
	(void)t;
	apply_patch();
	if (addr - BASE > BYTES || n > BYTES - (addr - BASE))
		return -EFAULT;
	memcpy(buf, memory + (addr - BASE), n);
	return 0;
}

/* ---- an honest interpreter */

static void put(size_t at, uint64_t value)
{
	memcpy(memory + at, &value, sizeof(value));
}

/*
 * The first words of _PyRuntime in 3.13.5, 3.14.8 and 3.15.0 (tests/unit/test_python.c), with sizes that fit the
 * memory. Without a global lock the objects' heads are longer, and frames and code objects tell of copies.
 */
static void begin_table(unsigned minor, bool locked)
{
	static const uint64_t tables[3][58] = {
		{0,    0x30d05f0, 0,   BYTES, 608, 632, 0x2000, 7272, 7264, 7344, 7400, 7656, 7640, 7648, 16, 7752, 0,
		 7768, 7760,	  304, 0,     8,   16,	72,	152,  160,  232,  32,	80,   8,    0,	  56, 72,   70,
		 208,  112,	  120, 128,   136, 68,	52,	96,   104,  200,  16,	8,    416,  24,	  88, 168},
		{0,  0x30e08f0, 0,    BYTES, 784, 808, 0x2000, 7280, 7272, 7344, 7360, 7408, 7688, 7672, 7680, 16, 7784,
		 0,  7800,	7792, 7992,  0,	  832, 0,      8,    16,   72,	 152,  160,  232,  32,	 88,   8,  0,
		 56, 80,	74,   64,    0,	  216, 112,    120,  128,  136,	 68,   52,   96,   104,	 208,  0},
		{0,   0x30f00f0, 0,   BYTES, 912,  936,	 0x2000, 7272, 7264, 7336, 7352, 7400, 7592, 7576, 7584,
		 16,  7736,	 0,   7752,  7744, 7944, 0,	 888,  0,    8,	   16,	 72,   80,   88,   96,
		 176, 184,	 256, 32,    36,   40,	 136,	 288,  0,    88,   8,	 0,    56,   80,   74,
		 64,  0,	 216, 112,   120,  128,	 136,	 68,   52,   96,   104,	 208,  0}};
	static const uint64_t support[SUPPORT_WORDS] = {24, 0x100, 400, 0, 4, 512};

	memcpy(memory, tables[minor - 13], sizeof(tables[0]));
	memcpy(memory, PY_COOKIE, sizeof(uint64_t));
	if (!locked) {
		put(2 * sizeof(uint64_t), 1);
		put((minor == 15 ? 46 : 38) * sizeof(uint64_t), 72);
		put((minor == 15 ? 57 : 49) * sizeof(uint64_t), 200);
	}
	memcpy(memory + versions[minor == 15].support * sizeof(uint64_t), support, sizeof(support));
	memory[INTERP + 400] = 1;
	put(INTERP + 7360, BASE + STATE);
	put(STATE + 16, BASE + INTERP);
}

static void begin_object(size_t at, const struct py_layout *l, size_t type)
{
	put(at, 1);
	put(at + 8, 1ull << 32);
	put(at + l->walk.head - 8, BASE + type);
}

static void begin_text(size_t at, const struct py_layout *l, const char *text)
{
	begin_object(at, l, TEXT_TYPE);
	put(at + l->walk.head, strlen(text));
	put(at + l->walk.head + MXBPF_PY_TEXT_STATE, (MXBPF_PY_STATE_ASCII | 1u << 5 | 1u << 2) << l->walk.text_shift);
	memcpy(memory + at + l->walk.head + l->walk.text, text, strlen(text));
}

static void begin_code(const struct py_layout *l)
{
	begin_object(CODE, l, CODE_TYPE);
	put(CODE + l->code_first, 7);
	put(CODE + l->code_name, BASE + NAME);
	put(CODE + l->code_file, BASE + FILE_NAME);
	put(CODE + l->code_lines, BASE + LINES);
	begin_text(NAME, l, "forward");
	begin_text(FILE_NAME, l, "/usr/lib/site-packages/torch/nn/modules/module.py");
	begin_object(LINES, l, BYTES_TYPE);
	put(LINES + l->walk.head, 6);
	memcpy(memory + LINES + l->walk.head + 16, "\xda\x01\x80\x03\xf8\x02", 6);
	begin_object(CLASS, l, CLASS);
	put(CLASS + l->walk.head + 8, BASE + MODULE);
	put(CLASS + l->walk.head + 152, 1ull << 31);
	memcpy(memory + MODULE, "torch.nn.Linear", 16);
}

static void begin_frames(const struct py_layout *l)
{
	const struct mxbpf_python *w = &l->walk;
	size_t at, i;

	for (i = 0; i < FRAMES; i++) {
		at = FRAME0 + 0x100 * i + w->frame_start;
		put(at + w->frame_back, i + 1 < FRAMES ? BASE + FRAME0 + 0x100 * (i + 1) : 0);
		put(at + w->frame_code, BASE + CODE);
		put(at + w->frame_instr, w->instr_bytes ? 2 : BASE + CODE + w->code_instrs + 2);
	}
	put(STATE + w->state_start + w->state_thread, BASE + THREAD);
	put(STATE + w->state_start + w->state_frame, BASE + (w->cframe_frame == MXBPF_PY_NONE ? FRAME0 : CFRAME));
	put(CFRAME + (w->cframe_frame == MXBPF_PY_NONE ? 0 : w->cframe_frame), BASE + FRAME0);
	put(THREAD + 40 * sizeof(uint64_t), BASE + STATE);
	put(l->runtime_interp, BASE + INTERP);
	put(INTERP + l->interp_states, BASE + STATE);
}

/* ---- reading it */

static void read_stack(struct py *p, const struct mxbpf_stack *from)
{
	struct mxbpf_stack s = *from;
	size_t max = 64 + s.n % 7 * 100;
	char *text = malloc(max);
	unsigned lost, i;

	if (!text)
		return;
	for (i = 0; i < s.n; i++)
		s.frames[i].type = BASE + CLASS;
	if (py_stack_text(p, &s, text, max, &lost) > max || lost > s.n)
		abort();
	free(text);
}

static void on_thread(void *ctx, const struct py_thread *t)
{
	struct mxbpf_stack s;

	if (!py_stack_of(ctx, t, &s))
		read_stack(ctx, &s);
}

static void read_script(const struct py *p)
{
	struct py_exec x = {.minor = p->l.minor};
	struct err e = {0};
	struct places at;

	if (read_table(p, &x, &at, &e) || find_state(p, &x, &at, &e)) {
		if (!e.why[0])
			abort();
		return;
	}
	/* mxbpf writes there, so it must be in the interpreter's own memory. */
	if (at.state < p->runtime ||
	    at.state + at.support[SUPPORT_START] + at.support[SUPPORT_PATH] + at.support[SUPPORT_PATH_BYTES] >
		    p->runtime + at.d[WORD_RUNTIME_BYTES])
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct py *p = calloc(1, sizeof(*p));
	const unsigned old = size ? 8 + *data % 7 : 8, minor = old == 14 && *data & 0x40 ? 15 : old;
	struct mxbpf_stack s;
	struct err e = {0};

	if (!p)
		abort();
	*p = (struct py){.l = *py_layout_of(minor),
			 .runtime = BASE,
			 .code_type = BASE + CODE_TYPE,
			 .text_type = BASE + TEXT_TYPE,
			 .bytes_type = BASE + BYTES_TYPE};
	memset(memory, 0, sizeof(memory));
	patches = patches_end = data;
	if (minor >= 13)
		begin_table(minor, minor < 14 || !(*data & 0x20));
	py_describe(p, &e);
	begin_code(&p->l);
	begin_frames(&p->l);
	py_set_module_file(p, "torch/nn/modules/module.py");
	if (size) {
		patches = data + 1;
		patches_end = data + size;
	}
	if (size && *data & 0x80 && (py_describe(p, &e) || minor >= 14))
		read_script(p);
	else if (!e.code && !find_tls(p, &e)) {
		if (!py_thread_stack(p, BASE + THREAD, &s))
			read_stack(p, &s);
		py_each_thread(p, on_thread, p);
	}
	py_close(p);
	return 0;
}
