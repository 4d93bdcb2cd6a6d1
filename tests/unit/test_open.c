/* SPDX-License-Identifier: Apache-2.0 */
/* Tests calls that are still open when a window ends, in the model and in every table. */
#include "printed.h"

#include "base/buf.h"
#include "base/syscall.h"

#define SECOND 1000000000ull
#define FUTEX  202 /* number of the system call on x86-64 */

static struct mdl_session session = {
	.comm = "job", .cmdline = "job", .start_unix_ns = 5, .start_mono_ns = 5, .duration_ns = 10 * SECOND, .pid = 7};

static void feed_name(struct mdl *m, enum mxbpf_name_kind kind, uint32_t tgid, uint64_t id, const char *text)
{
	char room[sizeof(struct mxbpf_name) + 64] __attribute__((aligned(8))) = {0};
	struct mxbpf_name *n = (struct mxbpf_name *)room;

	n->h = (struct mxbpf_rec){.kind = MXBPF_NAME, .size = sizeof(room), .tgid = tgid};
	n->id = id;
	n->len = (uint32_t)strlen(text);
	n->kind = kind;
	memcpy(n->text, text, n->len);
	CHECK(!mdl_feed(m, room, sizeof(room)));
}

static void feed_open(struct mdl *m, uint32_t tid, uint64_t open_ns, const struct mxbpf_open *more)
{
	struct mxbpf_open o = *more;

	o.h = (struct mxbpf_rec){.kind = MXBPF_OPEN, .size = sizeof(o), .tgid = 7, .ts_ns = 5};
	o.name_id = 1;
	o.open_ns = open_ns;
	o.tid = tid;
	o.cls = MXBPF_CLASS_OPERATOR;
	CHECK(!mdl_feed(m, &o, sizeof(o)));
}

/* Adds a call open for 3 s in a futex, one for 1 ms that runs, and one for 2 s that ends on another thread. */
static struct mdl *fill(void)
{
	struct mdl *m = mdl_new();

	feed_name(m, MXBPF_NAME_SPAN, 0, 1, "a \"call\"\x1b[2J");
	feed_name(m, MXBPF_NAME_WCHAN, 0, 1, "futex_do_wait");
	feed_name(m, MXBPF_NAME_THREAD, 7, 8, "waiter");
	feed_open(m, 9, SECOND / 1000, &(struct mxbpf_open){.state = 'R', .syscall = -1});
	feed_open(m, 8, 3 * SECOND, &(struct mxbpf_open){.state = 'S', .syscall = FUTEX, .wchan_id = 1});
	feed_open(m, 9, 2 * SECOND, &(struct mxbpf_open){.flags = MXBPF_SPAN_ASYNC, .syscall = -1});
	return m;
}

/* Returns what a view prints of m. The caller frees it. */
static char *render(const char *view, struct mdl *m)
{
	const struct view_input in = {.session = &session, .model = m};
	const struct view_opts opts = {0};

	return printed(view_find(view), &in, &opts);
}

static void test_tables(void)
{
	FREED(model_freed) struct mdl *m = fill();
	char *text;

	TEST("the table shows calls that have been open for long with their state, and escapes hostile names")
	{
		text = render("modern", m);
		CHECK(strstr(text, "still open when the window ended: 2 calls\n"));
		CHECK(strstr(text, "a \"call\"\\x1b[2J 3.00s 8 waiter sleeping futex: futex_do_wait\n"));
		CHECK(strstr(text, " 2.00s 9        async ") && !strstr(text, "1.00ms"));
		free(text);
	}
	TEST("JSON and CSV have all open calls")
	{
		text = render("json", m);
		CHECK(strstr(text, "\"open_ns\": 3000000000, \"state\": \"S\", \"syscall\": \"futex\", \"wchan\": "
				   "\"futex_do_wait\"}"));
		CHECK(strstr(text, "\"open_ns\": 2000000000, \"async\": true}") &&
		      strstr(text, "\"open_ns\": 1000000, \"state\": \"R\"}"));
		free(text);
		text = render("csv", m);
		CHECK(strstr(text, "\n\"open\",\"a \"\"call\"\"\\x1b[2J\",,1,3000000000,"));
		CHECK(strstr(text, ",\"sleeping\",\"futex: futex_do_wait\",5,10000000000,,"));
		free(text);
	}
}

static void test_model(void)
{
	FREED(model_freed) struct mdl *m = fill(), *sum = mdl_sum(m), *again = mdl_new();
	const struct mxbpf_open *o;
	FREED(buf_fini) struct buf recs = {0};
	size_t n;

	TEST("the longest open call is first, also after emitting, and a sum of processes keeps the process id")
	{
		CHECK(!mdl_emit(m, &recs) && !mdl_feed(again, recs.data, recs.len));
		o = mdl_opens(again, &n);
		CHECK(n == 3 && o[0].open_ns == 3 * SECOND && o[2].open_ns == SECOND / 1000 && o[0].wchan_id == 1);
		CHECK(!strcmp(mdl_text(again, MXBPF_NAME_WCHAN, 1, NULL), "futex_do_wait"));
		o = mdl_opens(sum, &n);
		CHECK(n == 3 && o[0].h.tgid == 7 && mdl_thread_name(sum, 7, 8));
	}
	TEST("system calls have their names, and an unknown number has none")
	{
		CHECK(!strcmp(syscall_name(FUTEX), "futex") && !strcmp(syscall_name(0), "read"));
		CHECK(!syscall_name(-1) && !syscall_name(100000));
	}
}

int main(void)
{
	test_tables();
	test_model();
	return unit_end();
}
