// SPDX-License-Identifier: Apache-2.0
#include "attach/stats.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "attach/priv.h"

/*
 * Returns the mask for stripes of a row. More stripes than CPUs would be wasted. Details make many rows of one, so
 * there only two stripes are used.
 */
static uint32_t stripe_mask(unsigned details)
{
	int cpus = libbpf_num_possible_cpus();
	uint32_t stripes = 1, max = details ? 2 : MXBPF_STATS_STRIPES_MAX;

	while (stripes < max && (int)stripes < cpus)
		stripes *= 2;
	return stripes - 1;
}

void stats_choose(struct mxbpf_bpf *skel, enum mxbpf_stats mode)
{
	skel->rodata->cfg_stats = mode;
	skel->rodata->cfg_stripe_mask = stripe_mask(skel->rodata->cfg_details);
	bpf_map__set_autocreate(skel->maps.stat_rows, mode);
	bpf_map__set_autocreate(skel->maps.stat_mems, mode);
	bpf_map__set_autocreate(skel->maps.stat_blank, mode);
}

/* Replaces a map by an empty one. Closing the fd of the old map then frees it. */
static int put_empty(const char *name, int at, size_t key_bytes, size_t val_bytes, uint32_t max, int *fd)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_NO_PREALLOC);
	uint32_t zero = 0;
	int new_fd = bpf_map_create(BPF_MAP_TYPE_HASH, name, (uint32_t)key_bytes, (uint32_t)val_bytes, max, &opts), err;

	if (new_fd < 0)
		return new_fd;
	/* This returns when no program uses the old map any more. */
	err = bpf_map_update_elem(at, &zero, &new_fd, BPF_ANY);
	if (err) {
		close(new_fd);
		return err;
	}
	*fd = new_fd;
	return 0;
}

static int empty_rows(struct stats *s)
{
	return put_empty("rows", s->rows_at, sizeof(struct mxbpf_stat_key), sizeof(struct mxbpf_stat), s->rows_max,
			 &s->rows_fd);
}

static int empty_mems(struct stats *s)
{
	return put_empty("mems", s->mems_at, sizeof(struct mxbpf_stat_mem_key), sizeof(struct mxbpf_stat_mem),
			 MXBPF_STATS_DEVICES_MAX, &s->mems_fd);
}

int stats_open(struct stats *s, const struct mxbpf_bpf *skel, uint32_t rows_max)
{
	int err;

	*s = (struct stats){.rows_fd = -1, .mems_fd = -1, .rows_max = rows_max ? rows_max : MXBPF_STATS_ROWS_MAX};
	if (!skel->rodata->cfg_stats)
		return 0;
	s->rows_at = bpf_map__fd(skel->maps.stat_rows);
	s->mems_at = bpf_map__fd(skel->maps.stat_mems);
	err = empty_rows(s);
	return err ? err : empty_mems(s);
}

void stats_close(struct stats *s)
{
	if (s->rows_fd >= 0)
		close(s->rows_fd);
	if (s->mems_fd >= 0)
		close(s->mems_fd);
	s->rows_fd = s->mems_fd = -1;
}

int stats_take_rows(struct stats *s, stats_row_fn fn, void *ctx)
{
	struct mxbpf_stat_key key, *before = NULL;
	struct mxbpf_stat row;
	int full = s->rows_fd, err = empty_rows(s);

	if (err)
		return err;
	for (; !bpf_map_get_next_key(full, before, &key); before = &key)
		if (!bpf_map_lookup_elem(full, &key, &row))
			fn(ctx, &key, &row);
	close(full);
	return 0;
}

int stats_take_mems(struct stats *s, bool keep, stats_mem_fn fn, void *ctx)
{
	struct mxbpf_stat_mem_key key, *before = NULL;
	struct mxbpf_stat_mem mem;
	int full = s->mems_fd, err = keep ? 0 : empty_mems(s);

	if (err)
		return err;
	for (; !bpf_map_get_next_key(full, before, &key); before = &key)
		if (!bpf_map_lookup_elem(full, &key, &mem))
			fn(ctx, &key, &mem);
	if (!keep)
		close(full);
	return 0;
}
