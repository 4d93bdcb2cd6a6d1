// SPDX-License-Identifier: Apache-2.0
/*
 * The limit of what watching may cost. Each build has a level: all its probes are attached; what costs little is
 * attached and the rest is in slices; only what ends iterations is attached; or all is in slices. A session on a
 * process that runs begins with hardly any probes and with a scan (load_scan.c), which says what all would cost.
 * Slices go round the processes. A process has its next one when it has worked so long without that the limit holds for
 * both together. Attaching costs the process time as well. It loses half of the time while probes are attached, and as
 * much while they are removed. (Measured: 8 to 12 ms of 20 to 24 ms, and 10 ms.) So a slice attaches only functions
 * that a scan has seen, and is as long as attaching is worth.
 */
#include "feature/cost/load_slices.h"

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
#include "targets/targets.h"

#define LOOK_NS	    (300 * NS_PER_MS)
#define RETRY_NS    (60 * NS_PER_S) /* before what costs little is attached again; it doubles up to LONG_NS */
#define LONG_NS	    (600 * NS_PER_S)
#define BACK	    0.5		       /* of the limit, below which all probes are attached again */
#define FITS	    0.8		       /* of the limit: all probes are attached if a scan says less, */
#define FITS_LITTLE 0.5		       /* and those that cost little beside slices */
#define BEGIN_NS    (1500 * NS_PER_MS) /* for the first scan, before the window; it goes on in it */
#define FORETELL_NS (600 * NS_PER_MS)  /* for a scan that only says what all calls cost */
#define SOON_NS	    (100 * NS_PER_MS)  /* the first looks at a command, and at what strangers pay */
#define SOON	    10
#define OVER	    3	 /* successive looks above the limit, before what costs little is in slices, too */
#define RARE	    3	 /* hits that are rare take so many times their estimate, because caches are cold then */
#define OFTEN	    0.05 /* share of the time of hits that are not rare */

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
		free(s->plans[i].guards);
	}
	if (s) {
		scan_free(s);
		buf_fini(&s->procs);
	}
	free(s);
}

bool slices_busy(const struct slices *s)
{
	return s->stage != IDLE;
}

double slices_weigh(double share)
{
	share = share < 0.95 ? share : 0.95;
	return (share < OFTEN ? RARE - (RARE - 1) * share / OFTEN : 1) * share / (1 - share);
}

bool slices_any(const struct slices *s)
{
	unsigned i;

	for (i = 0; i < SES_BUILDS_MAX; i++)
		if (s->builds[i].level != LEVEL_ALL || s->builds[i].told)
			return true;
	return false;
}

double slices_limit(const struct session *ses)
{
	return (double)ses->o->max_overhead / 1000;
}

/* ---- what is attached always */

static bool cost_stays(const struct plan *p, const struct plan_site *s, enum level level)
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
		return level == LEVEL_ALL || (level == LEVEL_LITTLE && plan_is_always(p, s)) ||
		       (level == LEVEL_MARKS && s->row->iteration_end[0]);
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
	for (k = 0; k < n; k++) /* only functions can be left out of slices: other sites serve all calls */
		p->called[k] |= !plan_func_id(&of->plan, buf_at(&of->plan.sites, struct plan_site, k));
	att_only_slices(of->build->att, level != LEVEL_ALL);
	for (k = 0; k < n; k++)
		p->left_out[k] = !cost_stays(&of->plan, buf_at(&of->plan.sites, struct plan_site, k), level);
	return att_leave_out(of->build->att, &of->plan, p->left_out, level == LEVEL_MARKS);
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

/*
 * The time that strangers lost to hits since the last look, as a share of the `passed` ns since then. All hits are
 * charged to one thread, so this is an upper bound for each of several strangers.
 */
static double strangers_share(const struct ses_build *b, struct build_state *st, double passed)
{
	const struct att_strangers now = att_shares(b->att) ? att_strangers(b->att) : (struct att_strangers){0};
	const uint64_t hits = now.hits - st->stranger_hits;

	st->stranger_hits = now.hits;
	return slices_weigh((double)(hits * now.hit_ns) / passed);
}

void slices_start_look(struct ses_build *b, struct build_state *st)
{
	att_costs_grown(b->att, st->costs);
	strangers_share(b, st, 1);
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
	for (i = 0; i < b->late.nlibs; i++)
		put_plan(&recs, &b->late.libs[i]->plan, level == LEVEL_ALL ? MXBPF_PARTIAL_OVER : 0);
	put_partial(&recs, 0, MXBPF_CLASS_STEP, level >= LEVEL_MARKS ? 0 : MXBPF_PARTIAL_OVER);
	ses_keep(ses, recs.data, recs.len, 0);
	buf_fini(&recs);
	cost_slices(ses)->builds[b->number].nlate = b->late.nlibs;
}

/* What happened while nothing was recorded is in no record. */
static void resume(struct slices *s, const struct ses_build *b)
{
	size_t i;

	for (i = 0; i < buf_count(&s->procs, struct proc); i++) {
		struct proc *p = buf_at(&s->procs, struct proc, i);

		if (p->of->build != b)
			continue;
		p->until_ns = p->looked_ns = clock_ns(CLOCK_MONOTONIC);
		p->iterations = p->looked_iterations = att_iterations(b->att, p->tgid);
	}
}

static enum late_kept late_kept(enum level level)
{
	return level == LEVEL_ALL ? LATE_ALL : level == LEVEL_LITTLE ? LATE_ALWAYS : LATE_NONE;
}

/* Attaches what belongs to the level to all processes of a build. Nothing is recorded meanwhile. */
static void set_level(struct session *ses, struct slices *s, struct ses_build *b, enum level level)
{
	struct build_state *st = &s->builds[b->number];
	struct err e = {0};
	struct again again = {ses, b, &e};
	const bool begun = ses->about.start_mono_ns; /* the window has */
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
	if (begun)
		ses_hold(ses);
	att_detach_planned(b->att);
	ses_each_process(ses, attach_again, &again);
	ses_late_keep(b, late_kept(level));
	if (begun)
		ses_release(ses);
	if (e.code) {
		ses_warn(ses, "%s", e.why);
		ses->ended = true;
	}
	st->level = level;
	if (!begun)
		return;
	keep_partial(ses, b, level);
	resume(s, b);
	slices_start_look(b, st);
	slice_await(s, b, CHANGED);
	ses_detail(ses, "%s: what is attached always takes %.1f%%; %s", b->title ? b->title : "runtime",
		   st->overhead * 100,
		   (const char *const[]){"all probes are attached", "calls are recorded in slices",
					 "all is recorded in slices, and iterations are counted between them",
					 "all is recorded in slices"}[level]);
}

/* ---- processes */

static void note_process(void *ctx, uint32_t tgid, const struct plan *p)
{
	struct again *a = ctx;
	struct slices *s = cost_slices(a->ses);
	struct proc *known = slices_proc(s, tgid), new = {.tgid = tgid, .seen = true};
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
	new.looked_ns = clock_ns(CLOCK_MONOTONIC);
	new.looked_iterations = att_iterations(new.of->build->att, tgid);
	if (s->builds[new.of->build->number].level == LEVEL_ALL) { /* it has come in this interval */
		new.until_ns = s->interval_ns;
	} else {
		new.until_ns = new.looked_ns;
		new.iterations = new.looked_iterations;
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

/* Before the level of a build changes: from here on its records mean something else. */
static void keep_level(struct session *ses, struct slices *s, const struct ses_build *b)
{
	const enum level level = s->builds[b->number].level;
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct mxbpf_slice_part part;
	size_t i;

	for (i = 0; i < buf_count(&s->procs, struct proc); i++) {
		struct proc *p = buf_at(&s->procs, struct proc, i);

		if (p->of->build != b)
			continue;
		slices_note_speed(s, p);
		part = slices_since(p, now);
		if (level == LEVEL_ALL) {
			part.seen_ns = part.all_ns;
			part.seen_iterations = part.all_iterations;
		}
		if (level >= LEVEL_MARKS)
			part.marks_ns = part.marks_iterations = 0;
		if (level == LEVEL_NOTHING)
			part.all_iterations = p->iteration_ns ? part.all_ns / p->iteration_ns : 0;
		slices_keep(ses, p, &part, now);
		p->next_ns = now;
		p->measured = false;
	}
}

/* ---- levels */

static void cost_tell(struct session *ses, struct build_state *st)
{
	char n[32];

	if (st->told)
		return;
	st->told = true;
	ses_add_note(
		&ses->about, "slices",
		"since %s of the window calls are recorded in slices of a few iterations, because profiling all of "
		"them cost %smore than %.1f%%; rows marked * have the calls of slices",
		fmt_ns(ses_window_ns(ses), n), st->strangers ? "other processes that map the library " : "",
		slices_limit(ses) * 100);
}

static void wait_for_retry(struct build_state *st, uint64_t now)
{
	st->retry_ns = !st->retry_ns ? RETRY_NS : st->retry_ns < LONG_NS ? 2 * st->retry_ns : LONG_NS;
	st->retry_at = now + st->retry_ns;
}

/* What is attached always: whether it costs too much, or how much is left for slices. */
static void cost_look(struct session *ses, struct slices *s, struct ses_build *b, uint64_t now)
{
	struct build_state *st = &s->builds[b->number];
	const double passed = (double)(now - st->last_ns);
	const double own = slices_weigh((double)att_costs_grown(b->att, st->costs) / passed);
	const double strangers = strangers_share(b, st, passed);

	st->overhead = own > strangers ? own : strangers;
	st->strangers |= strangers > slices_limit(ses);
	st->last_ns = now;
	if (st->overhead <= slices_limit(ses)) {
		st->over = 0;
		if (st->level >= LEVEL_MARKS && now >= st->retry_at) {
			keep_level(ses, s, b);
			set_level(ses, s, b, LEVEL_LITTLE);
		}
		return;
	}
	if (st->level == LEVEL_ALL) {
		st->failed = true;
		keep_level(ses, s, b);
		set_level(ses, s, b, LEVEL_LITTLE);
		cost_tell(ses, st);
	} else if (st->level < LEVEL_NOTHING && (st->overhead > 2 * slices_limit(ses) || ++st->over >= OVER)) {
		st->over = 0;
		if (st->level != LEVEL_MARKS)
			wait_for_retry(st, now);
		keep_level(ses, s, b);
		set_level(ses, s, b, st->level + 1);
	}
}

void slices_scanned(struct session *ses, struct slices *s, const struct plan_state *of, struct ses_build *b)
{
	const struct build_state *st = &s->builds[b->number];

	if (st->level == LEVEL_ALL || st->failed || of->overhead > FITS * slices_limit(ses))
		return;
	keep_level(ses, s, b);
	set_level(ses, s, b, LEVEL_ALL);
}

void slices_end_all(struct session *ses, struct slices *s)
{
	struct ses_build *b;

	SES_EACH_BUILD(ses, b)
	if (s->builds[b->number].told && s->builds[b->number].level == LEVEL_ALL)
		keep_level(ses, s, b);
}

/* A process of a file that is new has all its probes. Calls of a library that is new are in slices. */
static void look_for_plans(struct session *ses, struct slices *s)
{
	struct ses_build *b;
	unsigned i;

	for (i = 0; i < ses->ntargets; i++) {
		b = ses->targets[i].build;
		if (ses->targets[i].tgt && b && b->att && s->builds[b->number].level != LEVEL_ALL &&
		    s->plans[i].plan != &ses->targets[i].plan)
			set_level(ses, s, b, s->builds[b->number].level);
	}
	SES_EACH_BUILD(ses, b)
	if (s->builds[b->number].level != LEVEL_ALL && s->builds[b->number].nlate != b->late.nlibs)
		keep_partial(ses, b, s->builds[b->number].level);
}

/* The window begins: what happened before is in no slice. */
static void open_window(struct session *ses, struct slices *s)
{
	struct ses_build *b;
	size_t i;

	SES_EACH_BUILD(ses, b)
	if (b->att && s->builds[b->number].level != LEVEL_ALL) {
		for (i = 0; i < buf_count(&s->procs, struct proc); i++)
			slices_note_speed(s, buf_at(&s->procs, struct proc, i));
		ses_late_keep(b, late_kept(s->builds[b->number].level));
		keep_partial(ses, b, s->builds[b->number].level);
		resume(s, b);
		cost_tell(ses, &s->builds[b->number]);
	}
}

static uint64_t look_ns(const struct session *ses, const struct ses_build *b, const struct build_state *st)
{
	return (ses->o->command || att_shares(b->att)) && st->nlooks < SOON ? SOON_NS : LOOK_NS;
}

uint64_t slices_tick(struct session *ses, struct slices *s)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint64_t due = UINT64_MAX, its;
	struct ses_build *b;

	if (!s->interval_ns) {
		s->interval_ns = ses->about.start_mono_ns;
		open_window(ses, s);
	}
	if (s->stage != IDLE)
		return slice_watch(ses, s, now);
	SES_EACH_BUILD(ses, b)
	{
		struct build_state *st = &s->builds[b->number];

		if (!b->att)
			continue;
		if (!st->last_ns) {
			slices_start_look(b, st);
		} else if (now - st->last_ns >= look_ns(ses, b, st)) {
			st->nlooks++;
			note_processes(ses, s);
			cost_look(ses, s, b, now);
		}
		its = st->last_ns + look_ns(ses, b, st);
		due = its < due ? its : due;
	}
	look_for_plans(ses, s);
	its = slice_next(ses, s, now);
	return its < due ? its : due;
}

/* ---- the begin of a session */

/*
 * A process that runs has hardly any probes at first, until a scan has said what they cost. A command begins with all
 * probes, because it does nothing yet, and so does a session without end, whose jobs may be short.
 */
int slices_prepare(struct session *ses, struct slices *s)
{
	const enum level level = ses->o->slices ? LEVEL_MARKS : LEVEL_NOTHING;

	if (ses->o->command || ses->o->renews || !ses->first->att)
		return 0;
	s->builds[ses->first->number].level = level;
	return set_plan(ses, s, 0, level);
}

/* A process that comes after the window began has all its probes until the next look at what they cost. */
int slices_add(struct session *ses, struct slices *s, const struct ses_target *of)
{
	struct build_state *st = &s->builds[of->build->number];

	if (s->interval_ns || ses->o->command || ses->o->renews || !of->build->att)
		return 0;
	if (of->build != ses->first)
		st->level = LEVEL_MARKS;
	return st->level == LEVEL_ALL ? 0 : set_plan(ses, s, (unsigned)(of - ses->targets), st->level);
}

/* The process that has worked most: a launcher of ranks has no work of its own. NULL: there is none. */
static struct proc *busiest(const struct slices *s)
{
	struct proc *p, *best = NULL;
	uint64_t most_ns = 0;
	struct tgt_usage u;
	size_t i;

	for (i = 0; i < buf_count(&s->procs, struct proc); i++) {
		p = buf_at(&s->procs, struct proc, i);
		if (tgt_peek_usage((pid_t)p->tgid, &u) || (best && u.cpu_ns <= most_ns))
			continue;
		best = p;
		most_ns = u.cpu_ns;
	}
	return best;
}

/* Looks what the busiest process calls, for a time. Returns its plan, or NULL if there is no process. */
static const struct plan_state *scan_first(struct session *ses, struct slices *s, uint64_t most_ns)
{
	const uint64_t until = clock_ns(CLOCK_MONOTONIC) + most_ns;
	const struct proc *p;
	uint64_t due;

	note_processes(ses, s);
	p = busiest(s);
	if (!p || !scan_begin(s, p, ses->targets))
		return NULL;
	while (s->stage == SCANNING && !ses->ended && clock_ns(CLOCK_MONOTONIC) < until) {
		due = scan_watch(ses, s, clock_ns(CLOCK_MONOTONIC));
		ses->ended = ses_interrupted(ses, due);
	}
	return &s->plans[s->now.of - ses->targets];
}

struct slices_foretold slices_foretell(struct session *ses, struct slices *s)
{
	const struct plan_state *of = scan_first(ses, s, FORETELL_NS);
	struct ses_build *b = ses->first;
	unsigned i;

	scan_end(ses, s, clock_ns(CLOCK_MONOTONIC));
	if (!ses->ended)
		set_level(ses, s, b, LEVEL_ALL);
	for (i = 0; i < ses->ntargets; i++) /* what is left out belongs to s */
		if (s->plans[i].plan)
			att_leave_out(ses->targets[i].build->att, s->plans[i].plan, NULL, false);
	return of ? (struct slices_foretold){of->overhead, of->by_agent} : (struct slices_foretold){0};
}

void slices_begin(struct session *ses, struct slices *s)
{
	const double most = FITS * slices_limit(ses);
	struct ses_build *b = ses->first;
	const struct plan_state *of;

	if (s->builds[b->number].level == LEVEL_ALL)
		return;
	of = scan_first(ses, s, BEGIN_NS);
	if (ses->ended)
		return;
	b = of ? s->now.of->build : b;
	if (!of || (s->stage == IDLE && of->overhead <= most))
		set_level(ses, s, b, LEVEL_ALL);
	else if (of->little <= FITS_LITTLE * slices_limit(ses))
		set_level(ses, s, b, LEVEL_LITTLE);
	else
		wait_for_retry(&s->builds[b->number], clock_ns(CLOCK_MONOTONIC));
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
		bool room = s->builds[b->number].level == LEVEL_LITTLE && !s->builds[b->number].strangers, any = false;

		for (i = 0; room && i < buf_count(&s->procs, struct proc); i++) {
			const struct proc *p = buf_at(&s->procs, struct proc, i);

			if (p->of->build != b)
				continue;
			any = true;
			room = p->measured && slices_weigh(p->share) < BACK * slices_limit(ses);
		}
		if (room && any)
			set_level(ses, s, b, LEVEL_ALL);
	}
}
