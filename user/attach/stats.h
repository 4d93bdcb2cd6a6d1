/* SPDX-License-Identifier: Apache-2.0 */
/* The maps that --stats adds up in. */
#ifndef ATTACH_STATS_H
#define ATTACH_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "mxbpf_stats.h"

struct mxbpf_bpf;

struct stats {
	int rows_fd, mems_fd; /* the maps that are in use; -1: none */
	int rows_at, mems_at; /* where BPF finds them; borrowed */
	uint32_t rows_max;
};

/* Before and after loading. Without `mode` the maps are not made at all. */
void stats_choose(struct mxbpf_bpf *skel, enum mxbpf_stats mode);
int stats_open(struct stats *s, const struct mxbpf_bpf *skel, uint32_t rows_max);
void stats_close(struct stats *s);

typedef void (*stats_row_fn)(void *ctx, const struct mxbpf_stat_key *key, const struct mxbpf_stat *row);
typedef void (*stats_mem_fn)(void *ctx, const struct mxbpf_stat_mem_key *key, const struct mxbpf_stat_mem *mem);

int stats_take_rows(struct stats *s, stats_row_fn fn, void *ctx);
int stats_take_mems(struct stats *s, bool keep, stats_mem_fn fn, void *ctx);

#endif
