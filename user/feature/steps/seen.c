// SPDX-License-Identifier: Apache-2.0
/* Calls in slices: which iterations were recorded with all their calls. */
#include <errno.h>

#include "feature/steps/loops.h"

/* A time in which all calls of a process were recorded. */
struct seen {
	uint32_t tgid;
	uint64_t from_ns, to_ns;
};

int steps_seen(struct mdl *m, uint32_t tgid, uint64_t from_ns, uint64_t to_ns)
{
	const struct seen one = {tgid, from_ns, to_ns};
	struct steps_state *state = mdl_state(m, &feature_steps);

	return state ? buf_put(&state->seen, &one, sizeof(one)) : -ENOMEM;
}

/* k: where to begin, because iterations and slices of a process are both ordered by time. */
static bool is_seen(const struct steps_state *state, const struct mxbpf_iteration *it, size_t *k)
{
	const size_t n = buf_count(&state->seen, struct seen);
	const uint64_t end_ns = steps_end_ns(it);
	const struct seen *s;

	for (; *k < n; ++*k) {
		s = buf_at(&state->seen, struct seen, *k);
		if (s->tgid == it->h.tgid && s->to_ns >= end_ns)
			return s->from_ns <= it->h.ts_ns;
	}
	return false;
}

int steps_only_seen(struct mdl *m)
{
	const struct steps_state *state = mdl_state(m, &feature_steps);
	size_t n, i, k = 0;
	struct mxbpf_iteration *it = (struct mxbpf_iteration *)steps_iterations(m, &n);

	if (!state || (!it && n))
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		if (i && (it[i].h.tgid != it[i - 1].h.tgid || it[i].tid != it[i - 1].tid))
			k = 0;
		if (!is_seen(state, &it[i], &k))
			it[i].flags &= (uint8_t) ~(MXBPF_ITERATION_PARTS | MXBPF_ITERATION_WAITS);
	}
	return 0;
}
