// SPDX-License-Identifier: Apache-2.0
#include "feature/findings/jobs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "feature/lines/lines.h"
#include "feature/neighbours/neighbours.h"
#include "feature/steps/steps.h"

/*
 * The eldest process of the job. In a recording of an earlier version no process has one, and all have 0. One that
 * ended in the window, as workers do, is of the job if there is only one.
 */
static uint32_t root_of(const struct mdl *m, uint32_t tgid)
{
	size_t n, i;
	const struct mxbpf_neighbour *r = neighbours_rows(m, &n);
	uint32_t only = 0;
	bool several = false;

	for (i = 0; i < n; i++) {
		if (r[i].h.tgid == tgid && r[i].root)
			return (tgid & ~MDL_PID_MASK) | r[i].root; /* of the same host, in a merge */
		several |= only && r[i].root && r[i].root != only;
		only = r[i].root ? r[i].root : only;
	}
	return several ? tgid : only ? (tgid & ~MDL_PID_MASK) | only : 0;
}

static struct findings_job job_of(const struct mdl *m, const struct mdl_session *s, uint32_t tgid)
{
	const struct mdl_labels *l = mdl_labels_of(s, tgid);
	const char *name = l && l->texts[MDL_JOB] && *l->texts[MDL_JOB] ? l->texts[MDL_JOB] : NULL;

	return (struct findings_job){.name = name, .root = root_of(m, tgid), .tgid = tgid};
}

static bool findings_is_same(const struct findings_job *a, const struct findings_job *b)
{
	return a->name && b->name ? !strcmp(a->name, b->name) : a->root == b->root;
}

static int findings_add(struct buf *jobs, const struct findings_job *one, uint64_t ns)
{
	struct findings_job *job = NULL;
	size_t i;

	for (i = 0; i < buf_count(jobs, *job) && !job; i++)
		if (findings_is_same(buf_at(jobs, struct findings_job, i), one))
			job = buf_at(jobs, struct findings_job, i);
	if (!job) {
		if (buf_put(jobs, one, sizeof(*one)))
			return -ENOMEM;
		job = buf_at(jobs, struct findings_job, buf_count(jobs, *job) - 1);
	}
	add_sat(&job->loop_ns, ns);
	if (ns > job->most_ns) {
		job->most_ns = ns;
		job->tgid = one->tgid;
	}
	return 0;
}

static uint64_t loop_ns_of(const struct mxbpf_iteration *it, size_t n, uint32_t tgid)
{
	uint64_t ns = 0;
	size_t i;

	for (i = 0; i < n; i++)
		if (it[i].h.tgid == tgid)
			add_sat(&ns, it[i].dur_ns);
	return ns;
}

static bool has_lines(const struct mdl *m, uint32_t tgid)
{
	size_t n, i;
	const struct mxbpf_agg_line *l = lines_rows(m, &n);

	for (i = 0; i < n; i++)
		if (l[i].h.tgid == tgid && !l[i].rank)
			return true;
	return false;
}

/* It has rows of the runtime: a launcher or a shell in Python has none. */
static bool has_operators(struct mdl *m, uint32_t tgid)
{
	size_t n, i;
	const struct mdl_row *const *rows = mdl_rows(m, MXBPF_CLASS_OPERATOR, &n);

	for (i = 0; i < n; i++)
		if (rows[i]->tgid == tgid)
			return true;
	return false;
}

static int findings_by_time(const void *va, const void *vb)
{
	const struct findings_job *a = va, *b = vb;

	if (a->loop_ns != b->loop_ns)
		return a->loop_ns > b->loop_ns ? -1 : 1;
	return a->root < b->root ? -1 : a->root > b->root;
}

int findings_jobs(struct mdl *m, const struct mdl_session *s, struct buf *jobs)
{
	size_t n, i;
	const struct mxbpf_iteration *it = steps_iterations(m, &n);
	struct findings_job one;
	uint64_t ns;
	int err = 0;

	for (i = 0; i < s->nlabels && !err; i++) {
		ns = loop_ns_of(it, n, s->labels[i].pid);
		if (!ns && !(has_lines(m, s->labels[i].pid) && has_operators(m, s->labels[i].pid)))
			continue;
		one = job_of(m, s, s->labels[i].pid);
		err = findings_add(jobs, &one, ns);
	}
	if (!err && jobs->len)
		qsort(jobs->data, buf_count(jobs, one), sizeof(one), findings_by_time);
	return err;
}

struct only {
	const struct mdl *m;
	const struct mdl_session *s;
	const struct findings_job *job;
};

static bool of_job(void *ctx, uint32_t tgid)
{
	const struct only *o = ctx;
	const struct findings_job of = job_of(o->m, o->s, tgid);

	return findings_is_same(o->job, &of);
}

struct mdl *findings_only(const struct mdl *m, const struct mdl_session *s, const struct findings_job *job)
{
	struct only o = {m, s, job};
	struct mdl *only = mdl_only(m, of_job, &o);
	struct mxbpf_neighbour r;
	size_t n, i;
	const struct mxbpf_neighbour *rows = neighbours_rows(m, &n);
	int err = 0;

	for (i = 0; only && i < n && !err; i++) {
		if (of_job(&o, rows[i].h.tgid))
			continue;
		r = rows[i];
		r.job = 0;
		err = mdl_fold_all(only, &r, sizeof(r));
	}
	if (err) {
		mdl_free(only);
		return NULL;
	}
	return only;
}
