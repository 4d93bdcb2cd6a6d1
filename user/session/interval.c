// SPDX-License-Identifier: Apache-2.0
/*
 * --interval: tables at regular times while the session goes on. They show a copy of the model. The lock is held only
 * for copying, so slow output does not delay the sources' threads.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "feature/cost/slices.h"
#include "feature/machine/machine.h"
#include "session/priv.h"
#include "targets/targets.h"

#define BUSY_NS (20 * NS_PER_MS) /* until the next look, while a slice is under way */

int ses_about_now(const struct session *ses, struct mdl_session *s)
{
	*s = ses->about;
	if (s->duration_ns) /* the window has ended, and ses_stop() has filled ses->about */
		return mdl_sources_copy(s, &ses->about);
	s->duration_ns = ses_window_ns(ses);
	ses_window_account(ses, s);
	ses_share_account(ses, s);
	s->hits = ses_hits(ses);
	ses_features_account(ses, s);
	s->open_spans = ses_open_count(ses);
	return ses_loss_now(ses, s);
}

void ses_about_since(struct mdl_session *s, const struct ses_totals *m)
{
	s->start_unix_ns += m->window_ns + m->paused_ns;
	s->start_mono_ns += m->window_ns + m->paused_ns;
	s->duration_ns -= m->window_ns;
	s->paused_ns -= m->paused_ns;
	s->hits -= m->hits;
	s->left_out -= m->left_out;
	s->iterations -= m->iterations;
	s->sampled_iterations -= m->sampled_iterations;
	s->followed -= m->followed;
	s->unfollowed -=
		s->unfollowed < m->unfollowed ? s->unfollowed : m->unfollowed; /* some may be followed by now */
	s->late_libs -= m->late_libs;
	s->stranger_hits -= m->stranger_hits;
	s->stranger_ns -= m->stranger_ns;
	s->cost.added_ns -= m->added_ns < s->cost.added_ns ? m->added_ns : s->cost.added_ns;
	s->cost.thread_ns -= m->thread_ns < s->cost.thread_ns ? m->thread_ns : s->cost.thread_ns;
	s->late_refused -= m->late_refused;
	ses_loss_subtract(s, m);
}

void ses_totals_of(const struct mdl_session *s, struct ses_totals *t)
{
	size_t i;

	*t = (struct ses_totals){
		.window_ns = s->duration_ns,
		.paused_ns = s->paused_ns,
		.hits = s->hits,
		.left_out = s->left_out,
		.iterations = s->iterations,
		.sampled_iterations = s->sampled_iterations,
		.followed = s->followed,
		.unfollowed = s->unfollowed,
		.late_libs = s->late_libs,
		.stranger_hits = s->stranger_hits,
		.stranger_ns = s->stranger_ns,
		.added_ns = s->cost.added_ns,
		.thread_ns = s->cost.thread_ns,
		.late_refused = s->late_refused,
	};
	for (i = 0; i < s->nsources; i++) {
		t->losses[i] = s->sources[i].loss;
		t->late[i] = s->sources[i].late;
	}
}

/* Allocates memory for a copy of the model before the lock is taken. NULL: out of memory. */
static struct mdl *room_for_whole(struct session *ses)
{
	struct mdl *m = mdl_new();
	size_t nrows;

	pthread_mutex_lock(&ses->lock);
	nrows = mdl_nrows(ses->model);
	pthread_mutex_unlock(&ses->lock);
	if (m && !mdl_reserve(m, nrows))
		return m;
	mdl_free(m);
	return NULL;
}

/* Copies the model of the whole session. With the lock. */
static int copy_whole(const struct session *ses, struct mdl *to)
{
	int err = mdl_settle(ses->model);

	return err ? err : mdl_copy_to(to, ses->model);
}

/* Takes the model of this interval, and puts the empty model `next` in its place. With the lock. */
static int take_fresh(struct session *ses, struct mdl *next, struct mdl **taken)
{
	struct mdl *m = *taken = ses->fresh;
	int err;

	ses->fresh = next;
	mdl_lend_names(next, ses->model);
	err = mdl_settle(m);
	err = err ? err : mdl_move(next, m, clock_ns(CLOCK_MONOTONIC));
	if (!err)
		err = machine_again(ses, next);
	err = err ? err : mdl_copy_names(m, ses->model);
	mdl_lend_names(m, NULL); /* it is read without the lock */
	return err;
}

/* Returns a model to show, and fills the description that goes with it. NULL: out of memory. */
static struct mdl *interval_copy(struct session *ses, struct mdl_session *s)
{
	struct mdl *m = ses->fresh ? ses_new_model(ses) : room_for_whole(ses);
	struct buf opens = {0};
	struct ses_look look;
	int err = m ? 0 : -ENOMEM;

	if (!ses->about.duration_ns)
		ses_look(ses, &look);
	pthread_mutex_lock(&ses->lock);
	err = err ? err : ses_about_now(ses, s);
	if (!ses->about.duration_ns) {
		ses_open_spans(ses, &look, clock_ns(CLOCK_MONOTONIC), &opens);
		ses_learn_locked(ses, opens.data, opens.len);
	}
	if (!err)
		err = ses->fresh ? take_fresh(ses, m, &m) : copy_whole(ses, m);
	pthread_mutex_unlock(&ses->lock);
	err = err ? err : mdl_fold_all(m, opens.data, opens.len);
	buf_fini(&opens);
	if (!err)
		return m;
	mdl_free(m);
	return NULL;
}

/* The tables of an interval have the notes of the session and one that is true only now. */
static int interval_show(struct session *ses, struct mdl_session *s, struct mdl *m)
{
	char old[160], name[] = "gpu";
	struct mdl_note *notes;
	int code;

	if (!ses->ui.tables)
		return 0;
	if (ses->about.duration_ns || !ses_gpu_age(ses, old))
		return ses->ui.tables(ses->ui.ctx, s, m);
	notes = calloc(s->nnotes + 1, sizeof(*notes));
	if (!notes)
		return ERR_RUNTIME;
	if (s->nnotes)
		memcpy(notes, s->notes, s->nnotes * sizeof(*notes));
	notes[s->nnotes++] = (struct mdl_note){.name = name, .text = old};
	s->notes = notes;
	code = ses->ui.tables(ses->ui.ctx, s, m);
	free(notes);
	return code;
}

int ses_interval(struct session *ses)
{
	struct mdl_session s = {0};
	struct ses_totals now;
	struct mdl *m;
	int code;

	ses->interval.ends = true;
	if (!ses->about.duration_ns)
		ses_features_read(ses, false);
	ses->interval.ends = false;
	m = interval_copy(ses, &s);
	if (!m) {
		mdl_sources_fini(&s);
		ses_warn(ses, "out of memory");
		return ERR_RUNTIME;
	}
	ses_totals_of(&s, &now);
	if (ses->o->reset) {
		ses_about_since(&s, &ses->interval.mark);
		ses->interval.mark = now;
	}
	code = interval_show(ses, &s, m);
	mdl_free(m);
	mdl_sources_fini(&s);
	return code;
}

uint64_t ses_interval_due(struct session *ses, uint64_t window_ns)
{
	const uint64_t every = ses->o->interval_ns;

	if (!every)
		return UINT64_MAX;
	if (window_ns / every > ses->interval.n && cost_slices(ses) && slices_busy(cost_slices(ses)))
		return window_ns + BUSY_NS;
	if (window_ns / every > ses->interval.n && !ses->paused_at_ns) {
		ses->interval.n = window_ns / every; /* intervals that were missed count as one */
		ses->interval.failed = ses_interval(ses);
		if (cost_slices(ses))
			slices_interval(ses, cost_slices(ses));
		ses->ended = ses->ended || ses->interval.failed;
	}
	return (window_ns / every + 1) * every;
}
