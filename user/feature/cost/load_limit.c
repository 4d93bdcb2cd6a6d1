// SPDX-License-Identifier: Apache-2.0
/*
 * --max-overhead: probes are left out while they cost more than the user allows, in the order of enum stage, and
 * within a stage those first that are hit most often for the least time. They are taken back when there is room again.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/costs.h"
#include "base/fmt.h"
#include "feature/cost/load.h"
#include "session/priv.h"

#define LOOK_NS	   (300 * NS_PER_MS)
#define AIM	   0.7		   /* of the limit, because the costs are estimates */
#define TRY_NS	   (10 * NS_PER_S) /* after which all probes are tried again; doubles each time */
#define TRY_MAX_NS (320 * NS_PER_S)
#define CALM	   0.5	/* of the hits that were left: then they are tried at once */
#define CALM_RATE  1000 /* hits per second that must be left to tell */
#define NAMED	   3	/* functions that a note names */
#define NOTE_BYTES 400

/* What is left out, in this order. Waits, data, stores and iterations always stay. */
enum stage { STAGE_FUNCTION, STAGE_INNER, STAGE_MEMORY, STAGE_API, STAGE_OPERATOR, STAGE_STAYS };

static const char *const stage_names[] = {"", "operators inside operators", "memory", "the C API", "operators"};

/* Probes that are left out together: those of a function, or all of a stage. */
struct group {
	enum stage stage;
	const char *name; /* borrowed from the plan; NULL: that of the stage */
	uint64_t name_id; /* 0: not known */
	uint64_t hits;	  /* since the last look */
	double call_ns;	  /* own time of a call; 0: not known */
	bool muted;
};

struct limit {
	struct hash site_at;  /* address of a probe in the process -> 1 + its site */
	struct hash group_at; /* (function number, stage) -> 1 + its group */
	struct group *groups;
	uint32_t *group_of; /* by site */
	bool *muted;	    /* by site */
	size_t nsites, ngroups;
	struct att_costs last;
	uint64_t last_ns, last_hits;
	uint64_t next_try_ns, try_ns;
	double left; /* hits per second after probes were left out; 0: not measured yet */
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
		return function ? STAGE_FUNCTION : STAGE_STAYS;
	case MXBPF_ACT_OPEN:
	case MXBPF_ACT_CLOSE_PAIR:
	case MXBPF_ACT_CLOSE_KEY:
		break;
	default:
		return STAGE_STAYS;
	}
	if (row->cls == MXBPF_CLASS_API)
		return STAGE_API;
	if (row->cls != MXBPF_CLASS_OPERATOR || row->iteration_end[0])
		return STAGE_STAYS;
	return row->inside ? STAGE_INNER : function ? STAGE_FUNCTION : STAGE_OPERATOR;
}

/* A function ends in the same group as it starts, so the group is found by its number. */
static int add_site(struct limit *l, const struct plan *p, const struct plan_site *s, size_t i)
{
	const uint32_t func = (uint32_t)(s->cookie & MXBPF_FUNC_MASK);
	const bool numbered = func && (s->row->end == MXBPF_END_CUT || s->row->end == MXBPF_END_NEXT ||
				       s->row->action == MXBPF_ACT_CLOSE_CUT);
	const enum stage stage = stage_of(s->row, numbered);
	uint64_t *at = hash_put(&l->group_at, stage == STAGE_FUNCTION ? func : 0, (uint64_t)stage), *site, va;
	const size_t nfuncs = buf_count(&p->funcs, uint64_t);

	if (!at)
		return -ENOMEM;
	if (!*at) {
		l->groups[l->ngroups] = (struct group){.stage = stage};
		*at = ++l->ngroups;
	}
	l->group_of[i] = (uint32_t)*at - 1;
	if (stage == STAGE_FUNCTION && s->row->action == MXBPF_ACT_OPEN) {
		l->groups[*at - 1].name = plan_func_name(p, s->probe, func);
		if (func >= p->first_func && func - p->first_func < nfuncs)
			l->groups[*at - 1].name_id = *buf_at(&p->funcs, uint64_t, func - p->first_func);
	}
	if (elf_off_va(s->lib->elf, s->off, &va))
		return 0;
	site = hash_put(&l->site_at, va + s->lib->load_bias, 0);
	if (site)
		*site = i + 1;
	return site ? 0 : -ENOMEM;
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
		l->try_ns = TRY_NS;
		l->groups = calloc(n + 1, sizeof(*l->groups));
		l->group_of = calloc(n + 1, sizeof(*l->group_of));
		l->muted = calloc(n + 1, sizeof(*l->muted));
		err = l->groups && l->group_of && l->muted ? 0 : -ENOMEM;
	}
	for (i = 0; i < n && !err; i++)
		err = add_site(l, p, buf_at(&p->sites, struct plan_site, i), i);
	if (!err)
		return l;
	limit_free(l);
	return NULL;
}

/* ---- what is hit, and what a call takes */

static void on_place(void *ctx, uint64_t ip, uint64_t hits)
{
	struct limit *l = ctx;
	const uint64_t *at = hash_get(&l->site_at, ip, 0);

	if (at)
		l->groups[l->group_of[*at - 1]].hits += hits;
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
	const double worth_a = a->call_ns / (double)(a->hits + 1), worth_b = b->call_ns / (double)(b->hits + 1);

	if (a->stage != b->stage)
		return a->stage < b->stage ? -1 : 1;
	return worth_a < worth_b ? -1 : worth_a > worth_b;
}

/* Leaves out groups until the others have `keep` of the hits. Returns true if any is left out now that was not. */
static bool leave_out(struct limit *l, double keep)
{
	uint32_t *order = malloc((l->ngroups + 1) * sizeof(*order));
	uint64_t all = 0, left;
	bool any = false;
	size_t i;

	for (i = 0; order && i < l->ngroups; i++) {
		order[i] = (uint32_t)i;
		all += l->groups[i].hits;
	}
	if (!order)
		return false;
	sorting = l->groups;
	qsort(order, l->ngroups, sizeof(*order), by_order);
	left = all;
	for (i = 0; i < l->ngroups && (double)left > keep * (double)all; i++) {
		struct group *g = &l->groups[order[i]];

		if (g->stage == STAGE_STAYS || g->muted || !g->hits)
			continue;
		left -= g->hits;
		g->muted = any = true;
	}
	free(order);
	return any;
}

/* ---- what is said */

static void describe(const struct limit *l, const struct session *ses, char text[NOTE_BYTES])
{
	size_t i, len, named = 0, functions = 0;
	char all[256] = "", others[160] = "", n[32];

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
		len = strlen(others);
		snprintf(others + len, sizeof(others) - len, "%s%s", ", ", stage_names[g->stage]);
	}
	if (named)
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s)", functions > named ? ", ..." : "");
	snprintf(text, NOTE_BYTES,
		 "since %s of the window %s functions of operators%s%s are not probed, because watching cost more than "
		 "%.1f%%; their rows lack calls, and self times around them have their time",
		 fmt_ns(ses_window_ns(ses), n), fmt_count(functions, (char[32]){0}), all, others,
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

/* ---- the limit */

static void apply(struct session *ses, struct limit *l)
{
	struct err e = {0};
	size_t i;

	for (i = 0; i < l->nsites; i++)
		l->muted[i] = l->groups[l->group_of[i]].muted;
	ses_hold(ses);
	if (att_mute(ses->att, &ses->targets[0].plan, tgt_pid(ses->targets[0].tgt), l->muted, &e)) {
		ses_warn(ses, "%s", e.why);
		ses->ended = true;
	}
	ses_release(ses);
	l->left = 0;
}

static void take_back(struct session *ses, struct limit *l)
{
	char text[NOTE_BYTES], n[32];
	size_t i;

	for (i = 0; i < l->ngroups; i++)
		l->groups[i].muted = false;
	l->limits = false;
	apply(ses, l);
	snprintf(text, sizeof(text),
		 "since %s of the window all functions are probed again; rows lack calls from before",
		 fmt_ns(ses_window_ns(ses), n));
	ses_note(ses, "%s", text);
	note(ses, text);
}

static void hold_limit(struct session *ses, struct limit *l, double overhead, uint64_t now)
{
	const double most = (double)ses->o->max_overhead / 1000;
	char text[NOTE_BYTES];

	pthread_mutex_lock(&ses->lock);
	read_times(l, ses->model);
	pthread_mutex_unlock(&ses->lock);
	if (!leave_out(l, AIM * most / overhead))
		return;
	if (!l->limits)
		l->next_try_ns = now + l->try_ns;
	l->limits = true;
	describe(l, ses, text);
	apply(ses, l);
	ses_note(ses, "%s", text);
	note(ses, text);
}

uint64_t limit_tick(struct session *ses, struct limit *l)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	const struct att_costs costs = att_costs(ses->att);
	const uint64_t hits = att_hits(ses->att), passed = now - l->last_ns;
	double share, rate;
	size_t i;

	if (passed < LOOK_NS)
		return l->last_ns + LOOK_NS;
	share = l->last_ns ? (double)(costs.thread_ns - l->last.thread_ns) / (double)passed : 0;
	share = share < 0.95 ? share : 0.95;
	rate = (double)(hits - l->last_hits) / (double)passed * 1e9;
	for (i = 0; i < l->ngroups; i++)
		l->groups[i].hits = 0;
	att_places_take(ses->att, (uint32_t)tgt_pid(ses->targets[0].tgt), on_place, l);
	if (l->last_ns && share / (1 - share) > (double)ses->o->max_overhead / 1000) {
		hold_limit(ses, l, share / (1 - share), now);
	} else if (l->limits && l->last_ns) {
		const bool calm = l->left > CALM_RATE && rate < CALM * l->left;

		if (!l->left)
			l->left = rate + 1;
		if (calm || now >= l->next_try_ns) {
			l->try_ns = calm ? TRY_NS : 2 * l->try_ns < TRY_MAX_NS ? 2 * l->try_ns : TRY_MAX_NS;
			take_back(ses, l);
		}
	}
	l->last = att_costs(ses->att);
	l->last_hits = att_hits(ses->att);
	l->last_ns = clock_ns(CLOCK_MONOTONIC);
	return l->last_ns + LOOK_NS;
}
