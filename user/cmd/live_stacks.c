// SPDX-License-Identifier: Apache-2.0
/*
 * Python's stacks. BPF knows frames by addresses of code objects, which mean something in one process, for a while;
 * here they become texts, and spans bear the ids of these: equal texts have one id, whatever instruction of the line it
 * was.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/live.h"
#include "python/python.h"

/* An interpreter of a process. */
struct interp {
	struct tgt *owned; /* NULL: the session's target */
	struct py *py;	   /* NULL: its stacks cannot be told */
};

struct stacks {
	struct interp first;
	struct hash interps; /* tgid -> struct interp *, owned; not the first */
	struct hash ids;     /* (BPF's id, tgid) -> id of the text; 0 none */
	uint64_t lost;	     /* frames whose code was gone, and stacks of which nothing can be told */
};

int live_stacks_open(struct live *l, struct err *e)
{
	struct err why = {0};

	l->stacks = calloc(1, sizeof(*l->stacks));
	if (!l->stacks)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	if (py_open(l->target, &l->stacks->first.py, &why))
		return err_set(e, why.cls, why.code, "--py-stacks: process %d (%s): %s", tgt_pid(l->target),
			       tgt_comm(l->target), why.why);
	return 0;
}

const struct mxbpf_python *live_python(const struct live *l)
{
	return l->stacks ? py_offsets(l->stacks->first.py) : NULL;
}

static void interp_free(struct interp *i)
{
	if (!i)
		return;
	py_close(i->py);
	tgt_close(i->owned);
	free(i);
}

/* What a child runs. BPF walks all processes as it does the first. */
static struct interp *interp_new(struct live *l, uint32_t tgid)
{
	struct interp *i = calloc(1, sizeof(*i));
	struct err e = {0};

	if (!i)
		return NULL;
	if (!tgt_open((pid_t)tgid, &i->owned, &e))
		py_open(i->owned, &i->py, &e);
	if (i->py && memcmp(py_offsets(i->py), live_python(l), sizeof(*live_python(l)))) {
		err_set(&e, ERR_TARGET, -ENOTSUP, "it runs another Python, %s", py_version(i->py));
		py_close(i->py);
		i->py = NULL;
	}
	if (!i->py && e.code != -ESRCH && (l->o->details & MXBPF_DETAIL_STACK))
		cmd_warn("no Python stacks of process %u: %s", tgid, e.why);
	return i;
}

/* NULL: none, one that is not known, or it has ended. */
static struct py *py_of(struct live *l, uint32_t tgid)
{
	uint64_t *known;

	if (tgid == (uint32_t)tgt_pid(l->target) && !tgt_gone(l->target))
		return l->stacks->first.py;
	known = hash_put(&l->stacks->interps, tgid, 0);
	if (known && !*known)
		*known = (uintptr_t)interp_new(l, tgid);
	return known && *known ? ((struct interp *)(uintptr_t)*known)->py : NULL;
}

void live_stacks_join(struct live *l, uint32_t tgid)
{
	uint64_t before;

	if (!l->stacks)
		return;
	pthread_mutex_lock(&l->lock);
	if (hash_del(&l->stacks->interps, tgid, 0, &before)) /* of the program that it was */
		interp_free((struct interp *)(uintptr_t)before);
	py_of(l, tgid);
	pthread_mutex_unlock(&l->lock);
}

/* A forked child that has ended had its code from its parent, at the same addresses: what is still the same there, is
 * it. */
static size_t read_text(struct live *l, uint32_t tgid, const struct mxbpf_stack *s, char *text, unsigned *lost)
{
	struct py *py = py_of(l, tgid), *first = l->stacks->first.py;
	unsigned gone;
	size_t len;

	len = py_stack_text(py ? py : first, s, text, MXBPF_NAME_BYTES_MAX, lost);
	if (!*lost || !py || py == first)
		return len;
	py_stack_text(first, s, text, MXBPF_NAME_BYTES_MAX, &gone);
	return py_stack_text(gone < *lost ? first : py, s, text, MXBPF_NAME_BYTES_MAX, lost);
}

uint64_t live_text_id(struct live *l, enum mxbpf_name_kind kind, uint32_t tgid, const char *text, size_t len)
{
	uint64_t id = plan_text_id(kind, text, len);

	if (!mdl_text(l->model, kind, id, NULL))
		live_feed_name(l, kind, tgid, id, text, len);
	return id;
}

uint64_t live_stack_text_id(struct live *l, uint32_t tgid, const struct mxbpf_stack *s)
{
	static char text[MXBPF_NAME_BYTES_MAX];
	unsigned lost = 0;
	size_t len = l->stacks ? read_text(l, tgid, s, text, &lost) : 0;

	if (!len)
		return 0;
	l->stacks->lost += lost;
	return live_text_id(l, MXBPF_NAME_STACK, tgid, text, len);
}

static uint64_t learn(struct live *l, uint32_t tgid, uint64_t bpf_id)
{
	struct mxbpf_stack s;

	if (!att_read_stack(l->att, bpf_id, &s))
		return live_stack_text_id(l, tgid, &s);
	l->stacks->lost++;
	return 0;
}

uint64_t live_stack_id(struct live *l, uint32_t tgid, uint64_t bpf_id)
{
	uint64_t *known, id;

	if (!l->stacks || !bpf_id)
		return 0;
	known = hash_get(&l->stacks->ids, bpf_id, tgid);
	if (known)
		return *known;
	id = learn(l, tgid, bpf_id);
	known = hash_put(&l->stacks->ids, bpf_id, tgid);
	if (known)
		*known = id;
	return id;
}

uint64_t live_stacks_lost(const struct live *l)
{
	return l->stacks ? l->stacks->lost : 0;
}

void live_stacks_free(struct live *l)
{
	const struct hash_entry *e;
	size_t pos = 0;

	if (!l->stacks)
		return;
	while ((e = hash_next(&l->stacks->interps, &pos)))
		interp_free((struct interp *)(uintptr_t)e->val);
	py_close(l->stacks->first.py);
	hash_fini(&l->stacks->interps);
	hash_fini(&l->stacks->ids);
	free(l->stacks);
	l->stacks = NULL;
}
