// SPDX-License-Identifier: Apache-2.0
/* Tests which processes belong to a choice: by numbers, by a name, by a control group, and as a job. */

#include "job/choose.h"
#include "unit.h"

struct kid {
	const char *name; /* of the process */
	const char *meet; /* MASTER_ADDR and MASTER_PORT; NULL: not set */
	bool own_group;
};

/* Starts a process that waits until it is killed. */
static pid_t start(const struct kid *k)
{
	char addr[64], port[64], byte;
	char *env[] = {addr, port, NULL}, *none[] = {NULL};
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return -1;
	pid = fork();
	if (!pid) {
		if (k->own_group)
			setpgid(0, 0);
		snprintf(addr, sizeof(addr), "MASTER_ADDR=%s", k->meet ? k->meet : "");
		snprintf(port, sizeof(port), "MASTER_PORT=29500");
		execle("/bin/sleep", k->name, "1000", NULL, k->meet ? env : none);
		_exit(127);
	}
	close(ends[1]);
	if (read(ends[0], &byte, 1)) /* exec closes the other end */
		pid = -1;
	close(ends[0]);
	return pid;
}

static bool lists(const struct job *j, pid_t pid)
{
	FREED(buf_fini) struct buf pids = {0};
	bool found = false;
	size_t i;

	CHECK(!job_list(j, &pids));
	for (i = 0; i < buf_count(&pids, pid_t); i++)
		found |= *buf_at(&pids, pid_t, i) == pid;
	return found;
}

/* Returns a mask of the processes that belong to a choice. */
static unsigned chosen(const struct job_choice *c, const pid_t *pids, unsigned n)
{
	struct job *j;
	struct err e = {0};
	unsigned mask = 0, i;

	CHECK(!job_new(c, &j, &e));
	for (i = 0; i < n; i++)
		if (job_has(j, pids[i])) {
			mask |= 1u << i;
			CHECK(lists(j, pids[i]));
		}
	job_free(j);
	return mask;
}

static void test_choices(void)
{
	static const struct kid kids[] = {
		{"sleep", NULL, true},	     {"sleep", NULL, false},	  {"sleep", "10.0.0.1", true},
		{"sleep", "10.0.0.1", true}, {"sleep", "10.0.0.2", true},
	};
	pid_t pids[5];
	struct job_choice c = {.npids = 2};
	struct job *j;
	struct err e = {0};
	unsigned i;

	for (i = 0; i < 5; i++)
		pids[i] = start(&kids[i]);
	TEST("numbers choose these processes and no others")
	{
		memcpy(c.pids, pids, sizeof(pids));
		CHECK(chosen(&c, pids, 5) == 3);
	}
	TEST("processes that were told to meet at the same place are a job")
	{
		c = (struct job_choice){.pids = {pids[2]}, .npids = 1, .job = true};
		CHECK(chosen(&c, pids, 5) == (4 | 8));
	}
	TEST("without a place, processes of the same group are a job")
	{
		c = (struct job_choice){.pids = {pids[0]}, .npids = 1, .job = true};
		CHECK(chosen(&c, pids, 5) == 1);
		c.pids[0] = pids[1];
		CHECK(chosen(&c, pids, 5) == 2);
	}
	TEST("a name chooses by a glob")
	{
		c = (struct job_choice){.comm = "slee?"};
		CHECK(chosen(&c, pids, 5) == 31);
		c.comm = "slee";
		CHECK(chosen(&c, pids, 5) == 0);
	}
	TEST("a control group chooses by its path and by a glob of a part, and every process is below the root")
	{
		c = (struct job_choice){.comm = "sleep", .cgroup = "/"};
		CHECK(chosen(&c, pids, 5) == 31);
		c.cgroup = "no-such-group*";
		CHECK(chosen(&c, pids, 5) == 0);
		c.cgroup = "/no-such-group";
		CHECK(chosen(&c, pids, 5) == 0);
	}
	for (i = 0; i < 5; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	TEST("a number that no process has is refused, and it has no job")
	{
		c = (struct job_choice){.pids = {pids[0]}, .npids = 1, .job = true};
		CHECK(job_new(&c, &j, &e) == -ESRCH);
		CHECK(e.cls == ERR_TARGET);
		job_free(j);
	}
}

/* Starts a launcher of one rank, which has a child. Returns the launcher, which leads a process group. */
static pid_t launch(pid_t *rank, pid_t *child)
{
	int ends[2];
	pid_t pid;
	FILE *f;

	CHECK(!pipe(ends));
	pid = fork();
	if (!pid) {
		setpgid(0, 0);
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		execle("/bin/sh", "sh", "-c", "RANK=0 sh -c 'sleep 1000 & echo $$ $!; wait' & wait", NULL,
		       (char *[]){"PATH=/bin:/usr/bin", NULL});
		_exit(127);
	}
	close(ends[1]);
	f = fdopen(ends[0], "r");
	CHECK(f && fscanf(f, "%d %d", rank, child) == 2);
	fclose(f);
	return pid;
}

static void test_launcher(void)
{
	struct job_choice c = {.npids = JOB_PIDS_MAX - 1};
	struct buf pids = {0};
	pid_t rank, child, launcher = launch(&rank, &child);

	TEST("a launcher has the ranks that it has started, and a rank with a child is no launcher")
	{
		CHECK(!job_ranks_of(launcher, &pids) && buf_count(&pids, pid_t) == 1 &&
		      *buf_at(&pids, pid_t, 0) == rank);
		pids.len = 0;
		CHECK(!job_ranks_of(rank, &pids) && !pids.len);
	}
	TEST("a process is chosen once, and more than there is room for are refused")
	{
		buf_put(&pids, &rank, sizeof(rank));
		CHECK(!job_choose(&c, &pids) && !job_choose(&c, &pids) && c.npids == JOB_PIDS_MAX);
		buf_put(&pids, &child, sizeof(child));
		CHECK(job_choose(&c, &pids) == -E2BIG && c.npids == JOB_PIDS_MAX);
	}
	buf_fini(&pids);
	kill(-launcher, SIGKILL);
	waitpid(launcher, NULL, 0);
}

int main(void)
{
	test_choices();
	test_launcher();
	UNIT_MAIN_END;
}
