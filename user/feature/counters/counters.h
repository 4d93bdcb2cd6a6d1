/* SPDX-License-Identifier: Apache-2.0 */
/* Performance counters of each call (--counters). */
#ifndef FEATURE_COUNTERS_H
#define FEATURE_COUNTERS_H

#include "model/feature.h"

#endif
