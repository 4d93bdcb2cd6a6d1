// SPDX-License-Identifier: Apache-2.0
/* SIGUSR1 pauses, SIGUSR2 goes on: the probes stay, what happens in between is not taken and not part of the window. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fmt.h"
#include "cmd/live.h"

uint64_t live_window_ns(const struct live *l)
{
	uint64_t until = l->paused_at_ns ? l->paused_at_ns : clock_ns(CLOCK_MONOTONIC);

	if (l->o->follow_app)
		return att_app_windows(l->att).window_ns;
	return until - l->session.start_mono_ns - l->session.paused_ns;
}

void live_close_pause(struct live *l)
{
	if (l->paused_at_ns)
		l->session.paused_ns += clock_ns(CLOCK_MONOTONIC) - l->paused_at_ns;
	l->paused_at_ns = 0;
}

static void say(const struct live *l, const char *what)
{
	char ns[24];

	if (!l->o->quiet)
		fprintf(stderr, "%s%s, %s into the window\n", isatty(STDERR_FILENO) ? "\r\033[K" : "", what,
			fmt_ns(live_window_ns(l), ns));
}

bool live_pause_signal(struct live *l, int sig)
{
	if (sig != SIGUSR1 && sig != SIGUSR2)
		return false;
	if (!l->session.start_mono_ns) /* there is no window yet */
		return true;
	if (sig == SIGUSR1 && !l->paused_at_ns) {
		if (l->o->iterations)
			live_iterations_pause(l, true);
		else if (l->o->follow_app)
			att_app(l->att, false);
		else
			att_activate(l->att, false);
		l->paused_at_ns = clock_ns(CLOCK_MONOTONIC);
		live_sched_end(l);
		live_machine_read(l, false);
		say(l, "paused");
	} else if (sig == SIGUSR2 && l->paused_at_ns) {
		live_close_pause(l);
		live_machine_read(l, true);
		if (l->o->iterations)
			live_iterations_pause(l, false);
		else if (l->o->follow_app)
			att_app(l->att, true);
		else
			att_activate(l->att, true);
		say(l, "resumed");
	}
	return true;
}
