// SPDX-License-Identifier: Apache-2.0
/* Numbers for the rules: each function fills one group of struct facts from the rows of the model. */
#include "feature/findings/findings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/whole.h"
#include "feature/cost/cost.h"
#include "feature/lines/lines.h"
#include "feature/machine/machine.h"
#include "feature/neighbours/neighbours.h"
#include "feature/steps/steps.h"
#include "mxbpf_config.h"

/* ---- the loop */

/* Threads with iterations. */
static void sum_loops(struct facts *f, const struct mxbpf_iteration *it, size_t n)
{
	unsigned k;
	size_t i;

	for (i = 0; i < n; i++) {
		for (k = 0; k < FACTS_LOOPS_MAX && f->loops[k].total_ns; k++)
			if (f->loops[k].tgid == it[i].h.tgid && f->loops[k].tid == it[i].tid)
				break;
		if (k == FACTS_LOOPS_MAX)
			continue;
		f->loops[k].tgid = it[i].h.tgid;
		f->loops[k].tid = it[i].tid;
		f->loops[k].n++;
		add_sat(&f->loops[k].total_ns, it[i].dur_ns);
	}
}

static void sum_exchanges(struct mdl *m, struct facts *f)
{
	size_t n, i, k;
	const struct mdl_row *const *rows = mdl_rows(m, MXBPF_CLASS_OPERATOR, &n);

	for (i = 0; i < n; i++)
		for (k = 0; k < FACTS_LOOPS_MAX && steps_is_exchange(m, rows[i]->name_id); k++)
			if (f->loops[k].tid && f->loops[k].tgid == rows[i]->tgid)
				add_sat(&f->loops[k].exchange_ns, rows[i]->total_ns);
}

#define EQUAL_PERCENT 90 /* of the most time: ranks of one job differ by less */

/* The thread with the most time in iterations; of equal ones the one that waits the most for the others. */
static unsigned choose_loop(const struct facts *f)
{
	uint64_t most = 0;
	unsigned best = 0, k;

	for (k = 0; k < FACTS_LOOPS_MAX; k++)
		most = f->loops[k].total_ns > most ? f->loops[k].total_ns : most;
	for (k = 0; k < FACTS_LOOPS_MAX; k++) {
		if (f->loops[k].total_ns / EQUAL_PERCENT < most / 100)
			continue;
		if (f->loops[best].total_ns / EQUAL_PERCENT < most / 100 ||
		    f->loops[k].exchange_ns > f->loops[best].exchange_ns ||
		    (f->loops[k].exchange_ns == f->loops[best].exchange_ns &&
		     f->loops[k].total_ns > f->loops[best].total_ns))
			best = k;
	}
	return best;
}

static int by_ns(const void *va, const void *vb)
{
	const uint64_t *a = va, *b = vb;

	return *a < *b ? -1 : *a > *b;
}

uint64_t facts_median(uint64_t *ns, size_t n)
{
	qsort(ns, n, sizeof(*ns), by_ns);
	return n ? ns[n / 2] : 0;
}

static bool is_complete(const struct mxbpf_iteration *it)
{
	return !(it->flags & MXBPF_ITERATION_LOST);
}

static void add_iteration(struct facts *f, const struct mxbpf_iteration *it)
{
	unsigned part;

	f->loop.n++;
	f->loop.complete += is_complete(it);
	f->loop.first_ns = f->loop.n == 1 ? it->h.ts_ns : f->loop.first_ns;
	f->loop.last_ns = it->h.ts_ns + (it->raw_ns ? it->raw_ns : it->dur_ns);
	add_sat(&f->loop.raw_ns, it->raw_ns ? it->raw_ns : it->dur_ns);
	add_sat(&f->loop.total_ns, it->dur_ns);
	if (!(it->flags & MXBPF_ITERATION_PARTS))
		return;
	f->loop.waits_known = it->flags & MXBPF_ITERATION_WAITS;
	add_sat(&f->loop.known_ns, it->dur_ns);
	add_sat(&f->loop.busy_ns, it->busy_ns);
	for (part = 0; part < MXBPF_STEP_PARTS; part++)
		add_sat(&f->loop.part_ns[part], it->part_ns[part]);
}

/* Iterations that were found in slices alone stand for all of their process, as rows of calls do. */
static void scale_loop(const struct mdl *m, struct facts *f, const struct mxbpf_iteration *it, size_t n)
{
	uint64_t *const sums[] = {&f->loop.raw_ns, &f->loop.total_ns, &f->loop.known_ns, &f->loop.busy_ns};
	const double each_ns = cost_free_iteration(m, f->loop.tgid), n_all = (double)f->loop.n;
	uint64_t found = 0;
	double scale, slower = 1;
	size_t i;

	for (i = 0; i < n; i++)
		found += it[i].h.tgid == f->loop.tgid;
	scale = cost_iterations_scale(m, f->loop.tgid, found);
	if (each_ns > 0 && f->loop.total_ns)
		slower = each_ns * n_all / (double)f->loop.total_ns;
	f->loop.n = whole((double)f->loop.n * scale);
	for (i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
		*sums[i] = whole((double)*sums[i] * scale * slower);
	for (i = 0; i < MXBPF_STEP_PARTS; i++)
		f->loop.part_ns[i] = whole((double)f->loop.part_ns[i] * scale * slower);
}

/* ---- memory that grows from iteration to iteration */

/* Finds the longest row of complete iterations: what is lost in between may have freed memory. Returns their number. */
static size_t longest_row(const struct mxbpf_iteration *it, size_t n, const struct mxbpf_iteration **first)
{
	size_t from = 0, most = 0, i;

	for (i = 0; i < n; i++) {
		if (!is_complete(&it[i]))
			from = i + 1;
		if (i + 1 - from <= most)
			continue;
		most = i + 1 - from;
		*first = &it[from];
	}
	return most;
}

/* From the end of the iteration before it: a recording is untrusted. */
static int64_t grown_in(const struct mxbpf_iteration *it)
{
	int64_t bytes;

	return __builtin_sub_overflow(it[0].live_bytes, it[-1].live_bytes, &bytes) ? 0 : bytes;
}

/*
 * In slices, the growth of an iteration is known if it and the one before it were recorded with all their calls. Sets
 * the memory to the sum of that growth. Returns the number of such iterations.
 */
static size_t growth_in_slices(const struct mxbpf_iteration *it, size_t n, int64_t *bytes)
{
	size_t i, kept = 0;

	for (i = 1; i < n; i++)
		if (it[i].flags & it[i - 1].flags & MXBPF_ITERATION_PARTS) {
			bytes[kept] = kept ? bytes[kept - 1] : 0;
			add_sat_signed(&bytes[kept++], grown_in(&it[i]));
		}
	return kept;
}

static int find_growth(const struct mdl *m, struct facts *f, const struct mxbpf_iteration *it, size_t n)
{
	int64_t *bytes = calloc(n, sizeof(*bytes));
	const size_t all = n;
	size_t i;

	if (!bytes)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		bytes[i] = it[i].live_bytes;
	n = cost_lacks_memory(m) ? growth_in_slices(it, n, bytes) : n;
	if (!n) {
		free(bytes);
		return 0;
	}
	if (__builtin_sub_overflow(bytes[n - 1], bytes[0], &f->grown_all))
		f->grown_all = 0; /* a recording is untrusted */
	f->grown_bytes = facts_grown(bytes, n);
	f->grown_over = n;
	if (n < all) /* in slices: the others grow alike */
		f->grown_all = (int64_t)((double)f->grown_all * (double)all / (double)n);
	free(bytes);
	return 0;
}

static size_t keep_complete(struct mxbpf_iteration *it, size_t n)
{
	size_t i, kept = 0;

	for (i = 0; i < n; i++)
		if (is_complete(&it[i]))
			it[kept++] = it[i];
	return kept;
}

static int make_loop(struct mdl *m, struct facts *f)
{
	size_t n, i, k = 0;
	const struct mxbpf_iteration *all = steps_iterations(m, &n);
	const struct mxbpf_iteration *first;
	struct mxbpf_iteration *it = calloc(n + 1, sizeof(*it));
	uint64_t *ns = calloc(n + 1, sizeof(*ns));
	int err = it && ns ? 0 : -ENOMEM;
	unsigned chosen;

	sum_loops(f, all, n);
	sum_exchanges(m, f);
	chosen = choose_loop(f);
	f->loop.tgid = f->loops[chosen].tgid;
	f->loop.tid = f->loops[chosen].tid;
	for (k = 0; k < FACTS_LOOPS_MAX; k++)
		f->loop.beside += f->loops[k].n && f->loops[k].tgid == f->loop.tgid && k != chosen;
	k = 0;
	for (i = 0; i < n && !err; i++) {
		if (all[i].h.tgid != f->loop.tgid || all[i].tid != f->loop.tid)
			continue;
		add_iteration(f, &all[i]);
		ns[k] = all[i].dur_ns;
		it[k++] = all[i];
	}
	if (cost_has_slices(m))
		scale_loop(m, f, all, n);
	f->loop.median_ns = err ? 0 : facts_median(ns, k);
	n = err ? 0 : longest_row(it, k, &first);
	if (n)
		err = find_growth(m, f, first, n);
	err = err || !k ? err : facts_rest(m, f, it, k);
	k = err ? 0 : keep_complete(it, k);
	if (k) {
		err = facts_slow_group(f, it, k);
		err = err ? err : facts_owner(m, f, f->loop.tgid);
		err = err || !f->slow.n ? err : facts_slow_line(m, f, it, k);
	}
	free(it);
	free(ns);
	return err;
}

/* ---- calls that wait */

bool facts_is_wait(const char *name, size_t len)
{
	static const char *const words[] = {"SyncCopyToCPU", "WaitToRead", "WaitAll", "WaitForVar", "WaitForAll"};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (memmem(name, len, words[i], strlen(words[i])))
			return true;
	return false;
}

static void make_waits(struct mdl *m, struct facts *f)
{
	size_t n, i, len;
	const struct mdl_row *const *rows = mdl_rows(m, MXBPF_CLASS_API, &n);
	const char *name;

	for (i = 0; i < n; i++) {
		name = mdl_name(m, rows[i]->name_id, &len);
		if (rows[i]->tgid == f->loop.tgid && facts_is_wait(name, len))
			f->waits += rows[i]->count;
	}
}

/* ---- operators */

void facts_keep_operator(struct fact_operator list[FACTS_OPERATORS_MAX], const struct mdl *m, uint64_t name_id,
			 uint64_t much)
{
	struct fact_operator moved = {.much = much}, was;
	unsigned i;

	moved.name = mdl_name(m, name_id, &moved.len);
	for (i = 0; i < FACTS_OPERATORS_MAX; i++)
		if (list[i].name == moved.name) {
			moved.much += list[i].much;
			memmove(&list[i], &list[i + 1], (FACTS_OPERATORS_MAX - i - 1) * sizeof(*list));
			list[FACTS_OPERATORS_MAX - 1] = (struct fact_operator){.much = 0};
		}
	for (i = 0; i < FACTS_OPERATORS_MAX; i++) {
		if (moved.much <= list[i].much)
			continue;
		was = list[i];
		list[i] = moved;
		moved = was;
	}
}

/* Pages of memory that was kept are touched for the first time in any case. */
static void count_kept(struct facts *f)
{
	const uint64_t pages = f->grown_all > 0 ? (uint64_t)f->grown_all / FACTS_PAGE_BYTES : 0;

	f->faults_kept = pages < f->faults ? pages : f->faults;
}

static void make_operators(struct mdl *m, const struct mdl_session *s, struct facts *f)
{
	size_t n, i;
	const struct mdl_row *const *rows = mdl_rows(m, MXBPF_CLASS_OPERATOR, &n);

	for (i = 0; i < n; i++) {
		const struct mdl_row *r = rows[i];
		const struct mxbpf_account_sum *a = &r->account;
		const uint64_t faults = a->minflt > a->nested_minflt ? a->minflt - a->nested_minflt : 0;
		const uint64_t runq = a->runq_ns > a->nested_runq_ns ? a->runq_ns - a->nested_runq_ns : 0;

		if (!r->count || r->self_ns == 0)
			continue;
		f->loop_self_ns += r->tgid == f->loop.tgid ? r->self_ns : 0;
		f->op_calls += r->count;
		f->op_self_ns += r->self_ns;
		if (r->self_ns < r->count * FACTS_TINY_NS + runq) {
			f->tiny_calls += r->count;
			f->tiny_self_ns += r->self_ns;
			facts_keep_operator(f->tiny, m, r->name_id, r->count);
		}
		facts_keep_operator(f->faulty, m, r->name_id, faults);
		f->op_runq_ns += runq;
		f->faults += faults;
	}
	count_kept(f);
	/* A job that takes memory again which it has just given back gets pages that the machine still has. */
	f->faults_ns = (f->faults - f->faults_kept) * (s->fault_own_ns ? s->fault_own_ns : s->fault_ns);
	facts_ranks(m, f);
}

/* ---- CPUs */

static void keep_other(struct facts *f, const struct mxbpf_neighbour *r)
{
	struct mxbpf_neighbour moved = *r, was;
	unsigned i;

	for (i = 0; i < FACTS_OTHERS_MAX; i++) {
		if (moved.cpu_ns <= f->others[i].cpu_ns)
			continue;
		was = f->others[i];
		f->others[i] = moved;
		moved = was;
	}
}

/* The row of a gauge whose value rose most, over all control groups. */
static const struct machine_row *largest_gauge(const struct mdl *m, unsigned id)
{
	size_t n, i;
	const struct machine_row *rows = machine_rows(m, &n), *best = NULL;

	for (i = 0; i < n; i++)
		if (rows[i].id == id && (!best || rows[i].difference > best->difference))
			best = &rows[i];
	return best;
}

/* The kernel's figure is the sum over CPUs. */
static void make_throttled(const struct mdl *m, struct facts *f)
{
	const struct machine_row *row = largest_gauge(m, MXBPF_GAUGE_THROTTLED);
	const char *name;
	size_t len;

	if (!row)
		return;
	f->throttled = facts_share((double)row->difference, (double)row->elapsed_ns);
	f->throttled = f->throttled > 1 ? 1 : f->throttled;
	name = machine_scope_name(m, row->scope, &len);
	snprintf(f->throttled_by, sizeof(f->throttled_by), "%.*s", (int)len, name);
}

/* The process is another rank of the job, which the session does not profile. 2: it descends from one. */
static unsigned is_other_rank(const struct mdl *m, uint32_t tgid)
{
	size_t n, i;
	const struct mxbpf_agg_line *l = lines_rows(m, &n);

	for (i = 0; i < n; i++)
		if (l[i].rank && l[i].h.tgid == tgid)
			return l[i].of ? 2 : 1;
	return 0;
}

static void make_cpus(const struct mdl *m, struct facts *f)
{
	size_t n, i;
	const struct mxbpf_neighbour *r = neighbours_rows(m, &n);
	const struct machine_row *gauge;
	double all = 0;
	unsigned id, allowed = 0;
	uint64_t known_ns;
	unsigned rank;

	for (i = 0; i < n; i++) {
		f->cpu_elapsed_ns = r[i].elapsed_ns > f->cpu_elapsed_ns ? r[i].elapsed_ns : f->cpu_elapsed_ns;
		rank = r[i].job ? 0 : is_other_rank(m, r[i].h.tgid);
		f->ranks += rank == 1;
		*(r[i].job ? &f->job_cpu_ns : rank ? &f->ranks_cpu_ns : &f->others_cpu_ns) += r[i].cpu_ns;
		f->job_runq_ns += r[i].job ? r[i].runq_ns : 0;
		allowed = r[i].job && r[i].cpus > allowed ? r[i].cpus : allowed;
		if (!r[i].job && !rank)
			keep_other(f, &r[i]);
	}
	for (id = MXBPF_GAUGE_CPU_BUSY; id <= MXBPF_GAUGE_CPU_STEAL; id++) {
		gauge = machine_row(m, (uint16_t)id, 0);
		all += gauge ? (double)gauge->difference : 0;
	}
	gauge = machine_row(m, MXBPF_GAUGE_CPU_BUSY, 0);
	known_ns = f->job_cpu_ns + f->ranks_cpu_ns;
	if (gauge && (double)gauge->difference > (double)(known_ns + f->others_cpu_ns))
		f->others_cpu_ns = gauge->difference - known_ns; /* others ended before they could be read */
	f->cpus = gauge ? (unsigned)(facts_share(all, (double)gauge->elapsed_ns) + 0.5) : 0;
	f->allowed_cpus = allowed && allowed < f->cpus ? allowed : f->cpus;
	gauge = machine_row(m, MXBPF_GAUGE_CPU_STEAL, 0);
	f->stolen = gauge ? facts_share((double)gauge->difference, all) : 0;
	make_throttled(m, f);
}

static void make_cost(struct mdl *m, const struct mdl_session *s, struct facts *f)
{
	const struct cost_iterations it = cost_of_iterations(m);

	f->watching = (double)cost_permille(m, s) / 1000;
	f->watched_ns = it.watched_ns;
	f->unwatched_ns = it.unwatched_ns;
	f->agent_helps = s->cost.agent_helps;
}

/* CPUs that a process used on average; below 0: not known. */
static double cpus_of(const struct mdl *m, uint32_t tgid)
{
	size_t n, i;
	const struct mxbpf_neighbour *r = neighbours_rows(m, &n);

	for (i = 0; i < n && tgid; i++)
		if (r[i].h.tgid == tgid)
			return facts_share((double)r[i].cpu_ns, (double)r[i].elapsed_ns);
	return -1;
}

static unsigned have(const struct mdl_session *s)
{
	return (s->details & MXBPF_DETAIL_STACK ? FACTS_HAVE_STACKS : 0) | (s->sched ? FACTS_HAVE_SCHED : 0) |
	       (s->sample_hz ? FACTS_HAVE_SAMPLES : 0) | (s->held ? FACTS_HAVE_MEMORY : 0) |
	       (s->details & MXBPF_DETAIL_ARGS ? FACTS_HAVE_SHAPES : 0) |
	       (s->sampled_iterations ? FACTS_HAVE_ITERATIONS : 0);
}

/* Whether the loop's process is a rank of a job, and whether the session has others of it. */
static void make_job(const struct mdl_session *s, struct facts *f)
{
	const struct mdl_labels *l = f->loop.tgid ? mdl_labels_of(s, f->loop.tgid) : NULL;
	unsigned k;

	f->in_job = f->ranks || (l && l->numbers[MDL_WORLD_SIZE] != MDL_NO_NUMBER && l->numbers[MDL_WORLD_SIZE] > 1);
	for (k = 0; k < FACTS_LOOPS_MAX && f->loops[k].tid; k++)
		f->have |= f->loops[k].tgid != f->loop.tgid ? FACTS_HAVE_RANKS : 0;
}

#define CUT_OFF 4 /* iterations: the window may cut off the first and the last one, each up to twice as long */

/* Returns the part of the window that the loop's iterations take, or 1 if that is most of it or cannot be told. */
static double covered(const struct mdl_session *s, const struct facts *f)
{
	const double all_ns = (double)s->duration_ns, own_ns = (double)f->loop.raw_ns,
		     part = facts_share(own_ns, all_ns);

	if (!f->loop.n)
		return 0;
	if (!s->duration_ns || s->paused_ns || f->loop.about > f->loop.n || part > FACTS_COVERED_LEAST)
		return 1;
	return all_ns - own_ns > CUT_OFF * own_ns / (double)f->loop.n ? part : 1;
}

int facts_make(struct mdl *m, const struct mdl_session *s, struct facts *f)
{
	int err;

	*f = (struct facts){.have = have(s),
			    .python = mdl_in_python(s),
			    .unprobed = s->api_left || (cost_has_partial(m) && !cost_has_slices(m)),
			    .partial = cost_has_partial(m),
			    .sliced = cost_has_slices(m),
			    .foreign = s->profiler};
	err = make_loop(m, f);
	if (err)
		return err;
	facts_loss(m, s, f);
	f->loop.covers = covered(s, f);
	make_waits(m, f);
	make_operators(m, s, f);
	make_cpus(m, f);
	make_job(s, f);
	make_cost(m, s, f);
	facts_failed(m, s, f);
	err = facts_gpu(m, s, f);
	err = err ? err : facts_lines(m, f);
	err = err ? err : facts_compiling(m, s, f);
	err = err ? err : facts_locked(m, f);
	err = err ? err : facts_resident(m, f);
	err = err || f->loop.n ? err : facts_passes(m, f);
	err = err ? err : facts_collective(m, s, f);
	err = err ? err : facts_lines(m, f);
	f->last_cpus = cpus_of(m, f->last_rank);
	f->last_labels = f->last_rank ? mdl_labels_of(s, f->last_rank) : NULL;
	return err;
}
