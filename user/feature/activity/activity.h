/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels and copies on devices. */
#ifndef FEATURE_ACTIVITY_H
#define FEATURE_ACTIVITY_H

#include "model/feature.h"

extern const struct mdl_feature feature_activity;
extern const struct view_sheet sheet_activity;

#endif
