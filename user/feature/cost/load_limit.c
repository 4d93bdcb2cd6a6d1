// SPDX-License-Identifier: Apache-2.0
/*
 * --max-overhead: probes are left out while they cost more than the user allows, in the order of enum stage, and
 * within a stage those first that are hit most often for the least time. Each few seconds one place that is left out is
 * probed for a moment, with a program that does nothing. How often it is hit tells what the probes would cost now, so
 * those are taken back for which there is room.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/costs.h"
#include "base/fmt.h"
#include "feature/cost/load.h"
#include "session/priv.h"

#define LOOK_NS	      (300 * NS_PER_MS)
#define RARE	      3	  /* hits that are rare take several times their estimate, so all count more */
#define AIM	      0.7 /* of the limit, because the costs are estimates */
#define BACK	      0.5 /* of the limit, up to which probes are taken back */
#define TRIAL_NS      (5 * NS_PER_S)
#define TRIAL_FOR_NS  (50 * NS_PER_MS)
#define TRIAL_CALM_NS NS_PER_S /* before a job is taken for calm */
#define TRIAL_RATE    20000    /* hits per second that a trial likes best; it costs 2 % then */
#define TRIAL_LEAST   500      /* that are enough to tell */
#define CALM	      0.5      /* of the hits that were left: then a trial is made at once; and of those of a place */
#define CALM_RATE     1000     /* hits per second that must be left to tell */
#define NAMED	      3	       /* functions that a note names */
#define NOTE_BYTES    400

/*
 * Probes are left out in this order. Those of iterations and waits come last, if they alone cost more than the limit.
 * Probes that control the session always stay.
 */
enum stage {
	STAGE_FUNCTION,
	STAGE_INNER,
	STAGE_MEMORY,
	STAGE_API,
	STAGE_OPERATOR,
	STAGE_ITERATION,
	STAGE_WAIT,
	STAGE_STAYS,
};

static const char *const stage_names[] = {
	"", "operators inside operators", "memory", "the C API", "operators", "marks of iterations", "waits",
};

/* Probes that are left out together: those of a function, or all of a stage. */
struct group {
	enum stage stage;
	const char *name; /* borrowed from the plan; NULL: that of the stage */
	uint64_t name_id; /* 0: not known */
	uint64_t hits;	  /* since the last look */
	double overhead;  /* that it added when it was probed last, relative to the time without mxbpf */
	bool spans;	  /* its calls have rows, of class cls */
	uint8_t cls;
	double call_ns;	  /* own time of a call; 0: not known */
	bool muted, ever; /* ever: rows lack calls because of it */
};

struct limit {
	struct hash site_at;  /* address of a probe in the process -> 1 + its last site */
	struct hash group_at; /* (function number or row, stage) -> 1 + its group */
	struct group *groups;
	uint32_t *group_of;  /* by site */
	bool *muted;	     /* by site */
	uint64_t *site_hits; /* by site, since the last look */
	double *site_rate;   /* by site: hits per second without mxbpf, when it was probed last */
	uint64_t *site_ip;   /* by site: its address in the process; 0: not known */
	uint64_t *site_next; /* by site: 1 + another one at its address; 0: none */
	size_t nsites, ngroups;
	uint64_t costs[MXBPF_THREADS_MAX]; /* of threads, at the last look */
	uint64_t last_ns, last_hits;
	uint64_t next_trial_ns, trial_ns; /* when one is due, and when the last began */
	size_t trial;			  /* 1 + the site that is on trial; 0: none is */
	double left;			  /* hits per second after probes were left out; 0: not measured yet */
	bool limits;
};

static enum stage stage_of(const struct mxbpf_row *row, bool function)
{
	switch (row->action) {
	case MXBPF_ACT_ALLOC:
	case MXBPF_ACT_FREE:
	case MXBPF_ACT_ALLOCATED:
	case MXBPF_ACT_POOL:
	case MXBPF_ACT_REPORT:
		return STAGE_MEMORY;
	case MXBPF_ACT_CLOSE_CUT:
		return function ? STAGE_FUNCTION : STAGE_WAIT;
	case MXBPF_ACT_STEP:
		return STAGE_ITERATION;
	case MXBPF_ACT_OPEN:
	case MXBPF_ACT_CLOSE_PAIR:
	case MXBPF_ACT_CLOSE_KEY:
		break;
	case MXBPF_ACT_APP:
	case MXBPF_ACT_FAILED:
	case MXBPF_ACT_THROWN:
	case MXBPF_ACT_MARK_START:
	case MXBPF_ACT_MARK_STOP:
	case MXBPF_ACT_MARK_SET:
	case MXBPF_ACT_MARK_ADJUST:
	case MXBPF_ACT_MARK_INSTANT:
	case MXBPF_ACT_MARK_END:
		return STAGE_STAYS;
	default: /* what serves operators */
		return STAGE_OPERATOR;
	}
	if (row->cls == MXBPF_CLASS_API)
		return STAGE_API;
	if (row->iteration_end[0])
		return STAGE_STAYS;
	if (row->cls != MXBPF_CLASS_OPERATOR)
		return STAGE_WAIT;
	return row->inside ? STAGE_INNER : function ? STAGE_FUNCTION : STAGE_OPERATOR;
}

/* A function ends in the same group as it starts, so the group is found by its number. */
static int add_site(struct limit *l, const struct plan *p, const struct plan_site *s, size_t i)
{
	const uint32_t func = (uint32_t)(s->cookie & MXBPF_FUNC_MASK);
	const bool numbered = func && (s->row->end == MXBPF_END_CUT || s->row->end == MXBPF_END_NEXT ||
				       s->row->action == MXBPF_ACT_CLOSE_CUT);
	const enum stage stage = stage_of(s->row, numbered);
	const uint64_t of = stage == STAGE_FUNCTION ? func : stage >= STAGE_ITERATION ? (uintptr_t)s->row : 0;
	uint64_t *at = hash_put(&l->group_at, of, (uint64_t)stage), *site, va;
	const size_t nfuncs = buf_count(&p->funcs, uint64_t);

	if (!at)
		return -ENOMEM;
	if (!*at) {
		l->groups[l->ngroups] = (struct group){.stage = stage};
		*at = ++l->ngroups;
	}
	l->group_of[i] = (uint32_t)*at - 1;
	if (s->row->action == MXBPF_ACT_OPEN) {
		l->groups[*at - 1].spans = true;
		l->groups[*at - 1].cls = s->row->cls;
	}
	if (stage == STAGE_FUNCTION && s->row->action == MXBPF_ACT_OPEN) {
		l->groups[*at - 1].name = plan_func_name(p, s->probe, func);
		if (func >= p->first_func && func - p->first_func < nfuncs)
			l->groups[*at - 1].name_id = *buf_at(&p->funcs, uint64_t, func - p->first_func);
	}
	if (elf_off_va(s->lib->elf, s->off, &va))
		return 0;
	l->site_ip[i] = va + s->lib->load_bias;
	site = hash_put(&l->site_at, l->site_ip[i], 0);
	if (!site)
		return -ENOMEM;
	l->site_next[i] = *site;
	*site = i + 1;
	return 0;
}

void limit_free(struct limit *l)
{
	if (!l)
		return;
	hash_fini(&l->site_at);
	hash_fini(&l->group_at);
	free(l->groups);
	free(l->group_of);
	free(l->muted);
	free(l->site_hits);
	free(l->site_rate);
	free(l->site_ip);
	free(l->site_next);
	free(l);
}

struct limit *limit_new(const struct plan *p)
{
	const size_t n = buf_count(&p->sites, struct plan_site);
	struct limit *l = calloc(1, sizeof(*l));
	size_t i;
	int err = -ENOMEM;

	if (l) {
		l->nsites = n;
		l->groups = calloc(n + 1, sizeof(*l->groups));
		l->group_of = calloc(n + 1, sizeof(*l->group_of));
		l->muted = calloc(n + 1, sizeof(*l->muted));
		l->site_hits = calloc(n + 1, sizeof(*l->site_hits));
		l->site_rate = calloc(n + 1, sizeof(*l->site_rate));
		l->site_ip = calloc(n + 1, sizeof(*l->site_ip));
		l->site_next = calloc(n + 1, sizeof(*l->site_next));
		err = l->groups && l->group_of && l->muted && l->site_hits && l->site_rate && l->site_ip && l->site_next
			      ? 0
			      : -ENOMEM;
	}
	for (i = 0; i < n && !err; i++)
		err = add_site(l, p, buf_at(&p->sites, struct plan_site, i), i);
	if (!err)
		return l;
	limit_free(l);
	return NULL;
}

/* ---- what is hit, and what a call takes */

/* Each site that is probed has its own hits at an address. Only a site on trial is hit although it is left out. */
static void on_place(void *ctx, uint64_t ip, uint64_t hits)
{
	struct limit *l = ctx;
	const uint64_t *last = hash_get(&l->site_at, ip, 0);
	uint64_t at, probed = 0;

	for (at = last ? *last : 0; at; at = l->site_next[at - 1])
		probed += !l->muted[at - 1] || at == l->trial;
	for (at = probed ? *last : 0; at; at = l->site_next[at - 1]) {
		if (l->muted[at - 1] && at != l->trial)
			continue;
		l->groups[l->group_of[at - 1]].hits += hits / probed;
		l->site_hits[at - 1] += hits / probed;
	}
}

/* With the session's lock. */
static void read_times(struct limit *l, struct mdl *m)
{
	struct hash at = {0};
	size_t i, n;
	const struct mdl_row *const *rows = mdl_rows(m, MXBPF_CLASS_OPERATOR, &n);
	uint64_t *group;

	for (i = 0; i < l->ngroups; i++) {
		group = l->groups[i].name_id ? hash_put(&at, l->groups[i].name_id, 0) : NULL;
		if (group)
			*group = i + 1;
	}
	for (i = 0; i < n; i++) {
		group = hash_get(&at, rows[i]->name_id, 0);
		if (group && rows[i]->count)
			l->groups[*group - 1].call_ns = (double)rows[i]->self_ns / (double)rows[i]->count;
	}
	hash_fini(&at);
}

static _Thread_local const struct group *sorting;

static int by_order(const void *va, const void *vb)
{
	const struct group *a = &sorting[*(const uint32_t *)va], *b = &sorting[*(const uint32_t *)vb];
	const double worth_a = a->call_ns / (a->overhead + 1e-9), worth_b = b->call_ns / (b->overhead + 1e-9);

	if (a->stage != b->stage)
		return a->stage < b->stage ? -1 : 1;
	return worth_a != worth_b ? worth_a < worth_b ? -1 : 1 : a->overhead > b->overhead ? -1 : 1;
}

/*
 * Leaves out groups until what the others add is at most `most`. ratio: how often those that are left out now would be
 * hit, relative to when they were probed last. back: takes groups back, but leaves out no others. Returns true if a
 * group changes.
 */
static bool choose(struct limit *l, double ratio, double most, bool back)
{
	uint32_t *order = malloc((l->ngroups + 1) * sizeof(*order));
	double sum = 0, adds;
	bool any = false, mute;
	size_t i;

	for (i = 0; order && i < l->ngroups; i++) {
		struct group *g = &l->groups[i];

		order[i] = (uint32_t)i;
		g->overhead *= g->muted && back ? ratio : 1;
		sum += g->muted && !back ? 0 : g->overhead;
	}
	if (!order)
		return false;
	sorting = l->groups;
	qsort(order, l->ngroups, sizeof(*order), by_order);
	for (i = 0; i < l->ngroups; i++) {
		struct group *g = &l->groups[order[i]];

		adds = g->muted && !back ? 0 : g->overhead;
		mute = sum > most && g->stage != STAGE_STAYS && adds > 0;
		sum -= mute ? adds : 0;
		mute = back ? mute && g->muted : mute || g->muted;
		any = any || mute != g->muted;
		g->muted = mute;
		g->ever = g->ever || mute;
		if (back && ratio > 0) /* it may be asked again */
			g->overhead /= mute ? ratio : 1;
	}
	free(order);
	return any;
}

/* ---- what is said */

static void describe(const struct limit *l, const struct session *ses, char text[NOTE_BYTES])
{
	size_t i, len, named = 0, functions = 0;
	char all[256] = "", others[160] = "", n[32];
	char count[64] = "";
	unsigned said = 0;

	for (i = 0; i < l->ngroups; i++) {
		const struct group *g = &l->groups[i];

		if (!g->muted)
			continue;
		if (g->stage == STAGE_FUNCTION) {
			len = strlen(all);
			if (g->name && named < NAMED && g->hits)
				snprintf(all + len, sizeof(all) - len, "%s%s", named++ ? ", " : " (", g->name);
			functions++;
			continue;
		}
		if (said & 1u << g->stage)
			continue;
		said |= 1u << g->stage;
		len = strlen(others);
		snprintf(others + len, sizeof(others) - len, "%s%s", len ? ", " : "", stage_names[g->stage]);
	}
	if (named)
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s)", functions > named ? ", ..." : "");
	if (functions)
		snprintf(count, sizeof(count), "%s functions of operators", fmt_count(functions, n));
	snprintf(text, NOTE_BYTES,
		 "since %s of the window %s%s%s%s are not probed, because profiling cost more than %.1f%%; rows marked "
		 "* "
		 "lack calls, and self times around them have their time",
		 fmt_ns(ses_window_ns(ses), n), count, all, functions && others[0] ? ", " : "", others,
		 (double)ses->o->max_overhead / 10);
}

/* The note of the outputs is that of the last change. */
static void note(struct session *ses, const char *text)
{
	size_t i;
	char *copy;

	for (i = 0; i < ses->about.nnotes; i++)
		if (!strcmp(ses->about.notes[i].name, "limit")) {
			copy = strdup(text);
			if (copy) {
				free(ses->about.notes[i].text);
				ses->about.notes[i].text = copy;
			}
			return;
		}
	ses_add_note(&ses->about, "limit", "%s", text);
}

/* Says which rows lack calls. */
static void tell_partial(struct session *ses, const struct limit *l)
{
	struct buf recs = {0};
	size_t i;
	int err = 0;

	for (i = 0; i < l->ngroups && !err; i++) {
		const struct group *g = &l->groups[i];
		const struct mxbpf_partial r = {
			.h = {.kind = MXBPF_PARTIAL, .size = sizeof(r)},
			.name_id = g->stage == STAGE_FUNCTION ? g->name_id : 0,
			.cls = g->cls,
		};

		if (g->ever && g->spans)
			err = buf_put(&recs, &r, sizeof(r));
	}
	ses_keep(ses, recs.data, recs.len, err);
	buf_fini(&recs);
}

/* ---- the limit */

static void apply(struct session *ses, struct limit *l)
{
	struct err e = {0};
	size_t i;

	for (i = 0; i < l->nsites; i++)
		l->muted[i] = l->groups[l->group_of[i]].muted;
	ses_hold(ses);
	if (att_mute(ses->first->att, &ses->targets[0].plan, tgt_pid(ses->targets[0].tgt), l->muted, &e)) {
		ses_warn(ses, "%s", e.why);
		ses->ended = true;
	}
	ses_release(ses);
	l->left = 0;
}

static void say(struct session *ses, const char *text)
{
	ses_note(ses, "%s", text);
	note(ses, text);
}

/* Takes back what there is room for when what is left out is hit `ratio` times as often as when it was probed. */
static void take_back(struct session *ses, struct limit *l, double ratio)
{
	char text[NOTE_BYTES], n[32];
	size_t i;

	if (!choose(l, ratio, BACK * (double)ses->o->max_overhead / 1000, true))
		return;
	for (i = 0, l->limits = false; i < l->ngroups; i++)
		l->limits = l->limits || l->groups[i].muted;
	apply(ses, l);
	if (l->limits)
		describe(l, ses, text);
	else
		snprintf(text, sizeof(text),
			 "since %s of the window all functions are probed again; rows marked * lack calls from before",
			 fmt_ns(ses_window_ns(ses), n));
	say(ses, text);
}

static void hold_limit(struct session *ses, struct limit *l)
{
	char text[NOTE_BYTES];

	pthread_mutex_lock(&ses->lock);
	read_times(l, ses->model);
	pthread_mutex_unlock(&ses->lock);
	if (!choose(l, 1, AIM * (double)ses->o->max_overhead / 1000, false))
		return;
	l->limits = true;
	tell_partial(ses, l);
	describe(l, ses, text);
	apply(ses, l);
	say(ses, text);
}

/* ---- trials */

/* Returns 1 + the site that tells most about what is left out, for the least cost; 0: there is none. */
static size_t trial_site(const struct limit *l)
{
	size_t i, best = 0;
	double rate, its;

	for (i = 0; i < l->nsites; i++) {
		rate = l->site_rate[i];
		if (!l->muted[i] || !l->site_ip[i] || rate < TRIAL_LEAST)
			continue;
		its = best ? l->site_rate[best - 1] : 0;
		if (!best || (rate <= TRIAL_RATE ? its > TRIAL_RATE || rate > its : rate < its))
			best = i + 1;
	}
	return best;
}

static void ignore(void *ctx, uint64_t ip, uint64_t hits)
{
	(void)ctx;
	(void)ip;
	(void)hits;
}

static void clear_hits(struct limit *l)
{
	size_t i;

	for (i = 0; i < l->ngroups; i++)
		l->groups[i].hits = 0;
	memset(l->site_hits, 0, l->nsites * sizeof(*l->site_hits));
}

static void begin_trial(struct session *ses, struct limit *l)
{
	const uint32_t tgid = (uint32_t)tgt_pid(ses->targets[0].tgt);
	const size_t site = trial_site(l);

	l->next_trial_ns = clock_ns(CLOCK_MONOTONIC) + TRIAL_NS;
	if (!site || att_trial_open(ses->first->att, &ses->targets[0].plan, l->site_ip[site - 1], tgid))
		return;
	l->trial = site;
	clear_hits(l);
	att_places_take(ses->first->att, tgid, 1, ignore, NULL);
	l->trial_ns = l->last_ns = clock_ns(CLOCK_MONOTONIC);
}

/*
 * Returns false while the trial goes on: what is hit rarely is watched for longer, so that a pause of the job is not
 * taken for calm.
 */
static bool end_trial(struct session *ses, struct limit *l)
{
	const uint32_t tgid = (uint32_t)tgt_pid(ses->targets[0].tgt);
	const size_t site = l->trial - 1;
	double passed, rate, lost, ratio;

	att_places_take(ses->first->att, tgid, 1, on_place, l);
	l->last_ns = clock_ns(CLOCK_MONOTONIC);
	passed = (double)(l->last_ns - l->trial_ns);
	rate = (double)l->site_hits[site] / passed * 1e9;
	lost = rate * (double)att_costs(ses->first->att).trap_ns /
	       1e9; /* part of the time that the trial's own hits took */
	ratio = rate / (1 - (lost < 0.9 ? lost : 0.9)) / l->site_rate[site];
	if (ratio < CALM && passed < TRIAL_CALM_NS)
		return false;
	att_trial_close(ses->first->att);
	att_places_take(ses->first->att, tgid, MXBPF_PLACE_HITS, ignore, NULL);
	l->trial = 0;
	if (ratio < CALM)
		take_back(ses, l, ratio);
	return true;
}

/* ---- looks */

/* Notes what each group and site adds, while it is probed. overhead: what all add, times RARE. */
static void note_rates(struct limit *l, double overhead, double passed_ns)
{
	uint64_t all = 0;
	size_t i;

	for (i = 0; i < l->ngroups; i++)
		all += l->groups[i].hits;
	for (i = 0; i < l->ngroups; i++)
		if (!l->groups[i].muted)
			l->groups[i].overhead = all ? overhead * (double)l->groups[i].hits / (double)all : 0;
	for (i = 0; i < l->nsites; i++)
		if (!l->muted[i])
			l->site_rate[i] = (double)l->site_hits[i] / passed_ns * 1e9 * (1 + overhead / RARE);
}

/* Reads what was hit since the last look. Returns what watching added, relative to the time without it. */
static double look(struct session *ses, struct limit *l, double *rate)
{
	const double passed = (double)(clock_ns(CLOCK_MONOTONIC) - l->last_ns);
	double share = (double)att_costs_grown(ses->first->att, l->costs) / passed;

	share = share < 0.95 ? share : 0.95;
	*rate = (double)(att_hits(ses->first->att) - l->last_hits) / passed * 1e9;
	clear_hits(l);
	att_places_take(ses->first->att, (uint32_t)tgt_pid(ses->targets[0].tgt), MXBPF_PLACE_HITS, on_place, l);
	note_rates(l, RARE * share / (1 - share), passed);
	return RARE * share / (1 - share);
}

static void evaluate(struct session *ses, struct limit *l)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	double rate, overhead = look(ses, l, &rate);

	if (overhead > (double)ses->o->max_overhead / 1000) {
		hold_limit(ses, l);
		l->next_trial_ns = now + TRIAL_NS;
		return;
	}
	if (!l->limits)
		return;
	if (!l->left)
		l->left = rate + 1;
	if (now >= l->next_trial_ns || (l->left > CALM_RATE && rate < CALM * l->left)) {
		begin_trial(ses, l);
		l->left = 0;
	}
}

static void start_look(struct session *ses, struct limit *l)
{
	att_costs_grown(ses->first->att, l->costs);
	l->last_hits = att_hits(ses->first->att);
	l->last_ns = clock_ns(CLOCK_MONOTONIC);
}

uint64_t limit_tick(struct session *ses, struct limit *l)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (!l->last_ns) {
		att_places_take(ses->first->att, 0, MXBPF_PLACE_HITS, ignore, NULL);
	} else if (now - l->last_ns < (l->trial ? TRIAL_FOR_NS : LOOK_NS)) {
		return l->last_ns + (l->trial ? TRIAL_FOR_NS : LOOK_NS);
	} else if (l->trial) {
		if (!end_trial(ses, l))
			return l->last_ns + TRIAL_FOR_NS;
	} else {
		evaluate(ses, l);
		if (l->trial)
			return l->last_ns + TRIAL_FOR_NS;
	}
	start_look(ses, l);
	return l->last_ns + LOOK_NS;
}
