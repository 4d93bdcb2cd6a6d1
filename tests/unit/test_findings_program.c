// SPDX-License-Identifier: Apache-2.0
/* Tests findings about the program beside its iterations: a lock, a compiler, memory without iterations. */
#include <sys/syscall.h>

#include "feature/lines/lines.h"
#include "findings_model.h"
#include "mxbpf_lines.h"
#include "rendered.h"

#define ROUNDS	40 /* of samples, each 100 ms */
#define STACKS	12
#define SERVED	"\n/usr/lib/python3.11/threading.py(975): run"
#define LOCKING "/app/server.py(44): handle" SERVED
#define HOLDING "/app/server.py(30): tokenize\n/app/server.py(45): handle" SERVED
#define READING "/usr/lib/python3.11/socket.py(706): readinto\n/app/server.py(40): handle" SERVED
#define WAITING                                                                                                        \
	"/usr/lib/python3.11/threading.py(327): wait\n/usr/lib/python3.11/queue.py(171): get\n/app/server.py(50): "    \
	"work"

static struct mdl_session session = {.duration_ns = ROUNDS * 100 * MS};

/* Returns the id of a stack, which is always the same one. */
static uint64_t stack(const char *text)
{
	const uint64_t id = hash_text(HASH_SEED, text, strlen(text));

	name(id, MXBPF_NAME_STACK, text);
	return id;
}

enum { RUNS = MXBPF_LOOK_KNOWN, SLEEPS = RUNS | MXBPF_LOOK_SLEEPS, LOCKED = SLEEPS | MXBPF_LOOK_LOCKED };

/* A sample of a thread in a round. */
static void sample(uint64_t round, uint32_t tid, const char *text, uint32_t flags)
{
	struct mxbpf_look look = {
		.h = {.kind = MXBPF_LOOK, .size = sizeof(look), .tgid = PID, .ts_ns = (1000 + round * 100) * MS + tid},
		.stack_id = stack(text),
		.tid = tid,
		.flags = flags,
	};
	struct mxbpf_agg_line l = {
		.h = {.kind = MXBPF_AGG_LINE, .size = sizeof(l), .tgid = PID, .ts_ns = look.h.ts_ns},
		.stack_id = look.stack_id,
		.count = 1,
		.tid = tid,
		.syscall = flags & MXBPF_LOOK_LOCKED ? SYS_futex : -1,
		.sleeps = !!(flags & MXBPF_LOOK_SLEEPS),
		.main = tid == PID,
	};

	feed(&look);
	feed(&l);
}

static bool is_silent(void)
{
	return !strcmp(found(), "");
}

/* Four threads, of which one has the lock; the others do something, and three of them at most are in it at once. */
static void served(const char *others, uint32_t flags, const char *holder, uint32_t holds)
{
	uint64_t i;
	uint32_t t;

	new_model();
	for (i = 0; i < ROUNDS; i++) {
		sample(i, PID, "/usr/lib/python3.11/selectors.py(415): select\n/app/server.py(60): main", SLEEPS);
		for (t = 0; t < 4; t++)
			if (t == i % 4)
				sample(i, PID + 1 + t, holder, holds);
			else
				sample(i, PID + 1 + t, others, flags);
	}
}

static void test_lock(void)
{
	uint64_t i;

	TEST("threads that wait for a lock are reported with their line and that of the thread that has it")
	{
		served(LOCKING, LOCKED, HOLDING, RUNS);
		CHECK(!strcmp(found(), "code_lock"));
		CHECK(has(&told.list[0].text,
			  "Threads wait in 100% of the time for a lock that your Python code holds, "
			  "3.0 of them at a time: they wait at /app/server.py(44): handle"));
		CHECK(has(&told.list[0].evidence,
			  "the thread that has it is at /app/server.py(30): tokenize, 100% of 40 samples"));
		CHECK(told.list[0].next.len == 21 && !memcmp(told.list[0].next.data, "--pid PID --sample 99", 21));
	}
	TEST("a lock is also one if the thread that has it sleeps, or is in another function and runs")
	{
		served(LOCKING, LOCKED, "/app/server.py(45): handle" SERVED, SLEEPS);
		CHECK(!strcmp(found(), "code_lock"));
		served(LOCKING, LOCKED, "/app/server.py(80): refresh", RUNS);
		CHECK(!strcmp(found(), "code_lock") && has(&told.list[0].evidence, "/app/server.py(80): refresh"));
	}
	TEST("idle threads of a pool wait for no lock, nor does one thread alone, nor threads of which none has it")
	{
		served(WAITING, LOCKED, HOLDING, RUNS);
		CHECK(is_silent());
		served(READING, SLEEPS, HOLDING, RUNS);
		CHECK(is_silent());
		served(LOCKING, LOCKED, WAITING, LOCKED);
		CHECK(is_silent());
		new_model();
		for (i = 0; i < ROUNDS; i++) {
			sample(i, PID, LOCKING, LOCKED);
			sample(i, PID + 1, HOLDING, RUNS);
		}
		CHECK(is_silent());
	}
	TEST("waits for the interpreter lock, calls of the runtime, and lines on which threads mostly run are no lock")
	{
		served(HOLDING, SLEEPS, HOLDING, RUNS);
		CHECK(is_silent());
		served(LOCKING, LOCKED | MXBPF_LOOK_CALL, HOLDING, RUNS);
		CHECK(is_silent());
		new_model();
		for (i = 0; i < ROUNDS; i++) {
			sample(i, PID + 1, LOCKING, i % 3 ? RUNS : LOCKED);
			sample(i, PID + 2, LOCKING, i % 3 == 1 ? LOCKED : RUNS);
		}
		CHECK(is_silent());
	}
	TEST("a lock that few samples find is no finding, and neither are samples of older recordings")
	{
		new_model();
		for (i = 0; i < ROUNDS; i++) {
			sample(i, PID + 1, i % 8 ? READING : LOCKING, i % 8 ? SLEEPS : LOCKED);
			sample(i, PID + 2, i % 9 ? HOLDING : LOCKING, i % 9 ? RUNS : LOCKED);
		}
		CHECK(is_silent());
		served(LOCKING, 0, HOLDING, 0);
		CHECK(is_silent());
	}
}

/* ---- a compiler */

#define COMPILES                                                                                                       \
	"sympy/core/basic.py(3): f\n...\ntorch/_inductor/compile_fx.py(1): compile_fx\n"                               \
	"torch/_dynamo/convert_frame.py(1): __call__\ntorch/_dynamo/eval_frame.py(1): compile_wrapper\n"               \
	"/app/train.py(17): step"
#define COMPILED                                                                                                       \
	"/tmp/torchinductor_me/ab/cab2345.py(90): call\ntorch/_inductor/utils.py(9): run\n"                            \
	"torch/_dynamo/eval_frame.py(1): compile_wrapper\n/app/train.py(17): step"

static void iterations(uint64_t n, uint64_t dur_ms)
{
	struct mxbpf_iteration it = {.h = {.kind = MXBPF_ITERATION, .size = sizeof(it), .tgid = PID},
				     .dur_ns = dur_ms * MS,
				     .tid = PID,
				     .busy_ns = dur_ms * MS / 2,
				     .flags = MXBPF_ITERATION_PARTS};

	it.part_ns[MXBPF_PART_OUTSIDE] = it.part_ns[MXBPF_PART_OPERATOR] = dur_ms * MS / 2;
	for (; it.nr < n; it.nr++) {
		it.h.ts_ns = (1000 + it.nr * dur_ms) * MS;
		feed(&it);
	}
}

static void samples(uint64_t from, uint64_t to, const char *text)
{
	for (; from < to; from++)
		sample(from, PID, text, RUNS);
}

static void test_compiler(void)
{
	TEST("a compiler that takes much of the time is reported with the line of the program, and is not its own code")
	{
		new_model();
		iterations(40, 100);
		samples(0, 30, COMPILES);
		samples(30, 40, COMPILED);
		CHECK(!strcmp(found(), "compiling"));
		CHECK(has(&told.list[0].text,
			  "PyTorch compiles in 75% of the time, called by /app/train.py(17): step"));
	}
	TEST("code that was compiled is neither a compiler nor the program's own, and a little compiling is no finding")
	{
		new_model();
		iterations(40, 100);
		samples(0, 3, COMPILES);
		samples(3, 40, COMPILED);
		CHECK(!*found());
	}
}

static void test_first_compilation(void)
{
	uint64_t i;

	TEST("what is compiled before the loop begins is a finding from 30 % of the time on, and later from 10 %")
	{
		new_model();
		iterations(40, 100);
		for (i = 1; i <= 8; i++)
			sample(0 - i, PID, COMPILES, RUNS); /* in the 800 ms before */
		samples(0, 40, COMPILED);
		CHECK(is_silent());
		samples(20, 24, COMPILES);
		CHECK(!strcmp(found(), "compiling"));
	}
}

static void test_rest(void)
{
	FREED(mdl_session_fini) struct mdl_session about = session_new();
	char *text;

	about.duration_ns = session.duration_ns;
	TEST("iterations that take a small part of the window come with what the thread did in the rest")
	{
		new_model();
		iterations(5, 10);
		samples(1, 40, COMPILES);
		text = render("modern", &about, model, &(struct view_opts){0});
		CHECK(strstr(text, "% of the window; in the rest, PyTorch compiles in 100% of the samples, called by "
				   "/app/train.py(17): step\n"));
		free(text);
		new_model();
		iterations(5, 10);
		samples(0, 10, COMPILED);
		samples(10, 40, "torch/serialization.py(9): save\n/app/train.py(70): save");
		text = render("modern", &about, model, &(struct view_opts){0});
		CHECK(strstr(text, "; in the rest, 77% of the samples are at /app/train.py(70): save\n"));
		free(text);
	}
}

/* ---- memory */

static void resident(const uint64_t kib[], size_t n)
{
	struct mxbpf_resident r = {.h = {.kind = MXBPF_RESIDENT, .size = sizeof(r), .tgid = PID}};
	size_t i;

	new_model();
	sample(0, PID, LOCKING, RUNS);
	for (i = 0; i < n; i++) {
		r.h.ts_ns = (1000 + i * 100) * MS;
		r.bytes = (kib[i] << 10) + (200 << 20);
		feed(&r);
	}
}

/* Memory rises by step in each reading, falls by fall in each period, which begins at phase, and is noisy. */
static void rises(size_t n, uint64_t step, uint64_t period, uint64_t phase, uint64_t noise)
{
	uint64_t kib[1000], i;

	for (i = 0; i < n; i++)
		kib[i] = step * (period ? (i + phase) % period : i) + noise * (i * 2654435761u >> 5 & 7);
	resident(kib, n);
}

static void test_resident(void)
{
	uint64_t phase, kib[ROUNDS], i;

	TEST("without iterations, resident memory that grows is reported with its rate")
	{
		rises(ROUNDS, 1024, 0, 0, 100);
		CHECK(!strcmp(found(), "memory_growth"));
		CHECK(has(&told.list[0].text, "Memory grows by 10.") && has(&told.list[0].text, " MiB a second, 4"));
		CHECK(has(&told.list[0].evidence, "process 100 has 2"));
	}
	TEST("memory of a process that grows is reported once, although that of the runtime grows by a part of it")
	{
		struct mxbpf_iteration it = {.h = {.kind = MXBPF_ITERATION, .size = sizeof(it), .tgid = PID},
					     .dur_ns = 100 * MS,
					     .tid = PID,
					     .flags = MXBPF_ITERATION_PARTS};

		rises(ROUNDS, 1024, 0, 0, 0);
		for (; it.nr < ROUNDS; it.nr++) {
			it.h.ts_ns = (1000 + it.nr * 100) * MS;
			it.live_bytes = (int64_t)it.nr << 17;
			feed(&it);
		}
		CHECK(!strcmp(found(), "memory_growth") && has(&told.list[0].text, "outside of the runtime"));
	}
	TEST("it is found in a window of many readings as well, and through noise that is larger than its steps")
	{
		rises(1000, 64, 0, 0, 500);
		CHECK(!strcmp(found(), "memory_growth"));
	}
	TEST("memory that a collector frees does not grow, whenever that happens in the window")
	{
		/* If nothing is freed, it is a leak as far as this window tells, and so it is behind the first reading.
		 */
		for (phase = 1; phase < ROUNDS - 1; phase++) {
			rises(ROUNDS, 1024, ROUNDS, phase, 0);
			CHECK(is_silent());
		}
		for (phase = 0; phase < 15; phase++) {
			rises(ROUNDS, 1024, 15, phase, 0);
			CHECK(is_silent());
		}
	}
	TEST("a cache that fills, noise, a step and a few KiB are no growth")
	{
		for (i = 0; i < ROUNDS; i++)
			kib[i] = i < 15 ? i * 1024 : 15 * 1024;
		resident(kib, ROUNDS);
		CHECK(is_silent());
		for (i = 0; i < ROUNDS; i++)
			kib[i] = i < 18 ? 0 : 20 * 1024;
		resident(kib, ROUNDS);
		CHECK(is_silent());
		rises(ROUNDS, 0, 0, 0, 8 * 1024);
		CHECK(is_silent());
		rises(ROUNDS, 50, 0, 0, 0);
		CHECK(is_silent());
	}
}

/* The same in iterations, whose memory is that of the allocator. */
static int64_t grown(size_t n, uint64_t period, uint64_t phase)
{
	int64_t bytes[200];
	size_t i;

	for (i = 0; i < n; i++)
		bytes[i] = (int64_t)((period ? (i + phase) % period : i) << 14);
	return facts_grown(bytes, n);
}

static void test_sawtooth(void)
{
	size_t phase;

	TEST("memory of iterations that falls once or twice in the window does not grow")
	{
		CHECK(grown(120, 0, 0) == 120 / 3 * 2 * (1 << 14) * 3 / 2);
		for (phase = 1; phase < 118; phase++)
			CHECK(!grown(120, 120, phase));
		for (phase = 0; phase < 70; phase++)
			CHECK(!grown(120, 70, phase));
	}
}

/* ---- what a program without an optimizer does again and again */

/* Calls of an operator of 1 ms each, or of an annotation of 20 ms. */
static void calls(const char *operator, uint64_t n, bool annotation)
{
	char rec[256] = {0};
	struct mxbpf_name *name = (void *)rec;
	struct mxbpf_span s = {
		.h = {.kind = MXBPF_SPAN, .size = sizeof(s), .tgid = PID, .ts_ns = 1000 * MS},
		.tid = PID,
		.cls = MXBPF_CLASS_OPERATOR,
		.dur_ns = annotation ? 20 * MS : MS,
		.self_ns = annotation ? 0 : MS,
		.flags = annotation ? MXBPF_SPAN_USER : 0,
	};

	name->len = (uint32_t)strlen(operator);
	name->h = (struct mxbpf_rec){
		.kind = MXBPF_NAME, .size = (uint16_t)(sizeof(*name) + (name->len + 7) / 8 * 8), .tgid = PID};
	s.name_id = name->id = hash_text(HASH_SEED, operator, name->len);
	name->kind = MXBPF_NAME_SPAN;
	memcpy(name->text, operator, name->len);
	feed(rec);
	for (; n; n--, s.h.ts_ns += s.dur_ns)
		feed(&s);
}

/* Returns whether the head of the report has the text; NULL: none of both heads. */
static bool head_has(const char *text)
{
	FREED(mdl_session_fini) struct mdl_session about = session_new();
	bool has;

	about.duration_ns = session.duration_ns;
	sample(0, PID, LOCKING, RUNS);
	FREED(memory_freed) char *report = render("modern", &about, model, &(struct view_opts){0});
	has = text ? !!strstr(report, text) : !strstr(report, "per second");
	if (!has)
		printf("# %.300s\n", report);
	return has;
}

static void test_passes(void)
{
	TEST("without iterations the head has the rate of the program's annotation, with the outermost of several")
	{
		new_model();
		calls("request", 40, true);
		calls("aten::mm", 400, false);
		CHECK(head_has("request: 10 per second, 20.0 ms each: 50% in operators\n"));
	}
	TEST("without an annotation it has how often the same operators repeat, although the window cuts some off")
	{
		new_model();
		calls("aten::softmax", 100, false);
		calls("aten::argmax", 99, false);
		calls("aten::relu", 201, false);
		calls("aten::empty", 101, false);
		calls("aten::mm", 301, false);
		calls("aten::to", 3, false); /* a message that is logged now and then */
		CHECK(head_has("No optimizer: the same 8 calls of operators repeat 24.8 times per second, 8.13 ms each "
			       "time\n"));
	}
	TEST("what runs in some passes only is no pass, and the layers of a model are not either")
	{
		new_model();
		calls("aten::_linalg_svd", 33, false);
		calls("aten::mul", 33, false);
		calls("aten::div", 33, false);
		calls("aten::gelu", 672, false);
		calls("aten::mean", 672, false);
		calls("aten::randn", 672, false);
		calls("aten::addmm", 1344, false);
		CHECK(head_has("the same 5 calls of operators repeat 168 times per second"));
		new_model();
		calls("aten::embedding", 300, false);
		calls("aten::argmax", 300, false);
		calls("aten::select", 300, false);
		calls("aten::gelu", 7200, false);
		calls("aten::softmax", 7200, false);
		calls("aten::addmm", 43200, false);
		CHECK(head_has("operators repeat 75 times per second"));
	}
	TEST("calls that are no multiples of each other, and those of a backward pass, have no rate")
	{
		new_model();
		calls("aten::softmax", 100, false);
		calls("aten::argmax", 137, false);
		calls("aten::relu", 160, false);
		calls("aten::empty", 255, false);
		CHECK(head_has(NULL));
		new_model();
		calls("aten::softmax", 100, false);
		calls("aten::argmax", 100, false);
		calls("aten::relu", 100, false);
		calls("aten::mm", 250, false);
		CHECK(head_has(NULL));
		new_model();
		calls("aten::softmax", 100, false);
		calls("aten::argmax", 100, false);
		calls("aten::relu", 100, false);
		calls("SoftmaxBackward0", 100, false);
		CHECK(head_has(NULL));
	}
}

static void test_again(void)
{
	struct mxbpf_look look = {
		.h = {.kind = MXBPF_LOOK, .size = sizeof(look), .tgid = PID},
		.stack_id = stack("/app/train.py(17): step"),
		.tid = PID,
		.flags = RUNS,
	};

	TEST("a backward pass that runs nodes again is said without times that are not known to rise, and operators in "
	     "place have the same nodes")
	{
		rises(ROUNDS, 1024, 0, 0, 0);
		iterations(40, 100);
		for (look.iterations = 1; look.iterations < 11; look.iterations++) {
			look.h.ts_ns = look.read_ns = 1000 * MS + look.iterations * 100 * MS;
			feed(&look);
		}
		calls("AddBackward0", 100, false);
		calls("aten::add", 10, false);
		CHECK(strstr(found(), "slower_iterations"));
		CHECK(has(&told.list[0].text, "Each iteration does more than the one before; the backward pass goes "
					      "through the graphs of earlier iterations again"));
		calls("aten::add_", 90, false);
		CHECK(*found() && !strstr(found(), "slower_iterations"));
	}
}

/* ---- deep stacks */

static void test_deep(void)
{
	static char text[32768];
	size_t len = 0, i, used;
	const char *line;

	TEST("a stack that is too deep keeps its innermost lines, the program's and those that tell the compiler")
	{
		for (i = 0; i < 150; i++)
			len += (size_t)snprintf(text + len, sizeof(text) - len,
						"torch/_inductor/ir.py(%zu): visit_a_node\n", i);
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"torch/_dynamo/convert_frame.py(9): _compile\ntorch/nn/modules/module.py(3): "
					"_call_impl\n/app/train.py(12): step");
		len = lines_shorten(text, len);
		text[len] = '\0';
		CHECK(len < 4096 && !strncmp(text, "torch/_inductor/ir.py(0): visit_a_node\n", 39));
		CHECK(strstr(text, "visit_a_node\n...\ntorch/_dynamo/convert_frame.py(9): _compile\n...\n"
				   "/app/train.py(12): step"));
		line = lines_pick(text, len, &used);
		CHECK(used == strlen("/app/train.py(12): step") && !memcmp(line, "/app/train.py(12): step", used));
		CHECK(lines_compiler(text, len) && !strcmp(lines_compiler(text, len), "PyTorch"));
	}
	TEST("a program that is deep itself is cut to what a name may have")
	{
		for (len = i = 0; i < 400; i++)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "/app/train.py(%zu): recursive\n", i);
		len = lines_shorten(text, len);
		CHECK(len < 4096 && len > 3000 && text[len - 1] != '\n');
	}
}

#define REDUCING                                                                                                       \
	"torch/distributed/distributed_c10d.py(3252): all_reduce\n/app/train.py(18): step\n/app/train.py(30): "        \
	"<module>"
#define SENDING	 "torch/distributed/distributed_c10d.py(2901): broadcast\n/app/train.py(31): <module>"
#define CLEANING "/app/train.py(5): upload"

/* Samples of the main thread of a rank of four on this machine, all of them on one stack, asleep in a system call. */
static void sleeps_in(int syscall, unsigned number, const char *text, uint64_t count)
{
	struct mxbpf_agg_line l = {
		.h = {.kind = MXBPF_AGG_LINE, .size = sizeof(l), .tgid = PID + number, .ts_ns = 1000 * MS},
		.stack_id = stack(text),
		.count = count,
		.tid = PID + number,
		.syscall = syscall,
		.sleeps = MXBPF_SLEEP_ANY,
		.main = 1,
		.rank = number > 0,
		.number = (uint16_t)(1 + number),
		.local_ranks = 4,
	};

	feed(&l);
}

static void stands(unsigned number, const char *text, uint64_t count)
{
	sleeps_in(SYS_futex, number, text, count);
}

/* Three ranks stand in all_reduce, and the fourth one somewhere else; NULL: there is no such process. */
static const char *hangs(const char *text)
{
	new_model();
	stands(0, REDUCING, 30);
	stands(1, REDUCING, 30);
	stands(3, REDUCING, 30);
	if (text)
		stands(2, text, 30);
	return found();
}

static bool says(const char *text)
{
	return told.n && has(&told.list[0].text, text);
}

static void test_hang(void)
{
	TEST("of a job that stands still, the rank is named that is gone, in another collective, or at its exit")
	{
		CHECK(!strcmp(hangs(NULL), "hang") &&
		      says("rank 2 is gone, and ranks 0, 1, 3 wait for it in all_reduce at /app/train.py(18): step"));
		CHECK(!strcmp(hangs(SENDING), "hang") &&
		      says("rank 2 (process 102) is in another collective, broadcast at /app/train.py(31): <module>"));
		CHECK(!strcmp(hangs(CLEANING), "hang") && says("rank 2 (process 102) has left the loop: it is in the "
							       "exit of its program, at /app/train.py(5): upload"));
	}
	TEST("the launcher of the ranks, which mxbpf was pointed at, is none of them")
	{
		struct mxbpf_agg_line launcher = {
			.h = {.kind = MXBPF_AGG_LINE, .size = sizeof(launcher), .tgid = 90, .ts_ns = 1000 * MS},
			.count = 30,
			.tid = 90,
			.syscall = SYS_poll,
			.sleeps = MXBPF_SLEEP_ANY,
			.main = 1,
		};

		hangs(SENDING);
		launcher.stack_id = stack("torch/distributed/run.py(9): main\n/usr/bin/torchrun(8): <module>");
		session.pid = launcher.h.tgid;
		feed(&launcher);
		CHECK(!strcmp(found(), "hang") && says("rank 2 (process 102) is in another collective"));
		CHECK(!has(&told.list[0].evidence, "process 90"));
		session.pid = 0;
	}
	TEST("a job does not stand still while one of its ranks goes from line to line or writes to a disk, or while "
	     "no rank is in a collective")
	{
		hangs(SENDING);
		stands(2, "/app/train.py(32): <module>", 5);
		CHECK(is_silent());
		hangs(NULL);
		sleeps_in(SYS_fsync, 2, "/app/train.py(40): save\n/app/train.py(52): <module>", 30);
		CHECK(is_silent());
		new_model();
		stands(0, "/app/train.py(30): <module>", 30);
		stands(1, "/app/train.py(30): <module>", 30);
		CHECK(is_silent());
	}
}

int main(void)
{
	test_hang();
	test_lock();
	test_compiler();
	test_first_compilation();
	test_rest();
	test_resident();
	test_sawtooth();
	test_passes();
	test_again();
	test_deep();
	UNIT_MAIN_END;
}
