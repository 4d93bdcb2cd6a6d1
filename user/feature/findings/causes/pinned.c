// SPDX-License-Identifier: Apache-2.0
/* Threads, or ranks, that share one CPU of several because of their affinity, and wait for it. */
#include "feature/findings/rules.h"

#include <inttypes.h>

#include "feature/lines/lines.h"
#include "feature/machine/machine.h"
#include "feature/neighbours/neighbours.h"

#define DEMAND_LEAST 1.2  /* CPUs that a single process needs, so that its own threads wait for each other */
#define PINNED_LEAST 0.15 /* of the time: a thread of the job is ready and waits for the CPU */

static bool is_rank(const struct mdl *m, const struct facts *f, uint32_t tgid)
{
	size_t n, i;
	const struct mxbpf_agg_line *l = lines_rows(m, &n);

	for (i = 0; i < n; i++)
		if (l[i].h.tgid == tgid && (l[i].rank || l[i].number))
			return true;
	return tgid == f->cause.pinned.tgid;
}

/* The CPU of the process, if it has one alone. */
static uint32_t only_cpu(const struct mxbpf_neighbour *r, size_t n, uint32_t tgid)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (r[i].h.tgid == tgid)
			return r[i].only_cpu;
	return 0;
}

int make_pinned(struct mdl *m, const struct mdl_session *s, struct facts *f)
{
	struct pinned_facts *p = &f->cause.pinned;
	const struct machine_row *idle = machine_row(m, MXBPF_GAUGE_CPU_IDLE, 0);
	size_t n, i;
	const struct mxbpf_neighbour *r = neighbours_rows(m, &n);
	uint64_t cpu_ns = 0, runq_ns = 0; /* of the job's processes on that CPU: other ranks have others */
	uint32_t cpu;

	p->tgid = f->loop.tgid ? f->loop.tgid : s->pid;
	cpu = only_cpu(r, n, p->tgid);
	if (!cpu || f->cpus < 2)
		return 0;
	for (i = 0; i < n; i++) {
		add_sat(&cpu_ns, r[i].job && r[i].only_cpu == cpu ? r[i].cpu_ns : 0);
		add_sat(&runq_ns, r[i].job && r[i].only_cpu == cpu ? r[i].runq_ns : 0);
		if (!is_rank(m, f, r[i].h.tgid))
			continue;
		p->of++;
		p->n += r[i].only_cpu == cpu;
	}
	p->cpu = cpu - 1;
	p->idle = idle ? facts_share((double)idle->difference, (double)idle->elapsed_ns) : 0;
	if (p->n == 1 && (double)cpu_ns + (double)runq_ns < DEMAND_LEAST * (double)f->cpu_elapsed_ns)
		p->n = 0;
	p->share = facts_least(facts_share((double)runq_ns, (double)f->cpu_elapsed_ns), 1);
	return 0;
}

static double pinned_share(const struct facts *f)
{
	return f->cause.pinned.n ? f->cause.pinned.share : 0;
}

static void pinned_say(const struct facts *f, struct buf *b)
{
	const struct pinned_facts *p = &f->cause.pinned;

	if (p->n > 1)
		buf_printf(b, "%s%u ranks may use only CPU %u of %u (affinity)", p->n == p->of ? "All " : "", p->n,
			   p->cpu, f->cpus);
	else
		buf_printf(b, "Process %" PRIu32 " may use only CPU %u of %u (affinity)", p->tgid, p->cpu, f->cpus);
	buf_printf(b, "; %s waits for it in %.0f%% of the time", p->n > 1 ? "this one" : "it", 100 * p->share);
}

static void pinned_evidence(const struct facts *f, struct buf *b)
{
	buf_printf(b, "all CPUs of the machine together are idle for %.1f of %u", f->cause.pinned.idle, f->cpus);
}

/* clang-format off */
const struct finding_rule rules_pinned[] = {
	{.key = "pinned", .explains = "neighbours own_threads exchange", .full_gpu = true, .other_time = true, .first = 1, .least = PINNED_LEAST,
	 .share = pinned_share, .say = pinned_say, .evidence = pinned_evidence, .pid_at = offsetof(struct facts, cause.pinned.tgid), .next = "--pid PID --sched", .taken = FACTS_HAVE_SCHED,
	 .advice = "A shell, taskset, numactl, a launcher or a batch system has set the affinity, and all threads inherit it. taskset -a -p "
		   "-c LIST PID widens it while the job runs; give each rank CPUs of its own when it is started."},
	{.key = NULL},
};
/* clang-format on */
