// SPDX-License-Identifier: Apache-2.0
/*
 * What watching costs the job. In the first second of the window the kernel measures the programs of the probes, and
 * mxbpf looks for a place of the busiest thread that is hit at equal intervals: the beat. At the end the job runs for a
 * moment with this place probed alone, and the difference between the two intervals is the true cost.
 */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/costs.h"
#include "base/whole.h"
#include "feature/cost/cost.h"
#include "feature/cost/load_agent.h"
#include "feature/cost/slices.h"
#include "feature/steps/steps.h"
#include "session/feature.h"
#include "session/priv.h"

#define FIRST_LOOK_NS (20 * NS_PER_MS)
#define HITS_LEAST    500 /* before anything is measured */
#define MEASURE_NS    (300 * NS_PER_MS)
#define BEATS_NS      (300 * NS_PER_MS)
#define BEATS_MAX_NS  (5 * NS_PER_S)
#define GOOD_ERROR    0.005		/* of the mean interval */
#define WARN_NS	      (600 * NS_PER_MS) /* after the measurement */
#define WARN_SHARE    0.2		/* of the time of a thread */
#define SHARE_MOST    0.9		/* the estimates are not more exact */
#define WORTH	      0.03		/* share of the cost below which it is not compared */
#define WORTH_TELLING 0.1		/* of the time without watching: the usual limit */
#define WORKS	      0.1		/* of a CPU: the job works */
#define ALONE_NS      (300 * NS_PER_MS) /* on CPU */
#define ALONE_MAX_NS  (2 * NS_PER_S)
/*
 * The job has settled when the caches have what the end of the window has changed in it, and mxbpf, which may run on
 * the same core, has nothing more to do.
 */
#define SLICE_MS	 10
#define SETTLE_NS	 (30 * NS_PER_MS)
#define SETTLE_MAX_NS	 NS_PER_S
#define BUSY_NS		 (2 * NS_PER_MS) /* of a slice */
#define ALONE_BEATS	 30		 /* intervals that are enough before ALONE_MAX_NS */
#define HIT_ERROR	 0.25		 /* of the cost of the hits that the comparison itself needs */
#define REMEDY_BYTES	 1800
#define SILENT_NS	 (300 * NS_PER_MS)
#define ITERATIONS_LEAST 6 /* in slices, and between them, that are compared */

enum { COST_OFF, COST_AWAIT, COST_MEASURE, COST_BEATS, COST_ON };

struct state {
	int stage;
	uint64_t began_ns, due_ns, measured_ns;
	bool warned;
	uint64_t target_cpu_ns;	   /* that the process had used when the session began */
	uint32_t compared_tid;	   /* thread whose intervals are compared with probes and without */
	struct slices *slices;	   /* --max-overhead, or to foretell the cost; owned; NULL: not requested */
	struct att_costs before;   /* at the begin of the window */
	struct mxbpf_beat watched; /* the beat's sums at the end of the window */
	struct agent_phase agent;  /* while the agent records */
	struct mxbpf_beat alone;   /* the beat's sums while the agent rested */
};

static struct state *cost_state_of(const struct session *ses)
{
	return ses_state(ses, &cost_session);
}

struct slices *cost_slices(const struct session *ses)
{
	return cost_state_of(ses)->slices;
}

/* How wrong the estimates can be: the usual error, and what a comparison may make of them. */
struct estimate {
	double error, least, most;
};
static const struct estimate of_probes = {0.25, 0.25, 4};
/* That of the agent is a constant, however fast the machine is. */
static const struct estimate of_agent = {2, 0.25, 20};

static uint32_t uncertain(void)
{
	return (uint32_t)(of_probes.error * 1000);
}

void cost_note_cpu(struct session *ses)
{
	struct tgt_usage u;

	if (!tgt_peek_usage(tgt_pid(ses->targets[0].tgt), &u))
		cost_state_of(ses)->target_cpu_ns = u.cpu_ns;
}

int cost_add(struct session *ses, const struct ses_target *of, struct err *e)
{
	struct slices *s = cost_slices(ses);

	if (s && ses->o->slices && slices_add(ses, s, of))
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	return 0;
}

/* Returns true if the session must say before its window what it will cost. A process that does not work tells nothing.
 */
static bool foretells(const struct session *ses)
{
	const struct ses_opts *o = ses->o;
	const uint64_t since_ns = clock_ns(CLOCK_MONOTONIC) - ses->prepared_mono_ns;
	struct tgt_usage u;

	return o->exact && !o->command && !o->agent && !o->iterations && !o->follow_app && !o->delay_ns &&
	       o->probes & PROBE_OP && !tgt_peek_usage(tgt_pid(ses->targets[0].tgt), &u) &&
	       (double)(u.cpu_ns - cost_state_of(ses)->target_cpu_ns) > WORKS * (double)since_ns;
}

/* Before the first process is attached, and before the window. */
int cost_prepare(struct session *ses, struct err *e)
{
	struct state *c = cost_state_of(ses);

	if ((!ses->o->slices && !foretells(ses)) || ses->o->agent)
		return 0;
	c->slices = slices_new();
	if (!c->slices || slices_prepare(ses, c->slices))
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	return 0;
}

static int cost_start(struct session *ses, struct err *e)
{
	struct state *c = cost_state_of(ses);

	c->before = att_costs(ses->first->att);
	c->began_ns = clock_ns(CLOCK_MONOTONIC);
	c->due_ns = c->began_ns + FIRST_LOOK_NS;
	c->stage = c->before.trap_ns || ses->o->agent ? COST_AWAIT : COST_OFF;
	if (c->stage != COST_OFF) /* for a recording that is cut before its end */
		ses->about.cost = (struct mdl_cost){.scale = 1000, .uncertain = uncertain()};
	return 0;
}

/* The cost of all builds. */
static struct att_costs all_costs(const struct session *ses)
{
	struct att_costs all = att_costs(ses->first->att), of;
	const struct ses_build *b;

	SES_EACH_BUILD(ses, b)
	{
		if (b == ses->first)
			continue;
		of = att_costs(b->att);
		of.added_ns += all.added_ns;
		if (of.thread_ns > all.thread_ns)
			all = of;
		all.added_ns = of.added_ns;
	}
	return all;
}

static void measure_costs(struct session *ses, bool on)
{
	struct ses_build *b;

	SES_EACH_BUILD(ses, b)
	{
		if (!on)
			att_costs_update(b->att);
		att_costs_measure(b->att, on);
	}
}

static void next(struct state *c, int stage, uint64_t now, uint64_t after_ns)
{
	c->stage = stage;
	c->due_ns = now + after_ns;
}

/* Returns what the agent has cost so far, by the estimates. */
static uint64_t agent_cost(const struct session *ses)
{
	struct mxbpf_loss loss = {0};
	const struct src_agent_counts n = ses_agent_counts(ses);

	if (ses->agent.source)
		src_loss(ses->agent.source, &loss);
	return (loss.attempted > n.memory ? loss.attempted - n.memory : 0) * MXBPF_AGENT_CALL_NS +
	       n.memory * MXBPF_AGENT_MEMORY_NS + n.args * MXBPF_AGENT_ARGS_NS + n.stacks * MXBPF_AGENT_STACK_NS;
}

static void start_beats(struct session *ses, uint64_t now)
{
	struct state *c = cost_state_of(ses);
	const struct att_costs all = att_costs(ses->first->att);

	measure_costs(ses, false);
	c->measured_ns = now;
	c->agent.from_ns = now;
	c->compared_tid = all.tid;
	att_beats_start(ses->first->att, all.tgid, all.tid, MEASURE_NS);
	next(c, COST_BEATS, now, BEATS_NS);
}

static bool agent_helps(const struct session *ses)
{
	return !ses->o->agent && ses_agent_could(ses);
}

/* Says what makes the cost less: for a runtime with an agent, the whole command. it: what the agent makes of it. */
static void put_remedy(const struct session *ses, const char *it, char *text, size_t bytes)
{
	const struct ses_remedy *r = &ses->o->remedy;

	if (!agent_helps(ses))
		snprintf(text, bytes, "--iterations 5/100 or --probes op makes it less");
	else if (!r->command || !r->lost)
		snprintf(text, bytes, "--agent makes it %s", it);
	else
		snprintf(text, bytes, "the agent makes it %s%s%s: %s", it, r->lost[0] ? ", without " : "", r->lost,
			 r->command);
}

void cost_begin(struct session *ses)
{
	struct state *c = cost_state_of(ses);
	char remedy[REMEDY_BYTES], it[32];
	struct slices_foretold f;

	if (!c->slices)
		return;
	if (ses->o->slices) {
		slices_begin(ses, c->slices);
		return;
	}
	f = slices_foretell(ses, c->slices);
	slices_free(c->slices);
	c->slices = NULL;
	c->warned = f.probes >= WORTH_TELLING;
	if (ses->ended || !c->warned)
		return;
	snprintf(it, sizeof(it), "about %.1f", 1 + f.agent);
	put_remedy(ses, it, remedy, sizeof(remedy));
	ses_warn(ses, "with every call recorded this job will run about %.1f times as long; %s", 1 + f.probes, remedy);
}

/* Warns while Ctrl-C still helps. */
static void warn(struct session *ses, uint64_t now)
{
	struct state *c = cost_state_of(ses);
	const struct att_costs all = all_costs(ses);
	const uint64_t since_ns = now - c->began_ns;
	char remedy[REMEDY_BYTES];
	double share = (double)(all.thread_ns - c->before.thread_ns) / (double)since_ns;

	c->warned = true;
	if (share < WARN_SHARE || c->slices)
		return;
	share = share < SHARE_MOST ? share : SHARE_MOST;
	put_remedy(ses, "less", remedy, sizeof(remedy));
	ses_warn(ses,
		 "profiling takes about %.0f%% of the time of thread %u, so that the job runs %.1f times as long now; "
		 "%s",
		 share * 100, all.tid, 1 / (1 - share), remedy);
}

static uint64_t measure(struct session *ses)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct state *c = cost_state_of(ses);

	if (c->stage == COST_OFF || c->stage == COST_ON)
		return UINT64_MAX;
	if (now < c->due_ns)
		return c->due_ns;
	switch (c->stage) {
	case COST_AWAIT:
		if (!ses->agent.source && ses_hits(ses) < HITS_LEAST) {
			next(c, COST_AWAIT, now,
			     c->due_ns - c->began_ns < NS_PER_S ? c->due_ns - c->began_ns : NS_PER_S);
			break;
		}
		measure_costs(ses, true);
		next(c, COST_MEASURE, now, MEASURE_NS);
		break;
	case COST_MEASURE:
		start_beats(ses, now);
		break;
	default:
		if (ses->agent.source && !c->agent.tid)
			agent_beat(ses, &c->agent, false);
		if (!c->warned && now - c->measured_ns >= WARN_NS)
			warn(ses, now);
		if ((c->warned && att_beats_choose(ses->first->att, GOOD_ERROR)) ||
		    now - c->measured_ns >= BEATS_MAX_NS)
			next(c, COST_ON, now, 0);
		else
			next(c, COST_BEATS, now, BEATS_NS);
	}
	return c->stage == COST_ON ? UINT64_MAX : c->due_ns;
}

static uint64_t tick(struct session *ses)
{
	const struct state *c = cost_state_of(ses);
	struct slices *s = c->slices;
	const uint64_t due =
		s && slices_any(s) ? UINT64_MAX : measure(ses); /* slices have a measurement of their own */
	uint64_t other;

	if (!s || c->stage == COST_OFF || ses->paused_at_ns)
		return due;
	other = slices_tick(ses, s);
	return other < due ? other : due;
}

static void cost_fini(struct session *ses)
{
	slices_free(cost_slices(ses));
}

static void cost_load_fill(struct mdl_cost *to, const struct att_costs *from, const struct att_costs *before)
{
	to->trap_ns = from->trap_ns;
	to->added_ns = from->added_ns - before->added_ns;
	to->thread_ns = from->thread_ns > before->thread_ns ? from->thread_ns - before->thread_ns : 0;
	to->scale = to->added_ns ? 1000 : 0;
	to->uncertain = uncertain();
}

static void account(const struct session *ses, struct mdl_session *s)
{
	const struct state *c = cost_state_of(ses);
	const struct att_costs all = all_costs(ses);

	s->cost.agent_helps = agent_helps(ses);
	if (c->stage == COST_OFF)
		return;
	cost_load_fill(&s->cost, &all, &c->before);
	if (ses->agent.source) { /* probes of memory hit in its calls, and the comparison counts them among those */
		s->cost.added_ns = s->cost.thread_ns = agent_cost(ses);
		s->cost.scale = s->cost.added_ns ? 1000 : 0;
	}
}

static void ends(struct session *ses)
{
	struct state *c = cost_state_of(ses);

	if (c->slices)
		slices_end(ses, c->slices);
	if (c->stage == COST_OFF)
		return;
	if (c->stage == COST_MEASURE) {
		measure_costs(ses, false);
	}
	att_beats_choose(ses->first->att, HUGE_VAL);
	c->watched = att_beat(ses->first->att);
	if (ses->agent.source && c->agent.tid) {
		c->watched = agent_beat(ses, &c->agent, false);
		c->watched.cost_ns = whole((double)agent_cost(ses) * (double)c->watched.ns /
					   (double)(clock_ns(CLOCK_MONOTONIC) - c->began_ns));
	}
	account(ses, &ses->about);
}

/* ---- the comparison at the end */

struct beats {
	double n, cpu_ns, ns, runq_ns, cost_ns; /* per interval, but for n */
	double error2;				/* square of the error of cpu_ns */
};

/* watched: the same intervals while they were watched, for the machine's changes of speed. */
static struct beats beats_of(const struct mxbpf_beat *b, const struct mxbpf_beat *watched)
{
	const double drift2 = att_beat_drift2(watched, b->blocks);
	struct beats x = {.n = (double)b->n};

	if (!b->n)
		return x;
	x.cpu_ns = (double)b->cpu_ns / x.n;
	x.ns = (double)b->ns / x.n;
	x.runq_ns = (double)b->runq_ns / x.n;
	x.cost_ns = (double)b->cost_ns / x.n;
	x.error2 = att_beat_error2(b);
	x.error2 = (x.error2 > drift2 ? x.error2 : drift2) * x.cpu_ns * x.cpu_ns;
	return x;
}

/* The sums since an earlier moment. */
static struct mxbpf_beat beat_since(struct mxbpf_beat b, const struct mxbpf_beat *first)
{
	b.n -= first->n;
	b.ns -= first->ns;
	b.cpu_ns -= first->cpu_ns;
	b.runq_ns -= first->runq_ns < b.runq_ns ? first->runq_ns : b.runq_ns;
	b.cost_ns -= first->cost_ns;
	b.blocks -= first->blocks;
	b.means -= first->means;
	b.squares -= first->squares;
	b.products -= first->products;
	return b;
}

/*
 * Lets the job run until its interval is known, or the user wants to end. Returns the sums. rests: the agent does;
 * NULL: one place is probed.
 */
static struct mxbpf_beat run_alone(struct session *ses, struct agent_phase *rests)
{
	const uint64_t began = clock_ns(CLOCK_MONOTONIC);
	struct pollfd wake = {.fd = ses->ui.wake_fd, .events = POLLIN};
	uint64_t passed, ours_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID), busy_ns;
	struct mxbpf_beat b, first = {0};
	bool asked, settled = false;

	do {
		asked = poll(&wake, 1, SLICE_MS) > 0; /* Ctrl-C */
		b = rests ? agent_beat(ses, rests, true) : att_beat(ses->first->att);
		passed = clock_ns(CLOCK_MONOTONIC) - began;
		busy_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - ours_ns;
		ours_ns += busy_ns;
		settled |= passed >= SETTLE_NS && (busy_ns < BUSY_NS || passed >= SETTLE_MAX_NS);
		if (!settled)
			first = b;
		b = beat_since(b, &first);
	} while (!asked && passed < ALONE_MAX_NS && (b.cpu_ns < ALONE_NS || b.n < ALONE_BEATS) &&
		 !(passed >= SILENT_NS && !b.n && !first.n) && !tgt_gone(ses->targets[0].tgt));
	return b;
}

/*
 * Returns the part of the time of iterations that goes without watching. The thread then runs as long as it did alone,
 * and waits for a CPU in proportion. Other threads that it waits for are faster by at most what watching added to them.
 */
static double shrink_of(const struct mdl_cost *c, const struct beats *watched, const struct beats *alone)
{
	const double others = (double)(c->added_ns - c->thread_ns) / (double)(c->thread_ns ? c->thread_ns : 1);
	const double most = others * watched->cost_ns;
	const double ran = watched->cpu_ns > alone->cpu_ns ? 1 - alone->cpu_ns / watched->cpu_ns : 0;
	const double late =
		watched->ns - watched->cpu_ns - watched->runq_ns - (alone->ns - alone->cpu_ns - alone->runq_ns);

	return (ran * (watched->cpu_ns + watched->runq_ns) + (late < 0 ? 0 : late > most ? most : late)) / watched->ns;
}

/* Weighs the estimates and what was measured by their errors. */
static void combine(struct mdl_cost *c, const struct beats *watched, const struct beats *alone,
		    const struct estimate *of)
{
	const double measured = (watched->cpu_ns - alone->cpu_ns) / watched->cost_ns;
	const double error2 = (watched->error2 + alone->error2) / (watched->cost_ns * watched->cost_ns) + 1e-4;
	const double prior = 1 / (of->error * of->error);
	const double weight = prior + 1 / error2;
	double scale = (prior + measured / error2) / weight;

	scale = scale < of->least ? of->least : scale > of->most ? of->most : scale;
	c->scale = (uint32_t)(scale * 1000);
	c->uncertain = (uint32_t)(sqrt(1 / weight) / scale * 1000);
	if (watched->error2 + alone->error2 < of->error * of->error * watched->cost_ns * watched->cost_ns)
		c->shrink = (uint32_t)(shrink_of(c, watched, alone) * 1000);
	c->beats = (uint64_t)alone->n;
	c->beat_watched_ns = (uint64_t)watched->cpu_ns;
	c->beat_unwatched_ns = (uint64_t)alone->cpu_ns;
}

/*
 * Measures what a hit costs in the comparison, by a second place that is probed as well, if it matters. first: without
 * that. Returns the estimate if it cannot be measured.
 */
static double hit_of(struct session *ses, const struct beats *first, double hit_ns, double *error)
{
	struct mxbpf_beat b;
	struct beats both;
	double ratio, measured;

	*error = HIT_ERROR * hit_ns;
	if (hit_ns < WORTH * first->cpu_ns || att_beat_second(ses->first->att, &ses->targets[0].plan, &ratio))
		return hit_ns;
	b = run_alone(ses, NULL);
	both = beats_of(&b, &cost_state_of(ses)->watched);
	measured = ratio > 0 ? (both.cpu_ns - first->cpu_ns) / ratio : 0;
	if (measured < hit_ns / 3 || measured > hit_ns * 3)
		return hit_ns;
	*error = sqrt(both.error2 + first->error2) / ratio;
	return measured;
}

static void cost_compare(struct session *ses, const struct beats *watched, double hit_ns)
{
	struct mxbpf_beat b = run_alone(ses, NULL);
	struct beats alone = beats_of(&b, &cost_state_of(ses)->watched);
	double error;

	hit_ns = hit_of(ses, &alone, hit_ns, &error);
	att_detach(ses->first->att);
	alone.cpu_ns -= hit_ns;
	alone.ns -= hit_ns;
	alone.error2 += error * error;
	if (alone.n && alone.cpu_ns > 0)
		combine(&ses->about.cost, watched, &alone, &of_probes);
}

/* Whether the cost is so large that it is worth measuring. */
static bool is_worth(const struct session *ses)
{
	const struct state *c = cost_state_of(ses);
	const struct mxbpf_beat *b = &c->watched;

	return c->stage != COST_OFF && b->n && (double)b->cost_ns > WORTH * (double)b->cpu_ns &&
	       !tgt_gone(ses->targets[0].tgt);
}

static void alone(struct session *ses)
{
	struct state *c = cost_state_of(ses);
	struct agent_phase rests = {.from_ns = clock_ns(CLOCK_MONOTONIC), .tid = c->agent.tid};

	if (ses->agent.source && is_worth(ses))
		c->alone = run_alone(ses, &rests);
}

static void compare_agent(struct session *ses, const struct beats *watched)
{
	const struct state *c = cost_state_of(ses);
	const struct beats x = beats_of(&c->alone, &c->watched);

	if (x.n)
		combine(&ses->about.cost, watched, &x, &of_agent);
}

/* ---- iterations in slices and between them */

static int cost_by_time(const void *va, const void *vb)
{
	const double a = *(const double *)va, b = *(const double *)vb;

	return a < b ? -1 : a > b;
}

/* The median of n values, which it sorts; *error2: the square of its error, by the middle half of them. */
static double median_of(double *x, size_t n, double *error2)
{
	double spread;

	qsort(x, n, sizeof(*x), cost_by_time);
	spread = (x[n * 3 / 4] - x[n / 4]) / 1.35 * 1.25; /* of a median, if they are spread normally */
	*error2 = spread * spread / (double)n;
	return x[n / 2];
}

static bool same_loop(const struct mxbpf_iteration *a, const struct mxbpf_iteration *b)
{
	return a->h.tgid == b->h.tgid && a->tid == b->tid;
}

static double sum_of(const __u64 part_ns[MXBPF_STEP_PARTS])
{
	double sum = 0;
	unsigned i;

	for (i = 0; i < MXBPF_STEP_PARTS; i++)
		sum += (double)part_ns[i];
	return sum;
}

/* The times and costs of the iterations of a loop, those in slices apart from the others. */
static void compare_loop(struct mdl_cost *c, const struct mxbpf_iteration *it, size_t n)
{
	double *all = calloc(4 * n + 4, sizeof(*all)), *ran[2], *cost[2], most = 0, unused;
	struct beats seen = {.n = 0}, other = {.n = 0};
	size_t k[2] = {0}, i;

	if (!all)
		return;
	for (i = 0; i < 2; i++) {
		ran[i] = all + i * n;
		cost[i] = all + (2 + i) * n;
	}
	for (i = 0; i < n; i++)
		most = fmax(most, sum_of(it[i].cost_ns));
	for (i = 0; i < n; i++) {
		const bool in = sum_of(it[i].cost_ns) > most / 2;

		ran[in][k[in]] = fmax(0, (double)it[i].dur_ns - sum_of(it[i].runq_ns));
		cost[in][k[in]++] = sum_of(it[i].cost_ns);
	}
	if (k[true] >= ITERATIONS_LEAST && k[false] >= ITERATIONS_LEAST) {
		seen.ns = seen.cpu_ns = median_of(ran[true], k[true], &seen.error2);
		other.ns = other.cpu_ns = median_of(ran[false], k[false], &other.error2);
		seen.cost_ns = median_of(cost[true], k[true], &unused) - median_of(cost[false], k[false], &unused);
		other.n = (double)k[true];
		if (seen.cost_ns > WORTH * other.cpu_ns)
			combine(c, &seen, &other, &of_probes);
	}
	free(all);
}

/* What slices cost the longest loop says how right the estimates are. */
static void compare_iterations(struct session *ses)
{
	size_t n, i, first = 0, best = 0, most = 0;
	const struct mxbpf_iteration *it = steps_iterations(ses->model, &n);

	for (i = 0; i < n; i++) {
		first = same_loop(&it[i], &it[first]) ? first : i;
		if (i + 1 - first > most) {
			most = i + 1 - first;
			best = first;
		}
	}
	if (most)
		compare_loop(&ses->about.cost, it + best, most);
}

/* Says how to get every call where there are only those of slices. */
static void offer_agent(struct session *ses)
{
	const struct ses_remedy *r = &ses->o->remedy;

	if (agent_helps(ses) && r->command && r->lost)
		ses_add_note(&ses->about, "agent", "it records every call for less than probes do%s%s: %s",
			     r->lost[0] ? ", without " : "", r->lost, r->command);
}

static void detached(struct session *ses)
{
	const struct state *its = cost_state_of(ses);
	struct mdl_cost *c = &ses->about.cost;
	const struct beats watched = beats_of(&its->watched, &its->watched);
	const bool sliced = its->slices && slices_any(its->slices), worth = is_worth(ses);
	uint64_t hit_ns;
	int err = 0;

	if (sliced) {
		compare_iterations(ses);
		offer_agent(ses);
	} else if (ses->agent.source) {
		compare_agent(ses, &watched);
	} else if (worth) {
		err = att_beat_alone(ses->first->att, &ses->targets[0].plan, &hit_ns);
	}
	if (!sliced && !ses->agent.source && worth && !err)
		cost_compare(ses, &watched, (double)hit_ns);
	ses_detail(ses, "cost: %.0f intervals of %.0f us at the place that was chosen, %.0f us of them cost; %s",
		   watched.n, watched.cpu_ns / 1000, watched.cost_ns / 1000,
		   c->beats ? "compared"
		   : !worth ? "too few to compare"
		   : err    ? strerror(-err)
			    : "no hits alone");
	c->thread = ses->agent.source ? its->agent.tid : its->compared_tid;
	if (sliced) /* iterations between slices are not watched */
		c->shrink = 0;
	c->added_ns = mdl_permille(c->added_ns, c->scale);
	c->thread_ns = mdl_permille(c->thread_ns, c->scale);
}

const struct ses_feature cost_session = {
	.state_bytes = sizeof(struct state),
	.start = cost_start,
	.tick = tick,
	.ends = ends,
	.alone = alone,
	.detached = detached,
	.account = account,
	.fini = cost_fini,
};
