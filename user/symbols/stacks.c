// SPDX-License-Identifier: Apache-2.0
/*
 * Python stacks. BPF identifies frames by addresses of code objects, which are valid in one process and for a limited
 * time. This file turns them into texts and gives spans the ids of these texts. Equal texts share an id.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python/python.h"
#include "symbols/ended.h"
#include "symbols/priv.h"

/* The interpreter of a process. */
struct interp {
	struct tgt *owned; /* NULL: it is the session's target */
	struct py *py;	   /* NULL: its stacks cannot be read */
	bool refused;	   /* and the reason was told */
};

struct stacks {
	struct interp first;
	struct hash interps; /* tgid -> struct interp *, owned; without the first */
	struct hash ids;     /* (BPF's id, tgid) -> id of the text; 0: none */
	uint64_t lost;	     /* frames whose code was freed, and stacks that could not be read */
};

int sym_python_open(struct sym *s, struct err *e)
{
	int err;

	s->stacks = calloc(1, sizeof(*s->stacks));
	if (!s->stacks)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	err = py_open(s->o.target, &s->stacks->first.py, e);
	if (err)
		sym_stacks_free(s);
	else
		py_set_module_file(s->stacks->first.py, s->o.plan->adp->module_file);
	return err;
}

const struct mxbpf_python *sym_python(const struct sym *s)
{
	return s->stacks ? py_offsets(s->stacks->first.py) : NULL;
}

static void interp_free(void *value)
{
	struct interp *i = value;

	if (!i)
		return;
	py_close(i->py);
	tgt_close(i->owned);
	free(i);
}

static const struct tgt *interp_target(const void *value)
{
	return ((const struct interp *)value)->owned;
}

static const struct sym_owner interps = {interp_target, interp_free};

/* Says once why a process has no stacks, or none from now on. */
static void refuse(const struct sym *s, struct interp *i, uint32_t tgid, const struct err *e)
{
	char text[sizeof(e->why) + 64];

	snprintf(text, sizeof(text), "no Python stacks of process %u: %s", tgid, e->why);
	if (!i->refused && s->o.warn)
		s->o.warn(s->o.ctx, text);
	i->refused = true;
}

/* Opens the interpreter of another process. BPF can walk its stacks only if it is the same Python as the first. */
static struct interp *interp_new(struct sym *s, uint32_t tgid)
{
	struct interp *i = calloc(1, sizeof(*i));
	struct err e = {0};

	if (!i)
		return NULL;
	if (!tgt_open((pid_t)tgid, &i->owned, &e))
		py_open(i->owned, &i->py, &e);
	if (i->py)
		py_set_module_file(i->py, s->o.plan->adp->module_file);
	if (i->py && memcmp(py_offsets(i->py), sym_python(s), sizeof(*sym_python(s)))) {
		err_set(&e, ERR_TARGET, -ENOTSUP, "it runs another Python, %s", py_version(i->py));
		py_close(i->py);
		i->py = NULL;
	}
	if (!i->py && e.code != -ESRCH)
		refuse(s, i, tgid, &e);
	return i;
}

/* Returns NULL if there is no memory. */
static struct interp *interp_of(struct sym *s, uint32_t tgid)
{
	uint64_t *known;

	if (tgid == (uint32_t)tgt_pid(s->o.target) && !tgt_gone(s->o.target))
		return &s->stacks->first;
	if (!hash_get(&s->stacks->interps, tgid, 0))
		sym_forget_ended(&s->stacks->interps, &interps);
	known = hash_put(&s->stacks->interps, tgid, 0);
	if (known && !*known)
		*known = (uintptr_t)interp_new(s, tgid);
	return known ? (struct interp *)(uintptr_t)*known : NULL;
}

/* Returns NULL if there is none, if it is unknown, or if the process has ended. */
static struct py *py_of(struct sym *s, uint32_t tgid)
{
	const struct interp *i = interp_of(s, tgid);

	return i ? i->py : NULL;
}

uint64_t sym_python_is_finalizing(struct sym *s, uint32_t tgid)
{
	struct py *py = s->stacks ? py_of(s, tgid) : NULL;

	return py ? py_is_finalizing(py) : 0;
}

void sym_joined(struct sym *s, uint32_t tgid)
{
	uint64_t before;

	if (!s->stacks)
		return;
	if (hash_del(&s->stacks->interps, tgid, 0, &before)) /* that of the program before exec */
		interp_free((struct interp *)(uintptr_t)before);
	py_of(s, tgid);
}

/*
 * Reads a stack. A forked child that has ended had its code objects at the addresses of its parent, so those that are
 * unchanged there are valid.
 */
static size_t read_text(struct sym *s, uint32_t tgid, const struct mxbpf_stack *frames, unsigned *lost)
{
	struct py *py = py_of(s, tgid), *first = s->stacks->first.py;
	unsigned gone;
	size_t len;

	len = py_stack_text(py ? py : first, frames, s->text, sizeof(s->text), lost);
	if (!*lost || !py || py == first)
		return len;
	py_stack_text(first, frames, s->text, sizeof(s->text), &gone);
	return py_stack_text(gone < *lost ? first : py, frames, s->text, sizeof(s->text), lost);
}

/* Returns false if the stacks of a process may be wrong by now. */
static bool is_right(struct sym *s, uint32_t tgid)
{
	struct interp *i = interp_of(s, tgid);
	struct err e = {0};

	if (!i || !i->py || !py_check(i->py, &e))
		return true;
	refuse(s, i, tgid, &e);
	s->stacks->lost++;
	return false;
}

uint64_t sym_stack_text_id(struct sym *s, uint32_t tgid, const struct mxbpf_stack *frames)
{
	unsigned lost = 0;
	size_t len = s->stacks && is_right(s, tgid) ? read_text(s, tgid, frames, &lost) : 0;

	if (!len)
		return 0;
	s->stacks->lost += lost;
	return sym_text_id(s, MXBPF_NAME_STACK, tgid, s->text, len);
}

static uint64_t learn(struct sym *s, uint32_t tgid, uint64_t bpf_id)
{
	struct mxbpf_stack frames;

	if (!att_read_stack(s->att, bpf_id, &frames))
		return sym_stack_text_id(s, tgid, &frames);
	s->stacks->lost++;
	return 0;
}

uint64_t sym_stack_id(struct sym *s, uint32_t tgid, uint64_t bpf_id)
{
	uint64_t *known = hash_get(&s->stacks->ids, bpf_id, tgid), id;

	if (known)
		return *known;
	id = learn(s, tgid, bpf_id);
	known = hash_put(&s->stacks->ids, bpf_id, tgid);
	if (known)
		*known = id;
	return id;
}

uint64_t sym_list_stack(struct sym *s, uint32_t tgid, const uint64_t *list, uint32_t n)
{
	const uint64_t words = sizeof(struct mxbpf_stack_frame) / sizeof(*list);
	struct mxbpf_stack frames = {.n = (n - 1) / (uint32_t)words, .cut = list[0] & 1};
	uint64_t id = plan_text_id(MXBPF_NAME_STACK, (const char *)list, n * sizeof(*list)), *known;

	if (!s->stacks || frames.n > MXBPF_STACK_FRAMES_MAX)
		return 0;
	memcpy(frames.frames, list + 1, frames.n * sizeof(frames.frames[0]));
	known = hash_put(&s->stacks->ids, id, tgid);
	if (!known)
		return 0;
	if (!*known)
		*known = sym_stack_text_id(s, tgid, &frames);
	return id;
}

uint64_t sym_lost(const struct sym *s)
{
	return s->stacks ? s->stacks->lost : 0;
}

void sym_stacks_free(struct sym *s)
{
	const struct hash_entry *e;
	size_t pos = 0;

	if (!s->stacks)
		return;
	while ((e = hash_next(&s->stacks->interps, &pos)))
		interp_free((struct interp *)(uintptr_t)e->val);
	py_close(s->stacks->first.py);
	hash_fini(&s->stacks->interps);
	hash_fini(&s->stacks->ids);
	free(s->stacks);
	s->stacks = NULL;
}
