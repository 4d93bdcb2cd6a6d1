// SPDX-License-Identifier: Apache-2.0
/* The rules of CPUs: too many threads, other processes, a limit, a hypervisor. */
#include "feature/findings/rules.h"

#include <inttypes.h>

#include "base/fmt.h"

static double runq_share(const struct facts *f)
{
	return facts_share((double)f->op_runq_ns, (double)f->op_self_ns);
}

/* Operators wait for a part of their time, and the loop for a part of that: a part above its threshold counts so. */
static double of_loop(const struct facts *f, double share, double least)
{
	const double part = f->loop.n ? facts_share((double)f->loop_self_ns, (double)f->loop.total_ns) : 1;

	if (share < least)
		return 0;
	return share * facts_least(1, part) > least ? share * facts_least(1, part) : least;
}

double rules_others_share(const struct facts *f)
{
	return facts_share((double)f->others_cpu_ns, (double)f->cpu_elapsed_ns * f->cpus);
}

/* Other ranks of the job are no neighbours, also where the session does not profile them. */
#define WANTED_TIMES 1.25 /* the job wants so many times the CPUs that there are */

/* How many CPUs the job's threads would use at once, if there were enough. How long other ranks wait is not known. */
static double wanted(const struct facts *f)
{
	return facts_share((double)(f->job_cpu_ns + f->ranks_cpu_ns + f->job_runq_ns), (double)f->cpu_elapsed_ns);
}

static double ranks_share(const struct facts *f)
{
	return facts_share((double)f->ranks_cpu_ns, (double)f->cpu_elapsed_ns * f->cpus);
}

/* The other ranks of the job take more of the CPUs than processes that are not of the job do. */
static bool ranks_compete(const struct facts *f)
{
	return ranks_share(f) >= RULES_OTHERS_LEAST && f->ranks_cpu_ns > f->others_cpu_ns;
}

double rules_threads_share(const struct facts *f)
{
	const bool many = wanted(f) >= WANTED_TIMES * f->allowed_cpus || ranks_compete(f);

	return f->throttled < 0.02 && (many || (!f->job_runq_ns && rules_others_share(f) < RULES_OTHERS_LEAST))
		       ? of_loop(f, runq_share(f), RULES_THREADS_LEAST)
		       : 0;
}

void rules_threads_say(const struct facts *f, struct buf *b)
{
	buf_printf(b, "The job's own %s compete for %u CPU%s: operators wait for a CPU in %.0f%% of their time",
		   ranks_compete(f) ? "ranks" : "threads", f->allowed_cpus, f->allowed_cpus == 1 ? "" : "s",
		   100 * runq_share(f));
}

void rules_threads_evidence(const struct facts *f, struct buf *b)
{
	if (ranks_compete(f))
		buf_printf(b, "this process uses %.1f CPUs, and the other %u rank%s of the job %.1f of %u",
			   facts_share((double)f->job_cpu_ns, (double)f->cpu_elapsed_ns), f->ranks,
			   f->ranks == 1 ? "" : "s", facts_share((double)f->ranks_cpu_ns, (double)f->cpu_elapsed_ns),
			   f->cpus);
	else if (f->job_runq_ns)
		buf_printf(b, "%.1f threads of the job want to run at a time", wanted(f));
}

/* A thread that its control group has stopped waits for a CPU, too. */
static double neighbours_share(const struct facts *f)
{
	return rules_others_share(f) >= RULES_OTHERS_LEAST ? runq_share(f) - f->throttled : 0;
}

double rules_neighbours_share(const struct facts *f)
{
	return of_loop(f, neighbours_share(f), RULES_NEIGHBOURS_LEAST);
}

void rules_neighbours_say(const struct facts *f, struct buf *b)
{
	buf_printf(b, "Operators wait for a CPU in %.0f%% of their time, while other processes use %.1f of %u CPUs",
		   100 * neighbours_share(f), facts_share((double)f->others_cpu_ns, (double)f->cpu_elapsed_ns),
		   f->cpus);
}

#define SHOWN_LEAST 0.05 /* CPUs */

void rules_neighbours_evidence(const struct facts *f, struct buf *b)
{
	double cpus, sum = 0;
	unsigned i, n = 0;

	for (i = 0; i < FACTS_OTHERS_MAX && f->others[i].cpu_ns; i++) {
		cpus = facts_share((double)f->others[i].cpu_ns, (double)f->cpu_elapsed_ns);
		sum += cpus;
		if (cpus >= SHOWN_LEAST)
			buf_printf(b, "%s%s (pid %u) %.1f CPUs", n++ ? ", " : "", f->others[i].comm,
				   f->others[i].h.tgid, cpus);
	}
	if (sum * 2 < facts_share((double)f->others_cpu_ns, (double)f->cpu_elapsed_ns))
		buf_printf(b, "%s", n ? ", and others" : "many processes, or some that have ended");
}

double rules_throttled_share(const struct facts *f)
{
	return f->throttled;
}

void rules_throttled_say(const struct facts *f, struct buf *b)
{
	buf_printf(b, "The control group's CPU limit stops the job in %.0f%% of the time", 100 * f->throttled);
}

void rules_throttled_evidence(const struct facts *f, struct buf *b)
{
	if (f->throttled_by[0])
		buf_printf(b, "the control group %s", f->throttled_by);
}

double rules_stolen_share(const struct facts *f)
{
	return f->stolen;
}

void rules_stolen_say(const struct facts *f, struct buf *b)
{
	buf_printf(b, "The hypervisor gives %.0f%% of the CPU time to other machines", 100 * f->stolen);
}

/* ---- a process that is stopped */

double rules_stopped_share(const struct facts *f)
{
	return f->stopped;
}

void rules_stopped_say(const struct facts *f, struct buf *b)
{
	buf_printf(b,
		   "Process %" PRIu32
		   " is stopped by a signal or a debugger in %.0f%% of the samples, and does nothing "
		   "until it is continued",
		   f->stopped_tgid, 100 * f->stopped);
}

void rules_stopped_evidence(const struct facts *f, struct buf *b)
{
	buf_printf(b, "kill -CONT %" PRIu32 " continues it, unless a debugger holds it", f->stopped_tgid);
}
