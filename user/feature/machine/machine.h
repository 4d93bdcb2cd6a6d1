/* SPDX-License-Identifier: Apache-2.0 */
/* Gauges of the machine and of the control group of the target. */
#ifndef FEATURE_MACHINE_H
#define FEATURE_MACHINE_H

#include "feature/machine/gauge.h"
#include "model/feature.h"

extern const struct mdl_feature feature_machine;
extern const struct view_trace_feature machine_trace;
extern const struct ses_feature machine_session;

/* Returns *n rows in the order of their first readings. */
const struct machine_row *machine_rows(const struct mdl *m, size_t *n);
/* Returns the row of a gauge in a scope, or NULL if it was not read. */
const struct machine_row *machine_row(const struct mdl *m, uint16_t id, uint16_t scope);
/* Drops the rows of control groups, in whose place those of others come. Returns 0 or -ENOMEM. */
int machine_drop_groups(struct mdl *m);
/* Folds the last reading of a live session into a model: it begins the next interval. With the lock. 0 or -ENOMEM. */
int machine_again(const struct session *ses, struct mdl *m);
/* The control group of a gauge, or "" if it is of the machine. Borrowed and hostile, of *len bytes. */
const char *machine_scope_name(const struct mdl *m, uint16_t scope, size_t *len);

extern const struct view_sheet sheet_machine;

#endif
