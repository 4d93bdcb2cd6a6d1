// SPDX-License-Identifier: Apache-2.0
/* The lines behind the tables: window, events and loss. No table is shown without its loss. */
#include "view/priv.h"

#include "base/fmt.h"
#include "feature/cost/cost.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define GAPS_SHOWN 3

static void put_window(struct view *s)
{
	const struct mdl_session *ss = s->in->session;
	const struct mdl_target target = mdl_target_of(ss);
	time_t start = (time_t)(ss->start_unix_ns / 1000000000);
	char ns[24], when[40];
	struct tm tm;

	if (!ss->start_unix_ns || !gmtime_r(&start, &tm) ||
	    !strftime(when, sizeof(when), " from %Y-%m-%d %H:%M:%S UTC", &tm))
		when[0] = '\0';
	out_printf(s->out, "window   %s%s, ", ss->duration_ns ? fmt_ns(ss->duration_ns, ns) : "unknown time", when);
	if (target.pid || !ss->profiler)
		out_printf(s->out, "pid %" PRIu32 " (", target.pid);
	view_put_safe(s->out, target.comm, strlen(target.comm));
	if (target.pid || !ss->profiler)
		out_puts(s->out, ")");
	if (ss->profiler)
		out_printf(s->out, ", from a %s of %s", ss->stats ? "table" : "trace", ss->profiler);
	out_puts(s->out, "\n");
}

static void put_pause(struct view *s, const char *prefix)
{
	char ns[24];

	if (s->in->session->paused_ns)
		out_printf(s->out, "%spaused   %s, not in the window; allocations during the pause are not counted\n",
			   prefix, fmt_ns(s->in->session->paused_ns, ns));
}

void view_leave_out(struct view *s, const char *what)
{
	const size_t len = strlen(s->more);

	snprintf(s->more + len, sizeof(s->more) - len, "%s%s", len ? ", " : "", what);
}

static bool is_brief(const struct view *s)
{
	return s->opts->brief && s->ops->people;
}

static bool has_rows(const struct view *s, enum mxbpf_class cls)
{
	size_t n;

	mdl_rows(s->in->model, cls, &n);
	return n;
}

/* Writes what part of the window the tables of calls are based on, if calls were recorded in slices. */
static void put_slices(struct view *s, const char *prefix)
{
	const struct mxbpf_slice_part sum = cost_slices_all(s->in->model);
	char n[32], all[32], slices[32];

	if (!cost_has_slices(s->in->model))
		return;
	out_printf(s->out, "%sslices   ", prefix);
	if (!sum.seen_ns)
		out_puts(s->out, "no slice ended: calls are unknown");
	else if (sum.seen_iterations)
		out_printf(s->out,
			   "all calls of %s of %s iterations were recorded, in %s slice%s; calls and times with +- "
			   "are estimates",
			   fmt_count(sum.seen_iterations, n), fmt_count(sum.all_iterations, all),
			   fmt_count(sum.slices, slices), sum.slices == 1 ? "" : "s");
	else
		out_printf(s->out,
			   "all calls of %s of %s were recorded, in %s slice%s; calls and times with +- are "
			   "estimates for each second, because no iteration ended",
			   fmt_ns(sum.seen_ns, n), fmt_ns(sum.all_ns, all), fmt_count(sum.slices, slices),
			   sum.slices == 1 ? "" : "s");
	out_puts(s->out, "; --exact records every call\n");
}

/* Calls and columns that options left out. */
static void footer_put_notes(struct view *s, const char *prefix)
{
	const struct mdl_session *ss = s->in->session;
	char n[32], all[32];
	size_t i;

	if (ss->iterations)
		out_printf(s->out, "%swindows  the tables cover %s of %s iterations\n", prefix,
			   fmt_count(ss->sampled_iterations, n), fmt_count(ss->iterations, all));
	for (i = 0; i < ss->nnotes; i++) {
		if (cost_has_slices(s->in->model) && !strcmp(ss->notes[i].name, "slices"))
			continue; /* put_slices() says more */
		/* The heading of the table has this number. */
		if (is_brief(s) && !strcmp(ss->notes[i].name, "api") && has_rows(s, MXBPF_CLASS_API))
			continue;
		out_puts(s->out, prefix);
		view_put_safe(s->out, ss->notes[i].name, strlen(ss->notes[i].name));
		out_printf(s->out, "%*s", (int)(9 - strnlen(ss->notes[i].name, 8)), "");
		view_put_safe(s->out, ss->notes[i].text, strlen(ss->notes[i].text));
		out_puts(s->out, "\n");
	}
	if (ss->left_out)
		out_printf(s->out, "%sleft out %s calls of operators that --ops excludes\n", prefix,
			   fmt_count(ss->left_out, n));
}

/* Returns true if the output is short and nothing was lost, so that one line says all. */
static bool is_complete(const struct view *s)
{
	const struct mxbpf_loss *l = &s->in->session->loss;

	return is_brief(s) && l->attempted && !l->dropped && !l->unreadable && !l->truncated;
}

static void put_events(struct view *s, const char *prefix)
{
	const struct mdl_session *ss = s->in->session;
	char attempted[32], stored[32], n[32];

	if (is_complete(s))
		return;
	out_printf(s->out, "%sevents   %s attempted, %s stored", prefix, fmt_count(ss->loss.attempted, attempted),
		   fmt_count(ss->loss.stored, stored));
	if (ss->hits)
		out_printf(s->out, ", from %s probe hits", fmt_count(ss->hits, n));
	out_puts(s->out, "\n");
	if (ss->open_spans)
		out_printf(s->out, "%sopen     %s calls were still running at the end and are not included\n", prefix,
			   fmt_count(ss->open_spans, n));
}

/* The longest gaps, as many as fit on a line. */
static void put_gaps(struct view *s, const char *prefix)
{
	const struct mdl_session *ss = s->in->session;
	uint64_t below = UINT64_MAX, next;
	size_t i, shown = 0, longest;
	char text[32];

	if (!ss->ngaps)
		return;
	out_printf(s->out, "%sgaps     not recorded before the probes were active:", prefix);
	while (shown < GAPS_SHOWN && shown < ss->ngaps) {
		for (i = 0, next = 0, longest = ss->ngaps; i < ss->ngaps; i++)
			if (ss->gaps[i].gap_ns < below && ss->gaps[i].gap_ns >= next) {
				next = ss->gaps[i].gap_ns;
				longest = i;
			}
		if (longest == ss->ngaps)
			break;
		below = next;
		out_printf(s->out, "%s process %" PRIu32 " for %s", shown++ ? "," : "",
			   ss->gaps[longest].pid & MDL_PID_MASK, fmt_ns(next, text));
	}
	if (ss->ngaps > shown)
		out_printf(s->out, ", %s others for less", fmt_count(ss->ngaps - shown, text));
	out_puts(s->out, "\n");
}

/* Writes what the probes cost processes that are not followed. */
static void put_strangers(struct view *s, const char *prefix)
{
	const struct mdl_session *ss = s->in->session;
	char hits[32], ns[32];

	if (ss->stranger_hits)
		out_printf(s->out,
			   "%shits     other processes that hit the probes, because they map the library: %s hits, "
			   "which took at "
			   "least %s; --follow filtered avoids them\n",
			   prefix, fmt_count(ss->stranger_hits, hits), fmt_ns(ss->stranger_ns, ns));
}

/* Child processes. No table has what they did before their probes were attached. */
static void put_followed(struct view *s, const char *prefix)
{
	const struct mdl_session *ss = s->in->session;
	unsigned n = mdl_nprocesses(s->in->model);
	char text[32];

	if (ss->followed) {
		out_printf(s->out, "%sothers   %s more process%s followed", prefix, fmt_count(ss->followed, text),
			   ss->followed == 1 ? "" : "es");
		if (ss->follow_lag_ns)
			out_printf(s->out, ", each at most %s after its start", fmt_ns(ss->follow_lag_ns, text));
		out_puts(s->out, n > 1 ? "; rows are sums over the processes\n" : "\n");
	}
	if (ss->unfollowed)
		out_printf(s->out,
			   "%sMISSED   %s more process%s ended before the probes were attached, or could not be "
			   "profiled\n",
			   prefix, fmt_count(ss->unfollowed, text), ss->unfollowed == 1 ? "" : "es");
	if (ss->unlabelled)
		out_printf(s->out, "%sno label %s process%s, because mxbpf keeps the labels of at most %d\n", prefix,
			   fmt_count(ss->unlabelled, text), ss->unlabelled == 1 ? "" : "es", MDL_LABELS_MAX);
	put_gaps(s, prefix);
	put_strangers(s, prefix);
}

/*
 * Unmatched and truncated records alone raise no alarm. Every healthy session has unmatched calls, which were running
 * at attach or detach, and a name that was cut still has all of its calls.
 */
static void put_loss(struct view *s, const char *prefix)
{
	const struct mxbpf_loss *l = &s->in->session->loss;
	bool lost = l->dropped || l->unreadable;
	char n[4][32];

	if (is_complete(s)) {
		out_printf(s->out, "%sevents   all %s were recorded", prefix, fmt_count(l->attempted, n[0]));
		if (l->unmatched)
			out_printf(s->out, "; the window cut off %s call%s, which ran at its start or end",
				   fmt_count(l->unmatched, n[1]), l->unmatched == 1 ? "" : "s");
		out_puts(s->out, "\n");
		return;
	}

	out_printf(s->out, "%s%s     %s dropped", prefix, lost ? "LOST" : "loss", fmt_count(l->dropped, n[0]));
	if (l->dropped && l->attempted) {
		const double share = 100.0 * (double)l->dropped / (double)l->attempted;

		out_printf(s->out, share < 10 ? " (%.2g %%)" : " (%.0f %%)", share);
	}
	out_printf(s->out, ", %s name%s truncated, %s unreadable, %s unmatched\n", fmt_count(l->truncated, n[1]),
		   l->truncated == 1 ? "" : "s", fmt_count(l->unreadable, n[2]), fmt_count(l->unmatched, n[3]));
}

/* Writes what watching cost the job, and that the times are without it. */
static void put_cost(struct view *s, const char *prefix)
{
	const struct mdl_cost *c = &s->in->session->cost;
	const struct cost_iterations it = cost_of_iterations(s->in->model);
	const uint64_t added = it.watched_ns > it.unwatched_ns ? it.watched_ns - it.unwatched_ns : 0;
	char ns[4][24];

	if (!c->added_ns && c->scale)
		out_printf(s->out, "%scost     all times here are without it, by estimates (+-%u%%)\n", prefix,
			   (c->uncertain + 5) / 10);
	if (!c->added_ns)
		return;
	out_printf(s->out, "%scost     profiling added %s of CPU time", prefix, fmt_ns(c->added_ns, ns[0]));
	if (added)
		out_printf(s->out, ", and %s to an iteration of %s", fmt_ns(added, ns[1]),
			   fmt_ns(it.unwatched_ns, ns[2]));
	out_printf(s->out, " (+-%u%%); %s\n", (c->uncertain + 5) / 10,
		   c->scale ? "all times here are without it" : "all times here are with it");
}

/* The records and the loss of each source if there are several. */
static void put_sources(struct view *s, const char *prefix)
{
	const struct mdl_session *ss = s->in->session;
	const struct mdl_source *of;
	char n[3][32];
	size_t i;

	if (ss->nsources < 2)
		return;
	out_printf(s->out, "%ssources ", prefix);
	for (i = 0; i < ss->nsources; i++) {
		of = &ss->sources[i];
		out_puts(s->out, i ? "; " : " ");
		view_put_safe(s->out, of->name, strlen(of->name));
		out_printf(s->out, ": %s attempted, %s dropped", fmt_count(of->loss.attempted, n[0]),
			   fmt_count(of->loss.dropped, n[1]));
		if (of->late)
			out_printf(s->out, ", %s late", fmt_count(of->late, n[2]));
	}
	out_puts(s->out, "\n");
}

uint64_t view_tally(const struct mdl *m, enum mxbpf_tally_id id)
{
	uint64_t sum = 0;
	unsigned cls;

	for (cls = 0; cls < MXBPF_CLASS_MAX; cls++)
		sum += mdl_tally(m, cls, id);
	return sum;
}

/* A sum is too small if some of its calls have no value. */
static void put_uncounted(struct view *s, const char *prefix)
{
	uint64_t calls = 0, counted = 0, scaled = 0;
	const struct mdl_row *const *rows;
	char n[32], all[32];
	unsigned cls;
	size_t i, nrows;

	for (cls = 0; cls < MXBPF_CLASS_MAX && view_ncounters(s->in->session); cls++) {
		rows = mdl_rows(s->in->model, (enum mxbpf_class)cls, &nrows);
		for (i = 0; i < nrows; i++) {
			calls += rows[i]->count - rows[i]->estimate.count;
			counted += rows[i]->counters.spans;
			scaled += rows[i]->counters.scaled;
		}
	}
	if (counted < calls)
		out_printf(s->out,
			   "%scounters %s of %s calls have none: they ended on another thread, or their thread had "
			   "just started\n",
			   prefix, fmt_count(calls - counted, n), fmt_count(calls, all));
	if (scaled)
		out_printf(s->out,
			   "%scounters of %s calls are estimates, because the CPU has too few and they took turns\n",
			   prefix, fmt_count(scaled, n));
}

static bool is_limited(const struct mdl_probe *p)
{
	return !strcmp(p->status, "attached") && p->reason[0];
}

/* Returns the number of other probes with the same limit; a short output has one line for all. -1: it has that line. */
static long same_limits(const struct mdl_session *ss, size_t of)
{
	long n = 0;
	size_t i;

	for (i = 0; i < ss->nprobes; i++) {
		if (i == of || !is_limited(&ss->probes[i]) || strcmp(ss->probes[i].reason, ss->probes[of].reason))
			continue;
		if (i < of)
			return -1;
		n++;
	}
	return n;
}

/* Probes that are refused, and those whose results are limited. */
static void put_probes(struct view *s, const char *prefix)
{
	const struct mdl_session *ss = s->in->session;
	size_t i;

	for (i = 0; i < ss->nprobes; i++) {
		const bool refused = !strcmp(ss->probes[i].status, "refused");
		const long others = is_brief(s) && !refused ? same_limits(ss, i) : 0;

		if ((!refused && !is_limited(&ss->probes[i])) || others < 0)
			continue;
		out_printf(s->out, "%s%s probe ", prefix, refused ? "refused " : "note    ");
		view_put_safe(s->out, ss->probes[i].name, strlen(ss->probes[i].name));
		if (others)
			out_printf(s->out, " (%ld more like it)", others);
		out_puts(s->out, ": ");
		view_put_safe(s->out, ss->probes[i].reason, strlen(ss->probes[i].reason));
		out_puts(s->out, "\n");
	}
}

static bool has_note(const struct mdl_session *ss, const char *name)
{
	size_t i = 0;

	while (i < ss->nnotes && strcmp(ss->notes[i].name, name))
		i++;
	return i < ss->nnotes;
}

/* What is missing in the tables. */
static void put_caveats(struct view *s, const char *prefix)
{
	const struct mdl_session *ss = s->in->session;
	uint64_t late = view_tally(s->in->model, MXBPF_TALLY_LATE);
	uint64_t unwound = view_tally(s->in->model, MXBPF_TALLY_UNWOUND);
	uint64_t ungrouped = view_tally(s->in->model, MXBPF_TALLY_UNGROUPED);
	char n[32], ns[24];
	size_t i;

	if (ss->stats && !ss->profiler && !has_note(ss, "mode"))
		out_printf(s->out,
			   "%smode     sums were computed in the kernel; single calls and concurrency are not "
			   "known\n",
			   prefix);
	put_uncounted(s, prefix);
	if (ungrouped && s->opts->by != VIEW_BY_NAME)
		out_printf(s->out,
			   "%sUNTOLD   %s calls are only in the row of their name, because there were too many rows\n",
			   prefix, fmt_count(ungrouped, n));
	if (unwound)
		out_printf(s->out,
			   "%sunwound  %s calls were left by an exception or a jump: their times are upper bounds\n",
			   prefix, fmt_count(unwound, n));
	if (late)
		out_printf(s->out, "%slate     %s records arrived late: peak and concurrency may be inexact\n", prefix,
			   fmt_count(late, n));
	if (ss->cut_records)
		out_printf(s->out, "%sCUT      %s records were overwritten because of --max-size: missing in %s\n",
			   prefix, fmt_count(ss->cut_records, n),
			   s->opts->by == VIEW_BY_EVENT ? "traces and here, not in other tables"
							: "traces, not in tables");
	if (ss->incomplete)
		out_printf(s->out, "%sPARTIAL  the recording was cut off: totals cover the part that is readable\n",
			   prefix);
	if (ss->late_refused)
		out_printf(s->out, "%sMISSED   %s libraries of compiled code are not probed\n", prefix,
			   fmt_count(ss->late_refused, n));
	for (i = 0; i < ss->nfallbacks; i++) {
		out_printf(s->out, "%sFALLBACK ", prefix);
		view_put_safe(s->out, ss->fallbacks[i].name, strlen(ss->fallbacks[i].name));
		out_printf(s->out,
			   ": its end was found to be wrong; since %s times are upper bounds, and %s earlier "
			   "calls have wrong times\n",
			   fmt_ns(ss->fallbacks[i].at_ns, ns), fmt_count(ss->fallbacks[i].spans, n));
	}
	put_probes(s, prefix);
}

/* Line beginnings that put_window() writes, behind the prefix of each layout. */
const char *const view_text_magic[] = {"window   ", "# window   ", NULL};

void view_footer(struct view *s, const char *prefix)
{
	out_puts(s->out, prefix);
	put_window(s);
	put_pause(s, prefix);
	footer_put_notes(s, prefix);
	put_slices(s, prefix);
	put_followed(s, prefix);
	view_put_machine(s, prefix);
	put_events(s, prefix);
	put_cost(s, prefix);
	put_loss(s, prefix);
	if (!is_complete(s))
		put_sources(s, prefix);
	put_caveats(s, prefix);
	if (!*s->more)
		return;
	out_printf(s->out, "%smore     ", prefix);
	view_put_safe(s->out, s->more, strlen(s->more));
	out_puts(s->out, ": --all\n");
}
