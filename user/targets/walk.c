// SPDX-License-Identifier: Apache-2.0
/* Walks over the processes that run already when a session begins. Later ones are told by the kernel. */
#include <unistd.h>

#include "targets/follow.h"

struct walk {
	struct session *ses;
	struct hash seen; /* pids */
};

static void walk_look(struct session *ses, pid_t pid)
{
	const struct tgt *first = ses->targets[0].tgt; /* it is followed already */
	struct err e = {0};

	if ((!first || pid != tgt_pid(first)) &&
	    (watch_add(ses->follow->watch, pid, false, &e) || follow_look(ses, (uint32_t)pid, NULL, &e)))
		follow_give_up(ses, (uint32_t)pid, &e);
}

static void walk_look_at(void *session, pid_t pid)
{
	if (pid != getpid())
		walk_look(session, pid);
}

static void look_at_tree(void *walk, pid_t pid)
{
	struct walk *w = walk;
	uint64_t *seen = hash_put(&w->seen, (uint64_t)pid, 0);

	if (!seen || *seen)
		return;
	*seen = 1;
	walk_look(w->ses, pid);
	if (ses_follows(w->ses))
		tgt_each_child(pid, look_at_tree, w);
}

void follow_children(struct session *ses, pid_t pid)
{
	struct walk w = {.ses = ses};

	tgt_each_child(pid, look_at_tree, &w);
	hash_fini(&w.seen);
}

void follow_roots(struct session *ses)
{
	struct walk w = {.ses = ses};

	if (ses->o->choice.host)
		tgt_each_process(walk_look_at, ses);
	else
		ses_each_root(ses, look_at_tree, &w);
	hash_fini(&w.seen);
}

void follow_again(struct session *ses)
{
	const struct ses_process *p;

	if (!ses->o->choice.host) {
		follow_roots(ses);
		return;
	}
	for (p = ses->processes.first; p; p = p->next)
		if (p->phase == SES_LATER)
			walk_look(ses, (pid_t)p->tgid);
}
