// SPDX-License-Identifier: Apache-2.0
/*
 * --interval: the tables again and again while the session goes on. The ring's second thread folds meanwhile, so what
 * is printed is a copy: with the lock held for the copying alone, a slow reader of stdout holds up nothing but itself.
 */
#include <errno.h>

#include "base/buf.h"
#include "cmd/live.h"

/*
 * The session as it stands. Records that are under way between kernel and model are in no table yet: they belong to the
 * next dump, with their account. A call that is open is no loss while it can still end.
 */
static struct mdl_session session_now(const struct live *l)
{
	struct mdl_session s = l->session; /* shallow */

	if (s.duration_ns) /* the window has ended, and this is what live_stop() found */
		return s;
	s.duration_ns = live_window_ns(l);
	live_iterations_account(l, &s);
	live_app_account(l, &s);
	att_counts(l->att, &s.loss, &s.hits);
	live_share_account(l, &s);
	s.loss.unreadable += sym_lost(l->symbols);
	s.open_spans = att_open_spans(l->att, NULL, NULL);
	s.loss.stored = l->folded + l->ngoing;
	s.loss.attempted = s.loss.stored + s.loss.dropped;
	return s;
}

/* What came since the last dump, whose end is this one's beginning. */
static void subtract(struct mdl_session *s, const struct live_mark *m)
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
	s->unfollowed -= s->unfollowed < m->unfollowed ? s->unfollowed : m->unfollowed; /* some are followed by now */
	s->late_libs -= m->late_libs;
	s->stranger_hits -= m->stranger_hits;
	s->stranger_ns -= m->stranger_ns;
	s->late_refused -= m->late_refused;
	s->loss.attempted -= m->loss.attempted;
	s->loss.stored -= m->loss.stored;
	s->loss.dropped -= m->loss.dropped;
	s->loss.truncated -= m->loss.truncated;
	s->loss.unreadable -= m->loss.unreadable;
	s->loss.unmatched -= m->loss.unmatched;
}

/* A model of its own of what is to be shown, and the session that goes with it. NULL: out of memory. */
static struct mdl *copy(struct live *l, struct mdl_session *s)
{
	struct mdl *m = live_model(l), *fresh;
	struct buf recs = {0}, opens = {0};
	struct live_look look;
	int err = m ? 0 : -ENOMEM;

	if (!l->session.duration_ns)
		live_look(l, &look);
	pthread_mutex_lock(&l->lock);
	*s = session_now(l);
	if (!l->session.duration_ns) {
		live_open_spans(l, &look, clock_ns(CLOCK_MONOTONIC), &opens);
		live_learn(l, opens.data, opens.len);
	}
	if (!err && l->fresh) {
		fresh = l->fresh;
		l->fresh = m;
		m = fresh;
		mdl_move_makers(l->fresh, m);
		err = mdl_move_held(l->fresh, m, clock_ns(CLOCK_MONOTONIC));
		if (!err) /* where this one ends, it begins */
			err = mdl_feed(l->fresh, l->readings.data, l->readings.len);
		err = err ? err : mdl_emit_names(l->model, &recs);
	} else if (!err) {
		err = mdl_emit(l->model, &recs);
		err = err ? err : buf_put(&recs, l->going.data, l->going.len);
	}
	pthread_mutex_unlock(&l->lock);
	err = err ? err : buf_put(&recs, opens.data, opens.len);
	if (!err)
		err = mdl_feed(m, recs.data, recs.len);
	buf_fini(&opens);
	buf_fini(&recs);
	if (!err)
		return m;
	mdl_free(m);
	return NULL;
}

int live_dump(struct live *l)
{
	struct err e = {0};
	struct mdl_session s;
	struct live_mark now;
	struct mdl *m;
	int code;

	if (!l->session.duration_ns)
		live_machine_read(l, false);
	if (l->o->stats && !l->session.duration_ns)
		live_take_stats(l, false);
	m = copy(l, &s);

	if (!m) {
		err_set(&e, ERR_RUNTIME, -ENOMEM, "out of memory");
		return cmd_fail(&e);
	}
	now = (struct live_mark){
		.window_ns = s.duration_ns,
		.paused_ns = s.paused_ns,
		.hits = s.hits,
		.left_out = s.left_out,
		.iterations = s.iterations,
		.sampled_iterations = s.sampled_iterations,
		.followed = s.followed,
		.unfollowed = s.unfollowed,
		.late_libs = s.late_libs,
		.stranger_hits = s.stranger_hits,
		.stranger_ns = s.stranger_ns,
		.late_refused = s.late_refused,
		.loss = s.loss,
	};
	if (l->o->reset) {
		subtract(&s, &l->mark);
		l->mark = now;
	}
	code = l->tables ? CMD_OK : cmd_open_tables(l->o, true, &l->tables);
	if (!code)
		code = cmd_print_tables(l->o, &s, m, ++l->ndumps, l->tables);
	mdl_free(m);
	return code;
}

uint64_t live_dump_due(struct live *l, uint64_t window_ns)
{
	const uint64_t every = l->o->interval_ns;

	if (!every)
		return UINT64_MAX;
	if (window_ns / every > l->dumped && !l->paused_at_ns) {
		l->dumped = window_ns / every; /* those that were missed come in one */
		l->dump_code = live_dump(l);
		l->ended = l->ended || l->dump_code;
	}
	return (window_ns / every + 1) * every;
}
