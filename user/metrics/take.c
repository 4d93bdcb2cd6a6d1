// SPDX-License-Identifier: Apache-2.0
/* What an interval adds to the series. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "feature/cost/cost.h"
#include "feature/findings/findings.h"
#include "feature/machine/machine.h"
#include "feature/steps/steps.h"
#include "metrics/priv.h"
#include "target/target.h"

#define MILLION 1000000

/* ---- processes */

static uint64_t risen(uint64_t now, uint64_t before)
{
	return before && now > before ? now - before : 0;
}

/* What a process did before mxbpf saw it does not count. */
static void take_process(struct met *m, const struct mdl_interval *in, pid_t pid)
{
	struct tgt_usage u;
	struct met_process *p = met_process_of(m, in, (uint32_t)pid);

	if (!p || tgt_peek_usage(pid, &u))
		return;
	met_add(m, MET_CPU, p->labels, risen(u.cpu_ns, p->cpu_ns));
	met_add(m, MET_FAULTS, p->labels, risen(u.faults, p->faults));
	met_add_gauge(m, MET_RESIDENT, p->labels, (int64_t)u.resident_bytes);
	met_add_gauge(m, MET_TARGETS, p->labels, 1);
	p->cpu_ns = u.cpu_ns;
	p->faults = u.faults;
}

/*
 * The numbers of processes stand in series of their own, which end with the process. Only so many are named: a job may
 * start thousands of workers.
 */
static void take_numbers(struct met *m, const struct mdl_interval *in)
{
	struct met_process *p;
	struct met_labels l;
	char pid[16];
	size_t i;

	met_reset(m, MET_PROCESS, MET_ABSENT);
	for (i = 0; i < in->npids && i < MET_PROCESSES_MAX; i++) {
		p = met_process_of(m, in, (uint32_t)in->pids[i]);
		if (!p)
			continue;
		met_labels_begin(&l, p->labels);
		met_label_text(&l, "host", in->session->hostname);
		snprintf(pid, sizeof(pid), "%d", in->pids[i]);
		met_label_text(&l, "pid", pid);
		met_label_text(&l, "iterations", p->iterates ? "yes" : "");
		met_set(m, MET_PROCESS, l.text, 1);
	}
}

/* ---- iterations */

/* A process with several loops has series for each thread. */
static void begin_labels(struct met_labels *l, const struct met_process *p, uint32_t tid)
{
	char thread[16];

	met_labels_begin(l, p->labels);
	if (!p->loops)
		return;
	snprintf(thread, sizeof(thread), "%u", tid);
	met_label_text(l, "thread", thread);
}

static void take_iteration(struct met *m, const struct met_process *p, const struct mxbpf_iteration *it, uint64_t n)
{
	struct met_labels l;
	unsigned i;

	begin_labels(&l, p, it->tid);
	met_observe(m, MET_ITERATION, l.text, it->dur_ns, n);
	for (i = 0; it->flags & MXBPF_ITERATION_PARTS && i < MXBPF_STEP_PARTS; i++) {
		begin_labels(&l, p, it->tid);
		met_label_text(&l, "part", steps_parts[i]);
		met_add(m, MET_ITERATION_PART, l.text, it->part_ns[i] * n);
	}
}

/* How many iterations of the same process follow, with this one. */
static size_t count_of(const struct mxbpf_iteration *it, size_t from, size_t n)
{
	size_t i = from;

	while (i < n && it[i].h.tgid == it[from].h.tgid)
		i++;
	return i - from;
}

/*
 * The iteration that ended last tells the memory of its process. A process that ends none in this interval has what it
 * had.
 */
static void take_iterations(struct met *m, const struct mdl_interval *in)
{
	size_t n, i, first = 0;
	const struct mxbpf_iteration *it = steps_iterations(in->model, &n);
	struct met_process *p;
	double scale = 1;
	uint64_t end_ns;

	for (i = 0; i < n; i++) {
		p = met_process_of(m, in, it[i].h.tgid);
		if (!p)
			continue;
		if (!i || it[i].h.tgid != it[first].h.tgid) {
			first = i;
			scale = cost_iterations_scale(in->model, it[i].h.tgid, count_of(it, i, n));
			p->loops |= it[i].tid != it[i + count_of(it, i, n) - 1].tid;
		}
		/* Iteration k of those that were seen stands for a whole number of them, and all add up to the
		 * estimate. */
		take_iteration(m, p, &it[i],
			       met_scaled(i - first + 1, scale) - (i > first ? met_scaled(i - first, scale) : 0));
		p->looped = !cost_lacks_memory(in->model);
		p->iterates = true;
		end_ns = it[i].h.ts_ns + it[i].dur_ns;
		if (end_ns >= p->looped_ns)
			p->live_bytes = it[i].live_bytes;
		p->looped_ns = end_ns > p->looped_ns ? end_ns : p->looped_ns;
	}
	for (i = 0; i < buf_count(&m->processes, struct met_process); i++) {
		p = buf_at(&m->processes, struct met_process, i);
		if (p->seen && p->looped)
			met_add_gauge(m, MET_LIVE, p->labels, p->live_bytes);
	}
}

/* ---- what bounds a job */

struct one_job {
	const struct met *m;
	const char *group;
};

static bool of_job(void *ctx, uint32_t tgid)
{
	const struct one_job *one = ctx;
	size_t i;

	for (i = 0; i < buf_count(&one->m->processes, struct met_process); i++) {
		const struct met_process *p = buf_at(&one->m->processes, struct met_process, i);

		if (p->tgid == tgid)
			return p->group && !strcmp(p->group, one->group);
	}
	return false;
}

const struct mdl_found *met_found(const struct met *m, size_t *n)
{
	static const struct mdl_found none;

	*n = buf_count(&m->found, struct mdl_found);
	return *n ? (const void *)m->found.data : &none;
}

void met_forget_found(struct met *m)
{
	size_t i;

	for (i = 0; i < buf_count(&m->found, struct mdl_found); i++)
		free((char *)(uintptr_t)buf_at(&m->found, struct mdl_found, i)->text);
	m->found.len = 0;
}

/* A condition may be true of a finding. */
static void keep_found(struct met *m, const struct finding *f, const char *job)
{
	const struct mdl_found found = {.job = job,
					.key = f->rule->key,
					.share = f->share,
					.text = strndup(f->text.data ? f->text.data : "", f->text.len)};

	if (found.text && buf_put(&m->found, &found, sizeof(found)))
		free((char *)(uintptr_t)found.text);
}

static void take_found(struct met *m, const struct findings *f, const char *job)
{
	struct met_labels l;
	unsigned i;

	for (i = 0; i < f->n; i++) {
		keep_found(m, &f->list[i], job);
		met_labels_begin(&l, job);
		met_label_text(&l, "finding", f->list[i].rule->key);
		/* of two jobs with one name the one that it explains more of */
		met_raise(m, MET_FINDING, l.text, (int64_t)(f->list[i].share * MILLION));
	}
}

/* The whole model is copied for each job only if there are several. */
static int take_job(struct met *m, const struct mdl_interval *in, const struct met_process *p, bool alone)
{
	struct one_job one = {m, p->group};
	struct mdl *own = alone ? NULL : mdl_only(in->model, of_job, &one);
	struct findings found = {.n = 0};
	int err;

	if (!alone && !own)
		return -ENOMEM;
	err = met_feed_groups(m, p->job, own ? own : in->model);
	err = err ? err : findings_make(own ? own : in->model, in->session, &found);
	if (!err)
		take_found(m, &found, p->job);
	findings_fini(&found);
	mdl_free(own);
	return err;
}

static bool is_first_of_job(const struct met *m, size_t at)
{
	const char *group = buf_at(&m->processes, struct met_process, at)->group;
	size_t i = 0;

	while (i < at && strcmp(buf_at(&m->processes, struct met_process, i)->group, group))
		i++;
	return i == at;
}

static int take_jobs(struct met *m, const struct mdl_interval *in)
{
	const size_t n = buf_count(&m->processes, struct met_process);
	size_t i, jobs = 0;
	int err = 0;

	for (i = 0; i < n; i++)
		jobs += is_first_of_job(m, i);
	for (i = 0; i < n && !err; i++)
		if (is_first_of_job(m, i))
			err = take_job(m, in, buf_at(&m->processes, struct met_process, i), jobs == 1);
	return err;
}

/* ---- the machine */

/* Gauges that are metrics, with a label that tells those of a family apart. */
static const struct {
	uint16_t gauge;
	unsigned family;
	const char *labels;
} gauges[] = {
	{MXBPF_GAUGE_CPU_BUSY, MET_MACHINE_CPU, "mode=\"busy\""},
	{MXBPF_GAUGE_CPU_IDLE, MET_MACHINE_CPU, "mode=\"idle\""},
	{MXBPF_GAUGE_CPU_IOWAIT, MET_MACHINE_CPU, "mode=\"iowait\""},
	{MXBPF_GAUGE_CPU_STEAL, MET_MACHINE_CPU, "mode=\"steal\""},
	{MXBPF_GAUGE_STALL_CPU, MET_PRESSURE, "resource=\"cpu\",tasks=\"some\""},
	{MXBPF_GAUGE_STALL_IO, MET_PRESSURE, "resource=\"io\",tasks=\"some\""},
	{MXBPF_GAUGE_STALL_IO_ALL, MET_PRESSURE, "resource=\"io\",tasks=\"all\""},
	{MXBPF_GAUGE_STALL_MEMORY, MET_PRESSURE, "resource=\"memory\",tasks=\"some\""},
	{MXBPF_GAUGE_STALL_MEMORY_ALL, MET_PRESSURE, "resource=\"memory\",tasks=\"all\""},
	{MXBPF_GAUGE_GROUP_STALL_CPU, MET_CGROUP_PRESSURE, "resource=\"cpu\",tasks=\"some\""},
	{MXBPF_GAUGE_GROUP_STALL_IO, MET_CGROUP_PRESSURE, "resource=\"io\",tasks=\"some\""},
	{MXBPF_GAUGE_GROUP_STALL_IO_ALL, MET_CGROUP_PRESSURE, "resource=\"io\",tasks=\"all\""},
	{MXBPF_GAUGE_GROUP_STALL_MEMORY, MET_CGROUP_PRESSURE, "resource=\"memory\",tasks=\"some\""},
	{MXBPF_GAUGE_GROUP_STALL_MEMORY_ALL, MET_CGROUP_PRESSURE, "resource=\"memory\",tasks=\"all\""},
	{MXBPF_GAUGE_GROUP_CPU, MET_CGROUP_CPU, ""},
	{MXBPF_GAUGE_GROUP_MEMORY, MET_CGROUP_MEMORY, ""},
	{MXBPF_GAUGE_THROTTLED, MET_CGROUP_THROTTLED, ""},
	{MXBPF_GAUGE_PERIODS, MET_CGROUP_PERIODS, ""},
	{MXBPF_GAUGE_PERIODS_THROTTLED, MET_CGROUP_PERIODS_THROTTLED, ""},
	{MXBPF_GAUGE_MEMORY_MAX_HITS, MET_CGROUP_LIMIT_HITS, "limit=\"max\""},
	{MXBPF_GAUGE_MEMORY_HIGH_HITS, MET_CGROUP_LIMIT_HITS, "limit=\"high\""},
	{MXBPF_GAUGE_OOM_KILLS, MET_CGROUP_OOM_KILLS, ""},
};
#define GAUGES (sizeof(gauges) / sizeof(gauges[0]))

static void take_gauge(struct met *m, const char *job, const char *group, size_t at, uint64_t last, uint64_t difference)
{
	const unsigned family = gauges[at].family;
	struct met_labels l;

	met_labels_begin(&l, gauges[at].labels);
	if (job)
		met_labels_append(&l, job);
	met_label_text(&l, "cgroup", group);
	if (met_family(family)->type == MET_GAUGE)
		met_set(m, family, l.text, (int64_t)last);
	else
		met_add(m, family, l.text, difference);
}

void met_take_gauge(struct met *m, const char *job, const char *group, uint16_t id, uint64_t last, uint64_t difference)
{
	size_t i;

	for (i = 0; i < GAUGES; i++)
		if (gauges[i].gauge == id)
			take_gauge(m, job, group, i, last, difference);
}

/* Gauges with a scope are of the groups of the first process; groups.c has those of all jobs. */
static void take_machine(struct met *m, const struct mdl *model)
{
	size_t n, i;
	const struct machine_row *rows = machine_rows(model, &n);

	for (i = 0; i < n; i++)
		if (!rows[i].scope)
			met_take_gauge(m, NULL, NULL, rows[i].id, rows[i].last, rows[i].difference);
}

/* ---- watching itself */

static void take_sources(struct met *m, const struct mdl_session *s)
{
	struct met_labels l;
	size_t i;

	for (i = 0; i < s->nsources; i++) {
		l.len = 0;
		met_label_text(&l, "source", s->sources[i].name);
		met_add(m, MET_EVENTS, l.text, s->sources[i].loss.stored);
		met_add(m, MET_LOST, l.text, s->sources[i].loss.dropped);
	}
}

/* The slices of each job. */
static void take_slices(struct met *m, const struct mdl *model)
{
	struct mxbpf_slice_part s;
	size_t i;

	for (i = 0; i < buf_count(&m->processes, struct met_process); i++) {
		const struct met_process *p = buf_at(&m->processes, struct met_process, i);

		if (!p->labels || !cost_slices_of(model, p->tgid, &s))
			continue;
		met_add(m, MET_SLICES, p->labels, s.slices);
		met_add(m, MET_SLICED, p->labels, s.slice_ns);
	}
}

void met_take_self(struct met *m, const char *version)
{
	struct tgt_usage u;
	struct met_labels l = {0};

	met_label_text(&l, "version", version);
	met_set(m, MET_BUILD, l.text, 1);
	met_add(m, MET_WATCHED, NULL, 0);
	met_set(m, MET_OWN_CPU, NULL, (int64_t)clock_ns(CLOCK_PROCESS_CPUTIME_ID));
	if (!tgt_peek_usage(getpid(), &u)) {
		met_set(m, MET_OWN_RESIDENT, NULL, (int64_t)u.resident_bytes);
		met_set(m, MET_OWN_START, NULL,
			(int64_t)(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME) +
				  u.started * (1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK))));
	}
	met_set(m, MET_LEFT_OUT, NULL, (int64_t)m->left_out);
}

static void take_watching(struct met *m, const struct mdl_session *s, const struct mdl *model)
{
	met_set(m, MET_PARTIAL, NULL, cost_has_partial(model));
	met_set(m, MET_UNSEEN, NULL, cost_lacks_iterations(model));
	met_add(m, MET_WATCHED, NULL, s->duration_ns);
	met_add(m, MET_ADDED, NULL, s->cost.added_ns);
	met_take_self(m, s->mxbpf_version);
}

int met_take(struct met *m, const struct mdl_interval *in)
{
	static const enum met_id anew[] = {MET_TARGETS, MET_RESIDENT, MET_FINDING};
	size_t i;
	int err;

	m->now_ns = in->now_ns;
	err = met_make_room(m);
	if (err)
		return err;
	for (i = 0; i < sizeof(anew) / sizeof(anew[0]); i++)
		met_reset(m, anew[i], 0);
	met_reset(m, MET_LIVE, MET_ABSENT);
	met_reset(m, MET_GPU_MEMORY, MET_ABSENT);
	met_reset(m, MET_GPU_MEMORY_TOTAL, MET_ABSENT);
	met_reset(m, MET_GPU_MEMORY_FREE, MET_ABSENT);
	met_processes_begin(m);
	for (i = 0; i < in->npids; i++)
		take_process(m, in, in->pids[i]);
	err = met_take_calls(m, in);
	if (err)
		return err;
	take_iterations(m, in);
	take_numbers(m, in);
	err = met_take_tables(m, in);
	err = err ? err : met_take_gpus(m, in);
	met_processes_end(m);
	met_take_groups(m);
	met_forget_found(m);
	err = err ? err : take_jobs(m, in);
	take_machine(m, in->model);
	take_slices(m, in->model);
	take_sources(m, in->session);
	take_watching(m, in->session, in->model);
	m->taken_ns = clock_ns(CLOCK_REALTIME);
	return err;
}
