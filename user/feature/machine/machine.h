/* SPDX-License-Identifier: Apache-2.0 */
/* Gauges of the machine and of the control group of the target. */
#ifndef FEATURE_MACHINE_H
#define FEATURE_MACHINE_H

#include "model/feature.h"

extern const struct mdl_feature feature_machine;

#endif
