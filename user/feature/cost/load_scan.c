// SPDX-License-Identifier: Apache-2.0
/*
 * The scan: which functions of a plan a process calls, and what it would cost to probe them all. A program that only
 * counts is attached to some functions at a time, until an iteration has passed or the hits have cost enough. Functions
 * that were hit are known then, and the others are looked at again without them. So hot functions are probed for a
 * moment only, and rare ones for an iteration.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attach/costs.h"
#include "feature/cost/load_slices.h"

#define CHUNK	   200 /* sites of a link */
#define CHUNKS	   16  /* links at once */
#define WATCH_NS   (5 * NS_PER_MS)
#define HITS_MOST  3000		     /* of a chunk: some 4 ms of the job's time */
#define BLIND_NS   (150 * NS_PER_MS) /* for a chunk while no iteration ends */
#define LONGEST_NS NS_PER_S	     /* for a chunk, however long iterations are */
#define HIT_NS	   700		     /* of the program that counts, without the trap */
#define LEAST_PART 0.15		     /* of the time of a chunk that is the job's own, because costs are estimates */
#define PROGRAM_NS 500		     /* of a program at one end of a call, with its part of the record */

/* A group of sites that is attached. */
struct chunk {
	struct buf fds;
	uint32_t sites[CHUNK], n;
	uint64_t from_ns, iterations, hits; /* when it was attached, and how many iterations and hits had been then */
};

struct scan {
	uint32_t *todo; /* owned: sites that were not seen yet, in the order in which they are looked at */
	size_t ntodo, next;
	struct chunk chunks[CHUNKS];
	double overhead; /* of all sites that were seen, relative to the time without */
	double little;	 /* of those of them that cost little: see adp_probe.always */
	double by_agent; /* what the same calls of operators cost with the agent */
};

static const struct plan_site *site_of(const struct plan_state *of, uint32_t i)
{
	return buf_at(&of->plan->sites, struct plan_site, i);
}

/* An end of a function's call is hit as often as its start, so only the start is looked at. */
static bool is_start(const struct plan_site *s)
{
	return s->row->action != MXBPF_ACT_CLOSE_CUT;
}

/* Finds the guards of a process. */
static void find_guards(struct plan_state *of, const struct proc *p, struct tgt *t)
{
	const size_t n = buf_count(&of->plan->sites, struct plan_site);

	free(of->guards);
	of->guards = calloc(n + 1, sizeof(*of->guards));
	of->guarded = p->tgid;
	if (of->guards && plan_guards(of->plan, t, of->guards))
		memset(of->guards, 0, n * sizeof(*of->guards));
}

/* Returns by site whether its function was called since the last look, for the first time; NULL: nothing is known. */
static bool *first_calls(struct plan_state *of, const struct proc *p, bool find)
{
	const size_t n = buf_count(&of->plan->sites, struct plan_site);
	struct tgt *own = p->of->tgt, *opened = NULL;
	bool *set = NULL;

	if (!find && (!of->guards || of->guarded != p->tgid))
		return NULL;
	if (!own || tgt_pid(own) != (pid_t)p->tgid) {
		if (tgt_open((pid_t)p->tgid, &opened, NULL))
			return NULL;
		own = opened;
	}
	if (!of->guards || of->guarded != p->tgid)
		find_guards(of, p, own);
	set = of->guards ? calloc(n + 1, sizeof(*set)) : NULL;
	if (set && plan_guards_read(own, of->guards, n, set)) {
		free(set);
		set = NULL;
	}
	tgt_close(opened);
	return set;
}

/* All sites of a function are called if one of them was hit. */
static void note_called(struct plan_state *of, uint32_t site)
{
	const uint64_t id = plan_func_id(of->plan, site_of(of, site));
	const size_t n = buf_count(&of->plan->sites, struct plan_site);
	uint32_t i;

	of->called[site] = true;
	for (i = 0; id && i < n; i++)
		of->called[i] |= plan_func_id(of->plan, site_of(of, i)) == id;
}

void scan_first_calls(struct slices *s, const struct ses_target *targets)
{
	struct plan_state *of = &s->plans[s->now.of - targets];
	bool *set = of->scanned ? first_calls(of, &s->now, false) : NULL;
	uint32_t i;

	for (i = 0; set && i < buf_count(&of->plan->sites, struct plan_site); i++)
		if (set[i]) {
			of->guards[i] = 0;
			note_called(of, i);
		}
	free(set);
}

/* A function whose guard is known and not set was never called. */
static bool *never_called(struct plan_state *of, const struct proc *p)
{
	bool *set = first_calls(of, p, true);
	size_t i;

	for (i = 0; set && i < buf_count(&of->plan->sites, struct plan_site); i++) {
		of->guards[i] = set[i] ? 0 : of->guards[i];
		set[i] = of->guards[i];
	}
	return set;
}

static bool is_little(const struct plan_state *of, uint32_t i)
{
	return plan_is_always(of->plan, site_of(of, i));
}

/*
 * Lists the sites to look at, by library. The probes that cost little have chunks of their own: in a chunk with hot
 * functions, most of the time is the cost of their hits, and the cost of a rare call cannot be estimated.
 */
static void by_library(struct scan *s, const struct plan_state *of, const bool *never, bool little)
{
	const size_t n = buf_count(&of->plan->sites, struct plan_site);
	const struct tgt_lib *lib = NULL;
	uint32_t i, first = 0;
	bool *done = calloc(n + 1, sizeof(*done));

	while (done && first < n) {
		for (i = first, lib = NULL; i < n; i++) {
			if (done[i] || (lib && site_of(of, i)->lib != lib))
				continue;
			done[i] = true;
			lib = site_of(of, i)->lib;
			if (of->left_out[i] && !(never && never[i]) && (!of->called[i] || !of->scanned) &&
			    is_start(site_of(of, i)) && is_little(of, i) == little)
				s->todo[s->ntodo++] = i;
		}
		while (first < n && done[first])
			first++;
	}
	free(done);
}

/* Begins to look for functions that the process of the slice calls. Returns false if there is no memory. */
bool scan_begin(struct slices *s, const struct proc *p, const struct ses_target *targets)
{
	struct plan_state *of = &s->plans[p->of - targets];
	struct scan *scan = of->left_out ? calloc(1, sizeof(*scan)) : NULL; /* else nothing was left out yet */
	bool *never;

	if (scan)
		scan->todo = calloc(buf_count(&of->plan->sites, struct plan_site) + 1, sizeof(*scan->todo));
	if (!scan || !scan->todo) {
		free(scan);
		return false;
	}
	never = never_called(of, p);
	by_library(scan, of, never, true);
	by_library(scan, of, never, false);
	free(never);
	att_seen_clear(p->of->build->att);
	s->scan = scan;
	s->now = *p;
	s->began_ns = clock_ns(CLOCK_MONOTONIC);
	s->work_ns = 0;
	s->stage = SCANNING;
	return true;
}

void scan_free(struct slices *s)
{
	unsigned i;

	for (i = 0; s->scan && i < CHUNKS; i++)
		if (s->scan->chunks[i].n)
			att_seen_close(s->now.of->build->att, &s->scan->chunks[i].fds, false);
	if (s->scan)
		free(s->scan->todo);
	free(s->scan);
	s->scan = NULL;
}

static uint64_t hits_of(const struct att *a, const struct chunk *c)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < c->n; i++)
		sum += att_seen(a, c->sites[i]);
	return sum;
}

static int open_chunk(struct slices *s, struct chunk *c, const struct plan_state *of, struct err *e)
{
	struct scan *scan = s->scan;
	struct att *a = s->now.of->build->att;
	const struct tgt_lib *lib = site_of(of, scan->todo[scan->next])->lib;
	const bool little = is_little(of, scan->todo[scan->next]);
	const uint64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int err;

	*c = (struct chunk){.n = 0};
	while (c->n < CHUNK && scan->next < scan->ntodo && site_of(of, scan->todo[scan->next])->lib == lib &&
	       is_little(of, scan->todo[scan->next]) == little)
		c->sites[c->n++] = scan->todo[scan->next++];
	err = att_seen_open(a, of->plan, s->now.tgid, c->sites, c->n, &c->fds, e);
	if (err)
		c->n = 0;
	c->from_ns = clock_ns(CLOCK_MONOTONIC);
	c->iterations = att_iterations(a, s->now.tgid);
	c->hits = hits_of(a, c);
	s->work_ns += 2 * (clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns);
	return err;
}

/* again: some of its sites may not have been hit yet, so they are looked at once more. */
static void close_chunk(struct slices *s, struct chunk *c, struct plan_state *of, bool again)
{
	struct scan *scan = s->scan;
	const struct att *a = s->now.of->build->att;
	const double trap_ns = (double)att_costs(a).trap_ns, all = (double)hits_of(a, c), hits = all - (double)c->hits;
	const double all_ns = (double)(clock_ns(CLOCK_MONOTONIC) - c->from_ns);
	const double ns = fmax(all_ns - hits * (trap_ns + HIT_NS), all_ns * LEAST_PART);
	const struct mxbpf_row *row;
	uint32_t i, n, kept = 0;
	double cost;
	bool cut;

	for (i = 0; i < c->n; i++) {
		n = att_seen(a, c->sites[i]);
		row = site_of(of, c->sites[i])->row;
		cut = row->end == MXBPF_END_CUT;
		if (n) {
			note_called(of, c->sites[i]);
			cost = n * (hits / all) * (cut ? 2 : 1) * (trap_ns + PROGRAM_NS) / ns;
			scan->overhead += cost;
			scan->little += plan_is_always(of->plan, site_of(of, c->sites[i])) ? cost : 0;
			if (row->action == MXBPF_ACT_OPEN && row->cls == MXBPF_CLASS_OPERATOR)
				scan->by_agent += n * (hits / all) * MXBPF_AGENT_CALL_NS / ns;
		} else if (again) {
			c->sites[kept++] = c->sites[i];
		}
	}
	/* What is left of a chunk goes before the sites that were not looked at yet. */
	scan->next -= kept;
	memmove(scan->todo + scan->next, c->sites, kept * sizeof(*c->sites));
	att_seen_close(s->now.of->build->att, &c->fds, again); /* hot functions are hit until it is closed */
	c->n = 0;
}

/* Looks at a chunk that is attached. */
static void watch_chunk(struct slices *s, struct chunk *c, struct plan_state *of, uint64_t now)
{
	struct att *a = s->now.of->build->att;
	const uint64_t ended = att_iterations(a, s->now.tgid), age_ns = now - c->from_ns;
	const bool some = ended > s->now.iterations; /* of the process, since it is known */

	if (hits_of(a, c) - c->hits > HITS_MOST)
		close_chunk(s, c, of, true);
	else if (ended >= c->iterations + 2 || (!some && age_ns > BLIND_NS) || age_ns > LONGEST_NS)
		close_chunk(s, c, of, false);
}

void scan_end(struct session *ses, struct slices *s, uint64_t now)
{
	struct plan_state *of = &s->plans[s->now.of - ses->targets];
	const struct scan *scan = s->scan;

	if (!scan)
		return;
	of->scanned = true;
	of->overhead += scan->overhead; /* later scans look at further functions alone */
	of->little += scan->little;
	of->by_agent += scan->by_agent;
	of->scan_at = now + (s->work_ns * OWN_SHARE > RESCAN_NS ? s->work_ns * OWN_SHARE : RESCAN_NS);
	ses_detail(ses,
		   "process %u: probes of all calls would make it take %.1f%% longer, and probes of what costs little "
		   "%.1f%%; %zu functions were looked at for %.2f s",
		   s->now.tgid, of->overhead * 100, of->little * 100, scan->ntodo, (double)(now - s->began_ns) / 1e9);
	s->scan_ns = (now - s->began_ns) / 2; /* its probes come and go all the time; see load_slices.c */
	scan_free(s);
	s->stage = IDLE;
}

/* Goes on with the scan. Returns when to call it again; the stage is IDLE if it has ended. */
uint64_t scan_watch(struct session *ses, struct slices *s, uint64_t now)
{
	struct plan_state *of = &s->plans[s->now.of - ses->targets];
	struct scan *scan = s->scan;
	struct err e = {0};
	struct chunk *free_one = NULL;
	bool busy = false;
	unsigned i;

	for (i = 0; i < CHUNKS; i++) {
		if (scan->chunks[i].n)
			watch_chunk(s, &scan->chunks[i], of, now);
		busy |= scan->chunks[i].n;
		free_one = scan->chunks[i].n ? free_one : &scan->chunks[i];
	}
	if (free_one && scan->next < scan->ntodo && !open_chunk(s, free_one, of, &e))
		return now; /* between two links it looks at all */
	if (e.code && e.cls != ERR_TARGET)
		ses_warn(ses, "functions that are called cannot be found: %s", e.why);
	if ((busy && !e.code) || !att_slice_closed(s->now.of->build->att))
		return now + WATCH_NS;
	scan_end(ses, s, now);
	return now;
}
