/* SPDX-License-Identifier: Apache-2.0 */
/* Iterations of the training loop. */
#ifndef FEATURE_STEPS_H
#define FEATURE_STEPS_H

#include "model/feature.h"

extern const struct mdl_feature feature_steps;
extern const struct view_sheet sheet_steps_loops, sheet_steps_slowest;

#endif
