// SPDX-License-Identifier: Apache-2.0
/* Finds the names that a record needs, each kind in its own place. */
#include "symbols/priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "mxbpf_agent.h"
#include "records/kinds.h"
#include "ring/ring.h"
#include "symbols/sample.h"

struct sym *sym_new(const struct sym_opts *o)
{
	struct sym *s = calloc(1, sizeof(*s));

	if (s)
		s->o = *o;
	return s;
}

void sym_free(struct sym *s)
{
	if (!s)
		return;
	sym_stacks_free(s);
	smp_free(s->code);
	hash_fini(&s->threads);
	hash_fini(&s->missing);
	hash_fini(&s->apart);
	free(s);
}

int sym_samples_open(struct sym *s)
{
	s->code = smp_new();
	demangle_start();
	return s->code ? 0 : -ENOMEM;
}

void sym_attached(struct sym *s, const struct att *att)
{
	s->att = att;
}

int sym_add(struct sym *s, enum mxbpf_name_kind kind, uint32_t tgid, uint64_t id, const char *text, size_t len)
{
	struct mxbpf_name *n = &s->room.rec;
	size_t size = (sizeof(*n) + len + 7) & ~7ul;
	int err;

	memset(&s->room, 0, size);
	*n = (struct mxbpf_name){.h = {.kind = MXBPF_NAME, .size = (uint16_t)size, .tgid = tgid},
				 .id = id,
				 .len = (uint32_t)len,
				 .kind = kind};
	memcpy(n->text, text, len);
	err = mdl_fold(s->o.model, &n->h);
	s->err = s->err ? s->err : err;
	return err;
}

uint64_t sym_text_id(struct sym *s, enum mxbpf_name_kind kind, uint32_t tgid, const char *text, size_t len)
{
	uint64_t id = plan_text_id(kind, text, len);

	if (!mdl_text(s->o.model, kind, id, NULL))
		sym_add(s, kind, tgid, id, text, len);
	return id;
}

static void learn_thread(struct sym *s, uint32_t tgid, uint32_t tid)
{
	uint64_t *known = hash_put(&s->threads, tgid, tid);
	char comm[32];

	if (!known || *known)
		return;
	*known = 1;
	if (tid != tgid) /* a process is named after its first thread, which may make no calls */
		learn_thread(s, tgid, tgid);
	/* The only handle of a followed process is its pid. If the pid was reused, only this name is wrong. */
	if (tgid == (uint32_t)tgt_pid(s->o.target) ? !tgt_thread_comm(s->o.target, (pid_t)tid, comm)
						   : !tgt_peek_comm((pid_t)tgid, (pid_t)tid, comm))
		sym_add(s, MXBPF_NAME_THREAD, tgid, tid, comm, strlen(comm));
}

static void learn_args(struct sym *s, uint32_t tgid, uint64_t id)
{
	struct buf text = {0};

	if (!sym_args_text(s, id, &text))
		sym_add(s, MXBPF_NAME_ARGS, tgid, id, text.data, text.len);
	else
		hash_put(&s->missing, id, MXBPF_NAME_ARGS);
	buf_fini(&text);
}

static void learn_layer(struct sym *s, uint32_t tgid, uint64_t id)
{
	unsigned tag;
	int len = ring_read_name(att_names_fd(s->att), id, s->text, &tag);

	if (len >= 0)
		sym_add(s, MXBPF_NAME_LAYER, tgid, id, s->text, (size_t)len);
	else
		hash_put(&s->missing, id, MXBPF_NAME_LAYER);
}

/* The name of a user annotation has its domain and a NUL before it. */
static void add_span_name(struct sym *s, uint32_t tgid, uint64_t id, const char *text, size_t len)
{
	const char *end = memchr(text, '\0', len);
	const size_t n = end ? (size_t)(end - text) : 0;

	if (end)
		sym_add(s, MXBPF_NAME_DOMAIN, tgid, id, text, n);
	if (end && n + 1 == len)
		sym_add(s, MXBPF_NAME_SPAN, tgid, id, "[unnamed]", strlen("[unnamed]"));
	else
		sym_add(s, MXBPF_NAME_SPAN, tgid, id, end ? end + 1 : text, end ? len - n - 1 : len);
}

static void learn_span(struct sym *s, uint32_t tgid, uint64_t id)
{
	int len = sym_span_name(s, tgid, id, s->text);

	if (len >= 0)
		add_span_name(s, tgid, id, s->text, (size_t)len);
	else /* a system call for each span with this id would be too slow for the ring */
		hash_put(&s->missing, id, MXBPF_NAME_SPAN);
}

/* How to look up names when a record has their id. Names of other kinds come through sym_add(). */
static void (*const learners[])(struct sym *s, uint32_t tgid, uint64_t id) = {
	[MXBPF_NAME_SPAN] = learn_span,
	[MXBPF_NAME_ARGS] = learn_args,
	[MXBPF_NAME_LAYER] = learn_layer,
};
#define NLEARNERS (sizeof(learners) / sizeof(learners[0]))

static bool symbols_is_known(const struct sym *s, unsigned kind, uint64_t id)
{
	if (!id || hash_get(&s->missing, id, kind))
		return true;
	return kind == MXBPF_NAME_SPAN ? mdl_has_name(s->o.model, id) : mdl_text(s->o.model, kind, id, NULL) != NULL;
}

/* BPF appends addresses to a sample. Two ids replace them. */
static void finish_sample(struct sym *s, struct mxbpf_sample *r)
{
	const size_t bytes = MXBPF_SAMPLE_BYTES(mxbpf_sample_nspans(r));
	const struct mxbpf_sample_where *where = (const void *)((const char *)r + bytes);
	size_t len = smp_text(s->code, r, where, s->lines, sizeof(s->lines));

	r->code_id = len ? sym_text_id(s, MXBPF_NAME_CODE, r->h.tgid, s->lines, len) : 0;
	r->stack_id = where->python.n ? sym_stack_text_id(s, r->h.tgid, &where->python) : 0;
	r->h.size = (uint16_t)bytes;
}

uint64_t sym_list_id(struct sym *s, uint32_t tgid, unsigned kind, const uint64_t *list, uint32_t n)
{
	struct buf text = {0};
	uint64_t id = 0;

	if (kind == MXBPF_AGENT_LIST_STACK)
		return sym_list_stack(s, tgid, list, n);
	if (sym_list_text(s, list, n, &id, &text))
		id = 0;
	else if (!mdl_text(s->o.model, MXBPF_NAME_ARGS, id, NULL))
		sym_add(s, MXBPF_NAME_ARGS, tgid, id, text.data, text.len);
	buf_fini(&text);
	return id;
}

#define APART_SHIFT 44 /* above the addresses of files, and below the bits that mark kinds of ids */

/* A name has the id of its text; what has no text yet gets an id that no other build has. 0: not known yet. */
static uint64_t name_apart(struct sym *s, uint32_t tgid, uint64_t id)
{
	int len = sym_span_name(s, tgid, id, s->text);
	uint64_t by_text = len < 0 ? 0 : plan_text_id(0, s->text, (size_t)len);

	if (len < 0)
		return id & MXBPF_NAME_STATIC_BIT ? id | (uint64_t)s->o.apart << APART_SHIFT : 0;
	if (!mdl_has_name(s->o.model, by_text))
		add_span_name(s, tgid, by_text, s->text, (size_t)len);
	return by_text;
}

static uint64_t args_apart(struct sym *s, uint32_t tgid, uint64_t id)
{
	const uint64_t own = id ^ (uint64_t)s->o.apart << APART_SHIFT;
	struct buf text = {0};
	int err = sym_args_text(s, id, &text);

	if (!err)
		sym_add(s, MXBPF_NAME_ARGS, tgid, own, text.data, text.len);
	buf_fini(&text);
	return err ? 0 : own;
}

/* Gives a record ids that mean the same in the whole session. A name that BPF has not stored yet is looked up again. */
static void tell_apart(struct sym *s, struct mxbpf_rec *r, struct kind_id_walk *id)
{
	uint64_t *known = hash_get(&s->apart, id->id, id->of), own;

	if (!id->id || (id->of != MXBPF_NAME_SPAN && id->of != MXBPF_NAME_ARGS) ||
	    hash_get(&s->missing, id->id, id->of))
		return;
	own = known			  ? *known
	      : id->of == MXBPF_NAME_SPAN ? name_apart(s, r->tgid, id->id)
					  : args_apart(s, r->tgid, id->id);
	if (!own)
		return;
	known = known ? known : hash_put(&s->apart, id->id, id->of);
	if (known)
		*known = own;
	*(uint64_t *)((char *)r + id->off) = id->id = own;
}

/*
 * Returns true if a span has nothing new: only a thread and a name, and those of a span before. Most spans of an agent
 * are like that.
 */
static bool is_usual(struct sym *s, const struct mxbpf_rec *r)
{
	const struct mxbpf_span *span = (const void *)r;
	typeof(s->usual[0]) *u;

	if (r->kind != MXBPF_SPAN || r->size != MXBPF_WITH_COST(MXBPF_SPAN_BYTES_PLAIN) ||
	    span->flags & MXBPF_SPAN_USER || span->end_tid != span->tid || s->o.apart)
		return false;
	u = &s->usual[span->name_id & (SYM_USUAL - 1)];
	if (u->name_id == span->name_id && u->tgid == r->tgid && u->tid == span->tid)
		return true;
	if (hash_get(&s->threads, r->tgid, span->tid) && mdl_has_name(s->o.model, span->name_id)) {
		u->name_id = span->name_id;
		u->tgid = r->tgid;
		u->tid = span->tid;
	}
	return false;
}

int sym_learn(struct sym *s, struct mxbpf_rec *r)
{
	struct kind_id_walk id = {0};
	uint32_t tid;
	unsigned i;

	s->err = 0;
	if (is_usual(s, r))
		return 0;
	if (s->code && r->kind == MXBPF_SAMPLE)
		finish_sample(s, (struct mxbpf_sample *)r);
	for (i = 0; i < KIND_THREADS_MAX; i++) {
		tid = kind_thread(r, i);
		if (tid)
			learn_thread(s, r->tgid, tid);
	}
	while (kind_next_id(r, &id)) {
		if (s->o.apart)
			tell_apart(s, r, &id);
		if (id.of == MXBPF_NAME_STACK && id.flags & KIND_ID_RAW && s->stacks)
			*(uint64_t *)((char *)r + id.off) = sym_stack_id(s, r->tgid, id.id);
		else if (id.of < NLEARNERS && learners[id.of] && !symbols_is_known(s, id.of, id.id))
			learners[id.of](s, r->tgid, id.id);
	}
	return s->err;
}

void sym_retry(struct sym *s)
{
	hash_clear(&s->missing);
}
