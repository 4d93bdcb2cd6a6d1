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

/* Rows are struct mxbpf_team: the regions that spans of one class and name opened in one process. */
extern const struct tbl_def omp_teams;

#endif
