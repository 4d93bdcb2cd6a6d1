// SPDX-License-Identifier: Apache-2.0
/*
 * Slices of detail. Each build is in one of three states: all its probes are attached; what costs little is attached
 * and the rest is in slices; or all is in slices. Slices go round the processes. A process has its next one when it has
 * worked so long without that the limit holds for both together. Attaching costs the process time as well: as much as
 * it takes mxbpf, at most. So a slice attaches only functions that were called in earlier ones, but for one slice in
 * ten minutes.
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

#define LOOK_NS	 (300 * NS_PER_MS)
#define RETRY_NS (60 * NS_PER_S) /* before what costs little is attached again; it doubles up to FULL_NS */
#define BACK	 0.5		 /* of the limit, below which all probes are attached again */

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

double slices_limit(const struct session *ses)
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

void slices_start_look(struct ses_build *b, struct build_state *st)
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
	for (i = 0; i < b->late.nlibs; i++)
		put_plan(&recs, &b->late.libs[i]->plan, level == LEVEL_ALL ? MXBPF_PARTIAL_OVER : 0);
	put_partial(&recs, 0, MXBPF_CLASS_STEP, level == LEVEL_NOTHING ? 0 : MXBPF_PARTIAL_OVER);
	ses_keep(ses, recs.data, recs.len, 0);
	buf_fini(&recs);
	ses->cost.slices->builds[b->number].nlate = b->late.nlibs;
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
	ses_late_sliced(b, level != LEVEL_ALL);
	ses_release(ses);
	if (e.code) {
		ses_warn(ses, "%s", e.why);
		ses->ended = true;
	}
	st->level = level;
	keep_partial(ses, b, level);
	resume(s, b);
	slices_start_look(b, st);
	slice_await(s, b, CHANGED);
	ses_detail(ses, "%s: %s", b->title ? b->title : "runtime",
		   level == LEVEL_ALL	   ? "all probes are attached"
		   : level == LEVEL_LITTLE ? "calls are recorded in slices"
					   : "all is recorded in slices");
}

/* ---- processes */

static void note_process(void *ctx, uint32_t tgid, const struct plan *p)
{
	struct again *a = ctx;
	struct slices *s = a->ses->cost.slices;
	struct proc *known = slices_proc(s, tgid), new = {.tgid = tgid, .each = ITERATIONS, .seen = true};
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
		part = slices_since(p, now);
		if (s->builds[b->number].level == LEVEL_ALL) {
			part.seen_ns = part.all_ns;
			part.seen_iterations = part.all_iterations;
		}
		slices_keep(ses, p, &part, now);
		p->next_ns = now;
		p->each = ITERATIONS;
		p->measured = false;
	}
}

/* ---- levels */

static void tell(struct session *ses, struct build_state *st)
{
	char n[32];

	if (st->told)
		return;
	st->told = true;
	ses_add_note(
		&ses->about, "slices",
		"since %s of the window calls are recorded in slices of a few iterations, because profiling all of "
		"them cost more than %.1f%%; rows marked * have the calls of slices",
		fmt_ns(ses_window_ns(ses), n), slices_limit(ses) * 100);
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
	if (st->overhead <= slices_limit(ses)) {
		if (st->level == LEVEL_NOTHING && now >= st->retry_at)
			set_level(ses, s, b, LEVEL_LITTLE);
		return;
	}
	if (st->level == LEVEL_ALL) {
		keep_level(ses, s, b);
		set_level(ses, s, b, LEVEL_LITTLE);
		slice_note_all_called(ses, s, b);
		tell(ses, st);
	} else if (st->level == LEVEL_LITTLE) {
		st->retry_ns = !st->retry_ns ? RETRY_NS : st->retry_ns < FULL_NS ? 2 * st->retry_ns : FULL_NS;
		st->retry_at = now + st->retry_ns;
		keep_level(ses, s, b);
		set_level(ses, s, b, LEVEL_NOTHING);
	}
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

uint64_t slices_tick(struct session *ses, struct slices *s)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint64_t due = UINT64_MAX, its;
	struct ses_build *b;

	if (!s->interval_ns)
		s->interval_ns = ses->about.start_mono_ns;
	if (s->stage != IDLE)
		return slice_watch(ses, s, now);
	SES_EACH_BUILD(ses, b)
	{
		struct build_state *st = &s->builds[b->number];

		if (!b->att)
			continue;
		if (!st->last_ns) {
			slices_start_look(b, st);
		} else if (now - st->last_ns >= LOOK_NS) {
			note_processes(ses, s);
			look(ses, s, b, now);
		}
		its = st->last_ns + LOOK_NS;
		due = its < due ? its : due;
	}
	look_for_plans(ses, s);
	its = slice_next(ses, s, now);
	return its < due ? its : due;
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
			room = p->measured && p->share < 0.9 &&
			       RARE * p->share / (1 - p->share) < BACK * slices_limit(ses);
		}
		if (room && any)
			set_level(ses, s, b, LEVEL_ALL);
	}
}
