// SPDX-License-Identifier: Apache-2.0
/* --agent: operators are seen by code inside the process. */
#include <errno.h>

#include "base/fmt.h"
#include "session/priv.h"
#include "source/agent.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

int ses_agent_options(const struct session *ses, struct err *e)
{
	const struct ses_opts *o = ses->o;
	const struct {
		bool asked;
		const char *option;
	} others[] = {
		{o->stats || o->stats_check, "--stats"},
		{o->iterations, "--iterations"},
		{o->follow_app, "--follow-app"},
		{o->sample_hz, "--sample"},
		{o->counters, "--counters"},
		{o->omp, "--omp"},
		{o->memory, "--memory"},
		{o->sched, "--sched"},
		{o->details & MXBPF_DETAIL_STACK, "--py-stacks"},
		{o->details & MXBPF_DETAIL_ARGS, "--shapes"},
		{o->details & MXBPF_DETAIL_LAYER, "--layers"},
		{o->details & MXBPF_DETAIL_SEQ, "--backward"},
	};
	unsigned i;

	if (!o->agent)
		return 0;
	for (i = 0; i < COUNT(others); i++)
		if (others[i].asked)
			return err_set(e, ERR_USAGE, -ENOTSUP,
				       "%s needs probes at the start of each operator, which --agent is there to save",
				       others[i].option);
	if (o->command)
		return err_set(e, ERR_USAGE, -ENOTSUP, "--agent needs a process that runs: --pid");
	if (!(o->probes & PROBE_OP))
		return err_set(e, ERR_USAGE, -EINVAL,
			       "--agent sees operators: --probes without op leaves it nothing to do");
	return 0;
}

int ses_agent(struct session *ses, const struct ses_target *of, struct err *e)
{
	return ses->o->agent ? agt_usable(&of->plan, of->tgt, e) : 0;
}

int ses_agent_open(struct session *ses, struct err *e)
{
	const struct ses_target *first = &ses->targets[0];
	char pause[24], memory[24];

	if (!ses->o->agent)
		return 0;
	if (agt_open(&first->plan, first->tgt, (uint32_t)ses->o->ring_bytes, &ses->agent, e))
		return e->code;
	if (!src_add_agent(ses->hub, ses->agent, (uint32_t)tgt_pid(first->tgt)))
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	if (agt_injected(ses->agent)->stops)
		ses_note(ses, "the agent is in process %d: one thread was held up for %s; it takes up to %s there",
			 tgt_pid(first->tgt), fmt_ns(agt_injected(ses->agent)->pause_ns, pause),
			 fmt_bytes(agt_memory_max(), memory));
	else
		ses_note(ses, "the agent was in process %d already", tgt_pid(first->tgt));
	return 0;
}

void ses_agent_take(struct session *ses, bool on)
{
	if (ses->agent)
		agt_activate(ses->agent, on);
}
