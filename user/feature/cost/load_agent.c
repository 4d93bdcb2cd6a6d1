// SPDX-License-Identifier: Apache-2.0
/*
 * What the agent costs, measured in the job: the time between two steps of an optimizer while the agent records, and
 * for a moment after the window, in which it only notes these steps.
 */
#include <stdlib.h>

#include "feature/cost/load_agent.h"
#include "feature/neighbours/read.h"
#include "session/priv.h"

#define RECENT_NS (2 * NS_PER_S) /* the machine's speed changes, so only the end of the window is compared */

/* The thread of most beats from `from_ns` on. */
static uint32_t busiest(const struct mxbpf_agent_beat *b, int n, uint64_t from_ns)
{
	uint32_t tid = 0;
	int i, lead = 0; /* of a thread that has more than half of them, which it has at the end */

	for (i = 0; i < n; i++) {
		if (b[i].ns < from_ns)
			continue;
		tid = lead ? tid : b[i].tid;
		lead += b[i].tid == tid ? 1 : -1;
	}
	return tid;
}

/* The process may have written anything. */
static bool is_interval(const struct mxbpf_agent_beat *from, const struct mxbpf_agent_beat *to, uint64_t now_ns)
{
	return to->ns > from->ns && to->ns <= now_ns + MXBPF_AGENT_CLOCK_AHEAD_NS && to->cpu_ns > from->cpu_ns &&
	       to->cpu_ns - from->cpu_ns <= to->ns - from->ns + MXBPF_AGENT_CLOCK_AHEAD_NS;
}

void agent_beats_add(const struct mxbpf_agent_beat *b, int n, const struct agent_beats_of *of, struct mxbpf_beat *sum)
{
	const struct mxbpf_agent_beat *last = NULL;
	int i;

	for (i = 0; i < n; i++) {
		if (b[i].tid != of->tid || b[i].ns < of->from_ns ||
		    (b[i].registered == MXBPF_AGENT_REGISTERED_BEATS) != of->rest)
			continue;
		if (last && is_interval(last, &b[i], of->now_ns))
			mxbpf_beat_add(sum, b[i].ns - last->ns, b[i].cpu_ns - last->cpu_ns);
		last = &b[i];
	}
}

struct mxbpf_beat agent_beat(struct session *ses, struct agent_phase *p, bool rest)
{
	struct mxbpf_agent_beat *b = malloc(sizeof(*b) * MXBPF_AGENT_BEATS);
	const int n = b ? agt_beats(ses->agent.first, rest, b) : 0;
	struct mxbpf_beat beat = {.ip = 1, .tgid = (uint32_t)tgt_pid(ses->targets[0].tgt)};
	const uint64_t now = clock_ns(CLOCK_MONOTONIC), recent_ns = now > RECENT_NS ? now - RECENT_NS : 0;
	const uint64_t from_ns = p->from_ns > recent_ns ? p->from_ns : recent_ns;
	uint64_t runq_ns;

	p->tid = p->tid ? p->tid : busiest(b, n, from_ns);
	agent_beats_add(b, n, &(struct agent_beats_of){p->tid, rest, from_ns, now}, &beat);
	free(b);
	runq_ns = neighbours_runq((pid_t)beat.tgid, (pid_t)p->tid);
	if (!p->runq_at_ns) {
		p->runq_at_ns = now;
		p->runq_ns = runq_ns;
	} else if (now > p->runq_at_ns && runq_ns > p->runq_ns) { /* a thread that has ended has none */
		beat.runq_ns =
			(uint64_t)((double)(runq_ns - p->runq_ns) * (double)beat.ns / (double)(now - p->runq_at_ns));
	}
	beat.tid = p->tid;
	return beat;
}
