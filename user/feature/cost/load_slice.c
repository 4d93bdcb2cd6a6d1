// SPDX-License-Identifier: Apache-2.0
/* The slice that is under way: its probes, its records, and when the next one of its process is due. */
#include <errno.h>
#include <stdlib.h>

#include "attach/costs.h"
#include "feature/cost/load_slices.h"

#define WATCH_NS       (20 * NS_PER_MS)	 /* between looks at a slice, which wakes mxbpf when it is over */
#define SETTLE_MAX_NS  (3 * NS_PER_S)	 /* for the records of a slice; it counts without those that come later */
#define ARMED_MAX_NS   NS_PER_S		 /* for an iteration to end; then the slice begins in the middle of one */
#define BLIND_NS       (200 * NS_PER_MS) /* length of such a slice */
#define OPEN_MAX_NS    (2 * NS_PER_S)
#define EVERY_NS       (2 * NS_PER_S) /* between slices of all processes */
#define OWN_SHARE      100	      /* attaching takes at most one part in so many of a CPU */
#define ITERATIONS_MAX 200
#define MARKS	       200 /* iterations in a slice of what costs little */
#define FORGET	       32  /* slices, between two looks for calls whose ends nobody saw */
#define AIM	       0.7 /* of the limit, because the costs are estimates */
#define LEAST	       0.2 /* of the limit, for slices, whatever the rest costs */

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
	folded = ses->folded[ring->number] + ses->unkept[ring->number];
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

/* Collects the names of a process's rows in this interval. */
static void names_of(struct session *ses, uint32_t tgid, struct hash *names)
{
	struct mdl *m = ses->fresh ? ses->fresh : ses->model;
	const struct mdl_row *const *rows;
	unsigned cls;
	size_t n, i;

	pthread_mutex_lock(&ses->lock);
	for (cls = 0; cls < MXBPF_CLASS_MAX; cls++) {
		rows = mdl_rows(m, (enum mxbpf_class)cls, &n);
		for (i = 0; i < n; i++)
			if (rows[i]->tgid == tgid)
				hash_put(names, rows[i]->name_id, 0); /* without memory it is left out */
	}
	pthread_mutex_unlock(&ses->lock);
}

/* Notes the functions that were called in the slice. */
static void note_called(struct session *ses, struct plan_state *p, uint32_t tgid)
{
	const size_t n = buf_count(&p->plan->sites, struct plan_site);
	struct hash names = {0};
	uint64_t id;
	size_t i;

	names_of(ses, tgid, &names);
	for (i = 0; i < n; i++) {
		id = plan_func_id(p->plan, buf_at(&p->plan->sites, struct plan_site, i));
		p->called[i] = p->called[i] || !id || hash_get(&names, id, 0);
	}
	hash_fini(&names);
}

/* All probes were attached up to now, so the first slices need not look for functions. */
void slice_note_all_called(struct session *ses, struct slices *s, const struct ses_build *b)
{
	size_t i;

	for (i = 0; i < buf_count(&s->procs, struct proc); i++) {
		const struct proc *p = buf_at(&s->procs, struct proc, i);
		struct plan_state *of = &s->plans[p->of - ses->targets];

		if (p->of->build != b || !of->plan)
			continue;
		note_called(ses, of, p->tgid);
		of->full_at = clock_ns(CLOCK_MONOTONIC) + FULL_NS;
	}
}

static void choose_sites(struct plan_state *p, bool full, bool marks)
{
	const size_t n = buf_count(&p->plan->sites, struct plan_site);
	const struct plan_site *site;
	size_t i;

	for (i = 0; i < n; i++) {
		site = buf_at(&p->plan->sites, struct plan_site, i);
		p->slice[i] = p->left_out[i] ? !(marks ? plan_is_always(p->plan, site) : full || p->called[i]) : true;
	}
}

/* Attaches the probes of a part of the slice. Returns whether that is done. */
static bool attach(struct session *ses, struct slices *s, unsigned iterations)
{
	struct plan_state *of = &s->plans[s->now.of - ses->targets];
	const uint64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct err e = {0};

	s->attached_ns = clock_ns(CLOCK_MONOTONIC);
	s->forced_ns = 0;
	choose_sites(of, s->full, s->marks);
	if (!s->marks)
		ses_late_slice(s->now.of->build, s->now.tgid);
	if (att_slice_open(s->now.of->build->att, &s->now.of->plan, s->now.tgid, of->slice, iterations, &e)) {
		if (e.cls != ERR_TARGET)
			ses_warn(ses, "a slice cannot be recorded: %s", e.why);
		return false;
	}
	s->work_ns +=
		2 * (clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns); /* detaching takes as long, in other threads */
	s->stage = ATTACHED;
	return true;
}

static void begin(struct session *ses, struct slices *s, struct proc *p)
{
	s->now = *p;
	s->began_ns = clock_ns(CLOCK_MONOTONIC);
	s->full = s->began_ns >= s->plans[p->of - ses->targets].full_at;
	s->marks = false;
	s->work_ns = 0;
	s->marked = (struct att_slice){0};
	s->cost_ns = att_costs_of(p->of->build->att, p->tgid);
	if (!attach(ses, s, p->each))
		p->next_ns = s->began_ns + FULL_NS; /* unless it has ended */
}

static void end(struct session *ses, struct slices *s)
{
	struct ses_build *b = s->now.of->build;
	const struct att_slice was = att_slice_close(b->att);

	slice_await(s, b, SETTLING);
	if (s->marks) {
		s->marked = was;
		return;
	}
	s->was = was;
	s->cost_ns = att_costs_of(b->att, s->now.tgid) - s->cost_ns;
}

/* Begins the second part if the slice has one. */
static bool begin_marks(struct session *ses, struct slices *s)
{
	if (s->marks || !s->was.from_ns || s->builds[s->now.of->build->number].level != LEVEL_NOTHING)
		return false;
	s->marks = true;
	return attach(ses, s, MARKS);
}

/* How long the process must work without a slice, and how many iterations the next one has. */
static void plan_next(const struct session *ses, struct slices *s, struct proc *p)
{
	const double limit = AIM * slices_limit(ses), least = LEAST * slices_limit(ses);
	const double rest = limit - s->builds[p->of->build->number].overhead / RARE;
	const double cost = (double)(s->cost_ns + s->work_ns);
	const uint64_t seen_ns = s->was.to_ns - s->was.from_ns;
	const double each = s->was.iterations ? (double)s->cost_ns / (double)s->was.iterations : 0;
	double n = each > 0 ? (double)s->work_ns / each : ITERATIONS_MAX, most;

	if (s->was.iterations) {
		most = (double)OPEN_MAX_NS / 2 / ((double)seen_ns / (double)s->was.iterations);
		n = n < most ? n : most;
	}
	p->each = n < ITERATIONS ? ITERATIONS : n > ITERATIONS_MAX ? ITERATIONS_MAX : (unsigned)n;
	p->next_ns = s->closed_ns + (uint64_t)(cost / (rest > least ? rest : least));
	p->share = seen_ns ? (double)s->cost_ns / (double)seen_ns : 0;
	p->measured = s->was.from_ns;
	s->next_ns = s->closed_ns + (s->work_ns * OWN_SHARE > EVERY_NS ? s->work_ns * OWN_SHARE : EVERY_NS);
}

/* What the slice says. */
static struct mxbpf_slice_part part_of(const struct slices *s, const struct proc *p)
{
	const uint64_t ns = s->was.to_ns - s->was.from_ns, marks_ns = s->marked.to_ns - s->marked.from_ns;
	struct mxbpf_slice_part r = slices_since(p, s->was.to_ns);
	double rate;

	r.slices = 1;
	r.slice_ns = ns;
	r.seen_ns = ns - (s->cost_ns < ns / 10 * 9 ? s->cost_ns : ns / 10 * 9); /* watching made it longer */
	r.seen_iterations = s->was.iterations;
	if (s->builds[p->of->build->number].level != LEVEL_NOTHING)
		return r;
	rate = s->marked.iterations ? (double)s->marked.iterations / (double)marks_ns
				    : (double)s->was.iterations / (double)r.seen_ns;
	r.all_iterations = (uint64_t)((double)r.all_ns * rate);
	r.marks_ns = r.seen_ns + marks_ns;
	r.marks_iterations = s->was.iterations + s->marked.iterations;
	return r;
}

static void settle(struct session *ses, struct slices *s)
{
	struct proc *p = slices_proc(s, s->now.tgid);
	struct plan_state *of = &s->plans[s->now.of - ses->targets];
	struct mxbpf_slice_part part;

	s->stage = IDLE;
	slices_start_look(s->now.of->build,
			  &s->builds[s->now.of->build->number]); /* the next one is without the slice */
	if (s->was.from_ns) {
		note_called(ses, of, s->now.tgid);
		if (s->full)
			of->full_at = s->closed_ns + FULL_NS;
	}
	if (!p)
		return;
	plan_next(ses, s, p);
	if (++s->nsettled % FORGET == 0)
		att_slice_forget(p->of->build->att);
	if (!s->was.from_ns)
		return;
	part = part_of(s, p);
	ses_detail(ses,
		   "slice of process %u: %llu iterations in %llu us, cost %llu us, attaching %llu us%s; it stands for "
		   "%llu iterations",
		   p->tgid, (unsigned long long)part.seen_iterations, (unsigned long long)part.slice_ns / 1000,
		   (unsigned long long)s->cost_ns / 1000, (unsigned long long)s->work_ns / 1000,
		   s->full ? ", all functions" : "", (unsigned long long)part.all_iterations);
	slices_keep(ses, p, &part, s->was.to_ns);
}

/* Looks at the slice that is under way. */
uint64_t slice_watch(struct session *ses, struct slices *s, uint64_t now)
{
	struct att *a;

	if (s->stage != ATTACHED) {
		if (!has_settled(ses, s, now))
			return now + WATCH_NS;
		if (s->stage == SETTLING && begin_marks(ses, s))
			return now + WATCH_NS;
		if (s->stage == SETTLING)
			settle(ses, s);
		s->stage = IDLE;
		return now;
	}
	a = s->now.of->build->att;
	switch (att_slice_state(a)) {
	case ATT_SLICE_ARMED:
		if (now >= s->attached_ns + ARMED_MAX_NS && att_slice_begin(a))
			s->forced_ns = now;
		break;
	case ATT_SLICE_OPEN:
		if (now >= s->attached_ns + OPEN_MAX_NS || (s->forced_ns && now >= s->forced_ns + BLIND_NS))
			end(ses, s);
		break;
	case ATT_SLICE_OVER:
		end(ses, s);
		break;
	}
	return now + WATCH_NS;
}

/* Begins the slice that is due for longest. Returns when the next one is due. */
uint64_t slice_next(struct session *ses, struct slices *s, uint64_t now)
{
	struct proc *best = NULL;
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
	begin(ses, s, best);
	return now + WATCH_NS;
}

/* The session ends. What a slice has so far is its own. */
void slices_end(struct session *ses, struct slices *s)
{
	if (s->stage == ATTACHED) /* if it is the first part, there is no second */
		end(ses, s);
	if (s->stage == SETTLING)
		settle(ses, s);
}
