// SPDX-License-Identifier: Apache-2.0
/* Removes entries of ended processes and of closed windows from BPF's maps, to make room for new ones. */
#include <bpf/bpf.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "attach/priv.h"
#include "attach/slice.h"

#define GONE_BATCH 256

/*
 * Maps whose entries are removed only by their process. open_keys is not among them: calls that were open when a
 * process died are reported at the end, and att_slice_forget() removes those of slices. Keys of maps with by_window
 * have the number of the window in their uppermost byte; see fetch_link() in bpf/common.bpf.h.
 */
static const struct {
	size_t map_at; /* offset in struct mxbpf_bpf */
	size_t tgid_at;
	bool by_window;
} maps[] = {
	{offsetof(struct mxbpf_bpf, maps.blocks), offsetof(struct mxbpf_key, tgid), false},
	{offsetof(struct mxbpf_bpf, maps.mark_values), offsetof(struct mxbpf_key, tgid), false},
	{offsetof(struct mxbpf_bpf, maps.step_ops), offsetof(struct mxbpf_key, tgid), false},
	{offsetof(struct mxbpf_bpf, maps.teams), offsetof(struct mxbpf_team_key, tgid), false},
	{offsetof(struct mxbpf_bpf, maps.life_last), 0, false},
	{offsetof(struct mxbpf_bpf, maps.life_pushed), offsetof(struct mxbpf_life_key, tgid), true},
	{offsetof(struct mxbpf_bpf, maps.life_ready), offsetof(struct mxbpf_life_key, tgid), true},
};

struct going {
	size_t i; /* in maps[] */
	uint32_t tgid;
	uint8_t window;
};

/* Returns true if an entry can go. g NULL: one of map open_keys. */
static bool has_gone(const struct going *g, const char *key, const char *value)
{
	uint64_t object;
	uint32_t whose;

	if (!g)
		return ((const struct mxbpf_frame *)(const void *)value)->flags & MXBPF_FRAME_SLICED;
	memcpy(&whose, key + maps[g->i].tgid_at, sizeof(whose));
	memcpy(&object, key, sizeof(whose) + (maps[g->i].by_window ? sizeof(whose) : 0));
	return whose == g->tgid || (maps[g->i].by_window && object >> 56 != g->window);
}

/* Reads the map in batches. A walk from key to key would start over at each key that BPF removes meanwhile. */
static void gone_sweep(const struct bpf_map *map, const struct going *g)
{
	const size_t key_bytes = bpf_map__key_size(map), value_bytes = bpf_map__value_size(map);
	char *keys = malloc(GONE_BATCH * (key_bytes + value_bytes));
	int fd = bpf_map__fd(map), err = keys ? 0 : -1;
	__u32 at, got, k;
	bool first = true;

	while (!err) {
		got = GONE_BATCH;
		err = bpf_map_lookup_batch(fd, first ? NULL : &at, &at, keys, keys + GONE_BATCH * key_bytes, &got,
					   NULL);
		for (k = 0; k < got && (!err || err == -ENOENT); k++) /* -ENOENT marks the last batch */
			if (has_gone(g, keys + k * key_bytes, keys + GONE_BATCH * key_bytes + k * value_bytes))
				bpf_map_delete_elem(fd, keys + k * key_bytes);
		first = false;
	}
	free(keys);
}

void att_forget(struct att *a, pid_t tgid)
{
	struct bpf_map *map;
	uint8_t window = a->skel->bss->activation;
	size_t i;

	if (!tgid && window == a->window)
		return;
	a->window = window;
	for (i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		memcpy(&map, (const char *)a->skel + maps[i].map_at, sizeof(map));
		if (tgid || maps[i].by_window)
			gone_sweep(map, &(struct going){i, (uint32_t)tgid, window});
	}
}

void att_slice_forget(struct att *a)
{
	gone_sweep(a->skel->maps.open_keys, NULL);
}
