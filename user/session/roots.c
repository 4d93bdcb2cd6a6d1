// SPDX-License-Identifier: Apache-2.0
/*
 * The processes that the user chose: one by its number, or several by numbers, by a name, by a control group, or as a
 * job. New ones are noticed when they execute a program, which the kernel tells; what they fork is followed as
 * children.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/watch.h"
#include "session/priv.h"

#define ENDED_AT_ONCE 16

struct ses_root {
	pid_t pid;
	int pidfd; /* -1: it has ended */
};

static int add(struct session *ses, pid_t pid)
{
	struct ses_roots *r = &ses->roots;
	struct ses_root new = {pid, (int)syscall(SYS_pidfd_open, pid, 0)};
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = buf_count(&r->all, struct ses_root)};

	if (new.pidfd < 0)
		return errno == ESRCH || errno == EINVAL ? 0 : -errno;
	if (epoll_ctl(r->ended_fd, EPOLL_CTL_ADD, new.pidfd, &ev) || buf_put(&r->all, &new, sizeof(new))) {
		close(new.pidfd);
		return -ENOMEM;
	}
	r->alive++;
	return 0;
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
	err = job_list(ses->roots.job, &pids);
	for (i = 0; !err && i < buf_count(&pids, pid_t); i++)
		err = add(ses, *buf_at(&pids, pid_t, i));
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
	if (!ses_is_root(ses, pid) && add(ses, pid))
		return err_set(e, ERR_RUNTIME, -ENOMEM, "process %d is not followed: there is no memory", pid);
	return 1;
}

/* The session goes on if the user chose processes by what they are: others may come. */
bool ses_roots_ended(struct session *ses)
{
	struct ses_roots *r = &ses->roots;
	struct epoll_event ev[ENDED_AT_ONCE];
	struct ses_root *root;
	int n, i;

	n = epoll_wait(r->ended_fd, ev, ENDED_AT_ONCE, 0);
	for (i = 0; i < n; i++) {
		root = buf_at(&r->all, struct ses_root, ev[i].data.u64);
		close(root->pidfd);
		root->pidfd = -1;
		r->alive--;
	}
	return !r->alive && ses->o->choice.npids;
}

void ses_each_root(const struct session *ses, void (*fn)(void *ctx, pid_t pid), void *ctx)
{
	const struct ses_root *root = (const struct ses_root *)ses->roots.all.data;
	size_t i;

	if (!ses->roots.several)
		fn(ctx, ses_root(ses));
	for (i = 0; i < buf_count(&ses->roots.all, struct ses_root); i++)
		if (root[i].pidfd >= 0)
			fn(ctx, root[i].pid);
}

bool ses_is_root(const struct session *ses, pid_t pid)
{
	const struct ses_root *root = (const struct ses_root *)ses->roots.all.data;
	size_t i;

	for (i = 0; i < buf_count(&ses->roots.all, struct ses_root); i++)
		if (root[i].pidfd >= 0 && root[i].pid == pid)
			return true;
	return !ses->roots.several && pid == ses_root(ses);
}

void ses_roots_close(struct session *ses)
{
	struct ses_roots *r = &ses->roots;
	const struct ses_root *root = (const struct ses_root *)r->all.data;
	size_t i;

	for (i = 0; i < buf_count(&r->all, struct ses_root); i++)
		if (root[i].pidfd >= 0)
			close(root[i].pidfd);
	if (r->several && r->ended_fd >= 0)
		close(r->ended_fd);
	buf_fini(&r->all);
	job_free(r->job);
}
