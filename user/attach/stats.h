/* SPDX-License-Identifier: Apache-2.0 */
/* The maps in which --stats adds up. */
#ifndef ATTACH_STATS_H
#define ATTACH_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "mxbpf_stats.h"

struct mxbpf_bpf;

struct stats {
	int rows_fd, mems_fd; /* the maps in use; -1: none */
	int rows_at, mems_at; /* the maps of maps through which BPF finds them; borrowed */
	uint32_t rows_max;
};

/* Call these before and after loading. Without `mode` the maps are not created. */
void stats_choose(struct mxbpf_bpf *skel, enum mxbpf_stats mode);
int stats_open(struct stats *s, const struct mxbpf_bpf *skel, uint32_t rows_max);
void stats_close(struct stats *s);

typedef void (*stats_row_fn)(void *ctx, const struct mxbpf_stat_key *key, const struct mxbpf_stat *row);
typedef void (*stats_mem_fn)(void *ctx, const struct mxbpf_stat_mem_key *key, const struct mxbpf_stat_mem *mem);

int stats_take_rows(struct stats *s, stats_row_fn fn, void *ctx);
int stats_take_mems(struct stats *s, bool keep, stats_mem_fn fn, void *ctx);

#endif
