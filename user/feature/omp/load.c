// SPDX-License-Identifier: Apache-2.0
/* --omp: parallel regions of OpenMP's. */
#include "feature/omp/omp.h"
#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include "session/priv.h"

#define CPUS_MAX 8192

/* That the process may use; at least 1. */
static uint32_t cpus_of(pid_t pid)
{
	cpu_set_t *set = CPU_ALLOC(CPUS_MAX);
	size_t bytes = CPU_ALLOC_SIZE(CPUS_MAX);
	int n = set && !sched_getaffinity(pid, bytes, set) ? CPU_COUNT_S(bytes, set) : 0;

	CPU_FREE(set);
	return n > 0 ? (uint32_t)n : 1;
}

int ses_omp(struct session *ses, const struct ses_target *of, struct err *e)
{
	const struct plan_probe *p = plan_teams(&of->plan);

	if (!ses->o->omp)
		return 0;
	if (p->reason[0])
		return err_set(e, ERR_TARGET, -ENOENT, "--omp: %s", p->reason);
	if (access("/proc/self/schedstat", F_OK))
		return err_set(e, ERR_PRIVILEGE, -ENOTSUP,
			       "--omp: this kernel does not count what its tasks wait for (CONFIG_SCHED_INFO)");
	ses->about.team_cpus = cpus_of(tgt_pid(of->tgt));
	return 0;
}
