// SPDX-License-Identifier: Apache-2.0
/*
 * The late rank of a job, and its cause. All ranks of a machine are sampled one after the other, ten times a second. In
 * a round in which one half of them or more waits in an exchange, the others are those that they wait for. It does not
 * matter which of them the session profiles.
 */
#include "feature/findings/causes/late.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/syscall.h"
#include "feature/findings/rules.h"
#include "feature/lines/lines.h"
#include "feature/neighbours/neighbours.h"
#include "feature/sched/words.h"
#include "feature/steps/steps.h"
#include "mxbpf_sched.h"

#define RANKS_MAX FACTS_LOOPS_MAX

/* A sample of the main thread of a rank. */
struct seen {
	uint64_t ns, stack_id;
	unsigned rank; /* place in struct ranks */
	uint32_t flags;
	bool waits, blocked; /* blocked: a half of the ranks or more waits in its round */
};

struct ranks {
	uint32_t tgid[RANKS_MAX];
	bool unprobed[RANKS_MAX];
	uint64_t looks[RANKS_MAX];
	unsigned n, rounds;
	/* Rounds in which one was late while the other one waited, and in how many rows such rounds came. */
	unsigned late[RANKS_MAX][RANKS_MAX];
	unsigned rows[RANKS_MAX];
	struct buf seen;   /* struct seen, in the order of time */
	struct hash lines; /* (hash of a line, 0) -> ranks that slept there, a bit for each */
};

static int32_t syscall_of(uint32_t flags)
{
	return (int32_t)(flags >> MXBPF_LOOK_SYSCALL) - 1;
}

static struct mxbpf_agg_line row_of(const struct seen *s)
{
	return (struct mxbpf_agg_line){.stack_id = s->stack_id,
				       .count = 1,
				       .main = 1,
				       .syscall = syscall_of(s->flags),
				       .sleeps = s->flags & MXBPF_LOOK_DISK	? MXBPF_SLEEP_DISK
						 : s->flags & MXBPF_LOOK_SLEEPS ? MXBPF_SLEEP_ANY
										: MXBPF_SLEEP_NOT};
}

/* It sleeps as a thread does that waits for other ranks: until another thread or a socket wakes it. */
static bool may_wait(const struct mdl *m, const struct seen *s)
{
	const struct mxbpf_agg_line l = row_of(s);

	if (l.sleeps != MXBPF_SLEEP_ANY || facts_is_in_loader(m, &l))
		return false;
	switch (l.syscall) {
	case SYS_futex:
	case SYS_poll:
	case SYS_ppoll:
	case SYS_epoll_wait:
	case SYS_recvfrom:
	case SYS_recvmsg:
		return true;
	default:
		return false;
	}
}

/* ---- samples */

static bool has_loop(const struct facts *f, uint32_t tgid)
{
	unsigned k;

	for (k = 0; k < FACTS_LOOPS_MAX && f->loops[k].tid; k++)
		if (f->loops[k].tgid == tgid)
			return true;
	return false;
}

/* The place of a process among the ranks; their number: it is none. */
static unsigned rank_of(const struct ranks *r, uint32_t tgid)
{
	unsigned k;

	for (k = 0; k < r->n && r->tgid[k] != tgid; k++)
		;
	return k;
}

/* The same, and adds it if there is room; else RANKS_MAX. */
static unsigned place_of(struct ranks *r, const struct mxbpf_look *l)
{
	const unsigned k = rank_of(r, l->h.tgid);

	if (k == r->n && r->n < RANKS_MAX) {
		r->tgid[r->n] = l->h.tgid;
		r->unprobed[r->n++] = l->flags & MXBPF_LOOK_RANK;
	}
	return k;
}

static uint64_t *ranks_at(const struct mdl *m, struct ranks *r, const struct seen *s, bool put)
{
	size_t len;
	const char *text = lines_of_program(m, s->stack_id, &len);
	const uint64_t key = text ? hash_text(HASH_SEED, text, len) : 0;

	return !text ? NULL : put ? hash_put(&r->lines, key, 0) : hash_get(&r->lines, key, 0);
}

static int by_time(const void *va, const void *vb)
{
	const struct seen *a = va, *b = vb;

	return a->ns < b->ns ? -1 : a->ns > b->ns;
}

static int collect(const struct mdl *m, const struct facts *f, struct ranks *r)
{
	size_t n, i;
	const struct mxbpf_look *l = lines_looks(m, &n);
	struct seen s;
	uint64_t *at;
	int err = 0;

	for (i = 0; !err && i < n; i++) {
		if (l[i].tid != l[i].h.tgid || !(l[i].flags & MXBPF_LOOK_RANK || has_loop(f, l[i].h.tgid)))
			continue;
		s = (struct seen){l[i].h.ts_ns, l[i].stack_id, place_of(r, &l[i]), l[i].flags, false, false};
		if (s.rank == RANKS_MAX)
			continue;
		r->looks[s.rank]++;
		at = may_wait(m, &s) ? ranks_at(m, r, &s, true) : NULL;
		if (at)
			*at |= 1ull << s.rank;
		err = buf_put(&r->seen, &s, sizeof(s));
	}
	buf_sort(&r->seen, sizeof(s), by_time);
	return err;
}

/* The line of the program has called the runtime. */
static bool in_runtime(const struct mdl *m, const struct seen *s)
{
	static const char *const runtimes[] = {"torch/", "mxnet/", "horovod/"};
	size_t len, line, i;
	const char *text = mdl_text(m, MXBPF_NAME_STACK, s->stack_id, &len),
		   *end = text ? lines_pick(text, len, &line) : NULL;

	for (i = 0; end && i < sizeof(runtimes) / sizeof(runtimes[0]); i++)
		if (memmem(text, (size_t)(end - text), runtimes[i], strlen(runtimes[i])))
			return true;
	return false;
}

/*
 * Ranks wait where one half of them or more is seen asleep: the late one may not. Of two ranks one alone is a half, so
 * that it must be in the runtime: it can wait for a lock or a server, too.
 */
static bool is_exchange(const struct mdl *m, struct ranks *r, const struct seen *s)
{
	const uint64_t *at = may_wait(m, s) ? ranks_at(m, r, s, false) : NULL;
	const unsigned n = at ? (unsigned)__builtin_popcountll(*at) : 0;

	return n && n >= (r->n + 1) / 2 && (n > 1 || in_runtime(m, s));
}

/* ---- rounds */

/* Counts a round. was: the late ranks of the last one in which a half waited. */
static void count_round(struct ranks *r, struct seen *s, size_t n, uint64_t *was)
{
	uint64_t late = 0;
	unsigned waits = 0;
	size_t i, k;

	for (i = 0; i < n; i++)
		waits += s[i].waits;
	r->rounds += n > 1;
	if (waits == n && n == r->n)
		*was = 0; /* the late one has come */
	if (waits * 2 < n || waits == n)
		return;
	for (i = 0; i < n; i++) {
		s[i].blocked = true;
		late |= s[i].waits ? 0 : 1ull << s[i].rank;
		r->rows[s[i].rank] += !s[i].waits && !(*was & 1ull << s[i].rank);
		for (k = 0; k < n; k++)
			r->late[s[i].rank][s[k].rank] += !s[i].waits && s[k].waits;
	}
	*was = late;
}

#define ROUND_GAP_NS (LINES_LOOK_NS / 2)

/* A round ends where a rank comes again, and before a pause. */
static void count_rounds(const struct mdl *m, struct ranks *r)
{
	struct seen *s = (struct seen *)r->seen.data;
	const size_t n = buf_count(&r->seen, *s);
	uint64_t has = 0, was = 0;
	size_t i, first = 0;

	for (i = 0; i < n; i++)
		s[i].waits = is_exchange(m, r, &s[i]);
	for (i = 0; i <= n; i++) {
		if (i < n && !(has & 1ull << s[i].rank) && (!i || s[i].ns - s[i - 1].ns < ROUND_GAP_NS)) {
			has |= 1ull << s[i].rank;
			continue;
		}
		if (i > first)
			count_round(r, s + first, i - first, &was);
		first = i;
		has = i < n ? 1ull << s[i].rank : 0;
	}
}

/* A rank alone has probes, so that it is late at times because of them. */
static bool is_hindered(const struct ranks *r, unsigned k)
{
	unsigned i, unprobed = 0;

	for (i = 0; i < r->n; i++)
		unprobed += r->unprobed[i];
	return k < r->n && unprobed && !r->unprobed[k];
}

#define LATE_LEAST    0.08 /* share of the rounds by which a rank is late more often than any other one */
#define LATE_ERRORS   2.5  /* standard errors of that difference */
#define PROBED_ERRORS 1.5  /* of that to a rank which is late because of its probes, too */
#define LATE_ROWS     3	   /* it comes so often, or takes a large part of the time */
#define LATE_ALWAYS   0.4

/* The rounds in which a rank is late while another one waits, less the opposite, for the one with the least of them. */
static double late_more(const struct ranks *r, unsigned a)
{
	double least = r->rounds, more, all, errors;
	unsigned k;

	for (k = 0; k < r->n; k++) {
		more = (double)r->late[a][k] - (double)r->late[k][a];
		all = (double)r->late[a][k] + (double)r->late[k][a];
		if (k == a || !r->looks[k])
			continue;
		errors = is_hindered(r, k) ? PROBED_ERRORS : LATE_ERRORS;
		if (more <= 0 || more * more < errors * errors * all)
			return 0;
		least = more < least ? more : least;
	}
	return r->n > 1 ? facts_share(least, r->rounds) : 0;
}

/* ---- what the late rank does meanwhile */

static enum late_state state_of(const struct mdl *m, const struct seen *s)
{
	const struct mxbpf_agg_line l = row_of(s);
	const struct mxbpf_sched as = {.syscall = l.syscall, .state = MXBPF_SCHED_SLEEPING};
	size_t len;
	const char *text = mdl_text(m, MXBPF_NAME_STACK, s->stack_id, &len);

	if (l.sleeps == MXBPF_SLEEP_DISK || (l.sleeps && sched_cause(&as) == MXBPF_SCHED_IO))
		return LATE_DISK;
	if (text && lines_compiler(text, len))
		return LATE_COMPILES;
	if (facts_is_in_loader(m, &l))
		return LATE_LOADER;
	if (!l.sleeps)
		return LATE_RUNS;
	return l.syscall == SYS_futex ? LATE_LOCK : LATE_SLEEPS;
}

#define DISK_LEAST  16 /* the same for the disk, where a running thread of Python is hardly ever seen */
#define STATE_LEAST 6  /* one in so many looks at the line found it so: it also waits for a CPU when that has ended */

static int take_lines(const struct mdl *m, const struct ranks *r, unsigned late, struct fact_late *to)
{
	struct facts_tally own = {.of = 0}, others = {.of = 0};
	const struct seen *s = (const void *)r->seen.data;
	const size_t n = buf_count(&r->seen, *s);
	uint64_t states[LATE_STATES] = {0};
	struct mxbpf_agg_line row;
	unsigned k;
	const char *text;
	size_t i, len;
	int err = 0;

	for (i = 0; !err && i < n; i++) {
		if (s[i].waits || (s[i].rank == late && !s[i].blocked))
			continue;
		row = row_of(&s[i]);
		text = lines_of_program(m, s[i].stack_id, &len);
		err = text ? facts_tally_add(s[i].rank == late ? &own : &others, text, len, &row) : 0;
	}
	to->line = facts_tally_top(&own);
	to->line.of = r->looks[late];
	to->same = !strcmp(to->line.text, facts_tally_top(&others).text);
	for (i = 0; i < n; i++) {
		text = s[i].rank == late && s[i].blocked && !s[i].waits ? lines_of_program(m, s[i].stack_id, &len)
									: NULL;
		if (text && strlen(to->line.text) == len && !memcmp(text, to->line.text, len))
			states[state_of(m, &s[i])]++;
	}
	for (k = LATE_RUNS + 1; k < LATE_STATES; k++)
		if (states[k] && states[k] * (k == LATE_DISK ? DISK_LEAST : STATE_LEAST) >= to->line.looks &&
		    (to->state == LATE_RUNS || states[k] > states[to->state]))
			to->state = k;
	facts_tally_fini(&own);
	facts_tally_fini(&others);
	return err;
}

#define HINDERED_LEAST	0.16 /* instead of LATE_LEAST: on a busy machine, reading the rank delays it, too */
#define THROTTLED_LEAST 0.1

/* Something that mxbpf does not do holds the rank up. */
static bool has_reason(const struct mdl *m, uint32_t tgid, enum late_state state)
{
	size_t n, i;
	const struct mxbpf_neighbour *p = neighbours_rows(m, &n);

	for (i = 0; i < n; i++)
		if (p[i].h.tgid == tgid &&
		    facts_share((double)p[i].throttled_ns, (double)p[i].elapsed_ns) >= THROTTLED_LEAST)
			return true;
	return state == LATE_DISK || state == LATE_COMPILES || state == LATE_LOADER;
}

/* The rank that is late the most, if it is late enough; else the number of ranks. */
static int find_most(const struct mdl *m, const struct facts *f, const struct ranks *r, unsigned *late, double *most)
{
	struct fact_late to = {.judged = true};
	double share, least = LATE_LEAST;
	unsigned k;
	int err = 0;

	for (k = 0, *late = 0, *most = 0; k < r->n; k++) {
		share = late_more(r, k);
		*late = share > *most ? k : *late;
		*most = share > *most ? share : *most;
	}
	if (is_hindered(r, *late)) {
		*most -= f->watching / (1 + f->watching);
		err = take_lines(m, r, *late, &to);
		least = has_reason(m, r->tgid[*late], to.state) ? LATE_LEAST : HINDERED_LEAST;
	}
	if (*most < least || (r->rows[*late] < LATE_ROWS && *most < LATE_ALWAYS))
		*late = r->n;
	return err;
}

#define ROUNDS_LEAST 10

int late_find(const struct mdl *m, struct facts *f)
{
	struct ranks r = {.n = 0};
	unsigned late = 0;
	double most = 0;
	int err = collect(m, f, &r);

	count_rounds(m, &r);
	f->cause.late = (struct fact_late){.judged = r.n > 1 && r.rounds >= ROUNDS_LEAST};
	err = err ? err : find_most(m, f, &r, &late, &most);
	if (late == r.n) {
		late = rank_of(&r, f->collective.late.tgid);
		most = late < r.n && !f->last_rank ? f->collective.late.share : 0;
	}
	if (!err && f->cause.late.judged && most >= LATE_LEAST) {
		if (f->last_rank != r.tgid[late])
			f->last_more = (struct fact_operator){.much = 0};
		f->cause.late.tgid = f->last_rank = r.tgid[late];
		f->last_unprobed = r.unprobed[late];
		f->cause.late.share = most;
		err = take_lines(m, &r, late, &f->cause.late);
	}
	hash_fini(&r.lines);
	buf_fini(&r.seen);
	return err;
}

/* ---- what is known of its process */

/* The line of its workers (of) or of other threads than its main thread, without those that wait for work. */
static int line_beside(const struct mdl *m, uint32_t tgid, bool workers, struct fact_line *line)
{
	struct facts_tally t = {.of = 0};
	size_t n, i, len;
	const struct mxbpf_agg_line *l = lines_rows(m, &n);
	const char *text;
	int err = 0;

	for (i = 0; !err && i < n; i++) {
		if (workers ? l[i].of != tgid || !l[i].main : l[i].h.tgid != tgid || l[i].main)
			continue;
		t.of += l[i].count;
		if (facts_waits_for_work(m, &l[i]) || facts_is_idle(m, &l[i]))
			continue;
		text = lines_of_program(m, l[i].stack_id, &len);
		err = text ? facts_tally_add(&t, text, len, &l[i]) : 0;
	}
	*line = facts_tally_top(&t);
	facts_tally_fini(&t);
	return err;
}

static bool is_of_job(const struct mdl *m, const struct mxbpf_neighbour *p)
{
	size_t n, i;
	const struct mxbpf_agg_line *l = lines_rows(m, &n);

	for (i = 0; i < n && !p->job; i++)
		if (l[i].h.tgid == p->h.tgid)
			return true;
	return p->job;
}

/* The process that takes the most of the CPU to which the late rank is bound. */
static void take_neighbour(const struct mdl *m, const struct mxbpf_neighbour *own, struct fact_late *to)
{
	size_t n, i;
	const struct mxbpf_neighbour *p = neighbours_rows(m, &n), *most = NULL;

	for (i = 0; i < n && own->cpus == 1; i++)
		if (p[i].cpu == own->cpu && p[i].h.tgid != own->h.tgid && (!most || p[i].cpu_ns > most->cpu_ns) &&
		    !is_of_job(m, &p[i]))
			most = &p[i];
	if (!most)
		return;
	to->cpu = own->cpu;
	to->neighbour = most->h.tgid;
	to->neighbour_cpus = facts_share((double)most->cpu_ns, (double)most->elapsed_ns);
	memcpy(to->neighbour_name, most->comm, sizeof(most->comm));
}

static void take_cpu(const struct mdl *m, const struct facts *f, struct fact_late *to)
{
	size_t n, i;
	const struct mxbpf_neighbour *p = neighbours_rows(m, &n);
	double waits, throttled, collects, others_wait = 0, others_throttled = 0, others_collect = 0;
	unsigned cpus = 0, least = UINT_MAX;

	for (i = 0; i < n; i++) {
		waits = facts_share((double)p[i].runq_ns, (double)p[i].runq_ns + (double)p[i].cpu_ns);
		throttled = facts_share((double)p[i].throttled_ns, (double)p[i].elapsed_ns);
		collects = causes_collecting(f, p[i].h.tgid);
		if (p[i].h.tgid == to->tgid) {
			to->number = p[i].rank;
			to->waits_cpu = waits;
			cpus = p[i].cpus;
			to->throttled = throttled < 1 ? throttled : 1;
			take_neighbour(m, &p[i], to);
		} else if (p[i].rank && is_of_job(m, &p[i])) {
			least = p[i].cpus < least ? p[i].cpus : least;
			others_wait = waits > others_wait ? waits : others_wait;
			others_throttled = throttled > others_throttled ? throttled : others_throttled;
			others_collect = collects > others_collect ? collects : others_collect;
		}
	}
	to->waits_more = to->waits_cpu - others_wait;
	to->bound = cpus && cpus < least;
	to->throttled = to->throttled > 2 * others_throttled ? to->throttled : 0;
	to->collects = causes_collecting(f, to->tgid);
	to->collects = to->collects > 2 * others_collect ? to->collects : 0;
}

int make_late(struct mdl *m, const struct mdl_session *s, struct facts *f)
{
	struct fact_late *to = &f->cause.late;
	int err;

	if (!to->tgid)
		return 0;
	take_cpu(m, f, to);
	err = cause_paging_of(m, to->tgid, 0, &to->paging);
	err = err ? err : line_beside(m, to->tgid, true, &to->worker);
	return err ? err : line_beside(m, to->tgid, false, &to->holder);
}

/* ---- words */

static void put_after(const char *comma, const struct fact_line *l, struct buf *b)
{
	if (l->looks)
		buf_printf(b, "%s at %s", comma, l->text);
}

static void put_at(const struct fact_line *l, struct buf *b)
{
	put_after("", l, b);
}

static bool is_throttled(const struct fact_late *l)
{
	return l->state == LATE_RUNS && l->throttled >= 0.05;
}

static void throttled_say(const struct fact_late *l, struct buf *b)
{
	buf_printf(b, "the CPU limit of its control group stops it in %.0f%% of the time (throttled)",
		   100 * l->throttled);
	put_after(",", &l->line, b);
}

#define STARVED_LEAST 0.3 /* of the time that it wants to run */
#define STARVED_MORE  0.2 /* beyond that of any other rank, if it is bound to as many CPUs */

static bool is_starved(const struct fact_late *l)
{
	return l->state == LATE_RUNS && l->waits_cpu >= STARVED_LEAST && l->waits_more >= (l->bound ? 0 : STARVED_MORE);
}

static void starved_say(const struct fact_late *l, struct buf *b)
{
	buf_printf(b, "it is ready to run and gets no CPU in %.0f%% of that time", 100 * l->waits_cpu);
	if (l->neighbour)
		buf_printf(b, ": %s (process %" PRIu32 ") takes %.0f%% of CPU %" PRIu32 ", to which it is bound",
			   l->neighbour_name, l->neighbour, 100 * l->neighbour_cpus, l->cpu - 1);
	if (l->line.looks)
		buf_printf(b, "; it stands at %s", l->line.text);
}

#define COLLECTS_LEAST 0.15 /* of its time */

static bool does_collect(const struct fact_late *l)
{
	return l->collects >= COLLECTS_LEAST;
}

static void collects_say(const struct fact_late *l, struct buf *b)
{
	buf_printf(b, "Python's garbage collector runs in it in %.0f%% of the time", 100 * l->collects);
	put_after(",", &l->line, b);
}

static bool does_swap(const struct fact_late *l)
{
	return cause_is_swapping(&l->paging);
}

static void swaps_say(const struct fact_late *l, struct buf *b)
{
	buf_printf(b, "it waits for pages that were swapped out");
	put_at(&l->line, b);
}

static bool on_disk(const struct fact_late *l)
{
	return l->state == LATE_DISK;
}

static void disk_say(const struct fact_late *l, struct buf *b)
{
	const char *name = l->line.calls ? syscall_name(l->line.syscall) : NULL;

	buf_printf(b, "it waits for the disk (%s)", name ? name : "page faults");
	put_at(&l->line, b);
}

static bool does_compile(const struct fact_late *l)
{
	return l->state == LATE_COMPILES;
}

static void compiles_say(const struct fact_late *l, struct buf *b)
{
	buf_printf(b, "it compiles");
	put_at(&l->line, b);
}

static bool is_loading(const struct fact_late *l)
{
	return l->state == LATE_LOADER;
}

static void loading_say(const struct fact_late *l, struct buf *b)
{
	buf_printf(b, "it waits for its data loader");
	put_at(&l->line, b);
	if (l->worker.looks)
		buf_printf(b, ", whose workers are at %s", l->worker.text);
}

static bool in_lock(const struct fact_late *l)
{
	return l->state == LATE_LOCK;
}

static void lock_say(const struct fact_late *l, struct buf *b)
{
	buf_printf(b, "it waits for another thread (a lock)");
	put_at(&l->line, b);
	if (l->holder.looks)
		buf_printf(b, ", which is at %s", l->holder.text);
}

static bool does_sleep(const struct fact_late *l)
{
	return l->state == LATE_SLEEPS;
}

static void sleeps_say(const struct fact_late *l, struct buf *b)
{
	const char *name = l->line.calls ? syscall_name(l->line.syscall) : NULL;

	buf_printf(b, "it sleeps (%s)", name ? name : "in a system call");
	put_at(&l->line, b);
}

static bool runs_more(const struct fact_late *l)
{
	return l->line.looks && l->same;
}

static void more_say(const struct fact_late *l, struct buf *b)
{
	buf_printf(b, "it runs %s for longer than the other ranks do, as with a larger batch or longer sequences",
		   l->line.text);
}

static bool runs_line(const struct fact_late *l)
{
	return l->line.looks;
}

static void line_say(const struct fact_late *l, struct buf *b)
{
	buf_printf(b, "it runs %s, where the other ranks are not", l->line.text);
}

/* The first one that is so is said. */
static const struct late_cause {
	bool (*is)(const struct fact_late *l);
	void (*say)(const struct fact_late *l, struct buf *b);
} late_causes[] = {
	{does_collect, collects_say}, {does_swap, swaps_say}, {is_throttled, throttled_say},
	{is_starved, starved_say},    {on_disk, disk_say},    {does_compile, compiles_say},
	{is_loading, loading_say},    {in_lock, lock_say},    {does_sleep, sleeps_say},
	{runs_more, more_say},	      {runs_line, line_say},
};

void late_put(const struct facts *f, struct buf *b)
{
	size_t i;

	for (i = 0; i < sizeof(late_causes) / sizeof(late_causes[0]) && f->cause.late.tgid; i++)
		if (late_causes[i].is(&f->cause.late)) {
			buf_printf(b, "; ");
			late_causes[i].say(&f->cause.late, b);
			return;
		}
}
