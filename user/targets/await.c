// SPDX-License-Identifier: Apache-2.0
/*
 * Finds or awaits the first process with a runtime: the command or one of its children, the process that the user
 * named or a child of it, or one of several.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "plan/early.h"
#include "targets/follow.h"

static int await_target(struct session *ses, const char *who, struct err *e)
{
	char looked[256];

	while (!ses->targets[0].tgt)
		if (ses_interrupted(ses, UINT64_MAX))
			return err_set(e, ERR_TARGET, -ENOENT, "%s loaded no supported library (looked for %s)", who,
				       plan_looked_for(ses->want.runtime, looked));
	return plan_make(ses->targets[0].tgt, &ses->want, &ses->targets[0].plan, e);
}

int ses_await(struct session *ses, struct err *e)
{
	char who[256];

	if (follow_open(ses, e) || watch_add(ses->follow->watch, ses->launch.pid, true, e) ||
	    launch_go(&ses->launch, ses->o->command[0], e))
		return e->code;
	snprintf(who, sizeof(who), "'%s'", ses->o->command[0]);
	return await_target(ses, who, e);
}

/*
 * A launcher of a distributed job has no runtime itself: the first child with a runtime becomes the target. With --wait
 * this may be a future child, or the launcher itself.
 */
static bool find_child(struct session *ses, struct err *e)
{
	const pid_t pid = tgt_pid(ses->named);

	if (follow_open(ses, e) || watch_add(ses->follow->watch, pid, false, e))
		return true;
	follow_children(ses, pid);
	return ses->targets[0].tgt;
}

static int wait_for_runtime(struct session *ses, struct err *e)
{
	struct tgt_lib *loader;
	char who[64], looked[256];
	uint64_t off;
	int err;

	if (plan_loader(ses->named, &loader, &off, e) &&
	    ses->o->no_follow) /* without --no-follow, a child may still map a runtime */
		return e->code;
	*e = (struct err){0};
	if (!ses->follow && (follow_open(ses, e) || watch_add(ses->follow->watch, tgt_pid(ses->named), false, e)))
		return e->code;
	follow_loader(ses, ses->named);
	if (follow_look(ses, (uint32_t)tgt_pid(ses->named), NULL,
			e)) /* it may have mapped a runtime before it was watched */
		return e->code;
	snprintf(who, sizeof(who), "process %d (%s)", tgt_pid(ses->named), tgt_comm(ses->named));
	if (!ses->targets[0].tgt)
		ses_stage(ses, "waiting until %s%s loads %s", who, ses->o->no_follow ? "" : " or a child of it",
			  plan_looked_for(ses->want.runtime, looked));
	err = await_target(ses, who, e);
	if (ses->targets[0].tgt && tgt_pid(ses->targets[0].tgt) == tgt_pid(ses->named)) {
		tgt_close(ses->named);
		ses->named = NULL;
	}
	return err;
}

static int await_roots(struct session *ses, struct err *e)
{
	char who[160], looked[256];

	if (follow_open(ses, e) || ses_roots_find(ses, e))
		return e->code;
	follow_roots(ses);
	job_words(ses->roots.job, who);
	if (!ses->targets[0].tgt && !ses->o->wait)
		return err_set(
			e, ERR_TARGET, -ENOENT,
			"none of %s has loaded a supported library (looked for %s); add --wait to wait until one "
			"does",
			who, plan_looked_for(ses->want.runtime, looked));
	if (!ses->targets[0].tgt)
		ses_stage(ses, "waiting until one of %s loads %s", who, plan_looked_for(ses->want.runtime, looked));
	return await_target(ses, who, e);
}

int ses_await_pid(struct session *ses, struct err *e)
{
	const pid_t pid = ses->o->choice.pids[0];

	if (ses_roots_open(ses, e))
		return e->code;
	if (ses->roots.several)
		return await_roots(ses, e);
	if (tgt_open(pid, &ses->named, e))
		return e->code;
	if (!ses_role_fits(ses, ses->named) && plan_has_runtime(ses->named, &ses->want))
		return err_set(e, ERR_TARGET, -ENOENT,
			       "process %d does not have the role %s; choose another process, or remove --role", pid,
			       ses->o->role);
	if (!ses->o->no_follow && !plan_has_runtime(ses->named, &ses->want) && find_child(ses, e))
		return e->code ? e->code : plan_make(ses->targets[0].tgt, &ses->want, &ses->targets[0].plan, e);
	if (ses->o->wait && !plan_has_runtime(ses->named, &ses->want))
		return wait_for_runtime(ses, e);
	ses->targets[0].tgt = ses->named;
	ses->named = NULL;
	return plan_make(ses->targets[0].tgt, &ses->want, &ses->targets[0].plan, e);
}
