/* SPDX-License-Identifier: Apache-2.0 */
/* What a runtime supports, by its adapter alone. Options ask this for their help. */
#ifndef PLAN_ABILITY_H
#define PLAN_ABILITY_H

#include <stdbool.h>

#include "plan/probe.h"

bool plan_has_api(const struct adp *a);	     /* a C API */
bool plan_has_lives(const struct adp *a);    /* operators that wait between push and start */
bool plan_has_layers(const struct adp *a);   /* operators that know their model layer */
bool plan_has_agent(const struct adp *a);    /* callbacks for the agent */
bool plan_has_profiler(const struct adp *a); /* a profiler that --follow-app can follow */
bool plan_has_roles(const struct adp *a);    /* processes with roles in a distributed job */

/* Returns the name of role i of all runtimes, or NULL after the last. */
const char *plan_role_name(unsigned i);

#endif
