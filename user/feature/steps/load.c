// SPDX-License-Identifier: Apache-2.0
/*
 * --iterations in a live session. With --iterations 20 there is one window of twenty iterations, and then the session
 * ends. With 5/100 there are windows of five iterations. BPF opens and closes a window at the very probe hit that ends
 * an iteration. Between two windows only the probe for these hits stays attached. Attaching the others takes time, in
 * which some iterations pass unseen, so BPF counts how many were seen.
 */
#include "feature/steps/steps.h"
#include "session/feature.h"
#include "session/priv.h"
#include "targets/targets.h"

#include <errno.h>
#include <stdio.h>

#include "base/fmt.h"

#define PATIENCE_NS 10000000000ull

struct state {
	bool sampling;	  /* all probes are attached */
	bool warned;	  /* warned that no iteration ends */
	uint64_t windows; /* windows that have closed and were handled */
};

static struct state *steps_state_of(const struct session *ses)
{
	return ses_state(ses, &steps_session);
}

static bool steps_asked(const struct ses_opts *o)
{
	return o->iterations;
}

static void say(const struct session *ses, const char *what, uint64_t began_ns)
{
	char ns[24];

	ses_detail(ses, "%s in %s, after %llu iterations", what, fmt_ns(clock_ns(CLOCK_MONOTONIC) - began_ns, ns),
		   (unsigned long long)att_iteration_window(ses->first->att).iterations);
}

/* Attaches the probes to all processes, and lets BPF open the next window. */
static void steps_attach(struct session *ses)
{
	uint64_t began = clock_ns(CLOCK_MONOTONIC);
	struct err e = {0};

	if (ses_more(ses, &e)) {
		ses_warn(ses, "%s", e.why);
		ses->ended = true;
		return;
	}
	steps_state_of(ses)->sampling = true;
	ses_agent_take(ses, true);
	say(ses, "all attached", began);
	att_set_iteration_window(ses->first->att, true, true, 0);
}

/* Waits for the end of the iteration before the one at which the next window shall open. */
static void rest(struct session *ses, const struct mxbpf_iteration_window *now)
{
	uint64_t due = now->opened_at + ses->o->period - 1;

	att_set_iteration_window(ses->first->att, true, false, due);
	if (att_iteration_window(ses->first->att).iterations >= due)
		steps_attach(ses);
}

static void steps_start(struct session *ses)
{
	att_set_iteration_window(ses->first->att, true, false, 1);
}

static void told(struct session *ses)
{
	struct state *s = steps_state_of(ses);
	uint64_t began = clock_ns(CLOCK_MONOTONIC);
	struct mxbpf_iteration_window now;

	att_windows_take(ses->first->att);
	now = att_iteration_window(ses->first->att);
	if (ses->paused_at_ns)
		return;
	if (!s->sampling) {
		steps_attach(ses);
	} else if (now.opened == now.closed && now.closed > s->windows) {
		if (!ses->o->period) {
			ses->ended = true;
			return;
		}
		ses_agent_take(ses, false);
		ses_agent_settle(ses);
		att_less(ses->first->att);
		say(ses, "all but one detached", began);
		s->sampling = false;
		s->windows = now.closed;
		rest(ses, &now);
	}
}

static void steps_load_take(struct session *ses, bool on)
{
	struct mxbpf_iteration_window now = att_iteration_window(ses->first->att);

	if (!on) {
		ses_agent_take(ses, false);
		att_set_iteration_window(ses->first->att, false, false, 0);
		return;
	}
	steps_state_of(ses)->windows = now.closed;
	if (steps_state_of(ses)->sampling) {
		ses_agent_take(ses, true);
		att_set_iteration_window(ses->first->att, true, true, 0);
	} else {
		att_set_iteration_window(ses->first->att, true, false, now.iterations + 1);
	}
}

static bool steps_stop(struct session *ses)
{
	const struct mxbpf_iteration_window now = att_iteration_window(ses->first->att);

	ses_agent_take(ses, false); /* first, because the next call takes a moment */
	att_set_iteration_window(ses->first->att, false, false, 0);
	return steps_state_of(ses)->sampling && now.opened > now.closed;
}

static void second(struct session *ses)
{
	struct state *s = steps_state_of(ses);

	if (s->warned || ses_window_ns(ses) < PATIENCE_NS)
		return;
	s->warned = true;
	if (!att_iteration_window(ses->first->att).iterations)
		ses_warn(ses,
			 "no iteration has ended in 10 s, and recording starts after two have: an iteration ends with "
			 "%s",
			 ses->targets[0].plan.adp->iteration_title);
}

static void account(const struct session *ses, struct mdl_session *s)
{
	const struct mxbpf_iteration_window now = att_iteration_window(ses->first->att);

	s->iterations = now.iterations;
	s->sampled_iterations = now.sampled;
	s->paused_ns += s->duration_ns > now.window_ns ? s->duration_ns - now.window_ns : 0;
	s->duration_ns = now.window_ns;
}

static const struct ses_window window = {
	.asked = steps_asked,
	.start = steps_start,
	.told = told,
	.take = steps_load_take,
	.stop = steps_stop,
	.second = second,
	.account = account,
};

const struct ses_feature steps_session = {
	.window = &window,
	.state_bytes = sizeof(struct state),
};
