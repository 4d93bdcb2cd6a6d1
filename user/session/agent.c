// SPDX-License-Identifier: Apache-2.0
/* The code inside the first process: with --agent it records operators, with --gpu it is a client of CUPTI. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmt.h"
#include "feature/steps/steps.h"
#include "model/feature.h"
#include "mxbpf_loss.h"
#include "mxbpf_sample.h"
#include "mxbpf_step.h"
#include "session/priv.h"
#include "source/account.h"
#include "source/agent.h"
#include "source/agent_cost.h"
#include "source/calls.h"
#include "targets/targets.h"

#define LOOK_NS	     5000000	 /* interval of looks whether the agent has been loaded */
#define BEHIND_BYTES (32u << 20) /* of records that wait for the agent's */
#define END_NS	     100000000	 /* from the end of a process's memory to the end of the process */

int ses_agent(struct session *ses, const struct ses_target *of, struct err *e)
{
	return ses->o->agent || ses->o->gpu ? agt_usable(&of->plan, of->tgt, ses->o->agent, e) : 0;
}

bool ses_agent_could(const struct session *ses)
{
	const struct ses_target *first = &ses->targets[0];
	struct err no = {0};

	return first->plan.adp->agent.add_callback && !agt_usable(&first->plan, first->tgt, true, &no);
}

static void say_entry(const struct session *ses)
{
	const struct agt_injected *in = agt_injected(ses->agent.first);
	char pause[24], memory[24];

	if (!in->stops) {
		ses_note(ses, "the agent was already loaded in process %d", tgt_pid(ses->targets[0].tgt));
		return;
	}
	ses_note(ses,
		 "loaded the agent into process %d: one thread was stopped for %s (%s); the agent uses up to %s of "
		 "memory there",
		 tgt_pid(ses->targets[0].tgt), fmt_ns(in->pause_ns, pause), in->route,
		 fmt_bytes(agt_memory_max(), memory));
	if (in->beside)
		ses_warn(ses, "ranges of NVTX may be missing, because the process cannot be given a library for it: %s",
			 strerror(-in->beside));
}

/* Returns true if the agent may be loaded long after the window's start. */
static bool is_later(const struct session *ses)
{
	return ses->o->command || ses->o->wait || ses->agent.gpu_late;
}

static bool wants_stacks(const struct session *ses)
{
	return ses->details & MXBPF_DETAIL_STACK;
}

static const char *not_recorded(const struct session *ses)
{
	return ses->o->agent ? "operators are not recorded" : "no record of the GPU";
}

/* The process has called an operator, for which the agent waited. Runs in the agent's thread. */
static void on_entry(void *ctx, const struct err *e)
{
	struct session *ses = ctx;
	char n[32];

	if (e && !is_later(ses))
		ses->agent.failed = *e;
	if (!is_later(ses)) {
		__atomic_store_n(&ses->agent.came, true, __ATOMIC_RELEASE);
		return;
	}
	if (!e) {
		say_entry(ses);
		if (agt_injected(ses->agent.first)->missed)
			ses_warn(ses,
				 "%s operators are not recorded: they were called while the agent was being loaded",
				 fmt_count(agt_injected(ses->agent.first)->missed, n));
		return;
	}
	ses->agent.failed = *e;
	ses_warn(ses, "%s: %s", not_recorded(ses), e->why);
}

/* Learns a list of the agent. Runs in the source's thread. */
static uint64_t learn_list(void *ctx, uint32_t tgid, unsigned kind, const uint64_t *list, uint32_t n)
{
	struct session *ses = ctx;
	uint64_t id;

	pthread_mutex_lock(&ses->lock);
	id = sym_list_id(ses->first->symbols, tgid, kind, list, n);
	pthread_mutex_unlock(&ses->lock);
	return id;
}

static enum src_agent_role agent_role_of(const char *name)
{
	static const enum src_agent_role roles[] = {[STEPS_NO_SIGN] = SRC_AGENT_PLAIN,
						    [STEPS_ENDS] = SRC_AGENT_ENDS,
						    [STEPS_CONFIRMS] = SRC_AGENT_CONFIRMS};

	return roles[steps_sign_of(name)];
}

static int open_calls(struct session *ses, struct err *e)
{
	const struct ses_target *first = &ses->targets[0];
	const bool asks = ses_features_of_calls(ses->o);

	ses->agent.accounts = acc_new(ses->first->rings[ATT_SWITCHES]);
	ses->agent.costs = agent_costs_new();
	ses->agent.calls = asks ? calls_new(first->plan.lenders) : NULL;
	/* The hub delivers the last source last: records of the others come before calls of the same time. */
	ses->agent.source = src_add_agent(ses->hub, ses->agents.all,
					  &(struct src_agent_opts){.calls = ses->agent.calls,
								   .owners = ses->o->memory,
								   .stacks = wants_stacks(ses) && ses->o->memory,
								   .list_id = learn_list,
								   .role = agent_role_of,
								   .ctx = ses});
	if (!ses->agent.accounts || !ses->agent.costs || !ses->agent.source || (asks && !ses->agent.calls) ||
	    src_agent_join(ses->agent.source, ses->agent.first))
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	return 0;
}

uint64_t ses_agent_is_finalizing(struct session *ses, uint32_t tgid)
{
	uint64_t addr = 0;

	pthread_mutex_lock(&ses->lock);
	if (wants_stacks(ses))
		addr = sym_python_is_finalizing(ses->first->symbols, tgid);
	pthread_mutex_unlock(&ses->lock);
	return addr;
}

struct agt_opts ses_agent_opts(const struct session *ses)
{
	return (struct agt_opts){.calls = ses->o->agent,
				 .gpu = ses->o->gpu,
				 .cupti = ses->o->cupti,
				 .kernels = ses->o->metrics.pattern,
				 .kernel_launches = ses->o->metrics.each,
				 .kernel_replay = ses->o->metrics.replay,
				 .numbers = ses->details & MXBPF_DETAIL_SEQ,
				 .args = ses->details & MXBPF_DETAIL_ARGS,
				 .python = wants_stacks(ses) ? sym_python(ses->first->symbols) : NULL,
				 .stacks_of_memory = ses->o->memory};
}

int ses_agent_open(struct session *ses, struct err *e)
{
	const struct ses_target *first = &ses->targets[0];
	const bool memory = first->plan.agent_memory.nhooks && first->plan.opts.groups & PROBE_MEM;
	struct agt_opts ao = ses_agent_opts(ses);

	if (!ses->o->agent && !ses->o->gpu)
		return 0;
	ao.memory = ses->agent.memory = ses->o->agent && memory;
	ao.is_finalizing = ses_agent_is_finalizing(ses, (uint32_t)tgt_pid(first->tgt));
	ao.children = ses_follows(ses);
	ao.beside = ses_nvtx_beside(&ses->nvtx.first);
	ao.launched = ses->o->command;
	ao.on_entry = on_entry;
	ao.ctx = ses;
	ses->agent.gpu_late = !ses->o->agent && !ses_gpu_uses(ses, first->tgt);
	ao.patient = is_later(ses) && !ses->o->command;
	if (agts_open((uint32_t)ses->o->ring_bytes, ses->o->gpu, &ses->agents.all, e) ||
	    agt_open(ses->agents.all, &first->plan, first->tgt, NULL, &ao, &ses->agent.first, e) ||
	    (!ses->agent.gpu_late && agt_load(ses->agent.first, e)))
		return e->code;
	if (!is_later(ses) && !agt_waits(ses->agent.first))
		say_entry(ses);
	if (ses->o->gpu && ses_gpu_open(ses, e)) /* before the other source, whose flush detaches the agents */
		return e->code;
	return ses->o->agent ? open_calls(ses, e) : 0;
}

int ses_agent_await(struct session *ses, struct err *e)
{
	const struct tgt *t = ses->targets[0].tgt;
	const uint64_t begun = clock_ns(CLOCK_MONOTONIC);
	uint64_t now = begun;
	bool gone;

	if (!ses->agent.first || is_later(ses) || !agt_waits(ses->agent.first))
		return 0;
	ses_stage(ses, "waiting until process %d (%s) calls operators, to load the agent there: %s", tgt_pid(t),
		  tgt_comm(t), agt_waits(ses->agent.first));
	while (!__atomic_load_n(&ses->agent.came, __ATOMIC_ACQUIRE)) {
		gone = tgt_gone(t);
		if (ses_interrupted(ses, now + (gone ? END_NS : LOOK_NS)) || gone)
			return err_set(e, ERR_TARGET, -ECANCELED,
				       "cannot load the agent: process %d called no operator", tgt_pid(t));
		now = clock_ns(CLOCK_MONOTONIC);
	}
	if (ses->agent.failed.code)
		return err_set(e, ses->agent.failed.cls, ses->agent.failed.code, "%s", ses->agent.failed.why);
	say_entry(ses);
	ses->prepared_mono_ns += now - begun; /* waiting for the target does not count as startup time */
	return 0;
}

void ses_agent_take(struct session *ses, bool on)
{
	if (ses->agents.gpu_source)
		ses_gpu_take(ses, on);
	if (!ses->agent.source || on == ses->agent.records)
		return;
	ses->agent.records = on;
	if (on) {
		src_agent_start(ses->agent.source);
		return;
	}
	src_agent_stop(ses->agent.source);
	__atomic_store_n(&ses->agent.stopped_ns, clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELEASE);
}

void ses_agent_settle(struct session *ses)
{
	if (ses->agent.source)
		src_agent_settle(ses->agent.source);
}

struct src_agent_counts ses_agent_counts(const struct session *ses)
{
	return ses->agent.source ? src_agent_counts(ses->agent.source) : (struct src_agent_counts){0};
}

void ses_agent_fill(struct session *ses, struct mxbpf_rec *r)
{
	if (ses->agent.calls && !calls_fill(ses->agent.calls, r))
		__atomic_fetch_add(&ses->agent.callless, 1, __ATOMIC_RELAXED);
}

/* Warns, and adds a note to every output. */
void ses_agent_tell(struct session *ses, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	ses_warn(ses, "%s", text);
	if (ses_add_note(&ses->about, "agent", "%s", text) && !ses->write_error)
		ses->write_error = -ENOMEM;
}

/* Reports records that were assigned to no call, or to a call that encloses the right one. */
static void tell_joined(struct session *ses)
{
	uint64_t lost = calls_lost(ses->agent.calls);
	char n[32];

	if (ses->agent.callless)
		ses_agent_tell(ses,
			       "%s allocations, samples, parallel regions and off-CPU times are shown outside "
			       "operators: they arrived before the agent's calls of the same time",
			       fmt_count(ses->agent.callless, n));
	if (lost)
		ses_agent_tell(ses,
			       "%s calls were nested in more than %u others: their memory, samples, parallel regions "
			       "and off-CPU times are shown for an enclosing call",
			       fmt_count(lost, n), CALLS_OPEN_MAX);
}

/* The other processes of the session are not concerned. Whatever this one has told so far may be invented. */
void ses_agent_check(struct session *ses)
{
	const char *why = ses->agent.first ? agt_broken(ses->agent.first) : NULL;
	const uint64_t now = clock_ns(CLOCK_MONOTONIC), begun = ses->about.start_mono_ns;
	char after[24];

	ses_agents_check(ses);
	if (!why || ses->agent.failed.code)
		return;
	err_set(&ses->agent.failed, ERR_RUNTIME, -EPROTO, "process %d broke the agent's contract: %s",
		tgt_pid(ses->targets[0].tgt), why);
	fmt_ns(begun && now > begun ? now - begun : 0, after);
	ses_agent_tell(
		ses,
		"%s; mxbpf reads nothing from its agent any more, since %s after the start of the window; what it told "
		"before may be invented",
		ses->agent.failed.why, after);
	agt_activate(ses->agent.first, false);
	agt_gpu_want(ses->agent.first, 0);
	if (!ses->about.followed)
		ses->ended = true;
}

/* The program may remove all callbacks of its runtime, including the agent's. */
static void say_cleared(struct session *ses)
{
	uint64_t ns = agt_cleared_ns(ses->agent.first);
	char after[24];

	if (!ns)
		return;
	fmt_ns(ns > ses->about.start_mono_ns ? ns - ses->about.start_mono_ns : 0, after);
	ses_agent_tell(
		ses,
		"the program removed all callbacks, including the agent's, %s after the start of the window; operators "
		"after that are not recorded",
		after);
}

static void fold_behind(struct session *ses)
{
	if (ses->agent.behind.len)
		ses_fold(ses->first, ATT_CALLS, ses->agent.behind.data, ses->agent.behind.len);
	ses->agent.behind.len = ses->agent.nbehind = 0;
}

/* All that the hub delivered is folded by now. */
void ses_agent_end(struct session *ses)
{
	uint64_t threads = ses->agent.accounts ? acc_forgotten(ses->agent.accounts) : 0;
	char n[32];

	fold_behind(ses);
	if (ses->agent.calls)
		tell_joined(ses);
	if (threads)
		ses_agent_tell(ses,
			       "on-CPU, run-queue and blocked times and bytes of calls in %s threads may be too low: "
			       "mxbpf keeps "
			       "at "
			       "most %u threads",
			       fmt_count(threads, n), ACC_THREADS_MAX);
	ses_agent_check(ses);
	if (ses->agent.failed.code && !agt_broken(ses->agent.first) &&
	    ses_add_note(&ses->about, "agent", "%s: %s", not_recorded(ses), ses->agent.failed.why) && !ses->write_error)
		ses->write_error = -ENOMEM;
	if (ses->agents.gpu_source)
		ses_gpu_end(ses);
	if (!ses->agent.first)
		return;
	ses_agents_end(ses);
	if (!ses->agent.failed.code && agt_injected(ses->agent.first)->base) {
		ses->about.agent_route = strdup(agt_injected(ses->agent.first)->route);
		if (!ses->about.agent_route && !ses->write_error)
			ses->write_error = -ENOMEM;
	}
	if (agt_numbers_wrong(ses->agent.first))
		ses_agent_tell(ses,
			       "a call had an impossible sequence number, so the numbers of this library are read at a "
			       "wrong place; "
			       "later backward nodes are not matched with forward operators");
	say_cleared(ses);
}

/* ---- windows of --iterations */

/* BPF opens and closes windows; the records of steps have the times. */
static void cut_at(struct session *ses, const struct mxbpf_step *r)
{
	struct ses_cuts *c = &ses->agent.cuts;

	if (r->what != MXBPF_STEP_COUNTED)
		return;
	if (r->flags & MXBPF_STEP_OPENS) {
		c->last[c->n % SES_CUTS_MAX].from_ns = r->h.ts_ns;
		c->last[c->n++ % SES_CUTS_MAX].to_ns = UINT64_MAX;
		c->left = ses->o->iterations;
	} else if (c->left && !--c->left) {
		c->last[(c->n - 1) % SES_CUTS_MAX].to_ns = r->h.ts_ns;
	}
}

/* Returns true if a call lies in a window. A call that is still running needs a window that is still open. */
static bool in_window(const struct session *ses, const struct mxbpf_rec *r)
{
	const struct ses_cuts *c = &ses->agent.cuts;
	uint64_t stopped_ns = __atomic_load_n(&ses->agent.stopped_ns, __ATOMIC_ACQUIRE);
	uint64_t end_ns = kind_end_ns(r), from_ns, to_ns;
	unsigned i;

	for (i = c->n; i && i + SES_CUTS_MAX > c->n; i--) {
		from_ns = c->last[(i - 1) % SES_CUTS_MAX].from_ns;
		to_ns = c->last[(i - 1) % SES_CUTS_MAX].to_ns;
		if (r->ts_ns < from_ns)
			continue;
		if (r->kind == MXBPF_OPEN)
			return to_ns == UINT64_MAX;
		return end_ns <= to_ns && (from_ns > stopped_ns || end_ns <= stopped_ns);
	}
	return false;
}

/* ---- join */

/* Adds a span with its cost behind it. Returns 0 or -ENOMEM. */
static int put_with_cost(struct buf *b, struct mxbpf_span *s)
{
	const uint16_t least = s->h.size > MXBPF_SPAN_BYTES_PLAIN ? s->h.size : MXBPF_SPAN_BYTES_PLAIN;
	const uint16_t form = least < MXBPF_SPAN_BYTES_WHOLE ? least : MXBPF_SPAN_BYTES_WHOLE;

	s->h.size = (uint16_t)MXBPF_WITH_COST(form);
	return buf_put(b, s, form) || buf_put(b, &s->cost, sizeof(s->cost)) ? -ENOMEM : 0;
}

/* Adds a record of the agent to ses->agent.joined. *kept: the record is shown. Returns 0 or -ENOMEM. */
static int join_one(struct session *ses, const struct mxbpf_rec *r, bool *kept)
{
	struct mxbpf_span s;
	int err;

	*kept = !ses->o->iterations || r->kind == MXBPF_NAME || r->kind == MXBPF_LOST || in_window(ses, r);
	if (r->kind == MXBPF_ALLOC) {
		struct mxbpf_alloc a = {0};

		memcpy(&a, r, r->size);
		ses_agent_fill(ses, &a.h);
		err = acc_take(ses->agent.accounts, &a.h);
		return err || !*kept ? err : buf_put(&ses->agent.joined, &a, a.h.size);
	}
	if (r->kind != MXBPF_SPAN)
		return *kept ? buf_put(&ses->agent.joined, r, r->size) : 0;
	kind_span(r, &s);
	err = acc_fill(ses->agent.accounts, &s);
	agent_costs_fill(ses->agent.costs, &s);
	if (ses->agent.calls)
		calls_forget(ses->agent.calls, &s);
	return err || !*kept ? err : put_with_cost(&ses->agent.joined, &s);
}

/* Records with the same end keep their order, but an iteration ends before its calls. */
static int agent_by_end(const void *x, const void *y)
{
	const struct mxbpf_rec *a = *(struct mxbpf_rec *const *)x, *b = *(struct mxbpf_rec *const *)y;
	uint64_t a_ns = kind_end_ns(a), b_ns = kind_end_ns(b);

	if (a_ns != b_ns)
		return a_ns < b_ns ? -1 : 1;
	if ((a->kind == MXBPF_STEP) != (b->kind == MXBPF_STEP))
		return a->kind == MXBPF_STEP ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* Appends the records that wait and ended before the last of the agent's to these. *n: how many. 0 or -ENOMEM. */
static int take_due(struct session *ses, uint64_t *n)
{
	const struct mxbpf_rec *r;
	uint64_t until_ns = 0, end_ns;
	size_t pos = 0, kept = 0, size;
	int err = 0;

	while ((r = kind_next(ses->agent.joined.data, ses->agent.joined.len, &pos))) {
		end_ns = kind_end_ns(r);
		until_ns = end_ns > until_ns ? end_ns : until_ns;
	}
	for (pos = 0, *n = 0; (r = kind_next(ses->agent.behind.data, ses->agent.behind.len, &pos));) {
		size = r->size;
		if (kind_end_ns(r) <= until_ns) {
			err = err ? err : buf_put(&ses->agent.joined, r, size);
			++*n;
			continue;
		}
		memmove(ses->agent.behind.data + kept, r, size);
		kept += size;
	}
	ses->agent.behind.len = kept;
	return err;
}

/*
 * The model assigns calls to the iteration whose end comes next, and memory to the block that has its address. So ends
 * of iterations and memory that probes see wait for the agent's records, and all are sorted by their ends. Returns 0
 * or -ENOMEM.
 */
static int join_behind(struct session *ses)
{
	struct buf sorted = {0}, all = {0};
	const struct mxbpf_rec *r;
	size_t pos = 0, i;
	uint64_t n;
	int err = take_due(ses, &n);

	ses->agent.lent = n;
	ses->agent.nbehind -= n;
	while (!err && n && (r = kind_next(ses->agent.joined.data, ses->agent.joined.len, &pos)))
		err = buf_put(&all, &r, sizeof(r));
	if (err || !all.len) {
		buf_fini(&all);
		return err;
	}
	qsort(all.data, buf_count(&all, r), sizeof(r), agent_by_end);
	for (i = 0; !err && i < buf_count(&all, r); i++) {
		r = *buf_at(&all, const struct mxbpf_rec *, i);
		err = buf_put(&sorted, r, r->size);
	}
	buf_fini(&all);
	buf_fini(&ses->agent.joined);
	ses->agent.joined = sorted;
	return err;
}

/* Moves the records of a batch that wait to ses->agent.behind. Returns 0 or -ENOMEM. */
static int take_behind(struct session *ses, void *recs, size_t *bytes)
{
	const struct mxbpf_rec *r;
	char *to = recs;
	size_t pos = 0, size;
	int err = 0;

	if (ses->agent.behind.len > BEHIND_BYTES) /* no agent's records have come for long */
		fold_behind(ses);
	while ((r = kind_next(recs, *bytes, &pos))) {
		size = r->size;
		if (r->kind == MXBPF_STEP)
			cut_at(ses, (const void *)r);
		if (r->kind == MXBPF_STEP || r->kind == MXBPF_ALLOC) {
			err = err ? err : buf_put(&ses->agent.behind, r, size);
			ses->agent.nbehind++;
			continue;
		}
		memmove(to, r, size);
		to += size;
	}
	*bytes = (size_t)(to - (char *)recs);
	return err;
}

/* Gives a sample the agent's calls, before the spans that BPF has set: a kernel of torch.compile runs inside of a call.
 */
static int join_sample(struct session *ses, const struct mxbpf_sample *from)
{
	const struct mxbpf_sample_span *had = (const void *)(from + 1);
	const unsigned nhad = mxbpf_sample_nspans(from);
	const bool in_team = nhad && had->by_team; /* the call of the thread that opened the region */
	const size_t kept = sizeof(*from) + (in_team ? sizeof(*had) : 0);
	struct mxbpf_sample_span spans[CALLS_OPEN_MAX];
	uint64_t ids[CALLS_OPEN_MAX];
	struct mxbpf_sample s = *from;
	unsigned n, i;
	bool known;

	n = calls_around(ses->agent.calls, in_team ? had->device : s.tid, s.h.tgid, in_team ? had->name_id : s.h.ts_ns,
			 ids, in_team ? 1 : CALLS_OPEN_MAX, &known);
	__atomic_fetch_add(&ses->agent.callless, !known, __ATOMIC_RELAXED);
	for (i = 0; i < n; i++)
		spans[i] = (struct mxbpf_sample_span){.name_id = ids[i], .cls = MXBPF_CLASS_OPERATOR};
	mxbpf_sample_set_nspans(&s, nhad - in_team + n);
	s.h.size = (uint16_t)(sizeof(s) + n * sizeof(spans[0]) + from->h.size - kept);
	return buf_put(&ses->agent.joined, &s, sizeof(s)) || buf_put(&ses->agent.joined, spans, n * sizeof(spans[0])) ||
			       buf_put(&ses->agent.joined, (const char *)from + kept, from->h.size - kept)
		       ? -ENOMEM
		       : 0;
}

static int join_samples(struct session *ses, const void *recs, size_t bytes)
{
	const struct mxbpf_rec *r;
	size_t pos = 0;
	int err = 0;

	while (!err && (r = kind_next(recs, bytes, &pos)))
		err = join_sample(ses, (const void *)r);
	return err;
}

bool ses_agent_join(struct session *ses, unsigned number, void **recs, size_t *bytes)
{
	bool agent = number == ses->agent.source->number;
	bool switches = ses->first->rings[ATT_SWITCHES] && number == ses->first->rings[ATT_SWITCHES]->number;
	const struct mxbpf_rec *r;
	uint64_t taken = 0; /* records that are used here and not shown */
	size_t pos = 0;
	bool kept;
	int err = 0;

	switches &=
		!ses->o->sched && !ses->o->gpu; /* --sched shows them as well, and --gpu divides idle time by them */
	ses->agent.joined.len = 0;
	if (ses->first->rings[ATT_SAMPLES] && number == ses->first->rings[ATT_SAMPLES]->number) {
		err = join_samples(ses, *recs, *bytes);
		ses_took(ses, number, 0, err);
		*recs = ses->agent.joined.data;
		*bytes = ses->agent.joined.len;
		return *bytes;
	}
	while (!err && (r = kind_next(*recs, *bytes, &pos))) {
		kept = !switches;
		err = agent ? join_one(ses, r, &kept) : acc_take(ses->agent.accounts, r);
		taken += !kept;
		if (agent)
			continue;
		ses_agent_fill(ses, (struct mxbpf_rec *)r);
	}
	if (!agent && !switches && !err)
		err = take_behind(ses, *recs, bytes);
	if (agent && !err && ses->agent.behind.len)
		err = join_behind(ses);
	ses_took(ses, number, taken, err);
	if (!agent)
		return !switches && *bytes;
	acc_forget_ended(ses->agent.accounts);
	*recs = ses->agent.joined.data;
	*bytes = ses->agent.joined.len;
	return *bytes;
}

void ses_agent_free(struct session *ses)
{
	struct ses_agent *a = &ses->agent;

	ses_agents_free(ses);
	ses_gpu_free(ses);
	agt_close(a->first);
	agts_close(ses->agents.all);
	acc_free(a->accounts);
	calls_free(a->calls);
	agent_costs_free(a->costs);
	buf_fini(&a->joined);
	buf_fini(&a->behind);
}
