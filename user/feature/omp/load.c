// SPDX-License-Identifier: Apache-2.0
/* --omp in a live session. */
#include "feature/omp/omp.h"
#include "session/feature.h"
#include "session/priv.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>

#define CPUS_MAX 8192

static bool omp_asked(const struct ses_opts *o)
{
	return o->omp;
}

static void leave_out(struct ses_opts *o)
{
	o->omp = false;
}

/* How many CPUs the process may use; 1 if that cannot be read. */
static uint32_t cpus_of(pid_t pid)
{
	cpu_set_t *set = CPU_ALLOC(CPUS_MAX);
	size_t bytes = CPU_ALLOC_SIZE(CPUS_MAX);
	int n = set && !sched_getaffinity(pid, bytes, set) ? CPU_COUNT_S(bytes, set) : 0;

	CPU_FREE(set);
	return n > 0 ? (uint32_t)n : 1;
}

static int omp_check(struct session *ses, const struct ses_target *of, struct err *e)
{
	const struct plan_probe *p = plan_teams(&of->plan);

	if (p->reason[0])
		return err_set(e, ERR_TARGET, -ENOENT, "--omp: %s", p->reason);
	if (access("/proc/self/schedstat", F_OK))
		return err_set(e, ERR_PRIVILEGE, -ENOTSUP,
			       "--omp: this kernel does not record how long threads wait for a CPU (it lacks "
			       "CONFIG_SCHED_INFO); remove --omp");
	ses->about.team_cpus = cpus_of(tgt_pid(of->tgt));
	return 0;
}

static int omp_describe(struct session *ses, const struct ses_target *of, struct mdl_session *s)
{
	if (!of->plan.omp_unseen)
		return 0;
	return ses_add_note(s, "omp", "the code of %s is not understood; its OpenMP teams are not recorded",
			    of->plan.omp_unseen->path);
}

const struct ses_feature omp_session = {
	.asked = omp_asked,
	.groups = PROBE_OMP,
	.of_calls = true,
	.check = omp_check,
	.leave_out = leave_out,
	.describe = omp_describe,
};
