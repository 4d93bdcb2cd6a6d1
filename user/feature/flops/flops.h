/* SPDX-License-Identifier: Apache-2.0 */
/* Floating-point operations of calls. */
#ifndef FEATURE_FLOPS_H
#define FEATURE_FLOPS_H

#include "model/feature.h"

#endif
