/* SPDX-License-Identifier: Apache-2.0 */
/* What threads did while they were off the CPU (--sched). */
#ifndef FEATURE_SCHED_H
#define FEATURE_SCHED_H

#include "model/feature.h"

extern const struct mdl_feature feature_sched;
extern const struct view_sheet sheet_sched;

#endif
