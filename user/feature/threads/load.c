// SPDX-License-Identifier: Apache-2.0
/*
 * Reads the CPU time of each thread from /proc, at both ends of the window and about once a second. If a process used
 * more than its threads say, threads that have ended since the last reading used the rest.
 */
#include "feature/threads/threads.h"
#include "records/kinds.h"
#include "session/feature.h"
#include "session/priv.h"
#include "table/table.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 4096    /* of a process */
#define PART_MAX    200	    /* reading takes at most 1/200 of a CPU */
#define LEAST_NS    1000000 /* a smaller rest may be the time between two readings */

struct reading {
	struct thread_use total; /* from the beginning of the thread */
	char comm[32];
};

/* A process whose threads were read. */
struct process {
	uint32_t tgid;
	bool partly;	      /* some of its threads were not */
	uint64_t cpu_ns;      /* that it has used since it began */
	int64_t unclaimed_ns; /* part of it that is in no row yet: the rest that its threads do not explain */
};

struct reader {
	struct hash index;    /* (tgid, tid) -> 1 + place in threads */
	struct buf threads;   /* struct reading */
	struct hash places;   /* tgid -> 1 + place in processes */
	struct buf processes; /* struct process */
	uint64_t at_ns;	      /* when it was read, in CLOCK_BOOTTIME */
};

struct state {
	struct reader last, now;
	uint64_t due_ns; /* when it may be read again */
	bool resumed;	 /* nothing is counted up to this reading */
	struct tbl grown;
	struct buf recs;
	int err;
};

static void clear(struct reader *r)
{
	hash_clear(&r->index);
	hash_clear(&r->places);
	r->threads.len = r->processes.len = 0;
}

static int threads_keep(struct hash *index, struct buf *all, uint64_t a, uint64_t b, const void *item, size_t bytes)
{
	uint64_t *at = hash_put(index, a, b);

	if (!at || buf_put(all, item, bytes))
		return -ENOMEM;
	*at = all->len / bytes;
	return 0;
}

static int threads_add(struct state *st, const struct thread_use *grown)
{
	bool added;

	return tbl_add(&st->grown, grown, &added) ? 0 : -ENOMEM;
}

/*
 * Adds what a thread did since the last reading. If it is new and all threads were read then, it has begun since, and
 * everything that it did counts. If only some were read then, it counts from now on.
 */
static int threads_compare(struct state *st, struct process *p, const struct reading *r, bool partly)
{
	const uint64_t *at = hash_get(&st->last.index, r->total.tgid, r->total.tid);
	const struct reading *before = at ? buf_at(&st->last.threads, struct reading, *at - 1) : NULL;
	struct thread_use grown = r->total;

	if (partly && !before)
		return 0;
	if (before && before->total.cpu_ns <= grown.cpu_ns) { /* else its number was given to another thread */
		grown.cpu_ns -= before->total.cpu_ns;
		grown.runq_ns -= before->total.runq_ns;
		grown.runs -= before->total.runs;
	}
	p->unclaimed_ns -= (int64_t)grown.cpu_ns;
	if (!grown.runs)
		return 0;
	/* The name is in each batch, because a recording may have dropped earlier ones. */
	if (kind_put_name(&st->recs, MXBPF_NAME_THREAD, r->total.tgid, r->total.tid, r->comm, strlen(r->comm)))
		return -ENOMEM;
	return threads_add(st, &grown);
}

static bool read_thread(uint32_t tgid, uint32_t tid, struct reading *r)
{
	unsigned long long cpu, runq, runs;
	char path[64];
	bool read;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/schedstat", tgid, tid);
	f = fopen(path, "re");
	read = f && fscanf(f, "%llu %llu %llu", &cpu, &runq, &runs) == 3;
	if (f)
		fclose(f);
	if (!read || tgt_peek_comm((pid_t)tgid, (pid_t)tid, r->comm))
		return false;
	r->total = (struct thread_use){.tgid = tgid, .tid = tid, .cpu_ns = cpu, .runq_ns = runq, .runs = runs};
	return true;
}

/* watched: adds what the threads did since the last reading. partly: only some of them were read then. */
static int read_threads(struct state *st, struct process *p, bool watched, bool partly)
{
	struct reading r;
	struct dirent *d;
	char path[32];
	unsigned n = 0;
	int err = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%u/task", p->tgid);
	tasks = opendir(path);
	p->partly = !tasks;
	while (tasks && !err && !p->partly && (d = readdir(tasks))) {
		if (d->d_name[0] == '.')
			continue;
		errno = 0;
		if (!read_thread(p->tgid, (uint32_t)atoi(d->d_name), &r)) {
			p->partly = errno == EMFILE || errno == ENFILE || errno == ENOMEM; /* else it has ended */
			continue;
		}
		err = threads_keep(&st->now.index, &st->now.threads, p->tgid, r.total.tid, &r, sizeof(r));
		err = err || !watched ? err : threads_compare(st, p, &r, partly);
		p->partly = ++n == THREADS_MAX;
	}
	if (tasks)
		closedir(tasks);
	return err;
}

static uint64_t cpu_of(uint32_t tgid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid((pid_t)tgid, &clock) || clock_gettime(clock, &ts))
		return 0; /* it has ended */
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* Returns whether a process has begun since the last reading. */
static bool is_born(const struct state *st, uint32_t tgid)
{
	const uint64_t tick_ns = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
	struct tgt_usage u;

	return st->last.at_ns && !tgt_peek_usage((pid_t)tgid, &u) && (u.started + 1) * tick_ns > st->last.at_ns;
}

static void read_process(void *ctx, uint32_t tgid, const struct plan *plan)
{
	struct state *st = ctx;
	const struct process none = {.tgid = tgid};
	const uint64_t *at = hash_get(&st->last.places, tgid, 0);
	const struct process *before = at ? buf_at(&st->last.processes, struct process, *at - 1) : &none;
	struct process p = {.tgid = tgid, .cpu_ns = cpu_of(tgid)};
	const bool watched = !st->resumed && before->cpu_ns <= p.cpu_ns && (at || is_born(st, tgid));
	struct thread_use ended = {.tgid = tgid};

	(void)plan;
	if (!p.cpu_ns || st->err)
		return;
	if (watched)
		p.unclaimed_ns = before->unclaimed_ns + (int64_t)(p.cpu_ns - before->cpu_ns);
	st->err = read_threads(st, &p, watched, before->partly);
	if (p.unclaimed_ns > LEAST_NS) {
		ended.cpu_ns = (uint64_t)p.unclaimed_ns;
		p.unclaimed_ns = 0;
		st->err = st->err ? st->err : threads_add(st, &ended);
	}
	st->err = st->err ? st->err : threads_keep(&st->now.places, &st->now.processes, tgid, 0, &p, sizeof(p));
}

static void threads_read_all(struct session *ses, bool resumed)
{
	struct state *st = ses_state(ses, &threads_session);
	const uint64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct reader swap;

	st->resumed = resumed;
	st->err = 0;
	st->recs.len = 0;
	st->grown = (struct tbl){.def = &threads_table};
	clear(&st->now);
	st->now.at_ns = clock_ns(CLOCK_BOOTTIME);
	ses_each_process(ses, read_process, st);
	st->err = st->err ? st->err : tbl_emit(&st->grown, &st->recs);
	tbl_fini(&st->grown);
	swap = st->last;
	st->last = st->now;
	st->now = swap;
	ses_keep(ses, st->recs.data, st->recs.len, st->err);
	st->due_ns = clock_ns(CLOCK_MONOTONIC) + (clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns) * PART_MAX;
}

/* A reading of each second is left out if it would take too long. The ends of windows and intervals are always read. */
static void read_if_due(struct session *ses, bool resumed)
{
	const struct state *st = ses_state(ses, &threads_session);

	if (resumed || ses_rests(ses) || ses->interval.ends || clock_ns(CLOCK_MONOTONIC) >= st->due_ns)
		threads_read_all(ses, resumed);
}

/* Windows of iterations open and close in BPF, too fast to be read at both ends. */
static bool threads_asked(const struct ses_opts *o)
{
	return !o->iterations;
}

static int threads_describe(struct session *ses, const struct ses_target *of, struct mdl_session *s)
{
	(void)ses;
	(void)of;
	s->features |= THREADS_BIT;
	return 0;
}

static int threads_start(struct session *ses, struct err *e)
{
	(void)e;
	threads_read_all(ses, true);
	return 0;
}

static void threads_ends(struct session *ses)
{
	if (!ses_rests(ses)) /* else they were read when the window closed */
		threads_read_all(ses, false);
}

static void fini_reader(struct reader *r)
{
	hash_fini(&r->index);
	hash_fini(&r->places);
	buf_fini(&r->threads);
	buf_fini(&r->processes);
}

static void threads_load_fini(struct session *ses)
{
	struct state *st = ses_state(ses, &threads_session);

	fini_reader(&st->last);
	fini_reader(&st->now);
	buf_fini(&st->recs);
}

const struct ses_feature threads_session = {
	.state_bytes = sizeof(struct state),
	.asked = threads_asked,
	.describe = threads_describe,
	.start = threads_start,
	.read = read_if_due,
	.ends = threads_ends,
	.fini = threads_load_fini,
};
