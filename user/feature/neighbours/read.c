// SPDX-License-Identifier: Apache-2.0
#include "feature/neighbours/read.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "mxbpf_neighbours.h"

#define THREADS_MAX   1024 /* of a process; the wait of others is not read */
#define CPUS_MAX      8192
#define ANCESTORS_MAX 32 /* generations between the job and a process */
#define NS_PER_S      1000000000ull
#define NS_PER_US     1000

struct process {
	pid_t pid, parent;
	pid_t root; /* root_of() */
	char comm[16];
	uint64_t ticks, start; /* start: in ticks since boot; tells a process from an earlier one with its number */
	unsigned cpu;	       /* on which it ran last */
	bool named;	       /* of the job, or named as one of its processes, as other ranks are */
	uint64_t runq_ns;      /* of these: waited for a CPU, sum of its threads */
	uint64_t throttled_ns; /* of these: of its control group */
};

struct neighbours {
	struct neighbours_job job;
	uint64_t began_ns;
	struct buf processes; /* struct process */
	struct hash index;    /* (pid, start) -> 1 + place in processes */
};

/* The name stands in parentheses and may have any character, so it is found by the last one. */
static bool parse_stat(char *text, struct process *p)
{
	char *open = strchr(text, '('), *close = strrchr(text, ')');
	unsigned long long user, system, start;
	int parent;

	if (!open || !close ||
	    sscanf(close + 1,
		   " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %llu %*u %*d %*u %*u "
		   "%*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*d %u",
		   &parent, &user, &system, &start, &p->cpu) != 5)
		return false;
	*close = '\0';
	snprintf(p->comm, sizeof(p->comm), "%s", open + 1);
	p->parent = parent;
	p->ticks = user + system;
	p->start = start;
	return true;
}

static int neighbours_read_all(struct buf *processes)
{
	DIR *proc = opendir("/proc");
	struct dirent *d;
	struct process p;
	char path[300], text[1024];
	int err = 0;
	size_t n;
	FILE *f;

	if (!proc)
		return -errno;
	while (!err && (d = readdir(proc))) {
		if (!isdigit((unsigned char)d->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/stat", d->d_name);
		f = fopen(path, "re");
		if (!f)
			continue; /* it has ended */
		n = fread(text, 1, sizeof(text) - 1, f);
		fclose(f);
		text[n] = '\0';
		p = (struct process){.pid = atoi(d->d_name)};
		if (parse_stat(text, &p))
			err = buf_put(processes, &p, sizeof(p));
	}
	closedir(proc);
	return err;
}

static int index_pids(const struct buf *processes, struct hash *by_pid)
{
	uint64_t *at;
	size_t i;

	for (i = 0; i < buf_count(processes, struct process); i++) {
		at = hash_put(by_pid, (uint64_t)buf_at(processes, struct process, i)->pid, 0);
		if (!at)
			return -ENOMEM;
		*at = i + 1;
	}
	return 0;
}

static const struct process *neighbours_find(const struct buf *now, const struct hash *by_pid, pid_t pid)
{
	const uint64_t *at = hash_get(by_pid, (uint64_t)pid, 0);

	return at ? buf_at(now, struct process, *at - 1) : NULL;
}

/* The eldest process of the job from which a process descends, or which it is itself; 0: it is not of the job. */
static pid_t root_of(const struct neighbours_job *job, const struct buf *now, const struct hash *by_pid,
		     const struct process *p)
{
	pid_t root = 0;
	unsigned i;

	for (i = 0; p && i < ANCESTORS_MAX; i++) {
		if (job->is(job->ctx, p->pid))
			root = p->pid;
		p = neighbours_find(now, by_pid, p->parent);
	}
	return root;
}

uint64_t neighbours_runq(pid_t pid, pid_t tid)
{
	unsigned long long ns = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, tid);
	f = fopen(path, "re");
	if (f && fscanf(f, "%*u %llu", &ns) != 1)
		ns = 0;
	if (f)
		fclose(f);
	return ns;
}

/* Returns how long the threads of a process were ready without a CPU. */
static uint64_t runq_of(pid_t pid)
{
	uint64_t sum = 0;
	struct dirent *d;
	unsigned threads;
	char path[300];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	for (threads = 0; tasks && threads < THREADS_MAX && (d = readdir(tasks)); threads++)
		if (isdigit((unsigned char)d->d_name[0]))
			sum += neighbours_runq(pid, atoi(d->d_name));
	if (tasks)
		closedir(tasks);
	return sum;
}

/* By its affinity, which a cpuset narrows. *only: 1 + the CPU, if it is a single one; otherwise 0. */
static unsigned cpus_of(pid_t pid, uint32_t *only)
{
	cpu_set_t *set = CPU_ALLOC(CPUS_MAX);
	const size_t bytes = CPU_ALLOC_SIZE(CPUS_MAX);
	unsigned n = 0, cpu = 0;

	if (set && !sched_getaffinity(pid, bytes, set))
		n = (unsigned)CPU_COUNT_S(bytes, set);
	while (n == 1 && !CPU_ISSET_S(cpu, bytes, set))
		cpu++;
	*only = n == 1 ? 1 + cpu : 0;
	CPU_FREE(set);
	return n;
}

/* For how long the control group of a process was throttled, over all CPUs. groups: (hash of its file, 0) -> that. */
static uint64_t throttled_of(const struct neighbours_job *job, pid_t pid, struct hash *groups)
{
	struct buf text = {0};
	char path[PATH_MAX], word[64], *at;
	unsigned long long n;
	uint64_t ns = 0, key = 0, *known = NULL;
	bool old;
	FILE *f;

	at = job->cgroup(pid, &text) ? NULL : (char *)text.data;
	old = at && (strstr(at, ":cpu:/") || strstr(at, ":cpu,"));
	at = old ? strstr(at, strstr(at, ":cpu:/") ? ":cpu:/" : ":cpu,") : at ? strstr(at, "0::/") : NULL;
	at = at ? strchr(at, '/') : NULL;
	if (at) {
		at[strcspn(at, "\n")] = '\0';
		snprintf(path, sizeof(path), "/sys/fs/cgroup%s%s/cpu.stat", old ? "/cpu" : "", at);
		key = hash_text(HASH_SEED, path, strlen(path));
		known = hash_get(groups, key, 0);
	}
	f = at && !known ? fopen(path, "re") : NULL;
	while (f && fscanf(f, "%63s %llu", word, &n) == 2)
		ns = !strcmp(word, "throttled_usec") ? n * NS_PER_US : !strcmp(word, "throttled_time") ? n : ns;
	if (f)
		fclose(f);
	ns = known ? *known : ns;
	known = hash_put(groups, key, 0);
	if (known)
		*known = ns;
	buf_fini(&text);
	return ns;
}

#define NAMES_MAX     8	 /* of processes of the job */
#define NAMESAKES_MAX 64 /* processes with these names that are not of the job */

/* Marks the processes of the job, and those with their names: first those with the same parent, as other ranks are. */
static void mark_named(const struct neighbours_job *job, struct buf *processes, const struct hash *by_pid)
{
	char names[NAMES_MAX][sizeof(((struct process *)NULL)->comm)];
	unsigned n = 0, k, pass, namesakes = 0;
	struct hash parents = {0};
	struct process *p;
	size_t i;

	for (i = 0; i < buf_count(processes, struct process); i++) {
		p = buf_at(processes, struct process, i);
		p->root = root_of(job, processes, by_pid, p);
		p->named = p->root;
		for (k = 0; k < n && strcmp(names[k], p->comm); k++)
			;
		if (p->root && k == n && n < NAMES_MAX)
			memcpy(names[n++], p->comm, sizeof(p->comm));
		if (p->root == p->pid)
			hash_put(&parents, (uint64_t)p->parent, 0); /* without memory they are no siblings */
	}
	for (pass = 0; pass < 2; pass++)
		for (i = 0; i < buf_count(processes, struct process) && namesakes < NAMESAKES_MAX; i++) {
			p = buf_at(processes, struct process, i);
			for (k = 0; k < n && strcmp(names[k], p->comm); k++)
				;
			if (p->named || k == n || (!pass && !hash_get(&parents, (uint64_t)p->parent, 0)))
				continue;
			p->named = true;
			namesakes++;
		}
	hash_fini(&parents);
}

/* Reads how long the processes of the job and those with their names waited. */
static void read_waits(const struct neighbours_job *job, struct buf *processes, const struct hash *by_pid)
{
	struct hash groups = {0};
	struct process *p;
	size_t i;

	mark_named(job, processes, by_pid);
	for (i = 0; i < buf_count(processes, struct process); i++) {
		p = buf_at(processes, struct process, i);
		p->runq_ns = p->named ? runq_of(p->pid) : 0;
		p->throttled_ns = p->named ? throttled_of(job, p->pid, &groups) : 0;
	}
	hash_fini(&groups);
}

struct neighbours *neighbours_begin(const struct neighbours_job *job)
{
	struct neighbours *n = calloc(1, sizeof(*n));
	struct hash by_pid = {0};
	struct process *p;
	uint64_t *at;
	size_t i;

	if (!n)
		return NULL;
	n->job = *job;
	n->began_ns = clock_ns(CLOCK_MONOTONIC);
	neighbours_read_all(
		&n->processes); /* what is missing counts as begun in the window, which its start denies below */
	for (i = 0; i < buf_count(&n->processes, struct process); i++) {
		p = buf_at(&n->processes, struct process, i);
		at = hash_put(&n->index, (uint64_t)p->pid, p->start);
		if (at)
			*at = i + 1;
	}
	if (!index_pids(&n->processes, &by_pid))
		read_waits(job, &n->processes, &by_pid);
	hash_fini(&by_pid);
	return n;
}

int neighbours_end(struct neighbours *n, struct buf *out)
{
	const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), tick_ns = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
	struct mxbpf_neighbour r = {.h = {.kind = MXBPF_NEIGHBOUR, .size = sizeof(r), .ts_ns = now_ns}};
	struct buf now = {0};
	struct hash by_pid = {0};
	int err = neighbours_read_all(&now);
	const struct process none = {0}, *before;
	struct process *p;
	bool waited; /* its waits were read at the begin, or it has begun later */
	uint64_t *at;
	size_t i;

	err = err ? err : index_pids(&now, &by_pid);
	if (!err)
		read_waits(&n->job, &now, &by_pid);
	for (i = 0; !err && i < buf_count(&now, struct process); i++) {
		p = buf_at(&now, struct process, i);
		at = hash_get(&n->index, (uint64_t)p->pid, p->start);
		before = at ? buf_at(&n->processes, struct process, *at - 1) : &none;
		if (p->pid == getpid() || p->ticks <= before->ticks)
			continue;
		waited = before == &none || before->named;
		r.h.tgid = (uint32_t)p->pid;
		r.cpu_ns = (p->ticks - before->ticks) * tick_ns;
		r.elapsed_ns = now_ns - n->began_ns;
		r.job = p->root != 0;
		r.root = (uint32_t)p->root;
		r.cpus = cpus_of(p->pid, &r.only_cpu);
		r.cpus = p->named ? r.cpus : 0;
		r.cpu = p->cpu + 1;
		r.rank = p->named ? n->job.rank(p->pid) : 0;
		r.throttled_ns =
			waited && p->throttled_ns > before->throttled_ns ? p->throttled_ns - before->throttled_ns : 0;
		r.runq_ns = waited && p->runq_ns > before->runq_ns ? p->runq_ns - before->runq_ns : 0;
		snprintf(r.comm, sizeof(r.comm), "%.14s", p->comm);
		err = buf_put(out, &r, sizeof(r));
	}
	buf_fini(&now);
	hash_fini(&by_pid);
	return err;
}

void neighbours_free(struct neighbours *n)
{
	if (!n)
		return;
	buf_fini(&n->processes);
	hash_fini(&n->index);
	free(n);
}
