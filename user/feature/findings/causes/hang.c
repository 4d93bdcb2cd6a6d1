// SPDX-License-Identifier: Apache-2.0
/*
 * Ranks of which none moves. All looks at the main thread of each find one stack, and at least one of them is in a
 * collective: the others are gone, stopped, in another collective, or elsewhere. A rank that computes, loads data or
 * goes from line to line is late, which is no hang.
 */
#include "feature/findings/findings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/syscall.h"
#include "feature/lines/lines.h"
#include "feature/neighbours/neighbours.h"

#define LOOKS_LEAST 10
#define STILL_LEAST 0.95 /* of the looks: at one stack */
#define CPUS_MOST   0.05 /* of a rank that sleeps, and of all on average if they are in the same collective */
#define OP_BYTES    40

enum place { MOVES, WAITS, SLEEPS, STOPPED, LEAVES };

struct rank {
	const struct mxbpf_agg_line *at; /* the row with the most looks */
	uint64_t looks, still, asleep, stopped;
	double cpus;
	enum place place;
	char op[OP_BYTES]; /* of WAITS */
	char line[HANG_PLACE_BYTES / 2];
};

struct job {
	struct rank ranks[HANG_RANKS_MAX];
	unsigned n, counts[LEAVES + 1];
	int gone; /* number of a rank that has no process; -1: there is none */
};

/* ---- where a rank is */

/* Files whose functions exchange data with other ranks or wait for them; the functions are those that people call. */
static const char *const exchanges[] = {"torch/distributed/distributed_c10d.py(",
					"torch/distributed/rendezvous.py(",
					"torch/nn/parallel/distributed.py(",
					"horovod/",
					"mxnet/kvstore/",
					NULL};

static bool is_of(const char *line, size_t len, const char *const *files)
{
	for (; *files; files++)
		if (memmem(line, len, *files, strlen(*files)))
			return true;
	return false;
}

static void take_function(const char *line, size_t len, char op[OP_BYTES])
{
	const char *name = memmem(line, len, "): ", 3);

	if (name)
		snprintf(op, OP_BYTES, "%.*s", (int)(line + len - name - 3), name + 3);
}

/* Finds the call of the program that exchanges, which is the outermost one before its own line. */
static void find_op(const char *text, size_t left, char op[OP_BYTES])
{
	static const char *const backward[] = {"torch/autograd/graph.py(", NULL};
	size_t len, n;
	const char *line, *end;

	*op = '\0';
	for (line = text; left; line += n, left -= n) {
		end = memchr(line, '\n', left);
		len = end ? (size_t)(end - line) : left;
		n = end ? len + 1 : left;
		if (lines_is_program(line, len))
			return;
		if (is_of(line, len, exchanges))
			take_function(line, len, op);
		else if (!*op && is_of(line, len, backward))
			snprintf(op, OP_BYTES, "backward");
	}
}

/* The stack of a program begins in a module; the handlers at its exit have none. */
static bool leaves(const char *text, size_t len, const char *op)
{
	return !text || !strcmp(op, "destroy_process_group") ||
	       !(memmem(text, len, ": <module>", 10) || memmem(text, len, "_bootstrap", 10));
}

static double rank_cpus(const struct mdl *m, uint32_t tgid)
{
	size_t n, i;
	const struct mxbpf_neighbour *r = neighbours_rows(m, &n);

	for (i = 0; i < n; i++)
		if (r[i].h.tgid == tgid)
			return facts_share((double)r[i].cpu_ns, (double)r[i].elapsed_ns);
	return 0;
}

/* It sleeps until a disk has done something, as a rank does that writes a checkpoint. */
static bool waits_for_disk(const struct mxbpf_agg_line *l)
{
	return l->sleeps == MXBPF_SLEEP_DISK || (l->sleeps && (l->syscall == SYS_fsync || l->syscall == SYS_fdatasync));
}

static void place_rank(const struct mdl *m, struct rank *r)
{
	size_t len = 0, n = 0;
	const char *text = r->at->stack_id ? mdl_text(m, MXBPF_NAME_STACK, r->at->stack_id, &n) : NULL;
	const char *line = text ? lines_pick(text, n, &len) : NULL;
	const double looks = (double)r->looks;

	snprintf(r->line, sizeof(r->line), "%.*s", (int)len, line ? line : "");
	r->cpus = rank_cpus(m, r->at->h.tgid);
	if (text)
		find_op(text, n, r->op);
	if ((double)r->stopped >= STILL_LEAST * looks)
		r->place = STOPPED;
	else if (r->looks < LOOKS_LEAST || (double)r->still < STILL_LEAST * looks || waits_for_disk(r->at))
		r->place = MOVES;
	else if (leaves(text, n, r->op))
		r->place = LEAVES;
	else if (*r->op)
		r->place = WAITS;
	else
		r->place = (double)r->asleep >= STILL_LEAST * looks && r->cpus < CPUS_MOST ? SLEEPS : MOVES;
}

/* ---- the ranks */

static struct rank *rank_of(struct job *j, const struct mxbpf_agg_line *l)
{
	unsigned i;

	for (i = 0; i < j->n; i++)
		if (j->ranks[i].at->h.tgid == l->h.tgid)
			return &j->ranks[i];
	if (j->n == HANG_RANKS_MAX)
		return NULL;
	j->ranks[j->n] = (struct rank){.at = l};
	return &j->ranks[j->n++];
}

/*
 * Main threads of ranks: of those that the session does not profile, of its own that have a number, and of its target,
 * which is a launcher if others have numbers.
 */
static void sum_looks(const struct mxbpf_agg_line *l, size_t n, uint32_t own, struct job *j)
{
	struct rank *r;
	unsigned k;
	size_t i;

	for (i = 0; i < n; i++)
		own = l[i].main && l[i].number ? 0 : own;
	for (i = 0; i < n; i++) {
		if (!l[i].main || !(l[i].rank || l[i].number || l[i].h.tgid == own))
			continue;
		r = rank_of(j, &l[i]);
		if (!r)
			continue;
		add_sat(&r->looks, l[i].count);
		add_sat(&r->stopped, l[i].sleeps == MXBPF_SLEEP_STOPPED ? l[i].count : 0);
		r->at = l[i].count > r->at->count ? &l[i] : r->at;
	}
	for (k = 0; k < j->n; k++)
		for (r = &j->ranks[k], i = 0; i < n; i++)
			if (l[i].main && l[i].h.tgid == r->at->h.tgid && l[i].stack_id == r->at->stack_id) {
				add_sat(&r->still, l[i].count);
				add_sat(&r->asleep, l[i].sleeps ? l[i].count : 0);
			}
}

/* A rank of this machine that no process is, if all others have their numbers; -1: there is none. */
static int find_gone(const struct job *j)
{
	bool seen[UINT8_MAX] = {false};
	const struct mxbpf_agg_line *first = j->n ? j->ranks[0].at : NULL, *l;
	unsigned i;

	if (!first || !first->local_ranks)
		return -1;
	for (i = 0; i < j->n; i++) {
		l = j->ranks[i].at;
		if (!l->number || l->local_ranks != first->local_ranks)
			return -1;
		seen[(l->number - 1) % l->local_ranks] = true;
	}
	for (i = 0; i < first->local_ranks; i++)
		if (!seen[i])
			return (first->number - 1) / first->local_ranks * first->local_ranks + (int)i;
	return -1;
}

static bool is_same(const struct rank *a, const struct rank *b)
{
	return a->place == b->place && !strcmp(a->op, b->op) && !strcmp(a->line, b->line);
}

/* The rank whose place the fewest share, of those that wait in a collective; NULL: all share one. */
static const struct rank *find_other(const struct job *j)
{
	const struct rank *best = NULL;
	unsigned i, k, n, fewest = j->n;

	for (i = 0; i < j->n; i++) {
		for (k = n = 0; k < j->n; k++)
			n += is_same(&j->ranks[i], &j->ranks[k]);
		if (n >= fewest && !(n == fewest && best))
			continue;
		fewest = n;
		best = n < j->n ? &j->ranks[i] : NULL;
	}
	return best;
}

/* The rank that the others wait for. NULL: it is gone, or all are in the same collective. */
static const struct rank *find_odd(const struct job *j)
{
	static const enum place order[] = {STOPPED, LEAVES, SLEEPS};
	unsigned i, k;

	for (k = 0; k < 3 && j->gone < 0; k++)
		for (i = 0; i < j->n; i++)
			if (j->ranks[i].place == order[k])
				return &j->ranks[i];
	return j->gone < 0 ? find_other(j) : NULL;
}

/* ---- words */

static void put_at(struct buf *b, const struct rank *r)
{
	if (*r->line)
		buf_printf(b, " at %s", r->line);
}

static void put_who(struct buf *b, const struct rank *r)
{
	if (r->at->number)
		buf_printf(b, "rank %d (process %" PRIu32 ")", r->at->number - 1, r->at->h.tgid);
	else
		buf_printf(b, "process %" PRIu32, r->at->h.tgid);
}

static void put_place(struct buf *b, const struct rank *r)
{
	const char *call = r->asleep && r->at->syscall >= 0 ? syscall_name(r->at->syscall) : NULL;

	switch (r->place) {
	case STOPPED:
		buf_printf(b, "is stopped");
		break;
	case LEAVES:
		buf_printf(b, "has left the loop: it is in %s%s", *r->op ? r->op : "the exit of its program",
			   *r->line ? "," : "");
		break;
	case WAITS:
		buf_printf(b, "is in %s", r->op);
		break;
	default:
		buf_printf(b, "is in no collective: it sleeps%s%s", call ? " in " : "", call ? call : "");
	}
	put_at(b, r);
}

/* "ranks 0, 1, 3 wait for it in all_reduce at train.py(12): step", of the largest group that waits. */
static void put_waiting(struct buf *b, const struct job *j, const struct rank *odd)
{
	const struct rank *most = NULL;
	unsigned i, k, n, best = 0, put = 0;

	for (i = 0; i < j->n; i++) {
		for (k = n = 0; k < j->n; k++)
			n += is_same(&j->ranks[i], &j->ranks[k]);
		if (j->ranks[i].place != WAITS || &j->ranks[i] == odd || n <= best)
			continue;
		best = n;
		most = &j->ranks[i];
	}
	if (!most)
		return;
	buf_printf(b, most->at->number ? "rank%s " : "process%s ", best < 2 ? "" : most->at->number ? "s" : "es");
	for (i = 0; i < j->n; i++)
		if (is_same(&j->ranks[i], most))
			buf_printf(b, "%s%" PRIu32, put++ ? ", " : "",
				   most->at->number ? j->ranks[i].at->number - 1u : j->ranks[i].at->h.tgid);
	buf_printf(b, odd || j->gone >= 0 ? " wait%s for it in %s" : " wait%s in %s", best < 2 ? "s" : "", most->op);
	put_at(b, most);
}

static void take(struct buf *b, char *text, size_t max)
{
	snprintf(text, max, "%.*s", (int)b->len, b->len ? b->data : "");
	b->len = 0;
}

static void say_job(const struct job *j, struct hang_facts *h)
{
	const struct rank *odd = find_odd(j);
	struct buf b = {0};
	unsigned i;

	h->tgid = odd ? odd->at->h.tgid : j->ranks[0].at->h.tgid;
	if (odd)
		put_who(&b, odd);
	else if (j->gone >= 0)
		buf_printf(&b, "rank %d", j->gone);
	take(&b, h->who, sizeof(h->who));
	if (odd && odd->place == WAITS) {
		buf_printf(&b, "is in another collective, %s", odd->op);
		put_at(&b, odd);
	} else if (odd) {
		put_place(&b, odd);
	} else if (j->gone >= 0) {
		buf_printf(&b, "is gone");
	}
	take(&b, h->does, sizeof(h->does));
	put_waiting(&b, j, odd);
	take(&b, h->waits, sizeof(h->waits));
	for (i = 0; i < j->n; i++) {
		buf_printf(&b, i ? "; " : "");
		put_who(&b, &j->ranks[i]);
		buf_printf(&b, " ");
		put_place(&b, &j->ranks[i]);
	}
	take(&b, h->each, sizeof(h->each));
	buf_fini(&b);
}

/* All are in the same collective: it may go on, which needs CPU time. */
static bool computes(const struct job *j)
{
	double cpus = 0;
	unsigned i;

	for (i = 0; i < j->n; i++)
		cpus += j->ranks[i].cpus;
	return cpus > CPUS_MOST * j->n;
}

int make_hang(struct mdl *m, const struct mdl_session *s, struct facts *f)
{
	struct job j = {.n = 0};
	size_t n;
	const struct mxbpf_agg_line *l = lines_rows(m, &n);
	unsigned i;

	if (f->loop.n || f->op_calls) /* samples can find the same line in each iteration */
		return 0;
	sum_looks(l, n, s->pid, &j);
	for (i = 0; i < j.n; i++) {
		place_rank(m, &j.ranks[i]);
		j.counts[j.ranks[i].place]++;
	}
	j.gone = find_gone(&j);
	if (j.counts[MOVES] || !j.counts[WAITS] || j.n + (j.gone >= 0) < 2 ||
	    (j.counts[WAITS] == j.n && j.gone < 0 && computes(&j)))
		return 0;
	say_job(&j, &f->cause.hang);
	return 0;
}

/* ---- the rule */

static double hang_share(const struct facts *f)
{
	return f->cause.hang.tgid ? 1 : 0;
}

static void hang_say(const struct facts *f, struct buf *b)
{
	const struct hang_facts *h = &f->cause.hang;

	if (*h->who)
		buf_printf(b, "Nothing moves: %s %s, and %s", h->who, h->does, h->waits);
	else
		buf_printf(b, "Nothing moves: %s, which does not end", h->waits);
}

static void hang_evidence(const struct facts *f, struct buf *b)
{
	buf_printf(b, "%s", f->cause.hang.each);
}

/* clang-format off */
const struct finding_rule rules_hang[] = {
	{.key = "hang", .first = 4, .explains = "stopped straggler", .full_gpu = true, .other_time = true, .least = 1, .share = hang_share,
	 .say = hang_say, .evidence = hang_evidence, .pid_at = offsetof(struct facts, cause.hang.tgid), .next = "now --pid PID --job",
	 .advice = "The ranks of a job wait for each other until all of them make the same collectives in the same order. Look at the end "
		   "of the log of the rank that is missing. Let an exception that one rank catches end all of them, give each rank the "
		   "same number of batches (or use Join), and start the job with torchrun, which ends all ranks when one fails."},
	{.key = NULL},
};
/* clang-format on */
