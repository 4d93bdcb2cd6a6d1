// SPDX-License-Identifier: Apache-2.0
#include "attach/faults.h"
#include "attach/watch.h"

#include <poll.h>

#include "unit.h"

#define SEEN_MAX 16

struct seen {
	struct mxbpf_sighting all[SEEN_MAX];
	unsigned n;
};

static void remember(void *ctx, const struct mxbpf_sighting *s)
{
	struct seen *seen = ctx;

	if (seen->n < SEEN_MAX)
		seen->all[seen->n++] = *s;
}

/* Starts a child that waits for a byte or for the end of the pipe, and then calls then(). */
static pid_t child(int *go, void (*then)(void))
{
	int ends[2];
	pid_t pid;
	char c;

	if (pipe(ends))
		return -1;
	pid = fork();
	if (!pid) {
		close(ends[1]);
		if (read(ends[0], &c, 1) < 0)
			_exit(1);
		then();
		_exit(0);
	}
	close(ends[0]);
	*go = ends[1];
	return pid;
}

static void run_true(void)
{
	execl("/proc/self/exe", "test_watch_kernel", "--end", NULL);
}

static void fork_once(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
}

static void vfork_once(void)
{
	pid_t pid = vfork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
}

static void fork_often(void)
{
	size_t i;

	for (i = 0; i < MXBPF_SIGHTINGS_BYTES / sizeof(struct mxbpf_sighting); i++)
		fork_once();
}

/* Runs until the process has exited or is stopped; returns the status from waitpid(). */
static int watched(struct watch *w, void (*what)(void), bool launched, struct seen *seen, pid_t *pid)
{
	struct err e = {0};
	int go, status = 0;

	memset(seen, 0, sizeof(*seen));
	*pid = child(&go, what);
	CHECK(!watch_add(w, *pid, launched, &e));
	close(go);
	waitpid(*pid, &status, WUNTRACED);
	watch_take(w, remember, seen);
	return status;
}

static bool saw(const struct seen *s, enum mxbpf_sight kind, pid_t tgid)
{
	unsigned i;

	for (i = 0; i < s->n; i++)
		if (s->all[i].kind == kind && (!tgid || s->all[i].tgid == (uint32_t)tgid))
			return true;
	return false;
}

static void test_stop(struct watch *w)
{
	struct seen seen;
	pid_t pid;
	int status = watched(w, run_true, true, &seen, &pid);

	CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	CHECK(seen.n == 1 && seen.all[0].kind == MXBPF_SIGHT_EXEC && seen.all[0].stopped);
	watch_continue(&seen.all[0]);
	CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void test_no_stop(struct watch *w)
{
	struct seen seen;
	pid_t pid;
	int status = watched(w, run_true, false, &seen, &pid);

	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	CHECK(saw(&seen, MXBPF_SIGHT_EXEC, pid) && saw(&seen, MXBPF_SIGHT_EXIT, pid) && !seen.all[0].stopped);
}

static void test_forks(struct watch *w, struct watch *alone)
{
	struct seen seen;
	pid_t pid;

	watched(w, fork_once, false, &seen, &pid);
	CHECK(seen.n == 3 && seen.all[0].kind == MXBPF_SIGHT_FORK && seen.all[0].parent == (uint32_t)pid);
	CHECK(saw(&seen, MXBPF_SIGHT_EXIT, (pid_t)seen.all[0].tgid) && saw(&seen, MXBPF_SIGHT_EXIT, pid));
	watched(w, vfork_once, false, &seen, &pid);
	CHECK(!saw(&seen, MXBPF_SIGHT_FORK, 0) && saw(&seen, MXBPF_SIGHT_EXIT, pid));
	watched(alone, fork_once, false, &seen, &pid);
	CHECK(seen.n == 1 && saw(&seen, MXBPF_SIGHT_EXIT, pid));
}

static void test_missed(void)
{
	struct watch *w = NULL;
	struct seen seen;
	struct err e = {0};
	pid_t pid;

	CHECK(!watch_open(true, MXBPF_WATCHED_MAX, NULL, false, &w, &e));
	watched(w, fork_once, false, &seen, &pid);
	CHECK(!watch_missed(w));
	watched(w, fork_often, false, &seen, &pid);
	CHECK(watch_missed(w) > 0);
	watch_close(w);
}

static void test_room(void)
{
	struct watch *w = NULL;
	struct err e = {0};
	pid_t pid;

	CHECK(!watch_open(false, 2, NULL, false, &w, &e));
	for (pid = 1; pid <= 3; pid++)
		CHECK(!watch_add(w, pid, false, &e) && watch_missed(w) == (pid > 2));
	CHECK(!watch_add(w, 1, false, &e) && watch_missed(w) == 1); /* it has its place already */
	watch_close(w);
}

static void test_close(void)
{
	struct watch *w = NULL;
	struct err e = {0};
	pid_t pid;
	int go, status;

	CHECK(!watch_open(true, MXBPF_WATCHED_MAX, NULL, false, &w, &e));
	pid = child(&go, run_true);
	CHECK(!watch_add(w, pid, true, &e));
	close(go);
	CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
	watch_close(w); /* nobody has read the event of the stop yet */
	CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

int main(int argc, char **argv)
{
	struct watch *w = NULL, *alone = NULL;
	struct err e = {0};

	if (argc > 1)
		return 7;
	if (geteuid()) {
		TEST("processes are watched # SKIP needs root") CHECK(1);
		UNIT_MAIN_END;
	}
	TEST("watching can be started with and without children")
	{
		CHECK(!watch_open(true, MXBPF_WATCHED_MAX, NULL, false, &w, &e) &&
		      !watch_open(false, MXBPF_WATCHED_MAX, NULL, false, &alone, &e));
	}
	if (!w || !alone) {
		puts(e.why);
		UNIT_MAIN_END;
	}
	TEST("page faults are sampled for threads of the process alone, whatever number its memory gives")
	CHECK(faults_is_thread(getpid(), getpid()) && !faults_is_thread(getpid(), getppid()) &&
	      !faults_is_thread(getpid(), 1) && !faults_is_thread(getpid(), -1));
	TEST("a launched process is stopped at exec until it is continued")
	test_stop(w);
	TEST("a process that was not launched is seen to exec and exit and is never stopped")
	test_no_stop(w);
	TEST("forks are reported from fork to exit, vforks only after exec, and neither without --follow")
	test_forks(w, alone);
	TEST("events beyond the buffer are counted")
	test_missed();
	TEST("processes beyond the number that is watched are counted, and are no error")
	test_room();
	TEST("closing a watch continues processes that were stopped but not yet reported")
	test_close();
	watch_close(w);
	watch_close(alone);
	UNIT_MAIN_END;
}
