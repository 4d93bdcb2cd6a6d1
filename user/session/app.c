// SPDX-License-Identifier: Apache-2.0
/*
 * --follow-app: BPF opens a window at the very call by which the program starts its runtime's own profiler, and closes
 * it at the call that stops the profiler. The probes stay attached in between, but their hits record nothing.
 */
#include <errno.h>

#include "base/fmt.h"
#include "session/priv.h"

/* Requires every call that may start or stop the profiler to be probed. */
int ses_app_check(struct session *ses, const struct ses_target *of, struct err *e)
{
	const struct plan_probe *p;
	struct err why = {0};

	if (!ses->o->follow_app)
		return 0;
	for (p = of->plan.probes; p < of->plan.probes + of->plan.nprobes; p++)
		if (p->row->row.action == MXBPF_ACT_APP && p->reason[0])
			return err_set(e, ERR_TARGET, -ENOTSUP, "--follow-app: %s: %s", p->row->name, p->reason);
	if (!of->plan.adp->marks.profiler)
		return err_set(e, ERR_USAGE, -ENOTSUP,
			       "--follow-app: %s has no profiler that mxbpf can follow; remove --follow-app",
			       of->plan.adp->title);
	if (plan_app_state(&of->plan, of->tgt, &ses->app.was, &why))
		return err_set(e, ERR_TARGET, -ENOTSUP,
			       "--follow-app: cannot read whether the program's profiler runs: %s", why.why);
	return 0;
}

/* The profiler may start or stop while its state is read. BPF sees such a call if it comes after att_app_start(), so
 * the state is read once more after that. */
static void app_start(struct session *ses)
{
	struct mxbpf_app now = ses->app.was;
	struct err e = {0};

	att_app_start(ses->first->att, tgt_pid(ses->targets[0].tgt), &now);
	if (!plan_app_state(&ses->targets[0].plan, ses->targets[0].tgt, &now, &e) &&
	    (now.runs != ses->app.was.runs || now.paused != ses->app.was.paused))
		att_app_start(ses->first->att, tgt_pid(ses->targets[0].tgt), &now);
	att_app(ses->first->att, true);
	if (!now.runs || now.paused)
		ses_note(ses, "waiting for the program to start its profiler");
}

static void told(struct session *ses)
{
	struct mxbpf_app now;
	char ns[24];

	att_windows_take(ses->first->att);
	now = att_app_windows(ses->first->att);
	if (now.opened + now.closed == ses->app.windows)
		return;
	ses->app.windows = now.opened + now.closed;
	ses_features_read(ses, now.opened > now.closed);
	if (now.opened == now.closed)
		ses_features_rest(ses);
	ses_note(ses, "%s by the program, %s into the window", now.opened > now.closed ? "resumed" : "paused",
		 fmt_ns(now.window_ns, ns));
}

static void app_take(struct session *ses, bool on)
{
	att_app(ses->first->att, on);
}

static bool app_stop(struct session *ses)
{
	const bool on = att_active_since_ns(ses->first->att);

	att_app(ses->first->att, false);
	return on;
}

static bool rests(const struct session *ses)
{
	return !att_active_since_ns(ses->first->att);
}

static uint64_t window_ns(const struct session *ses)
{
	return att_app_windows(ses->first->att).window_ns;
}

/* The time outside of windows is a pause, whether the program or the user made it. */
static void account(const struct session *ses, struct mdl_session *s)
{
	const uint64_t passed_ns = clock_ns(CLOCK_MONOTONIC) - s->start_mono_ns;

	s->paused_ns = passed_ns > s->duration_ns ? passed_ns - s->duration_ns : 0;
}

static bool app_asked(const struct ses_opts *o)
{
	return o->follow_app;
}

const struct ses_window ses_app_window = {
	.asked = app_asked,
	.start = app_start,
	.told = told,
	.take = app_take,
	.stop = app_stop,
	.rests = rests,
	.window_ns = window_ns,
	.account = account,
};
