// SPDX-License-Identifier: Apache-2.0
/* Pauses: the probes stay attached, and nothing that happens in a pause is recorded or part of the window. */
#include "base/fmt.h"
#include "session/priv.h"

static void pause_take(struct session *ses, bool on)
{
	ses_activate(ses, on);
	ses_agent_take(ses, on);
}

static void pause_start(struct session *ses)
{
	pause_take(ses, true);
}

static bool pause_stop(struct session *ses)
{
	return !ses->paused_at_ns;
}

/* A slice is over: the features look at it when this returns. */
static void told(struct session *ses)
{
	struct ses_build *b;

	SES_EACH_BUILD(ses, b)
	{
		if (b->att && att_windows_fd(b->att) >= 0)
			att_windows_take(b->att);
	}
}

const struct ses_window ses_one_window = {.start = pause_start, .told = told, .take = pause_take, .stop = pause_stop};

uint64_t ses_window_ns(const struct session *ses)
{
	uint64_t until = ses->paused_at_ns ? ses->paused_at_ns : clock_ns(CLOCK_MONOTONIC);

	if (ses->window->window_ns)
		return ses->window->window_ns(ses);
	return until - ses->about.start_mono_ns - ses->about.paused_ns;
}

bool ses_rests(const struct session *ses)
{
	return ses->paused_at_ns || (ses->window->rests && ses->window->rests(ses));
}

void ses_window_account(const struct session *ses, struct mdl_session *s)
{
	if (ses->window->account)
		ses->window->account(ses, s);
}

void ses_close_pause(struct session *ses)
{
	if (ses->paused_at_ns)
		ses->about.paused_ns += clock_ns(CLOCK_MONOTONIC) - ses->paused_at_ns;
	ses->paused_at_ns = 0;
}

static void say(const struct session *ses, const char *what)
{
	char ns[24];

	ses_note(ses, "%s, %s into the window", what, fmt_ns(ses_window_ns(ses), ns));
}

void ses_hold(struct session *ses)
{
	ses->window->take(ses, false);
	ses->paused_at_ns = clock_ns(CLOCK_MONOTONIC);
	ses_agent_settle(ses);
	ses_features_rest(ses);
	ses_features_read(ses, false);
}

void ses_release(struct session *ses)
{
	ses_close_pause(ses);
	ses_features_read(ses, true);
	ses->window->take(ses, true);
}

void ses_pause(struct session *ses, bool pause)
{
	if (!ses->about.start_mono_ns) { /* the window has not begun */
		ses->pause_asked = pause;
		return;
	}
	if (pause && !ses->paused_at_ns) {
		ses_hold(ses);
		say(ses, "paused");
	} else if (!pause && ses->paused_at_ns) {
		ses_release(ses);
		say(ses, "resumed");
	}
}
