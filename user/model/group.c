// SPDX-License-Identifier: Apache-2.0
/* Groups: rows with more than a name, and how their ids are made. */
#include "model/priv.h"

#include <errno.h>
#include <string.h>

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	h = (h ^ h >> 32) * 0xd6e8feb86659fd93ull;
	return h ^ h >> 32;
}

/* Ids of groups are even, have bit 62 and lack bit 63. No id of a name looks like that. */
uint64_t mdl_group_id(const struct mxbpf_group *g)
{
	uint64_t h;

	if (!g->args_id && !g->stack_id && !g->layer_id && !g->traits && !g->tid && !g->range_id)
		return g->name_id;
	h = mix(mix(mix(0, g->name_id), g->args_id), g->stack_id);
	if (g->layer_id || g->traits || g->tid || g->range_id) /* without them, ids are those of older recordings */
		h = mix(mix(h, g->layer_id), (uint64_t)g->tid << 32 | g->traits);
	if (g->range_id)
		h = mix(h, g->range_id);
	return (h & ~(1ull << 63 | 1)) | 1ull << 62;
}

const struct mxbpf_group *group_find(const struct mdl *m, uint64_t id)
{
	uint64_t *at = m->groups.len ? hash_get(&m->group_index, id, 0) : NULL;

	return at ? buf_at(&m->groups, struct mxbpf_group, *at) : NULL;
}

int group_define(struct mdl *m, const struct mxbpf_group *g)
{
	struct mxbpf_group own = {0};
	uint64_t *at;

	if (group_find(m, g->id))
		return 0;
	memcpy(&own, g, g->h.size < sizeof(own) ? g->h.size : sizeof(own));
	own.h = (struct mxbpf_rec){.kind = MXBPF_GROUP, .size = sizeof(own)};
	if (buf_put(&m->groups, &own, sizeof(own)))
		return -ENOMEM;
	at = hash_put(&m->group_index, g->id, 0);
	if (!at)
		return -ENOMEM;
	*at = buf_count(&m->groups, struct mxbpf_group) - 1;
	return 0;
}

void groups_fini(struct mdl *m)
{
	buf_fini(&m->groups);
	hash_fini(&m->group_index);
}
