/* SPDX-License-Identifier: Apache-2.0 */
/* Parallel regions of OpenMP (--omp). */
#ifndef FEATURE_OMP_H
#define FEATURE_OMP_H

#include "model/feature.h"
#include "mxbpf_omp.h"

extern const struct mdl_feature feature_omp;
extern const struct ses_feature omp_session;
extern const struct cmd_option omp_option;
extern const struct view_sheet sheet_omp;
extern const struct view_trace_feature omp_trace;

/* Returns *n rows in no order: the parallel regions that spans of one class and name opened in one process. */
const struct mxbpf_team *const *omp_teams(const struct mdl *m, size_t *n);
/* Adds `from` to `to`, which keeps its name and its process. */
void omp_team_merge(struct mxbpf_team *to, const struct mxbpf_team *from);

#endif
