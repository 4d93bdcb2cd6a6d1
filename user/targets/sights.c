// SPDX-License-Identifier: Apache-2.0
/* The queue of what the kernel told of processes and follow.c has not handled yet. */
#include <string.h>

#include "targets/follow.h"

bool sights_next(struct buf *queue, struct sight *at)
{
	if (!queue->len)
		return false;
	*at = *buf_at(queue, struct sight, 0);
	queue->len -= sizeof(*at);
	memmove(queue->data, queue->data + sizeof(*at), queue->len);
	return true;
}

struct sight *sights_stopped(struct buf *queue, uint32_t tgid)
{
	size_t i;

	for (i = 0; i < buf_count(queue, struct sight); i++)
		if (buf_at(queue, struct sight, i)->seen.tgid == tgid && buf_at(queue, struct sight, i)->seen.stopped)
			return buf_at(queue, struct sight, i);
	return NULL;
}

bool sights_cover(struct buf *queue, const struct mxbpf_sighting *seen)
{
	size_t i = buf_count(queue, struct sight);

	while (i && buf_at(queue, struct sight, i - 1)->seen.tgid != seen->tgid)
		i--;
	return i && seen->kind == MXBPF_SIGHT_MAPPED && !seen->stopped &&
	       buf_at(queue, struct sight, i - 1)->seen.kind == MXBPF_SIGHT_MAPPED;
}
