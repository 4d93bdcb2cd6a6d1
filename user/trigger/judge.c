// SPDX-License-Identifier: Apache-2.0
/* Whether a condition is true in an interval, and whether it fires. */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "feature/cost/cost.h"
#include "feature/findings/findings.h"
#include "feature/steps/steps.h"
#include "nvml/nvml.h"
#include "trigger/priv.h"

#define LOOPS_MAX 1024
#define TOLD_NS	  5000000000ull /* an interval may be shorter than the time between two looks at the driver */

/* ---- iterations */

static struct trg_loop *loop_of(struct trg *t, uint32_t tgid, uint32_t tid)
{
	struct trg_loop new = {.tgid = tgid, .tid = tid}, *l;
	size_t n = buf_count(&t->loops, struct trg_loop), i;

	for (i = 0; i < n; i++) {
		l = buf_at(&t->loops, struct trg_loop, i);
		if (l->tgid == tgid && l->tid == tid)
			return l;
	}
	if (n >= LOOPS_MAX || buf_put(&t->loops, &new, sizeof(new)))
		return NULL;
	return buf_at(&t->loops, struct trg_loop, n);
}

static bool is_watched(const struct mdl_interval *in, uint32_t tgid)
{
	size_t i = 0;

	while (i < in->npids && (uint32_t)in->pids[i] != tgid)
		i++;
	return i < in->npids;
}

/* Processes that have ended make room, and their numbers may come again. */
static void forget_ended(struct trg *t, const struct mdl_interval *in)
{
	size_t n = buf_count(&t->loops, struct trg_loop), kept = 0, i;

	for (i = 0; i < n; i++)
		if (is_watched(in, buf_at(&t->loops, struct trg_loop, i)->tgid))
			*buf_at(&t->loops, struct trg_loop, kept++) = *buf_at(&t->loops, struct trg_loop, i);
	t->loops.len = kept * sizeof(struct trg_loop);
}

static uint64_t median_before(const struct trg_loop *l)
{
	const size_t n = l->n < TRG_PAST ? l->n : TRG_PAST;
	uint64_t sorted[TRG_PAST];

	if (n < TRG_PAST_LEAST)
		return 0;
	memcpy(sorted, l->past_ns, n * sizeof(sorted[0]));
	return facts_median(sorted, n);
}

static bool is_long(const struct trg *t, const struct trg_loop *l, const struct mxbpf_iteration *it, char *why)
{
	const uint64_t median = median_before(l);
	char took[24];

	if (t->times > 0 ? !median || (double)it->dur_ns <= t->times * (double)median : it->dur_ns <= t->limit)
		return false;
	fmt_ns(it->dur_ns, took);
	if (median)
		snprintf(why, TRG_WHY_BYTES,
			 "iteration %" PRIu64 " of process %" PRIu32 " took %s, %.1f times the median",
			 (uint64_t)it->nr, it->h.tgid, took, (double)it->dur_ns / (double)median);
	else
		snprintf(why, TRG_WHY_BYTES, "iteration %" PRIu64 " of process %" PRIu32 " took %s", (uint64_t)it->nr,
			 it->h.tgid, took);
	return true;
}

/* The first long one is told. */
static bool judge_iterations(struct trg *t, const struct mdl_interval *in, char *why)
{
	size_t n, i;
	const struct mxbpf_iteration *it = steps_iterations(in->model, &n);
	struct trg_loop *l;
	bool found = false;

	for (i = 0; i < n; i++) {
		l = loop_of(t, it[i].h.tgid, it[i].tid);
		if (!l)
			continue;
		if (t->what == TRG_ITERATION && !found && is_long(t, l, &it[i], why)) {
			found = true;
			t->slow = (struct trg_slow){it[i].h.tgid, it[i].dur_ns, steps_end_ns(&it[i])};
		}
		l->past_ns[l->n++ % TRG_PAST] = it[i].dur_ns;
		l->from_ns = steps_end_ns(&it[i]);
		l->unsure = l->still = false;
	}
	forget_ended(t, in);
	return found;
}

/* ---- hangs */

static uint64_t longest(const struct trg_loop *l)
{
	uint64_t most = 0, i;

	for (i = 0; i < l->n && i < TRG_PAST; i++)
		most = l->past_ns[i] > most ? l->past_ns[i] : most;
	return most;
}

/*
 * Nothing was seen between two sessions. An iteration may have ended then, unless the loop had taken longer than ever
 * already.
 */
static void take_gap(const struct trg *t, struct trg_loop *l, uint64_t to_ns)
{
	if (l->from_ns >= t->seen_ns || l->still || t->seen_ns - l->from_ns > longest(l))
		return;
	l->from_ns = to_ns;
	l->unsure = true;
}

/*
 * Iterations are seen in slices alone. A slice waits for one, so slices without any say that none ended between the
 * first of them and the last one.
 */
static void take_slices(struct trg_loop *l, const struct mdl_interval *in)
{
	struct mxbpf_slice_part s;
	const bool has = cost_slices_of(in->model, l->tgid, &s);

	l->unsure = true;
	if (has && !s.seen_iterations) {
		if (!l->still && s.h.ts_ns > l->from_ns)
			l->from_ns = s.h.ts_ns;
		l->still = true;
		l->to_ns = s.h.ts_ns + s.slice_ns;
	} else if (has || !l->still) {
		l->from_ns = l->to_ns = in->now_ns;
		l->still = false;
	}
}

/* Moves the ends of the stretch without iterations. */
static void take_stretch(const struct trg *t, struct trg_loop *l, const struct mdl_interval *in)
{
	const uint64_t start_ns = in->session->start_mono_ns;

	if (t->seen_ns && start_ns > t->seen_ns)
		take_gap(t, l, start_ns);
	if (cost_lacks_iterations(in->model))
		take_slices(l, in);
	else
		l->to_ns = in->now_ns;
}

static void take_stretches(struct trg *t, const struct mdl_interval *in)
{
	size_t i;

	for (i = 0; i < buf_count(&t->loops, struct trg_loop); i++)
		take_stretch(t, buf_at(&t->loops, struct trg_loop, i), in);
	t->seen_ns = in->now_ns;
}

static bool judge_hang(struct trg *t, const struct mdl_interval *in, char *why)
{
	const struct trg_loop *l;
	char took[24];
	size_t i;

	judge_iterations(t, in, why);
	take_stretches(t, in);
	for (i = 0; i < buf_count(&t->loops, struct trg_loop); i++) {
		l = buf_at(&t->loops, struct trg_loop, i);
		if (l->to_ns <= l->from_ns || l->to_ns - l->from_ns < t->limit)
			continue;
		snprintf(why, TRG_WHY_BYTES, "process %" PRIu32 " has made no iteration for %s%s", l->tgid,
			 l->unsure ? "at least " : "", fmt_ns(l->to_ns - l->from_ns, took));
		return true;
	}
	return false;
}

/* ---- rows */

static bool matches(const struct trg *t, const char *name)
{
	return !fnmatch(t->name, name, 0) || (!strncmp(name, "aten::", 6) && !fnmatch(t->name, name + 6, 0));
}

static uint64_t duration_of(const struct trg *t, const struct mdl_row *row)
{
	return t->percentile < 0    ? mdl_row_avg(row)
	       : t->percentile >= 1 ? row->max_ns
				    : mdl_percentile(row, t->percentile);
}

static bool judge_operators(const struct trg *t, const struct mdl_interval *in, char *why)
{
	size_t n, i;
	const struct mdl_row *const *rows = mdl_rows(in->model, MXBPF_CLASS_OPERATOR, &n);
	char took[24], safe[128];
	const char *name;
	size_t len;

	for (i = 0; i < n; i++) {
		name = mdl_name(in->model, rows[i]->name_id, &len);
		if (!rows[i]->count || !matches(t, name) || duration_of(t, rows[i]) <= t->limit)
			continue;
		fmt_utf8(safe, sizeof(safe), name, len);
		snprintf(why, TRG_WHY_BYTES, "operator %s of process %" PRIu32 " took %s", safe, rows[i]->tgid,
			 fmt_ns(duration_of(t, rows[i]), took));
		return true;
	}
	return false;
}

static bool judge_memory(const struct trg *t, const struct mdl_interval *in, char *why)
{
	size_t n, i;
	const struct mdl_mem_row *const *rows = mdl_mem_rows(in->model, &n);
	char device[48], live[24];

	for (i = 0; i < n && !cost_lacks_memory(in->model); i++) {
		if (rows[i]->live_bytes <= t->limit ||
		    fnmatch(t->name, mdl_device_name(in->session, rows[i]->device, device), 0))
			continue;
		snprintf(why, TRG_WHY_BYTES, "process %" PRIu32 " holds %s on %s", rows[i]->tgid,
			 fmt_bytes(rows[i]->live_bytes, live), device);
		return true;
	}
	return false;
}

static bool is_found(const struct trg *t, const char *key, double share)
{
	return !fnmatch(t->name, key, 0) && share > t->share;
}

/* Of each job, if somebody has looked for them; else of all processes together. */
static bool judge_findings(const struct trg *t, const struct mdl_interval *in, char *why)
{
	struct findings f;
	bool found = false;
	size_t i;

	for (i = 0; in->found && i < in->nfound && !found; i++) {
		found = is_found(t, in->found[i].key, in->found[i].share);
		if (found)
			snprintf(why, TRG_WHY_BYTES, "%s: %s", in->found[i].job, in->found[i].text);
	}
	if (in->found)
		return found;
	if (findings_make(in->model, in->session, &f))
		f.n = 0;
	for (i = 0; i < f.n && !found; i++) {
		found = is_found(t, f.list[i].rule->key, f.list[i].share);
		if (found)
			snprintf(why, TRG_WHY_BYTES, "%.*s", (int)f.list[i].text.len, f.list[i].text.data);
	}
	findings_fini(&f);
	return found;
}

/* ---- GPUs */

static bool is_idle(const struct trg *t, double busy, char *why)
{
	if (1 - busy <= t->share)
		return false;
	snprintf(why, TRG_WHY_BYTES, "GPUs did nothing in %.0f %% of the time", 100 * (1 - busy));
	return true;
}

static bool has_watched(const struct mdl_interval *in, unsigned gpu)
{
	const struct nvml_list *l = in->gpus;
	unsigned i = 0;

	while (i < l->nprocesses && (l->processes[i].gpu != gpu || !is_watched(in, l->processes[i].pid)))
		i++;
	return i < l->nprocesses;
}

/* The driver knows all work of the GPUs that the watched processes use, also that of others. */
static bool judge_driver(struct trg *t, const struct mdl_interval *in, char *why)
{
	uint64_t seen_ns = 0, busy_ns = 0;
	unsigned i;

	for (i = 0; in->gpus && i < in->gpus->n; i++) {
		if (!has_watched(in, i))
			continue;
		seen_ns += in->gpus->gpus[i].seen_ns;
		busy_ns += in->gpus->gpus[i].busy_ns;
	}
	if (seen_ns) {
		t->busy = (double)busy_ns / (double)seen_ns;
		t->told_ns = in->now_ns;
	}
	return t->told_ns && in->now_ns - t->told_ns < TOLD_NS && is_idle(t, t->busy, why);
}

/* The agent of the processes knows best; without one, the driver. */
static bool judge_gpus(struct trg *t, const struct mdl_interval *in, char *why)
{
	struct findings f;
	bool found;

	if (!findings_make(in->model, in->session, &f) && f.facts.gpu.known)
		found = is_idle(t, f.facts.gpu.busy, why);
	else
		found = judge_driver(t, in, why);
	findings_fini(&f);
	return found;
}

static bool is_true(struct trg *t, const struct mdl_interval *in, char *why)
{
	switch (t->what) {
	case TRG_ITERATION:
		return judge_iterations(t, in, why);
	case TRG_OPERATOR:
		return judge_operators(t, in, why);
	case TRG_MEMORY:
		return judge_memory(t, in, why);
	case TRG_HANG:
		return judge_hang(t, in, why);
	case TRG_GPU_IDLE:
		return judge_gpus(t, in, why);
	case TRG_COLUMN:
		return trg_judge_column(t, in, why);
	default:
		return judge_findings(t, in, why);
	}
}

bool trg_judge(struct trg *t, const struct mdl_interval *in, char why[TRG_WHY_BYTES])
{
	why[0] = '\0';
	if (!is_true(t, in, why)) {
		t->since_ns = 0;
		t->fired = false;
		return false;
	}
	if (!t->since_ns) /* it was true during the interval, whose start is not later than that */
		t->since_ns = in->now_ns > in->session->duration_ns ? in->now_ns - in->session->duration_ns : 1;
	if (t->fired || in->now_ns - t->since_ns < t->for_ns)
		return false;
	t->fired = true;
	return true;
}

void trg_see(struct trg *t, const struct mdl_interval *in)
{
	char why[TRG_WHY_BYTES];

	if (t->what == TRG_ITERATION || t->what == TRG_HANG)
		judge_iterations(t, in, why);
	if (t->what == TRG_HANG)
		take_stretches(t, in);
}

/* ---- from one session to the next */

static bool same(const struct trg *a, const struct trg *b)
{
	return a->what == b->what && !strcmp(a->name, b->name) && a->sheet == b->sheet &&
	       a->column.at == b->column.at && a->percentile == b->percentile && a->times == b->times &&
	       a->share == b->share && a->limit == b->limit && a->for_ns == b->for_ns;
}

void trg_continue(struct trg *t, const struct trg *before)
{
	if (t->what != before->what)
		return;
	if (!t->loops.len && before->loops.len && !buf_put(&t->loops, before->loops.data, before->loops.len))
		t->seen_ns = before->seen_ns;
	if (!same(t, before))
		return;
	t->since_ns = before->since_ns;
	t->fired = before->fired;
	t->busy = before->busy;
	t->told_ns = before->told_ns;
}
