// SPDX-License-Identifier: Apache-2.0
/*
 * The processes that the user chose: one by its number, or several by numbers, by a name, by a control group, or as a
 * job. New ones are noticed when they execute a program, which the kernel tells; what they fork is followed as
 * children. With --host, all processes are looked at, and those that map a runtime are the chosen ones. The thread that
 * reads lines of Python lists them while the main thread adds and drops some.
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
#define ENDED_KEPT    64 /* so many that have ended stay in the list */

struct ses_root {
	pid_t pid; /* 0: it has ended */
	int pidfd; /* -1: the session does not end with it */
};

static struct ses_root *root_of(const struct session *ses, pid_t pid)
{
	const uint64_t *at = hash_get(&ses->roots.places, (uint64_t)pid, 0);

	return at ? buf_at(&ses->roots.all, struct ses_root, *at) : NULL;
}

static int append(struct ses_roots *r, const struct ses_root *new)
{
	uint64_t *at = hash_put(&r->places, (uint64_t) new->pid, 0), place;
	int err = at ? 0 : -ENOMEM;

	if (at)
		*at = buf_count(&r->all, struct ses_root);
	pthread_mutex_lock(&r->lock);
	err = err ? err : buf_put(&r->all, new, sizeof(*new));
	pthread_mutex_unlock(&r->lock);
	if (err)
		hash_del(&r->places, (uint64_t) new->pid, 0, &place);
	return err;
}

static int roots_add(struct session *ses, pid_t pid)
{
	struct ses_roots *r = &ses->roots;
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = (uint64_t)pid};
	struct ses_root new = {pid, -1};

	if (ses->o->choice.npids) {
		new.pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
		if (new.pidfd < 0)
			return errno == ESRCH || errno == EINVAL ? 0 : -errno;
	}
	if ((new.pidfd >= 0 && epoll_ctl(r->ended_fd, EPOLL_CTL_ADD, new.pidfd, &ev)) || append(r, &new)) {
		if (new.pidfd >= 0)
			close(new.pidfd);
		return -ENOMEM;
	}
	r->alive++;
	return 0;
}

/* The order stays, because the first one gives the session its name. */
static void drop_ended(struct ses_roots *r)
{
	struct ses_root *root = (struct ses_root *)r->all.data;
	size_t i, n = buf_count(&r->all, struct ses_root), kept = 0;

	if (n < ENDED_KEPT + 2 * (size_t)r->alive)
		return;
	for (i = 0; i < n; i++) {
		if (!root[i].pid)
			continue;
		*hash_get(&r->places, (uint64_t)root[i].pid, 0) = kept;
		root[kept++] = root[i];
	}
	r->all.len = kept * sizeof(*root);
}

static void drop(struct ses_roots *r, struct ses_root *root)
{
	uint64_t at;

	if (root->pidfd >= 0)
		close(root->pidfd);
	hash_del(&r->places, (uint64_t)root->pid, 0, &at);
	r->alive--;
	pthread_mutex_lock(&r->lock);
	root->pid = 0;
	drop_ended(r);
	pthread_mutex_unlock(&r->lock);
}

/* Those with a pidfd say it themselves, to ses_roots_ended(). */
void ses_roots_left(struct session *ses, pid_t pid)
{
	struct ses_root *root = root_of(ses, pid);

	if (root && root->pidfd < 0)
		drop(&ses->roots, root);
}

int ses_roots_join(struct session *ses, pid_t pid)
{
	return !ses->o->choice.host || ses_is_root(ses, pid) ? 0 : roots_add(ses, pid);
}

int ses_roots_open(struct session *ses, struct err *e)
{
	const struct job_choice *c = &ses->o->choice;
	struct ses_roots *r = &ses->roots;

	pthread_mutex_init(&r->lock, NULL);
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
	struct ses_root *root;
	int n, i;

	n = epoll_wait(r->ended_fd, ev, ENDED_AT_ONCE, 0);
	for (i = 0; i < n; i++) {
		root = root_of(ses, (pid_t)ev[i].data.u64);
		if (root)
			drop(r, root);
	}
	return !r->alive && ses->o->choice.npids;
}

void ses_each_root(struct session *ses, void (*fn)(void *ctx, pid_t pid), void *ctx)
{
	struct ses_roots *r = &ses->roots;
	struct buf all = {0};
	size_t i;

	if (!r->several)
		fn(ctx, ses_root(ses));
	pthread_mutex_lock(&r->lock);
	buf_put(&all, r->all.data, r->all.len);
	pthread_mutex_unlock(&r->lock);
	for (i = 0; i < buf_count(&all, struct ses_root); i++)
		if (buf_at(&all, struct ses_root, i)->pid)
			fn(ctx, buf_at(&all, struct ses_root, i)->pid);
	buf_fini(&all);
}

bool ses_is_root(const struct session *ses, pid_t pid)
{
	return ses->roots.several ? root_of(ses, pid) != NULL : pid == ses_root(ses);
}

void ses_roots_close(struct session *ses)
{
	struct ses_roots *r = &ses->roots;
	const struct ses_root *root = (const struct ses_root *)r->all.data;
	size_t i;

	for (i = 0; i < buf_count(&r->all, struct ses_root); i++)
		if (root[i].pid && root[i].pidfd >= 0)
			close(root[i].pidfd);
	if (r->several && r->ended_fd >= 0)
		close(r->ended_fd);
	buf_fini(&r->all);
	hash_fini(&r->places);
	job_free(r->job);
}
