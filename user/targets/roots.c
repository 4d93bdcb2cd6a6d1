// SPDX-License-Identifier: Apache-2.0
/*
 * The processes that the user chose: one by its number, or several by numbers, by a name, by a control group, or as a
 * job. New ones are noticed when they execute a program, which the kernel tells; what they fork is followed as
 * children. With --host, all processes are looked at, and those that map a runtime are the chosen ones. The thread that
 * reads lines of Python lists them.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/watch.h"
#include "session/priv.h"
#include "targets/targets.h"

#define ENDED_AT_ONCE 16

static struct ses_process *root_of(const struct session *ses, pid_t pid)
{
	struct ses_process *p = ses_process_of(ses, (uint32_t)pid);

	return p && p->root ? p : NULL;
}

static void set_root(struct session *ses, struct ses_process *p, bool root)
{
	pthread_mutex_lock(&ses->lock);
	p->root = root;
	pthread_mutex_unlock(&ses->lock);
}

static int roots_add(struct session *ses, pid_t pid)
{
	struct ses_roots *r = &ses->roots;
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = (uint64_t)pid};
	struct ses_process *p;
	int pidfd = -1;

	if (ses->o->choice.npids) {
		pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
		if (pidfd < 0)
			return errno == ESRCH || errno == EINVAL ? 0 : -errno;
	}
	p = ses_process_add(ses, (uint32_t)pid);
	if (!p || (pidfd >= 0 && epoll_ctl(r->ended_fd, EPOLL_CTL_ADD, pidfd, &ev))) {
		if (pidfd >= 0)
			close(pidfd);
		return -ENOMEM;
	}
	if (p->root) { /* the user named it twice */
		if (pidfd >= 0)
			close(pidfd);
		return 0;
	}
	p->pidfd = pidfd;
	set_root(ses, p, true);
	r->alive++;
	return 0;
}

static void drop(struct session *ses, struct ses_process *root)
{
	if (root->pidfd >= 0)
		close(root->pidfd);
	set_root(ses, root, false);
	ses->roots.alive--;
}

/* The last one with a pidfd says it itself, to ses_roots_ended(), because the session ends then. */
void ses_roots_left(struct session *ses, struct ses_process *p)
{
	if (p->root && (p->pidfd < 0 || ses->roots.alive > 1))
		drop(ses, p);
}

int ses_roots_join(struct session *ses, pid_t pid)
{
	return !ses->o->choice.host || ses_is_root(ses, pid) ? 0 : roots_add(ses, pid);
}

int ses_roots_open(struct session *ses, struct err *e)
{
	const struct job_choice *c = &ses->o->choice;
	struct ses_roots *r = &ses->roots;

	if (c->npids == 1 && !c->job)
		return 0;
	r->several = true;
	r->ended_fd = epoll_create1(EPOLL_CLOEXEC);
	if (r->ended_fd < 0)
		return err_set(e, ERR_RUNTIME, -errno, "cannot watch processes: %s", strerror(errno));
	return job_new(c, &r->job, e);
}

int ses_roots_find(struct session *ses, struct err *e)
{
	struct buf pids = {0};
	char who[160];
	int err;
	size_t i;

	if (job_grows(ses->roots.job)) /* before the others are listed, so that none falls in between */
		watch_tell_all(ses_follow_watch(ses));
	if (ses->o->choice.host) /* those that map a runtime join later */
		return 0;
	err = job_list(ses->roots.job, &pids);
	for (i = 0; !err && i < buf_count(&pids, pid_t); i++)
		err = roots_add(ses, *buf_at(&pids, pid_t, i));
	buf_fini(&pids);
	if (err)
		return err_set(e, ERR_RUNTIME, err, "cannot look for processes: %s", strerror(-err));
	if (!ses->roots.alive && !ses->o->wait)
		return err_set(e, ERR_TARGET, -ESRCH, "there are none of %s; add --wait to wait for one",
			       job_words(ses->roots.job, who));
	return 0;
}

/* A process that calls exec again is known already. */
int ses_roots_new(struct session *ses, pid_t pid, struct err *e)
{
	if (!ses->roots.several || !job_has(ses->roots.job, pid))
		return 0;
	if (watch_add(ses_follow_watch(ses), pid, false, e))
		return e->code;
	if (!ses->o->choice.host && !ses_is_root(ses, pid) && roots_add(ses, pid))
		return err_set(e, ERR_RUNTIME, -ENOMEM, "process %d is not followed: there is no memory", pid);
	return 1;
}

/* The session goes on if the user chose processes by what they are: others may come. */
bool ses_roots_ended(struct session *ses)
{
	struct ses_roots *r = &ses->roots;
	struct epoll_event ev[ENDED_AT_ONCE];
	struct ses_process *root;
	int n, i;

	n = epoll_wait(r->ended_fd, ev, ENDED_AT_ONCE, 0);
	for (i = 0; i < n; i++) {
		root = root_of(ses, (pid_t)ev[i].data.u64);
		if (root)
			drop(ses, root);
	}
	return !r->alive && ses->o->choice.npids;
}

void ses_each_root(struct session *ses, void (*fn)(void *ctx, pid_t pid), void *ctx)
{
	const struct ses_process *p;
	struct buf all = {0};
	size_t i;

	if (!ses->roots.several)
		fn(ctx, ses_root(ses));
	pthread_mutex_lock(&ses->lock);
	for (p = ses->processes.first; p; p = p->next)
		if (p->root)
			buf_put(&all, &p->tgid, sizeof(p->tgid));
	pthread_mutex_unlock(&ses->lock);
	for (i = 0; i < buf_count(&all, uint32_t); i++)
		fn(ctx, (pid_t)*buf_at(&all, uint32_t, i));
	buf_fini(&all);
}

bool ses_is_root(const struct session *ses, pid_t pid)
{
	return ses->roots.several ? root_of(ses, pid) != NULL : pid == ses_root(ses);
}

void ses_roots_close(struct session *ses)
{
	struct ses_roots *r = &ses->roots;
	struct ses_process *p;

	for (p = ses->processes.first; p; p = p->next)
		if (p->root)
			drop(ses, p);
	if (r->several && r->ended_fd >= 0)
		close(r->ended_fd);
	job_free(r->job);
}
