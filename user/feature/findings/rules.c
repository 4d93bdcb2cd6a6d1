// SPDX-License-Identifier: Apache-2.0
/* Rules about the loop. A row is a rule; its threshold is tested on jobs with that fault and on healthy ones
 * (tests/planted/). */
#include "feature/findings/rules.h"
#include "base/whole.h"
#include "base/syscall.h"
#include "feature/idle/idle.h"
#include "feature/sched/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "feature/findings/causes/late.h"

static double part(const struct facts *f, enum mxbpf_step_part p)
{
	return facts_share((double)f->loop.part_ns[p], (double)f->loop.known_ns);
}

static const char *const on_words[MXBPF_ON_KINDS] = {[MXBPF_ON_NOTHING] = "something",
						     [MXBPF_ON_PIPE] = "a pipe",
						     [MXBPF_ON_NETWORK] = "the network",
						     [MXBPF_ON_TERMINAL] = "a terminal"};

/* What the thread waits for on the line, if most looks found it asleep. */
static void put_sleep(const struct fact_line *l, struct buf *b)
{
	const struct mxbpf_sched as = {.syscall = l->syscall,
				       .state = l->sleep == MXBPF_SLEEP_DISK ? MXBPF_SCHED_DISK : MXBPF_SCHED_SLEEPING};
	const char *name = l->calls ? syscall_name(l->syscall) : NULL;
	const enum mxbpf_sched_what what = sched_cause(&as);

	if (l->sleep == MXBPF_SLEEP_STOPPED && l->calls)
		buf_printf(b, ", stopped");
	else if (!name)
		buf_printf(b, ", asleep in a system call");
	else if (l->on)
		buf_printf(b, ", waiting for %s (%s)", on_words[l->on < MXBPF_ON_KINDS ? l->on : 0], name);
	else if (what == MXBPF_SCHED_IO)
		buf_printf(b, ", waiting for the disk in %s", name);
	else if (what == MXBPF_SCHED_FUTEX)
		buf_printf(b, ", waiting for another thread (%s)", name);
	else
		buf_printf(b, ", asleep in %s", name);
}

void rules_put_line(const struct fact_line *l, struct buf *b)
{
	if (!l->looks)
		return;
	buf_printf(b, "%s, %.0f%% of %" PRIu64 " samples", l->text, 100 * facts_share((double)l->looks, (double)l->of),
		   l->of);
	if (l->asleep * 2 > l->looks)
		put_sleep(l, b);
}

void rules_put_gain(const struct facts *f, double share, struct buf *b)
{
	const uint64_t each = f->loop.n ? f->loop.total_ns / f->loop.n : 0;
	char with[24], without[24];

	if (each && share < 1)
		buf_printf(b, "; without it an iteration would take %s instead of %s",
			   fmt_ns(whole((double)each * (1 - share)), without), fmt_ns(each, with));
}

/* ---- input */

/* Calls of a loader, and a loader that works in the program itself, which makes no call that is probed. */
static double data_share(const struct facts *f)
{
	const double outside =
		f->loader_share < part(f, MXBPF_PART_OUTSIDE) ? f->loader_share : part(f, MXBPF_PART_OUTSIDE);

	return part(f, MXBPF_PART_DATA) + outside;
}

static void data_say(const struct facts *f, struct buf *b)
{
	buf_printf(b, "The loop waits for data in %.0f%% of its time", 100 * data_share(f));
	if (f->data_line.looks)
		buf_printf(b, ": %s at %s", f->data_workers ? "its workers are" : "it is", f->data_line.text);
}

static void data_evidence(const struct facts *f, struct buf *b)
{
	rules_put_line(&f->data_line, b);
}

/* ---- the engine */

static double idle_share(const struct facts *f)
{
	return f->loop.known_ns ? 1 - facts_share((double)f->loop.busy_ns, (double)f->loop.known_ns) : 0;
}

#define WAITS_LEAST 3 /* in an iteration: an engine that is asked once for the loss does not run dry */

static bool asks_often(const struct facts *f)
{
	return f->loop.n && f->waits / f->loop.about >= WAITS_LEAST;
}

/*
 * What it waits while nothing computes: waiting for work that goes on is no loss. That nothing computes counts as due
 * to the other parts of an iteration first. But a line that asks for one result after the other spends much of its time
 * beside the waits, in starting the next operator.
 */
static double wait_share(const struct facts *f)
{
	const double wait = part(f, MXBPF_PART_WAIT), others = 1 - wait - part(f, MXBPF_PART_OPERATOR);
	const double alone = facts_least(wait, idle_share(f) - others);

	if (asks_often(f))
		return facts_least(f->wait_line_share > wait ? f->wait_line_share : wait, idle_share(f));
	return alone > 0 ? alone : 0;
}

static void wait_say(const struct facts *f, struct buf *b)
{
	buf_printf(b, "The program asks for single results, and no operator runs in %.0f%% of its time",
		   100 * wait_share(f));
	if (f->loop.n && f->waits / f->loop.about > 1)
		buf_printf(b, ": %" PRIu64 " waits in an iteration", f->waits / f->loop.about);
}

static void wait_evidence(const struct facts *f, struct buf *b)
{
	rules_put_line(&f->wait_line, b);
}

/* ---- operators that are too small */

/*
 * Operators, what the program needs to call them, and its waits for an engine that runs them. With a GPU they only
 * launch, see launch_share().
 */
static double tiny_share(const struct facts *f)
{
	const double calling = facts_least(f->launch_share, part(f, MXBPF_PART_OUTSIDE)) + part(f, MXBPF_PART_API);
	const double tiny = facts_share((double)f->tiny_self_ns, (double)f->op_self_ns);
	const double engine = asks_often(f) ? 0 : part(f, MXBPF_PART_WAIT) - wait_share(f);

	return f->loop.n && !f->gpu.known && f->tiny_calls / f->loop.about >= 50
		       ? tiny * (part(f, MXBPF_PART_OPERATOR) + calling + engine)
		       : 0;
}

static void tiny_say(const struct facts *f, struct buf *b)
{
	const uint64_t ns = f->op_self_ns > f->op_runq_ns ? f->op_self_ns - f->op_runq_ns : 0;
	char each[24];

	/* The table has only those that are not lost. */
	buf_printf(b, "The job is bound by launching operators: %" PRIu64 " of them in an iteration, %s each",
		   whole((double)f->op_calls / (1 - facts_least(f->lost.share, 0.99)) / (double)f->loop.about),
		   fmt_ns(ns / f->op_calls, each));
}

static void put_operators(const struct fact_operator *o, uint64_t of, struct buf *b)
{
	unsigned i;

	for (i = 0; i < FACTS_OPERATORS_MAX && o[i].much * 100 >= of && of; i++)
		buf_printf(b, "%s%.*s %.0f%%", i ? ", " : "", (int)o[i].len, o[i].name,
			   100 * facts_share((double)o[i].much, (double)of));
}

static void launching_evidence(const struct facts *f, struct buf *b)
{
	char ns[24];

	buf_printf(b, "a kernel begins %s after its launch (median), so none is queued",
		   fmt_ns(f->gpu.latency_p50_ns, ns));
	if (!f->gpu.launching[0].much)
		return;
	buf_printf(b, "; ");
	put_operators(f->gpu.launching, f->gpu.kernels, b);
	buf_printf(b, " of the kernels");
}

static void tiny_evidence(const struct facts *f, struct buf *b)
{
	put_operators(f->tiny, f->op_calls, b);
	buf_printf(b, " of the calls%s", f->api_line.looks ? "; " : "");
	rules_put_line(&f->api_line, b);
}

/* ---- GPUs */

#define QUEUED_NS     50000 /* a launch that waits for longer than this finds other work in the queue */
#define KERNELS_LEAST 50    /* in an iteration */
#define PAUSES_LEAST  0.1   /* of the loop's time in waits for a GPU */

static double gpu_idle(const struct facts *f)
{
	return f->gpu.known ? 1 - f->gpu.busy : 0;
}

static double gpu_wait_share(const struct facts *f)
{
	return facts_least(facts_share((double)f->gpu.wait_ns, (double)f->loop.total_ns), 1);
}

static uint64_t each_iteration(const struct facts *f, uint64_t n)
{
	return f->loop.n && f->gpu.n ? n / f->loop.about / f->gpu.n : 0;
}

/*
 * The GPU is idle while threads are in operators that do not wait for it, and kernels begin as soon as they are
 * launched: so the next launch is what the GPU waits for.
 */
static double launching_share(const struct facts *f)
{
	const double calling = facts_least(f->launch_share, part(f, MXBPF_PART_OUTSIDE)) + part(f, MXBPF_PART_API);
	const double running = facts_share((double)f->loop.busy_ns, (double)f->loop.known_ns);

	if (each_iteration(f, f->gpu.kernels) < KERNELS_LEAST || !f->gpu.launches || f->gpu.latency_p50_ns > QUEUED_NS)
		return 0;
	return facts_least(gpu_idle(f), facts_least(running + calling, 1) - gpu_wait_share(f));
}

static void launching_say(const struct facts *f, struct buf *b)
{
	char each[24];

	buf_printf(b,
		   "The GPU is idle in %.0f%% of the time because the program launches too slowly: %" PRIu64
		   " kernels in an iteration, %s each",
		   100 * gpu_idle(f), each_iteration(f, f->gpu.kernels),
		   fmt_ns(f->gpu.kernel_ns / f->gpu.kernels, each));
}

/* The GPU is idle beside waits of the loop, and that is more than waiting for data explains. */
static double gpu_sync_share(const struct facts *f)
{
	const double others = part(f, MXBPF_PART_DATA) + f->loader_share + part(f, MXBPF_PART_KVSTORE);
	const double idle = gpu_idle(f) - others;

	if (!f->loop.n || f->gpu.waits / f->loop.about < WAITS_LEAST || gpu_wait_share(f) < PAUSES_LEAST)
		return 0;
	return idle > 0 ? idle : 0;
}

static void gpu_sync_say(const struct facts *f, struct buf *b)
{
	buf_printf(b,
		   "The program waits for the GPU %" PRIu64
		   " times in an iteration, %.0f%% of the loop's time, and the GPU is idle in %.0f%% of it",
		   f->gpu.waits / f->loop.about, 100 * gpu_wait_share(f), 100 * gpu_idle(f));
}

/* Copies beside which nothing else runs on the GPU. */
static double pageable_share(const struct facts *f)
{
	const uint64_t alone = f->gpu.busy_ns > f->gpu.compute_ns ? f->gpu.busy_ns - f->gpu.compute_ns : 0;
	const uint64_t ns = f->gpu.pageable_ns < alone ? f->gpu.pageable_ns : alone;

	return f->gpu.known ? facts_share((double)ns, (double)f->gpu.seen_ns) : 0;
}

static void pageable_say(const struct facts *f, struct buf *b)
{
	buf_printf(b,
		   "Copies between pageable memory and the GPU take %.0f%% of the time, and no kernel runs meanwhile",
		   100 * pageable_share(f));
}

static void pageable_evidence(const struct facts *f, struct buf *b)
{
	char n[32], bytes[24], ns[24], rate[24];

	buf_printf(
		b, "%s copies, %s in %s, %s/s", fmt_count(f->gpu.pageable, n), fmt_bytes(f->gpu.pageable_bytes, bytes),
		fmt_ns(f->gpu.pageable_ns, ns),
		fmt_bytes(whole(1e9 * facts_share((double)f->gpu.pageable_bytes, (double)f->gpu.pageable_ns)), rate));
}

/* The GPU has nothing to do most of the time, and mxbpf does not see why. */
static void gpu_idle_say(const struct facts *f, struct buf *b)
{
	buf_printf(b, "The GPU%s idle in %.0f%% of the time, which no other finding explains",
		   f->gpu.n > 1 ? "s are" : " is", 100 * gpu_idle(f));
	if (!f->loop.n)
		buf_printf(b, "; no iterations were recognised");
}

static bool is_own(unsigned cause)
{
	return cause == MXBPF_IDLE_PYTHON || (cause >= MXBPF_IDLE_OWN_CPU && cause <= MXBPF_IDLE_OWN_RUNQ);
}

/* Says whether the program had a CPU while it ran code of its own. */
static void put_own(const struct facts *f, uint64_t all_ns, struct buf *b)
{
	static const char *const words[] = {"on a CPU", "blocked", "without a CPU"};
	const uint64_t *ns = &f->gpu.cause_ns[MXBPF_IDLE_OWN_CPU];
	unsigned i;

	for (i = 0; i < 3 && ns[0] + ns[1] + ns[2]; i++)
		buf_printf(b, "%s%s %.0f%%", i ? ", " : ": ", words[i],
			   100 * facts_share((double)ns[i], (double)all_ns));
}

/* Names the cause with the most of the idle time, if it has a half of it. The program's own code counts as one. */
static void gpu_idle_evidence(const struct facts *f, struct buf *b)
{
	uint64_t all_ns = 0, own_ns = 0, most_ns;
	unsigned i, most = MXBPF_IDLE_DATA;

	for (i = MXBPF_IDLE_DATA; i < MXBPF_IDLE_CAUSES; i++) {
		add_sat(&all_ns, f->gpu.cause_ns[i]);
		if (is_own(i))
			add_sat(&own_ns, f->gpu.cause_ns[i]);
		else
			most = f->gpu.cause_ns[i] > f->gpu.cause_ns[most] ? i : most;
	}
	most = own_ns > f->gpu.cause_ns[most] ? MXBPF_IDLE_PYTHON : most;
	most_ns = most == MXBPF_IDLE_PYTHON ? own_ns : f->gpu.cause_ns[most];
	rules_put_line(&f->any_line, b);
	if (!most_ns || most_ns < all_ns / 2)
		return;
	buf_printf(b, "%s%s, %.0f%% of the idle time", f->any_line.looks ? "; " : "", idle_cause_words[most],
		   100 * facts_share((double)most_ns, (double)all_ns));
	if (most == MXBPF_IDLE_PYTHON)
		put_own(f, all_ns, b);
}

/* ---- other processes of the job */

static double waits_beside(const struct facts *f)
{
	const double beside =
		facts_share((double)f->exchange_ns, (double)f->loop.total_ns) - part(f, MXBPF_PART_KVSTORE);
	const double alone =
		1 - facts_share((double)f->loop_self_ns, (double)f->loop.total_ns) - part(f, MXBPF_PART_KVSTORE);
	const double waits = part(f, MXBPF_PART_WAIT) + (f->loop.waits_known ? 0 : part(f, MXBPF_PART_OUTSIDE));
	const double least = facts_least(beside, facts_least(alone, waits));

	return least > 0 ? least : 0;
}

/* In calls of the store, or waiting while other threads exchange. What runs beside operators is no loss. */
static double exchange_share(const struct facts *f)
{
	return part(f, MXBPF_PART_KVSTORE) + waits_beside(f);
}

#define STRAGGLER_LEAST 0.2 /* of the loop's time, if nothing else shows that one rank is late */

/* The loop waits for one rank, which lags. */
static double straggler_share(const struct facts *f)
{
	const double share =
		f->last_rank && f->last_rank != f->loop.tgid ? exchange_share(f) : 0; /* it waits for others */

	if (f->cause.late.tgid)
		return share > f->cause.late.share ? share : f->cause.late.share;
	return share >= STRAGGLER_LEAST ? share : 0;
}

/* The number of a process with a role is the launcher's. The program's own number may be another one. */
static void put_last_rank(const struct facts *f, struct buf *b)
{
	const struct mdl_labels *l = f->last_labels;

	if (f->cause.late.number && (!l || !l->texts[MDL_ROLE][0]))
		buf_printf(b, "Rank %" PRIu32 " (process %" PRIu32 ")", f->cause.late.number - 1, f->last_rank);
	else if (!l || l->numbers[MDL_RANK] == MDL_NO_NUMBER)
		buf_printf(b, "Process %" PRIu32, f->last_rank);
	else if (l->texts[MDL_ROLE][0])
		buf_printf(b, "Process %" PRIu32 " (%s %" PRIu32 " of the launcher)", f->last_rank, l->texts[MDL_ROLE],
			   l->numbers[MDL_RANK]);
	else
		buf_printf(b, "Rank %" PRIu32 " (process %" PRIu32 ")", l->numbers[MDL_RANK], f->last_rank);
}

/* How much longer the loop waits in an iteration than that rank does. */
static void straggler_say(const struct facts *f, struct buf *b)
{
	const double share = exchange_share(f);
	char ns[24];

	put_last_rank(f, b);
	if (f->last_rank == f->loop.tgid || (f->cause.late.tgid && share < f->cause.late.share)) {
		buf_printf(b, " lags: the other ranks wait for it in %.0f%% of the samples", 100 * straggler_share(f));
		late_put(f, b);
		return;
	}
	buf_printf(b, " lags: the loop waits in %.0f%% of its time for the exchange with other processes", 100 * share);
	if (f->loop.n)
		buf_printf(b, ", %s in each iteration",
			   fmt_ns(whole(share * (double)(f->loop.total_ns / f->loop.n)), ns));
	late_put(f, b);
}

#define MORE_LEAST 0.2 /* of what the loop waits: an operator that explains it */

void rules_put_regular(const struct facts *f, struct buf *b)
{
	char slow[24], usual[24];

	if (f->slow.n && f->slow.every && f->slow.part == MXBPF_PART_KVSTORE)
		buf_printf(b, "; about every %" PRIu64 "th iteration takes %s instead of %s", f->slow.every,
			   fmt_ns(f->slow.median_ns, slow), fmt_ns(f->loop.median_ns, usual));
}

static void straggler_evidence(const struct facts *f, struct buf *b)
{
	const double waits = exchange_share(f) * (double)f->loop.total_ns;
	char ns[24];

	if (f->loop.n && (double)f->last_more.much >= MORE_LEAST * waits)
		buf_printf(b, "it spends %s more in %.*s in each iteration than the other ranks; ",
			   fmt_ns(f->last_more.much / f->loop.n, ns), (int)f->last_more.len, f->last_more.name);
	buf_printf(b, "process %" PRIu32 " arrives last%s", f->last_rank, f->last_line.looks ? ": " : "");
	rules_put_line(&f->last_line, b);
	if (f->last_unprobed && f->last_cpus >= 0)
		buf_printf(b, "; it uses %.1f CPUs and is not probed", f->last_cpus);
	else if (f->last_unprobed)
		buf_printf(b, "; it is not probed");
	rules_put_regular(f, b);
}

double rules_exchange_share(const struct facts *f)
{
	return f->last_rank || f->collective.late.share * 2 >= exchange_share(f) ? 0 : exchange_share(f);
}

static void exchange_say(const struct facts *f, struct buf *b)
{
	buf_printf(b, "The loop waits in %.0f%% of its time for the exchange with other processes",
		   100 * exchange_share(f));
}

/* ---- the program itself */

static double slow_share(const struct facts *f);

#define SLOW_LEAST     0.1
#define LATE_LEAST     0.1
#define OWN_LINE_LEAST 0.4 /* share of the looks at slow iterations by which their line is more frequent there */

/*
 * Its own code, while nothing computes and nothing is exchanged. A line of slow iterations only is reported as such.
 * Operators that are not probed look like own code.
 */
static double own_share(const struct facts *f)
{
	if (f->partial && !f->sliced)
		return 0;
	if (slow_share(f) >= SLOW_LEAST && f->slow_line_more >= OWN_LINE_LEAST &&
	    !strcmp(f->own_line.text, f->slow_line.text))
		return 0;
	/* In slices, a look at a wait for other ranks may not know in which call it is. */
	if (f->sliced && f->exchange_line.looks && f->own_line.asleep * 2 > f->own_line.looks &&
	    !strcmp(f->own_line.text, f->exchange_line.text))
		return 0;
	return facts_least(facts_least(f->own_share, part(f, MXBPF_PART_OUTSIDE)) - waits_beside(f), idle_share(f));
}

static void own_say(const struct facts *f, struct buf *b)
{
	buf_printf(b, "Your %s code takes %.0f%% of the loop's time, while no operator runs",
		   f->python ? "Python" : "own", 100 * own_share(f));
	rules_put_gain(f, own_share(f), b);
}

static void own_evidence(const struct facts *f, struct buf *b)
{
	rules_put_line(&f->own_line, b);
}

static double lock_share(const struct facts *f)
{
	return f->lock_share;
}

static void lock_say(const struct facts *f, struct buf *b)
{
	buf_printf(b,
		   "The loop waits in %.0f%% of its time for the interpreter lock (GIL), which other threads of the "
		   "program "
		   "hold",
		   100 * f->lock_share);
}

static void lock_evidence(const struct facts *f, struct buf *b)
{
	rules_put_line(&f->other_line, b);
}

/* ---- memory */

/* Of the time that operators had a CPU or slept: on a busy machine they wait for a CPU less, too, if they need less of
 * it. */
static double faults_share(const struct facts *f)
{
	const uint64_t ns = f->op_self_ns > f->op_runq_ns ? f->op_self_ns - f->op_runq_ns : 0;

	return facts_least(facts_share((double)f->faults_ns, (double)ns), 1);
}

static void faults_say(const struct facts *f, struct buf *b)
{
	char n[32];

	buf_printf(
		b,
		"Memory is given back and taken again: without its %s page faults, operators would take about %.0f%% "
		"less time",
		fmt_count(f->faults - f->faults_kept, n), 100 * faults_share(f));
}

static void faults_evidence(const struct facts *f, struct buf *b)
{
	put_operators(f->faulty, f->faults, b);
	buf_printf(b, " of the faults");
}

/* ---- iterations of another kind */

/*
 * Preemption makes single iterations slow on a busy machine. A processor that others share is slow for a while. The
 * cost that is taken out of iterations is an estimate.
 */
static bool may_be_noise(const struct facts *f)
{
	const uint64_t more_ns = f->slow.median_ns > f->loop.median_ns ? f->slow.median_ns - f->loop.median_ns : 0;
	const uint64_t cost_ns = f->watched_ns > f->unwatched_ns ? f->watched_ns - f->unwatched_ns : 0;

	return rules_others_share(f) >= RULES_OTHERS_LEAST || f->job_runq_ns * 2 >= f->slow.excess_ns ||
	       more_ns < cost_ns || f->slow.evenly;
}

/* A group of another kind comes regularly, or has its line, or nothing else explains it. */
static double slow_share(const struct facts *f)
{
	if (!f->slow.every && f->slow_line_more < OWN_LINE_LEAST && may_be_noise(f))
		return 0;
	if (f->slow.part == MXBPF_PART_KVSTORE && (f->last_rank || f->collective.late.share >= LATE_LEAST))
		return 0; /* the late rank is the cause, and its finding says how often */
	return facts_share((double)f->slow.excess_ns, (double)f->loop.total_ns) * (f->slow.n > 0);
}

#define UNEVEN 2 /* a few of them take most of the time */

static void slow_say(const struct facts *f, struct buf *b)
{
	const uint64_t mean = f->loop.median_ns + (f->slow.n ? f->slow.excess_ns / f->slow.n : 0);
	const bool uneven = mean / UNEVEN > f->slow.median_ns;
	static const char *const more[MXBPF_STEP_PARTS] = {
		[MXBPF_PART_DATA] = "waiting for data",
		[MXBPF_PART_WAIT] = "waiting for results",
		[MXBPF_PART_KVSTORE] = "waiting for other processes",
		[MXBPF_PART_OPERATOR] = "operators",
		[MXBPF_PART_API] = "calls of the runtime",
		[MXBPF_PART_OUTSIDE] = "your Python code",
	};
	char slow[24], usual[24], every[48] = "";

	if (f->slow.every)
		snprintf(every, sizeof(every), ", about every %" PRIu64 "th,", f->slow.every);
	buf_printf(b, "%" PRIu64 " of %" PRIu64 " iterations%s take %s%s instead of %s", f->slow.n, f->loop.complete,
		   every, fmt_ns(uneven ? mean : f->slow.median_ns, slow), uneven ? " on average" : "",
		   fmt_ns(f->loop.median_ns, usual));
	if (uneven)
		buf_printf(b, " (a half of them %s or less)", fmt_ns(f->slow.median_ns, slow));
	if (f->partial) /* their calls were not probed */
		return;
	buf_printf(b, "; most of the difference is %s",
		   f->slow.part != MXBPF_PART_OUTSIDE ? more[f->slow.part]
		   : f->unprobed		      ? "your Python code or calls that are not probed"
		   : f->python			      ? more[f->slow.part]
						      : "your own code");
}

static void slow_evidence(const struct facts *f, struct buf *b)
{
	rules_put_line(&f->slow_line, b);
}

/* ---- mxbpf itself */

static double watching_share(const struct facts *f)
{
	return f->watching / (1 + f->watching);
}

static void watching_say(const struct facts *f, struct buf *b)
{
	char ns[2][24];

	buf_printf(b, "mxbpf makes the job take %.1f times as long", 1 + f->watching);
	if (f->watched_ns)
		buf_printf(b, ": an iteration takes %s instead of %s", fmt_ns(f->watched_ns, ns[0]),
			   fmt_ns(f->unwatched_ns, ns[1]));
	buf_printf(b, "; the times below are without this");
}

/* A row is a paragraph. */
/* clang-format off */
const struct finding_rule rules_common[] = {
	{.key = "lost_records", .first = 2, .full_gpu = true, .other_time = true, .least = FACTS_LOST_LEAST, .share = rules_lost_share,
	 .say = rules_lost_say, .evidence = rules_lost_evidence, .next_of = next_lost,
	 .advice = "Records came faster than mxbpf could take them, or it got too little of a CPU. The times of single calls and of "
		   "iterations are right, and findings are about iterations that are complete. Record less: a few iterations of many "
		   "(--iterations 5/100), no memory (--probes op), fewer operators (--ops); use larger rings (--ring-size 64M), or "
		   "leave mxbpf a CPU."},
	{.key = "stopped", .first = 3, .full_gpu = true, .other_time = true, .least = 0.2, .share = rules_stopped_share,
	 .say = rules_stopped_say, .evidence = rules_stopped_evidence, .pid_at = offsetof(struct facts, stopped_tgid),
	 .advice = "A process that is stopped calls nothing until kill -CONT continues it, or its debugger does. Ctrl-Z in a shell and "
		   "a batch system that suspends jobs stop processes, too."},
	{.key = "out_of_memory", .first = 1, .full_gpu = true, .other_time = true, .least = 0.5, .share = rules_failed_share,
	 .say = rules_failed_say, .evidence = rules_failed_evidence, .next = "--pid PID --memory --py-stacks", .taken = FACTS_HAVE_MEMORY | FACTS_HAVE_STACKS,
	 .advice = "Those that hold the most memory at that moment are where to begin: smaller batches with accumulated gradients, "
		   "checkpointing of activations, a lower precision, fewer results that are kept from earlier iterations."},
	{.key = "memory_in_pieces", .first = 1, .full_gpu = true, .other_time = true, .least = 0.5, .share = rules_pieces_share,
	 .say = rules_failed_say, .evidence = rules_failed_evidence, .next = "--pid PID --memory --py-stacks", .taken = FACTS_HAVE_MEMORY | FACTS_HAVE_STACKS,
	 .advice = "The allocator had reserved more than was missing, but not in one piece, because it keeps segments of many sizes. "
		   "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True lets segments grow instead; the same sizes in each iteration, "
		   "and nothing large between small blocks that stay, help as well."},
	{.key = "watching", .of_loop = true, .first = 1, .full_gpu = true, .other_time = true, .least = 0.2, .share = watching_share, .say = watching_say,
	 .next_of = next_watching,
	 .advice = "The job calls so many small operators that the probes take a large part of its time. The agent records "
		   "PyTorch's operators for a fraction of it, --iterations profiles a few of many iterations, and --ops and "
		   "--probes op probe fewer functions."},
	{.key = "data_wait", .of_loop = true, .least = 0.15, .share = data_share, .say = data_say, .evidence = data_evidence,
	 .next_of = next_data,
	 .advice = "The training thread stands still until the next batch is there. If the workers sleep or read, add workers "
		   "or prefetch more; if they compute, move the work out of __getitem__, or do it once and store the result."},
	{.key = "sync_wait", .of_loop = true, .least = 0.15, .share = wait_share, .say = wait_say, .evidence = wait_evidence,
	 .next = "--pid PID --py-stacks --by stack", .taken = FACTS_HAVE_STACKS,
	 .advice = "The program asks for a result before it has started more work, so that the engine runs dry. Ask for values "
		   "such as the loss every few iterations only, or one iteration late."},
	{.key = "tiny_operators", .of_loop = true, .least = 0.4, .share = tiny_share, .say = tiny_say, .evidence = tiny_evidence,
	 .next = "--pid PID --py-stacks --by stack --sort count", .taken = FACTS_HAVE_STACKS,
	 .advice = "Each operator computes for less time than it takes to call it. Use larger batches, fuse operators "
		   "(hybridize, torch.compile), or use fused and foreach optimizers."},
	{.key = "gpu_launch", .all_records = true, .least = 0.3, .share = launching_share, .say = launching_say, .evidence = launching_evidence,
	 .next = "--pid PID --gpu --py-stacks --by stack", .taken = FACTS_HAVE_STACKS,
	 .advice = "Each kernel takes less time than Python and the runtime need to launch the next one. Use larger batches, "
		   "CUDA graphs, torch.compile, hybridize, or fused and foreach optimizers."},
	{.key = "gpu_sync", .all_records = true, .least = 0.15, .share = gpu_sync_share, .say = gpu_sync_say, .evidence = wait_evidence,
	 .next = "--pid PID --gpu --py-stacks --by stack", .taken = FACTS_HAVE_STACKS,
	 .advice = "After a wait the GPU has nothing to do until the program has launched more. Read values such as the loss "
		   "every few iterations only, keep them on the GPU, and copy with non_blocking=True."},
	{.key = "gpu_pageable", .least = 0.05, .share = pageable_share, .say = pageable_say, .evidence = pageable_evidence,
	 .next = "--pid PID --gpu --py-stacks", .taken = FACTS_HAVE_STACKS,
	 .advice = "The driver copies pageable memory through a buffer of its own, and the program waits meanwhile. Use "
		   "pin_memory=True in the data loader, or tensor.pin_memory(), and copy with non_blocking=True."},
	{.key = "gpu_small_grids", .full_gpu = true, .least = 0.2, .share = facts_small_grids_share, .say = facts_small_grids_say,
	 .evidence = facts_small_grids_evidence, .next = "--pid PID --gpu --shapes --by shape", .taken = FACTS_HAVE_SHAPES,
	 .advice = "A block runs on one multiprocessor, so a kernel with few blocks leaves the others idle, however long it "
		   "runs. Use larger batches, do several small operations in one (batched or grouped matrix products, "
		   "foreach optimizers), or run independent work on several streams."},
	{.key = "own_code", .of_loop = true, .least = 0.3, .share = own_share, .say = own_say, .evidence = own_evidence,
	 .next_of = next_own,
	 .advice = "The loop's thread runs your own code, or waits in it for something. Do it once before the "
		   "loop, do it less often, use operators of the runtime or numpy for it, or do it in another process."},
	{.key = "interpreter_lock", .least = 0.15, .share = lock_share, .say = lock_say, .evidence = lock_evidence,
	 .next_of = next_lock,
	 .advice = "Only one thread of a process runs Python at a time, and each switch can take 5 ms. Move what the other "
		   "thread does to another process."},
	{.key = "straggler", .first = 1, .all_records = true, .full_gpu = true, .least = 0.05, .explains = "exchange own_code", .share = straggler_share, .say = straggler_say, .evidence = straggler_evidence,
	 .next_of = next_late, .pid_at = offsetof(struct facts, late_tgid),
	 .advice = "All processes of a job wait for the slowest one in each exchange. Give that rank no more work than the "
		   "others have: the same number and length of samples, no evaluation or checkpoint of its own, and a "
		   "machine that is as fast and as free."},
	{.key = "exchange", .all_records = true, .full_gpu = true, .least = 0.2, .share = rules_exchange_share, .say = exchange_say,
	 .next_of = next_exchange,
	 .advice = "The processes of a job wait for the slowest of them and for the network. Compare the processes, exchange "
		   "less often or in larger parts, and let the exchange run beside the backward pass."},
	{.key = "late_rank", .all_records = true, .full_gpu = true, .least = LATE_LEAST, .share = rules_late_share, .say = rules_late_say, .evidence = rules_late_evidence,
	 .next_of = next_late, .pid_at = offsetof(struct facts, late_tgid),
	 .advice = "The others wait in each collective until the last process has begun it. Give that rank no more work than "
		   "the others have, and a machine that is as fast and as free."},
	{.key = "exposed_communication", .all_records = true, .full_gpu = true, .least = 0.1, .share = rules_exposed_share, .say = rules_exposed_say, .evidence = rules_exposed_evidence,
	 .next = "--pid PID --gpu --py-stacks --trace t.json.gz", .taken = FACTS_HAVE_STACKS,
	 .advice = "The GPU only communicates in that time. Let it run beside the backward pass (DistributedDataParallel does, "
		   "with smaller buckets earlier), exchange less often by gradient accumulation, or in a smaller type."},
	{.key = "slow_link", .all_records = true, .full_gpu = true, .least = 0.02, .share = rules_slow_link_share, .say = rules_slow_link_say,
	 .advice = "Compare the links of these ranks with those of the others: the switch, the number of lanes, NVLink or PCIe, "
		   "and the network card that NCCL_DEBUG=INFO names."},
	{.key = "own_threads", .other_time = true, .least = RULES_THREADS_LEAST, .share = rules_threads_share, .say = rules_threads_say, .evidence = rules_threads_evidence,
	 .next = "--pid PID --omp --sched", .taken = FACTS_HAVE_SCHED,
	 .advice = "The job starts more threads than there are CPUs for it. Set OMP_NUM_THREADS or the runtime's number of "
		   "threads to the CPUs that the job has, less those that its workers need."},
	{.key = "neighbours", .other_time = true, .least = RULES_NEIGHBOURS_LEAST, .share = rules_neighbours_share, .say = rules_neighbours_say, .evidence = rules_neighbours_evidence,
	 .next = "--pid PID --sched", .taken = FACTS_HAVE_SCHED,
	 .advice = "Other processes run on the CPUs that the job needs. Give the job CPUs of its own (cpusets, a dedicated node)."},
	{.key = "throttled", .least = 0.05, .share = rules_throttled_share, .say = rules_throttled_say, .evidence = rules_throttled_evidence,
	 .next = "--pid PID --sched", .taken = FACTS_HAVE_SCHED,
	 .advice = "The job has used its quota of CPU time and is stopped until the next period. Raise cpu.max of the control "
		   "group (the CPU limit of the container), or use fewer threads."},
	{.key = "stolen", .other_time = true, .least = 0.1, .share = rules_stolen_share, .say = rules_stolen_say,
	 .advice = "The host of this virtual machine runs other machines in its time. Only the host can change that."},
	{.key = "page_faults", .all_records = true, .other_time = true, .least = 0.1, .share = faults_share, .say = faults_say, .evidence = faults_evidence,
	 .next = "--pid PID --py-stacks --by stack", .taken = FACTS_HAVE_STACKS,
	 .advice = "Memory is given back to the system and taken from it again in each iteration. Reuse buffers, preload "
		   "jemalloc or tcmalloc, or raise glibc's thresholds: MALLOC_MMAP_THRESHOLD_=33554432 (its maximum: larger "
		   "blocks are still given back) and MALLOC_TRIM_THRESHOLD_=1073741824. Faults in memory that stays do not count."},
	{.key = "code_lock", .least = 0.15, .share = rules_locked_share, .say = rules_locked_say, .evidence = rules_locked_evidence,
	 .next_of = next_locked, .pid_at = offsetof(struct facts, locked.tgid),
	 .advice = "Only one thread at a time gets past that line; the others wait. Hold the lock for what must not run twice at "
		   "once, and do the rest (decoding, preprocessing, writing) before or after it, or give each thread its own copy."},
	{.key = "compiling", .explains = "memory_growth slow_iterations", .least = 0.1, .share = rules_compiling_share, .say = rules_compiling_say,
	 .evidence = rules_compiling_evidence, .pid_at = offsetof(struct facts, compiling.tgid), .next = "--pid PID --sample 99", .taken = FACTS_HAVE_SAMPLES,
	 .advice = "A compiler makes code anew for each new shape, type or constant. Mark what changes with "
		   "torch._dynamo.mark_dynamic(), compile with dynamic=True, or pad lengths to a few sizes. With "
		   "TORCH_LOGS=recompiles in its environment, PyTorch says what has changed; with JAX it is JAX_LOG_COMPILES=1."},
	{.key = "memory_growth", .full_gpu = true, .other_time = true, .least = 0.1, .share = rules_resident_share, .say = rules_resident_say,
	 .evidence = rules_resident_evidence, .pid_at = offsetof(struct facts, resident.tgid), .next = "--pid PID --memory --py-stacks", .taken = FACTS_HAVE_MEMORY | FACTS_HAVE_STACKS,
	 .advice = "Something keeps what each request or step makes: a list, a cache without a limit, a queue that nobody empties. "
		   "If no operator has that memory alive, it is of Python objects or NumPy arrays in a list (tracemalloc shows which line makes "
		   "them), of a C library that does not free, or of a cache for each new shape: oneDNN keeps primitives, so pad inputs to a few "
		   "sizes, or set ONEDNN_PRIMITIVE_CACHE_CAPACITY."},
	{.key = "memory_growth", .full_gpu = true, .other_time = true, .least = 0.1, .share = rules_growth_share, .say = rules_growth_say, .evidence = rules_growth_evidence,
	 .next = "--pid PID --memory --py-stacks", .taken = FACTS_HAVE_MEMORY | FACTS_HAVE_STACKS,
	 .advice = "Something keeps what each iteration allocates: a list of losses that have their graphs, a cache without a "
		   "limit. Keep numbers (.item(), float()) instead of tensors."},
	{.key = "slow_iterations", .of_loop = true, .full_gpu = true, .least = SLOW_LEAST, .share = slow_share, .say = slow_say, .evidence = slow_evidence,
	 .next_of = next_slow,
	 .advice = "Some iterations do what the others do not: an evaluation, a checkpoint, logging. Do it less often, or beside "
		   "the training, in another thread or process."},
	{.key = "gpu_idle", .all_records = true, .last = true, .least = 0.5, .share = gpu_idle, .say = gpu_idle_say, .evidence = gpu_idle_evidence,
	 .next = "--pid PID --gpu --sched --trace t.json.gz", .taken = FACTS_HAVE_SCHED,
	 .advice = "A timeline shows what the program does between the kernels: what it computes, reads or waits for on the CPU. "
		   "Look for long gaps first, and for the call that ends each of them."},
	{.key = NULL},
};
/* clang-format on */
