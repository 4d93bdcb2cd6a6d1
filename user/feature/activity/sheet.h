/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that several sheets of this feature call. */
#ifndef FEATURE_ACTIVITY_SHEET_H
#define FEATURE_ACTIVITY_SHEET_H

#include "base/hash.h"
#include "view/gpu.h"

/*
 * sheet_graphs.c: adds up what graphs ran, by the calls that captured it. gpu_graph_sums() returns 0 or -ENOMEM;
 * gpu_graph_sum() returns the time of the calls of a row.
 */
int gpu_graph_sums(const struct mdl *m, struct hash *sums);
uint64_t gpu_graph_sum(const struct hash *sums, const struct mxbpf_agg_gpu_work *row);

#endif
