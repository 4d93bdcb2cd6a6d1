/* SPDX-License-Identifier: Apache-2.0 */
/* Forward operators with their backward nodes (--backward). */
#ifndef FEATURE_BACKWARD_H
#define FEATURE_BACKWARD_H

#include "model/feature.h"

extern const struct mdl_feature feature_backward;
extern const struct view_sheet sheet_backward;

#endif
