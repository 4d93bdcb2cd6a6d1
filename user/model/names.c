// SPDX-License-Identifier: Apache-2.0
/* Texts of ids, and names of threads. */
#include "model/priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "records/kinds.h"

struct name {
	uint32_t len;
	bool defined;
	char text[];
};

static struct name *name_new(const char *text, size_t len, bool defined)
{
	struct name *n = mem_alloc(sizeof(*n) + len + 1);

	if (!n)
		return NULL;
	n->len = (uint32_t)len;
	n->defined = defined;
	memcpy(n->text, text, len);
	n->text[len] = 0;
	return n;
}

static struct name *name_get(const struct hash *h, uint64_t a, uint64_t b)
{
	uint64_t *val = hash_get(h, a, b);

	return val ? (struct name *)(uintptr_t)*val : NULL;
}

/* The name of a span or text of this model, or else of the one that lends its names; NULL: neither knows it. */
static const struct name *names_text_of(const struct mdl *m, uint64_t id, enum mxbpf_name_kind kind)
{
	const struct name *n = name_get(&m->names, id, kind);
	const struct name *lent = m->lender && (!n || !n->defined) ? name_get(&m->lender->names, id, kind) : NULL;

	return lent && lent->defined ? lent : n;
}

void mdl_lend_names(struct mdl *m, const struct mdl *lender)
{
	m->lender = lender;
}

/* Sets an entry. The hash owns n afterwards, and the old text is freed. */
static int name_set(struct hash *h, uint64_t a, uint64_t b, struct name *n)
{
	uint64_t *val = n ? hash_put(h, a, b) : NULL;

	if (!val) {
		mem_free(n);
		return -ENOMEM;
	}
	mem_free((void *)(uintptr_t)*val);
	*val = (uintptr_t)n;
	return 0;
}

/*
 * Returns whether a text is known already. The text of an id never changes, because the id is its hash. The name of a
 * thread can change.
 */
static bool names_is_known(const struct name *old, const char *text, size_t len, bool thread)
{
	return old && old->defined && (!thread || (old->len == len && !memcmp(old->text, text, len)));
}

/*
 * Counts the bytes of a new text, because a process could make any number of texts. Names in a recording belong to no
 * process; only the limit of all memory holds for them. Returns 1 if the text is kept, 0, or -ENOMEM.
 */
static int take_text(struct mdl *m, const struct mxbpf_name *r)
{
	uint64_t *bytes = r->h.tgid ? hash_put(&m->text_bytes, r->h.tgid, 0) : NULL;

	if (!r->h.tgid)
		return 1;
	if (!bytes)
		return -ENOMEM;
	if (*bytes + r->len > MDL_TEXT_BYTES_MAX) {
		m->texts_left_out++;
		return 0;
	}
	*bytes += r->len;
	return 1;
}

uint64_t mdl_texts_left_out(const struct mdl *m)
{
	return m->texts_left_out;
}

int names_define(struct mdl *m, const struct mxbpf_name *r)
{
	bool thread = r->kind == MXBPF_NAME_THREAD;
	struct hash *h = thread ? &m->threads : &m->names;
	uint64_t a = thread ? r->h.tgid : r->id, b = thread ? r->id : r->kind;
	int kept;

	if (r->kind > MXBPF_NAME_DOMAIN || names_is_known(name_get(h, a, b), r->text, r->len, thread))
		return 0;
	kept = take_text(m, r);
	return kept <= 0 ? kept : name_set(h, a, b, name_new(r->text, r->len, true));
}

int mdl_expect_name(struct mdl *m, uint64_t id)
{
	static const char more[] = "[more names]";
	char text[24];
	int len;

	if (!id || name_get(&m->names, id, MXBPF_NAME_SPAN))
		return 0;
	if (id == MXBPF_NAME_MORE)
		return name_set(&m->names, id, MXBPF_NAME_SPAN, name_new(more, strlen(more), true));
	len = snprintf(text, sizeof(text), "[0x%llx]", (unsigned long long)id);
	return name_set(&m->names, id, MXBPF_NAME_SPAN, name_new(text, (size_t)len, false));
}

const char *mdl_name(const struct mdl *m, uint64_t name_id, size_t *len)
{
	static const char unreadable[] = "[unreadable]";
	static _Thread_local char unknown[24];
	const struct name *n = name_id ? names_text_of(m, name_id, MXBPF_NAME_SPAN) : NULL;
	const char *text = n ? n->text : unreadable;

	if (name_id && !n) {
		snprintf(unknown, sizeof(unknown), "[0x%llx]", (unsigned long long)name_id);
		text = unknown;
	}
	if (len)
		*len = n ? n->len : strlen(text);
	return text;
}

const char *mdl_text(const struct mdl *m, enum mxbpf_name_kind kind, uint64_t id, size_t *len)
{
	const struct name *n = id ? names_text_of(m, id, kind) : NULL;

	if (!n || !n->defined)
		return NULL;
	if (len)
		*len = n->len;
	return n->text;
}

bool mdl_has_name(const struct mdl *m, uint64_t name_id)
{
	return mdl_text(m, MXBPF_NAME_SPAN, name_id, NULL);
}

const char *mdl_thread_name(const struct mdl *m, uint32_t tgid, uint32_t tid)
{
	const struct name *n = name_get(&m->threads, tgid, tid);

	return n ? n->text : NULL;
}

int names_emit(const struct mdl *m, struct buf *out)
{
	const struct hash_entry *e;
	const struct name *n;
	size_t pos = 0;
	int err = 0;

	while (!err && (e = hash_next(&m->names, &pos))) {
		n = (const struct name *)(uintptr_t)e->val;
		if (n->defined)
			err = kind_put_name(out, (enum mxbpf_name_kind)e->b, 0, e->a, n->text, n->len);
	}
	pos = 0;
	while (!err && (e = hash_next(&m->threads, &pos))) {
		n = (const struct name *)(uintptr_t)e->val;
		err = kind_put_name(out, MXBPF_NAME_THREAD, (uint32_t)e->a, e->b, n->text, n->len);
	}
	return err;
}

static void *dup_name(const void *item)
{
	const struct name *n = item;

	return name_new(n->text, n->len, n->defined);
}

int names_copy(struct mdl *to, const struct mdl *from)
{
	int err = mdl_owned_copy(&to->names, &from->names, dup_name);

	return err ? err : mdl_owned_copy(&to->threads, &from->threads, dup_name);
}

static int copy_texts(struct hash *to, const struct hash *from, bool threads)
{
	const struct hash_entry *e;
	const struct name *n;
	size_t pos = 0;
	int err = 0;

	while (!err && (e = hash_next(from, &pos))) {
		n = (const struct name *)(uintptr_t)e->val;
		if (n->defined && !names_is_known(name_get(to, e->a, e->b), n->text, n->len, threads))
			err = name_set(to, e->a, e->b, dup_name(n));
	}
	return err;
}

int mdl_copy_names(struct mdl *to, const struct mdl *from)
{
	int err = copy_texts(&to->names, &from->names, false);

	return err ? err : copy_texts(&to->threads, &from->threads, true);
}

void names_fini(struct mdl *m)
{
	mdl_owned_fini(&m->names);
	mdl_owned_fini(&m->threads);
}
