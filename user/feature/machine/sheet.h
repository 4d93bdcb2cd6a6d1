/* SPDX-License-Identifier: Apache-2.0 */
/* What the gauges of the machine say about slow calls, for other sheets. */
#ifndef FEATURE_MACHINE_SHEET_H
#define FEATURE_MACHINE_SHEET_H

#include <stdbool.h>

#include "model/model.h"

/* The CPU limit of a control group throttled the target long enough for the footer to say so. */
bool machine_throttled(const struct mdl *m);
/* The hypervisor took enough CPU time in the window for the footer to say so. */
bool machine_stolen(const struct mdl *m);

#endif
