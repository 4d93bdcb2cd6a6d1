// SPDX-License-Identifier: Apache-2.0
/* Tests what drives every view: the order of its callbacks, and how many rows a table has in a short output. */

#include "rendered.h"

static char dir[] = "/tmp/mxbpf-test-XXXXXX";

/* ---- the driver */

struct fake {
	struct view s;
	unsigned long calls;
};

static unsigned long calls;
static int fail_with;

static int note(struct view *s, unsigned long digit)
{
	((struct fake *)s)->calls = calls = calls * 10 + digit;
	return 0;
}

static int fake_begin(struct view *s)
{
	calls = 0;
	return fail_with ? fail_with : note(s, 1);
}

static int fake_survey(struct view *s, const struct mxbpf_rec *r)
{
	return note(s, 2);
}

static int fake_surveyed(struct view *s)
{
	return note(s, 3);
}

static int fake_record(struct view *s, const struct mxbpf_rec *r)
{
	return note(s, 4);
}

static int fake_table(struct view *s, const struct view_table *t)
{
	return note(s, 5);
}

static int fake_sheet(struct view *s, const struct view_sheet *sh, const void *table)
{
	return note(s, 6);
}

static int fake_end(struct view *s)
{
	return note(s, 7);
}

static void fake_fini(struct view *s)
{
	note(s, 8);
}

static int source_rewind(void *ctx)
{
	*(unsigned *)ctx = 0;
	return 0;
}

static struct mxbpf_alloc one_alloc = {.h = {MXBPF_ALLOC, sizeof(one_alloc), 1, 1}, .bytes = 1};

static int source_next(void *ctx, const void **recs, size_t *bytes)
{
	*recs = &one_alloc;
	*bytes = sizeof(one_alloc);
	return ++*(unsigned *)ctx <= 2;
}

static void progress(void *ctx, uint64_t done, uint64_t of)
{
	CHECK(done <= of && done > *(uint64_t *)ctx);
	*(uint64_t *)ctx = done;
}

static void test_driver(void)
{
	static const struct view_ops ops = {
		.name = "fake",
		.needs_records = true,
		.state_bytes = sizeof(struct fake),
		.begin = fake_begin,
		.survey = fake_survey,
		.surveyed = fake_surveyed,
		.record = fake_record,
		.table = fake_table,
		.sheet = fake_sheet, /* memory by device is the only sheet */
		.end = fake_end,
		.fini = fake_fini,
	};
	FREED(mdl_session_fini) struct mdl_session s = session_new();
	uint64_t done = 0;
	unsigned window;
	struct view_source src = {source_rewind, source_next, &window, 2 * sizeof(one_alloc)};
	const struct view_input in = {.session = &s, .model = mdl_new(), .source = &src};
	const struct view_opts opts = {.progress = progress, .progress_ctx = &done};
	struct err e = {0};
	char path[64];
	struct out *o;

	snprintf(path, sizeof(path), "%s/driver", dir);
	CHECK(!out_open(path, false, &o, &e));
	CHECK(!view_write(&ops, &in, &opts, o, &e));
	CHECK(calls == 122344556788 / 10); /* two classes are in use */
	CHECK(done == 4 * sizeof(one_alloc));
	fail_with = -ENOMEM;
	CHECK(view_write(&ops, &in, &opts, o, &e) == -ENOMEM && calls == 8);
	fail_with = 0;
	out_abort(o);
	mdl_free(in.model);
}

static void test_registry(void)
{
	const struct view_ops *const *p;
	int i;

	for (p = view_registry; *p; p++) {
		CHECK((*p)->name && (*p)->help && !strchr((*p)->help, '\n'));
		CHECK(view_find((*p)->name) == *p);
		if ((*p)->suffixes)
			CHECK(view_find_suffix((*p)->suffixes[0]) == *p);
	}
	CHECK(view_find("modern") && !view_find("no such") && !view_find_suffix("x.unknown"));
	for (i = 0; i < VIEW_SORT_NKEYS; i++)
		CHECK(view_sort_keys[i].name && view_sort_find(view_sort_keys[i].name) == i);
	CHECK(view_sort_find("size") == -1);
}

/* Counts the lines of `text`, and those that begin with `start`. */
static unsigned lines_of(const char *text, const char *start, unsigned *starting)
{
	unsigned n = 0;

	for (*starting = 0; *text; text = strchr(text, '\n') + 1, n++)
		*starting += !strncmp(text, start, strlen(start));
	return n;
}

static void test_brief(void)
{
	FREED(mdl_session_fini) struct mdl_session s = session_new();
	FREED(model_freed) struct mdl *m = mdl_new();
	unsigned i, n, rows, before = VIEW_BRIEF_ROWS;
	char name[16], *t;

	for (i = 0; i < 30; i++) {
		snprintf(name, sizeof(name), "row%u", i);
		feed_agg(m, OP, 0, name, (uint64_t[]){10, 1000, 1000, 50, 150});
		feed_agg(m, API, 0, name, (uint64_t[]){10, 1000, 1000, 50, 150});
	}
	s.notes = calloc(40, sizeof(*s.notes));
	while (s.nnotes < 40) {
		t = render("modern", &s, m, &(struct view_opts){.brief = true});
		n = lines_of(t, "row", &rows);
		/* The rows fill the lines, but for what is left over when each table has the same number. */
		CHECK(rows == VIEW_BRIEF_ROWS * 2 || rows == VIEW_BRIEF_LEAST * 2 ||
		      (n <= VIEW_BRIEF_LINES && n > VIEW_BRIEF_LINES - 2));
		CHECK(n <= VIEW_BRIEF_LINES || rows == VIEW_BRIEF_LEAST * 2);
		CHECK(rows / 2 <= before);
		before = rows / 2;
		free(t);
		snprintf(name, sizeof(name), "note%zu", s.nnotes);
		s.notes[s.nnotes++] = (struct mdl_note){strdup(name), strdup(name)};
	}
	CHECK(before == VIEW_BRIEF_LEAST);
}

int main(void)
{
	CHECK(mkdtemp(dir));
	TEST("the driver calls a view in order, reports progress, and always ends")
	test_driver();
	TEST("every view is found by its name and suffix")
	test_registry();
	TEST("a short output has 50 lines at most, because rows give way to notes until each table has the least")
	test_brief();
	rmdir(dir);
	UNIT_MAIN_END;
}
