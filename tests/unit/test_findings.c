// SPDX-License-Identifier: Apache-2.0
/* Tests which findings a model of records gives, without a target: each fault alone, and none. */

#include "findings_feed.h"
#include "mxbpf_collective.h"
#include "mxbpf_memory.h"
#include "rendered.h"

static void owner(uint64_t name_id, uint64_t stack_id, int64_t live)
{
	struct mxbpf_mem_owner o = {
		.h = {.kind = MXBPF_MEM_OWNER, .size = sizeof(o), .tgid = PID},
		.name_id = name_id,
		.stack_id = stack_id,
		.cls = MXBPF_CLASS_OPERATOR,
		.device = MXBPF_DEVICE(1, 0),
		.live_bytes = live,
	};

	feed(&o);
}

static void growth(void)
{
	uint64_t i;

	begin();
	for (i = 0; i < 60; i++)
		iteration(i, 60, MXBPF_PART_OUTSIDE, 3, (int64_t)i << 17);
	name(8, MXBPF_NAME_SPAN, "mul");
	name(9, MXBPF_NAME_SPAN, "clone");
	name(20, MXBPF_NAME_STACK, "lib/a.py(1): f\n/srv/train.py(12): keep\n/srv/train.py(40): main");
	name(21, MXBPF_NAME_STACK, "/srv/train.py(12): keep\n/srv/train.py(41): main");
	name(22, MXBPF_NAME_STACK, "/srv/train.py(99): other");
}

static void test_growth(void)
{
	TEST("memory that grows is of the operator and the line that hold the most, in however many ways the line is "
	     "reached")
	{
		growth();
		owner(9, 22, 5 << 20);
		owner(8, 20, 3 << 20);
		owner(8, 21, 3 << 20);
		owner(8, 22, 4 << 20);
		CHECK(!strcmp(found(), "memory_growth"));
		CHECK(is_evidence("mul at /srv/train.py(12): keep has 6.00 MiB alive"));
	}
	TEST("memory that grows is of an operator alone if no stacks were read")
	{
		growth();
		owner(9, 0, 5 << 20);
		owner(8, 0, 3 << 20);
		CHECK(!strcmp(found(), "memory_growth") && is_evidence("clone has 5.00 MiB alive"));
	}
	TEST("memory that grows has no owner without --memory")
	{
		growth();
		CHECK(!strcmp(found(), "memory_growth") && is_evidence(""));
	}
}

static void test_rules(void)
{
	uint64_t i;

	TEST("a job that computes most of its time has no findings")
	{
		begin_busy(0, 0);
		CHECK(!strcmp(found(), ""));
	}
	TEST("a loop that waits for data is reported with the share of its time")
	{
		begin_loop(MXBPF_PART_DATA, 80);
		operators(400, 2 * MS, 0, 0);
		CHECK(!strcmp(found(), "data_wait") && says("80% of its time"));
	}
	TEST("waiting for results is reported only for the time in which no operator runs")
	{
		begin_loop(MXBPF_PART_WAIT, 60);
		operators(400, 4 * MS, 0, 0);
		CHECK(!strcmp(found(), "sync_wait"));
	}
	TEST("many calls that take less than 15 us each are reported as bound by launches")
	{
		begin();
		loop(400, 10, MXBPF_PART_OUTSIDE, 4);
		operators(400 * 60, 8000, 0, 0);
		CHECK(!strcmp(found(), "tiny_operators"));
	}
	TEST("waiting for a CPU is the fault of neighbours if they use CPU time, else of the job's own threads")
	{
		begin();
		process(300, 2000, false);
		loop(40, 100, MXBPF_PART_OUTSIDE, 5);
		operators(400, 9 * MS, 4 * MS, 0);
		CHECK(!strcmp(found(), "neighbours") && strstr(told.list[0].evidence.data, "noisy (pid 300) 0.5 CPUs"));
		begin_busy(4 * MS, 0);
		CHECK(!strcmp(found(), "own_threads"));
	}
	TEST("page faults are reported if their estimate is a notable part of the operators' time")
	{
		begin_busy(0, 4000);
		CHECK(!strcmp(found(), "page_faults"));
	}
	TEST("memory that grows in every third of the window is reported, and a cache that levels off is not")
	{
		begin();
		for (i = 0; i < 60; i++)
			iteration(i, 60, MXBPF_PART_OUTSIDE, 3, (int64_t)i << 17);
		CHECK(!strcmp(found(), "memory_growth") && says("128 KiB in each iteration"));
		begin();
		for (i = 0; i < 60; i++)
			iteration(i, 60, MXBPF_PART_OUTSIDE, 3, (int64_t)(i < 25 ? i : 25) << 17);
		CHECK(!strcmp(found(), ""));
	}
	TEST("slow iterations at equal distances are reported with the distance")
	{
		begin();
		for (i = 0; i < 60; i++)
			iteration(i, i % 10 == 9 ? 200 : 50, MXBPF_PART_OUTSIDE, 2, 0);
		CHECK(!strcmp(found(), "slow_iterations") && says("6 of 60 iterations, about every 10th,"));
	}
}

/* One in five, without a pattern. */
static bool noise(uint64_t i)
{
	return (i * 2654435761u >> 7 ^ i * 40503u >> 3) % 1000 < 200;
}

static bool shows(unsigned nth, const char *text)
{
	return told.n > nth && told.list[nth].evidence.len && strstr(told.list[nth].evidence.data, text);
}

/*
 * Feeds 200 iterations and returns the findings. Usual iterations take 16 ms: 6 ms in Python code, the rest in
 * operators. Slow ones take 32 ms: slow_ms in Python code, the rest in operators.
 */
static const char *with_noise(uint64_t slow_ms)
{
	uint64_t i;

	begin();
	for (i = 0; i < 200; i++)
		iteration(i, noise(i) ? 32 : 16, MXBPF_PART_OUTSIDE, noise(i) ? slow_ms : 6, 0);
	return found();
}

static void test_lines(void)
{
	uint64_t i;

	TEST("single slow iterations without a pattern are no finding unless they cost much")
	{
		begin();
		for (i = 0; i < 60; i++)
			iteration(i, i == 31 || i == 44 ? 90 : 50, MXBPF_PART_OUTSIDE, 2, 0);
		CHECK(!strcmp(found(), ""));
	}
	TEST("every 12th iteration that is slow is found among others that are slow without a pattern")
	{
		begin();
		process(400, 6000, false);
		for (i = 0; i < 200; i++)
			iteration(i, i % 12 == 5 || noise(i) ? 90 : 20, MXBPF_PART_OUTSIDE, 2, 0);
		CHECK(!strcmp(found(), "slow_iterations") && says("17 of 200 iterations, about every 12th,"));
		begin();
		process(400, 6000, false);
		for (i = 0; i < 200; i++)
			iteration(i, noise(i) || noise(i + 1000) ? 90 : 20, MXBPF_PART_OUTSIDE, 2, 0);
		CHECK(!strcmp(found(), ""));
	}
	TEST("slow iterations without a pattern are a finding if one part is longer, and none if all parts are")
	{
		CHECK(!strcmp(with_noise(12), ""));
		CHECK(!strcmp(with_noise(6), "slow_iterations"));
	}
	TEST("your Python code is reported with its line, beside packages and code that they make")
	{
		begin_loop(MXBPF_PART_OUTSIDE, 60);
		looks(PID, PID, "<string>(3): make\nnumpy/core/fromnumeric.py(12): sum\n/app/train.py(7): metrics", 30,
		      0);
		looks(PID, PID, "/app/train.py(9): step", 10, IN_API);
		CHECK(!strcmp(found(), "own_code") && shows(0, "/app/train.py(7): metrics, 100% of 30 samples"));
	}
	TEST("a loader that works in the thread of the loop counts as waiting for data")
	{
		begin_loop(MXBPF_PART_OUTSIDE, 60);
		looks(PID, PID,
		      "/app/data.py(5): decode\nmxnet/gluon/data/dataloader.py(8): __iter__\n/app/train.py(7): main",
		      30, 0);
		CHECK(!strcmp(found(), "data_wait") && says("it is at /app/data.py(5): decode"));
	}
	TEST("a job of tiny operators that mostly does something else is not bound by launching them")
	{
		begin_loop(MXBPF_PART_OUTSIDE, 70);
		operators(40 * 500, 8000, 0, 0);
		looks(PID, PID, "/app/t.py(7): decode", 30, 0);
		looks(PID, PID, "/app/t.py(9): step", 5, IN_API);
		looks(PID, PID, "/app/t.py(9): step", 3, 0);
		CHECK(!strcmp(found(), "own_code") && shows(0, "/app/t.py(7): decode, 100% of 30 samples"));
		begin_loop(MXBPF_PART_OUTSIDE, 70);
		operators(40 * 500, 8000, 0, 0);
		looks(PID, PID, "/app/t.py(9): step", 10, IN_API);
		looks(PID, PID, "/app/t.py(9): step", 28, 0);
		CHECK(!strcmp(found(), "tiny_operators") && shows(0, "/app/t.py(9): step"));
	}
	TEST("waiting for a queue counts as waiting for data, and the thread that fills it is shown")
	{
		begin_loop(MXBPF_PART_OUTSIDE, 60);
		looks(PID, PID,
		      "/usr/lib/python3.11/threading.py(3): wait\n/usr/lib/python3.11/queue.py(1): get\n/app/t.py(7): "
		      "main",
		      30, IN_LOCK);
		looks(PID, PID + 1, "/app/data.py(6): fetch", 30, ASLEEP);
		looks(PID, PID + 2, "/usr/lib/python3.11/threading.py(3): wait\n/app/log.py(1): flush", 40, IN_LOCK);
		CHECK(!strcmp(found(), "data_wait") && shows(0, "/app/data.py(6): fetch, 100% of 30 samples"));
	}
	TEST("a process that was started by multiprocessing does not wait for data because of that")
	{
		begin_loop(MXBPF_PART_OUTSIDE, 60);
		looks(PID, PID, "/app/t.py(7): rank\n/usr/lib/python3.11/multiprocessing/process.py(1): run", 30,
		      ASLEEP);
		CHECK(!strcmp(found(), "own_code"));
	}
	TEST("a thread that runs while the loop sleeps in a lock holds the interpreter; without it the wait is the "
	     "program's own")
	{
		begin_loop(MXBPF_PART_OUTSIDE, 60);
		looks(PID, PID, "/app/t.py(7): main", 30, IN_LOCK);
		looks(PID, PID + 1, "/app/t.py(3): metrics", 30, 0);
		CHECK(!strcmp(found(), "interpreter_lock") && shows(0, "/app/t.py(3): metrics"));
		begin_loop(MXBPF_PART_OUTSIDE, 60);
		looks(PID, PID, "/app/t.py(7): main", 30, IN_LOCK);
		looks(PID, PID + 1, "/app/t.py(3): metrics", 5, 0);
		CHECK(!strcmp(found(), "own_code"));
	}
	TEST("a line that asks for one result after the other is reported, and one wait in an iteration is not")
	{
		for (i = 1; i <= 10; i += 9) {
			begin_loop(MXBPF_PART_API, 60);
			name(9, MXBPF_NAME_SPAN, "MXNDArraySyncCopyToCPU");
			calls(PID, MXBPF_CLASS_API, 9, 40 * i, MS);
			looks(PID, PID, "/app/t.py(7): main", 30, IN_API);
			CHECK(!strcmp(found(), i == 1 ? "" : "sync_wait") &&
			      (i == 1 || shows(0, "/app/t.py(7): main")));
		}
	}
}

static void test_processes(void)
{
	uint64_t i;

	TEST("a rank that waits in exchanges is reported with the rank that is the last, and where that one is")
	{
		begin();
		name(8, MXBPF_NAME_SPAN, "gloo:all_reduce");
		for (i = 0; i < 40; i++)
			iteration_of(RANK, i, 99, MXBPF_PART_OUTSIDE, 80);
		loop(40, 100, MXBPF_PART_OUTSIDE, 80);
		calls(PID, MXBPF_CLASS_OPERATOR, 8, 40, 75 * MS);
		calls(RANK, MXBPF_CLASS_OPERATOR, 8, 40, MS);
		looks(PID, PID, "/app/t.py(7): main", 30, IN_LOCK);
		looks(RANK, RANK, "/app/t.py(8): decode", 30, 0);
		CHECK(!strcmp(found(), "straggler") && shows(0, "process 300 arrives last: /app/t.py(8): decode"));
	}
	TEST("of ranks that are not probed, the one that waits the least is the last, if it waits less than a half as "
	     "much")
	{
		for (i = 0; i < 2; i++) {
			begin();
			name(8, MXBPF_NAME_SPAN, "gloo:all_reduce");
			process(RANK + 1, 800, false);
			loop(40, 100, MXBPF_PART_OUTSIDE, 80);
			calls(PID, MXBPF_CLASS_OPERATOR, 8, 40, 75 * MS);
			looks(PID, PID, "/app/t.py(7): main", 20, IN_LOCK);
			looks(PID, PID, "/app/t.py(7): main", 10, 0);
			looks(RANK, RANK, "/app/t.py(7): main", 20, IN_LOCK | OTHER_RANK);
			looks(RANK, RANK, "/app/t.py(9): main", 10, OTHER_RANK);
			looks(RANK + 1, RANK + 1, "/app/t.py(7): main", i ? 13 : 7, IN_LOCK | OTHER_RANK);
			looks(RANK + 1, RANK + 1, "/app/t.py(8): decode", 6, OTHER_RANK);
			looks(RANK + 1, RANK + 1, "/app/t.py(8): decode", i ? 11 : 17, ASLEEP | OTHER_RANK);
			CHECK(!strcmp(found(), i ? "exchange" : "straggler"));
			CHECK(is_evidence(
				i ? ""
				  : "process 301 arrives last: /app/t.py(8): decode, 77% of 30 samples, asleep in "
				    "a system call; it uses 0.2 CPUs and is not probed"));
		}
	}
	TEST("the lines of another rank are no lines of workers")
	{
		begin_loop(MXBPF_PART_DATA, 60);
		operators(400, 4 * MS, 0, 0);
		looks(PID, PID, "/app/t.py(7): main", 20, 0);
		looks(RANK, RANK, "/app/t.py(9): other", 30, ASLEEP | OTHER_RANK);
		CHECK(!strcmp(found(), "data_wait") &&
		      !memmem(told.list[0].text.data, told.list[0].text.len, "other", 5));
	}
	TEST("a job that wants more CPUs than there are competes with itself, also beside neighbours")
	{
		begin();
		process_that_waits(PID, 4000, 20000, true);
		process(400, 2000, false);
		loop(40, 100, MXBPF_PART_OUTSIDE, 5);
		operators(400, 9 * MS, 4 * MS, 0);
		CHECK(!strcmp(found(), "own_threads neighbours") && shows(0, "6.0 threads of the job want to run"));
		begin();
		process_that_waits(PID, 4000, 2000, true);
		process(400, 4000, false);
		loop(40, 100, MXBPF_PART_OUTSIDE, 5);
		operators(400, 9 * MS, 4 * MS, 0);
		CHECK(!strcmp(found(), "neighbours"));
	}
	TEST("a job that is bound to one CPU of several competes with itself for that one")
	{
		struct mxbpf_neighbour own = {
			.h = {.kind = MXBPF_NEIGHBOUR, .size = sizeof(own), .tgid = PID, .ts_ns = 5000 * MS},
			.cpu_ns = 4000 * MS,
			.runq_ns = 4000 * MS,
			.elapsed_ns = 4000 * MS,
			.job = 1,
			.cpus = 1,
		};

		begin();
		feed(&own);
		loop(40, 100, MXBPF_PART_OUTSIDE, 5);
		operators(400, 9 * MS, 4 * MS, 0);
		CHECK(!strcmp(found(), "own_threads") && says("compete for 1 CPU:"));
	}
	TEST("page faults are reported with the operators that have them")
	{
		begin();
		name(7, MXBPF_NAME_SPAN, "aten::fill_");
		loop(40, 100, MXBPF_PART_OUTSIDE, 5);
		operators(400, 9 * MS, 0, 4000);
		CHECK(!strcmp(found(), "page_faults") && shows(0, "aten::fill_ 100% of the faults"));
	}
}

/* A look at the main thread of a rank in a round. */
static void seen(uint64_t round, uint32_t pid, const char *text, uint32_t flags)
{
	struct mxbpf_look look = {
		.h = {.kind = MXBPF_LOOK, .size = sizeof(look), .tgid = pid, .ts_ns = (1000 + round * 100) * MS + pid},
		.stack_id = hash_text(HASH_SEED, text, strlen(text)),
		.tid = pid,
		.flags = MXBPF_LOOK_KNOWN | flags | (pid == RANK ? MXBPF_LOOK_RANK : 0),
	};

	name(look.stack_id, MXBPF_NAME_STACK, text);
	feed(&look);
}

#define FUTEX	 (MXBPF_LOOK_SLEEPS | (SYS_futex + 1) << MXBPF_LOOK_SYSCALL)
#define STEP	 "/app/t.py(5): step"
#define REDUCING "torch/distributed/distributed_c10d.py(3252): all_reduce\n/app/t.py(9): step"

/* In one of `every` rounds the profiled rank computes and the other one sleeps, seldom the opposite; else both wait. */
static const char *two_ranks(const char *computing, const char *other, uint64_t every)
{
	uint64_t i;

	begin_loop(MXBPF_PART_OUTSIDE, 5);
	for (i = 0; i < 40; i++) {
		seen(i, PID, i % every ? REDUCING : computing, i % every ? FUTEX : 0);
		seen(i, RANK, i % every ? REDUCING : other, i % every && i % 14 == 1 ? 0 : FUTEX);
	}
	return found();
}

/* Adds how long the CPU limit stopped a rank. collects: its garbage collector runs all the time. */
static void about_rank(uint32_t pid, uint64_t throttled_ns, bool collects)
{
	struct mxbpf_neighbour n = {
		.h = {.kind = MXBPF_NEIGHBOUR, .size = sizeof(n), .tgid = pid, .ts_ns = 5000 * MS},
		.elapsed_ns = 4000 * MS,
		.job = 1,
		.throttled_ns = throttled_ns,
		.rank = 1 + (pid == RANK),
	};
	struct mxbpf_collector c = {
		.h = {.kind = MXBPF_COLLECTOR, .size = sizeof(c), .tgid = pid, .ts_ns = 1000 * MS},
		.last_ns = 5000 * MS,
		.runs = UINT64_MAX,
		.looks = MXBPF_COLLECTOR_LOOKS,
	};

	feed(&n);
	if (collects)
		feed(&c);
	found();
}

static void test_late_cause(void)
{
	TEST("the collector of the late rank is the cause if it runs more than that of the other one")
	{
		two_ranks(STEP, REDUCING, 1);
		about_rank(PID, 0, true);
		CHECK(says("garbage collector runs in it in 100% of the time, at /app/t.py(5): step"));
		about_rank(RANK, 0, true);
		CHECK(says("Rank 0 (process 100) lags") && !says("garbage collector"));
	}
	TEST("a late rank without a line has its cause alone")
	{
		two_ranks("", REDUCING, 1);
		about_rank(PID, 2000 * MS, false);
		CHECK(says("stops it in 50% of the time (throttled)") && !says("(throttled),"));
	}
}

static void test_two_ranks(void)
{
	TEST("of two ranks, one waits for the other in the runtime, and not in a lock of its own")
	{
		CHECK(!strcmp(two_ranks(STEP, REDUCING, 1), "straggler") && says("Process 100 lags"));
		CHECK(!strcmp(two_ranks(STEP, "/app/t.py(8): log", 1), ""));
	}
	TEST("the rank that is profiled is not late by what the probes cost it")
	{
		CHECK(!strcmp(two_ranks(STEP, REDUCING, 2), "straggler") && says("in 42% of the samples"));
		session.cost = (struct mdl_cost){.scale = 1, .thread_ns = session.duration_ns / 2};
		CHECK(!strcmp(two_ranks(STEP, REDUCING, 2), "watching"));
		session.cost = (struct mdl_cost){.scale = 0};
	}
}

/* The rank was last in so many of 40 collectives, by a time. */
static void collectives(uint32_t pid, uint64_t last, uint64_t each_ms)
{
	struct mxbpf_agg_collective c = {
		.h = {.kind = MXBPF_AGG_COLLECTIVE, .size = sizeof(c), .tgid = pid},
		.group = 1,
		.count = 40,
		.matched = 40,
		.last = last,
		.late_ns = last * each_ms * MS,
		.first_ns = 1000 * MS,
		.last_ns = 5000 * MS,
		.members = 2,
		.backend = MXBPF_BACKEND_GLOO,
		.op = MXBPF_COLLECTIVE_ALL_REDUCE,
	};

	feed(&c);
}

static void test_network(void)
{
	struct mxbpf_network n = {
		.h = {.kind = MXBPF_NETWORK, .size = sizeof(n), .tgid = PID, .ts_ns = 1000 * MS},
		.looks = 40,
		.flights = 30,
	};

	TEST("ranks wait for the network although one of them is last more often, if that explains little of it")
	{
		begin_loop(MXBPF_PART_KVSTORE, 80);
		feed(&n);
		collectives(PID, 8, 5);
		collectives(RANK, 32, 5);
		CHECK(!strcmp(found(), "network"));
	}
	TEST("they wait for the rank if it is late for as long as they wait, and not for the network")
	{
		begin_loop(MXBPF_PART_KVSTORE, 25);
		feed(&n);
		collectives(PID, 0, 0);
		collectives(RANK, 40, 20);
		CHECK(!strcmp(found(), "late_rank"));
	}
}

/* A process of the job that is bound to a CPU, uses it and waits for it. */
static void bound(uint32_t pid, uint32_t cpu)
{
	struct mxbpf_neighbour n = {
		.h = {.kind = MXBPF_NEIGHBOUR, .size = sizeof(n), .tgid = pid, .ts_ns = 5000 * MS},
		.cpu_ns = 2000 * MS,
		.runq_ns = 1000 * MS,
		.elapsed_ns = 4000 * MS,
		.job = 1,
		.only_cpu = 1 + cpu,
	};

	feed(&n);
}

static void test_cpus(void)
{
	uint64_t i;

	TEST("processes that are bound to one CPU compete for it, with a loop and without one; those that have one "
	     "each do not")
	{
		for (i = 0; i < 4; i++) {
			new_model();
			machine(4000, 4000);
			session.pid = PID;
			loop(i < 2 ? 40 : 0, 100, MXBPF_PART_OUTSIDE, 5);
			bound(PID, 1);
			bound(RANK, i % 2);
			CHECK(!strcmp(found(), i % 2 ? "pinned" : ""));
			CHECK(i % 2 == 0 || says("Process 100 may use only CPU 1 of 2"));
		}
		session.pid = 0;
	}
	TEST("operators that wait for a CPU count as much as they take of the loop")
	{
		begin_loop(MXBPF_PART_DATA, 60);
		operators(400, 4 * MS, 32 * MS / 10, 0);
		CHECK(!strcmp(found(), "data_wait own_threads"));
		CHECK(told.n > 1 && has(&told.list[1].text, "in 80% of their time"));
	}
}

static void test_waits(void)
{
	TEST("a thread of a server that waits for requests waits for no data, unless another thread prepares them")
	{
		begin();
		looks(PID, PID + 1, "/app/server.py(50): work", 10, IN_API);
		looks(PID, PID + 1,
		      "/usr/lib/python3.11/threading.py(3): wait\n/usr/lib/python3.11/queue.py(1): get\n"
		      "/app/server.py(49): work",
		      30, IN_LOCK);
		looks(PID, PID + 2, "/usr/lib/python3.11/socket.py(7): readinto\n/app/server.py(40): handle", 40,
		      ASLEEP);
		CHECK(!strcmp(found(), ""));
		looks(PID, PID + 3, "/app/server.py(30): decode", 30, 0);
		CHECK(!strcmp(found(), "data_wait"));
	}
	TEST("a loop that waits for the result of another thread waits for no interpreter lock")
	{
		begin_loop(MXBPF_PART_OUTSIDE, 60);
		looks(PID, PID,
		      "/usr/lib/python3.11/threading.py(3): wait\n/usr/lib/python3.11/concurrent/futures/_base.py(4): "
		      "result\n/app/t.py(7): main",
		      30, IN_LOCK);
		looks(PID, PID + 1, "/app/t.py(3): decode", 30, 0);
		CHECK(!strcmp(found(), "own_code") && shows(0, "/app/t.py(7): main"));
	}
}

static void test_faults(void)
{
	uint64_t i;

	TEST("page faults promise what they take where no host provides the page, and are silent if that is little")
	{
		session.fault_own_ns = 250;
		begin_busy(0, 7200); /* 20 % of their time, and 80 % with the host's */
		CHECK(!strcmp(found(), "page_faults") && says("operators would take about 20% less time"));
		begin_busy(0, 1800); /* 5 %, and 20 % with the host's */
		CHECK(!strcmp(found(), ""));
		session.fault_own_ns = 0;
	}
	TEST("page faults in memory that is kept are not promised")
	{
		begin();
		for (i = 0; i < 40; i++) /* 2,000 of 4,000 faults for each operator */
			iteration(i, 100, MXBPF_PART_OUTSIDE, 5, (int64_t)i * 400 / 39 * 2000 * 4096);
		operators(400, 9 * MS, 0, 4000);
		CHECK(!strcmp(found(), "memory_growth page_faults"));
		CHECK(told.n > 1 && memmem(told.list[1].text.data, told.list[1].text.len, "about 22% less time", 19));
	}
}

/* Adds an iteration with lost records. The arguments are those of iteration(). */
static void lossy_iteration(uint64_t nr, uint64_t dur_ms, int64_t live)
{
	struct mxbpf_iteration it = {
		.h = {.kind = MXBPF_ITERATION, .size = sizeof(it), .tgid = PID, .ts_ns = (1000 + nr * dur_ms) * MS},
		.dur_ns = dur_ms * MS,
		.nr = nr,
		.tid = PID,
		.flags = MXBPF_ITERATION_LOST,
		.live_bytes = live,
	};

	feed(&it);
}

static void test_loss(void)
{
	struct mdl_source sources[] = {{.name = (char *)"probes", .loss = {.attempted = 2000, .stored = 2000}},
				       {.name = (char *)"agent"}};
	uint64_t i;

	TEST("a loss above 5 % is the first finding: what, how much, how many iterations are complete, and what to do")
	{
		sources[1].loss = (struct mxbpf_loss){.attempted = 100000, .stored = 90000, .dropped = 10000};
		session.sources = sources;
		session.nsources = 2;
		begin_loop(MXBPF_PART_DATA, 50);
		CHECK(!strcmp(found(), "lost_records data_wait"));
		CHECK(says("lost 10% of the records of operators and memory, 10,000 of 100,000"));
		CHECK(is_evidence("40 of 40 iterations are complete, and say how their time is spent"));
		CHECK(strstr(told.list[0].rule->next_of(&told.facts), "--agent --iterations"));
		sources[1].loss = (struct mxbpf_loss){.attempted = 100000, .stored = 96000, .dropped = 4000};
		begin_loop(MXBPF_PART_DATA, 50);
		CHECK(!strcmp(found(), "data_wait"));
	}
	TEST("findings about Python code and growing memory ignore iterations with lost records")
	{
		begin();
		for (i = 0; i < 60; i++)
			lossy_iteration(i, 60, (int64_t)i << 17);
		CHECK(!strcmp(found(), ""));
		begin();
		for (i = 0; i < 60; i++) /* it has freed what the lost ones have allocated */
			if (i > 18 && i < 22)
				lossy_iteration(i, 60, 0);
			else
				iteration(i, 60, MXBPF_PART_OUTSIDE, 3, i < 20 ? 0 : 1 << 24);
		CHECK(!strcmp(found(), ""));
	}
	TEST("operators in an iteration are those of all iterations, also of those whose ends are lost")
	{
		begin();
		for (i = 0; i < 40; i += i % 4 == 1 ? 3 : 1) /* 20 of 40 */
			iteration_of(PID, i, 100, MXBPF_PART_OUTSIDE, 5);
		operators(4000 * 96 / 100, MS / 100, 0, 0); /* 4 % are lost */
		CHECK(!strcmp(found(), "tiny_operators") && says(": 105 of them in an iteration"));
	}
	TEST("findings that compare sums are silent if more than 1 % of the records are lost")
	{
		begin_busy(0, 4000);
		CHECK(!strcmp(found(), ""));
		session.sources = NULL;
		session.nsources = 0;
	}
}

/* Returns the report of a job that did `n` iterations of 16 ms in a window of 10.2 s. */
static char *report_of(uint64_t n)
{
	FREED(mdl_session_fini) struct mdl_session s = session_new();

	begin();
	loop(n, 16, MXBPF_PART_OUTSIDE, 2);
	return render("modern", &s, model, &(struct view_opts){0});
}

static void test_head(void)
{
	FREED(memory_freed) char *few = report_of(5), *many = report_of(600), *none = report_of(0);

	TEST("a few iterations in a long window are no rate, and the report says how much of the window they take")
	{
		CHECK(!strstr(few, "per second") && strstr(few, "5 iterations, 16.0 ms each: 88% in operators"));
		CHECK(strstr(few, "; they take 0.78% of the window\n"));
		CHECK(strstr(many, "62.5 iterations per second, 16.0 ms each") && !strstr(many, "of the window\n"));
	}
	TEST("a report without iterations says that most rules had nothing to look at")
	{
		CHECK(strstr(none, "No finding: no iteration ended in the window, and most rules look at iterations."));
		CHECK(strstr(many, "No finding: mxbpf found no bottleneck."));
	}
}

int main(void)
{
	test_growth();
	test_rules();
	test_lines();
	test_processes();
	test_two_ranks();
	test_late_cause();
	test_network();
	test_cpus();
	test_waits();
	test_faults();
	test_loss();
	test_head();
	UNIT_MAIN_END;
}
