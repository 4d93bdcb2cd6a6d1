/* SPDX-License-Identifier: Apache-2.0 */
/* User annotations: counters and instants of the program. */
#ifndef FEATURE_MARKS_H
#define FEATURE_MARKS_H

#include "model/feature.h"

extern const struct mdl_feature feature_marks;
extern const struct view_sheet sheet_marks_values, sheet_marks_instants;

#endif
