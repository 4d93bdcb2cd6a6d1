// SPDX-License-Identifier: Apache-2.0
/*
 * Ranges of PyTorch's emit_nvtx() as operators: their names have the sequence numbers by which backward nodes are
 * joined with forward operators (--backward). They are joined only in a process whose operators are not recorded
 * themselves.
 */
#include "feature/ranges/ranges.h"

#include <string.h>

#define NODE "Backward"

/* Returns whether a name ends with "Backward" and digits, as "MmBackward0" does. */
static bool is_node(const char *name, size_t len)
{
	while (len && name[len - 1] >= '0' && name[len - 1] <= '9')
		len--;
	return len >= strlen(NODE) && !memcmp(name + len - strlen(NODE), NODE, strlen(NODE));
}

/* The engine's own range around a node has the number of the node, and no operator made it. */
static bool is_of_engine(const char *name, size_t len)
{
	static const char words[] = "autograd::";

	return len >= strlen(words) && !memcmp(name, words, strlen(words));
}

void ranges_number(const struct mdl *m, const struct mxbpf_range *r, struct mxbpf_span *s)
{
	size_t len;
	const char *name = mdl_name(m, s->name_id, &len);

	/* A node without a number has the largest one. */
	if (!name || r->data.type != MXBPF_RANGE_SEQ || MXBPF_SEQ_NR(r->data.values[0]) != r->data.values[0] ||
	    is_of_engine(name, len))
		return;
	s->seq = MXBPF_SEQ(0, r->data.values[0]);
	s->flags |= MXBPF_SPAN_SEQ | (is_node(name, len) ? MXBPF_SPAN_BACKWARD : 0);
}
