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

enum state { FINE, FAILED, SAID };

/* The agent of a process that was found after the first one. It outlives what the session knows of the process. */
struct ses_agent_of {
	struct session *ses;
	struct agt *agt;
	struct ses_nvtx nvtx;
	uint32_t tgid;
	int state;	/* atomic: enum state; the agent's thread sets it to FAILED at most once */
	struct err why; /* with FAILED */
	bool told;	/* its broken contract was reported */
};

/* The process has the agent, or cannot have it. Runs in the agent's thread. */
static void on_entry(void *ctx, const struct err *e)
{
	struct ses_agent_of *o = ctx;
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

static void say_failure(struct ses_agent_of *o)
{
	if (__atomic_load_n(&o->state, __ATOMIC_ACQUIRE) != FAILED)
		return;
	o->state = SAID;
	agents_refuse(o->ses, o->tgid, &o->why);
}

/* A forked child has everything where its parent has it, and there is no time to look. */
static uint64_t is_finalizing_in(struct session *ses, const struct ses_process *p)
{
	const struct ses_target *first = &ses->targets[0];
	const bool same = p->place->at.static_base == first->plan.target.static_base;

	return ses_agent_is_finalizing(ses, same ? (uint32_t)tgt_pid(first->tgt) : p->tgid);
}

static struct agt_opts opts_for(struct ses_agent_of *o, const struct ses_process *p, bool was_there)
{
	struct session *ses = o->ses;
	struct agt_opts ao = ses_agent_opts(ses);

	ao.memory = ses->agent.memory && p->place->memory.nhooks;
	ao.is_finalizing = is_finalizing_in(ses, p);
	ao.launched = ses->launch.pid;
	ao.patient = !ses->launch.pid;
	ao.eager = was_there && !ses->launch.pid;
	ao.children = true;
	ao.beside = ses_nvtx_beside(&o->nvtx);
	ao.on_entry = on_entry;
	ao.ctx = o;
	return ao;
}

static int open_and_add(struct ses_agent_of *o, const struct ses_process *p, const struct agt_opts *ao, struct err *e)
{
	const struct agt_place at = {.pid = (pid_t)p->tgid,
				     .load_bias = p->place->at.static_base,
				     .undefined = p->place->at.undefined,
				     .memory = p->place->memory};
	struct session *ses = o->ses;

	if (agt_open(ses->agents.all, &p->of->plan, p->of->tgt, &at, ao, &o->agt, e))
		return e->code;
	if (ses->agent.source && src_agent_join(ses->agent.source, o->agt))
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	return 0;
}

/* The agent records in this process as in the others, from the first operator that it sees. */
static void follow(struct session *ses, struct ses_process *p, struct tgt *t, bool was_there, bool anew)
{
	struct ses_agent_of *o = p->agent ? NULL : calloc(1, sizeof(*o));
	struct agt_opts ao;
	struct err e = {0};

	if (!o)
		return;
	*o = (struct ses_agent_of){.ses = ses, .tgid = p->tgid};
	if (t)
		ses_nvtx_find(ses, t, &o->nvtx);
	ao = opts_for(o, p, was_there);
	ao.anew = anew;
	if (open_and_add(o, p, &ao, &e)) {
		agt_close(o->agt);
		free(o);
	} else {
		p->agent = o;
		if (ses->agent.records)
			agt_activate_like(o->agt, ses->agent.first);
		else
			agt_activate(o->agt, false);
		agt_load(o->agt, &e);
	}
	if (e.code)
		agents_refuse(ses, p->tgid, &e);
}

void ses_agent_follow(struct session *ses, struct ses_process *p, struct tgt *t, bool was_there)
{
	follow(ses, p, t, was_there, false);
}

/* A forked child that has started the agent itself has no thread for CUPTI. Its agent is loaded once more. */
struct agt *agents_load_gpu(struct session *ses, struct ses_process *p, struct tgt *t, bool was_there)
{
	struct mxbpf_gpu_shared g;
	const bool anew = p->agent && agt_gpu(p->agent->agt, &g) && !g.thread;

	if (anew)
		ses_agent_leave(ses, p);
	follow(ses, p, t, was_there, anew);
	return p->agent ? p->agent->agt : NULL;
}

/* A process with the agent that wrote what the agent does not write. */
static void agents_check(struct ses_agent_of *o)
{
	const char *why = agt_broken(o->agt);

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

static void say_end(struct ses_agent_of *o)
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

void ses_agent_leave(struct session *ses, struct ses_process *p)
{
	struct ses_agent_of *o = p->agent;

	ses_gpu_leave(ses, p);
	if (!o)
		return;
	if (ses->agent.source)
		src_agent_leave(ses->agent.source, o->agt);
	say_end(o);
	p->agent = NULL;
	agt_close_later(o->agt, o);
}

void ses_agents_check(struct session *ses)
{
	const struct ses_process *p;

	for (p = ses->processes.first; p; p = p->next)
		if (p->agent) {
			say_failure(p->agent);
			agents_check(p->agent);
		}
}

static bool any_tries(const struct session *ses)
{
	const struct ses_process *p = ses->processes.first;

	while (p && !(p->agent && agt_tries(p->agent->agt)))
		p = p->next;
	return p;
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
	const struct ses_process *p;
	unsigned n;

	for (p = ses->processes.first; p; p = p->next)
		if (p->agent)
			say_end(p->agent);
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
	struct ses_process *p;

	for (p = ses->processes.first; p; p = p->next)
		if (p->agent)
			agt_close_later(p->agent->agt, p->agent);
}
