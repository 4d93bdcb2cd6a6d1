// SPDX-License-Identifier: Apache-2.0
#include "feature/threads/threads.h"

const struct mdl_feature feature_threads = {
	.bit = THREADS_BIT,
	.session = &threads_session,
	.tables = {{&threads_table}},
};
