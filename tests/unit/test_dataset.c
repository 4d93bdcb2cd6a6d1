// SPDX-License-Identifier: Apache-2.0
/* Data sets: which file has a row, and what is left after an error. tests/arrow.bats reads them with other programs. */
#include <sys/resource.h>

#include <nanoarrow/nanoarrow_ipc.h>

#include "records.h"
#include "rendered.h"

static char dir[] = "/tmp/mxbpf-test-XXXXXX";

#define RANKS 40 /* more than are written at once */
#define CALLS 3	 /* of each rank */

static struct err e;
static unsigned passes;

struct tape {
	struct buf recs;
	bool done;
};

static int tape_rewind(void *ctx)
{
	passes++;
	((struct tape *)ctx)->done = false;
	return 0;
}

static int tape_next(void *ctx, const void **recs, size_t *bytes)
{
	struct tape *t = ctx;

	*recs = t->recs.data;
	*bytes = t->recs.len;
	t->done = !t->done;
	return t->done;
}

static void add_label(struct mdl_session *s, uint32_t pid, uint32_t rank, const char *host)
{
	struct mdl_labels l = {.numbers = {rank, MDL_NO_NUMBER, MDL_NO_NUMBER, MDL_NO_NUMBER}};

	CHECK(!mdl_labels_add(s, &l, pid, host));
}

static void add_span(struct tape *t, uint32_t pid, unsigned i)
{
	const struct mxbpf_span span = {
		.h = {MXBPF_SPAN, sizeof(span), pid, 1000 + i},
		.dur_ns = 10,
		.self_ns = 10,
		.name_id = 7,
		.tid = pid,
		.end_tid = pid,
		.cls = OP,
	};

	CHECK(!buf_put(&t->recs, &span, sizeof(span)));
}

static int export_to(const char *path, struct mdl_session *s, struct tape *t)
{
	struct view_source source = {tape_rewind, tape_next, t, t->recs.len};
	const struct view_input in = {.session = s, .model = mdl_new(), .source = &source};
	struct view_opts opts = {0};
	struct out_dir *d;
	int ret;

	e = (struct err){0};
	CHECK(!mdl_feed(in.model, t->recs.data, t->recs.len));
	CHECK(!out_dir_open(path, "_mxbpf", "", &d, &e));
	opts.dir = d;
	passes = 0;
	ret = view_write(view_find("arrow"), &in, &opts, NULL, &e);
	out_dir_close(d);
	mdl_free(in.model);
	return ret;
}

/* Returns the number of rows of the only file in this folder; 0: there is none. */
static int64_t rows_in(const char *folder)
{
	struct ArrowIpcInputStream input = {0};
	struct ArrowArrayStream stream = {0};
	struct ArrowArray batch = {0};
	char command[512], path[512] = "";
	int64_t n = 0;
	FILE *f;

	snprintf(command, sizeof(command), "ls '%s'/*.arrow 2>/dev/null", folder);
	f = popen(command, "r");
	if (!f || !fgets(path, sizeof(path), f)) {
		if (f)
			pclose(f);
		return 0;
	}
	pclose(f);
	path[strcspn(path, "\n")] = '\0';
	f = fopen(path, "r");
	CHECK(f && !fseek(f, 8, SEEK_SET)); /* a file is a stream behind its magic */
	CHECK(!ArrowIpcInputStreamInitFile(&input, f, 1) && !ArrowIpcArrayStreamReaderInit(&stream, &input, NULL));
	while (!stream.get_next(&stream, &batch) && batch.release) {
		n += batch.length;
		batch.release(&batch);
	}
	stream.release(&stream);
	return n;
}

static void ranks(void)
{
	FREED(mdl_session_fini) struct mdl_session s = session_new();
	struct tape t = {0};
	char folder[256];
	unsigned i, k;

	put_name(&t.recs, 7, MXBPF_NAME_SPAN, "dot");
	for (i = 0; i < RANKS; i++) {
		add_label(&s, 100 + i, i, i % 2 ? "b" : "a");
		for (k = 0; k < CALLS + i; k++)
			add_span(&t, 100 + i, k);
	}
	add_span(&t, 99, 0); /* a process without labels */
	snprintf(folder, sizeof(folder), "%s/ranks.arrow", dir);
	CHECK(!export_to(folder, &s, &t) && !e.code);
	CHECK(passes == (RANKS + 1 + 15) / 16);
	for (i = 0; i < RANKS; i++) {
		snprintf(folder, sizeof(folder), "%s/ranks.arrow/spans/host=%s/rank=%u/day=2025-11-20", dir,
			 i % 2 ? "b" : "a", i);
		CHECK(rows_in(folder) == CALLS + i);
		snprintf(folder, sizeof(folder), "%s/ranks.arrow/calls/host=%s/rank=%u/day=2025-11-20", dir,
			 i % 2 ? "b" : "a", i);
		CHECK(rows_in(folder) == 1);
	}
	snprintf(folder, sizeof(folder), "%s/ranks.arrow/spans/host=unknown/rank=-1/day=2025-11-20", dir);
	CHECK(rows_in(folder) == 1);
	buf_fini(&t.recs);
}

static void hosts(void)
{
	static const struct {
		const char *name, *folder;
	} names[] = {{"..", "host=.."},
		     {"../../x", "host=..%2F..%2Fx"},
		     {"a b=c%", "host=a%20b%3Dc%25"},
		     {"\xff\xc3\xbc", "host=%5Cxff%C3%BC"},
		     {"x23456789012345678901234567890123456789012345678901234567890123456789",
		      "host=x23456789012345678901234567890123456789012345678901234567890123"}};
	FREED(mdl_session_fini) struct mdl_session s = session_new();
	struct tape t = {0};
	char folder[256];
	unsigned i;

	put_name(&t.recs, 7, MXBPF_NAME_SPAN, "dot");
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		add_label(&s, 100 + i, 0, names[i].name);
		add_span(&t, 100 + i, 0);
	}
	snprintf(folder, sizeof(folder), "%s/hosts.arrow", dir);
	CHECK(!export_to(folder, &s, &t));
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(folder, sizeof(folder), "%s/hosts.arrow/spans/%s/rank=0/day=2025-11-20", dir, names[i].folder);
		CHECK(rows_in(folder) == 1);
	}
	buf_fini(&t.recs);
}

/* A limit of the size of files stands for a full disk. */
static void full_disk(void)
{
	struct rlimit old, small;
	FREED(mdl_session_fini) struct mdl_session s = session_new();
	struct tape t = {0};
	char folder[256];
	struct stat st;
	unsigned i;

	signal(SIGXFSZ, SIG_IGN);
	CHECK(!getrlimit(RLIMIT_FSIZE, &old));
	small = old;
	small.rlim_cur = 64 << 10;
	put_name(&t.recs, 7, MXBPF_NAME_SPAN, "dot");
	for (i = 0; i < 100000; i++)
		add_span(&t, 99, i);
	snprintf(folder, sizeof(folder), "%s/full.arrow", dir);
	CHECK(!setrlimit(RLIMIT_FSIZE, &small));
	CHECK(export_to(folder, &s, &t) == -EFBIG && strstr(e.why, "full.arrow/spans/"));
	CHECK(!setrlimit(RLIMIT_FSIZE, &old));
	snprintf(folder, sizeof(folder), "%s/full.arrow/recordings", dir);
	CHECK(stat(folder, &st) && errno == ENOENT);
	snprintf(folder, sizeof(folder), "%s/full.arrow/spans/host=unknown/rank=-1/day=2025-11-20", dir);
	CHECK(!stat(folder, &st) && !rows_in(folder));
	buf_fini(&t.recs);
}

int main(void)
{
	char rm[64];

	CHECK(mkdtemp(dir));
	TEST("each host and rank has its own files, however many there are")
	ranks();
	TEST("the name of a host is one folder, whatever it is")
	hosts();
	TEST("after a full disk the recording is not said to be complete, and no file is cut")
	full_disk();
	snprintf(rm, sizeof(rm), "rm -r %s", dir);
	CHECK(!system(rm));
	UNIT_MAIN_END;
}
