// SPDX-License-Identifier: Apache-2.0
/*
 * --iterations 20: a window of twenty iterations, and then the session ends. --iterations 5/100: windows of five
 * iterations, which BPF opens and closes at the very hits that end one. In between everything is detached but the probe
 * that tells of those ends. Attaching takes time, in which iterations go by unseen: how many were seen is counted, not
 * assumed.
 */
#include <errno.h>
#include <stdio.h>

#include "base/fmt.h"
#include "cmd/live.h"

#define PATIENCE_NS 10000000000ull

static void say(const struct live *l, const char *what, uint64_t began_ns)
{
	char ns[24];

	if (l->o->verbose)
		fprintf(stderr, "mxbpf: %s in %s, after %llu iterations\n", what,
			fmt_ns(clock_ns(CLOCK_MONOTONIC) - began_ns, ns),
			(unsigned long long)att_sampling(l->att).iterations);
}

/* To all processes, and BPF may open the next window. One that ends meanwhile has nothing more to tell. */
static void attach(struct live *l)
{
	uint64_t began = clock_ns(CLOCK_MONOTONIC);
	struct err e = {0};

	if (live_more(l, &e)) {
		cmd_warn("%s", e.why);
		l->ended = true;
		return;
	}
	l->sampling = true;
	say(l, "all attached", began);
	att_sample(l->att, true, true, 0);
}

/* The end of an iteration before the one that the next window shall open at. */
static void rest(struct live *l, const struct mxbpf_sampling *now)
{
	uint64_t due = now->opened_at + l->o->period - 1;

	att_sample(l->att, true, false, due);
	if (att_sampling(l->att).iterations >= due)
		attach(l);
}

int live_marks_fd(const struct live *l)
{
	return l->att ? att_marks_fd(l->att) : -1;
}

void live_iterations_start(struct live *l)
{
	att_sample(l->att, true, false, 1);
}

void live_iterations(struct live *l)
{
	uint64_t began = clock_ns(CLOCK_MONOTONIC);
	struct mxbpf_sampling now;

	att_marks_take(l->att);
	now = att_sampling(l->att);
	if (l->paused_at_ns)
		return;
	if (!l->sampling) {
		attach(l);
	} else if (now.opened == now.closed && now.closed > l->windows) {
		if (!l->o->period) {
			l->ended = true;
			return;
		}
		att_less(l->att);
		say(l, "all but one detached", began);
		l->sampling = false;
		l->windows = now.closed;
		rest(l, &now);
	}
}

void live_iterations_pause(struct live *l, bool pause)
{
	struct mxbpf_sampling now = att_sampling(l->att);

	if (pause) {
		att_sample(l->att, false, false, 0);
		return;
	}
	l->windows = now.closed;
	if (l->sampling)
		att_sample(l->att, true, true, 0);
	else
		att_sample(l->att, true, false, now.iterations + 1);
}

void live_iterations_account(const struct live *l, struct mdl_session *s)
{
	struct mxbpf_sampling now;

	if (!l->o->iterations)
		return;
	now = att_sampling(l->att);
	s->iterations = now.iterations;
	s->sampled_iterations = now.sampled;
	s->paused_ns += s->duration_ns > now.window_ns ? s->duration_ns - now.window_ns : 0;
	s->duration_ns = now.window_ns;
}

void live_iterations_warn(struct live *l)
{
	if (l->warned || !l->o->iterations || live_window_ns(l) < PATIENCE_NS)
		return;
	l->warned = true;
	if (!att_sampling(l->att).iterations)
		cmd_warn("no iteration has ended in 10 s, and nothing is seen until two have: what ends one is %s",
			 l->plan.adp->iteration_title);
}
