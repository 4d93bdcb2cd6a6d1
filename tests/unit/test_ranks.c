// SPDX-License-Identifier: Apache-2.0
/* Tests which processes are taken for other ranks of a job: this program starts some that sleep. */

#include "feature/lines/load_ranks.h"
#include "unit.h"

#define MAX 16

static const struct adp adp = {.meet_env = {"MEET_AT", "MEET_PORT"}, .role_env = "ROLE"};
static pid_t started[MAX];
static unsigned nstarted;

/* Becomes this program anew, which writes a byte to stdout and sleeps. env: "A=B;C=D". */
static void sleep_with(const char *name, const char *env, int out)
{
	char text[256], *var, *rest = text, *args[] = {"test_ranks", "sleep", (char *)name, NULL}, *vars[8] = {NULL};
	unsigned n = 0;

	snprintf(text, sizeof(text), "%s", env);
	while ((var = strsep(&rest, ";")) && n < 7)
		vars[n++] = var;
	if (dup2(out, STDOUT_FILENO) == STDOUT_FILENO)
		execve("/proc/self/exe", args, vars);
	_exit(1);
}

/* Starts a process, as a child of this one or of another one that waits for it. */
static pid_t start(const char *name, const char *env, bool grandchild)
{
	pid_t pid = 0, child;
	char byte;
	int ends[2];

	if (pipe(ends))
		return 0;
	child = fork();
	if (!child && grandchild) {
		pid = fork();
		if (pid)
			_exit(waitpid(pid, NULL, 0) != pid);
		pid = getpid();
		if (write(ends[1], &pid, sizeof(pid)) != sizeof(pid))
			_exit(1);
	}
	if (!child)
		sleep_with(name, env, ends[1]);
	close(ends[1]);
	if (!grandchild)
		pid = child;
	else
		CHECK(read(ends[0], &pid, sizeof(pid)) == sizeof(pid));
	CHECK(read(ends[0], &byte, 1) == 1); /* its command line and environment are there */
	close(ends[0]);
	started[nstarted++] = pid;
	return pid;
}

struct seen {
	pid_t pids[MAX];
	unsigned n;
};

static void see(void *ctx, pid_t pid)
{
	struct seen *s = ctx;

	if (s->n < MAX)
		s->pids[s->n++] = pid;
}

static bool has(const struct seen *s, pid_t pid)
{
	unsigned i;

	for (i = 0; i < s->n; i++)
		if (s->pids[i] == pid)
			return true;
	return false;
}

static struct seen ranks_of(pid_t pid, bool thorough)
{
	struct ranks *r = ranks_new(pid, &adp);
	struct seen s = {.n = 0}, again = {.n = 0};

	CHECK(r);
	if (!r)
		return s;
	ranks_each(r, thorough, see, &s);
	ranks_each(r, thorough, see, &again);
	CHECK(s.n == again.n);
	ranks_free(r);
	return s;
}

static void test_meeting(void)
{
	const char *meeting = "MEET_AT=here;MEET_PORT=7;ROLE=worker";
	const pid_t own = start("0", meeting, false), child = start("a", meeting, false),
		    far = start("b", meeting, true);
	const pid_t server = start("c", "MEET_AT=here;MEET_PORT=7;ROLE=server", false);
	const pid_t other = start("1", "MEET_AT=here;MEET_PORT=8;ROLE=worker", false);
	const pid_t none = start("2", "ROLE=worker", false);
	struct seen s;

	TEST("processes that were told to meet at the same place are ranks, whoever started them and whatever they run")
	{
		s = ranks_of(own, true);
		CHECK(has(&s, child) && has(&s, far));
	}
	TEST("a process of another role or of another meeting is no rank, and a rank is none of itself")
	{
		s = ranks_of(own, true);
		CHECK(s.n == 2 && !has(&s, server) && !has(&s, other) && !has(&s, none) && !has(&s, own));
	}
	TEST("ranks with the same parent are found without looking at all processes")
	{
		s = ranks_of(own, false);
		CHECK(s.n == 1 && has(&s, child));
	}
}

static void test_siblings(void)
{
	const pid_t own = start("--rank=0", "", false), other = start("--rank=11", "", false);
	const pid_t stranger = start("--lr=0", "", false), far = start("--rank=2", "", true);
	struct seen s;

	TEST("without a meeting, ranks are children of one parent whose command lines differ in digits only")
	{
		s = ranks_of(own, true);
		CHECK(s.n == 1 && has(&s, other) && !has(&s, stranger) && !has(&s, far));
	}
}

int main(int argc, char **argv)
{
	unsigned i;

	if (argc > 2) {
		alarm(60); /* if the test dies */
		if (write(STDOUT_FILENO, "r", 1) == 1)
			pause();
		return 0;
	}
	test_meeting();
	test_siblings();
	for (i = 0; i < nstarted; i++)
		kill(started[i], SIGKILL);
	return unit_end();
}
