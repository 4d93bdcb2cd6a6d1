// SPDX-License-Identifier: Apache-2.0
#include "import/json.h"
#include "import/json_mend.h"
#include "import/nest.h"
#include "import/sort.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "records/kinds.h"
#include "unit.h"

/* ---- the JSON of profilers */

/* Mends a text that arrives in pieces of `step` bytes. */
static const char *mended(const char *text, size_t step)
{
	static char out[4096];
	const size_t len = strlen(text);
	struct json_mend m = {0};
	size_t at, n, used = 0;

	for (at = 0; at < len; at += n) {
		n = len - at < step ? len - at : step;
		used += json_mend(&m, (const unsigned char *)text + at, n, out + used);
	}
	out[used] = '\0';
	return out;
}

static void words_that_are_no_json_become_null(void)
{
	static const char *const pairs[][2] = {
		{"[NaN, -Infinity, nan, 1.5e-3, -2, true]", "[null, null, null, 1.5e-3, -2, true]"},
		{"[\"a\\xb\", \"\\u12\", \"\\u00e9\\n\"]", "[\"a\\\\xb\", \"\\ufffd\", \"\\u00e9\\n\"]"},
		{"[\"NaN \\\" \t\", 7]", "[\"NaN \\\"  \", 7]"},
	};
	size_t i, step;

	for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		for (step = 1; step < 9; step++)
			CHECK(!strcmp(mended(pairs[i][0], step), pairs[i][1]));
}

static struct json_text text_of(const char *t)
{
	return (struct json_text){t, strlen(t)};
}

static void times_are_read_without_rounding(void)
{
	uint64_t ns = 0;

	CHECK(json_ns_of(text_of("1712195495123456.789"), &ns) && ns == 1712195495123456789ull);
	CHECK(json_ns_of(text_of("12"), &ns) && ns == 12000);
	CHECK(json_ns_of(text_of("0.0015"), &ns) && ns == 1);
	CHECK(json_ns_of(text_of("1.5e3"), &ns) && ns == 1500000);
	CHECK(!json_ns_of(text_of("-1"), &ns) && !json_ns_of(text_of("null"), &ns));
	CHECK(!json_ns_of(text_of("99999999999999999999"), &ns) && !json_ns_of(text_of("1e300"), &ns));
}

struct seen {
	unsigned members, events, args;
	uint64_t ts_ns;
	char name[64], value[256];
};

static int see_member(void *ctx, const struct json_arg *m)
{
	struct seen *s = ctx;

	s->members++;
	snprintf(s->value, sizeof(s->value), "%.*s=%.*s", (int)m->key.len, m->key.at, (int)m->value.len, m->value.at);
	return 0;
}

static int see_event(void *ctx, const struct json_event *e)
{
	struct seen *s = ctx;

	s->events++;
	s->args += (unsigned)e->nargs;
	s->ts_ns = e->ts_ns;
	snprintf(s->name, sizeof(s->name), "%.*s", (int)e->name.len, e->name.at ? e->name.at : "");
	return 0;
}

/* Reads a text as a file. */
static struct seen read_text(const char *text, size_t len, struct json_end *end)
{
	static const struct json_hooks hooks = {see_member, see_event};
	int fd = memfd_create("trace", 0);
	struct seen s = {0};
	struct err e = {0};

	CHECK(write(fd, text, len) == (ssize_t)len);
	CHECK(!json_each(fd, &hooks, &s, end, &e));
	close(fd);
	return s;
}

static const char trace[] =
	"{\"a\": [1, {\"b\": \"c\\\"\"}], \"traceEvents\": [{\"ph\": \"X\", \"name\": \"mm\", \"ts\": 5.25, "
	"\"args\": {\"dims\": [[2, 3], []], \"n\": 4}}, 7, [], {\"ph\": \"i\", \"name\": \"z\"}], "
	"\"traceName\": \"t\"}";

static void a_trace_gives_its_members_and_events(void)
{
	struct json_end end;
	struct seen s = read_text(trace, strlen(trace), &end);

	CHECK(s.members == 2 && s.events == 2 && s.args == 2 && !end.why[0]);
	CHECK(!strcmp(s.name, "z") && !strcmp(s.value, "traceName=t"));
	s = read_text("[{\"name\": \"q\", \"ts\": 1}]", 24, &end);
	CHECK(s.events == 1 && !s.members && s.ts_ns == 1000);
	s = read_text("{\"a\": [1, {\"b\": \"c\\\"\"}]}", 24, &end);
	CHECK(!strcmp(s.value, "a=[1,{\"b\":\"c\\\"\"}]"));
}

static void a_cut_trace_gives_what_is_before_the_cut(void)
{
	struct json_end end;
	struct seen s;
	size_t len, most = 0;

	for (len = 1; len < strlen(trace); len++) {
		s = read_text(trace, len, &end);
		CHECK(end.why[0] && s.events <= 2 && s.events >= most);
		most = s.events;
	}
	CHECK(most == 2);
}

static void values_that_are_nested_deeply_end_the_reading(void)
{
	static char deep[200000];
	struct json_end end;

	memset(deep, '[', sizeof(deep));
	read_text(deep, sizeof(deep), &end);
	CHECK(strstr(end.why, "nested too deeply"));
}

/* ---- order and nesting */

static struct mxbpf_span span(uint32_t tid, uint64_t start, uint64_t dur, uint64_t name)
{
	return (struct mxbpf_span){.h = {MXBPF_SPAN, MXBPF_SPAN_BYTES_DETAILS, 1, start},
				   .dur_ns = dur,
				   .name_id = name,
				   .tid = tid,
				   .end_tid = tid,
				   .cls = MXBPF_CLASS_OPERATOR};
}

struct order {
	uint64_t last_ns, n, sum;
	bool wrong;
};

static int see_order(void *ctx, struct mxbpf_rec *r)
{
	struct order *o = ctx;

	o->wrong |= r->ts_ns < o->last_ns;
	o->last_ns = r->ts_ns;
	o->n++;
	o->sum += ((const struct mxbpf_span *)(void *)r)->name_id;
	return 0;
}

static void more_records_than_memory_holds_are_sorted(void)
{
	enum { N = 600000 }; /* 84 MB: several runs */
	int fd = memfd_create("scratch", 0);
	struct sort *s = sort_new(fd);
	struct order o = {0};
	struct mxbpf_span one;
	uint64_t i, sum = 0;

	for (i = 0; i < N; i++) {
		one = span(1, i * 2654435761u % 1000003, 1, i);
		sum += i;
		CHECK(!sort_put(s, 0, &one.h));
	}
	CHECK(!sort_each(s, see_order, &o));
	CHECK(o.n == N && o.sum == sum && !o.wrong);
	sort_free(s);
	close(fd);
}

struct nested {
	struct mxbpf_span spans[16];
	size_t n;
	uint64_t frames[8];
	size_t nframes;
};

static int see_batch(void *ctx, void *recs, size_t bytes)
{
	struct nested *t = ctx;
	const struct mxbpf_rec *r;
	size_t pos = 0;

	while ((r = kind_next(recs, bytes, &pos)))
		if (r->kind == MXBPF_SPAN && t->n < 16)
			kind_span(r, &t->spans[t->n++]);
	return 0;
}

static uint64_t see_stack(void *ctx, const uint64_t *frames, size_t n)
{
	struct nested *t = ctx;

	memcpy(t->frames, frames, n * sizeof(*frames));
	t->nframes = n;
	return 77;
}

static const struct mxbpf_span *of_name(const struct nested *t, uint64_t name)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		if (t->spans[i].name_id == name)
			return &t->spans[i];
	return NULL;
}

static void put_span(struct nest *n, uint64_t start, uint64_t dur, uint64_t name, unsigned cls)
{
	struct mxbpf_span s = span(1, start, dur, name);

	s.cls = cls & 127;
	CHECK(!nest_put(n, &s.h));
}

static void self_times_memory_and_stacks_follow_from_nesting(void)
{
	struct nested t = {0};
	const struct nest_out out = {see_batch, see_stack, &t};
	struct nest *n = nest_new(&out);
	struct mxbpf_alloc a = {.h = {MXBPF_ALLOC, MXBPF_ALLOC_BYTES_PLAIN, 1, 3500}, .bytes = 64, .tid = 1};

	nest_rounded(n, 1000);
	put_span(n, 0, 100000, 50, MXBPF_CLASS_PYTHON);
	put_span(n, 500, 90000, 51, MXBPF_CLASS_PYTHON);
	put_span(n, 1000, 50000, 10, MXBPF_CLASS_OPERATOR);
	put_span(n, 2000, 10000, 11, MXBPF_CLASS_OPERATOR);
	put_span(n, 3000, 1000, 12, MXBPF_CLASS_OPERATOR);
	CHECK(!nest_put(n, &a.h));
	put_span(n, 20000, 80000, 13, MXBPF_CLASS_OPERATOR); /* it ends after the one around it */
	put_span(n, 30000, 21500, 14, MXBPF_CLASS_OPERATOR); /* it does not, but for rounding */
	CHECK(!nest_end(n));
	CHECK(t.n == 7 && t.nframes == 2 && t.frames[0] == 51 && t.frames[1] == 50);
	CHECK(of_name(&t, 10)->self_ns == 50000 - 10000 - 21500 && of_name(&t, 11)->self_ns == 9000);
	CHECK(of_name(&t, 12)->self_alloc_bytes == 64 && of_name(&t, 11)->alloc_bytes == 64 &&
	      of_name(&t, 10)->alloc_bytes == 64 && !of_name(&t, 10)->self_alloc_bytes);
	CHECK(of_name(&t, 13)->flags & MXBPF_SPAN_ASYNC && !of_name(&t, 13)->self_ns);
	CHECK(!(of_name(&t, 14)->flags & MXBPF_SPAN_ASYNC) && of_name(&t, 10)->stack_id == 77);
	nest_free(n);
}

static void threads_and_overlaps_beyond_the_limits_are_counted(void)
{
	struct nested t = {0};
	const struct nest_out out = {see_batch, see_stack, &t};
	struct nest *n = nest_new(&out);
	struct mxbpf_span s;
	uint32_t i;

	for (i = 0; i < 65536 + 3; i++) {
		s = span(i + 1, 1000, 10, 10);
		CHECK(!nest_put(n, &s.h));
	}
	CHECK(nest_lost(n) == 3);
	for (i = 0; i <= 65536 + 3; i++) { /* each of them ends after the one around it */
		s = span(1, 2000 + i, 1000000 + i, 10);
		CHECK(!nest_put(n, &s.h));
	}
	CHECK(nest_lost(n) >= 3 + 3 && !nest_end(n));
	nest_free(n);
}

int main(void)
{
	TEST("what profilers write for JSON becomes JSON, wherever a piece of the file ends")
	words_that_are_no_json_become_null();
	TEST("times of 19 digits are read to the last one")
	times_are_read_without_rounding();
	TEST("a trace gives its members and its events, whichever of the two forms it has")
	a_trace_gives_its_members_and_events();
	TEST("a trace that is cut anywhere gives the events before, and says so")
	a_cut_trace_gives_what_is_before_the_cut();
	TEST("values that are nested too deeply end the reading")
	values_that_are_nested_deeply_end_the_reading();
	TEST("more records than memory holds come out in the order of time, each once")
	more_records_than_memory_holds_are_sorted();
	TEST("self times, memory and stacks follow from nesting, and a span that overlaps another is nested in none")
	self_times_memory_and_stacks_follow_from_nesting();
	TEST("spans of threads beyond the limit, and overlaps beyond theirs, count as lost")
	threads_and_overlaps_beyond_the_limits_are_counted();
	return unit_end();
}
