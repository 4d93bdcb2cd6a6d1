// SPDX-License-Identifier: Apache-2.0
/* Tests which processes belong to a choice: by numbers, by a name, by a control group, and as a job. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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
	struct buf pids = {0};
	bool found = false;
	size_t i;

	CHECK(!job_list(j, &pids));
	for (i = 0; i < buf_count(&pids, pid_t); i++)
		found |= *buf_at(&pids, pid_t, i) == pid;
	buf_fini(&pids);
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

int main(void)
{
	test_choices();
	UNIT_MAIN_END;
}
