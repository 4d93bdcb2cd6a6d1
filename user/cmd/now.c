// SPDX-License-Identifier: Apache-2.0
/* `mxbpf now`: records for a short time, and then shows what each thread does. */
#include "cmd/now.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/regs.h"
#include "base/clock.h"
#include "base/hash.h"

#define WINDOW_NS 1000000000ull
#define TRIES	  5

static int by_thread(const void *va, const void *vb)
{
	const struct mxbpf_open *a = va, *b = vb;

	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return a->h.ts_ns > b->h.ts_ns ? -1 : a->h.ts_ns < b->h.ts_ns;
}

const struct mxbpf_open *now_opens(const struct now_view *v, pid_t tid, size_t *n)
{
	size_t all = buf_count(&v->opens, struct mxbpf_open), i = 0;
	const struct mxbpf_open *first;

	*n = 0;
	while (i < all && buf_at(&v->opens, struct mxbpf_open, i)->tid != (uint32_t)tid)
		i++;
	first = i < all ? buf_at(&v->opens, struct mxbpf_open, i) : NULL;
	for (; i < all && buf_at(&v->opens, struct mxbpf_open, i)->tid == (uint32_t)tid; i++)
		++*n;
	return first;
}

const struct mxbpf_span *now_last(const struct now_view *v, pid_t tid)
{
	return ses_last(v->ses, tid);
}

/* Takes the stacks. Tries once more for threads that ran meanwhile. */
static int take(struct now_view *v, const struct regs *r)
{
	struct buf regs = {0};
	int moved, tries = TRIES;

	for (;;) {
		regs.len = 0;
		if (r && regs_read(r, &regs))
			regs.len = 0;
		moved = now_take(v->now, &regs);
		if (moved <= 0 || !--tries)
			break;
		now_again(v->now);
	}
	buf_fini(&regs);
	return moved < 0 ? moved : 0;
}

/* If a thread ran before its stack was taken, keeps only the calls that were open before and after that. */
static void drop_passed(struct now_view *v)
{
	struct mxbpf_open *o = (struct mxbpf_open *)v->opens.data;
	size_t n = buf_count(&v->opens, struct mxbpf_open), kept = 0, i;
	const struct now_thread *t;
	struct buf again = {0};
	struct hash open = {0}, late = {0};

	for (i = 0; (t = now_thread_at(v->now, i)); i++)
		if (t->late)
			hash_put(&late, (uint64_t)t->tid, 0);
	if (late.len)
		ses_opens(v->ses, v->at_ns, &again);
	for (i = 0; i < buf_count(&again, struct mxbpf_open); i++)
		hash_put(&open, buf_at(&again, struct mxbpf_open, i)->tid,
			 buf_at(&again, struct mxbpf_open, i)->h.ts_ns);
	for (i = 0; i < n; i++)
		if (!hash_get(&late, o[i].tid, 0) || hash_get(&open, o[i].tid, o[i].h.ts_ns))
			o[kept++] = o[i];
	v->opens.len = kept * sizeof(*o);
	buf_fini(&again);
	hash_fini(&open);
	hash_fini(&late);
}

/*
 * Everything is read between two looks at each thread. If a thread has not run in between, all that is shown of it
 * belongs to one moment.
 */
static int look(struct now_view *v, const struct regs *r, struct err *e)
{
	int err = now_begin(ses_target(v->ses), ses_plan(v->ses), &v->now, e);

	if (err)
		return err;
	v->at_ns = clock_ns(CLOCK_MONOTONIC);
	ses_opens(v->ses, v->at_ns, &v->opens);
	err = take(v, r);
	drop_passed(v);
	ses_learn(v->ses, v->opens.data, v->opens.len);
	if (v->opens.len)
		qsort(v->opens.data, buf_count(&v->opens, struct mxbpf_open), sizeof(struct mxbpf_open), by_thread);
	return err ? err_set(e, ERR_RUNTIME, err, "out of memory") : 0;
}

static int show(struct now_view *v, struct err *e)
{
	struct err why = {0};

	if (now_finish(v->now, &why))
		cmd_warn("%s", why.why);
	return v->o->format == CMD_JSON ? now_print_json(v, e) : now_print_text(v, e);
}

int cmd_now(const struct cmd_opts *o)
{
	struct cmd_opts own = *o;
	struct now_view v = {.o = &own};
	struct err e = {0}, ended = {0}, why = {0};
	struct regs *regs = NULL;
	struct run r;
	int err;

	own.ses.duration_ns = o->ses.duration_ns ? o->ses.duration_ns : WINDOW_NS;
	own.ses.no_returns = true;
	own.ses.no_follow = true; /* `now` shows one process, without its children */
	err = run_prepare(&r, &own, NULL, &e);
	v.ses = r.ses;
	if (!err) {
		ses_keep_lasts(r.ses);
		err = run_start(&r, &e);
	}
	if (!err) {
		if (regs_open(tgt_pid(ses_target(r.ses)), &regs, &why))
			cmd_warn("%s: native stacks are cut short, and Python stacks are missing", why.why);
		run_wait(&r);
		err = look(&v, regs, &e);
		signals_results(&r, SIGNALS_STOPPING);
		ses_stop(r.ses, err ? &ended : &e);
	}
	if (!err && !e.code)
		err = show(&v, &e);
	regs_close(regs);
	now_free(v.now);
	buf_fini(&v.opens);
	run_free(&r);
	return e.code ? cmd_fail(&e) : CMD_OK;
}
