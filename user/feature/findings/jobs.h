/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs of a session, so that each has findings of its own. */
#ifndef FEATURE_FINDINGS_JOBS_H
#define FEATURE_FINDINGS_JOBS_H

#include "model/feature.h"

struct findings_job {
	const char *name; /* its label, borrowed from the session; NULL: it has none */
	uint32_t root;	  /* its eldest process */
	uint32_t tgid;	  /* the process with the most time in iterations, else the first one */
	uint64_t loop_ns; /* in iterations, of all its processes */
	uint64_t most_ns; /* of these, that of tgid */
};

/*
 * Appends the jobs whose processes have iterations, or run Python and a runtime: struct findings_job, that with the
 * most time first. Processes with the same label are a job, and so are those that descend from one process. 0 or
 * -ENOMEM.
 */
int findings_jobs(struct mdl *m, const struct mdl_session *s, struct buf *jobs);
/*
 * Returns a model of one of these jobs, in which the processes of the others are other processes. The caller frees it.
 * NULL: out of memory.
 */
struct mdl *findings_only(const struct mdl *m, const struct mdl_session *s, const struct findings_job *job);

#endif
