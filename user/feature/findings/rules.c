// SPDX-License-Identifier: Apache-2.0
/* The rules. A row is a rule; its threshold is tested on jobs with that fault and on healthy ones (tests/planted/). */
#include "feature/findings/findings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fmt.h"

static double part(const struct facts *f, enum mxbpf_step_part p)
{
	return facts_share((double)f->loop.part_ns[p], (double)f->loop.known_ns);
}

static void put_line(const struct fact_line *l, struct buf *b)
{
	if (l->looks)
		buf_printf(b, "%s, %.0f%% of %" PRIu64 " looks%s", l->text,
			   100 * facts_share((double)l->looks, (double)l->of), l->of,
			   l->asleep * 2 > l->looks ? ", asleep in a system call" : "");
}

/* ---- input */

static double data_share(const struct facts *f)
{
	return part(f, MXBPF_PART_DATA);
}

static void data_say(const struct facts *f, struct buf *b)
{
	buf_printf(b, "The loop waits for data in %.0f%% of its time", 100 * data_share(f));
	if (f->data_line.looks)
		buf_printf(b, ": %s at %s", f->data_workers ? "its workers are" : "it is", f->data_line.text);
}

static void data_evidence(const struct facts *f, struct buf *b)
{
	put_line(&f->data_line, b);
}

/* ---- the engine */

/* What it waits while nothing computes: waiting for work that goes on is no loss. */
static double wait_share(const struct facts *f)
{
	const double wait = part(f, MXBPF_PART_WAIT);
	const double idle = 1 - facts_share((double)f->loop.busy_ns, (double)f->loop.known_ns);

	return wait < idle ? wait : idle;
}

static void wait_say(const struct facts *f, struct buf *b)
{
	buf_printf(b,
		   "The program waits for single results in %.0f%% of its time, and no operator runs in %.0f%% of it",
		   100 * part(f, MXBPF_PART_WAIT),
		   100 * (1 - facts_share((double)f->loop.busy_ns, (double)f->loop.known_ns)));
}

static void wait_evidence(const struct facts *f, struct buf *b)
{
	put_line(&f->wait_line, b);
}

/* ---- operators that are too small */

static double tiny_share(const struct facts *f)
{
	const double busy = (double)f->loop.part_ns[MXBPF_PART_OPERATOR] + (double)f->loop.part_ns[MXBPF_PART_OUTSIDE] +
			    (double)f->loop.part_ns[MXBPF_PART_API];
	const double tiny = facts_share((double)f->tiny_self_ns, (double)f->op_self_ns);

	return f->loop.n && f->tiny_calls / f->loop.n >= 50 ? tiny * facts_share(busy, (double)f->loop.known_ns) : 0;
}

static void tiny_say(const struct facts *f, struct buf *b)
{
	char each[24];

	buf_printf(b, "The job is bound by launching operators: %" PRIu64 " of them in an iteration, %s each",
		   f->op_calls / f->loop.n, fmt_ns(f->op_self_ns / f->op_calls, each));
}

/* ---- CPUs */

static double runq_share(const struct facts *f)
{
	return facts_share((double)f->op_runq_ns, (double)f->op_total_ns);
}

static double others_share(const struct facts *f)
{
	return facts_share((double)f->others_cpu_ns, (double)f->cpu_elapsed_ns * f->cpus);
}

#define OWN_LINE_LEAST 0.4 /* share of the looks at slow iterations by which their line is more frequent there */
#define OTHERS_LEAST   0.1 /* of all CPU time: neighbours that took less have not caused much waiting */

static double threads_share(const struct facts *f)
{
	return others_share(f) < OTHERS_LEAST && f->throttled < 0.02 ? runq_share(f) : 0;
}

static void threads_say(const struct facts *f, struct buf *b)
{
	buf_printf(b, "The job's own threads compete for %u CPUs: operators wait for a CPU in %.0f%% of their time",
		   f->cpus, 100 * runq_share(f));
}

static double neighbours_share(const struct facts *f)
{
	return others_share(f) >= OTHERS_LEAST ? runq_share(f) : 0;
}

static void neighbours_say(const struct facts *f, struct buf *b)
{
	buf_printf(b, "Operators wait for a CPU in %.0f%% of their time, while other processes use %.1f of %u CPUs",
		   100 * runq_share(f), facts_share((double)f->others_cpu_ns, (double)f->cpu_elapsed_ns), f->cpus);
}

static void neighbours_evidence(const struct facts *f, struct buf *b)
{
	unsigned i;

	for (i = 0; i < FACTS_OTHERS_MAX && f->others[i].cpu_ns; i++)
		buf_printf(b, "%s%s (pid %u) %.1f CPUs", i ? ", " : "", f->others[i].comm, f->others[i].h.tgid,
			   facts_share((double)f->others[i].cpu_ns, (double)f->cpu_elapsed_ns));
}

static double throttled_share(const struct facts *f)
{
	return f->throttled;
}

static void throttled_say(const struct facts *f, struct buf *b)
{
	buf_printf(b, "The control group's CPU limit stops the job in %.0f%% of the time", 100 * f->throttled);
}

static double stolen_share(const struct facts *f)
{
	return f->stolen;
}

static void stolen_say(const struct facts *f, struct buf *b)
{
	buf_printf(b, "The hypervisor gives %.0f%% of the CPU time to other machines", 100 * f->stolen);
}

/* ---- memory */

static double faults_share(const struct facts *f)
{
	return facts_share((double)f->faults_ns, (double)f->op_self_ns);
}

static void faults_say(const struct facts *f, struct buf *b)
{
	char n[32];

	buf_printf(b, "Page faults take about %.0f%% of the operators' time: %s faults in fresh memory",
		   100 * faults_share(f), fmt_count(f->faults, n));
}

#define GROWTH_LEAST (1 << 20) /* bytes over the window */

/* Growth takes no time yet; it ranks behind what takes half of it. */
static double growth_share(const struct facts *f)
{
	return f->grown_bytes >= GROWTH_LEAST ? 0.5 : 0;
}

static void growth_say(const struct facts *f, struct buf *b)
{
	char each[24], all[24];

	buf_printf(b, "Memory grows by %s in each iteration, %s in this window",
		   fmt_bytes((uint64_t)f->grown_bytes / f->grown_over, each), fmt_bytes((uint64_t)f->grown_bytes, all));
}

static void growth_evidence(const struct facts *f, struct buf *b)
{
	char live[24];

	if (f->grown_owner.text[0])
		buf_printf(b, "%s has %s alive", f->grown_owner.text,
			   fmt_bytes((uint64_t)f->grown_owner.live_bytes, live));
}

/* ---- iterations of another kind */

/* Preemption makes single iterations slow on a busy machine. A group of another kind comes regularly, or has its line.
 */
static double slow_share(const struct facts *f)
{
	if (!f->slow.every && f->slow_line_more < OWN_LINE_LEAST && others_share(f) >= OTHERS_LEAST)
		return 0;
	return facts_share((double)f->slow.excess_ns, (double)f->loop.total_ns) * (f->slow.n > 0);
}

static void slow_say(const struct facts *f, struct buf *b)
{
	static const char *const more[MXBPF_STEP_PARTS] = {
		[MXBPF_PART_DATA] = "waiting for data",	   [MXBPF_PART_WAIT] = "waiting for results",
		[MXBPF_PART_KVSTORE] = "communication",	   [MXBPF_PART_OPERATOR] = "operators",
		[MXBPF_PART_API] = "calls of the runtime", [MXBPF_PART_OUTSIDE] = "the program outside the runtime",
	};
	char slow[24], usual[24], every[48] = "";

	if (f->slow.every)
		snprintf(every, sizeof(every), ", about every %" PRIu64 "th,", f->slow.every);
	buf_printf(b, "%" PRIu64 " of %" PRIu64 " iterations%s take %s instead of %s; what they have more of is %s",
		   f->slow.n, f->loop.n, every, fmt_ns(f->slow.median_ns, slow), fmt_ns(f->loop.median_ns, usual),
		   more[f->slow.part]);
}

static void slow_evidence(const struct facts *f, struct buf *b)
{
	put_line(&f->slow_line, b);
}

/* A row is a paragraph. */
/* clang-format off */
const struct finding_rule finding_rules[] = {
	{.key = "data_wait", .least = 0.15, .share = data_share, .say = data_say, .evidence = data_evidence,
	 .next = "now --pid PID",
	 .advice = "The training thread stands still until the next batch is there. If the workers sleep or read, add workers "
		   "or prefetch more; if they compute, move the work out of __getitem__, or do it once and store the result."},
	{.key = "sync_wait", .least = 0.15, .share = wait_share, .say = wait_say, .evidence = wait_evidence,
	 .next = "--pid PID --py-stacks --by stack",
	 .advice = "The program asks for a result before it has started more work, so that the engine runs dry. Ask for values "
		   "such as the loss every few iterations only, or one iteration late."},
	{.key = "tiny_operators", .least = 0.4, .share = tiny_share, .say = tiny_say,
	 .next = "--pid PID --py-stacks --by stack --sort count",
	 .advice = "Each operator computes for less time than it takes to call it. Use larger batches, fuse operators "
		   "(hybridize, torch.compile), or use fused and foreach optimizers."},
	{.key = "own_threads", .least = 0.15, .share = threads_share, .say = threads_say,
	 .next = "--pid PID --omp --sched",
	 .advice = "The job starts more threads than there are CPUs for it. Set OMP_NUM_THREADS or the runtime's number of "
		   "threads to the CPUs that the job has, less those that its workers need."},
	{.key = "neighbours", .least = 0.1, .share = neighbours_share, .say = neighbours_say, .evidence = neighbours_evidence,
	 .next = "--pid PID --sched",
	 .advice = "Other processes run on the CPUs that the job needs. Give the job CPUs of its own (cpusets, a dedicated node)."},
	{.key = "throttled", .least = 0.05, .share = throttled_share, .say = throttled_say,
	 .next = "--pid PID --sched",
	 .advice = "The job has used its quota of CPU time and is stopped until the next period. Raise cpu.max of the control "
		   "group (the CPU limit of the container), or use fewer threads."},
	{.key = "stolen", .least = 0.1, .share = stolen_share, .say = stolen_say,
	 .advice = "The host of this virtual machine runs other machines in its time. Only the host can change that."},
	{.key = "page_faults", .least = 0.15, .share = faults_share, .say = faults_say,
	 .next = "--pid PID --py-stacks --by stack",
	 .advice = "Memory is given back to the system and taken from it again in each iteration. Reuse buffers, preload "
		   "jemalloc or tcmalloc, or raise glibc's M_MMAP_THRESHOLD and M_TRIM_THRESHOLD."},
	{.key = "memory_growth", .least = 0.1, .share = growth_share, .say = growth_say, .evidence = growth_evidence,
	 .next = "--pid PID --memory --py-stacks",
	 .advice = "Something keeps what each iteration allocates: a list of losses that have their graphs, a cache without a "
		   "limit. Keep numbers (.item(), float()) instead of tensors."},
	{.key = "slow_iterations", .least = 0.1, .share = slow_share, .say = slow_say, .evidence = slow_evidence,
	 .next = "record --pid PID --py-stacks",
	 .advice = "Some iterations do what the others do not: an evaluation, a checkpoint, logging. Do it less often, or beside "
		   "the training, in another thread or process."},
	{.key = NULL},
};
/* clang-format on */

static int by_share(const void *va, const void *vb)
{
	const struct finding *a = va, *b = vb;

	return a->share < b->share ? 1 : a->share > b->share ? -1 : 0;
}

int findings_make(struct mdl *m, const struct mdl_session *s, struct findings *out)
{
	const struct finding_rule *rule;
	int err;
	double found;

	*out = (struct findings){.n = 0};
	err = facts_make(m, s, &out->facts);
	for (rule = finding_rules; !err && rule->key; rule++) {
		found = rule->share(&out->facts);
		if (found < rule->least || out->n == FINDINGS_MAX)
			continue;
		out->list[out->n] = (struct finding){.rule = rule, .share = found};
		rule->say(&out->facts, &out->list[out->n].text);
		if (rule->evidence)
			rule->evidence(&out->facts, &out->list[out->n].evidence);
		out->n++;
	}
	qsort(out->list, out->n, sizeof(out->list[0]), by_share);
	return err;
}

void findings_fini(struct findings *f)
{
	unsigned i;

	for (i = 0; i < f->n; i++) {
		buf_fini(&f->list[i].text);
		buf_fini(&f->list[i].evidence);
	}
}
