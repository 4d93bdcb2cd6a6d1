// SPDX-License-Identifier: Apache-2.0
/* Local variables of functions that a thread is in: what a compiler compiles, and why. */
#include "python/priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"

#define FRAMES_MAX	   1024
#define LOCALS_MAX	   512
#define TEXT_MAX	   1024
#define MINOR_LOCALS_NAMES 11
/* Both from the name of the file in a code object: the tuple with the names of its local variables. */
#define MINOR_TUPLE_HASH 14 /* from this version on, a tuple has its hash before its items */
#define NAMES_BEFORE	 16
#define OLD_NAMES_BEFORE 32 /* until 3.10 */

struct frame {
	uint64_t at, code, next;
	bool of_python;
};

static bool read_frame(const struct py *p, uint64_t at, struct frame *f)
{
	const struct mxbpf_python *w = &p->l.walk;
	uint64_t bytes[MXBPF_PY_FRAME_BYTES / 8 + 1];

	if (tgt_read(p->t, at + w->frame_start, bytes, w->frame_bytes))
		return false;
	*f = (struct frame){.at = at,
			    .code = MXBPF_PY_WORD(bytes, w->frame_code) & MXBPF_PY_POINTER,
			    .next = MXBPF_PY_WORD(bytes, w->frame_back)};
	f->of_python = (w->frame_owner == MXBPF_PY_NONE || *((uint8_t *)bytes + w->frame_owner) < MXBPF_PY_OWNER_C) &&
		       py_lives(p, f->code, p->code_type);
	return true;
}

/* Returns a string of a code object, or NULL; owned. */
static char *text_of(const struct py *p, uint64_t code, size_t off)
{
	uint64_t text;

	return py_word(p, code + off, &text) ? py_read_text(p, text, TEXT_MAX) : NULL;
}

static bool is_function(const struct py *p, uint64_t code, struct py_function of)
{
	char *name = text_of(p, code, p->l.code_name), *file = NULL;
	bool is = name && !strcmp(name, of.name);

	if (is)
		file = text_of(p, code, p->l.code_file);
	is = is && file && fmt_ends_with(file, of.file);
	free(name);
	free(file);
	return is;
}

/* Returns the place of a local variable among those of the frame, or -1. */
static int place_of(const struct py *p, uint64_t code, const char *local)
{
	const size_t before = p->l.minor >= MINOR_LOCALS_NAMES ? NAMES_BEFORE : OLD_NAMES_BEFORE;
	const size_t head = p->l.walk.head, items = head + (p->l.minor >= MINOR_TUPLE_HASH ? 16 : 8);
	uint64_t names, n, name;
	char *text;
	int i, found = -1;

	if (!py_word(p, code + p->l.code_file - before, &names) || !py_word(p, names + head, &n))
		return -1;
	for (i = 0; i < (int)(n < LOCALS_MAX ? n : LOCALS_MAX) && found < 0; i++) {
		if (!py_word(p, names + items + 8 * (uint64_t)i, &name))
			return -1;
		text = py_read_text(p, name, TEXT_MAX);
		if (text && !strcmp(text, local))
			found = i;
		free(text);
	}
	return found;
}

static bool put_code(const struct py *p, uint64_t code, char *text, size_t max)
{
	char *name = text_of(p, code, p->l.code_name), *file = text_of(p, code, p->l.code_file);
	uint32_t first = 0;
	const bool known = name && file && !tgt_read(p->t, code + p->l.code_first, &first, sizeof(first));

	if (known)
		snprintf(text, max, "%s (%s:%u)", name, py_short_file(file), first);
	free(name);
	free(file);
	return known;
}

static bool put_object(const struct py *p, uint64_t object, char *text, size_t max)
{
	char *string;
	uint64_t inside;

	if (py_lives(p, object, p->code_type))
		return put_code(p, object, text, max);
	/* A variable that an inner function uses is in a cell. */
	if (!py_lives(p, object, p->text_type) && py_word(p, object + p->l.walk.head, &inside))
		object = inside;
	string = py_read_text(p, object, max - 1);
	if (!string)
		return false;
	snprintf(text, max, "%s", string);
	free(string);
	return true;
}

bool py_local(const struct py *p, const struct py_thread *t, struct py_function of, const char *local, char *text,
	      size_t max)
{
	uint64_t at = py_top_frame(p, t->frame), object;
	struct frame f;
	unsigned left;
	int place;

	for (left = FRAMES_MAX; at && left && read_frame(p, at, &f); left--, at = f.next) {
		if (!f.of_python || !is_function(p, f.code, of))
			continue;
		place = place_of(p, f.code, local);
		return place >= 0 && py_word(p, at + p->l.walk.frame_local + 8 * (uint64_t)place, &object) &&
		       put_object(p, object & MXBPF_PY_POINTER, text, max);
	}
	return false;
}
