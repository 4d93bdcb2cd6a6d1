// SPDX-License-Identifier: Apache-2.0
/*
 * --iterations 20: a window of twenty iterations, and then the session ends. --iterations 5/100: windows of five
 * iterations, which BPF opens and closes at the very hits that end one. In between everything is detached but the probe
 * that tells of those ends. Attaching takes time, in which iterations go by unseen: how many were seen is counted, not
 * assumed.
 */
#include "feature/steps/steps.h"
#include <errno.h>
#include <stdio.h>

#include "base/fmt.h"
#include "session/priv.h"

#define PATIENCE_NS 10000000000ull

static void say(const struct session *ses, const char *what, uint64_t began_ns)
{
	char ns[24];

	ses_detail(ses, "%s in %s, after %llu iterations", what, fmt_ns(clock_ns(CLOCK_MONOTONIC) - began_ns, ns),
		   (unsigned long long)att_iteration_window(ses->att).iterations);
}

/* To all processes, and BPF may open the next window. One that ends meanwhile has nothing more to tell. */
static void attach(struct session *ses)
{
	uint64_t began = clock_ns(CLOCK_MONOTONIC);
	struct err e = {0};

	if (ses_more(ses, &e)) {
		ses_warn(ses, "%s", e.why);
		ses->ended = true;
		return;
	}
	ses->sampling = true;
	ses_agent_take(ses, true);
	say(ses, "all attached", began);
	att_set_iteration_window(ses->att, true, true, 0);
}

/* The end of an iteration before the one that the next window shall open at. */
static void rest(struct session *ses, const struct mxbpf_iteration_window *now)
{
	uint64_t due = now->opened_at + ses->o->period - 1;

	att_set_iteration_window(ses->att, true, false, due);
	if (att_iteration_window(ses->att).iterations >= due)
		attach(ses);
}

int ses_windows_fd(const struct session *ses)
{
	return ses->att ? att_windows_fd(ses->att) : -1;
}

void ses_iterations_start(struct session *ses)
{
	att_set_iteration_window(ses->att, true, false, 1);
}

void ses_iterations(struct session *ses)
{
	uint64_t began = clock_ns(CLOCK_MONOTONIC);
	struct mxbpf_iteration_window now;

	att_windows_take(ses->att);
	now = att_iteration_window(ses->att);
	if (ses->paused_at_ns)
		return;
	if (!ses->sampling) {
		attach(ses);
	} else if (now.opened == now.closed && now.closed > ses->windows) {
		if (!ses->o->period) {
			ses->ended = true;
			return;
		}
		ses_agent_take(ses, false);
		ses_agent_settle(ses);
		att_less(ses->att);
		say(ses, "all but one detached", began);
		ses->sampling = false;
		ses->windows = now.closed;
		rest(ses, &now);
	}
}

void ses_iterations_pause(struct session *ses, bool pause)
{
	struct mxbpf_iteration_window now = att_iteration_window(ses->att);

	if (pause) {
		ses_agent_take(ses, false);
		att_set_iteration_window(ses->att, false, false, 0);
		return;
	}
	ses->windows = now.closed;
	if (ses->sampling) {
		ses_agent_take(ses, true);
		att_set_iteration_window(ses->att, true, true, 0);
	} else
		att_set_iteration_window(ses->att, true, false, now.iterations + 1);
}

void ses_iterations_account(const struct session *ses, struct mdl_session *s)
{
	struct mxbpf_iteration_window now;

	if (!ses->o->iterations)
		return;
	now = att_iteration_window(ses->att);
	s->iterations = now.iterations;
	s->sampled_iterations = now.sampled;
	s->paused_ns += s->duration_ns > now.window_ns ? s->duration_ns - now.window_ns : 0;
	s->duration_ns = now.window_ns;
}

void ses_iterations_warn(struct session *ses)
{
	if (ses->warned || !ses->o->iterations || ses_window_ns(ses) < PATIENCE_NS)
		return;
	ses->warned = true;
	if (!att_iteration_window(ses->att).iterations)
		ses_warn(ses, "no iteration has ended in 10 s, and nothing is seen until two have: what ends one is %s",
			 ses->targets[0].plan.adp->iteration_title);
}
