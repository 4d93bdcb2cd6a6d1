/* SPDX-License-Identifier: Apache-2.0 */
/* Operators over the ranks of a job: the least, the median and the most that a rank spends in each. */
#ifndef FEATURE_RANKS_H
#define FEATURE_RANKS_H

struct view_sheet;

extern const struct view_sheet sheet_ranks;

#endif
