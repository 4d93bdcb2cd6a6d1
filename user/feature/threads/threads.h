/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU time of each thread of the processes in a session, as the kernel counts it. */
#ifndef FEATURE_THREADS_H
#define FEATURE_THREADS_H

#include "model/feature.h"

struct thread_use {
	uint32_t tgid;
	uint32_t tid;	  /* 0: threads that ended before a reading could see them, and threads beyond the limit */
	uint64_t cpu_ns;  /* on a CPU */
	uint64_t runq_ns; /* ready to run, waiting for a CPU; unknown for tid 0 */
	uint64_t runs;	  /* how often it got a CPU; unknown for tid 0 */
};

#define THREADS_BIT (1u << 2) /* in mdl_session.features: the session reads threads */

extern const struct mdl_feature feature_threads;
extern const struct ses_feature threads_session;
extern const struct view_sheet sheet_threads;
extern const struct tbl_def threads_table; /* of struct thread_use */

const struct thread_use *threads_use_of(const struct mdl *m, uint32_t tgid, uint32_t tid); /* NULL: not known */

#endif
