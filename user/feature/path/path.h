/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What held an iteration up, thread by thread and stream by stream (its critical path), and which kernels operators
 * launch one after another. Both are made of the latest calls and activities, which are kept for it.
 */
#ifndef FEATURE_PATH_H
#define FEATURE_PATH_H

#include "model/feature.h"
#include "mxbpf_queue.h"

extern const struct mdl_feature feature_path;
extern const struct view_sheet sheet_gpu_path, sheet_gpu_sequences;

/* Appends struct mxbpf_gpu_path: one path for each process, in no order. Returns 0 or -ENOMEM. */
int path_parts(const struct mdl *m, struct buf *out);

struct path_sequence {
	struct mxbpf_gpu_sequence a;
	uint64_t names[MXBPF_SEQUENCE_MAX];
};

/* Appends struct path_sequence in no order. Returns 0 or -ENOMEM. */
int path_sequences(const struct mdl *m, struct buf *out);

#endif
