/* SPDX-License-Identifier: Apache-2.0 */
/* Parallel regions of OpenMP (--omp). */
#ifndef FEATURE_OMP_H
#define FEATURE_OMP_H

#include "model/feature.h"

extern const struct mdl_feature feature_omp;
extern const struct view_sheet sheet_omp;

#endif
