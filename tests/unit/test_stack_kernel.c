/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests how BPF walks stacks, on an interpreter that this process imitates: thread states, frames, code objects and
 * strings are structures of this test, and BPF gets their offsets as it would get those of a CPython.
 */

#include "probed_calls.h"

#include <pthread.h>

#define SPANS_MAX 64
#define DEEP	  50 /* frames; the limit is MXBPF_STACK_FRAMES_MAX */
#define NPROBES	  2

/* ---- the interpreter */

struct text {
	uint64_t head[2], len, hash;
	uint64_t state;
	char bytes[MXBPF_PY_TEXT_BYTES];
};

struct code {
	uint64_t head[2];
	uint64_t words[2];
	const struct text *file, *name;
	char rest[MXBPF_PY_CODE_BYTES];
};

struct frame {
	const struct code *code;
	struct frame *back;
	uint32_t instr, owner;
	const void *local;
	char rest[MXBPF_PY_FRAME_BYTES];
};

struct state {
	uint64_t thread;
	struct frame *frame;
	char rest[MXBPF_PY_STATE_BYTES];
};

#define HEAD	   16
#define OF_CODE(f) (offsetof(struct code, f) - HEAD)

static struct mxbpf_python python = {
	.state_thread = offsetof(struct state, thread),
	.state_frame = offsetof(struct state, frame),
	.cframe_frame = MXBPF_PY_NONE,
	.frame_bytes = offsetof(struct frame, local),
	.frame_back = offsetof(struct frame, back),
	.frame_code = offsetof(struct frame, code),
	.frame_instr = offsetof(struct frame, instr),
	.frame_owner = offsetof(struct frame, owner),
	.frame_local = offsetof(struct frame, local),
	.instr_bytes = 2,
	.code_name = offsetof(struct code, name),
	.code_file = OF_CODE(file),
	.code_print = {OF_CODE(words), OF_CODE(words) + 8, OF_CODE(file), OF_CODE(name), OF_CODE(name)},
	.text = offsetof(struct text, bytes) - HEAD,
	.head = HEAD,
	.frame_copy = MXBPF_PY_NONE,
};

static __thread struct state *my_state;

static struct text file = {.len = 8, .state = MXBPF_PY_STATE_ASCII, .bytes = "train.py"};
static struct text step = {.len = 4, .state = MXBPF_PY_STATE_ASCII, .bytes = "step"};
static struct text wrapped = {.len = 18, .state = MXBPF_PY_STATE_ASCII, .bytes = "_wrapped_call_impl"};
static struct code code = {.file = &file, .name = &step}, module_call = {.file = &file, .name = &wrapped};
static struct frame frames[DEEP]; /* the first frame is the outermost one */
static struct state state;

/* ---- the profiled runtime */

PROBED static void api(void (*inside)(void))
{
	on_enter("api");
	if (inside)
		inside();
	on_exit_api();
	__asm__ volatile("" ::: "memory");
}

static const struct adp_probe rows[NPROBES] = {
	{.row = {.action = MXBPF_ACT_OPEN,
		 .end = MXBPF_END_PAIR,
		 .cls = MXBPF_CLASS_API,
		 .at_call_site = 1,
		 .details = MXBPF_DETAIL_STACK}},
	{.row = {.action = MXBPF_ACT_CLOSE_PAIR, .cls = MXBPF_CLASS_API, .at_call_site = 1}},
};

/* ---- a session that profiles it */

static struct plan_probe probes[NPROBES];
static struct plan_site sites[NPROBES];
static struct plan plan = {.lib = &self, .sites = {.data = (char *)sites, .len = sizeof(sites)}};
static struct mxbpf_span spans[SPANS_MAX];
static struct mxbpf_stack stacks[SPANS_MAX]; /* n 0: the span has no stack */
static unsigned nspans, span_bytes;
static struct mxbpf_loss loss;

static void take(void *ctx, void *recs, size_t bytes)
{
	const struct mxbpf_rec *r = recs;

	for (; bytes; bytes -= r->size, r = (const void *)((const char *)r + r->size)) {
		span_bytes = r->size;
		if (nspans < SPANS_MAX)
			kind_span(r, &spans[nspans++]);
	}
}

static unsigned att_details;
static uint64_t unreadable_before;

static bool begin(unsigned details, struct err *e)
{
	struct att_opts o = {.ring_bytes = 1u << 20, .details = details, .python = &python};

	if (att && details == att_details)
		return true;
	leave_session();
	att_details = details;
	unreadable_before = 0;
	return !att_load(&plan, getpid(), &o, &att, e) && !att_attach(att, &plan, &plan.target, getpid(), e);
}

/* Profiles work(). Spans are in the order of their ends. */
static void watch_with(unsigned details, void (*work)(void))
{
	struct ring *ring = NULL;
	struct err e = {0};
	unsigned i;

	nspans = 0;
	memset(spans, 0, sizeof(spans));
	memset(stacks, 0, sizeof(stacks));
	expect_session(begin(details, &e) && !ring_start(att_ring_fd(att, ATT_CALLS), take, NULL, &ring, &e), &e);
	run_recorded(work);
	ring_stop(ring);
	ring_free(ring);
	att_loss(att, ATT_CALLS, &loss);
	loss.unreadable -= unreadable_before;
	unreadable_before += loss.unreadable;
	for (i = 0; i < nspans; i++)
		if (spans[i].stack_id)
			CHECK(!att_read_stack(att, spans[i].stack_id, &stacks[i]));
}

static void watch(void (*work)(void))
{
	watch_with(MXBPF_DETAIL_STACK, work);
}

/* Makes n frames of `code` at instructions 0, 1, 2, ... from the outermost one on. */
static void run_frames(unsigned n)
{
	unsigned i;

	memset(frames, 0, sizeof(frames));
	for (i = 0; i < n; i++)
		frames[i] = (struct frame){.code = &code, .back = i ? &frames[i - 1] : NULL, .instr = i};
	state = (struct state){.thread = (uint64_t)pthread_self(), .frame = n ? &frames[n - 1] : NULL};
	my_state = &state;
}

/* ---- what the tests profile */

static void three_frames(void)
{
	run_frames(3);
	api(NULL);
	api(NULL);
	frames[2].instr = 7;
	api(NULL);
}

static void deep_frames(void)
{
	run_frames(MXBPF_STACK_FRAMES_MAX);
	api(NULL);
	run_frames(DEEP);
	api(NULL);
}

static void frames_of_c(void)
{
	run_frames(5);
	frames[1].owner = frames[3].owner = MXBPF_PY_OWNER_C;
	frames[3].code = NULL;
	api(NULL);
}

/* CPython 3.14 has two kinds of such frames. */
static void frames_of_both_kinds(void)
{
	run_frames(5);
	frames[1].owner = MXBPF_PY_OWNER_C + 1;
	frames[3].owner = MXBPF_PY_OWNER_C;
	frames[1].code = frames[3].code = NULL;
	api(NULL);
}

/* Returns a reference with a tag in its low bits, as CPython 3.14 keeps references in frames. */
static const void *tagged(const void *object)
{
	return (const char *)object + 1;
}

static void tagged_code(void)
{
	run_frames(3);
	api(NULL);
	frames[0].code = tagged(&code);
	frames[2].code = tagged(&code);
	api(NULL);
}

static void call_alone(void)
{
	api(NULL);
}

static void call_from_python(void)
{
	state.frame = &frames[2];
	api(NULL);
	state.frame = &frames[1];
}

static void nested(void)
{
	run_frames(3);
	state.frame = &frames[1];
	api(call_alone);
	api(call_from_python);
}

/* A caller that has moved to another line was left by an exception and is no longer waiting. */
static void after_another_line(void)
{
	frames[1].instr = 9;
	api(NULL);
}

static void line_moves(void)
{
	run_frames(2);
	api(after_another_line);
}

static void other_code_in_its_place(void)
{
	run_frames(2);
	api(NULL);
	memcpy(file.bytes, "other.py", 8);
	api(NULL);
	memcpy(file.bytes, "train.py", 8);
	code.words[1] = 5;
	api(NULL);
	code.words[1] = 0;
}

static uint64_t object[2], object_too[2];

static void modules(void)
{
	object[1] = 0x1234; /* written, because BPF cannot read memory that was never touched */
	object_too[1] = 0x5678;
	run_frames(4);
	frames[1].code = &module_call;
	frames[1].local = object;
	api(NULL);
	frames[1].local = object_too;
	api(NULL);
	frames[1].local = object;
	api(NULL);
}

static void tagged_modules(void)
{
	modules();
	frames[1].code = tagged(&module_call);
	frames[1].local = tagged(object_too);
	api(NULL);
}

static void module_of_no_class(void)
{
	run_frames(4);
	frames[1].code = &module_call;
	frames[1].local = (const void *)8;
	api(NULL);
}

static void *without_state(void *arg)
{
	api(NULL);
	my_state = &state; /* belongs to another thread */
	api(NULL);
	return arg;
}

static void threads(void)
{
	pthread_t t;

	run_frames(2);
	CHECK(!pthread_create(&t, NULL, without_state, NULL));
	CHECK(!pthread_join(t, NULL));
	run_frames(0);
	api(NULL);
}

static void torn(void)
{
	run_frames(4);
	frames[1].back = (struct frame *)8;
	api(NULL);
	frames[3].code = (const struct code *)8;
	api(NULL);
}

/* Copies n bytes to the end of a page before an unmapped page. */
static char *before_the_end(const void *bytes, size_t n)
{
	static size_t page = 4096;
	char *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED || mprotect(at + page, page, PROT_NONE))
		abort();
	return memcpy(at + page - n, bytes, n);
}

static void at_the_end_of_memory(void)
{
	struct code last_code = {.name = &step};
	struct frame *last;

	last_code.file = (void *)before_the_end(&file, offsetof(struct text, bytes) + file.len);
	run_frames(2);
	frames[0].code = &last_code;
	last = (void *)before_the_end(&frames[1], offsetof(struct frame, local));
	state.frame = last;
	api(NULL);
}

/* ---- an interpreter without a global lock: longer heads, and threads that execute copies of code */

#define FREE_SHIFT 6

struct free_text {
	uint64_t head[4], len, hash;
	uint32_t state, pad;
	char bytes[MXBPF_PY_TEXT_BYTES];
};

struct free_code {
	uint64_t head[4];
	uint64_t words[2];
	const struct free_text *file, *name;
	const void *copies;
	char rest[MXBPF_PY_CODE_BYTES];
	uint8_t instrs[64];
};

struct free_frame {
	const struct free_code *code;
	struct free_frame *back;
	const uint8_t *instr;
	uint32_t copy, owner;
	const void *local;
};

static const uint8_t other_copy[64];
static const struct {
	uint64_t n;
	const void *of[3];
} copies = {3, {NULL, NULL, other_copy}};
static struct free_text free_file = {.len = 8, .state = MXBPF_PY_STATE_ASCII << FREE_SHIFT, .bytes = "train.py"};
static struct free_text free_wrapped = {
	.len = 18, .state = MXBPF_PY_STATE_ASCII << FREE_SHIFT, .bytes = "_wrapped_call_impl"};
static struct free_code free_code = {.file = &free_file, .name = &free_wrapped, .copies = &copies};
static struct free_frame free_frames[2];
static uint64_t free_object[4];

static void lose_the_lock(void)
{
	python.head = offsetof(struct free_code, words);
	python.text_shift = FREE_SHIFT;
	python.frame_bytes = sizeof(struct free_frame);
	python.frame_instr = offsetof(struct free_frame, instr);
	python.frame_owner = offsetof(struct free_frame, owner);
	python.frame_copy = offsetof(struct free_frame, copy);
	python.frame_local = offsetof(struct free_frame, local);
	python.instr_bytes = 0;
	python.code_copies = offsetof(struct free_code, copies);
	python.code_instrs = offsetof(struct free_code, instrs);
	python.code_name = offsetof(struct free_code, name);
}

static void copies_of_code(void)
{
	free_object[3] = 0x1234;
	free_frames[0] = (struct free_frame){.code = &free_code, .instr = free_code.instrs + 6, .local = free_object};
	free_frames[1] =
		(struct free_frame){.code = &free_code, .instr = other_copy + 8, .copy = 2, .local = free_object};
	free_frames[1].back = &free_frames[0];
	state = (struct state){.thread = (uint64_t)pthread_self(), .frame = (void *)&free_frames[1]};
	my_state = &state;
	api(NULL);
	memcpy(free_file.bytes, "other.py", 8);
	api(NULL);
	free_frames[1].copy = 1; /* which there is not */
	api(NULL);
}

int main(void)
{
	const void *const functions[NPROBES] = {on_enter, on_exit_api};
	unsigned i;

	if (geteuid()) {
		printf("ok 1 - BPF walks Python stacks # SKIP needs root\n1..1\n");
		return 0;
	}
	make_sites(sites, probes, rows, functions, NPROBES);
	python.tls = (int32_t)((char *)&my_state - (char *)pthread_self());

	TEST("a stack has its frames, innermost first, and equal stacks have one id")
	{
		watch(three_frames);
		CHECK(nspans == 3 && spans[0].stack_id && spans[0].stack_id == spans[1].stack_id);
		CHECK(spans[2].stack_id && spans[2].stack_id != spans[0].stack_id);
		CHECK(stacks[0].n == 3 && !stacks[0].cut && stacks[2].frames[0].instr == 14);
		for (i = 0; i < 3; i++)
			CHECK(stacks[0].frames[i].instr == 2 * (2 - i) && stacks[0].frames[i].code == (uintptr_t)&code);
		CHECK(!loss.unreadable);
	}
	TEST("a stack that is too deep keeps its innermost frames and is marked as cut")
	{
		watch(deep_frames);
		CHECK(nspans == 2 && stacks[0].n == MXBPF_STACK_FRAMES_MAX && !stacks[0].cut);
		CHECK(stacks[1].n == MXBPF_STACK_FRAMES_MAX && stacks[1].cut);
		CHECK(stacks[1].frames[0].instr == 2 * (DEEP - 1) && !loss.unreadable);
	}
	TEST("frames of the interpreter for calls from C are left out")
	{
		watch(frames_of_c);
		CHECK(nspans == 1 && stacks[0].n == 3 && stacks[0].frames[1].instr == 4 &&
		      stacks[0].frames[2].instr == 0);
		watch(frames_of_both_kinds);
		CHECK(nspans == 1 && stacks[0].n == 3 && !stacks[0].cut && stacks[0].frames[1].instr == 4 &&
		      stacks[0].frames[2].instr == 0);
	}
	TEST("a reference to code has the same stack with and without CPython 3.14's tag")
	{
		watch(tagged_code);
		CHECK(nspans == 2 && spans[0].stack_id && spans[0].stack_id == spans[1].stack_id && !loss.unreadable);
		CHECK(stacks[1].n == 3 && stacks[1].frames[0].code == (uintptr_t)&code);
	}
	TEST("a nested call has the stack of its caller unless Python runs in between")
	{
		watch(nested);
		CHECK(nspans == 4 && spans[0].stack_id == spans[1].stack_id && stacks[0].n == 2);
		CHECK(spans[3].stack_id == spans[1].stack_id && spans[2].stack_id != spans[3].stack_id &&
		      stacks[2].n == 3);
		watch(line_moves);
		CHECK(nspans == 2 && spans[0].stack_id != spans[1].stack_id && stacks[0].frames[0].instr == 18);
	}
	TEST("new code at the address of old code makes another stack")
	{
		watch(other_code_in_its_place);
		CHECK(nspans == 3 && spans[0].stack_id != spans[1].stack_id && spans[0].stack_id != spans[2].stack_id);
		CHECK(stacks[0].frames[0].code == stacks[1].frames[0].code &&
		      stacks[0].frames[0].print != stacks[1].frames[0].print);
	}
	TEST("the class of a module is known from its first call on and makes another stack")
	{
		watch(modules);
		CHECK(nspans == 3 && stacks[0].frames[2].type == 0x1234 && stacks[1].frames[2].type == 0x5678);
		CHECK(spans[0].stack_id != spans[1].stack_id && spans[0].stack_id == spans[2].stack_id);
		CHECK(!stacks[0].frames[1].type && !loss.unreadable);
		watch(tagged_modules);
		CHECK(nspans == 4 && stacks[3].frames[2].type == 0x5678 && spans[3].stack_id == spans[1].stack_id);
		watch(module_of_no_class);
		CHECK(nspans == 1 && stacks[0].cut && loss.unreadable == 1);
	}
	TEST("a thread that runs no Python has no stack, and none counts as lost")
	{
		watch(threads);
		CHECK(nspans == 3 && !spans[0].stack_id && !spans[1].stack_id && !spans[2].stack_id &&
		      !loss.unreadable);
	}
	TEST("an unreadable frame is counted, and the readable frames are kept")
	{
		watch(torn);
		CHECK(nspans == 2 && stacks[0].n == 3 && stacks[0].cut && !spans[1].stack_id && loss.unreadable == 2);
	}
	TEST("an object at the end of mapped memory can be read")
	{
		watch(at_the_end_of_memory);
		CHECK(nspans == 1 && stacks[0].n == 2 && !stacks[0].cut && !loss.unreadable);
	}
	TEST("spans have no details unless they are requested")
	{
		watch(three_frames);
		CHECK(span_bytes == MXBPF_WITH_COST(MXBPF_SPAN_BYTES_DETAILS));
		watch_with(0, three_frames);
		CHECK(nspans == 3 && span_bytes == MXBPF_WITH_COST(MXBPF_SPAN_BYTES_PLAIN));
	}
	leave_session();
	TEST("without a global lock, lines are found in a thread's copy of code, and names and classes behind longer "
	     "heads")
	{
		lose_the_lock();
		watch(copies_of_code);
		CHECK(nspans == 3 && stacks[0].n == 2 && stacks[0].frames[0].instr == 8 &&
		      stacks[0].frames[1].instr == 6);
		CHECK(stacks[0].frames[0].print != stacks[1].frames[0].print && stacks[0].frames[1].type == 0x1234);
		CHECK(!stacks[2].n && loss.unreadable == 1);
	}
	leave_session();
	UNIT_MAIN_END;
}
