/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels and copies on devices. */
#ifndef FEATURE_ACTIVITY_H
#define FEATURE_ACTIVITY_H

#include "model/feature.h"
#include "mxbpf_track.h"

extern const struct mdl_feature feature_activity;
extern const struct view_sheet sheet_activity;
extern const struct view_trace_feature activity_trace;

/* Returns *n rows in no order: the activities of one process, device, class and name. The agent reports them. */
const struct mxbpf_agg_activity *activity_rows(const struct mdl *m, size_t *n);

#endif
