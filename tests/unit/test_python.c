// SPDX-License-Identifier: Apache-2.0
/*
 * Tests the line tables of Python's code objects, the tables of offsets from 3.13 on, how user space walks and names
 * frames of 3.14, and the refusal of a process without an interpreter.
 */
#include "unit.h"

#include "python/priv.h"
#include "python_lines.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static uint32_t said(size_t row, uint32_t instr)
{
	unsigned i = 0;

	while (python_lines[row].lines[i + 1].from > python_lines[row].lines[i].from &&
	       python_lines[row].lines[i + 1].from <= instr)
		i++;
	return python_lines[row].lines[i].line;
}

/* Returns the number of instructions for which line() differs from the interpreter. */
static unsigned wrong_lines(size_t row)
{
	const struct py_layout *l = py_layout_of(python_lines[row].minor);
	const uint8_t *table = (const uint8_t *)python_lines[row].table;
	unsigned wrong = 0;
	uint32_t instr;

	for (instr = 0; instr < python_lines[row].end; instr += 2)
		wrong += l->line(table, python_lines[row].bytes, python_lines[row].first, instr) != said(row, instr);
	return wrong;
}

/* A damaged table must not be read beyond its end; the sanitizer notices such a read. */
static void read_damaged(py_line_fn line)
{
	uint8_t *table;
	unsigned seed, n, i;

	for (seed = 0; seed < 20000; seed++) {
		n = seed % 40;
		table = malloc(n ? n : 1);
		for (i = 0; table && i < n; i++)
			table[i] = (uint8_t)((seed * 2654435761u + i * 40503u) >> 13);
		if (table)
			line(table, n, 1, seed % 512);
		free(table);
	}
}

/* ---- tables of offsets */

#define WORDS 58
#define FREE  100 /* added to a version: its build without a global lock */

/* The first words of _PyRuntime in 3.13.5, 3.14.8 and 3.15.0, and in 3.14.4 without a global lock, without the cookie.
 * That of 3.15.0 without a global lock is from its headers.
 */
static const uint64_t of_3_13[WORDS] = {
	0,    0x30d05f0, 0,   283376, 608, 632, 194976, 7272, 7264, 7344, 7400, 7656, 7640, 7648, 16, 7752, 0,
	7768, 7760,	 304, 0,      8,   16,	72,	152,  160,  232,  32,	80,   8,    0,	  56, 72,   70,
	208,  112,	 120, 128,    136, 68,	52,	96,   104,  200,  16,	8,    416,  24,	  88, 168};
static const uint64_t of_3_14[WORDS] = {
	0,  0x30e08f0, 0,    316616, 784, 808, 225864, 7280, 7272, 7344, 7360, 7408, 7688, 7672, 7680, 16, 7784,
	0,  7800,      7792, 7992,   0,	  832, 0,      8,    16,   72,	 152,  160,  232,  32,	 88,   8,  0,
	56, 80,	       74,   64,     0,	  216, 112,    120,  128,  136,	 68,   52,   96,   104,	 208,  0};

static const uint64_t of_3_15[WORDS] = {0,    0x30f00f0, 0,    346568, 912,  936, 226240, 7272, 7264, 7336, 7352, 7400,
					7592, 7576,	 7584, 16,     7736, 0,	  7752,	  7744, 7944, 0,    888,  0,
					8,    16,	 72,   80,     88,   96,  176,	  184,	256,  32,   36,	  40,
					136,  288,	 0,    88,     8,    0,	  56,	  80,	74,   64,   0,	  216,
					112,  120,	 128,  136,    68,   52,  96,	  104,	208,  0};
static const uint64_t free_3_14[WORDS] = {
	0,  0x30e04f0, 1,    362368, 784,   808, 246720, 7280, 7272, 7344, 7360, 7408, 7712, 7696, 7704, 16, 7808,
	0,  7832,      7824, 8024,   17628, 832, 0,	 8,    16,   72,   152,	 160,  232,  32,   88,	 8,  0,
	56, 80,	       78,   64,     72,    240, 128,	 136,  144,  152,  84,	 68,   112,  120,  232,	 224};

static const uint64_t free_3_15[WORDS] = {
	0,   0x30f00f0, 1,   406016, 912,  936,	 247040, 7272, 7264, 7336, 7352, 7400, 7592, 7576, 7584,
	16,  7736,	0,   7760,   7752, 7952, 17564,	 888,  0,    8,	   16,	 72,   80,   88,   96,
	176, 184,	256, 32,     36,   40,	 136,	 288,  0,    88,   8,	 0,    56,   80,   78,
	64,  72,	240, 128,    136,  144,	 152,	 84,   68,   112,  120,	 232,  224};

static uint64_t table[WORDS]; /* this process's imitation of _PyRuntime */

/* Describes *p by a table that differs in one word (0: in none). */
static int describe(struct py *p, unsigned minor, unsigned word, uint64_t value, struct err *e)
{
	static const uint64_t *const tables[] = {of_3_13, of_3_14, of_3_15, free_3_14, free_3_15};

	memcpy(table, tables[minor > FREE ? 3 + minor - (FREE + 14) : minor - 13], sizeof(table));
	minor %= FREE;
	memcpy(table, PY_COOKIE, sizeof(table[0]));
	if (word)
		table[word] = value;
	p->l = *py_layout_of(minor);
	p->runtime = (uintptr_t)table;
	*e = (struct err){0};
	return py_describe(p, e);
}

static void check_described(struct tgt *t)
{
	struct py p = {.t = t};
	const struct mxbpf_python *w = &p.l.walk;
	struct err e;

	CHECK(!describe(&p, 13, 0, 0, &e) && p.l.runtime_interp == 632 && p.l.interp_states == 7344);
	CHECK(p.l.state_next == 8 && w->state_start == 72 && w->state_thread == 152 - 72 && w->frame_back == 8);
	CHECK(!w->frame_code && w->frame_instr == 56 && w->frame_local == 72 && w->frame_owner == 70);
	CHECK(p.l.code_file == 112 && p.l.code_name == 120 && p.l.code_lines == 136 && p.l.code_first == 68);
	CHECK(w->code_instrs == 200);
	CHECK(!describe(&p, 14, 0, 0, &e) && p.l.runtime_interp == 808 && p.l.interp_states == 7344);
	CHECK(p.l.state_next == 8 && w->state_start == 72 && w->state_thread == 152 - 72 && w->frame_back == 8);
	CHECK(!w->frame_code && w->frame_instr == 56 && w->frame_local == 80 && w->frame_owner == 74);
	CHECK(p.l.code_file == 112 && p.l.code_name == 120 && p.l.code_lines == 136 && p.l.code_first == 68);
	CHECK(w->code_instrs == 208);
	CHECK(!describe(&p, 15, 0, 0, &e) && p.l.runtime_interp == 936 && p.l.interp_states == 7336);
	CHECK(p.l.state_next == 8 && w->state_start == 72 && w->state_thread == 176 - 72 && w->frame_back == 8);
	CHECK(!w->frame_code && w->frame_instr == 56 && w->frame_local == 80 && w->frame_owner == 74);
	CHECK(p.l.code_file == 112 && p.l.code_name == 120 && p.l.code_lines == 136 && p.l.code_first == 68);
	CHECK(w->code_instrs == 208 && w->head == 16 && !w->text_shift && w->frame_copy == MXBPF_PY_NONE);
}

static void check_free_threaded(struct tgt *t)
{
	struct py p = {.t = t};
	const struct mxbpf_python *w = &p.l.walk;
	struct err e;

	CHECK(!describe(&p, FREE + 14, 0, 0, &e) && w->head == 32 && w->text_shift == 6);
	CHECK(w->frame_owner == 78 && w->frame_copy == 72 && w->code_instrs == 232 && w->code_copies == 224);
	CHECK(p.l.code_file == 128 && w->code_file == 128 - 32 && p.l.code_name == 136 && p.l.code_first == 84);
	CHECK(!describe(&p, FREE + 15, 0, 0, &e) && w->head == 32 && w->text_shift == 6 && p.l.code_file == 128);
	CHECK(w->frame_owner == 78 && w->frame_copy == 72 && w->code_instrs == 232 && w->code_copies == 224);
	/* The strings of 3.13 have the same state in both builds, and its threads have no copies. */
	CHECK(!describe(&p, 13, 2, 1, &e) && w->head == 32 && !w->text_shift && w->frame_copy == MXBPF_PY_NONE);
	CHECK(describe(&p, FREE + 14, 38, 80, &e) == -ENOTSUP && strstr(e.why, "another layout than the release"));
	CHECK(describe(&p, FREE + 14, 49, 1 << 16, &e) == -ENOTSUP);
}

static void check_refused(struct tgt *t)
{
	struct py p = {.t = t};
	unsigned minor;
	struct err e;

	for (minor = 13; minor <= 15; minor++) {
		CHECK(describe(&p, minor, 1, 0x30000b4 | minor << 16, &e) == -ENOTSUP);
		CHECK(describe(&p, minor, 1, 0x31000f0, &e) == -ENOTSUP);
		CHECK(describe(&p, minor, minor == 15 ? 44 : minor == 14 ? 36 : 33, 80, &e) == -ENOTSUP);
		CHECK(strstr(e.why, "another layout than the release"));
	}
}

/* ---- frames of 3.14, which this process imitates */

#define STATIC_COUNT (5ull << 48 | 3ull << 30) /* of a static object: flags and count */

enum { OWNER_THREAD, OWNER_INTERPRETER = 3, OWNER_CSTACK };

struct text {
	uint64_t head[2], len, hash;
	uint32_t state, pad;
	char bytes[MXBPF_PY_TEXT_BYTES];
};
struct bytes {
	uint64_t head[2], len, hash;
	uint8_t bytes[8];
};
struct code {
	uint64_t head[2], words[6];
	uint32_t stack, first, more[10];
	const struct text *file, *name, *full_name;
	const struct bytes *lines;
	uint64_t rest[8];
	uint8_t instrs[16];
};
struct frame {
	uint64_t code;
	struct frame *back;
	uint64_t objects[5], instr, stack;
	uint16_t returns;
	uint8_t owner, visited;
	uint64_t local;
};
struct state {
	uint64_t before[9];
	struct frame *frame;
	uint64_t between[9], thread;
};

static uint64_t code_type, text_type, bytes_type;
static struct text file = {.len = 8, .bytes = "train.py"}, step = {.len = 4, .bytes = "step"};
static struct text init = {.len = 8, .bytes = "__init__"};
static struct bytes lines = {.head = {1, (uintptr_t)&bytes_type}, .len = 2, .bytes = {0x80 | 11 << 3 | 3, 0}};
static struct code code = {
	.head = {1, (uintptr_t)&code_type}, .first = 7, .file = &file, .name = &step, .lines = &lines};
static struct code cleanup = {.file = &init, .name = &init, .lines = &lines};
static struct frame frames[5]; /* the first frame is the outermost one */
static struct state state;
static struct state *thread[1] = {&state};

static void run_frames(uint64_t tag)
{
	static struct text *const texts[] = {&file, &step, &init};
	size_t i;

	for (i = 0; i < COUNT(texts); i++) {
		texts[i]->head[0] = STATIC_COUNT;
		texts[i]->head[1] = (uintptr_t)&text_type;
		texts[i]->state = MXBPF_PY_STATE_ASCII | 1 << 5 | 1 << 2;
	}
	cleanup.head[0] = STATIC_COUNT;
	cleanup.head[1] = (uintptr_t)&code_type;
	for (i = 0; i < COUNT(frames); i++)
		frames[i] = (struct frame){.code = (uintptr_t)&code | tag,
					   .back = i ? &frames[i - 1] : NULL,
					   .instr = (uintptr_t)code.instrs + 2};
	frames[0].owner = OWNER_INTERPRETER;
	frames[2].owner = OWNER_CSTACK;
	frames[0].code = frames[2].code = 1;
	frames[3].code = (uintptr_t)&cleanup | tag;
	frames[3].instr = (uintptr_t)cleanup.instrs;
	state.frame = &frames[4];
	state.thread = (uintptr_t)thread;
}

static struct py *open_imitation(struct tgt *t)
{
	struct py *p = calloc(1, sizeof(*p));
	struct err e;

	if (!p)
		abort();
	*p = (struct py){.t = t,
			 .code_type = (uintptr_t)&code_type,
			 .text_type = (uintptr_t)&text_type,
			 .bytes_type = (uintptr_t)&bytes_type};
	CHECK(!describe(p, 14, 0, 0, &e));
	return p;
}

/* Returns true if the stack of the imitated thread has this text. */
static bool stack_is(struct tgt *t, const char *text, unsigned frames_lost)
{
	struct py *p = open_imitation(t);
	struct mxbpf_stack s;
	unsigned lost = 0;
	char buf[256];
	size_t n = 0;

	if (!py_thread_stack(p, (uintptr_t)thread, &s))
		n = py_stack_text(p, &s, buf, sizeof(buf), &lost);
	py_close(p);
	return n == strlen(text) && !memcmp(buf, text, n) && lost == frames_lost;
}

static void check_walk(struct tgt *t)
{
	static const char two[] = "train.py(8): step\ntrain.py(8): step";

	run_frames(0);
	CHECK(stack_is(t, two, 0));
	run_frames(1);
	CHECK(stack_is(t, two, 0));
}

/* A freed object keeps everything but its count, which becomes a pointer to another freed object. */
static void check_freed(struct tgt *t)
{
	run_frames(1);
	file.head[0] = (uintptr_t)&step;
	CHECK(stack_is(t, "[its code is gone]\n[its code is gone]", 2));
}

/* A program that makes new code for ever, each with a large table of lines. Returns the most bytes that were kept. */
static size_t most_kept(struct tgt *t, unsigned codes)
{
	struct big {
		struct bytes b;
		uint8_t more[1000000];
	} *big = calloc(1, sizeof(*big));
	struct py *p = open_imitation(t);
	struct mxbpf_stack s;
	size_t most = 0;
	unsigned lost;
	char buf[256];

	if (!big)
		abort();
	run_frames(0);
	big->b = (struct bytes){.head = {1, (uintptr_t)&bytes_type}, .len = sizeof(big->more)};
	code.lines = &big->b;
	for (; codes; codes--) {
		code.first = codes;
		CHECK(!py_thread_stack(p, (uintptr_t)thread, &s) && py_stack_text(p, &s, buf, sizeof(buf), &lost) &&
		      !lost);
		most = p->codes_bytes > most ? p->codes_bytes : most;
	}
	py_close(p);
	code.lines = &lines;
	code.first = 7;
	free(big);
	return most;
}

int main(void)
{
	unsigned minor;
	struct err e = {0};
	struct tgt *t;
	struct py *p;
	size_t i;

	TEST("each instruction has the line that its interpreter reports, for all three forms of line tables")
	{
		for (i = 0; i < COUNT(python_lines); i++) {
			if (wrong_lines(i))
				printf("# %s: %u instructions\n", python_lines[i].of, wrong_lines(i));
			CHECK(!wrong_lines(i));
		}
	}
	TEST("a damaged table is not read beyond its end")
	{
		read_damaged(py_line_lnotab);
		read_damaged(py_line_ranges);
		read_damaged(py_line_location);
	}
	TEST("an empty table gives no line but that of the function")
	{
		CHECK(py_line_lnotab(NULL, 0, 7, 0) == 7);
		CHECK(!py_line_ranges(NULL, 0, 7, 0));
		CHECK(!py_line_location(NULL, 0, 7, 0));
	}
	TEST("CPython 3.8 to 3.15 are known, and other versions are not")
	{
		for (minor = 8; minor <= 15; minor++)
			CHECK(py_layout_of(minor) && py_layout_of(minor)->minor == minor);
		CHECK(!py_layout_of(7) && !py_layout_of(16) && !py_layout_of(0));
	}
	TEST("each object that BPF reads at once fits its buffer with all fields that BPF uses")
	{
		for (minor = 8; minor <= 15; minor++) {
			const struct mxbpf_python *w = &py_layout_of(minor)->walk;

			CHECK(w->state_thread + 8 <= MXBPF_PY_STATE_BYTES &&
			      w->state_frame + 8 <= MXBPF_PY_STATE_BYTES);
			CHECK(w->frame_bytes <= MXBPF_PY_FRAME_BYTES && w->frame_back + 8 <= w->frame_bytes &&
			      w->frame_code + 8 <= w->frame_bytes);
			CHECK(w->frame_instr + 8 <= w->frame_bytes);
			CHECK(w->frame_owner == MXBPF_PY_NONE || w->frame_owner < w->frame_bytes);
			for (i = 0; i < MXBPF_PY_PRINT_WORDS; i++)
				CHECK(w->code_print[i] + 8 <= MXBPF_PY_CODE_BYTES);
			CHECK(w->text + MXBPF_PY_PRINT_TEXT <= MXBPF_PY_TEXT_BYTES);
		}
	}
	if (tgt_open(getpid(), &t, &e))
		return 1;
	TEST("the offsets of CPython 3.13 to 3.15 are read from the tables of their releases")
	{
		check_described(t);
	}
	TEST("without a global lock objects have longer heads, and threads execute copies of code")
	{
		check_free_threaded(t);
	}
	TEST("a preview and a frame that is too large are refused with the reason")
	{
		check_refused(t);
	}
	TEST("user space walks frames of CPython 3.14 with and without tags, without the interpreter's own frames")
	{
		check_walk(t);
	}
	TEST("a program that makes new code for ever costs a limited amount of memory")
	{
		size_t most = most_kept(t, 80);

		CHECK(most > 60000000 && most < 70000000);
	}
	TEST("a freed string is not read, and static strings are")
	{
		check_freed(t);
	}
	tgt_close(t);
	TEST("a process without Python is refused with a reason")
	{
		CHECK(!tgt_open(getpid(), &t, &e));
		CHECK(py_open(t, &p, &e) == -2 && !p && e.cls == ERR_TARGET && strstr(e.why, "no Python"));
		tgt_close(t);
	}
	UNIT_MAIN_END;
}
