// SPDX-License-Identifier: Apache-2.0
/* Pauses: the probes stay, what happens in between is not taken and not part of the window. */
#include "base/fmt.h"
#include "session/priv.h"

uint64_t ses_window_ns(const struct session *ses)
{
	uint64_t until = ses->paused_at_ns ? ses->paused_at_ns : clock_ns(CLOCK_MONOTONIC);

	if (ses->o->follow_app)
		return att_app_windows(ses->att).window_ns;
	return until - ses->about.start_mono_ns - ses->about.paused_ns;
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

/* Takes events, or does not. */
static void take(struct session *ses, bool on)
{
	if (ses->o->iterations)
		ses_iterations_pause(ses, !on);
	else if (ses->o->follow_app)
		att_app(ses->att, on);
	else {
		att_activate(ses->att, on);
		ses_agent_take(ses, on);
	}
}

void ses_pause(struct session *ses, bool pause)
{
	if (!ses->about.start_mono_ns) /* there is no window yet */
		return;
	if (pause && !ses->paused_at_ns) {
		take(ses, false);
		ses->paused_at_ns = clock_ns(CLOCK_MONOTONIC);
		ses_agent_settle(ses);
		ses_sched_end(ses);
		ses_machine_read(ses, false);
		say(ses, "paused");
	} else if (!pause && ses->paused_at_ns) {
		ses_close_pause(ses);
		ses_machine_read(ses, true);
		take(ses, true);
		say(ses, "resumed");
	}
}
