/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes of the machine took CPU time in the window: the job, and others that it shared the CPUs with. */
#ifndef FEATURE_NEIGHBOURS_H
#define FEATURE_NEIGHBOURS_H

#include "model/feature.h"
#include "mxbpf_neighbours.h"

extern const struct mdl_feature feature_neighbours;
extern const struct ses_feature neighbours_session;
extern const struct view_sheet sheet_neighbours;

/* Rows of a model, in no order; *n their number. Borrowed until the next record is folded. */
const struct mxbpf_neighbour *neighbours_rows(const struct mdl *m, size_t *n);

#endif
