/* SPDX-License-Identifier: Apache-2.0 */
/* Who allocated the memory of a device, and what of it is live (--memory). */
#ifndef FEATURE_MEMORY_H
#define FEATURE_MEMORY_H

#include "model/feature.h"

extern const struct mdl_feature feature_memory;
extern const struct view_sheet sheet_memory, sheet_memory_devices, sheet_memory_totals;

#endif
