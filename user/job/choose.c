// SPDX-License-Identifier: Apache-2.0
#include "job/choose.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target/labels.h"

#define PART_BYTES    512
#define CGROUP_MOUNT  "/sys/fs/cgroup"
#define LAUNCHERS_MAX 4 /* that start each other before one starts a rank */

/* What identifies the job of a process. */
struct mark {
	pid_t group;
	char job[TGT_JOB_BYTES]; /* "": not known, so its process group counts */
};

struct job {
	const struct job_choice *c;
	struct mark *marks; /* of each process of c->pids */
};

/* ---- control groups */

/* Calls fn for the path of each line of /proc/PID/cgroup until it returns true. Returns whether it did. */
static bool each_cgroup(pid_t pid, bool (*fn)(void *ctx, const char *path), void *ctx)
{
	struct buf text = {0};
	char *line, *save = NULL, *path;
	bool found = false;

	if (!tgt_peek_cgroup(pid, &text))
		for (line = strtok_r(text.data, "\n", &save); line && !found; line = strtok_r(NULL, "\n", &save)) {
			path = strchr(line, '/');
			found = path && fn(ctx, path);
		}
	buf_fini(&text);
	return found;
}

/* A path means all groups below it. A word without "/" is a glob of one part of a path. */
static bool is_wanted_cgroup(void *ctx, const char *path)
{
	const char *wanted = ctx;
	char part[PART_BYTES];
	size_t n = strlen(wanted);

	while (n > 1 && wanted[n - 1] == '/')
		n--;
	if (strchr(wanted, '/'))
		return !strncmp(path, wanted, n) && (path[n] == '/' || !path[n]);
	for (path += strspn(path, "/"); *path; path += n, path += strspn(path, "/")) {
		n = strcspn(path, "/");
		if (n < sizeof(part) && (snprintf(part, sizeof(part), "%.*s", (int)n, path), !fnmatch(wanted, part, 0)))
			return true;
	}
	return false;
}

/* The path may be given as the file system shows it: below the mount, and below the controller there. */
static bool in_cgroup(pid_t pid, const char *wanted)
{
	const size_t mount = strlen(CGROUP_MOUNT);
	const char *rest = wanted + mount, *slash;

	if (strncmp(wanted, CGROUP_MOUNT "/", mount + 1))
		return each_cgroup(pid, is_wanted_cgroup, (void *)wanted);
	slash = strchr(rest + 1, '/');
	return each_cgroup(pid, is_wanted_cgroup, (void *)rest) ||
	       (slash && slash[1] && each_cgroup(pid, is_wanted_cgroup, (void *)slash));
}

/* ---- launchers */

struct ranks {
	struct tgt_labels own; /* of the launcher: Slurm may have started it as one of its ranks */
	struct buf *pids;
	unsigned depth;
	int err;
};

/* A child of a rank has the rank's environment. It is not counted as a rank. */
static void add_ranks(void *ctx, pid_t pid)
{
	struct ranks *r = ctx;
	struct tgt_labels l;

	if (r->err)
		return;
	tgt_peek_labels(pid, &l);
	if ((l.rank >= 0 || *l.role) && (l.rank_variable != r->own.rank_variable || strcmp(l.role, r->own.role))) {
		r->err = buf_put(r->pids, &pid, sizeof(pid));
	} else if (r->depth < LAUNCHERS_MAX) {
		r->depth++;
		tgt_each_child(pid, add_ranks, r);
		r->depth--;
	}
}

static int choose_by_number(const void *va, const void *vb)
{
	const pid_t a = *(const pid_t *)va, b = *(const pid_t *)vb;

	return a < b ? -1 : a > b;
}

int job_ranks_of(pid_t launcher, struct buf *pids)
{
	const size_t had = pids->len;
	struct ranks r = {.pids = pids};

	tgt_peek_labels(launcher, &r.own);
	tgt_each_child(launcher, add_ranks, &r);
	if (pids->len > had)
		qsort(pids->data + had, (pids->len - had) / sizeof(pid_t), sizeof(pid_t), choose_by_number);
	return r.err;
}

static bool is_given(const struct job_choice *c, pid_t pid)
{
	unsigned i;

	for (i = 0; i < c->npids; i++)
		if (c->pids[i] == pid)
			return true;
	return false;
}

int job_choose(struct job_choice *c, const struct buf *pids)
{
	const pid_t *pid = (const pid_t *)pids->data, *end = pid + buf_count(pids, *pid);

	for (; pid < end; pid++) {
		if (is_given(c, *pid))
			continue;
		if (c->npids == JOB_PIDS_MAX)
			return -E2BIG;
		c->pids[c->npids++] = *pid;
	}
	return 0;
}

/* ---- jobs */

static bool of_mark(const struct mark *m, pid_t pid)
{
	struct tgt_labels l;

	if (!m->job[0])
		return m->group && tgt_peek_group(pid) == m->group;
	tgt_peek_labels(pid, &l);
	return !strcmp(l.job, m->job);
}

static int read_mark(struct mark *m, pid_t pid, bool job, struct err *e)
{
	struct tgt_labels l;

	m->group = tgt_peek_group(pid);
	if (m->group < 0)
		return err_set(e, ERR_TARGET, -ESRCH, "there is no process %d", pid);
	if (!job)
		return 0;
	tgt_peek_labels(pid, &l);
	memcpy(m->job, l.job, sizeof(m->job));
	return 0;
}

int job_new(const struct job_choice *c, struct job **out, struct err *e)
{
	struct job *j = calloc(1, sizeof(*j));
	int err = 0;
	unsigned i;

	*out = j;
	if (j) {
		j->c = c;
		j->marks = calloc(c->npids + 1, sizeof(*j->marks));
	}
	if (!j || !j->marks)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	for (i = 0; i < c->npids && !err; i++)
		err = read_mark(&j->marks[i], c->pids[i], c->job, e);
	return err;
}

void job_free(struct job *j)
{
	if (!j)
		return;
	free(j->marks);
	free(j);
}

bool job_grows(const struct job *j)
{
	return j->c->job || j->c->host || j->c->comm || j->c->cgroup;
}

bool job_has(const struct job *j, pid_t pid)
{
	const struct job_choice *c = j->c;
	char comm[32];
	unsigned i;

	if (pid == getpid())
		return false;
	for (i = 0; i < c->npids; i++)
		if (pid == c->pids[i] || (c->job && of_mark(&j->marks[i], pid)))
			return true;
	if (c->npids)
		return false;
	if (c->comm && (tgt_peek_comm(pid, pid, comm) || fnmatch(c->comm, comm, 0)))
		return false;
	return !c->cgroup || in_cgroup(pid, c->cgroup);
}

struct listing {
	const struct job *job;
	struct buf *pids;
	int err;
};

/* Those with given numbers are listed already. */
static void list_process(void *ctx, pid_t pid)
{
	struct listing *l = ctx;

	if (!l->err && !is_given(l->job->c, pid) && job_has(l->job, pid))
		l->err = buf_put(l->pids, &pid, sizeof(pid));
}

int job_list(const struct job *j, struct buf *pids)
{
	struct listing l = {j, pids, 0};
	int err;

	if (j->c->npids)
		l.err = buf_put(pids, j->c->pids, j->c->npids * sizeof(pid_t));
	err = job_grows(j) ? tgt_each_process(list_process, &l) : 0;
	return l.err ? l.err : err;
}

const char *job_words(const struct job *j, char buf[160])
{
	const struct job_choice *c = j->c;

	if (c->npids == 1) /* with --job */
		snprintf(buf, 160, "the processes of the job of process %d", c->pids[0]);
	else if (c->npids)
		snprintf(buf, 160, "%s%u processes", c->job ? "the processes of the jobs of " : "the ", c->npids);
	else if (c->host)
		snprintf(buf, 160, "the processes of this host");
	else
		snprintf(buf, 160, "the processes%s%.40s%s%.60s", c->comm ? " named " : "", c->comm ? c->comm : "",
			 c->cgroup ? " in the control group " : "", c->cgroup ? c->cgroup : "");
	return buf;
}
