/* SPDX-License-Identifier: Apache-2.0 */
/* Only for this room. */
#ifndef RECORDS_PRIV_H
#define RECORDS_PRIV_H

#include "mxbpf_collective.h"
#include "mxbpf_cost.h"
#include "mxbpf_gauge.h"
#include "mxbpf_graph.h"
#include "mxbpf_memory.h"
#include "mxbpf_kv.h"
#include "mxbpf_kernels.h"
#include "mxbpf_life.h"
#include "mxbpf_loss.h"
#include "mxbpf_mark.h"
#include "mxbpf_lines.h"
#include "mxbpf_neighbours.h"
#include "mxbpf_range.h"
#include "mxbpf_sample.h"
#include "mxbpf_sched.h"
#include "mxbpf_step.h"
#include "mxbpf_omp.h"
#include "mxbpf_roofline.h"
#include "mxbpf_track.h"
#include "records/kinds.h"

/* Returns true if the record lies within the bytes that are left. */
static inline bool kind_is_whole(const struct mxbpf_rec *r, size_t left)
{
	return left >= sizeof(*r) && r->size >= sizeof(*r) && r->size % 8 == 0 && r->size <= left;
}

/* Return true if the field values of a record of that kind are valid. The caller has checked the size. */
bool fits_span(const struct mxbpf_rec *r);
bool fits_table(const struct mxbpf_rec *r);
bool fits_agg(const struct mxbpf_rec *r);
bool fits_agg_mem(const struct mxbpf_rec *r);
bool fits_agg_cost(const struct mxbpf_rec *r);
bool fits_agg_estimate(const struct mxbpf_rec *r);
bool fits_partial(const struct mxbpf_rec *r);
bool fits_agg_account(const struct mxbpf_rec *r);
bool fits_slow(const struct mxbpf_rec *r);
bool fits_agg_counters(const struct mxbpf_rec *r);
bool fits_tally(const struct mxbpf_rec *r);
bool fits_edge(const struct mxbpf_rec *r);
bool fits_range(const struct mxbpf_rec *r);
bool fits_sched(const struct mxbpf_rec *r);
bool fits_off_cpu(const struct mxbpf_rec *r);
bool fits_sample(const struct mxbpf_rec *r);
bool fits_team(const struct mxbpf_rec *r);
bool fits_kv(const struct mxbpf_rec *r);
bool fits_mem_owner(const struct mxbpf_rec *r);
bool fits_mem_failed(const struct mxbpf_rec *r);
bool fits_mem_holder(const struct mxbpf_rec *r);
bool fits_collector(const struct mxbpf_rec *r);
bool fits_alloc(const struct mxbpf_rec *r);
bool fits_instant(const struct mxbpf_rec *r);
bool fits_agg_extent(const struct mxbpf_rec *r);
bool fits_name(const struct mxbpf_rec *r);
bool fits_open(const struct mxbpf_rec *r);
bool fits_wait(const struct mxbpf_rec *r);
bool fits_step(const struct mxbpf_rec *r);
bool fits_iteration(const struct mxbpf_rec *r);
bool fits_activity(const struct mxbpf_rec *r);
bool fits_launch(const struct mxbpf_rec *r);
bool fits_agg_activity(const struct mxbpf_rec *r);
bool fits_agg_gpu_work(const struct mxbpf_rec *r);
bool fits_graph_node(const struct mxbpf_rec *r);
bool fits_agg_gpu_graph(const struct mxbpf_rec *r);
bool fits_agg_gpu_idle(const struct mxbpf_rec *r);
bool fits_agg_gpu_launch(const struct mxbpf_rec *r);
bool fits_gpu_idle(const struct mxbpf_rec *r);
bool fits_gpu_path(const struct mxbpf_rec *r);
bool fits_gpu_sequence(const struct mxbpf_rec *r);
bool fits_kernel_metric(const struct mxbpf_rec *r);
bool fits_collective(const struct mxbpf_rec *r);
bool fits_agg_collective(const struct mxbpf_rec *r);

/* Returns true if BPF sends a sample like this in `size` bytes. */
bool sent_sample(const struct mxbpf_rec *r, size_t size);

#endif
