// SPDX-License-Identifier: Apache-2.0
/*
 * Turns stacks into text. A code object is read once, and only if it has the content that BPF saw, because another
 * object may be in its place by then.
 */
#include "python/priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"

#define FILE_BYTES_MAX	1024
#define NAME_BYTES_MAX	PY_TYPE_BYTES
#define LINES_BYTES_MAX (1u << 20)
#define CODES_BYTES_MAX (64u << 20) /* limit of kept code objects; a program can make new ones for ever */

/* Offsets that all versions share. The length of a bytes object is the first word after its head. */
#define TYPE_NAME   8 /* from the end of the object's head, as the next three */
#define TYPE_FLAGS  152
#define BYTES_START 16
#define IS_A_TYPE   (1ull << 31) /* flag of metaclasses */

#define LOST_LINE "[its code is gone]"
#define CUT_LINE  "..."

struct code {
	char *file, *name;
	uint8_t *lines;
	size_t lines_bytes;
	uint32_t first;
	bool of_module; /* it is in the module file: py_set_module_file() */
	bool hidden;	/* the program does not see its frames */
};

static void code_free(struct code *c)
{
	if (!c)
		return;
	free(c->file);
	free(c->name);
	free(c->lines);
	free(c);
}

static void forget_codes(struct py *p)
{
	const struct hash_entry *e;
	size_t pos = 0;

	while ((e = hash_next(&p->codes, &pos)))
		code_free((struct code *)(uintptr_t)e->val);
	hash_clear(&p->codes);
	p->codes_bytes = 0;
}

void py_close(struct py *p)
{
	if (!p)
		return;
	forget_codes(p);
	hash_fini(&p->codes);
	free(p);
}

/* ---- strings */

/*
 * Writes one character as UTF-8. Python represents an invalid byte as a lone surrogate. Newlines separate frames here.
 */
static size_t put_char(char *to, uint32_t c)
{
	if (c < 0x20 || c == 0x7f)
		c = '?';
	if (c >= 0xdc80 && c <= 0xdcff) {
		to[0] = (char)(c & 0xff);
		return 1;
	}
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 63));
		to[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	to[0] = (char)(0xf0 | (c >> 18 & 7));
	to[1] = (char)(0x80 | (c >> 12 & 63));
	to[2] = (char)(0x80 | (c >> 6 & 63));
	to[3] = (char)(0x80 | (c & 63));
	return 4;
}

#define COUNT_FLAGS (0xffffull << 48) /* from 3.14 on, the upper bits of the reference count are flags */

#define HEAD_MAX_BYTES 32

/*
 * Returns true if an object that begins with these words is alive and of that type. Freed memory keeps everything but
 * its first word. That is the reference count, which becomes a pointer, without bits among the flags, or 0. Without a
 * global lock the counts are the upper half of the second word (references of the thread that made the object) and the
 * third one (of others, with two bits of state), and both are 0 when the object is freed.
 */
static bool is_live(const struct py *p, const uint64_t *head, uint64_t type)
{
	const size_t words = p->l.walk.head / sizeof(*head);
	const uint64_t count = head[0] & ~COUNT_FLAGS;

	if (head[words - 1] != type)
		return false;
	return words > 2 ? head[1] >> 32 || head[2] >> 2 : count && count <= UINT32_MAX;
}

bool py_lives(const struct py *p, uint64_t addr, uint64_t type)
{
	uint64_t head[HEAD_MAX_BYTES / 8];

	return addr && !tgt_read(p->t, addr, head, p->l.walk.head) && is_live(p, head, type);
}

char *py_read_text(const struct py *p, uint64_t addr, size_t max)
{
	uint64_t len;
	const uint16_t head = p->l.walk.head;
	uint32_t state, width, c;
	uint8_t *raw;
	char *text;
	size_t i, n = 0;

	if (!py_lives(p, addr, p->text_type) || !py_word(p, addr + head, &len) ||
	    tgt_read(p->t, addr + head + MXBPF_PY_TEXT_STATE, &state, sizeof(state)))
		return NULL;
	state >>= p->l.walk.text_shift;
	width = state >> 2 & 7;
	if (!(state >> 5 & 1) || (width != 1 && width != 2 && width != 4)) /* not compact */
		return NULL;
	len = len < max ? len : max;
	raw = malloc((size_t)len * width + 1);
	text = malloc((size_t)len * 4 + 1);
	addr += head + (state & MXBPF_PY_STATE_ASCII ? p->l.walk.text : p->l.wide_text);
	if (!raw || !text || tgt_read(p->t, addr, raw, (size_t)len * width)) {
		free(raw);
		free(text);
		return NULL;
	}
	for (i = 0; i < len; i++) {
		c = 0;
		memcpy(&c, raw + i * width, width);
		n += put_char(text + n, c);
	}
	text[n] = '\0';
	free(raw);
	return text;
}

bool py_string(const struct py *p, uint64_t addr, char to[PY_NAME_BYTES])
{
	char *text = py_read_text(p, addr, PY_NAME_BYTES - 1);

	snprintf(to, PY_NAME_BYTES, "%s", text ? text : "");
	free(text);
	return *to;
}

/* ---- code objects */

/* Computes the print of a file's name. */
static bool text_print(const struct py *p, uint64_t addr, uint64_t *print)
{
	uint64_t bytes[MXBPF_PY_TEXT_BYTES / 8] = {0};
	const ssize_t got = tgt_read_some(p->t, addr + p->l.walk.head, bytes, sizeof(bytes));
	size_t n;

	if (got < MXBPF_PY_TEXT_HEAD)
		return false;
	n = bytes[0] < MXBPF_PY_PRINT_TEXT ? bytes[0] : MXBPF_PY_PRINT_TEXT;
	if ((size_t)got < p->l.walk.text + n)
		return false;
	*print = mxbpf_text_print(&p->l.walk, bytes);
	return true;
}

bool py_code_print(const struct py *p, uint64_t code, uint64_t *print)
{
	uint64_t object[(HEAD_MAX_BYTES + MXBPF_PY_CODE_BYTES) / 8], file;
	const uint64_t *bytes = object + p->l.walk.head / sizeof(*object);

	if (!code || tgt_read(p->t, code, object, p->l.walk.head + MXBPF_PY_CODE_BYTES) ||
	    !is_live(p, object, p->code_type) || !text_print(p, MXBPF_PY_WORD(bytes, p->l.walk.code_file), &file))
		return false;
	*print = mxbpf_code_print(&p->l.walk, bytes, file);
	return true;
}

/* Returns true if the object at f->code is still the one that BPF saw. */
static bool text_is_same(const struct py *p, const struct mxbpf_stack_frame *f)
{
	uint64_t print;

	return py_code_print(p, f->code, &print) && f->print == print;
}

static bool read_lines(const struct py *p, uint64_t addr, struct code *c)
{
	uint64_t bytes;

	if (!py_lives(p, addr, p->bytes_type) || !py_word(p, addr + p->l.walk.head, &bytes) || bytes > LINES_BYTES_MAX)
		return false;
	c->lines = malloc(bytes + 1);
	c->lines_bytes = bytes;
	return c->lines && !tgt_read(p->t, addr + p->l.walk.head + BYTES_START, c->lines, bytes);
}

static struct code *read_code(const struct py *p, const struct mxbpf_stack_frame *f)
{
	struct code *c = text_is_same(p, f) ? calloc(1, sizeof(*c)) : NULL;
	uint64_t file, name, lines;

	if (!c)
		return NULL;
	if (py_word(p, f->code + p->l.code_file, &file) && py_word(p, f->code + p->l.code_name, &name) &&
	    py_word(p, f->code + p->l.code_lines, &lines) &&
	    !tgt_read(p->t, f->code + p->l.code_first, &c->first, sizeof(c->first))) {
		c->file = py_read_text(p, file, FILE_BYTES_MAX);
		c->name = py_read_text(p, name, NAME_BYTES_MAX);
	}
	/* Check again, because it may have changed meanwhile. */
	if (!c->file || !c->name || !read_lines(p, lines, c) || !text_is_same(p, f)) {
		code_free(c);
		return NULL;
	}
	c->of_module = p->module_file && fmt_ends_with(c->file, p->module_file);
	/*
	 * From 3.12 on, the interpreter puts a frame of its own, _Py_InitCleanup, around an __init__ that is called
	 * often. Its code is in no line, but code of a program begins at line 1 or later.
	 */
	c->hidden = !c->first && !strcmp(c->file, "__init__") && !strcmp(c->name, "__init__");
	return c;
}

/* Returns NULL if the code object was freed. */
static const struct code *code_of(struct py *p, const struct mxbpf_stack_frame *f)
{
	uint64_t *known = hash_get(&p->codes, f->code, f->print);
	struct code *c;

	if (known)
		return (const struct code *)(uintptr_t)*known;
	c = read_code(p, f);
	known = c ? hash_put(&p->codes, f->code, f->print) : NULL;
	if (!known) {
		code_free(c);
		return NULL;
	}
	*known = (uintptr_t)c;
	p->codes_bytes += sizeof(*c) + strlen(c->file) + strlen(c->name) + c->lines_bytes;
	return c;
}

/* ---- lines of text */

const char *py_short_file(const char *file)
{
	static const char *const roots[] = {"/site-packages/", "/dist-packages/"};
	const char *at;
	size_t i;

	for (i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		at = strstr(file, roots[i]);
		if (at)
			return at + strlen(roots[i]);
	}
	return file;
}

void py_class_name(const struct py *p, uint64_t type, char name[PY_TYPE_BYTES])
{
	uint64_t meta, flags, text;
	char *dot, *c;
	ssize_t n;

	name[0] = '\0';
	if (!py_word(p, type + MXBPF_PY_CLASS(&p->l.walk), &meta) ||
	    !py_word(p, meta + p->l.walk.head + TYPE_FLAGS, &flags) || !(flags & IS_A_TYPE) ||
	    !py_word(p, type + p->l.walk.head + TYPE_NAME, &text))
		return;
	n = tgt_read_some(p->t, text, name, PY_TYPE_BYTES - 1);
	name[n > 0 ? n : 0] = '\0';
	for (c = name; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	dot = strrchr(name, '.');
	if (dot)
		memmove(name, dot + 1, strlen(dot));
}

/*
 * Copies the class of the module that called frame i. The frames outside of frame i must be in the module file, and one
 * of them has the module. The name is "" if anything else called frame i.
 */
static void module_name(const struct py *p, const struct mxbpf_stack *s, const struct code *const *codes, unsigned i,
			char name[NAME_BYTES_MAX])
{
	unsigned k = codes[i] && codes[i]->of_module ? i : i + 1;

	name[0] = '\0';
	if (k == i && i) /* the module was named at the frame that is called from here */
		return;
	for (; k < s->n && codes[k] && codes[k]->of_module && !name[0]; k++)
		if (s->frames[k].type)
			py_class_name(p, s->frames[k].type, name);
}

static size_t frame_text(const struct py *p, const struct mxbpf_stack *s, const struct code *const *codes, unsigned i,
			 char *text, size_t max)
{
	const struct code *c = codes[i];
	char name[NAME_BYTES_MAX];
	uint32_t line;
	int len;

	module_name(p, s, codes, i, name);
	if (!c)
		return (size_t)snprintf(text, max, "%s\n", LOST_LINE);
	line = p->l.line(c->lines, c->lines_bytes, c->first, s->frames[i].instr);
	len = snprintf(text, max, "%s%s%s%s(%u): %s\n", name[0] ? "nn.Module: " : "", name, name[0] ? "\n" : "",
		       py_short_file(c->file), line ? line : c->first, c->name);
	return len < 0 ? max : (size_t)len;
}

size_t py_stack_text(struct py *p, const struct mxbpf_stack *s, char *text, size_t max, unsigned *lost)
{
	const struct code *codes[MXBPF_STACK_FRAMES_MAX];
	unsigned i, n = s->n < MXBPF_STACK_FRAMES_MAX ? s->n : MXBPF_STACK_FRAMES_MAX;
	const size_t end = max - sizeof(CUT_LINE);
	size_t used = 0, more;
	bool cut = s->cut;

	*lost = 0;
	if (p->codes_bytes > CODES_BYTES_MAX)
		forget_codes(p);
	for (i = 0; i < n; i++) {
		codes[i] = code_of(p, &s->frames[i]);
		*lost += !codes[i];
	}
	for (i = 0; i < n; i++) {
		if (codes[i] && codes[i]->hidden)
			continue;
		more = frame_text(p, s, codes, i, text + used, end - used);
		if (more >= end - used) {
			cut = true;
			break;
		}
		used += more;
	}
	if (cut) {
		memcpy(text + used, CUT_LINE "\n", sizeof(CUT_LINE));
		used += sizeof(CUT_LINE);
	}
	return used ? used - 1 : 0; /* without the last newline */
}
