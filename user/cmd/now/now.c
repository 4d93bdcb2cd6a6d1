// SPDX-License-Identifier: Apache-2.0
/* `mxbpf now`: records for a short time, and then shows what each thread does. */
#include "cmd/now/now.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/regs.h"
#include "base/clock.h"
#include "base/hash.h"

#define WINDOW_NS 1000000000ull
#define TRIES	  5

static int now_by_thread(const void *va, const void *vb)
{
	const struct mxbpf_open *a = va, *b = vb;

	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return a->h.ts_ns > b->h.ts_ns ? -1 : a->h.ts_ns < b->h.ts_ns;
}

const struct mxbpf_open *now_opens(const struct now_view *v, pid_t tid, size_t *n)
{
	size_t all = buf_count(&v->job->opens, struct mxbpf_open), i = 0;
	const struct mxbpf_open *first;

	*n = 0;
	while (i < all && buf_at(&v->job->opens, struct mxbpf_open, i)->tid != (uint32_t)tid)
		i++;
	first = i < all ? buf_at(&v->job->opens, struct mxbpf_open, i) : NULL;
	for (; i < all && buf_at(&v->job->opens, struct mxbpf_open, i)->tid == (uint32_t)tid; i++)
		++*n;
	return first;
}

const struct mxbpf_span *now_last(const struct now_view *v, pid_t tid)
{
	return ses_last(v->ses, tid);
}

/* Takes the stacks. Tries once more for threads that ran meanwhile. */
static int now_now_file_take(struct now_view *v)
{
	struct buf regs = {0};
	int moved, tries = TRIES;

	for (;;) {
		regs.len = 0;
		if (v->regs && regs_read(v->regs, &regs))
			regs.len = 0;
		moved = now_take(v->now, &regs);
		if (moved <= 0 || !--tries)
			break;
		now_again(v->now);
	}
	buf_fini(&regs);
	return moved < 0 ? moved : 0;
}

static void note_late(const struct now_view *v, struct hash *late)
{
	const struct now_thread *t;
	size_t i;

	for (i = 0; (t = now_thread_at(v->now, i)); i++)
		if (t->late)
			hash_put(late, (uint64_t)t->tid, 0);
}

/* If a thread ran before its stack was taken, keeps only the calls that were open before and after that. */
static void drop_passed(struct now_job *j)
{
	struct mxbpf_open *o = (struct mxbpf_open *)j->opens.data;
	size_t n = buf_count(&j->opens, struct mxbpf_open), kept = 0, i;
	struct buf again = {0};
	struct hash open = {0}, late = {0};

	for (i = 0; now_view_at(j, i); i++)
		note_late(now_view_at(j, i), &late);
	if (late.len)
		ses_opens(j->ses, j->at_ns, &again);
	for (i = 0; i < buf_count(&again, struct mxbpf_open); i++)
		hash_put(&open, buf_at(&again, struct mxbpf_open, i)->tid,
			 buf_at(&again, struct mxbpf_open, i)->h.ts_ns);
	for (i = 0; i < n; i++)
		if (!hash_get(&late, o[i].tid, 0) || hash_get(&open, o[i].tid, o[i].h.ts_ns))
			o[kept++] = o[i];
	j->opens.len = kept * sizeof(*o);
	buf_fini(&again);
	hash_fini(&open);
	hash_fini(&late);
}

static void close_view(const struct now_job *j, struct now_view *v)
{
	regs_close(v->regs);
	now_free(v->now);
	if (v->tgt != ses_target(j->ses))
		tgt_close(v->tgt);
}

/* Adds a process. One that has ended meanwhile is left out, unless it is the first. */
static void add_view(void *ctx, uint32_t tgid, const struct plan *plan)
{
	struct now_job *j = ctx;
	const struct mdl_labels *l = mdl_labels_of(ses_about(j->ses), tgid);
	struct now_view v = {.job = j,
			     .ses = j->ses,
			     .tgt = ses_target(j->ses),
			     .plan = plan,
			     .rank = l ? l->numbers[MDL_RANK] : MDL_NO_NUMBER};
	struct err why = {0};

	if (tgid != (uint32_t)tgt_pid(v.tgt) && tgt_open((pid_t)tgid, &v.tgt, NULL))
		return;
	if (regs_open(tgt_pid(v.tgt), &v.regs, &why))
		cmd_warn("%s: native stacks are cut short, and Python stacks are missing", why.why);
	if (buf_put(&j->views, &v, sizeof(v)))
		close_view(j, &v);
}

static int now_by_number(const void *va, const void *vb)
{
	const struct now_view *a = va, *b = vb;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return tgt_pid(a->tgt) < tgt_pid(b->tgt) ? -1 : tgt_pid(a->tgt) > tgt_pid(b->tgt);
}

/* Starts the look at each process, and leaves out those that have ended. Only if none is left, e is set. */
static void now_now_begin(struct now_job *j, struct err *e)
{
	struct now_view *v = (struct now_view *)j->views.data;
	size_t i, kept = 0, n = buf_count(&j->views, struct now_view);
	struct err why = {0};

	for (i = 0; i < n; i++) {
		why = (struct err){0};
		if (now_begin(v[i].tgt, v[i].plan, &v[i].now, &why))
			close_view(j, &v[i]);
		else
			v[kept++] = v[i];
	}
	j->views.len = kept * sizeof(*v);
	if (!kept)
		*e = why;
}

/*
 * Everything is read between two looks at each thread. If a thread has not run in between, all that is shown of it
 * belongs to one moment.
 */
static int now_look(struct now_job *j, struct err *e)
{
	size_t i;
	int err = 0;

	ses_each_process(j->ses, add_view, j);
	if (j->views.len)
		qsort(j->views.data, buf_count(&j->views, struct now_view), sizeof(struct now_view), now_by_number);
	now_now_begin(j, e);
	if (e->code)
		return e->code;
	j->at_ns = clock_ns(CLOCK_MONOTONIC);
	ses_opens(j->ses, j->at_ns, &j->opens);
	for (i = 0; now_view_at(j, i) && !err; i++)
		err = now_now_file_take(now_view_at(j, i));
	drop_passed(j);
	ses_learn(j->ses, j->opens.data, j->opens.len);
	if (j->opens.len)
		qsort(j->opens.data, buf_count(&j->opens, struct mxbpf_open), sizeof(struct mxbpf_open), now_by_thread);
	return err ? err_set(e, ERR_RUNTIME, err, "out of memory") : 0;
}

/* Returns true if another rank of the group has waited for NOW_PENDING_NS, in the same collective or in a later one. */
static bool waits_with_others(const struct now_job *j, const struct now_view *v)
{
	const struct now_view *other;
	size_t i;

	for (i = 0; (other = now_view_at((struct now_job *)j, i)); i++)
		if (other->waits && other->in.age_ns >= NOW_PENDING_NS && other->in.ranks == v->in.ranks &&
		    !strcmp(other->in.group, v->in.group) && other->in.number >= v->in.number)
			return true;
	return false;
}

/* Reads in which collectives the ranks are, one soon after another, because the job may go on meanwhile. */
static void now_compare(struct now_job *j)
{
	struct now_view *v;
	struct err why;
	size_t i;

	for (i = 0; (v = now_view_at(j, i)); i++) {
		why = (struct err){0};
		v->waits = now_collective(v->now, &v->in, &why);
		if (why.code)
			cmd_warn("%s", why.why);
	}
	for (i = 0; (v = now_view_at(j, i)); i++)
		if (v->waits && v->in.age_ns && v->in.age_ns < NOW_PENDING_NS)
			v->waits = waits_with_others(j, v);
}

static int now_show(struct now_job *j, struct err *e)
{
	struct now_view *v;
	struct err why;
	size_t i;
	int err = 0;

	for (i = 0; (v = now_view_at(j, i)); i++) {
		why = (struct err){0};
		if (now_finish(v->now, &why))
			cmd_warn("%s", why.why);
		if (now_no_python(v->now))
			cmd_warn("no Python stacks of process %d: %s", tgt_pid(v->tgt), now_no_python(v->now));
	}
	now_compare(j);
	if (j->o->format == CMD_JSON)
		return now_print_json(j, e);
	now_print_job(j);
	for (i = 0; (v = now_view_at(j, i)) && !err; i++) {
		if (i)
			printf("\n");
		err = now_print_text(v, e);
	}
	return err;
}

/* Chooses the ranks of a launcher, which does nothing but wait. Any other process is chosen itself. */
static int now_choose(struct job_choice *c, pid_t pid, bool quiet, struct err *e)
{
	struct buf pids = {0};
	int err = job_ranks_of(pid, &pids);
	const size_t n = buf_count(&pids, pid_t);

	if (!err && !n)
		err = buf_put(&pids, &pid, sizeof(pid));
	err = err ? err : job_choose(c, &pids);
	buf_fini(&pids);
	if (err == -E2BIG)
		return err_set(e, ERR_USAGE, err,
			       "--pid: at most %d processes can be shown; give the numbers of some ranks",
			       JOB_PIDS_MAX);
	if (err)
		return err_set(e, ERR_RUNTIME, err, "out of memory");
	if (n && !quiet)
		fprintf(stderr, "process %d is a launcher; its %zu rank%s shown\n", pid, n, n == 1 ? " is" : "s are");
	return 0;
}

static int choose_all(struct job_choice *c, const struct cmd_opts *o, struct err *e)
{
	unsigned i;

	c->npids = 0;
	for (i = 0; i < o->ses.choice.npids && !e->code; i++)
		now_choose(c, o->ses.choice.pids[i], o->quiet, e);
	return e->code;
}

int cmd_now(const struct cmd_opts *o)
{
	struct cmd_opts own = *o;
	struct now_job j = {.o = &own};
	struct err e = {0}, ended = {0};
	struct run r;
	size_t i;
	int err;

	own.ses.duration_ns = o->ses.duration_ns ? o->ses.duration_ns : WINDOW_NS;
	own.ses.no_returns = true;
	own.ses.no_follow = true; /* `now` shows the processes that the user chose, without their children */
	if (choose_all(&own.ses.choice, o, &e))
		return cmd_fail(&e);
	err = run_prepare(&r, &own, NULL, NULL, &e);
	j.ses = r.ses;
	if (!err) {
		ses_keep_lasts(r.ses);
		err = run_start(&r, &e);
	}
	if (!err) {
		run_wait(&r);
		err = now_look(&j, &e);
		signals_results(&r, SIGNALS_STOPPING);
		ses_stop(r.ses, err ? &ended : &e);
	}
	if (!err && !e.code)
		now_show(&j, &e);
	for (i = 0; now_view_at(&j, i); i++)
		close_view(&j, now_view_at(&j, i));
	buf_fini(&j.views);
	buf_fini(&j.opens);
	run_free(&r);
	return e.code ? cmd_fail(&e) : CMD_OK;
}
