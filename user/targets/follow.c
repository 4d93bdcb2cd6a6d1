// SPDX-License-Identifier: Apache-2.0
/*
 * Processes start, execute other programs and end while a session runs. A process that maps the runtime is attached to.
 * The launched command and its children are stopped until that is done; other processes run meanwhile.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/namespace.h"
#include "feature/cost/slices.h"
#include "plan/early.h"
#include "targets/follow.h"

#define LEFT_MAX 20000 /* processes that have ended, after which a session with ses_opts.renews begins anew */

bool ses_follows(const struct session *ses)
{
	return !ses->o->no_follow;
}

/*
 * All processes of the machine are looked at, and its init, which runs no job, may be hidden even from root. In a
 * container the first process can be the job.
 */
static bool is_init(const struct session *ses, uint32_t tgid)
{
	return tgid == 1 && ses->o->choice.host && namespace_is_first("pid");
}

void follow_give_up(struct session *ses, uint32_t tgid, const struct err *e)
{
	struct ses_process *p;

	/* Most processes that cannot be attached to have ended by now. */
	if (is_init(ses, tgid) || (e->cls == ERR_TARGET && !ses->o->verbose))
		return;
	p = e->cls == ERR_TARGET ? ses_process_of(ses, tgid) : ses_process_add(ses, tgid);
	if (!p || !p->told)
		ses_warn(ses, "process %u is not followed: %s", tgid, e->why);
	if (p)
		p->told = true;
}

bool follow_loader(struct session *ses, struct tgt *t)
{
	struct tgt_lib *lib;
	struct err e = {0};
	uint64_t off;
	int new = 0;

	if (!plan_loader(t, &lib, &off, &e))
		new = watch_loader(ses->follow->watch, tgt_pid(t), lib->open_path, off, &e);
	if (!e.code && watch_hooks_all(ses->follow->watch))
		hash_put(&ses->follow->loaders, lib->dev, lib->ino);
	if (new < 0)
		ses_warn(ses, "%s", e.why);
	return new > 0;
}

/* Finds an existing plan for the process, because planning takes long, and its addresses in the process. */
static struct ses_target *known_target(struct session *ses, struct tgt *t, struct mxbpf_target *at)
{
	unsigned i;

	for (i = 0; i < ses->ntargets; i++)
		if (!plan_fits(&ses->targets[i].plan, t, at))
			return &ses->targets[i];
	return NULL;
}

/*
 * Returns the build that a plan fits, and gives the plan the rows and numbers of the build. Returns NULL if there is
 * none: a library and its stripped copy have one build-id, but the copy has fewer functions with a name.
 */
static struct ses_build *build_like(struct session *ses, struct plan *p)
{
	struct ses_build *b;

	SES_EACH_BUILD(ses, b)
	{
		if (plan_same_build(b->of->plan.lib, p->lib) && !plan_like(p, &b->of->plan))
			return b;
	}
	return NULL;
}

/*
 * Adds a target, which then owns plan and process. Returns NULL with e set if there is no room for it or its build; it
 * owns neither then.
 */
static struct ses_target *follow_keep(struct session *ses, struct tgt **t, struct plan *p, struct err *e)
{
	struct ses_target *new = &ses->targets[ses->ntargets];
	struct ses_build *b;

	if (ses->ntargets == SES_TARGETS_MAX) {
		err_set(e, ERR_RUNTIME, -E2BIG, "a session can follow at most %d copies of libraries", SES_TARGETS_MAX);
		return NULL;
	}
	b = build_like(ses, p);
	*new = (struct ses_target){*t, *p, b};
	new->build = b ? b : ses_build_add(ses, new, e);
	if (!new->build)
		return NULL;
	ses->ntargets++;
	*t = NULL;
	*p = (struct plan){0};
	return new;
}

/* NULL: the process is not watched. */
static struct ses_process *watched_of(const struct session *ses, uint32_t tgid)
{
	struct ses_process *p = ses_process_of(ses, tgid);

	return p && p->phase == SES_WATCHED ? p : NULL;
}

bool follow_has(const struct session *ses, uint32_t tgid)
{
	return watched_of(ses, tgid) || tgid == (uint32_t)tgt_pid(ses->targets[0].tgt);
}

/* Notes how long a process ran, while events were taken, before its probes were active. */
static uint64_t gap_of(const struct session *ses, const struct sight *at)
{
	uint64_t active = ses->first->att ? att_active_since_ns(ses->first->att) : 0, since;

	if (!at || !active || at->seen.covered)
		return 0;
	if (at->seen.stopped)
		return at->ran_ns;
	since = at->seen.ts_ns > active ? at->seen.ts_ns : active;
	return clock_ns(CLOCK_MONOTONIC) - since;
}

/*
 * The agent comes before the probes, because a child may end soon. t: the process; NULL: a forked child. at: as for
 * joined().
 */
static void follow_agent(struct session *ses, struct ses_process *p, struct tgt *t, const struct sight *at)
{
	if (ses->agent.source && p->of->build == ses->first)
		ses_agent_follow(ses, p, t, !at);
}

/* Notes the result of attaching to a process. at: the sighting that led to it; NULL: the process was there before. */
static int joined(struct session *ses, struct ses_process *p, int err, const struct sight *at)
{
	uint64_t gap_ns = gap_of(ses, at);

	if (!err) {
		err = ses_roots_join(ses, (pid_t)p->tgid);
		if (err)
			att_drop(p->of->build->att, (pid_t)p->tgid);
	}
	if (err) {
		ses->about.unfollowed += !p->counted; /* its loader or its next program may cause another sighting */
		p->counted = true;
		ses_agent_leave(ses, p);
		ses_process_unplan(p);
		if (p->phase != SES_NO_ROOM)
			ses_process_move(ses, p, SES_WAITS);
		return err;
	}
	ses_process_move(ses, p, SES_WATCHED);
	ses->about.unfollowed -= p->counted; /* before, its loader had mapped only a part of what is probed */
	p->counted = false;
	ses->about.followed++;
	ses_role_join(ses, p->tgid, at && at->seen.kind == MXBPF_SIGHT_FORK ? at->seen.parent : 0);
	ses_share_gap(ses, p->tgid, gap_ns);
	ses_detail(ses, "following process %u", p->tgid);
	return 0;
}

/* If a process ended or executed another program before BPF knew it, BPF still has it. */
static int still_the_same(struct session *ses, const struct ses_process *p, uint64_t execs, struct err *e)
{
	const uint64_t now = watch_execs(ses->follow->watch, (pid_t)p->tgid);

	if (now == execs && now != WATCH_UNKNOWN)
		return 0;
	att_drop(p->of->build->att, (pid_t)p->tgid);
	if (now == WATCH_UNKNOWN)
		return err_set(e, ERR_RUNTIME, -EIO, "BPF does not tell whether process %u has ended", p->tgid);
	return err_set(e, ERR_TARGET, -ESRCH,
		       "process %u ended or executed another program while probes were being attached", p->tgid);
}

/* On success target and plan belong to the session. */
static struct ses_target *new_target(struct session *ses, struct ses_process *of, struct tgt **t,
				     struct mxbpf_target *at, struct err *e)
{
	struct ses_target *kept = NULL;
	struct plan p;

	if (!plan_make(*t, &ses->want, &p, e)) {
		*at = p.target;
		kept = follow_keep(ses, t, &p, e);
		if (!kept && e->code == -E2BIG)
			ses_process_move(ses, of, SES_NO_ROOM);
	}
	plan_fini(&p);
	return kept;
}

static int attach_to(struct session *ses, struct ses_process *p, struct tgt **t, const struct sight *at, uint64_t execs,
		     struct err *e)
{
	struct ses_place place = {0};
	struct ses_target *of = known_target(ses, *t, &place.at);
	const bool is_new = !of;
	int err;

	if (is_new)
		of = new_target(ses, p, t, &place.at, e);
	if (!of)
		return joined(ses, p, e->code, at);
	if (*t && ses->o->agent)
		plan_agent_entries(&of->plan, *t, &place.memory);
	else
		place.memory = of->plan.agent_memory;
	err = ses_process_plan(ses, p, of, &place);
	if (!err)
		follow_agent(ses, p, *t ? *t : of->tgt, at);
	err = err || !is_new ? err : cost_add(ses, of, e);
	err = err ? err : att_attach(of->build->att, &of->plan, &place.at, (pid_t)p->tgid, e);
	if (!err)
		err = still_the_same(ses, p, execs, e);
	if (!err) {
		pthread_mutex_lock(&ses->lock);
		sym_joined(of->build->symbols, p->tgid);
		pthread_mutex_unlock(&ses->lock);
	}
	return joined(ses, p, err, at);
}

/* Probes the late libraries that a process has mapped, and watches its loader for more. */
static void watch_late(struct session *ses, pid_t tgid)
{
	struct tgt *t;

	if (!ses_late_wanted(ses_build_of(ses, (uint32_t)tgid)) || tgt_open(tgid, &t, NULL))
		return;
	follow_loader(ses, t);
	watch_any(ses->follow->watch, tgid);
	tgt_close(t);
	if (tgt_open(tgid, &t, NULL)) /* look again, because libraries may have been mapped in between */
		return;
	ses_late_look(ses_build_of(ses, (uint32_t)tgid), t);
	tgt_close(t);
}

/* The loader may still be mapping libraries. Another sighting comes when it has finished. */
static void look_again(struct session *ses, struct tgt *t)
{
	follow_loader(ses, t);
	watch_any(ses->follow->watch, tgt_pid(t));
}

/*
 * Most processes of a machine map no runtime. If the hook in their loader is there already, a look at the list of
 * mappings is enough, and takes a twentieth of the time.
 */
static bool maps_nothing(const struct session *ses, uint32_t tgid)
{
	const struct follow *f = ses->follow;
	struct tgt_file loader;
	bool runtime;

	if (!watch_hooks_all(f->watch) || watched_of(ses, tgid))
		return false;
	return !plan_peek((pid_t)tgid, &ses->want, &runtime, &loader) && !runtime &&
	       (!loader.ino || hash_get(&f->loaders, loader.dev, loader.ino));
}

static bool is_unfit(const struct session *ses, struct tgt *t)
{
	const struct ses_unfit *u = ses->o->unfit, *end = u + ses->o->nunfit;
	struct tgt_usage now;

	while (u < end && u->pid != tgt_pid(t))
		u++;
	return u < end && !tgt_peek_usage(u->pid, &now) && now.started == u->started;
}

/* Moves a process to the phase that follows from what it has mapped. The session may take *t, which is NULL then. */
static int look_at(struct session *ses, struct ses_process *p, struct tgt **t, const struct sight *at, uint64_t execs,
		   struct err *e)
{
	const bool first = !ses->targets[0].tgt;
	int err = 0;

	if (!plan_has_runtime(*t, &ses->want) || !ses_role_fits(ses, *t)) { /* one of its children may have both */
		if (p->phase != SES_WATCHED)
			ses_process_move(ses, p, SES_WAITS);
	} else if (first && ses->o->omp && p->phase != SES_HALF && !plan_has_openmp(*t)) {
		ses_process_move(ses, p, SES_HALF);
		look_again(ses, *t);
	} else if (first ? is_unfit(ses, *t) : !ses->first->att) {
		ses_process_move(ses, p, SES_LATER);
	} else if (first) {
		ses_process_move(ses, p, SES_PLANNED);
		ses->targets[0].tgt = *t;
		*t = NULL;
	} else if (p->phase == SES_PLANNED && !p->place) {
		return 0; /* the first one: ses_follow() looks at it when its probes are attached */
	} else if (p->phase == SES_WATCHED || att_has(ses->first->att, (pid_t)p->tgid, NULL)) {
		ses_late_look(ses_build_of(ses, p->tgid), *t);
	} else {
		err = attach_to(ses, p, t, at, execs, e);
		if (!err)
			watch_late(ses, (pid_t)p->tgid);
		else if (*t)
			look_again(ses, *t);
	}
	return err;
}

/* Follows a process by what it has mapped by now. */
int follow_look(struct session *ses, uint32_t tgid, const struct sight *at, struct err *e)
{
	uint64_t execs = watch_execs(ses->follow->watch, (pid_t)tgid);
	struct ses_process *p = ses_process_of(ses, tgid);
	struct tgt *t;
	int err;

	if (execs == WATCH_ENDED && at && at->seen.kind != MXBPF_SIGHT_NEW) /* a stranger may have its number */
		return err_set(e, ERR_TARGET, -ESRCH, "process %u has ended", tgid);
	if (p && p->phase == SES_ENDED) /* if another one has its number, a sighting tells */
		return 0;
	if (maps_nothing(ses, tgid))
		return 0;
	err = tgt_open((pid_t)tgid, &t, e);
	if (err)
		return err;
	if (!plan_has_runtime(t, &ses->want) && follow_loader(ses, t)) {
		tgt_close(t); /* libraries may have been mapped before the loader was watched */
		err = tgt_open((pid_t)tgid, &t, e);
		if (err)
			return err;
	}
	p = ses_process_add(ses, tgid); /* not before it was found alive, because BPF tells its end only then */
	err = p ? look_at(ses, p, &t, at, execs, e) : err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	tgt_close(t);
	return err;
}

static int sight_mapped(struct session *ses, const struct sight *at, struct err *e)
{
	return follow_look(ses, at->seen.tgid, at, e);
}

/* Attaches to a child that shared links do not cover (yet). */
static int attach_child(struct session *ses, const struct ses_process *p, struct err *e)
{
	const pid_t child = (pid_t)p->tgid;
	int err;

	if (watch_execs(ses->follow->watch, child) == WATCH_ENDED) /* a stranger may have its number */
		return err_set(e, ERR_TARGET, -ESRCH, "process %d has ended", child);
	err = ses_share_at_fork(ses, e);
	err = err ? err : att_attach(p->of->build->att, &p->of->plan, &p->place->at, child, e);
	return err ? err : still_the_same(ses, p, 0, e);
}

/*
 * Returns the target that a forked child has, with the addresses there: those of its parent. If the sighting of the
 * parent was dropped, BPF alone knows the child: it is like the first process of its build. NULL: it has none.
 */
static struct ses_target *target_of_child(struct session *ses, const struct sight *at, struct ses_place *place)
{
	const struct ses_process *parent = watched_of(ses, at->seen.parent);
	struct mxbpf_target known = {0};
	struct ses_target *of;
	struct ses_build *b;

	if (parent) {
		*place = *parent->place;
		return parent->of;
	}
	if (!at->seen.covered)
		return NULL;
	att_has(ses->first->att, (pid_t)at->seen.tgid, &known);
	b = &ses->builds[known.build < ses->nbuilds ? known.build : 0];
	of = &ses->targets[b->of - ses->targets];
	*place = (struct ses_place){of->plan.target, of->plan.agent_memory};
	return of;
}

static int sight_fork(struct session *ses, const struct sight *at, struct err *e)
{
	pid_t child = (pid_t)at->seen.tgid, parent = (pid_t)at->seen.parent;
	struct ses_place place;
	struct ses_target *of;
	struct ses_process *p;
	int err = 0;

	if (watched_of(ses, at->seen.tgid)) /* it was found among the existing children */
		return 0;
	watch_inherit(ses->follow->watch, child, parent);
	of = target_of_child(ses, at, &place);
	if (!of && ses->first->att)
		return 0;
	p = ses_process_add(ses, at->seen.tgid);
	if (!p || (of && ses_process_plan(ses, p, of, &place)))
		return -ENOMEM;
	if (!of) {
		if (p->phase == SES_SEEN || p->phase == SES_WAITS)
			ses_process_move(ses, p, SES_LATER);
		return 0;
	}
	follow_agent(ses, p, NULL, at);
	if (at->seen.covered)
		att_join(of->build->att, child);
	else
		err = attach_child(ses, p, e);
	err = joined(ses, p, err, at);
	if (!err)
		ses_late_fork(ses, p, at->seen.parent);
	return err;
}

static void follow_leave(struct session *ses, struct ses_process *p, bool wait)
{
	watch_forget(ses->follow->watch, (pid_t)p->tgid);
	ses_agent_leave(ses, p);
	if (ses->o->choice.host)
		ses_roots_left(ses, p);
	if (p->place) {
		att_leave(p->of->build->att, (pid_t)p->tgid, wait);
		ses->follow->left++;
	}
	ses_process_unplan(p);
}

/* Removes the probes of the old program, whose addresses are wrong in the new one. */
static int sight_exec(struct session *ses, const struct sight *at, struct err *e)
{
	struct ses_process *p = ses_process_add(ses, at->seen.tgid);

	if (!p)
		return -ENOMEM;
	follow_leave(ses, p, true);
	ses_process_move(ses, p, SES_SEEN);
	return follow_look(ses, at->seen.tgid, at, e);
}

/* Removing probes delays attaching others, so ses_sweep() does it later. */
static int sight_exit(struct session *ses, const struct sight *at, struct err *e)
{
	struct ses_process *p = ses_process_add(ses, at->seen.tgid);

	if (!p)
		return -ENOMEM;
	ses_process_move(ses, p, SES_ENDED);
	return 0;
}

static int sight_new(struct session *ses, const struct sight *at, struct err *e)
{
	const int err = ses_roots_new(ses, (pid_t)at->seen.tgid, e);

	return err <= 0 ? err : follow_look(ses, at->seen.tgid, at, e);
}

static int (*const sights[])(struct session *ses, const struct sight *at, struct err *e) = {
	[MXBPF_SIGHT_FORK] = sight_fork, [MXBPF_SIGHT_EXEC] = sight_exec, [MXBPF_SIGHT_MAPPED] = sight_mapped,
	[MXBPF_SIGHT_EXIT] = sight_exit, [MXBPF_SIGHT_NEW] = sight_new,
};

/*
 * Sources of a build and the plan of a copy stay until the end of the session. If all that had one have ended, a new
 * session has room for those that wait. What is known of a process, 2.5 KiB, stays as long.
 */
static bool is_worn(const struct session *ses)
{
	unsigned builds = (1u << ses->nbuilds) - 1, targets = (1u << SES_TARGETS_MAX) - 1; /* without a process */
	const struct ses_process *p;
	bool waits = false;

	for (p = ses->processes.first; p; p = p->next) {
		waits |= p->phase == SES_NO_ROOM;
		if (p->phase != SES_WATCHED)
			continue;
		builds &= ~(1u << p->of->build->number);
		targets &= ~(1u << (p->of - ses->targets));
	}
	return ses->follow->left >= LEFT_MAX || (waits && (builds || (ses->ntargets == SES_TARGETS_MAX && targets)));
}

bool ses_worn(const struct session *ses)
{
	return ses->worn;
}

void ses_sweep(struct session *ses)
{
	struct ses_process *p, *next;

	if (!ses->follow)
		return;
	for (p = ses->processes.first; p; p = next) {
		next = p->next;
		if (p->phase != SES_ENDED)
			continue;
		follow_leave(ses, p, false);
		ses_roots_left(ses, p);
		if (!p->root)
			ses_process_end(ses, p);
	}
	if (ses->o->renews && !ses->worn && is_worn(ses)) {
		ses_detail(ses, "the session begins anew, because %s",
			   ses->follow->left >= LEFT_MAX
				   ? "many processes have ended"
				   : "all processes of a build of a runtime have ended and others wait for its place");
		ses->worn = ses->ended = true;
	}
}

static bool is_queued(const struct session *ses, unsigned kind, uint32_t tgid)
{
	const struct buf *queue = &ses->follow->queue;
	const struct sight *at = (const struct sight *)queue->data, *end = at + buf_count(queue, struct sight);

	while (at < end && (at->seen.kind != kind || at->seen.tgid != tgid))
		at++;
	return at < end;
}

/* Returns true if a process with this number has ended and is still to be left. */
static bool has_ended(const struct session *ses, uint32_t tgid)
{
	const struct ses_process *p = ses_process_of(ses, tgid);

	return is_queued(ses, MXBPF_SIGHT_EXIT, tgid) || (p && p->phase == SES_ENDED);
}

/* Children of the command run when they are forked, so this stops them before other sightings are handled. */
static void on_sighting(void *ctx, const struct mxbpf_sighting *seen)
{
	struct sight at = {.seen = *seen};
	struct session *ses = ctx;
	const struct ses_process *parent;
	struct ses_process *child;

	if (sights_cover(&ses->follow->queue, seen))
		return;
	if (ses->launch.pid && seen->kind == MXBPF_SIGHT_FORK && (!seen->covered || ses->o->agent)) {
		watch_stop(&at.seen);
		at.ran_ns = clock_ns(CLOCK_MONOTONIC) - seen->ts_ns;
	}
	parent = seen->kind == MXBPF_SIGHT_FORK && ses->agent.source ? watched_of(ses, seen->parent) : NULL;
	if (parent && is_queued(ses, MXBPF_SIGHT_EXEC, seen->parent)) /* its plan is of the program before */
		parent = NULL;
	child = parent && !has_ended(ses, seen->tgid) ? ses_process_add(ses, seen->tgid) : NULL;
	if (child && child->phase != SES_WATCHED && !ses_process_plan(ses, child, parent->of, parent->place))
		follow_agent(ses, child, NULL, &at); /* before the probes of any other child, which take longer */
	if (buf_put(&ses->follow->queue, &at, sizeof(at)))
		watch_continue(&at.seen);
}

/*
 * Resumes a process that was stopped for a sighting, unless a later sighting needs it stopped, too: a child that was
 * stopped late may have executed another program by then.
 */
static void let_go_on(struct session *ses, const struct sight *at)
{
	struct follow *f = ses->follow;
	struct sight *later;

	if (!at->seen.stopped)
		return;
	watch_take(f->watch, on_sighting, ses);
	if (sights_stopped(&f->queue, at->seen.tgid))
		return;
	watch_continue(&at->seen);
	watch_take(f->watch, on_sighting, ses);
	later = sights_stopped(&f->queue, at->seen.tgid);
	if (later) /* the later sighting came just before the process was resumed */
		watch_stop(&later->seen);
}

static void count_missed(struct session *ses)
{
	uint64_t missed = watch_missed(ses->follow->watch);

	ses->about.unfollowed += missed - ses->follow->missed;
	ses->follow->missed = missed;
}

void ses_sight(struct session *ses)
{
	struct follow *f = ses->follow;
	bool found = ses->targets[0].tgt;
	struct sight at;
	struct err e;
	size_t left;

	watch_take(f->watch, on_sighting, ses);
	for (left = buf_count(&f->queue, struct sight); left && !f->found.seen.kind && sights_next(&f->queue, &at);
	     left--) {
		e = (struct err){0};
		if (at.seen.kind != MXBPF_SIGHT_EXIT && has_ended(ses, at.seen.tgid))
			ses_sweep(ses); /* the number has come back, and what is new must stay */
		if (at.seen.kind < sizeof(sights) / sizeof(sights[0]) && sights[at.seen.kind] &&
		    sights[at.seen.kind](ses, &at, &e))
			follow_give_up(ses, at.seen.tgid, &e);
		if (!found && ses->targets[0].tgt)
			f->found = at;
		else
			let_go_on(ses, &at);
		watch_take(f->watch, on_sighting, ses);
	}
	count_missed(ses);
}

bool ses_sight_waits(const struct session *ses)
{
	return ses->follow && ses->follow->queue.len && !ses->follow->found.seen.kind;
}

int ses_sight_fd(const struct session *ses)
{
	return ses->follow ? watch_fd(ses->follow->watch) : -1;
}

struct watch *ses_follow_watch(const struct session *ses)
{
	return ses->follow ? ses->follow->watch : NULL;
}

int follow_open(struct session *ses, struct err *e)
{
	const struct job *job = ses->roots.job;
	const unsigned most = job && job_grows(job) ? MXBPF_WATCHED_HOST : MXBPF_WATCHED_MAX;
	struct follow *f = calloc(1, sizeof(*f));

	if (!f)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	if (watch_open(ses_follows(ses), most, ses->o->backend, ses->o->verbose, &f->watch, e)) {
		free(f);
		return e->code;
	}
	ses->follow = f;
	return 0;
}

pid_t ses_root(const struct session *ses)
{
	return ses->launch.pid ? ses->launch.pid : tgt_pid(ses->named ? ses->named : ses->targets[0].tgt);
}

int ses_follow_open(struct session *ses, struct err *e)
{
	if (ses->follow || (!ses_follows(ses) && !ses_late_wanted(ses->first)))
		return 0;
	if (follow_open(ses, e) || !ses->follow ||
	    watch_add(ses->follow->watch, tgt_pid(ses->targets[0].tgt), false, e))
		return e->code;
	return 0;
}

int ses_follow(struct session *ses, struct err *e)
{
	struct ses_target *first = &ses->targets[0];
	const struct ses_place place = {first->plan.target, first->plan.agent_memory};
	pid_t tgid = tgt_pid(first->tgt);
	struct ses_process *p;

	if (!ses->follow)
		return 0;
	p = ses_process_add(ses, (uint32_t)tgid);
	if (!p || (p->phase != SES_WATCHED && ses_process_plan(ses, p, first, &place)) || ses_roots_join(ses, tgid))
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	if (p->phase != SES_ENDED)
		ses_process_move(ses, p, SES_WATCHED);
	watch_late(ses, tgid);
	if (ses->roots.several)
		follow_again(ses);
	else if (ses_follows(ses))
		follow_children(ses, ses_root(ses));
	return 0;
}

int ses_more(struct session *ses, struct err *e)
{
	pid_t tgid = tgt_pid(ses->targets[0].tgt);
	const struct ses_process *p;
	struct err other;

	if (att_more(ses->first->att, &ses->targets[0].plan, tgid, e) &&
	    (!ses->launch.pid || e->cls != ERR_TARGET)) /* the command may still load a runtime later */
		return e->code;
	for (p = ses->processes.first; ses->follow && p; p = p->next) {
		other = (struct err){0};
		if (p->phase == SES_WATCHED && p->tgid != (uint32_t)tgid &&
		    att_more(p->of->build->att, &p->of->plan, (pid_t)p->tgid, &other))
			follow_give_up(ses, p->tgid, &other);
	}
	return 0;
}

void ses_go_on(struct session *ses)
{
	if (!ses->follow)
		return;
	watch_continue(&ses->follow->found.seen);
	ses->follow->found = (struct sight){0};
	ses_sight(ses); /* sightings that came meanwhile */
}

void ses_follow_free(struct session *ses)
{
	struct follow *f = ses->follow;
	struct sight at;

	if (!f)
		return;
	watch_continue(&f->found.seen);
	while (sights_next(&f->queue, &at))
		watch_continue(&at.seen);
	if (f->watch)
		count_missed(ses);
	watch_close(f->watch);
	hash_fini(&f->loaders);
	buf_fini(&f->queue);
	buf_fini(&f->strangers);
	free(f);
	ses->follow = NULL;
}

void ses_each_process(const struct session *ses, void (*fn)(void *ctx, uint32_t tgid, const struct plan *p), void *ctx)
{
	const struct ses_process *p;
	bool any = false;

	for (p = ses->processes.first; ses->follow && p; p = p->next) {
		if (p->phase != SES_WATCHED)
			continue;
		any = true;
		fn(ctx, p->tgid, &p->of->plan);
	}
	if (!any)
		fn(ctx, (uint32_t)tgt_pid(ses->targets[0].tgt), &ses->targets[0].plan);
}
