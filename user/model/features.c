// SPDX-License-Identifier: Apache-2.0
/* Calls the features of a model. */
#include "model/priv.h"

#include <stdlib.h>

/* Features are found by their addresses: slot i of a model is tried first, then the slots behind it. */
static size_t first_slot(const struct mdl_feature *f)
{
	return (size_t)(((uintptr_t)f / 16 * 0x9e3779b97f4a7c15ull) >> (64 - MDL_SLOT_BITS));
}

static struct feature_slot *slot_of(const struct mdl *m, const struct mdl_feature *f)
{
	size_t i = first_slot(f);

	while (m->slots[i].feature && m->slots[i].feature != f)
		i = (i + 1) % MDL_SLOTS;
	return (struct feature_slot *)&m->slots[i];
}

static bool has_state(const struct mdl *m, const struct mdl_feature *f)
{
	return !f->state_bytes || slot_of(m, f)->state;
}

static void add_feature(struct mdl *m, const struct mdl_feature *f)
{
	unsigned i;

	slot_of(m, f)->feature = f;
	for (i = 0; i < MDL_FEATURE_KINDS && f->kinds[i].kind; i++) {
		m->kinds[f->kinds[i].kind].fold = f->kinds[i].fold;
		m->kinds[f->kinds[i].kind].feature = f;
	}
	if (f->before_row)
		m->before_row[m->nbefore_row++] = f->before_row;
	if (f->span)
		m->span[m->nspan++] = f->span;
}

void features_init(struct mdl *m)
{
	const struct mdl_feature *const *f;

	for (f = mdl_features; *f; f++)
		add_feature(m, *f);
}

void mdl_without_devices(struct mdl *m)
{
	const struct mdl_feature *const *f;

	m->nspan = 0;
	for (f = mdl_features; *f; f++)
		if ((*f)->span && !(*f)->of_devices)
			m->span[m->nspan++] = (*f)->span;
}

void features_fini(struct mdl *m)
{
	const struct mdl_feature *const *f;

	for (f = mdl_features; *f; f++) {
		if ((*f)->fini && has_state(m, *f))
			(*f)->fini(m);
		free(slot_of(m, *f)->state);
	}
}

bool mdl_asked(const struct mdl_session *s, const struct mdl_feature *f)
{
	return s->features & f->bit;
}

void *mdl_state(struct mdl *m, const struct mdl_feature *f)
{
	struct feature_slot *slot = slot_of(m, f);

	if (!slot->state)
		slot->state = calloc(1, f->state_bytes);
	return slot->state;
}

const void *mdl_state_of(const struct mdl *m, const struct mdl_feature *f)
{
	return slot_of(m, f)->state;
}

int features_alloc(struct mdl *m, const struct mxbpf_alloc *a)
{
	const struct mdl_feature *const *f;
	int err = 0;

	for (f = mdl_features; *f && !err; f++)
		err = (*f)->alloc ? (*f)->alloc(m, a) : 0;
	return err;
}

int mdl_see_activity(struct mdl *m, const struct mxbpf_activity *a)
{
	const struct mdl_feature *const *f;
	int err = 0;

	for (f = mdl_features; *f && !err; f++)
		err = (*f)->activity ? (*f)->activity(m, a) : 0;
	return err;
}

int mdl_see_launch(struct mdl *m, const struct mxbpf_launch *l)
{
	const struct mdl_feature *const *f;
	int err = 0;

	for (f = mdl_features; *f && !err; f++)
		err = (*f)->launch ? (*f)->launch(m, l) : 0;
	return err;
}

int features_window(struct mdl *m)
{
	const struct mdl_feature *const *f;
	int err = 0;

	for (f = mdl_features; *f && !err; f++)
		err = (*f)->window && has_state(m, *f) ? (*f)->window(m) : 0;
	return err;
}

int features_emit(const struct mdl *m, struct buf *out)
{
	const struct mdl_feature *const *f;
	int err = 0;

	for (f = mdl_features; *f && !err; f++)
		err = (*f)->emit && has_state(m, *f) ? (*f)->emit(m, out) : 0;
	return err;
}

int features_emit_row(const struct mdl_row *row, struct buf *out)
{
	const struct mdl_feature *const *f;
	int err = 0;

	for (f = mdl_features; *f && !err; f++)
		err = (*f)->emit_row ? (*f)->emit_row(row, out) : 0;
	return err;
}

void features_merge_row(struct mdl_row *to, const struct mdl_row *from)
{
	const struct mdl_feature *const *f;

	for (f = mdl_features; *f; f++)
		if ((*f)->merge_row)
			(*f)->merge_row(to, from);
}

void features_own_row(struct mdl_row *row)
{
	const struct mdl_feature *const *f;

	for (f = mdl_features; *f; f++)
		if ((*f)->own_row)
			(*f)->own_row(row);
}

int features_copy(struct mdl *to, const struct mdl *from)
{
	const struct mdl_feature *const *f;
	int err = 0;

	for (f = mdl_features; *f && !err; f++)
		err = (*f)->copy && has_state(from, *f) ? (*f)->copy(to, from) : 0;
	return err;
}

int mdl_move(struct mdl *to, struct mdl *from, uint64_t now_ns)
{
	const struct mdl_feature *const *f;
	int err = 0;

	for (f = mdl_features; *f && !err; f++)
		err = (*f)->move && has_state(from, *f) ? (*f)->move(to, from, now_ns) : 0;
	return err;
}

bool features_sum_kind(const struct mdl *sum, const struct mxbpf_rec *r)
{
	return r->kind < MDL_KINDS && sum->kinds[r->kind].feature && sum->kinds[r->kind].feature->sum;
}

bool features_keep_process(const struct mdl *sum, const struct mxbpf_rec *r)
{
	return r->kind < MDL_KINDS && sum->kinds[r->kind].feature && sum->kinds[r->kind].feature->by_process;
}

int features_sum(struct mdl *sum, const struct mdl *m)
{
	const struct mdl_feature *const *f;
	int err = 0;

	for (f = mdl_features; *f && !err; f++)
		err = (*f)->sum && has_state(m, *f) ? (*f)->sum(sum, m) : 0;
	return err;
}

int features_processes(const struct mdl *m, mdl_process_fn fn, void *ctx)
{
	const struct mdl_feature *const *f;
	int err = 0;

	for (f = mdl_features; *f && !err; f++)
		err = (*f)->processes && has_state(m, *f) ? (*f)->processes(m, fn, ctx) : 0;
	return err;
}
