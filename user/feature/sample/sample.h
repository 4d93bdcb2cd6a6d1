/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of the running threads (--sample). */
#ifndef FEATURE_SAMPLE_H
#define FEATURE_SAMPLE_H

#include "model/feature.h"

extern const struct mdl_feature feature_sample;
extern const struct view_sheet sheet_sample;

#endif
