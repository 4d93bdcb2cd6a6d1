// SPDX-License-Identifier: Apache-2.0
/*
 * Slices of detail. Each build is in one of three states: all its probes are attached; what costs little is attached
 * and the rest is in slices; or all is in slices. Slices go round the processes. A process has its next one when it has
 * worked so long without that the limit holds for both together. Attaching costs the process time as well: as much as
 * it takes mxbpf, at most. So a slice attaches only functions that were called in earlier ones, but for one slice in
 * ten minutes.
 */
#include "feature/cost/slices.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/slice.h"
#include "attach/costs.h"
#include "base/fmt.h"
#include "feature/cost/cost.h"
#include "mxbpf_step.h"
#include "session/priv.h"

#define LOOK_NS	       (300 * NS_PER_MS)
#define WATCH_NS       (20 * NS_PER_MS)	 /* between looks at a slice, which wakes mxbpf when it is over */
#define SETTLE_MAX_NS  (3 * NS_PER_S)	 /* for the records of a slice; it counts without those that come later */
#define ARMED_MAX_NS   NS_PER_S		 /* for an iteration to end; then the slice begins in the middle of one */
#define BLIND_NS       (200 * NS_PER_MS) /* length of such a slice */
#define OPEN_MAX_NS    (2 * NS_PER_S)
#define EVERY_NS       (2 * NS_PER_S) /* between slices of all processes */
#define OWN_SHARE      100	      /* attaching takes at most one part in so many of a CPU */
#define FULL_NS	       (600 * NS_PER_S)
#define RETRY_NS       (60 * NS_PER_S) /* before what costs little is attached again; it doubles up to FULL_NS */
#define ITERATIONS     3	       /* in the first slice of a process */
#define ITERATIONS_MAX 200
#define MARKS	       200 /* iterations in a slice of what costs little */
#define FORGET	       32  /* slices, between two looks for calls whose ends nobody saw */
#define RARE	       3   /* hits that are rare take several times their estimate, because caches are cold then */
#define AIM	       0.7 /* of the limit, because the costs are estimates */
#define BACK	       0.5 /* of the limit, below which all probes are attached again */
#define LEAST	       0.2 /* of the limit, for slices, whatever the rest costs */

enum level { LEVEL_ALL, LEVEL_LITTLE, LEVEL_NOTHING };

struct build_state {
	enum level level;
	uint64_t costs[MXBPF_THREADS_MAX]; /* of threads, at the last look */
	uint64_t last_ns;
	double overhead;	     /* of what is attached always, relative to the time without */
	uint64_t retry_at, retry_ns; /* LEVEL_NOTHING: when LEVEL_LITTLE is tried again */
	bool told;
};

struct plan_state {
	const struct plan *plan; /* NULL: not used */
	bool *left_out;		 /* owned: by site, what is not attached always */
	bool *slice;		 /* owned: by site, what the next slice leaves out */
	bool *called;		 /* owned: by site, its function was called in a slice */
	uint64_t full_at;	 /* when the next slice attaches all functions */
};

/* A process of a build that has slices. */
struct proc {
	uint32_t tgid;
	struct ses_target *of;
	uint64_t next_ns;	       /* when its next slice is due */
	uint64_t until_ns, iterations; /* up to where its slices stand for */
	unsigned each;		       /* iterations of its next slice */
	double share;		       /* of its time that hits took in the last slice */
	bool seen, measured;
};

struct slices {
	struct build_state builds[SES_BUILDS_MAX];
	struct plan_state plans[SES_TARGETS_MAX];
	struct buf procs; /* struct proc */
	uint64_t nsettled;
	uint64_t next_ns;     /* of any process */
	uint64_t interval_ns; /* when this interval began */
	/* The slice that is under way. */
	enum {
		IDLE,
		ATTACHED,
		SETTLING,
		CHANGED
	} stage;			 /* CHANGED: a level changed; nothing but its last records is awaited */
	const struct ses_build *awaited; /* SETTLING, CHANGED: whose records are awaited */
	uint64_t awaited_n;		 /* and how many since the start */
	struct proc now;
	bool full;		      /* all functions are attached */
	bool marks;		      /* it is the second part, with what costs little alone: LEVEL_NOTHING */
	struct att_slice was, marked; /* of both parts */
	uint64_t began_ns, attached_ns, forced_ns, closed_ns;
	uint64_t work_ns; /* attaching and detaching both parts took mxbpf */
	uint64_t cost_ns; /* what hits of the first part cost the process */
};

struct slices *slices_new(void)
{
	return calloc(1, sizeof(struct slices));
}

void slices_free(struct slices *s)
{
	unsigned i;

	for (i = 0; s && i < SES_TARGETS_MAX; i++) {
		free(s->plans[i].left_out);
		free(s->plans[i].slice);
		free(s->plans[i].called);
	}
	if (s)
		buf_fini(&s->procs);
	free(s);
}

bool slices_busy(const struct slices *s)
{
	return s->stage != IDLE;
}

static double limit_of(const struct session *ses)
{
	return (double)ses->o->max_overhead / 1000;
}

/* ---- what is attached always */

static bool stays(const struct plan *p, const struct plan_site *s, enum level level)
{
	switch (s->row->action) {
	case MXBPF_ACT_RAISE:
	case MXBPF_ACT_APP:
	case MXBPF_ACT_MARK_START:
	case MXBPF_ACT_MARK_STOP:
	case MXBPF_ACT_MARK_SET:
	case MXBPF_ACT_MARK_ADJUST:
	case MXBPF_ACT_MARK_INSTANT:
	case MXBPF_ACT_MARK_END:
		return true;
	default:
		return level == LEVEL_ALL || (level == LEVEL_LITTLE && plan_is_always(p, s));
	}
}

static int set_plan(struct session *ses, struct slices *s, unsigned i, enum level level)
{
	struct ses_target *of = &ses->targets[i];
	struct plan_state *p = &s->plans[i];
	const size_t n = buf_count(&of->plan.sites, struct plan_site);
	size_t k;

	if (p->plan != &of->plan) {
		p->left_out = calloc(n + 1, sizeof(bool));
		p->slice = calloc(n + 1, sizeof(bool));
		p->called = calloc(n + 1, sizeof(bool));
		p->plan = &of->plan;
	}
	if (!p->left_out || !p->slice || !p->called)
		return -ENOMEM;
	for (k = 0; k < n; k++)
		p->left_out[k] = !stays(&of->plan, buf_at(&of->plan.sites, struct plan_site, k), level);
	return att_leave_out(of->build->att, &of->plan, p->left_out);
}

struct again {
	struct session *ses;
	struct ses_build *b;
	struct err *e;
};

static void attach_again(void *ctx, uint32_t tgid, const struct plan *p)
{
	struct again *a = ctx;

	if (!a->e->code && ses_build_of_plan(p) == a->b && att_again(a->b->att, p, (pid_t)tgid, a->e) &&
	    a->e->cls == ERR_TARGET) /* it has ended meanwhile */
		*a->e = (struct err){0};
}

static void start_look(struct ses_build *b, struct build_state *st)
{
	att_costs_grown(b->att, st->costs);
	st->last_ns = clock_ns(CLOCK_MONOTONIC);
}

/* ---- what rows lack */

static void put_partial(struct buf *recs, uint64_t name_id, enum mxbpf_class cls, unsigned flags)
{
	const struct mxbpf_partial r = {
		.h = {.kind = MXBPF_PARTIAL, .size = sizeof(r)},
		.name_id = name_id,
		.cls = (uint8_t)cls,
		.flags = (uint8_t)(MXBPF_PARTIAL_SLICED | flags),
	};

	buf_put(recs, &r, sizeof(r)); /* without memory rows are not marked */
}

/* The classes whose calls are in slices, and names and classes that cost little. */
static void put_plan(struct buf *recs, const struct plan *p, unsigned over)
{
	const size_t n = buf_count(&p->sites, struct plan_site);
	unsigned sliced = 0, little = 0, cls;
	size_t i;

	for (i = 0; i < n; i++) {
		const struct plan_site *site = buf_at(&p->sites, struct plan_site, i);
		const uint64_t id = plan_func_id(p, site);

		if (site->row->action != MXBPF_ACT_OPEN)
			continue;
		*(plan_is_always(p, site) ? &little : &sliced) |= 1u << site->row->cls;
		if (id && plan_is_always(p, site))
			put_partial(recs, id, site->row->cls, MXBPF_PARTIAL_LITTLE | over);
	}
	for (cls = 0; cls < MXBPF_CLASS_MAX; cls++)
		if ((sliced | little) & 1u << cls)
			put_partial(recs, 0, cls, (sliced & 1u << cls ? 0 : MXBPF_PARTIAL_LITTLE) | over);
}

static void keep_partial(struct session *ses, const struct ses_build *b, enum level level)
{
	struct buf recs = {0};
	unsigned i;

	for (i = 0; i < ses->ntargets; i++)
		if (ses->targets[i].build == b)
			put_plan(&recs, &ses->targets[i].plan, level == LEVEL_ALL ? MXBPF_PARTIAL_OVER : 0);
	put_partial(&recs, 0, MXBPF_CLASS_STEP, level == LEVEL_NOTHING ? 0 : MXBPF_PARTIAL_OVER);
	ses_keep(ses, recs.data, recs.len, 0);
	buf_fini(&recs);
}

/* Records that were made up to now belong to what was recorded so far. */
static void await_records(struct slices *s, const struct ses_build *b, int stage)
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

/* What happened while nothing was recorded is in no record. */
static void resume(struct slices *s, const struct ses_build *b)
{
	size_t i;

	for (i = 0; i < buf_count(&s->procs, struct proc); i++) {
		struct proc *p = buf_at(&s->procs, struct proc, i);

		if (p->of->build != b)
			continue;
		p->until_ns = clock_ns(CLOCK_MONOTONIC);
		p->iterations = att_iterations(b->att, p->tgid);
	}
}

/* Attaches what belongs to the level to all processes of a build. Nothing is recorded meanwhile. */
static void set_level(struct session *ses, struct slices *s, struct ses_build *b, enum level level)
{
	struct build_state *st = &s->builds[b->number];
	struct err e = {0};
	struct again again = {ses, b, &e};
	int err = 0;
	unsigned i;

	for (i = 0; i < ses->ntargets && !err; i++)
		if (ses->targets[i].build == b)
			err = set_plan(ses, s, i, level);
	if (err) {
		ses_warn(ses, "out of memory");
		ses->ended = true;
		return;
	}
	ses_hold(ses);
	att_detach_planned(b->att);
	ses_each_process(ses, attach_again, &again);
	ses_release(ses);
	if (e.code) {
		ses_warn(ses, "%s", e.why);
		ses->ended = true;
	}
	st->level = level;
	keep_partial(ses, b, level);
	resume(s, b);
	start_look(b, st);
	await_records(s, b, CHANGED);
	ses_detail(ses, "%s: %s", b->title ? b->title : "runtime",
		   level == LEVEL_ALL	   ? "all probes are attached"
		   : level == LEVEL_LITTLE ? "calls are recorded in slices"
					   : "all is recorded in slices");
}

/* ---- processes */

static struct proc *proc_of(struct slices *s, uint32_t tgid)
{
	size_t i;

	for (i = 0; i < buf_count(&s->procs, struct proc); i++)
		if (buf_at(&s->procs, struct proc, i)->tgid == tgid)
			return buf_at(&s->procs, struct proc, i);
	return NULL;
}

static void note_process(void *ctx, uint32_t tgid, const struct plan *p)
{
	struct again *a = ctx;
	struct slices *s = a->ses->cost.slices;
	struct proc *known = proc_of(s, tgid), new = {.tgid = tgid, .each = ITERATIONS, .seen = true};
	unsigned i;

	if (known) {
		known->seen = true;
		return;
	}
	for (i = 0; i < a->ses->ntargets; i++)
		if (&a->ses->targets[i].plan == p)
			new.of = &a->ses->targets[i];
	if (!new.of || !new.of->build->att)
		return;
	if (s->builds[new.of->build->number].level == LEVEL_ALL) { /* it has come in this interval */
		new.until_ns = s->interval_ns;
	} else {
		new.until_ns = clock_ns(CLOCK_MONOTONIC);
		new.iterations = att_iterations(new.of->build->att, tgid);
	}
	buf_put(&s->procs, &new, sizeof(new)); /* without memory it has no slices */
}

static void note_processes(struct session *ses, struct slices *s)
{
	struct again a = {.ses = ses};
	size_t i, kept = 0, n = buf_count(&s->procs, struct proc);

	for (i = 0; i < n; i++)
		buf_at(&s->procs, struct proc, i)->seen = false;
	ses_each_process(ses, note_process, &a);
	n = buf_count(&s->procs, struct proc);
	for (i = 0; i < n; i++)
		if (buf_at(&s->procs, struct proc, i)->seen)
			*buf_at(&s->procs, struct proc, kept++) = *buf_at(&s->procs, struct proc, i);
	s->procs.len = kept * sizeof(struct proc);
}

/* ---- records */

static void keep(struct session *ses, struct proc *p, struct mxbpf_slice_part *r, uint64_t end_ns)
{
	r->h = (struct mxbpf_rec){
		.kind = MXBPF_SLICE, .size = sizeof(*r), .tgid = p->tgid, .ts_ns = end_ns - r->slice_ns};
	ses_keep(ses, r, sizeof(*r), 0);
	p->until_ns = end_ns;
	p->iterations = att_iterations(p->of->build->att, p->tgid);
}

/* What happened in a process since its last record: all ends of iterations were seen. */
static struct mxbpf_slice_part since(const struct proc *p, uint64_t end_ns)
{
	const uint64_t n = att_iterations(p->of->build->att, p->tgid), all = n > p->iterations ? n - p->iterations : 0;
	const uint64_t all_ns = end_ns > p->until_ns ? end_ns - p->until_ns : 0;

	return (struct mxbpf_slice_part){
		.all_ns = all_ns, .marks_ns = all_ns, .all_iterations = all, .marks_iterations = all};
}

/* Before the level of a build changes: from here on its records mean something else. */
static void keep_level(struct session *ses, struct slices *s, const struct ses_build *b)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct mxbpf_slice_part part;
	size_t i;

	for (i = 0; i < buf_count(&s->procs, struct proc); i++) {
		struct proc *p = buf_at(&s->procs, struct proc, i);

		if (p->of->build != b)
			continue;
		if (s->builds[b->number].level == LEVEL_NOTHING) /* the next slice stands for the time up to it */
			continue;
		part = since(p, now);
		if (s->builds[b->number].level == LEVEL_ALL) {
			part.seen_ns = part.all_ns;
			part.seen_iterations = part.all_iterations;
		}
		keep(ses, p, &part, now);
		p->next_ns = now;
		p->each = ITERATIONS;
		p->measured = false;
	}
}

/* ---- a slice */

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
static void note_all_called(struct session *ses, struct slices *s, const struct ses_build *b)
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

	await_records(s, b, SETTLING);
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
	const double limit = AIM * limit_of(ses), least = LEAST * limit_of(ses);
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
	struct mxbpf_slice_part r = since(p, s->was.to_ns);
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
	struct proc *p = proc_of(s, s->now.tgid);
	struct plan_state *of = &s->plans[s->now.of - ses->targets];
	struct mxbpf_slice_part part;

	s->stage = IDLE;
	start_look(s->now.of->build, &s->builds[s->now.of->build->number]); /* the next one is without the slice */
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
	keep(ses, p, &part, s->was.to_ns);
}

/* Looks at the slice that is under way. */
static uint64_t watch_slice(struct session *ses, struct slices *s, uint64_t now)
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
static uint64_t next_slice(struct session *ses, struct slices *s, uint64_t now)
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

/* ---- levels */

static void tell(struct session *ses, struct build_state *st)
{
	char n[32];

	if (st->told)
		return;
	st->told = true;
	ses_add_note(&ses->about, "slices",
		     "since %s of the window calls are recorded in slices of a few iterations, because watching all of "
		     "them cost more than %.1f%%; rows marked * have the calls of slices",
		     fmt_ns(ses_window_ns(ses), n), limit_of(ses) * 100);
}

/* What is attached always: whether it costs too much, or how much is left for slices. */
static void look(struct session *ses, struct slices *s, struct ses_build *b, uint64_t now)
{
	struct build_state *st = &s->builds[b->number];
	const double passed = (double)(now - st->last_ns);
	double share = (double)att_costs_grown(b->att, st->costs) / passed;

	share = share < 0.95 ? share : 0.95;
	st->overhead = RARE * share / (1 - share);
	st->last_ns = now;
	if (st->overhead <= limit_of(ses)) {
		if (st->level == LEVEL_NOTHING && now >= st->retry_at)
			set_level(ses, s, b, LEVEL_LITTLE);
		return;
	}
	if (st->level == LEVEL_ALL) {
		keep_level(ses, s, b);
		set_level(ses, s, b, LEVEL_LITTLE);
		note_all_called(ses, s, b);
		tell(ses, st);
	} else if (st->level == LEVEL_LITTLE) {
		st->retry_ns = !st->retry_ns ? RETRY_NS : st->retry_ns < FULL_NS ? 2 * st->retry_ns : FULL_NS;
		st->retry_at = now + st->retry_ns;
		keep_level(ses, s, b);
		set_level(ses, s, b, LEVEL_NOTHING);
	}
}

/* A process of a file that is new has all its probes. */
static void look_for_plans(struct session *ses, struct slices *s)
{
	unsigned i;

	for (i = 0; i < ses->ntargets; i++) {
		struct ses_build *b = ses->targets[i].build;

		if (ses->targets[i].tgt && b && b->att && s->builds[b->number].level != LEVEL_ALL &&
		    s->plans[i].plan != &ses->targets[i].plan)
			set_level(ses, s, b, s->builds[b->number].level);
	}
}

uint64_t slices_tick(struct session *ses, struct slices *s)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint64_t due = UINT64_MAX, its;
	struct ses_build *b;

	if (!s->interval_ns)
		s->interval_ns = ses->about.start_mono_ns;
	if (s->stage != IDLE)
		return watch_slice(ses, s, now);
	SES_EACH_BUILD(ses, b)
	{
		struct build_state *st = &s->builds[b->number];

		if (!b->att)
			continue;
		if (!st->last_ns) {
			start_look(b, st);
		} else if (now - st->last_ns >= LOOK_NS) {
			note_processes(ses, s);
			look(ses, s, b, now);
		}
		its = st->last_ns + LOOK_NS;
		due = its < due ? its : due;
	}
	look_for_plans(ses, s);
	its = next_slice(ses, s, now);
	return its < due ? its : due;
}

/* The session ends. What a slice has so far is its own. */
void slices_end(struct session *ses, struct slices *s)
{
	if (s->stage == ATTACHED) /* if it is the first part, there is no second */
		end(ses, s);
	if (s->stage == SETTLING)
		settle(ses, s);
}

/* All probes are attached again if the slices of all processes show that there is room. Rows of an interval are of one
 * kind, so this is when one ends. */
void slices_interval(struct session *ses, struct slices *s)
{
	struct ses_build *b;
	size_t i;

	s->interval_ns = clock_ns(CLOCK_MONOTONIC);
	note_processes(ses, s);
	for (i = 0; i < buf_count(&s->procs, struct proc); i++) {
		struct proc *p = buf_at(&s->procs, struct proc, i);

		if (s->builds[p->of->build->number].level != LEVEL_ALL)
			continue;
		p->until_ns = s->interval_ns;
		p->iterations = att_iterations(p->of->build->att, p->tgid);
	}
	SES_EACH_BUILD(ses, b)
	{
		bool room = s->builds[b->number].level == LEVEL_LITTLE, any = false;

		for (i = 0; room && i < buf_count(&s->procs, struct proc); i++) {
			const struct proc *p = buf_at(&s->procs, struct proc, i);

			if (p->of->build != b)
				continue;
			any = true;
			room = p->measured && p->share < 0.9 && RARE * p->share / (1 - p->share) < BACK * limit_of(ses);
		}
		if (room && any)
			set_level(ses, s, b, LEVEL_ALL);
	}
}
