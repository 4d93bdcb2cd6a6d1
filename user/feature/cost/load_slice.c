// SPDX-License-Identifier: Apache-2.0
/* The slice that is under way: its probes, its records, and when the next one of its process is due. */
#include <errno.h>
#include <stdlib.h>

#include "attach/costs.h"
#include "feature/cost/load_slices.h"
#include "targets/targets.h"

#define WATCH_NS       (20 * NS_PER_MS) /* between looks at a slice, which wakes mxbpf when it is over */
#define SETTLE_MAX_NS  (3 * NS_PER_S)	/* for the records of a slice; it counts without those that come later */
#define ARMED_MAX_NS   NS_PER_S		/* for an iteration to end; then the slice begins in the middle of one */
#define BLIND_NS       (60 * NS_PER_MS) /* length of such a slice, at most */
#define BLIND_LEAST_NS (20 * NS_PER_MS)
#define REST_NS	       (5 * NS_PER_S)	 /* before the next slice of a process that has called nothing */
#define COST_MOST_NS   (150 * NS_PER_MS) /* of a slice, so that the job is not slow for long */
#define OPEN_MAX_NS    (2 * NS_PER_S)
#define EVERY	       (20 * NS_PER_MS) /* between slices of all processes, divided by the limit */
#define ITERATIONS_MAX 200
#define MARKS	       200		/* iterations in a slice of what costs little, at most */
#define MARKS_NS       (50 * NS_PER_MS) /* length of such a slice, if that is more than ITERATIONS */
#define FORGET	       32		/* slices, between two looks for calls whose ends nobody saw */
#define AIM	       0.4		/* of the limit, because the costs are estimates */
#define LEAST	       0.2		/* of the limit, for slices, whatever the rest costs */
#define SHARE_MOST     0.9
#define MEASURED       10		/* slices in which the kernel measures the programs */
#define ARMED_COST     0.6		/* of what a hit costs that is recorded, before the slice begins */
#define ATTACH_NS      (20 * NS_PER_MS) /* attaching takes so long, if nothing is known yet, */
#define ATTACH_MOST_NS (50 * NS_PER_MS) /* and at most; the rest is mxbpf's waiting for a CPU */

/* Records that were made up to now belong to what was recorded so far. */
void slice_await(struct slices *s, const struct ses_build *b, int stage)
{
	struct mxbpf_loss loss = {0};

	src_loss(b->rings[ATT_CALLS], &loss);
	s->awaited = b;
	s->awaited_n = loss.attempted;
	s->closed_ns = clock_ns(CLOCK_MONOTONIC);
	s->stage = stage;
}

static bool has_settled(struct session *ses, const struct slices *s, uint64_t now)
{
	const struct src *ring = s->awaited->rings[ATT_CALLS];
	struct mxbpf_loss loss = {0};
	uint64_t folded;

	if (!att_slice_closed(s->awaited->att)) /* its probes would record in the next one */
		return false;
	src_loss(ring, &loss);
	pthread_mutex_lock(&ses->lock);
	folded = ses->kept.folded[ring->number] + ses->kept.dropped[ring->number];
	pthread_mutex_unlock(&ses->lock);
	return folded + loss.dropped >= s->awaited_n || now >= s->closed_ns + SETTLE_MAX_NS;
}

struct proc *slices_proc(struct slices *s, uint32_t tgid)
{
	size_t i;

	for (i = 0; i < buf_count(&s->procs, struct proc); i++)
		if (buf_at(&s->procs, struct proc, i)->tgid == tgid)
			return buf_at(&s->procs, struct proc, i);
	return NULL;
}

void slices_keep(struct session *ses, struct proc *p, struct mxbpf_slice_part *r, uint64_t end_ns)
{
	r->h = (struct mxbpf_rec){
		.kind = MXBPF_SLICE, .size = sizeof(*r), .tgid = p->tgid, .ts_ns = end_ns - r->slice_ns};
	ses_keep(ses, r, sizeof(*r), 0);
	p->until_ns = end_ns;
	p->iterations = att_iterations(p->of->build->att, p->tgid);
}

/* What happened in a process since its last record: all ends of iterations were seen. */
struct mxbpf_slice_part slices_since(const struct proc *p, uint64_t end_ns)
{
	const uint64_t n = att_iterations(p->of->build->att, p->tgid), all = n > p->iterations ? n - p->iterations : 0;
	const uint64_t all_ns = end_ns > p->until_ns ? end_ns - p->until_ns : 0;

	return (struct mxbpf_slice_part){
		.all_ns = all_ns, .marks_ns = all_ns, .all_iterations = all, .marks_iterations = all};
}

static void choose_sites(struct plan_state *p, bool marks)
{
	const size_t n = buf_count(&p->plan->sites, struct plan_site);
	const struct plan_site *site;
	size_t i;

	for (i = 0; i < n; i++) {
		site = buf_at(&p->plan->sites, struct plan_site, i);
		p->slice[i] = !p->left_out[i] || !(marks ? plan_is_always(p->plan, site) : p->called[i]);
	}
}

/* Attaches the probes of a part of the slice. Returns whether that is done. */
static bool cost_attach(struct session *ses, struct slices *s, unsigned iterations)
{
	struct plan_state *of = &s->plans[s->now.of - ses->targets];
	const uint64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct err e = {0};
	uint64_t took_ns;

	s->attached_ns = clock_ns(CLOCK_MONOTONIC);
	scan_first_calls(s, ses->targets);
	choose_sites(of, s->marks);
	if (!s->marks)
		ses_late_slice(s->now.of->build, s->now.tgid);
	if (att_slice_open(s->now.of->build->att, &s->now.of->plan, s->now.tgid, of->slice, iterations, &e)) {
		if (e.cls != ERR_TARGET)
			ses_warn(ses, "a slice cannot be recorded: %s", e.why);
		return false;
	}
	took_ns = clock_ns(CLOCK_MONOTONIC) - s->attached_ns;
	s->held_ns += took_ns < ATTACH_MOST_NS ? took_ns : ATTACH_MOST_NS;
	s->work_ns +=
		2 * (clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns); /* detaching takes as long, in other threads */
	s->stage = ATTACHED;
	return true;
}

/* What hits take of a process's time while all of its calls are recorded. */
static double share_of(const struct slices *s, const struct proc *p, const struct ses_target *targets)
{
	const double overhead = s->plans[p->of - targets].overhead;
	const double share = p->measured ? p->share : overhead / (1 + overhead);

	return share < 0.01 ? 0.01 : share > SHARE_MOST ? SHARE_MOST : share;
}

/* How long a slice may be, in the time of the job with all probes. */
static uint64_t longest(double share)
{
	const double ns = (double)COST_MOST_NS / share;

	return ns < (double)OPEN_MAX_NS ? (uint64_t)ns : OPEN_MAX_NS;
}

/*
 * A slice has as many iterations as cost the job as much as attaching did. If a single one is too long, or none ends,
 * the slice begins and ends at any moment.
 */
static unsigned choose_length(struct slices *s, struct proc *p, const struct ses_target *targets)
{
	const double share = share_of(s, p, targets), each = (double)p->iteration_ns / (1 - share);
	const double attach_ns = s->attach_ns ? (double)s->attach_ns : ATTACH_NS;
	const double most = (double)longest(share), fair = each > 0 ? attach_ns / (each * share) : 0;
	double n = fair < ITERATIONS ? ITERATIONS : fair > ITERATIONS_MAX ? ITERATIONS_MAX : fair;

	s->blind = each <= 0 || each > most;
	n = n * each > most ? most / each : n;
	return s->blind ? ITERATIONS_MAX : n < 1 ? 1 : (unsigned)n;
}

void slices_note_speed(const struct slices *s, struct proc *p)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC), ended = att_iterations(p->of->build->att, p->tgid);

	if (ended <= p->looked_iterations || s->builds[p->of->build->number].level == LEVEL_NOTHING)
		return;
	p->iteration_ns = (now - p->looked_ns) / (ended - p->looked_iterations);
	p->looked_ns = now;
	p->looked_iterations = ended;
}

static void cost_load_slice_begin(struct session *ses, struct slices *s, struct proc *p)
{
	slices_note_speed(s, p);
	s->now = *p;
	s->began_ns = clock_ns(CLOCK_MONOTONIC);
	s->marks = false;
	s->work_ns = s->held_ns = 0;
	s->marked = (struct att_slice){0};
	s->costs_from_ns = att_costs_of(p->of->build->att, p->tgid);
	if (s->nmeasured < MEASURED)
		att_costs_measure(p->of->build->att, true);
	if (!cost_attach(ses, s, choose_length(s, p, ses->targets)))
		p->next_ns = s->began_ns + FAILED_NS; /* unless it has ended */
	else if (s->blind)
		att_slice_begin(p->of->build->att);
	s->attach_ns = s->held_ns;
}

static void cost_end(struct session *ses, struct slices *s)
{
	struct ses_build *b = s->now.of->build;
	const struct att_slice was = att_slice_close(b->att);

	slice_await(s, b, SETTLING);
	if (s->marks) {
		s->marked = was;
		return;
	}
	s->was = was;
	if (s->nmeasured < MEASURED) {
		s->nmeasured += att_costs_update(b->att);
		att_costs_measure(b->att, false);
	}
	s->cost_ns = att_costs_of(b->att, s->now.tgid) - s->costs_from_ns;
}

/* Begins the second part if the slice has one. */
static bool begin_marks(struct session *ses, struct slices *s)
{
	const double n = s->now.iteration_ns ? (double)MARKS_NS / (double)s->now.iteration_ns : 0;

	if (s->marks || !s->was.from_ns || s->builds[s->now.of->build->number].level != LEVEL_NOTHING)
		return false;
	s->marks = true;
	return cost_attach(ses, s, n < ITERATIONS ? ITERATIONS : n > MARKS ? MARKS : (unsigned)n);
}

/* How long the process must work without a slice. */
static void plan_next(const struct session *ses, struct slices *s, struct proc *p)
{
	const double limit = AIM * slices_limit(ses), least = LEAST * slices_limit(ses);
	const double rest = limit - s->builds[p->of->build->number].overhead;
	const double seen_ns = (double)(s->was.to_ns - s->was.from_ns);
	const double share = seen_ns > 0 ? (double)s->cost_ns / seen_ns : 0;
	const double armed_ns = s->was.from_ns > s->attached_ns ? (double)(s->was.from_ns - s->attached_ns) : 0;
	const double hits_ns =
		(double)(att_costs_of(p->of->build->att, p->tgid) - s->costs_from_ns); /* of both parts */
	const double cost = hits_ns + (double)s->held_ns + ARMED_COST * share * armed_ns;
	const double every = EVERY / slices_limit(ses), own = (double)s->work_ns / slices_limit(ses);

	p->next_ns = s->closed_ns + (uint64_t)(cost / (rest > least ? rest : least));
	p->next_ns += (uint64_t)((double)s->scan_ns / slices_limit(ses)); /* scans are rare */
	s->scan_ns = 0;
	if (!hits_ns) /* such as a launcher of ranks */
		p->next_ns += REST_NS;
	p->share = share < SHARE_MOST ? share : SHARE_MOST;
	p->measured = s->was.from_ns;
	s->next_ns = s->closed_ns + (uint64_t)(own > every ? own : every);
}

/* What the slice says. */
static struct mxbpf_slice_part cost_part_of(const struct slices *s, const struct proc *p)
{
	const enum level level = s->builds[p->of->build->number].level;
	const uint64_t ns = s->was.to_ns - s->was.from_ns, marks_ns = s->marked.to_ns - s->marked.from_ns;
	struct mxbpf_slice_part r = slices_since(p, s->was.to_ns);
	double rate;

	r.slices = 1;
	r.slice_ns = ns;
	r.seen_ns = ns - (s->cost_ns < ns / 10 * 9 ? s->cost_ns : ns / 10 * 9); /* watching made it longer */
	if (p->counted || !s->blind) /* as many ends of iterations as there are iterations, on average */
		r.seen_iterations = s->was.iterations;
	if (level < LEVEL_MARKS)
		return r;
	rate = s->marked.iterations ? (double)s->marked.iterations / (double)marks_ns
				    : (double)s->was.iterations / (double)r.seen_ns;
	if (level == LEVEL_NOTHING)
		r.all_iterations = (uint64_t)((double)r.all_ns * rate);
	r.marks_ns = r.seen_ns + marks_ns;
	r.marks_iterations = s->was.iterations + s->marked.iterations;
	return r;
}

static void cost_settle(struct session *ses, struct slices *s)
{
	struct proc *p = slices_proc(s, s->now.tgid);
	struct mxbpf_slice_part part;

	s->stage = IDLE;
	slices_start_look(s->now.of->build,
			  &s->builds[s->now.of->build->number]); /* the next one is without the slice */
	if (!p)
		return;
	plan_next(ses, s, p);
	if (s->was.iterations && s->builds[p->of->build->number].level == LEVEL_NOTHING)
		p->iteration_ns =
			(uint64_t)((double)(s->was.to_ns - s->was.from_ns) * (1 - p->share)) / s->was.iterations;
	if (++s->nsettled % FORGET == 0)
		att_slice_forget(p->of->build->att);
	if (!s->was.from_ns)
		return;
	p->counted |= !s->blind;
	part = cost_part_of(s, p);
	ses_detail(ses,
		   "slice of process %u: %llu iterations in %llu us, cost %llu us, attaching %llu us; it stands for "
		   "%llu iterations",
		   p->tgid, (unsigned long long)part.seen_iterations, (unsigned long long)part.slice_ns / 1000,
		   (unsigned long long)s->cost_ns / 1000, (unsigned long long)s->held_ns / 1000,
		   (unsigned long long)part.all_iterations);
	slices_keep(ses, p, &part, s->was.to_ns);
}

/* How long the slice may be open. Iterations may take longer than they did before it. */
static uint64_t open_most(const struct session *ses, const struct slices *s)
{
	const uint64_t most = longest(share_of(s, &s->now, ses->targets));

	if (!s->blind)
		return 2 * most;
	return most > BLIND_NS ? BLIND_NS : most > BLIND_LEAST_NS ? most : BLIND_LEAST_NS;
}

/* Looks at the slice that is under way. */
uint64_t slice_watch(struct session *ses, struct slices *s, uint64_t now)
{
	struct att *a;
	uint64_t due;

	if (s->stage == SCANNING) {
		due = scan_watch(ses, s, now);
		if (s->stage == IDLE)
			slices_scanned(ses, s, &s->plans[s->now.of - ses->targets], s->now.of->build);
		return due;
	}
	if (s->stage != ATTACHED) {
		if (!has_settled(ses, s, now))
			return now + WATCH_NS;
		if (s->stage == SETTLING && begin_marks(ses, s))
			return now + WATCH_NS;
		if (s->stage == SETTLING)
			cost_settle(ses, s);
		s->stage = IDLE;
		return now;
	}
	a = s->now.of->build->att;
	switch (att_slice_state(a)) {
	case ATT_SLICE_ARMED:
		if (now < s->attached_ns + ARMED_MAX_NS)
			break;
		s->blind = true;
		att_slice_begin(a);
		break;
	case ATT_SLICE_OPEN:
		if (now >= att_slice_from(a) + open_most(ses, s))
			cost_end(ses, s);
		break;
	case ATT_SLICE_OVER:
		cost_end(ses, s);
		break;
	}
	return now + WATCH_NS;
}

/* Begins the slice that is due for longest. Returns when the next one is due. */
uint64_t slice_next(struct session *ses, struct slices *s, uint64_t now)
{
	struct proc *best = NULL;
	struct plan_state *of;
	size_t i;

	for (i = 0; i < buf_count(&s->procs, struct proc); i++) {
		struct proc *p = buf_at(&s->procs, struct proc, i);

		if (s->builds[p->of->build->number].level != LEVEL_ALL && (!best || p->next_ns < best->next_ns))
			best = p;
	}
	if (!best)
		return UINT64_MAX;
	if (now < s->next_ns || now < best->next_ns)
		return s->next_ns > best->next_ns ? s->next_ns : best->next_ns;
	of = &s->plans[best->of - ses->targets];
	if (!of->scanned || now >= of->scan_at) {
		if (scan_begin(s, best, ses->targets))
			return now;
		of->scan_at = now + RESCAN_NS;
	}
	cost_load_slice_begin(ses, s, best);
	return s->stage == ATTACHED ? slice_watch(ses, s, clock_ns(CLOCK_MONOTONIC)) : now + WATCH_NS;
}

/* The session ends. What a slice has so far is its own. */
void slices_end(struct session *ses, struct slices *s)
{
	scan_free(s);
	if (s->stage == SCANNING)
		s->stage = IDLE;
	if (s->stage == ATTACHED) /* if it is the first part, there is no second */
		cost_end(ses, s);
	if (s->stage == SETTLING)
		cost_settle(ses, s);
	slices_end_all(ses, s);
}
