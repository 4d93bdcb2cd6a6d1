// SPDX-License-Identifier: Apache-2.0
/* What spans counted, added up. */
#include "feature/counters/counters.h"
#include <string.h>

#include "model/priv.h"

void counters_merge(struct mxbpf_counter_sum *to, const struct mxbpf_counter_sum *from)
{
	unsigned i;

	add_sat(&to->spans, from->spans);
	add_sat(&to->scaled, from->scaled);
	for (i = 0; i < MXBPF_COUNTERS_MAX; i++)
		add_sat(&to->value[i], from->value[i]);
}

void counters_add(struct mxbpf_counter_sum *to, const struct mxbpf_span *s)
{
	struct mxbpf_counter_sum one = {.spans = 1, .scaled = !!(s->flags & MXBPF_SPAN_SCALED)};

	if (s->counters[0] == MXBPF_COUNTER_NONE)
		return;
	memcpy(one.value, s->counters, sizeof(one.value));
	counters_merge(to, &one);
}
