// SPDX-License-Identifier: Apache-2.0
/* The agent in the processes that a session follows. The first process has session/agent.c. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "feature/agents/agents.h"
#include "session/priv.h"

#define LOOK_NS	 5000000 /* interval of looks whether agents have been loaded */
#define AWAIT_NS (10 * NS_PER_S)

enum state { WAITS, CAME, FAILED };

/* A process that was found after the first one. */
struct ses_other {
	struct session *ses;
	struct agt *agt;
	struct ses_nvtx nvtx;
	uint32_t tgid;
	int state;	 /* atomic: enum state */
	struct err why;	 /* with FAILED */
	bool said, told; /* main thread: its failure, or its broken contract, was reported */
};

static struct ses_other *other_of(const struct session *ses, uint32_t tgid)
{
	uint64_t *at = hash_get(&ses->agents.others, tgid, 0);

	return at ? (struct ses_other *)(uintptr_t)*at : NULL;
}

static struct ses_other *next(const struct session *ses, size_t *pos)
{
	struct hash_entry *h = hash_next(&ses->agents.others, pos);

	return h ? (struct ses_other *)(uintptr_t)h->val : NULL;
}

/* The process has the agent, or cannot have it. Runs in the agent's thread. */
static void on_entry(void *ctx, const struct err *e)
{
	struct ses_other *o = ctx;
	char pause[24];

	if (e) {
		o->why = *e;
		__atomic_store_n(&o->state, FAILED, __ATOMIC_RELEASE);
		return;
	}
	__atomic_fetch_add(&o->ses->agents.in, 1, __ATOMIC_RELAXED);
	ses_detail(o->ses, "loaded the agent into process %u: one thread was stopped for %s (%s)", o->tgid,
		   fmt_ns(agt_injected(o->agt)->pause_ns, pause), agt_injected(o->agt)->route);
	if (agt_injected(o->agt)->beside)
		ses_warn(o->ses,
			 "ranges of NVTX of process %u may be missing, because it cannot be given a library for it: %s",
			 o->tgid, strerror(-agt_injected(o->agt)->beside));
	__atomic_store_n(&o->state, CAME, __ATOMIC_RELEASE);
}

static const char *what_of(const struct session *ses)
{
	return ses->o->agent ? "operators" : "kernels";
}

/* A process that ended before it could get the agent is no failure: what it called meanwhile is counted. */
static void agents_refuse(struct session *ses, uint32_t tgid, const struct err *why)
{
	if (why->code == -ESRCH)
		return;
	ses->agents.refused++;
	if (ses->agents.refused <= AGENTS_NAMED_MAX &&
	    ses_add_note(&ses->about, "agent", "%s of process %u are not recorded: %s", what_of(ses), tgid, why->why) &&
	    !ses->write_error)
		ses->write_error = -ENOMEM;
	if (ses->agents.refused <= AGENTS_REFUSED_AT || ses->o->verbose)
		ses_warn(ses, "%s of process %u are not recorded: %s", what_of(ses), tgid, why->why);
}

static void say_failure(struct ses_other *o)
{
	if (__atomic_load_n(&o->state, __ATOMIC_ACQUIRE) != FAILED || o->said)
		return;
	o->said = true;
	agents_refuse(o->ses, o->tgid, &o->why);
}

/* A forked child has everything where its parent has it, and there is no time to look. */
static uint64_t is_finalizing_in(struct session *ses, const struct agt_place *at)
{
	const struct ses_target *first = &ses->targets[0];
	const bool same = at->load_bias == first->plan.target.static_base;

	return ses_agent_is_finalizing(ses, same ? (uint32_t)tgt_pid(first->tgt) : (uint32_t)at->pid);
}

static struct agt_opts opts_for(struct ses_other *o, const struct agt_place *at, bool was_there)
{
	struct session *ses = o->ses;

	return (struct agt_opts){.calls = ses->o->agent,
				 .gpu = ses->o->gpu,
				 .cupti = ses->o->cupti,
				 .kernels = ses->o->metrics.pattern,
				 .kernel_launches = ses->o->metrics.each,
				 .kernel_replay = ses->o->metrics.replay,
				 .memory = ses->agent.memory && at->memory.nhooks,
				 .numbers = ses->details & MXBPF_DETAIL_SEQ,
				 .args = ses->details & MXBPF_DETAIL_ARGS,
				 .python = ses->details & MXBPF_DETAIL_STACK ? sym_python(ses->first->symbols) : NULL,
				 .stacks_of_memory = ses->o->memory,
				 .is_finalizing = is_finalizing_in(ses, at),
				 .launched = ses->launch.pid,
				 .patient = !ses->launch.pid,
				 .children = true,
				 .beside = ses_nvtx_beside(&o->nvtx),
				 .eager = was_there && !ses->launch.pid,
				 .on_entry = on_entry,
				 .ctx = o};
}

/* The process for which the plan was made, or the first one. */
static struct tgt *owner_of(const struct session *ses, const struct plan *p)
{
	unsigned i;

	for (i = 0; i < ses->ntargets; i++)
		if (&ses->targets[i].plan == p)
			return ses->targets[i].tgt;
	return ses->targets[0].tgt;
}

static int open_and_add(struct ses_other *o, const struct plan *p, const struct agt_place *at,
			const struct agt_opts *ao, struct err *e)
{
	struct session *ses = o->ses;

	if (agt_open(ses->agents.all, p, owner_of(ses, p), at, ao, &o->agt, e))
		return e->code;
	if (ses->agent.source && src_agent_join(ses->agent.source, o->agt))
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	return 0;
}

/* The agent records in this process as in the others, from the first operator that it sees. */
static void follow(struct session *ses, const struct plan *p, const struct agt_place *at, struct tgt *t, bool was_there,
		   bool anew)
{
	struct ses_other *o = calloc(1, sizeof(*o));
	uint64_t *mine =
		o && !other_of(ses, (uint32_t)at->pid) ? hash_put(&ses->agents.others, (uint64_t)at->pid, 0) : NULL;
	struct agt_opts ao;
	struct err e = {0};

	if (!mine) {
		free(o);
		return;
	}
	*o = (struct ses_other){.ses = ses, .tgid = (uint32_t)at->pid};
	*mine = (uintptr_t)o;
	if (t)
		ses_nvtx_find(ses, t, &o->nvtx);
	ao = opts_for(o, at, was_there);
	ao.anew = anew;
	if (open_and_add(o, p, at, &ao, &e)) {
		agt_close(o->agt);
		hash_del(&ses->agents.others, o->tgid, 0, NULL);
		free(o);
	} else {
		if (ses->agent.records)
			agt_activate_like(o->agt, ses->agent.first);
		else
			agt_activate(o->agt, false);
		agt_load(o->agt, &e);
	}
	if (e.code)
		agents_refuse(ses, (uint32_t)at->pid, &e);
}

void ses_agent_follow(struct session *ses, const struct plan *p, const struct agt_place *at, struct tgt *t,
		      bool was_there)
{
	follow(ses, p, at, t, was_there, false);
}

static struct agt *agent_of(const struct session *ses, uint32_t tgid)
{
	const struct ses_other *o = other_of(ses, tgid);

	return o ? o->agt : NULL;
}

/* A forked child that has started the agent itself has no thread for CUPTI. Its agent is loaded once more. */
struct agt *agents_load_gpu(struct session *ses, const struct plan *p, const struct agt_place *at, struct tgt *t,
			    bool was_there)
{
	struct agt *there = agent_of(ses, (uint32_t)at->pid);
	struct mxbpf_gpu_shared g;
	const bool anew = there && agt_gpu(there, &g) && !g.thread;

	if (anew)
		ses_agent_leave(ses, (uint32_t)at->pid);
	if (anew || !there)
		follow(ses, p, at, t, was_there, anew);
	return agent_of(ses, (uint32_t)at->pid);
}

/* A process with the agent that wrote what the agent does not write. */
static void agents_check(struct ses_other *o)
{
	const char *why = o->agt ? agt_broken(o->agt) : NULL;

	if (!why || o->told)
		return;
	o->told = true;
	agt_activate(o->agt, false);
	agt_gpu_want(o->agt, 0);
	ses_agent_tell(o->ses,
		       "process %u broke the agent's contract: %s; mxbpf reads nothing from its agent any more; what "
		       "it told before may be invented",
		       o->tgid, why);
}

static void say_end(struct ses_other *o)
{
	say_failure(o);
	agents_check(o);
	if (agt_numbers_wrong(o->agt))
		ses_agent_tell(o->ses,
			       "a call of process %u had an impossible sequence number; its later backward nodes are "
			       "not matched with forward operators",
			       o->tgid);
	if (agt_cleared_ns(o->agt))
		ses_agent_tell(o->ses,
			       "process %u removed all callbacks, including the agent's; its operators after that are "
			       "not recorded",
			       o->tgid);
}

void ses_agent_leave(struct session *ses, uint32_t tgid)
{
	struct ses_other *o = other_of(ses, tgid);

	ses_gpu_leave(ses, tgid);
	if (!o)
		return;
	if (ses->agent.source)
		src_agent_leave(ses->agent.source, o->agt);
	say_end(o);
	hash_del(&ses->agents.others, tgid, 0, NULL);
	agt_close_later(o->agt, o);
}

void ses_agents_check(struct session *ses)
{
	struct ses_other *o;
	size_t pos = 0;

	while ((o = next(ses, &pos))) {
		say_failure(o);
		agents_check(o);
	}
}

static bool any_tries(const struct session *ses)
{
	const struct ses_other *o;
	size_t pos = 0;

	while ((o = next(ses, &pos)))
		if (agt_tries(o->agt))
			return true;
	return false;
}

/* Returns the number of all processes that have the agent. */
static unsigned agents_in(const struct session *ses)
{
	return __atomic_load_n(&ses->agents.in, __ATOMIC_RELAXED) +
	       (ses->agent.first && agt_has_entered(ses->agent.first));
}

bool ses_agents_await(struct session *ses)
{
	const uint64_t begun = clock_ns(CLOCK_MONOTONIC);
	uint64_t now = begun;
	unsigned n;
	char memory[24];

	while (any_tries(ses) && now - begun < AWAIT_NS) {
		if (ses_interrupted(ses, now + LOOK_NS))
			return false;
		now = clock_ns(CLOCK_MONOTONIC);
	}
	ses_agents_check(ses);
	n = agents_in(ses);
	if (n > 1)
		ses_note(ses, "the agent is in %u processes; it uses up to %s of memory in each", n,
			 fmt_bytes(agt_memory_max(), memory));
	return !ses->agents.gpu_source || ses_gpu_await(ses);
}

void ses_agents_end(struct session *ses)
{
	struct ses_other *o;
	size_t pos = 0;
	unsigned n;

	while ((o = next(ses, &pos)))
		say_end(o);
	n = agents_in(ses);
	if (n > 1 && ses_add_note(&ses->about, "agent", "the agent was in %u processes", n) && !ses->write_error)
		ses->write_error = -ENOMEM;
	if (ses->agents.refused > AGENTS_NAMED_MAX &&
	    ses_add_note(&ses->about, "agent", "%s of %u more processes are not recorded", what_of(ses),
			 ses->agents.refused - AGENTS_NAMED_MAX) &&
	    !ses->write_error)
		ses->write_error = -ENOMEM;
}

void ses_agents_free(struct session *ses)
{
	struct ses_other *o;
	size_t pos = 0;

	while ((o = next(ses, &pos)))
		agt_close_later(o->agt, o);
	hash_fini(&ses->agents.others);
}
