/* SPDX-License-Identifier: Apache-2.0 */
/* Tests samples: malformed records, tables, folded stacks, and the recognition of return addresses. */
#include "feature/sample/sample.h"

#include <dirent.h>

#include "printed.h"
#include "records.h"
#include "symbols/ended.h"
#include "symbols/sample_priv.h"
#include "mxbpf_thread.h"

static void put_sample(struct buf *b, uint32_t tgid, uint64_t stack_id, uint64_t code_id, unsigned nspans,
		       const uint64_t *names)
{
	struct mxbpf_sample s = {.h = {MXBPF_SAMPLE, (uint16_t)(sizeof(s) + nspans * 16), tgid, 5},
				 .count = 1,
				 .stack_id = stack_id,
				 .code_id = code_id,
				 .tid = 78};
	unsigned i;

	mxbpf_sample_set_nspans(&s, nspans);
	buf_put(b, &s, sizeof(s));
	for (i = 0; i < nspans; i++) {
		struct mxbpf_sample_span span = {.name_id = names[i], .cls = MXBPF_CLASS_OPERATOR};

		buf_put(b, &span, sizeof(span));
	}
}

static uint64_t count_in(const struct mdl *m, uint32_t tgid, uint64_t name_id, bool between)
{
	const struct tbl *t = mdl_table_of(m, &feature_sample, &sample_table);
	const struct sample_row *r;
	size_t i;

	for (i = 0; t && i < tbl_count(t); i++) {
		r = tbl_at(t, i);
		if (r->tgid == tgid && r->name_id == name_id && r->between == between)
			return r->count;
	}
	return 0;
}

static uint64_t count_of(const struct mdl *m, uint32_t tgid, uint64_t name_id)
{
	return count_in(m, tgid, name_id, false);
}

/* A source with one window of records. */
static struct buf recs;
static bool at_end;

static int rewind_recs(void *ctx)
{
	at_end = false;
	return 0;
}

static int next_recs(void *ctx, const void **data, size_t *bytes)
{
	*data = recs.data;
	*bytes = recs.len;
	at_end = !at_end;
	return at_end;
}

static char *render(struct mdl *m)
{
	struct mdl_session s = {.sample_hz = 100, .comm = (char *)"job"};
	struct view_source source = {rewind_recs, next_recs, NULL, 0};
	const struct view_input in = {.session = &s, .model = m, .source = &source};
	const struct view_opts opts = {0};

	return printed(view_find("folded"), &in, &opts);
}

static bool returns(const char *bytes)
{
	uint8_t before[CALL_BYTES];

	memset(before, 0x90, sizeof(before));
	memcpy(before + CALL_BYTES - strlen(bytes), bytes, strlen(bytes));
	return ends_in_call(before);
}

static void test_calls(void)
{
	/* clang-format off */
	static const char *const calls[] = {
		"\xe8\x01\x01\x01\x01",		    /* call near */
		"\xff\xd0", "\x41\xff\xd4",	    /* call *%rax, *%r12 */
		"\xff\x10", "\xff\x50\x08",	    /* call *(%rax), *8(%rax) */
		"\xff\x90\x10\x01\x01\x01",	    /* call *0x1010110(%rax) */
		"\xff\x15\x01\x01\x01\x01",	    /* call *0x1010101(%rip) */
		"\xff\x14\xd3", "\xff\x54\x24\x08", /* call *(%rbx,%rdx,8), *8(%rsp) */
		"\xff\x94\x24\x10\x01\x01\x01",	    /* call *0x1010110(%rsp) */
		"\xff\x14\xc5\x01\x01\x01\x01",	    /* call *0x1010101(,%rax,8) */
	};
	static const char *const others[] = {
		"\xff\xe0",	 /* jmp *%rax */
		"\xff\x50",	 /* truncated */
		"\xe8\x01\x01",	 /* truncated */
		"\xc3", "\x48\x89\xe5",
	};
	/* clang-format on */
	size_t i;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		CHECK(returns(calls[i]));
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		CHECK(!returns(others[i]));
}

static void test_tables(void)
{
	FREED(model_freed) struct mdl *sum = NULL, *again = mdl_new(), *m = mdl_new();
	const uint64_t names[] = {1, 3};
	FREED(buf_fini) struct buf b = {0};

	put_sample(&b, 77, 0, 0, 2, names);
	put_sample(&b, 77, 0, 0, 1, names);
	put_sample(&b, 88, 0, 0, 2, names);
	put_sample(&b, 77, 0, 0, 0, NULL);
	CHECK(!feed(m, &b));
	CHECK(count_of(m, 77, 3) == 1 && count_of(m, 77, 1) == 1 && count_of(m, 88, 3) == 1 && count_of(m, 77, 0) == 1);
	CHECK(!mdl_emit(m, &b) && !feed(again, &b));
	CHECK(count_of(again, 77, 3) == 1 && count_of(again, 88, 3) == 1 && count_of(again, 77, 0) == 1);
	CHECK(mdl_nprocesses(m) == 2);
	sum = mdl_sum(m);
	CHECK(count_of(sum, 0, 3) == 2 && count_of(sum, 0, 1) == 1);
}

static void test_claims(void)
{
	FREED(model_freed) struct mdl *m = mdl_new();
	const uint64_t name = 1;
	FREED(buf_fini) struct buf b = {0};

	put_sample(&b, 77, 0, 0, 1, &name);
	((struct mxbpf_sample *)b.data)->nspans_low = 2;
	CHECK(feed(m, &b) == -EBADMSG);
	put_sample(&b, 77, 0, 0, 1, &name);
	((struct mxbpf_sample_span *)(b.data + sizeof(struct mxbpf_sample)))->cls = MXBPF_CLASS_MAX;
	CHECK(feed(m, &b) == -EBADMSG);
}

static void test_folded(void)
{
	FREED(model_freed) struct mdl *m = mdl_new();
	const uint64_t names[] = {1, 3};

	put_name(&recs, 1, MXBPF_NAME_SPAN, "outer;op");
	put_name(&recs, 3, MXBPF_NAME_SPAN, "inner\x1b[2J");
	put_name(&recs, 5, MXBPF_NAME_STACK, "train.py(12): step\nnn.Module: Net\nmain (x).py(3): <module>");
	put_name(&recs, 7, MXBPF_NAME_CODE, "f(int)\tlib.so\n[unknown]\t");
	put_sample(&recs, 77, 5, 7, 2, names);
	put_sample(&recs, 77, 0, 7, 0, NULL);
	put_sample(&recs, 88, 5, 7, 2, names);
	CHECK(!mdl_feed(m, recs.data, recs.len));
	FREED(memory_freed) char *text = render(m);
	CHECK(!strcmp(text, "outer:op;inner\\x1b[2J;<module> (main (x).py:3);nn.Module: Net;step (train.py:12);"
			    "[unknown];f(int) 2\n[no operator];[unknown];f(int) 1\n"));
	buf_fini(&recs);
}

static void test_deep(void)
{
	uint64_t names[MXBPF_FRAMES_MAX];
	FREED(model_freed) struct mdl *m = mdl_new();
	unsigned i, frames = 1;
	char *c;

	for (i = 0; i < MXBPF_FRAMES_MAX; i++)
		names[i] = i ? 3 : 1;
	put_name(&recs, 1, MXBPF_NAME_SPAN, "outermost");
	put_name(&recs, 3, MXBPF_NAME_SPAN, "inner");
	put_sample(&recs, 77, 0, 0, MXBPF_FRAMES_MAX, names);
	CHECK(!mdl_feed(m, recs.data, recs.len) && count_of(m, 77, 3) == 1);
	FREED(memory_freed) char *text = render(m);
	for (c = text; *c; c++)
		frames += *c == ';';
	CHECK(frames == MXBPF_FRAMES_MAX && !strncmp(text, "outermost;inner;", 16));
	buf_fini(&recs);
}

/* Names a frame of a new process, which then ends. */
static void sample_process(struct smp *s)
{
	const struct mxbpf_sample_where w = {.naddrs = 1, .addrs = {(uintptr_t)test_deep}};
	struct mxbpf_sample r = {.h = {.kind = MXBPF_SAMPLE}};
	char text[512];
	pid_t kid = fork();

	if (!kid) {
		pause();
		_exit(0);
	}
	r.h.tgid = (uint32_t)kid;
	CHECK(memmem(text, smp_text(s, &r, &w, text, sizeof(text)), "test_deep", 9));
	kill(kid, SIGKILL);
	waitpid(kid, NULL, 0);
}

static unsigned open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void test_processes(void)
{
	struct smp *s = smp_new();
	unsigned i, most = 0;

	for (i = 0; s && i < 60; i++) {
		sample_process(s);
		most = i == SYM_PROCESSES_KEPT - 1 ? open_fds() : most;
	}
	CHECK(most && open_fds() <= most);
	smp_free(s);
}

static void set_between(struct buf *b)
{
	((struct mxbpf_sample *)b->data)->flags |= MXBPF_SAMPLE_BETWEEN;
}

static void test_slices(void)
{
	FREED(model_freed) struct mdl *m = mdl_new(), *again = mdl_new();
	const uint64_t names[] = {1};
	FREED(buf_fini) struct buf b = {0};

	put_sample(&b, 77, 0, 0, 0, NULL);
	CHECK(!feed(m, &b));
	put_sample(&b, 77, 0, 0, 1, names); /* an annotation, which is recorded all the time */
	set_between(&b);
	CHECK(!feed(m, &b));
	put_sample(&b, 77, 0, 0, 0, NULL);
	set_between(&b);
	CHECK(!feed(m, &b));
	CHECK(!mdl_emit(m, &b) && !feed(again, &b));
	CHECK(count_of(again, 77, 0) == 1 && count_of(again, 77, 1) == 0 && count_in(again, 77, 0, true) == 2);
}

int main(void)
{
	TEST("a return address must follow a call instruction of any form, and nothing else")
	test_calls();
	TEST("samples are counted by their innermost span, also after emitting")
	test_tables();
	TEST("samples between slices are of no call, and not of the time outside of all calls, also after emitting")
	test_slices();
	TEST("a record with more spans than its size allows or with an invalid class is refused")
	test_claims();
	TEST("a folded stack begins with the operator, escapes hostile names, and merges processes")
	test_folded();
	TEST("a sample can have the maximum number of open spans")
	test_deep();
	TEST("processes that come and go for ever need a limited number of file descriptors")
	test_processes();
	UNIT_MAIN_END;
}
