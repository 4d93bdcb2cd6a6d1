// SPDX-License-Identifier: Apache-2.0
#include "feature/threads/threads.h"

const struct thread_use *threads_use_of(const struct mdl *m, uint32_t tgid, uint32_t tid)
{
	size_t n, i;
	const struct thread_use *u = mdl_table_rows(m, &feature_threads, &threads_table, &n);

	for (i = 0; i < n; i++)
		if (u[i].tgid == tgid && u[i].tid == tid)
			return &u[i];
	return NULL;
}

const struct mdl_feature feature_threads = {
	.bit = THREADS_BIT,
	.session = &threads_session,
	.tables = {{&threads_table}},
};
