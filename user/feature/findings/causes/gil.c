// SPDX-License-Identifier: Apache-2.0
/*
 * Threads of a program without iterations that wait for the interpreter lock (GIL): they sleep in a futex with a time
 * limit of 5 ms, and their innermost frame is the program's. Another one runs meanwhile. A thread that waits for
 * something else with a longer time limit gets a CPU less often.
 */
#include "feature/findings/rules.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/syscall.h>

#include "feature/lines/lines.h"
#include "feature/threads/threads.h"

#define LEAST	   1.8 /* threads that wait, on average: in a server some always do */
#define WORST	   4   /* threads that wait: all of the time */
#define RUNS_PART  4   /* of the waits, looks at threads that run, or more */
#define LOOKS_MIN  10
#define RUNS_A_SEC 50 /* a thread gets a CPU, or more often, if it waits for the lock for a quarter of the time */

struct process {
	uint32_t tgid;
	uint64_t rounds, waits, locked, runs;
	struct facts_tally lines;
};

/* The innermost line, if it is the program's. */
static const char *own_line(const struct mdl *m, uint64_t stack_id, size_t *len)
{
	size_t all;
	const char *line = lines_of_program(m, stack_id, len);

	return line && line == mdl_text(m, MXBPF_NAME_STACK, stack_id, &all) ? line : NULL;
}

static bool wakes_often(const struct mdl *m, const struct mdl_session *s, uint32_t tgid, uint32_t tid)
{
	size_t n;
	const struct thread_use *u = threads_use_of(m, tgid, tid);

	mdl_table_rows(m, &feature_threads, &threads_table, &n);
	return !n || (u && (double)u->runs * 1e9 >= RUNS_A_SEC * (double)s->duration_ns);
}

static int add_row(const struct mdl *m, const struct mdl_session *s, struct process *p, const struct mxbpf_agg_line *l)
{
	size_t len;
	const char *line = own_line(m, l->stack_id, &len);

	p->rounds += l->main ? l->count : 0;
	if (!line || l->cls)
		return 0;
	if (l->sleeps) {
		p->waits += l->syscall == SYS_futex && wakes_often(m, s, l->h.tgid, l->tid) ? l->count : 0;
		return 0;
	}
	p->runs += l->count;
	p->lines.of += l->count;
	return facts_tally_add(&p->lines, line, len, l);
}

/* A sleep in a futex without a time limit is no wait for the interpreter. */
static void take_locked(const struct mdl *m, const struct mdl_session *s, struct hash *index, struct buf *processes)
{
	size_t n, i, len;
	const struct mxbpf_look *l = lines_looks(m, &n);
	uint64_t *at;

	for (i = 0; i < n; i++) {
		at = hash_get(index, l[i].h.tgid, 0);
		if (at && l[i].flags & MXBPF_LOOK_LOCKED && own_line(m, l[i].stack_id, &len) &&
		    wakes_often(m, s, l[i].h.tgid, l[i].tid))
			buf_at(processes, struct process, *at - 1)->locked++;
	}
}

static void judge_process(const struct process *p, struct cause_gil *most)
{
	const uint64_t waits = p->waits > p->locked ? p->waits - p->locked : 0;
	const double at_once = facts_share((double)waits, (double)p->rounds);

	if (p->rounds < LOOKS_MIN || at_once < LEAST || at_once <= most->at_once || p->runs * RUNS_PART < p->rounds)
		return;
	*most = (struct cause_gil){.tgid = p->tgid, .at_once = at_once, .line = facts_tally_top(&p->lines)};
}

int make_gil(struct mdl *m, const struct mdl_session *s, struct facts *f)
{
	struct hash index = {0};
	struct buf processes = {0};
	struct process *p;
	size_t n, i;
	const struct mxbpf_agg_line *l = lines_rows(m, &n);
	bool added;
	int err = 0;

	for (i = 0; i < n && !err && f->python && !f->loop.tid; i++) {
		p = l[i].rank ? NULL : mdl_item_put(&index, &processes, l[i].h.tgid, 0, sizeof(*p), &added);
		err = !p && !l[i].rank ? -ENOMEM : 0;
		if (p)
			p->tgid = l[i].h.tgid;
		err = p ? add_row(m, s, p, &l[i]) : err;
	}
	take_locked(m, s, &index, &processes);
	for (i = 0; i < buf_count(&processes, struct process); i++) {
		p = buf_at(&processes, struct process, i);
		judge_process(p, &f->cause.gil);
		facts_tally_fini(&p->lines);
	}
	hash_fini(&index);
	buf_fini(&processes);
	return err;
}

static double gil_share(const struct facts *f)
{
	return facts_least(f->cause.gil.at_once / WORST, 1);
}

static void gil_say(const struct facts *f, struct buf *b)
{
	const struct cause_gil *g = &f->cause.gil;

	buf_printf(b,
		   "%.1f threads of process %" PRIu32
		   " wait at a time for the interpreter lock (GIL), which another one holds",
		   g->at_once, g->tgid);
	if (g->line.looks)
		buf_printf(b, ": it computes in Python at %s", g->line.text);
}

static void gil_evidence(const struct facts *f, struct buf *b)
{
	rules_put_line(&f->cause.gil.line, b);
}

/* clang-format off */
const struct finding_rule rules_gil[] = {
	{.key = "interpreter_lock", .least = LEAST / WORST, .share = gil_share, .say = gil_say, .evidence = gil_evidence,
	 .pid_at = offsetof(struct facts, cause.gil.tgid), .next = "--pid PID --sample 99", .taken = FACTS_HAVE_SAMPLES,
	 .advice = "Only one thread of a process runs Python at a time, so more threads compute no more. Start several processes, or move "
		   "the work into functions that let go of the lock: numpy, operators of the runtime, zlib, hashlib."},
	{.key = NULL},
};
/* clang-format on */
