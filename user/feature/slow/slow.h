/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that were much slower than their median. */
#ifndef FEATURE_SLOW_H
#define FEATURE_SLOW_H

#include "model/feature.h"

extern const struct mdl_feature feature_slow;
extern const struct view_sheet sheet_slow;

#endif
