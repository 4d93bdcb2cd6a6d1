// SPDX-License-Identifier: Apache-2.0
/*
 * Finds the locks that the frames of a sleeping thread know. A lock of Python does not say who has it. But a `with`
 * statement keeps the lock's method __exit__ on the stack of its frame, below what the code's table of exceptions says
 * that a handler finds there; what lies above may be left over. An RLock has the base of its owner.
 */
#include "python/priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FRAMES_MAX    64
#define SLOTS_MAX     96
#define NAMES_MAX     256
#define ENTRIES_MAX   4096
#define TYPE_BYTES    32
#define OBJECT_TYPE   8 /* offsets in objects, which all these versions share */
#define TYPE_NAME     24
#define TYPE_BASIC    32
#define METHOD_SELF   24
#define CELL_VALUE    16
#define LOCK_FUTEX    16
#define RLOCK_OWNER   24
#define TUPLE_SIZE    16
#define TUPLE_ITEMS   24
#define DICT_KEYS     32
#define DICT_VALUES   40
#define KEYS_ENTRIES  24
#define KEYS_INDICES  32
#define CODE_HANDLERS 40
#define BYTES_SIZE    16
#define BYTES_START   32
#define HANDLERS_MAX  16384
#define OBJECTS_MAX   100000	/* of a thread: objects and entries, each of which takes a few reads */
#define REFS_MAX      (1 << 20) /* of an object; one that is freed has an address in their place */

/* Offsets that differ: in code objects, in frames, and in classes. */
static const struct version {
	unsigned minor, locals, stack, local_names, names, globals, cached_keys;
} versions[] = {{11, 76, 68, 96, 32, 8, 872}, {12, 72, 64, 96, 32, 24, 880}, {13, 72, 64, 96, 32, 24, 880}};

struct scan {
	struct py *p;
	const struct version *v;
	struct py_locks *to;
	unsigned frame;
	unsigned left; /* objects that may still be looked at */
};

static bool scan_may_read(struct scan *s)
{
	s->left -= s->left > 0;
	return s->left;
}

static bool is_object(uint64_t addr)
{
	return addr > 4096 && !(addr & 7) && addr < 1ull << 47;
}

static bool type_of(struct scan *s, uint64_t object, uint64_t *type, char name[TYPE_BYTES])
{
	uint64_t head[2], text;
	ssize_t n;

	if (!is_object(object) || !scan_may_read(s) || tgt_read(s->p->t, object, head, sizeof(head)) ||
	    head[0] > REFS_MAX || !head[0] || !is_object(head[1]) || !py_word(s->p, head[1] + TYPE_NAME, &text))
		return false;
	*type = head[1];
	n = tgt_read_some(s->p->t, text, name, TYPE_BYTES - 1);
	name[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* Adds a lock, unless the object is none. name: address of a string, or 0; of: what it is an attribute of. */
static bool add_lock(struct scan *s, uint64_t object, bool with, const char *of, uint64_t name)
{
	struct py_lock l = {.object = object, .with = with, .frame = s->frame};
	char type[TYPE_BYTES], text[PY_NAME_BYTES];
	uint64_t at, fs_base;

	if (s->to->n == PY_LOCKS_MAX || !type_of(s, object, &at, type))
		return false;
	l.recursive = !strcmp(type, "_thread.RLock");
	if ((!l.recursive && strcmp(type, "_thread.lock")) || !py_word(s->p, object + LOCK_FUTEX, &l.futex))
		return false;
	if (l.recursive && py_word(s->p, object + RLOCK_OWNER, &fs_base))
		l.owner = fs_base;
	if (name && py_string(s->p, name, text))
		snprintf(l.name, sizeof(l.name), "%s%s%s", of, *of ? "." : "", text);
	s->to->list[s->to->n++] = l;
	return true;
}

/* Calls fn for each value of a dictionary, or of the attributes of an object whose values stand apart from the keys. */
typedef void (*entry_fn)(struct scan *s, void *ctx, uint64_t key, uint64_t value);

static void each_entry(struct scan *s, uint64_t keys, uint64_t values, entry_fn fn, void *ctx)
{
	uint64_t entry[3], n, i, value, at;
	uint8_t head[12];
	unsigned words;

	if (!is_object(keys) || tgt_read(s->p->t, keys, head, sizeof(head)) || head[9] > 32 ||
	    !py_word(s->p, keys + KEYS_ENTRIES, &n))
		return;
	words = head[10] ? 2 : 3; /* without the hash if all keys are strings */
	at = keys + KEYS_INDICES + (1ull << head[9]);
	for (i = 0; i < n && i < ENTRIES_MAX && scan_may_read(s); i++) {
		if (tgt_read(s->p->t, at + i * words * 8, entry, words * 8))
			return;
		value = entry[words - 1];
		if (values && !py_word(s->p, values + i * 8, &value))
			return;
		if (value)
			fn(s, ctx, entry[words - 2], value);
	}
}

static void each_of_dict(struct scan *s, uint64_t dict, entry_fn fn, void *ctx)
{
	uint64_t keys, values;

	if (is_object(dict) && py_word(s->p, dict + DICT_KEYS, &keys) && py_word(s->p, dict + DICT_VALUES, &values))
		each_entry(s, keys, values, fn, ctx);
}

/* The attributes of an object, which are in a dictionary only if somebody has asked for it. */
static void each_attribute(struct scan *s, uint64_t object, entry_fn fn, void *ctx)
{
	uint64_t type, keys, dict, values = 0, basic;
	char name[TYPE_BYTES];

	if (!type_of(s, object, &type, name) || !py_word(s->p, object - 24, &dict))
		return;
	if (s->v->minor == 11) {
		py_word(s->p, object - 32, &values);
	} else if (s->v->minor == 12) {
		values = dict & 1 ? dict + 1 : 0;
		dict = dict & 1 ? 0 : dict;
	} else if (!dict && py_word(s->p, type + TYPE_BASIC, &basic) && basic < ENTRIES_MAX) {
		values = object + basic + 8;
	}
	if (is_object(dict))
		each_of_dict(s, dict, fn, ctx);
	else if (is_object(values) && py_word(s->p, type + s->v->cached_keys, &keys))
		each_entry(s, keys, values, fn, ctx);
}

static void on_attribute(struct scan *s, void *ctx, uint64_t key, uint64_t value)
{
	add_lock(s, value, false, ctx, key);
}

struct names {
	uint64_t list[NAMES_MAX];
	unsigned n;
};

/* A global variable counts if the code of the frame has its name. */
static void on_global(struct scan *s, void *ctx, uint64_t key, uint64_t value)
{
	const struct names *names = ctx;
	unsigned i;

	for (i = 0; i < names->n && names->list[i] != key; i++)
		;
	if (i < names->n)
		add_lock(s, value, false, "", key);
}

static void read_names(const struct scan *s, uint64_t tuple, struct names *to)
{
	uint64_t n = 0;

	to->n = 0;
	if (py_word(s->p, tuple + TUPLE_SIZE, &n) &&
	    !tgt_read(s->p->t, tuple + TUPLE_ITEMS, to->list, 8 * (n < NAMES_MAX ? n : NAMES_MAX)))
		to->n = (unsigned)(n < NAMES_MAX ? n : NAMES_MAX);
}

static void on_thread(struct scan *s, void *ctx, uint64_t key, uint64_t value)
{
	char name[PY_NAME_BYTES];

	if (py_string(s->p, key, name) && !strcmp(name, "_name"))
		py_string(s->p, value, s->to->thread);
}

/* A variable, or what the interpreter has on the frame's stack. */
static void scan_slot(struct scan *s, uint64_t object, uint64_t name, bool kept)
{
	char type[TYPE_BYTES], of[PY_NAME_BYTES] = "";
	uint64_t at, self;

	if (!type_of(s, object, &at, type))
		return;
	if (!strcmp(type, "cell") && py_word(s->p, object + CELL_VALUE, &self)) {
		add_lock(s, self, false, "", name);
	} else if (!strcmp(type, "builtin_function_or_method") && py_word(s->p, object + METHOD_SELF, &self)) {
		add_lock(s, self, kept, "", 0);
	} else if (!add_lock(s, object, false, "", name) && name && py_string(s->p, name, of)) {
		each_attribute(s, object, on_attribute, of);
		if (!strcmp(of, "self") && !s->to->thread[0])
			each_attribute(s, object, on_thread, NULL);
	}
}

/* A number of the table: six bits in a byte, the highest first. Returns false at the end. */
static bool next_number(const uint8_t *table, uint64_t n, uint64_t *at, uint32_t *number)
{
	for (*number = 0; *at < n; (*at)++) {
		*number = *number << 6 | (table[*at] & 0x3f);
		if (!(table[*at] & 0x40)) {
			(*at)++;
			return true;
		}
	}
	return false;
}

/* How many words of the frame's stack the handler of exceptions at an instruction finds. */
static uint32_t kept_words(const struct scan *s, uint64_t code, uint32_t instr)
{
	uint32_t start, len, target, depth, found = 0;
	uint8_t table[HANDLERS_MAX];
	uint64_t bytes, n, at = 0;

	if (!py_word(s->p, code + CODE_HANDLERS, &bytes) || !py_word(s->p, bytes + BYTES_SIZE, &n) ||
	    n > sizeof(table) || tgt_read(s->p->t, bytes + BYTES_START, table, n))
		return 0;
	while (next_number(table, n, &at, &start) && next_number(table, n, &at, &len) &&
	       next_number(table, n, &at, &target) && next_number(table, n, &at, &depth))
		if (instr / 2 >= start && instr / 2 - start < len)
			found = depth >> 1;
	return found;
}

static void scan_frame(struct scan *s, uint64_t frame, uint64_t code)
{
	uint64_t slots[SLOTS_MAX], globals, locals_tuple, names_tuple;
	uint32_t locals, stack, i, kept;
	struct names names;

	if (tgt_read(s->p->t, code + s->v->locals, &locals, sizeof(locals)) ||
	    tgt_read(s->p->t, code + s->v->stack, &stack, sizeof(stack)) || locals > SLOTS_MAX || stack > SLOTS_MAX ||
	    !py_word(s->p, code + s->v->local_names, &locals_tuple) || !py_word(s->p, code + s->v->names, &names_tuple))
		return;
	stack = locals + stack < SLOTS_MAX ? locals + stack : SLOTS_MAX;
	if (tgt_read(s->p->t, frame + s->p->l.walk.frame_local, slots, stack * sizeof(slots[0])))
		return;
	read_names(s, locals_tuple, &names);
	kept = kept_words(s, code, s->to->stack.frames[s->frame].instr);
	for (i = 0; i < stack; i++)
		scan_slot(s, slots[i], i < locals && i < names.n ? names.list[i] : 0, i >= locals && i - locals < kept);
	read_names(s, names_tuple, &names);
	if (py_word(s->p, frame + s->v->globals, &globals))
		each_of_dict(s, globals, on_global, &names);
}

int py_thread_locks(struct py *p, uint64_t fs_base, unsigned *objects, struct py_locks *to)
{
	const unsigned max = *objects < OBJECTS_MAX ? *objects : OBJECTS_MAX;
	struct scan s = {.p = p, .to = to, .left = max};
	const struct mxbpf_python *w = &p->l.walk;
	struct py_thread t;
	uint64_t state, frame, back, code;
	uint8_t owner;
	size_t i;

	*to = (struct py_locks){.n = 0};
	for (i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		s.v = versions[i].minor == p->l.minor && w->head == 16 ? &versions[i] : s.v;
	if (!s.v || py_thread_stack(p, fs_base, &to->stack) || !py_current_state(p, fs_base, &state) ||
	    !py_read_state(p, state, &t, &back))
		return -ENOENT;
	for (frame = py_top_frame(p, t.frame), i = 0; frame && i < FRAMES_MAX; frame = back, i++) {
		if (!py_word(p, frame + w->frame_back, &back) || !py_word(p, frame + w->frame_code, &code))
			break;
		if (w->frame_owner != MXBPF_PY_NONE &&
		    (tgt_read(p->t, frame + w->frame_owner, &owner, 1) || owner >= MXBPF_PY_OWNER_C))
			continue;
		if (s.frame >= to->stack.n)
			break;
		to->thread[0] = '\0'; /* the outermost `self` with a name is the thread */
		scan_frame(&s, frame, code);
		s.frame++;
	}
	if (frame)
		to->thread[0] = '\0';
	*objects -= max - s.left;
	return 0;
}
