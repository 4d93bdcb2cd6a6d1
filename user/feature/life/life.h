/* SPDX-License-Identifier: Apache-2.0 */
/* Operators from push to completion (--life). */
#ifndef FEATURE_LIFE_H
#define FEATURE_LIFE_H

#include "model/feature.h"

extern const struct mdl_feature feature_life;
extern const struct view_sheet sheet_life, sheet_life_waits;

#endif
