/* SPDX-License-Identifier: Apache-2.0 */
/* Words of iterations, for sheets and timelines. */
#ifndef FEATURE_STEPS_SHEET_H
#define FEATURE_STEPS_SHEET_H

#include "mxbpf_step.h"

extern const char *const steps_tolds[MXBPF_STEP_WHATS]; /* what ends an iteration */

#endif
