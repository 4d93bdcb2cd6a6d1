// SPDX-License-Identifier: Apache-2.0
/* Folds records into the models and writes them to the recording, with their names first. */
#include <errno.h>
#include <string.h>

#include "base/fmt.h"
#include "base/memory.h"

#include "session/priv.h"

MXBPF_STATIC_ASSERT(SRC_MAX <= MDL_SOURCES_MAX);

/* The functions below run with the lock held. */

/*
 * Without memory the session goes on, and drops all further events: a part of the model may lack what it needs for
 * them. At the end it says what is missing.
 */
static void note_error(struct session *ses, int err)
{
	ses->kept.short_of_memory |= err == -ENOMEM;
	if (err && err != -ENOMEM && !ses->write_error)
		ses->write_error = err;
}

static void begin_keep(struct session *ses, const void *recs)
{
	struct mxbpf_loss loss;

	if (!ses->writer)
		return;
	src_loss_all(ses->hub, &loss);
	rec_writer_begin(ses->writer, recs, &loss);
}

static int keep_one(struct session *ses, const struct mxbpf_rec *r)
{
	const bool whole = r->kind != MXBPF_SPAN || !ses->o->only_intervals;
	int err = whole ? mdl_fold(ses->model, r) : 0;

	if (ses->fresh && !err)
		err = mdl_fold(ses->fresh, r);
	return ses->writer && !err ? rec_writer_add(ses->writer, r, ses->model) : err;
}

static void end_keep(struct session *ses, int err)
{
	int err2 = mdl_fold_end(ses->model);

	err = err ? err : err2;
	err2 = ses->fresh ? mdl_fold_end(ses->fresh) : 0;
	err = err ? err : err2;
	if (ses->writer && !err)
		err = rec_writer_end(ses->writer);
	note_error(ses, err);
}

void ses_took(struct session *ses, unsigned number, uint64_t n, int err)
{
	pthread_mutex_lock(&ses->lock);
	ses->kept.folded[number] += n;
	note_error(ses, err);
	pthread_mutex_unlock(&ses->lock);
}

void ses_keep(struct session *ses, const void *recs, size_t bytes, int err)
{
	const struct mxbpf_rec *r;
	size_t pos = 0;

	pthread_mutex_lock(&ses->lock);
	begin_keep(ses, recs);
	while (!err && (r = kind_next(recs, bytes, &pos))) {
		err = keep_one(ses, r);
		note_error(ses, err);
		err = err == -ENOMEM ? 0 : err;
	}
	end_keep(ses, err);
	pthread_mutex_unlock(&ses->lock);
}

static void retry(struct session *ses)
{
	struct ses_build *b;

	SES_EACH_BUILD(ses, b)
	sym_retry(b->symbols);
}

void ses_learn_locked(struct session *ses, void *recs, size_t bytes)
{
	const struct mxbpf_rec *r;
	size_t pos = 0;

	retry(ses);
	while ((r = kind_next(recs, bytes, &pos)))
		note_error(ses, sym_learn(ses_build_of(ses, r->tgid)->symbols, (struct mxbpf_rec *)r));
}

uint64_t ses_learn_stack(struct session *ses, struct mxbpf_rec *r, const char *text, size_t len)
{
	struct sym *symbols;
	uint64_t id;

	pthread_mutex_lock(&ses->lock);
	symbols = ses_build_of(ses, r->tgid)->symbols;
	note_error(ses, sym_learn(symbols, r));
	id = sym_text_id(symbols, MXBPF_NAME_STACK, r->tgid, text, len);
	pthread_mutex_unlock(&ses->lock);
	return id;
}

void ses_add_name(struct session *ses, enum mxbpf_name_kind kind, uint32_t tgid, uint64_t id, const char *text)
{
	note_error(ses, sym_add(ses->first->symbols, kind, tgid, id, text, strlen(text)));
}

void ses_tell_memory(struct session *ses)
{
	uint64_t unkept = 0;
	char limit[24], n[32];
	unsigned i;

	for (i = 0; i < src_count(ses->hub); i++)
		unkept += ses->kept.dropped[i] + __atomic_load_n(&src_at(ses->hub, i)->unkept, __ATOMIC_RELAXED);
	if (!ses->kept.short_of_memory && !unkept)
		return;
	fmt_bytes(mem_limit_bytes(), limit);
	ses_warn(ses, "mxbpf has reached its limit of %s of memory (--max-memory): %s events were dropped", limit,
		 fmt_count(unkept, n));
	if (ses_add_note(
		    &ses->about, "memory",
		    "mxbpf has reached its limit of %s of memory (--max-memory): %s events were dropped, and names "
		    "may be missing",
		    limit, n))
		note_error(ses, -ENOMEM);
}

/* Sources count their events, and neither names nor what they say of their loss. */
static bool is_event(const struct mxbpf_rec *r)
{
	return r->kind != MXBPF_NAME && r->kind != MXBPF_LOST;
}

/* Completes a record with names and text ids. Returns false if no output needs the record. */
static bool prepare(struct session *ses, unsigned number, struct mxbpf_rec *r)
{
	const struct ses_build *b = ses_build_of_source(ses, number);

	note_error(ses, sym_learn((b ? b : ses_build_of(ses, r->tgid))->symbols, r));
	ses->kept.folded[number] += is_event(r);
	ses_note_last(ses, r);
	return !ses->o->ops || ses_ops_keeps(ses, r);
}

static void drop(struct session *ses, unsigned number, const struct mxbpf_rec *r)
{
	ses->kept.folded[number] += is_event(r);
	ses->kept.dropped[number] += is_event(r);
}

/* Walks over a batch once. Moves records that are kept together, because the writer takes them from the batch. */
static void fold_fold(struct session *ses, unsigned number, void *recs, size_t bytes)
{
	const struct mxbpf_rec *next;
	const struct kind *k;
	struct mxbpf_rec *r, *to = recs;
	size_t pos = 0;
	int err = 0;

	pthread_mutex_lock(&ses->lock);
	retry(ses);
	mdl_begin(ses->model, number);
	if (ses->fresh)
		mdl_begin(ses->fresh, number);
	begin_keep(ses, recs);
	while (!err && (next = kind_next(recs, bytes, &pos))) {
		r = (struct mxbpf_rec *)next;
		k = kind_of(r);
		mem_insist(k && k->counts);
		if (ses->kept.short_of_memory && !(k && k->counts)) {
			drop(ses, number, r);
			continue;
		}
		if (!prepare(ses, number, r))
			continue;
		if (to != r)
			memmove(to, r, r->size);
		err = keep_one(ses, to);
		if (err == -ENOMEM) {
			ses->kept.dropped[number]++;
			note_error(ses, err);
			err = 0;
			continue;
		}
		to = (struct mxbpf_rec *)((char *)to + to->size);
	}
	mem_insist(false);
	end_keep(ses, err);
	pthread_mutex_unlock(&ses->lock);
}

void ses_fold(struct ses_build *b, enum att_ring ring, void *recs, size_t bytes)
{
	fold_fold(b->ses, b->rings[ring]->number, recs, bytes);
}

/*
 * Without --sched, switches are for the model alone, which divides the idle time of GPUs by them. Replaces those of a
 * batch by what is needed for that, in place.
 */
static void shorten_switches(const struct session *ses, const struct ses_build *b, unsigned number, void *recs,
			     size_t *bytes)
{
	const struct mxbpf_sched *r;
	struct mxbpf_off_cpu off;
	size_t pos = 0, n = 0;

	if (ses->o->sched || !b || !b->rings[ATT_SWITCHES] || number != b->rings[ATT_SWITCHES]->number)
		return;
	while ((r = (const void *)kind_next(recs, *bytes, &pos))) {
		off = (struct mxbpf_off_cpu){.h = {MXBPF_OFF_CPU, sizeof(off), r->h.tgid, r->h.ts_ns},
					     .woken_ns = r->woken_ns,
					     .back_ns = r->back_ns,
					     .tid = r->tid};
		memcpy((char *)recs + n, &off, sizeof(off));
		n += sizeof(off);
	}
	*bytes = n;
}

void ses_on_batch(void *ctx, unsigned number, void *recs, size_t bytes)
{
	struct session *ses = ctx;
	const struct ses_build *b = ses_build_of_source(ses, number);

	/* The agent is in processes of the first build. */
	if (!ses->agent.accounts || (b && b->number) || ses_agent_join(ses, number, &recs, &bytes)) {
		shorten_switches(ses, b, number, recs, &bytes);
		fold_fold(ses, number, recs, bytes);
	}
	if (!ses->agent.lent)
		return;
	pthread_mutex_lock(&ses->lock);
	ses->kept.folded[number] -= ses->agent.lent;
	ses->kept.folded[ses->first->rings[ATT_CALLS]->number] += ses->agent.lent;
	pthread_mutex_unlock(&ses->lock);
	ses->agent.lent = 0;
}
