// SPDX-License-Identifier: Apache-2.0
/* Tests causes, and what looks like them: each rule of user/feature/findings/causes/ that speaks, and is silent beside
 * it. */

#include "base/exception.h"
#include "feature/inputs/inputs.h"
#include "feature/modes/modes.h"
#include "feature/threads/threads.h"
#include "findings_feed.h"
#include "mxbpf_memory.h"

#define GETS                                                                                                           \
	"/usr/lib/python3.11/threading.py(327): wait\n/usr/lib/python3.11/queue.py(171): get\n/app/server.py(50): "    \
	"work"
#define MODULE "\ntorch/nn/modules/module.py(1751): _call_impl\n/app/t.py(9): step"

/* Looks at a thread as `l` says. */
static void look_as(struct mxbpf_agg_line l, uint32_t pid, uint32_t tid, const char *stack)
{
	static uint64_t id = 90000;

	l.h = (struct mxbpf_rec){.kind = MXBPF_AGG_LINE, .size = sizeof(l), .tgid = pid, .ts_ns = 2000 * MS};
	l.stack_id = ++id;
	l.tid = tid;
	l.main = pid == tid;
	name(id, MXBPF_NAME_STACK, stack);
	feed(&l);
}

/* A worker that handles an exception in most of its samples, in a job that waits for data for a part of its time. */
static const char *worker_handles(const char *exception, uint64_t data_ms)
{
	const struct mxbpf_agg_line l = {.count = 20, .syscall = -1, .handles = exception_number(exception)};

	begin_loop(MXBPF_PART_DATA, data_ms);
	operators(400, (100 - data_ms) * MS / 10, 0, 0);
	look_as(l, WORKER, WORKER, "/app/data.py(5): decode");
	looks(WORKER, WORKER, "/app/data.py(9): load", 10, 0);
	return found();
}

/* A worker that reads 10 MiB a second waits for the disk in so many of 60 samples, in a system call. */
static const char *worker_reads(uint64_t waits, int nr)
{
	const struct mxbpf_agg_line l = {.count = waits, .syscall = nr, .sleeps = MXBPF_SLEEP_DISK};
	struct mxbpf_resident r = {.h = {.kind = MXBPF_RESIDENT, .size = sizeof(r), .tgid = WORKER}, .bytes = 1 << 20};
	uint64_t i;

	begin_loop(MXBPF_PART_DATA, 60);
	operators(400, 4 * MS, 0, 0);
	look_as(l, WORKER, WORKER, "/app/data.py(5): load");
	looks(WORKER, WORKER, "/app/data.py(5): load", 60 - waits, 0);
	for (i = 0; i < 40; i++) {
		r.h.ts_ns = (1000 + i * 100) * MS;
		r.read_bytes = i << 20;
		r.majflt = i * 30;
		feed(&r);
	}
	return found();
}

/* A thread that gets a CPU 3000 times a second, and waits in a system call in one function. */
static const char *thread_waits(int nr)
{
	const struct thread_use use = {.tgid = PID, .tid = PID + 1, .cpu_ns = 400 * MS, .runs = 12000};
	const struct mxbpf_agg_line l = {.count = 20, .syscall = nr, .sleeps = MXBPF_SLEEP_ANY};

	begin();
	look_as(l, PID, PID + 1, "/usr/lib/python3.11/selectors.py(468): select\n/app/server.py(60): serve");
	CHECK(!mdl_table_add(model, &feature_threads, &threads_table, &use));
	return found();
}

/* A loop whose thread waited from so many ms on, for 900 ms, until its loader had workers. */
static const char *loader_starts(uint64_t from_ms)
{
	struct mxbpf_look l = {.h = {.kind = MXBPF_LOOK, .size = sizeof(l), .tgid = PID}, .tid = PID};
	uint64_t i;

	begin_loop(MXBPF_PART_OUTSIDE, 5);
	operators(400, 9 * MS, 0, 0);
	name(70000, MXBPF_NAME_STACK, "torch/utils/data/dataloader.py(440): _get_iterator\n/app/train.py(7): main");
	name(70001, MXBPF_NAME_STACK, "/app/train.py(9): step");
	for (i = 0; i < 130; i++) {
		l.h.ts_ns = (i < 90 ? from_ms + i * 10 : 3000 + i * 10) * MS;
		l.stack_id = i < 90 ? 70000 : 70001;
		feed(&l);
	}
	return found();
}

/* Two threads sleep in a futex at a line of the program, and get a CPU so often, while a third one runs. */
static const char *threads_wake(uint64_t runs)
{
	struct thread_use use = {.tgid = PID, .tid = PID, .cpu_ns = MS, .runs = runs};

	begin();
	looks(PID, PID, "/usr/lib/python3.11/selectors.py(415): select\n/app/server.py(60): main", 20, ASLEEP);
	looks(PID, PID + 1, "/app/server.py(30): serve", 20, IN_LOCK);
	looks(PID, PID + 2, "/app/server.py(30): serve", 20, IN_LOCK);
	looks(PID, PID + 3, "/app/server.py(31): serve", 20, 0);
	for (; use.tid < PID + 4; use.tid++)
		CHECK(!mdl_table_add(model, &feature_threads, &threads_table, &use));
	return found();
}

static void test_alone(void)
{
	TEST("a thread that waits for requests waits for no data, unless somebody works to fill its queue")
	{
		begin();
		looks(PID, PID + 1, GETS, 30, IN_LOCK);
		looks(PID, PID + 1, "/app/server.py(52): work", 5, IN_API);
		CHECK(!strcmp(found(), ""));
		looks(PID, PID + 2, "/app/data.py(6): decode", 30, 0);
		CHECK(!strcmp(found(), "data_wait"));
	}
	TEST("a main thread that calls nothing has own code if it does nothing else, as it may still be starting")
	{
		begin();
		looks(PID, PID, "/app/train.py(3): read", 20, 0);
		looks(PID, PID, "/app/train.py(2): open", 8, ASLEEP);
		CHECK(!strcmp(found(), ""));
		looks(PID, PID, "/app/train.py(3): read", 80, 0);
		CHECK(!strcmp(found(), "own_code"));
	}
	TEST("a worker whose cache has nothing fails nowhere, and its retries count as far as the loop waits for data")
	{
		CHECK(!strcmp(worker_handles("KeyError", 30), "data_wait"));
		CHECK(!strcmp(worker_handles("ConnectionError", 30), "exceptions"));
		CHECK(!strcmp(worker_handles("ConnectionError", 5), ""));
	}
	TEST("the first start of workers is none of an epoch, and one within the loop is")
	{
		CHECK(!strcmp(loader_starts(50), ""));
		CHECK(!strcmp(loader_starts(1050), "epoch_start"));
	}
	TEST("a worker reads from the disk if it waits for that, not for what it writes, and a look stands for few "
	     "others")
	{
		CHECK(!strcmp(worker_reads(20, SYS_read), "disk_reads"));
		CHECK(!strcmp(worker_reads(20, SYS_fsync), "data_wait"));
		CHECK(!strcmp(worker_reads(1, SYS_read), "data_wait"));
	}
	TEST("a thread that waits with select() polls if it wakes all the time, and one that serves many events does "
	     "not")
	{
		CHECK(!strcmp(thread_waits(SYS_select), "polling"));
		CHECK(!strcmp(thread_waits(SYS_epoll_wait), ""));
	}
	TEST("threads that sleep at a line of the program wait for the interpreter lock if they wake all the time")
	{
		CHECK(!strcmp(threads_wake(800), "interpreter_lock"));
		CHECK(!strcmp(threads_wake(40), ""));
	}
}

static void test_inside(void)
{
	struct mode_row anomaly = {.tgid = PID, .mode = MODE_ANOMALY, .seen = 3, .looked = 20};

	TEST("code inside of the runtime is said to be where its line is: in a forward() or in a hook")
	{
		begin_loop(MXBPF_PART_API, 60);
		looks(PID, PID, "/app/net.py(7): forward" MODULE, 30, 0);
		CHECK(!strcmp(found(), "code_inside") && says("in the forward() of a module takes 100%"));
		begin_loop(MXBPF_PART_API, 60);
		looks(PID, PID, "/app/net.py(7): forward" MODULE, 30, IN_API);
		looks(PID, PID, "/app/log.py(3): log" MODULE, 20, 0);
		CHECK(!strcmp(found(), "code_inside") && says("in a hook of a module takes 40%"));
	}
	TEST("anomaly detection that is on at times is found if no compiler runs, which turns it on itself")
	{
		begin();
		CHECK(!mdl_table_add(model, &feature_modes, &modes_table, &anomaly));
		CHECK(!strcmp(found(), "debug_mode") && is_evidence("it was on in 3 of 20 readings"));
		looks(PID, PID, "torch/_dynamo/convert_frame.py(1): __call__\n/app/t.py(7): step", 1, 0);
		CHECK(!strcmp(found(), ""));
	}
}

/* Looks at an operator with inputs of some size, which have 1000 elements for each of `thousands`. */
static void inputs_are(uint64_t op, uint64_t sizes, const char *text, uint64_t n, uint64_t each_ns, uint64_t thousands,
		       uint64_t denormal, uint64_t flushed)
{
	const struct input_row r = {.tgid = PID,
				    .name_id = op,
				    .sizes = sizes,
				    .looks = n,
				    .elapsed_ns = n * each_ns / 2,
				    .valued = n,
				    .denormal = denormal,
				    .flushed = flushed,
				    .elements = thousands * 1000};

	name(sizes, MXBPF_NAME_STACK, text);
	CHECK(!mdl_table_add(model, &feature_inputs, &inputs_table, &r));
}

static void test_inputs(void)
{
	TEST("denormal values are found where they cost time: not in copies, and not if the processor takes them as 0")
	{
		begin_loop(MXBPF_PART_OPERATOR, 100);
		operators(100, MS, 0, 0);
		inputs_are(7, 700, "float[9, 9]", 10, MS, 1, 6, 0);
		CHECK(!strcmp(found(), "denormal_values") &&
		      is_evidence("6 of 10 looks at these operators found such values, for example in float[9, 9]"));
		begin_loop(MXBPF_PART_OPERATOR, 100);
		operators(100, MS, 0, 0);
		inputs_are(7, 700, "float[9, 9]", 10, MS, 1, 6, 6);
		CHECK(strcmp(found(), "denormal_values") != 0);
	}
	TEST("sizes are slow if each element takes longer than with others and than memory does, in calls that are not "
	     "short")
	{
		begin_loop(MXBPF_PART_OPERATOR, 100);
		operators(100, MS, 0, 0);
		inputs_are(7, 701, "float[50]", 9, 10 * MS, 100, 0, 0);
		inputs_are(7, 702, "float[64]", 3, MS / 10, 100, 0, 0);
		CHECK(!strcmp(found(), "slow_sizes") && says("float[50]"));
		begin_loop(MXBPF_PART_OPERATOR, 100);
		operators(100, MS, 0, 0);
		inputs_are(7, 701, "float[50]", 9, 10 * MS, 10000, 0, 0);
		inputs_are(7, 702, "float[64]", 3, MS / 10, 100, 0, 0);
		CHECK(strcmp(found(), "slow_sizes") != 0);
		begin_loop(MXBPF_PART_OPERATOR, 100);
		operators(100, MS, 0, 0);
		inputs_are(7, 701, "float[50]", 9, MS / 10, 1, 0, 0);
		inputs_are(7, 702, "float[64]", 3, MS / 10, 100, 0, 0);
		CHECK(strcmp(found(), "slow_sizes") != 0);
	}
}

/* Feeds looks at a thread: the first `known` find it waiting for a lock of its frames, the others for another lock. */
static void mutex_looks(uint32_t tid, const char *stack, uint64_t known, uint64_t others)
{
	struct mxbpf_look l = {.h = {.kind = MXBPF_LOOK, .size = sizeof(l), .tgid = PID}, .tid = tid, .stack_id = tid};
	uint64_t i;

	name(tid, MXBPF_NAME_STACK, stack);
	for (i = 0; i < known + others; i++) {
		l.h.ts_ns = (1000 + i * 100) * MS;
		l.flags = MXBPF_LOOK_KNOWN | MXBPF_LOOK_SLEEPS | MXBPF_LOOK_LOCKED | (i < known ? MXBPF_LOOK_MUTEX : 0);
		feed(&l);
	}
}

static void test_stuck(void)
{
	TEST("two threads that wait for locks of the program all the time are a deadlock; workers without work are "
	     "none")
	{
		begin();
		mutex_looks(7001, "/app/a.py(5): put\n/app/a.py(9): <module>", 36, 0);
		mutex_looks(7002, "/app/a.py(7): get\n/app/a.py(9): <module>", 36, 0);
		CHECK(!strcmp(found(), "deadlock") && says("2 threads of process"));
		begin();
		mutex_looks(7001, "/app/a.py(5): put\n/app/a.py(9): <module>", 36, 0);
		mutex_looks(7002, "/app/a.py(7): get\n/app/a.py(9): <module>", 35, 1);
		CHECK(!strcmp(found(), ""));
	}
}

/* 40 readings, a MiB more in each: of all memory, or of what a process has for itself. */
static void memory_rises(uint32_t pid, bool all)
{
	struct mxbpf_resident r = {.h = {.kind = MXBPF_RESIDENT, .size = sizeof(r), .tgid = pid}};
	uint64_t i;

	for (i = 0; i < 40; i++) {
		r.h.ts_ns = (1000 + i * 100) * MS;
		r.bytes = (uint64_t)(200 + (all ? i : 0)) << 20;
		r.private_bytes = all ? 0 : (1 + i) << 20;
		feed(&r);
	}
}

static void touches(uint32_t pid, uint64_t pages)
{
	struct mxbpf_touched t = {
		.h = {.kind = MXBPF_TOUCHED, .size = sizeof(t), .tgid = pid, .ts_ns = 2000 * MS},
		.pages = pages,
		.samples = 1,
	};

	feed(&t);
}

static void test_kept(void)
{
	TEST("calls of nets have a backlog if memory grows; without that, one net is called more often than another")
	{
		begin();
		name(9, MXBPF_NAME_SPAN, "MXInvokeCachedOp");
		calls(PID, MXBPF_CLASS_API, 9, 100, MS / 10);
		operators(40, 90 * MS, 0, 0);
		CHECK(!strcmp(found(), ""));
		memory_rises(PID, true);
		CHECK(!strcmp(found(), "backlog") && says("about 60 have not run"));
	}
	TEST("a worker copies pages if it touches them; else its parent has written into them")
	{
		begin();
		memory_rises(WORKER, false);
		CHECK(!strcmp(found(), "copied_pages"));
		touches(PID, 8000);
		CHECK(!strcmp(found(), ""));
		touches(WORKER, 8000);
		CHECK(!strcmp(found(), "copied_pages"));
	}
}

int main(void)
{
	test_alone();
	test_inside();
	test_inputs();
	test_stuck();
	test_kept();
	UNIT_MAIN_END;
}
