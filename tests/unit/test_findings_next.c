// SPDX-License-Identifier: Apache-2.0
/* Tests what findings say to do next, what a thread waits for on a line, and which job a finding is about. */
#include "feature/findings/jobs.h"
#include "findings_feed.h"

#define LINE "/srv/train.py(12): save"

/* The next step of a finding; "-": none is left; "?": there is no such finding. */
static const char *next_of(const char *key)
{
	static char next[128];
	unsigned i;

	for (i = 0; i < told.n; i++) {
		if (strcmp(told.list[i].rule->key, key) != 0)
			continue;
		snprintf(next, sizeof(next), "%.*s", (int)told.list[i].next.len, told.list[i].next.data);
		return *next ? next : "-";
	}
	return "?";
}

static uint32_t pid_of(const char *key)
{
	unsigned i;

	for (i = 0; i < told.n; i++)
		if (!strcmp(told.list[i].rule->key, key))
			return told.list[i].pid;
	return 0;
}

static const char *evidence_of(const char *key)
{
	static char evidence[1024];
	unsigned i;

	evidence[0] = '\0';
	for (i = 0; i < told.n; i++)
		if (!strcmp(told.list[i].rule->key, key) && told.list[i].evidence.len)
			snprintf(evidence, sizeof(evidence), "%.*s", (int)told.list[i].evidence.len,
				 told.list[i].evidence.data);
	return evidence;
}

/* A look at a thread asleep in a system call. */
static void asleep(uint32_t pid, int nr, enum mxbpf_sleep how, const char *stack, uint64_t count, bool rank)
{
	static uint64_t id = 9000;
	const struct mxbpf_agg_line l = {
		.h = {.kind = MXBPF_AGG_LINE, .size = sizeof(l), .tgid = pid, .ts_ns = 2000 * MS},
		.stack_id = ++id,
		.count = count,
		.tid = pid,
		.syscall = nr,
		.sleeps = (uint8_t)how,
		.main = 1,
		.rank = rank,
	};

	name(id, MXBPF_NAME_STACK, stack);
	feed(&l);
}

/* A loop that spends 60 of 100 ms in Python. */
static void own_code(void)
{
	begin_loop(MXBPF_PART_OUTSIDE, 60);
	operators(400, 4 * MS, 0, 0);
}

static void test_steps(void)
{
	TEST("a line that runs leads to samples of its functions, and from there to the advice")
	{
		own_code();
		looks(PID, PID, LINE, 30, 0);
		found();
		CHECK(!strcmp(next_of("own_code"), "--pid PID --sample 99") && pid_of("own_code") == PID);
		session.sample_hz = 99;
		found();
		CHECK(!strcmp(next_of("own_code"), "-"));
		session.sample_hz = 0;
	}
	TEST("a line that sleeps says in what, leads to the scheduler, and from there to the advice")
	{
		own_code();
		asleep(PID, SYS_fsync, MXBPF_SLEEP_DISK, LINE, 20, false);
		asleep(PID, SYS_write, MXBPF_SLEEP_ANY, LINE, 6, false);
		found();
		CHECK(!strcmp(next_of("own_code"), "--pid PID --sched"));
		CHECK(!strcmp(evidence_of("own_code"), LINE ", 100% of 26 samples, waiting for the disk in fsync"));
		session.sched = true;
		found();
		CHECK(!strcmp(next_of("own_code"), "-"));
		session.sched = false;
	}
	TEST("the next step keeps what the session looked at, so that two findings do not lead back and forth")
	{
		own_code();
		looks(PID, PID, LINE, 30, 0);
		session.sched = true;
		found();
		CHECK(!strcmp(next_of("own_code"), "--pid PID --sample 99 --sched"));
		session.sched = false;
	}
	TEST("a line of two looks is not named, and the next step finds one")
	{
		own_code();
		looks(PID, PID, LINE, 2, 0);
		found();
		CHECK(!strcmp(next_of("own_code"), "now --pid PID") && !*evidence_of("own_code"));
	}
}

static void test_without_python(void)
{
	static char none[] = "";

	session.python = none;
	TEST("in a program without Python, own code that waits for another thread waits for no interpreter lock")
	{
		own_code();
		asleep(PID, SYS_futex, MXBPF_SLEEP_ANY, "/srv/train: fetch", 20, false);
		looks(PID, PID + 1, "/srv/train: decode", 20, 0);
		found();
		CHECK(says("Your own code takes 60%") && !strcmp(next_of("interpreter_lock"), "?"));
		CHECK(!strcmp(evidence_of("own_code"),
			      "/srv/train: fetch, 100% of 20 samples, waiting for another thread (futex)"));
	}
	TEST("in a program without Python, no next step has stacks of Python")
	{
		begin();
		loop(400, 10, MXBPF_PART_OUTSIDE, 1);
		operators(400 * 60, 2000, 0, 0);
		found();
		CHECK(!strcmp(next_of("tiny_operators"), "--pid PID --sample 99"));
		session.sample_hz = 99;
		found();
		CHECK(!strcmp(next_of("tiny_operators"), "-"));
		session.sample_hz = 0;
	}
	session.python = NULL;
}

static void test_stopped(void)
{
	TEST("a process that is stopped is a finding before all others, with its number")
	{
		begin();
		asleep(PID, -1, MXBPF_SLEEP_STOPPED, LINE, 30, false);
		CHECK(!strcmp(found(), "stopped") && says("Process 100 is stopped by a signal or a debugger in 100%"));
		CHECK(!strcmp(next_of("stopped"), "-") && pid_of("stopped") == PID);
	}
	TEST("a process that sleeps is not stopped")
	{
		begin();
		asleep(PID, SYS_read, MXBPF_SLEEP_DISK, LINE, 30, false);
		asleep(PID, -1, MXBPF_SLEEP_STOPPED, LINE, 2, false);
		found();
		CHECK(!strcmp(next_of("stopped"), "?"));
	}
}

/* A loop that waits for other ranks in 70 of 100 ms. */
static void waiting_loop(void)
{
	begin_loop(MXBPF_PART_KVSTORE, 70);
	operators(400, 3 * MS, 0, 0);
	asleep(PID, SYS_futex, MXBPF_SLEEP_ANY, "/srv/train.py(30): step", 140, false);
	looks(PID, PID, "/srv/train.py(28): step", 60, 0);
}

static void test_ranks(void)
{
	TEST("a rank that is late in some iterations is named with the line on which it is more than the others")
	{
		waiting_loop();
		asleep(RANK, SYS_futex, MXBPF_SLEEP_ANY, "/srv/train.py(30): step", 100, true);
		asleep(RANK, SYS_fsync, MXBPF_SLEEP_DISK, LINE, 60, true);
		looks(RANK, RANK, "/srv/train.py(28): step", 40, OTHER_RANK);
		asleep(RANK + 1, SYS_futex, MXBPF_SLEEP_ANY, "/srv/train.py(30): step", 140, true);
		looks(RANK + 1, RANK + 1, "/srv/train.py(28): step", 60, OTHER_RANK);
		found();
		CHECK(says("Process 300 lags"));
		CHECK(strstr(evidence_of("straggler"), LINE ", 30% of 200 samples, waiting for the disk in fsync"));
		CHECK(!strcmp(next_of("straggler"), "--pid PID --sched") && pid_of("straggler") == RANK);
	}
	TEST("ranks that differ by chance have no late one, and the next step looks at all of them")
	{
		waiting_loop();
		asleep(RANK, SYS_futex, MXBPF_SLEEP_ANY, "/srv/train.py(30): step", 26, true);
		looks(RANK, RANK, "/srv/train.py(28): step", 14, OTHER_RANK);
		process(RANK, 1500, false);
		found();
		CHECK(!strcmp(next_of("straggler"), "?") && !strcmp(next_of("exchange"), "--pid PID --job"));
	}
	TEST("other ranks of the job that take the CPUs are no other processes")
	{
		begin_busy(4 * MS, 0);
		looks(RANK, RANK, LINE, 20, OTHER_RANK);
		process(RANK, 2500, false);
		found();
		CHECK(!strcmp(next_of("neighbours"), "?") &&
		      !strcmp(next_of("own_threads"), "--pid PID --omp --sched"));
		CHECK(strstr(evidence_of("own_threads"), "the other 1 rank of the job 0.6 of 2"));
	}
}

static void rooted(uint32_t pid, uint32_t root)
{
	const struct mxbpf_neighbour n = {
		.h = {.kind = MXBPF_NEIGHBOUR, .size = sizeof(n), .tgid = pid, .ts_ns = 5000 * MS},
		.cpu_ns = 1000 * MS,
		.elapsed_ns = 4000 * MS,
		.job = 1,
		.root = root,
	};

	feed(&n);
}

static void test_jobs(void)
{
	struct mdl_labels labels[3] = {{.pid = PID}, {.pid = RANK}, {.pid = RANK + 1}};
	struct buf jobs = {0};
	struct findings_job *job;
	struct mdl *all;
	uint64_t i;

	for (i = 0; i < 3; i++)
		labels[i].texts[MDL_JOB] = (char *)"";
	session.labels = labels;
	session.nlabels = 3;
	TEST("each of several jobs has its findings, from its own processes alone")
	{
		begin();
		rooted(PID, PID);
		rooted(RANK, RANK);
		rooted(RANK + 1, RANK); /* its child */
		loop(40, 100, MXBPF_PART_OUTSIDE, 5);
		for (i = 0; i < 20; i++)
			iteration_of(RANK, i, 100, MXBPF_PART_DATA, 80);
		for (i = 0; i < 20; i++)
			iteration_of(RANK + 1, i, 90, MXBPF_PART_DATA, 70);
		CHECK(!findings_jobs(model, &session, &jobs) && buf_count(&jobs, *job) == 2);
		job = buf_at(&jobs, struct findings_job, 1);
		CHECK(job->root == RANK && job->tgid == RANK && job->loop_ns == 3800 * MS);
		CHECK(buf_at(&jobs, struct findings_job, 0)->tgid == PID);
		all = model;
		model = findings_only(all, &session, job);
		CHECK(!strcmp(found(), "data_wait") && told.list[0].pid == RANK);
		mdl_free(model);
		model = findings_only(all, &session, job - 1);
		CHECK(!strcmp(found(), ""));
		mdl_free(all);
	}
	buf_fini(&jobs);
	TEST("a worker that ended in the window is of the only job of the session")
	{
		begin();
		rooted(PID, PID);
		loop(40, 100, MXBPF_PART_OUTSIDE, 5);
		for (i = 0; i < 20; i++)
			iteration_of(RANK, i, 10, MXBPF_PART_DATA, 8);
		CHECK(!findings_jobs(model, &session, &jobs) && buf_count(&jobs, *job) == 1);
	}
	buf_fini(&jobs);
	TEST("processes of a recording that does not say from which they descend are one job, unless they have labels")
	{
		begin();
		for (i = 0; i < 20; i++) {
			iteration_of(PID, i, 100, MXBPF_PART_DATA, 80);
			iteration_of(RANK, i, 100, MXBPF_PART_DATA, 80);
		}
		CHECK(!findings_jobs(model, &session, &jobs) && buf_count(&jobs, *job) == 1);
		labels[0].texts[MDL_JOB] = (char *)"a";
		labels[1].texts[MDL_JOB] = (char *)"b";
		buf_fini(&jobs);
		CHECK(!findings_jobs(model, &session, &jobs) && buf_count(&jobs, *job) == 2);
	}
	buf_fini(&jobs);
	session.labels = NULL;
	session.nlabels = 0;
}

int main(void)
{
	test_steps();
	test_without_python();
	test_stopped();
	test_ranks();
	test_jobs();
	UNIT_MAIN_END;
}
