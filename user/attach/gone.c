// SPDX-License-Identifier: Apache-2.0
/* Removes entries of ended processes and of closed windows from BPF's maps, to make room for new ones. */
#include <bpf/bpf.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "attach/priv.h"

#define GONE_BATCH 256

/*
 * Maps whose entries are removed only by their process. open_keys is not among them: calls that were open when a
 * process died are reported at the end. Keys of maps with by_window have the number of the window in their uppermost
 * byte; see fetch_link() in bpf/common.bpf.h.
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

static bool has_gone(const char *key, size_t i, uint32_t tgid, uint8_t window)
{
	uint64_t object;
	uint32_t whose;

	memcpy(&whose, key + maps[i].tgid_at, sizeof(whose));
	memcpy(&object, key, sizeof(whose) + (maps[i].by_window ? sizeof(whose) : 0));
	return whose == tgid || (maps[i].by_window && object >> 56 != window);
}

/* Reads the map in batches. A walk from key to key would start over at each key that BPF removes meanwhile. */
static void sweep(const struct bpf_map *map, size_t i, uint32_t tgid, uint8_t window)
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
			if (has_gone(keys + k * key_bytes, i, tgid, window))
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
			sweep(map, i, (uint32_t)tgid, window);
	}
}
