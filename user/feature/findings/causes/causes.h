/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Causes. Each file of this folder is one cause, or a few that share their facts: make_NAME() reads the tables into its
 * struct in struct cause_facts, and rules_NAME says it (see feature/findings/findings.h). A struct that is zeroed says
 * that nothing was found.
 */
#ifndef FEATURE_FINDINGS_CAUSES_CAUSES_H
#define FEATURE_FINDINGS_CAUSES_CAUSES_H

#include <stdbool.h>
#include <stdint.h>

#include "feature/findings/line.h"

/* All times in ns, all shares between 0 and 1. */
struct cause_facts {
	char none; /* a struct is not empty */
};

#endif
