// SPDX-License-Identifier: Apache-2.0
/* --agent: operators are seen by code inside the process. */
#include <errno.h>

#include "base/fmt.h"
#include "session/priv.h"
#include "source/account.h"
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
	ses->accounts = acc_new(ses->rings[ATT_SWITCHES]);
	/* The last source: what the others say of the same time comes first. */
	ses->agent_source = src_add_agent(ses->hub, ses->agent, (uint32_t)tgt_pid(first->tgt));
	if (!ses->accounts || !ses->agent_source)
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

void ses_agent_end(struct session *ses)
{
	uint64_t ns = ses->agent ? agt_cleared_ns(ses->agent) : 0;
	uint64_t threads = ses->accounts ? acc_forgotten(ses->accounts) : 0;
	char after[24], n[32];

	if (threads)
		ses_warn(ses,
			 "accounts and bytes of calls that were open in %s threads may lack their beginning: there "
			 "were more than %u threads",
			 fmt_count(threads, n), ACC_THREADS_MAX);
	if (!ns)
		return;
	fmt_ns(ns > ses->about.start_mono_ns ? ns - ses->about.start_mono_ns : 0, after);
	ses_warn(ses,
		 "the program removed all callbacks, the agent's too, %s after the start of the window; operators "
		 "that it called later are not recorded",
		 after);
	if (ses_add_note(&ses->about, "agent",
			 "the program removed the agent's callbacks %s after the start of the window; operators that "
			 "it called later are not recorded",
			 after) &&
	    !ses->write_error)
		ses->write_error = -ENOMEM;
}

/* 0 or -ENOMEM. */
static int join_one(struct session *ses, const struct mxbpf_rec *r)
{
	struct mxbpf_span s;
	int err;

	if (r->kind != MXBPF_SPAN)
		return buf_put(&ses->joined, r, r->size);
	s = kind_span(r);
	err = acc_fill(ses->accounts, &s);
	return err ? err : buf_put(&ses->joined, &s, s.h.size);
}

bool ses_agent_join(struct session *ses, unsigned number, void **recs, size_t *bytes)
{
	bool agent = number == ses->agent_source->number;
	bool switches = ses->rings[ATT_SWITCHES] && number == ses->rings[ATT_SWITCHES]->number;
	const struct mxbpf_rec *r;
	uint64_t n = 0;
	size_t pos = 0;
	int err = 0;

	ses->joined.len = 0;
	for (; !err && (r = kind_next(*recs, *bytes, &pos)); n++)
		err = agent ? join_one(ses, r) : acc_take(ses->accounts, r);
	ses_took(ses, number, switches ? n : 0, err);
	if (!agent)
		return !switches;
	acc_forget_ended(ses->accounts);
	*recs = ses->joined.data;
	*bytes = ses->joined.len;
	return *bytes;
}
