// SPDX-License-Identifier: Apache-2.0
/* --omp: parallel regions by the name of the span that opened them. A record is a row of one or more regions. */
#include "feature/omp/omp.h"

const struct mdl_feature feature_omp = {
	.option = &omp_option,
	.session = &omp_session,
	.trace = &omp_trace,
	.tables = {{&omp_teams, MXBPF_TEAM}},
};
