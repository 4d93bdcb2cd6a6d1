/* SPDX-License-Identifier: Apache-2.0 */
/* User annotations: counters and instants of the program. */
#ifndef FEATURE_MARKS_H
#define FEATURE_MARKS_H

#include "model/feature.h"
#include "mxbpf_mark.h"

extern const struct mdl_feature feature_marks;
extern const struct view_sheet sheet_marks_values, sheet_marks_instants;
extern const struct view_trace_feature marks_trace;

/* The domain of a user annotation, or "". Borrowed and hostile, of *len bytes. */
const char *marks_domain(const struct mdl *m, uint64_t name_id, size_t *len);

/*
 * Return *n rows in no order: the user counters, and the instants, of one process by name. The text of kind
 * MXBPF_NAME_DOMAIN of a name is its domain.
 */
extern const struct tbl_def marks_values_table;	  /* of struct mxbpf_value */
extern const struct tbl_def marks_instants_table; /* of struct mxbpf_instant */
const struct mxbpf_value *marks_values(const struct mdl *m, size_t *n);
const struct mxbpf_instant *marks_instants(const struct mdl *m, size_t *n);
/* Returns the calls per second between first_ns and last_ns of a row. 0: these are not known. */
double marks_rate(const struct mdl_row *r);

#endif
