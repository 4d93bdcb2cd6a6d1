// SPDX-License-Identifier: Apache-2.0
#include "job/choose.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapter/adapter.h"
#include "target/target.h"

#define ENV_BYTES	    256
#define SCOPE_BYTES	    512
#define CONTAINER_ID_DIGITS 64 /* in ids of docker, containerd, podman and cri-o */
#define CGROUP_MOUNT	    "/sys/fs/cgroup"

/* What tells the job of a process. */
struct mark {
	pid_t pid, group;
	char scope[SCOPE_BYTES];	     /* of its control group; "": none */
	char meet[ADP_MEET_ENVS][ENV_BYTES]; /* "": it was told no place */
	const char *const *envs;	     /* names of these variables */
};

struct job {
	const struct job_choice *c;
	struct mark *marks; /* of each process of c->pids */
};

/* ---- control groups */

static bool is_container(const char *name, size_t n)
{
	size_t at, digits = 0;

	for (at = 0; at < n && digits < CONTAINER_ID_DIGITS; at++)
		digits = isxdigit((unsigned char)name[at]) ? digits + 1 : 0;
	return digits == CONTAINER_ID_DIGITS;
}

#define POD_UID_CHARS 32 /* at least: with or without hyphens */

/* "pod1b2c...", "kubepods-burstable-pod1b2c_....slice" */
static bool is_pod(const char *name, size_t n)
{
	const char *pod = name, *end = name + n;

	while ((pod = memmem(pod, (size_t)(end - pod), "pod", 3))) {
		if ((pod == name || pod[-1] == '-') && strspn(pod + 3, "0123456789abcdef-_") >= POD_UID_CHARS)
			return true;
		pod += 3;
	}
	return false;
}

/* "job_1234", of slurmstepd.scope and of control groups of the first version */
static bool is_slurm_job(const char *name, size_t n)
{
	return n > 4 && !strncmp(name, "job_", 4) && strspn(name + 4, "0123456789") >= n - 4;
}

size_t job_scope(const char *path)
{
	const char *name = path;
	size_t n;

	while (*name) {
		name += strspn(name, "/");
		n = strcspn(name, "/");
		if (n && (is_pod(name, n) || is_slurm_job(name, n) || is_container(name, n)))
			return (size_t)(name - path) + n;
		name += n;
	}
	return 0;
}

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

static bool take_scope(void *ctx, const char *path)
{
	const size_t n = job_scope(path);

	if (!n || n >= SCOPE_BYTES)
		return false;
	snprintf(ctx, SCOPE_BYTES, "%.*s", (int)n, path);
	return true;
}

/* A path means all groups below it. A word without "/" is a glob of one part of a path. */
static bool is_wanted_cgroup(void *ctx, const char *path)
{
	const char *wanted = ctx;
	char part[SCOPE_BYTES];
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

/* ---- jobs */

static void read_meeting(struct mark *m)
{
	const struct adp *const *a;
	unsigned i, found;

	for (a = adapters; *a; a++) {
		for (i = found = 0; i < ADP_MEET_ENVS; i++) {
			m->meet[i][0] = '\0';
			if ((*a)->meet_env[i])
				tgt_peek_env_text(m->pid, (*a)->meet_env[i], m->meet[i], ENV_BYTES);
			found += m->meet[i][0] != '\0';
		}
		m->envs = (*a)->meet_env;
		if (found == ADP_MEET_ENVS)
			return;
	}
	m->meet[0][0] = '\0';
}

static bool of_mark(const struct mark *m, pid_t pid)
{
	char text[SCOPE_BYTES] = "";
	unsigned i;

	if (m->scope[0]) {
		each_cgroup(pid, take_scope, text);
		return !strcmp(text, m->scope);
	}
	if (!m->meet[0][0])
		return m->group && tgt_peek_group(pid) == m->group;
	for (i = 0; i < ADP_MEET_ENVS; i++)
		if (!tgt_peek_env_text(pid, m->envs[i], text, ENV_BYTES) || strcmp(text, m->meet[i]))
			return false;
	return true;
}

static int read_mark(struct mark *m, pid_t pid, bool job, struct err *e)
{
	m->pid = pid;
	m->group = tgt_peek_group(pid);
	if (m->group < 0)
		return err_set(e, ERR_TARGET, -ESRCH, "there is no process %d", pid);
	if (!job)
		return 0;
	each_cgroup(pid, take_scope, m->scope);
	read_meeting(m);
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
	return j->c->job || j->c->comm || j->c->cgroup;
}

bool job_has(const struct job *j, pid_t pid)
{
	const struct job_choice *c = j->c;
	char comm[32];
	unsigned i;

	for (i = 0; i < c->npids; i++)
		if (pid == c->pids[i] || (c->job && of_mark(&j->marks[i], pid)))
			return true;
	if (c->npids || pid == getpid() || (!c->comm && !c->cgroup))
		return false;
	if (c->comm && (tgt_peek_comm(pid, pid, comm) || fnmatch(c->comm, comm, 0)))
		return false;
	return !c->cgroup || in_cgroup(pid, c->cgroup);
}

int job_list(const struct job *j, struct buf *pids)
{
	DIR *proc = job_grows(j) ? opendir("/proc") : NULL;
	struct dirent *d;
	int err = j->c->npids ? buf_put(pids, j->c->pids, j->c->npids * sizeof(pid_t)) : 0;
	unsigned i;
	pid_t pid;

	while (!err && proc && (d = readdir(proc))) {
		pid = isdigit((unsigned char)d->d_name[0]) ? (pid_t)strtol(d->d_name, NULL, 10) : 0;
		for (i = 0; i < j->c->npids && pid != j->c->pids[i]; i++)
			;
		if (pid && pid != getpid() && i == j->c->npids && job_has(j, pid))
			err = buf_put(pids, &pid, sizeof(pid));
	}
	if (proc)
		closedir(proc);
	return err;
}

const char *job_words(const struct job *j, char buf[160])
{
	const struct job_choice *c = j->c;

	if (c->npids == 1)
		snprintf(buf, 160, "%sprocess %d", c->job ? "the processes of the job of " : "", c->pids[0]);
	else if (c->npids)
		snprintf(buf, 160, "%s%u processes", c->job ? "the processes of the jobs of " : "the ", c->npids);
	else
		snprintf(buf, 160, "the processes%s%.40s%s%.60s", c->comm ? " named " : "", c->comm ? c->comm : "",
			 c->cgroup ? " in the control group " : "", c->cgroup ? c->cgroup : "");
	return buf;
}
