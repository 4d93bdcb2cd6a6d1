// SPDX-License-Identifier: Apache-2.0
/* Processes, the jobs to which they belong, and the iterations of both. */
#include "top/top.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "feature/findings/findings.h"
#include "feature/steps/steps.h"
#include "target/target.h"

#define JOB_BYTES 160

/* ---- jobs */

/* Finds or adds a job. Returns its place in top.jobs; 0: no memory. */
static uint32_t job_put(struct top *t, const char *name)
{
	const bool full = top_rows(t, TOP_JOBS) >= TOP_JOBS_MAX - 1;
	const uint64_t key = hash_text(HASH_SEED, name, strlen(name));
	struct top_row *row = top_row_find(t, TOP_JOBS, key, 0);
	uint32_t at;

	if (!row && full)
		name = "[further jobs]";
	row = row ? row : top_row_put(t, TOP_JOBS, full ? 1 : key, full);
	if (!row)
		return 0;
	at = (uint32_t)(row - top_row(t, TOP_JOBS, 0)) + 1;
	row->name = row->name ? row->name : strdup(name);
	row->job = at;
	t->jobs[at] = t->jobs[at] ? t->jobs[at] : calloc(TOP_SECONDS, sizeof(*t->jobs[at]));
	return row->name && t->jobs[at] ? at : 0;
}

static uint32_t job_of(struct top *t, const struct mdl_session *s, uint32_t tgid, const struct tgt_usage *p)
{
	const struct mdl_labels *l = t->one_job ? NULL : mdl_labels_of(s, tgid);
	const struct top_row *parent = p ? top_row_find(t, TOP_PROCESSES, (uint64_t)p->parent, 0) : NULL;
	char name[JOB_BYTES];

	if (t->one_job)
		return job_put(t, t->title);
	if (l && *l->texts[MDL_JOB])
		return job_put(t, l->texts[MDL_JOB]);
	if (parent)
		return parent->job;
	snprintf(name, sizeof(name), "%s (%" PRIu32 ")", p ? p->comm : "ended", tgid);
	return job_put(t, name);
}

/* ---- processes */

static void name_process(struct top_row *row, const struct mdl_session *s, const struct tgt_usage *p)
{
	const struct mdl_labels *l = mdl_labels_of(s, row->tgid);
	const char *host = l ? l->texts[MDL_OWN_HOSTNAME] : "", *role = l ? l->texts[MDL_ROLE] : "";
	char name[JOB_BYTES];

	row->rank = l ? l->numbers[MDL_RANK] : MDL_NO_NUMBER;
	host = s->hostname && !strcmp(host, s->hostname) ? "" : host;
	snprintf(name, sizeof(name), "%s%s%.40s%s%.60s", p ? p->comm : "[ended]", *role ? ", " : "", role,
		 *host ? " on " : "", host);
	free(row->name);
	row->name = strdup(name);
}

static struct top_row *process_put(struct top *t, const struct mdl_session *s, uint32_t tgid, const struct tgt_usage *p)
{
	struct top_row *row = top_row_put(t, TOP_PROCESSES, tgid, 0);

	if (row && row->started && p && p->started != row->started) { /* another process with this number */
		free(row->name);
		*row = (struct top_row){.id = ++t->ids, .a = row->a};
	}
	if (!row || (row->name && row->started) || (row->name && !p))
		return row && row->name && row->job ? row : NULL;
	row->tgid = tgid;
	row->started = p ? p->started : 0;
	row->job = job_of(t, s, tgid, p);
	name_process(row, s, p);
	return row->job && row->name ? row : NULL;
}

struct top_row *top_process_put(struct top *t, const struct mdl_session *s, uint32_t tgid)
{
	return process_put(t, s, tgid, NULL);
}

static void set_title(struct top *t, const struct mdl_session *s)
{
	const struct mdl_target target = mdl_target_of(s);

	const char *on = s->hostname && *s->hostname ? " on " : "", *host = s->hostname ? s->hostname : "";
	const size_t jobs = top_rows(t, TOP_JOBS);

	t->python = mdl_in_python(s);
	if (t->one_job || jobs < 2)
		snprintf(t->title, sizeof(t->title), "%.60s (%" PRIu32 ")%s%.60s", target.comm, target.pid, on, host);
	else
		snprintf(t->title, sizeof(t->title), "%zu jobs%s%.60s", jobs, on, host);
}

/* Adds the processes of each job up, in the row of the job. */
static void sum_jobs(struct top *t)
{
	struct top_row *row, *job;
	size_t i;

	for (i = 0; i < top_rows(t, TOP_JOBS); i++) {
		row = top_row(t, TOP_JOBS, i);
		row->processes = 0;
		row->resident_bytes = 0;
		row->live_bytes = 0;
	}
	for (i = 0; i < top_rows(t, TOP_PROCESSES); i++) {
		row = top_row(t, TOP_PROCESSES, i);
		if (!row->alive || !row->job)
			continue;
		job = top_row(t, TOP_JOBS, row->job - 1);
		job->alive = true;
		job->processes++;
		job->resident_bytes += row->resident_bytes;
		job->live_bytes += row->live_bytes;
		top_part_now(t, job)->cpu_ns += top_part_now(t, row)->cpu_ns;
	}
}

struct used {
	pid_t pid;
	struct tgt_usage usage;
};

static int jobs_by_start(const void *va, const void *vb)
{
	const struct used *a = va, *b = vb;

	if (a->usage.started != b->usage.started)
		return a->usage.started < b->usage.started ? -1 : 1;
	return a->pid < b->pid ? -1 : a->pid > b->pid;
}

static void take_process(struct top *t, const struct mdl_session *s, const struct used *p)
{
	struct top_row *row = process_put(t, s, (uint32_t)p->pid, &p->usage);

	if (!row)
		return;
	if (row->cpu_ns && p->usage.cpu_ns > row->cpu_ns)
		top_part_now(t, row)->cpu_ns = p->usage.cpu_ns - row->cpu_ns;
	row->cpu_ns = p->usage.cpu_ns;
	row->resident_bytes = p->usage.resident_bytes;
	row->alive = true;
	if (row->rank == MDL_NO_NUMBER) /* labels may come a moment later */
		name_process(row, s, &p->usage);
}

/* Adds the processes, parents before their children, because a child may belong to the job of its parent. */
static int take_pids(struct top *t, const struct mdl_interval *in)
{
	struct used *all = calloc(in->npids + 1, sizeof(*all));
	size_t n = 0, i;

	if (!all)
		return -ENOMEM;
	for (i = 0; i < in->npids; i++)
		if (!tgt_peek_usage(in->pids[i], &all[n].usage))
			all[n++].pid = in->pids[i];
	if (n)
		qsort(all, n, sizeof(*all), jobs_by_start);
	for (i = 0; i < n; i++)
		take_process(t, in->session, &all[i]);
	free(all);
	return 0;
}

int top_take_processes(struct top *t, const struct mdl_interval *in)
{
	int err;
	unsigned k;

	if (!t->one_job || !t->title[0]) /* else it is the name of the job */
		set_title(t, in->session);
	t->jobs[0] = t->jobs[0] ? t->jobs[0] : calloc(TOP_SECONDS, sizeof(*t->jobs[0]));
	if (!t->jobs[0])
		return -ENOMEM;
	err = take_pids(t, in);
	sum_jobs(t);
	for (k = 0; k <= TOP_JOBS_MAX; k++)
		if (t->jobs[k])
			t->jobs[k][t->n % TOP_SECONDS] = (struct top_second){.window_ns = in->session->duration_ns};
	return err;
}

struct top_row top_job_sum(const struct top *t, uint32_t job)
{
	struct top_row sum = {.job = job};
	const struct top_row *row;
	size_t i;

	for (i = 0; i < top_rows(t, TOP_JOBS); i++) {
		row = top_row(t, TOP_JOBS, i);
		if (!row->alive || (job && row->job != job))
			continue;
		sum.alive = true;
		sum.processes += row->processes;
		sum.resident_bytes += row->resident_bytes;
		sum.live_bytes += row->live_bytes;
		sum.second.cpu += row->second.cpu;
	}
	return sum;
}

/* ---- iterations */

static void add_iteration(struct top_second *to, const struct mxbpf_iteration *it)
{
	unsigned part;

	if (!to)
		return;
	to->iterations++;
	to->iteration_ns += it->dur_ns;
	if (!(it->flags & MXBPF_ITERATION_PARTS))
		return;
	to->known_ns += it->dur_ns;
	for (part = 0; part < MXBPF_STEP_PARTS; part++)
		to->part_ns[part] += it->part_ns[part];
}

/* Keeps the loops of a process that has several; its iterations are ordered by thread. */
static void take_loops(struct top *t, uint32_t job, const struct mxbpf_iteration *it, size_t n)
{
	struct top_loop *l = NULL;
	size_t i;

	for (i = 0; it[0].tid != it[n - 1].tid && i < n; i++) {
		if (!l || l->tid != it[i].tid) {
			if (t->nloops == TOP_LOOPS_MAX)
				return;
			l = &t->loops[t->nloops++];
			*l = (struct top_loop){.job = job, .tid = it[i].tid};
		}
		l->iterations++;
		l->iteration_ns += it[i].dur_ns;
	}
}

int top_take_iterations(struct top *t, const struct mdl_interval *in)
{
	const unsigned slot = t->n % TOP_SECONDS;
	size_t n, i, first = 0;
	const struct mxbpf_iteration *it = steps_iterations(in->model, &n);
	struct top_row *row;

	t->nloops = 0;
	for (i = 0; i < n; i++) {
		first = it[i].h.tgid == it[first].h.tgid ? first : i;
		add_iteration(&t->jobs[0][slot], &it[i]);
		row = top_process_put(t, in->session, it[i].h.tgid);
		if (!row)
			continue;
		row->live_bytes = it[i].live_bytes;
		top_part_now(t, row)->iterations++;
		top_part_now(t, top_row(t, TOP_JOBS, row->job - 1))->iterations++;
		add_iteration(&t->jobs[row->job][slot], &it[i]);
		if (i + 1 == n || it[i + 1].h.tgid != it[i].h.tgid)
			take_loops(t, row->job, &it[first], i + 1 - first);
	}
	return 0;
}

const struct top_second *top_second(const struct top *t, uint32_t job)
{
	return t->at && t->jobs[job] ? &t->jobs[job][(t->at - 1) % TOP_SECONDS] : NULL;
}

double top_iterations(const struct top *t, uint32_t job, unsigned k)
{
	const struct top_second *s = t->jobs[job];
	uint64_t n = 0, ns = 0;
	unsigned i;

	for (i = 1; s && i <= k && i <= t->at && i <= TOP_SECONDS; i++) {
		n += s[(t->at - i) % TOP_SECONDS].iterations;
		ns += s[(t->at - i) % TOP_SECONDS].window_ns;
	}
	return ns ? (double)n * 1e9 / (double)ns : 0;
}

/* ---- what bounds it */

static bool of_job(void *ctx, uint32_t tgid)
{
	const struct top *t = ctx;
	const struct top_row *row = top_row_find(t, TOP_PROCESSES, tgid, 0);

	return row && row->job == t->job;
}

/* Keeps the first finding that is not about the cost of watching, which stands in the corner. */
int top_take_finding(struct top *t, const struct mdl_interval *in)
{
	struct mdl *own = t->job && top_rows(t, TOP_JOBS) > 1 ? mdl_only(in->model, of_job, t) : NULL;
	struct findings found;
	const int err = findings_make(own ? own : in->model, in->session, &found);
	unsigned i;

	t->finding[0] = '\0';
	for (i = 0; i < found.n && !t->finding[0]; i++)
		if (strcmp(found.list[i].rule->key, "watching"))
			snprintf(t->finding, sizeof(t->finding), "%.*s", (int)found.list[i].text.len,
				 found.list[i].text.data);
	t->gpus = found.facts.gpu.known ? found.facts.gpu.n : 0;
	t->gpu = found.facts.gpu.busy;
	findings_fini(&found);
	mdl_free(own);
	return err;
}
