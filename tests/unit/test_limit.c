// SPDX-License-Identifier: Apache-2.0
/* Every amount that a target can make grow has a limit, and mxbpf counts what exceeds it. */

#include <sched.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/memory.h"
#include "feature/lines/lines.h"
#include "feature/lines/load_network.h"
#include "feature/inputs/inputs.h"
#include "feature/neighbours/read.h"
#include "model/feature.h"
#include "model/model.h"
#include "mxbpf_name.h"
#include "mxbpf_table.h"
#include "table/table.h"
#include "unit.h"

#define MIB (1u << 20)

static void test_memory(void)
{
	const uint64_t before = mem_used();
	struct hash h = {0};
	struct buf b = {0};
	uint64_t i, refused;
	char *p, *output;

	TEST("buffers, hashes and rows take their memory from one limit")
	{
		mem_limit(256 * MIB);
		while (b.len < 600 * MIB && !buf_put(&b, &i, sizeof(i)))
			;
		CHECK(b.len >= 32 * MIB && b.len < 256 * MIB && mem_refused());
		refused = mem_refused();
		for (i = 0; i < 64 * MIB && hash_put(&h, i, 0); i++)
			;
		CHECK(i < 64 * MIB && mem_refused() > refused && mem_used() <= 256 * MIB);
	}
	TEST("what was refused leaves a buffer and a hash as they were")
	{
		CHECK(buf_count(&b, uint64_t) == b.len / 8 && h.len == i && hash_get(&h, 0, 0) &&
		      hash_get(&h, i - 1, 0));
	}
	TEST("freed memory can be taken again")
	{
		buf_fini(&b);
		hash_fini(&h);
		CHECK(mem_used() == before);
		p = mem_zalloc(MIB);
		CHECK(p && mem_used() >= before + MIB && (p = mem_resize(p, 2 * MIB)) && !p[MIB - 1]);
		mem_free(p);
		mem_free(NULL);
		CHECK(mem_used() == before);
	}
	TEST("the rest of the process counts, and an eighth stays free for the outputs while records are collected")
	{
		mem_limit(MEM_LIMIT_MIN);
		mem_measure(true);
		p = mem_alloc(MEM_LIMIT_MIN - MEM_LIMIT_MIN / 8);
		CHECK(!p);
		mem_insist(true);
		p = mem_alloc(2 * MEM_LIMIT_MIN);
		mem_insist(false);
		mem_measure(true);
		CHECK(p && !mem_alloc(1));
		mem_measure(false);
		output = mem_alloc(MEM_LIMIT_MIN / 16);
		CHECK(output);
		mem_free(output);
		mem_free(p);
		mem_limit(0);
	}
}

static int span(struct mdl *m, uint32_t tgid, uint64_t name_id, uint64_t ts_ns)
{
	const struct mxbpf_span s = {.h = {MXBPF_SPAN, sizeof(s), tgid, ts_ns},
				     .dur_ns = 10,
				     .name_id = name_id,
				     .tid = tgid,
				     .cls = MXBPF_CLASS_OPERATOR};
	const int err = mdl_fold(m, &s.h);
	const int err2 = mdl_fold_end(m);

	return err ? err : err2;
}

static int text(struct mdl *m, uint32_t tgid, uint64_t id, const char *bytes, size_t len)
{
	union {
		struct mxbpf_name rec;
		char room[sizeof(struct mxbpf_name) + MXBPF_TEXT_BYTES_MAX];
	} n = {.rec = {.h = {.kind = MXBPF_NAME, .size = (uint16_t)(sizeof(n.rec) + len), .tgid = tgid},
		       .id = id,
		       .len = (uint32_t)len,
		       .kind = MXBPF_NAME_STACK}};

	memcpy(n.rec.text, bytes, len);
	return mdl_fold(m, &n.rec.h);
}

static void test_model(void)
{
	const unsigned more = 100;
	static char bytes[MXBPF_TEXT_BYTES_MAX];
	FREED(model_freed) struct mdl *m = mdl_new();
	const struct mdl_row *r;
	uint64_t i, n;

	TEST("a process with any number of names has a limited number of rows, and no call is lost")
	{
		for (i = 0; i < MDL_ROWS_MAX + more; i++)
			CHECK(!span(m, 1, 2 * i + 101, i));
		r = mdl_row_find(m, MXBPF_CLASS_OPERATOR, MXBPF_NAME_MORE, 1, 0);
		CHECK(r && r->count == more && !strcmp(mdl_name(m, r->name_id, NULL), "[more names]"));
		CHECK(mdl_nrows(m) == MDL_ROWS_MAX + 1);
	}
	TEST("the rows of another process are as if it were alone")
	{
		CHECK(!span(m, 2, 101, i) && !span(m, 2, 103, i));
		r = mdl_row_find(m, MXBPF_CLASS_OPERATOR, 101, 2, 0);
		CHECK(r && r->count == 1 && mdl_row_find(m, MXBPF_CLASS_OPERATOR, 103, 2, 0));
	}
	TEST("a process with any amount of text has a limited amount of memory, and others have theirs")
	{
		memset(bytes, 'a', sizeof(bytes));
		n = MDL_TEXT_BYTES_MAX / sizeof(bytes);
		for (i = 0; i < n + 10; i++)
			CHECK(!text(m, 1, 1000 + i, bytes, sizeof(bytes)));
		CHECK(mdl_text(m, MXBPF_NAME_STACK, 1000 + n - 1, NULL) &&
		      !mdl_text(m, MXBPF_NAME_STACK, 1000 + n, NULL));
		CHECK(mdl_texts_left_out(m) == 10);
		CHECK(!text(m, 2, 999, bytes, sizeof(bytes)) && mdl_text(m, MXBPF_NAME_STACK, 999, NULL));
	}
}

static void test_tables(void)
{
	struct tbl network = {.def = &network_table}, inputs = {.def = &inputs_table};
	struct mxbpf_network n = {.h = {.tgid = 1}, .flights = 1};
	struct input_row input = {.tgid = 1, .looks = 1};
	const struct mxbpf_network *last;
	bool added;

	TEST("any number of ends of connections, or of sizes of inputs, takes a limited number of rows")
	{
		for (n.address = n.peer = 1; n.address < MIB / 16; n.address++, n.peer++) {
			input.sizes = n.address;
			CHECK(tbl_add(&network, &n, &added) && tbl_add(&inputs, &input, &added));
		}
		CHECK(tbl_count(&network) == network_table.max_rows + 1 &&
		      tbl_count(&inputs) == inputs_table.max_rows + 1);
		last = tbl_at(&network, tbl_count(&network) - 1);
		CHECK(!last->address && !last->peer && last->flights == n.address - 1 - network_table.max_rows);
	}
	tbl_fini(&network);
	tbl_fini(&inputs);
}

/* ---- processes */

static unsigned asked; /* processes whose control group was asked for */
static pid_t sibling;
static bool sibling_asked;

/* Starts a process that has children of its own. Returns when all are there. */
static pid_t kid_start(int unshared, unsigned children)
{
	int ends[2];
	pid_t kid;
	char byte;
	pid_t pid = pipe(ends) ? -1 : fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (kid = getpid(); children && fork() > 0; children--)
			;
		if (children) { /* a child of the kid */
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() == kid)
				pause();
			_exit(1);
		}
		if (!unshare(unshared) && write(ends[1], "r", 1) == 1)
			pause();
		_exit(1);
	}
	close(ends[1]);
	CHECK(pid > 0 && read(ends[0], &byte, 1) == 1);
	close(ends[0]);
	return pid;
}

static void kid_end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static bool is_job(const void *ctx, pid_t pid)
{
	return pid == *(const pid_t *)ctx;
}

static uint32_t no_rank(pid_t pid)
{
	(void)pid;
	return 0;
}

static int ask(pid_t pid, struct buf *text)
{
	(void)text;
	asked++;
	sibling_asked |= pid == sibling;
	return -ENOENT;
}

static void test_namesakes(void)
{
	pid_t strangers, root;
	struct neighbours_job job = {is_job, no_rank, ask, &root};
	struct neighbours *n;

	TEST("of processes with the name of the job, only a limited number is read: first those that its parent "
	     "started")
	{
		prctl(PR_SET_NAME, "a namesake");
		strangers = kid_start(0, 80);
		sibling = kid_start(0, 0);
		root = kid_start(0, 0);
		n = neighbours_begin(&job);
		CHECK(n && asked == 64 + 1 && sibling_asked);
		neighbours_free(n);
		kid_end(strangers);
		kid_end(sibling);
		kid_end(root);
	}
}

#define LOOK_NS 20000000000ull /* longer than any two looks are apart, also on a busy machine */

/* Watches a process with this one. Returns true if its namespace is looked at, and no other but that of this one. */
static bool is_looked_at(struct network *n, pid_t pid)
{
	const struct mxbpf_network *r;
	struct buf recs = {0};
	bool looked = false, others = false;
	uint64_t until_ns;

	while (!network_forget(n))
		;
	network_watch(n, getpid());
	network_watch(n, pid);
	/* A new namespace may have the number of an earlier one, which is looked at again after a while. */
	until_ns = clock_ns(CLOCK_MONOTONIC) + LOOK_NS;
	while (!looked && clock_ns(CLOCK_MONOTONIC) < until_ns) {
		recs.len = 0;
		network_look(n, &recs);
		for (r = buf_at(&recs, struct mxbpf_network, 0); (const char *)r < recs.data + recs.len; r++) {
			looked |= r->h.tgid == (uint32_t)pid;
			others |= r->h.tgid != (uint32_t)pid && r->h.tgid != (uint32_t)getpid();
		}
	}
	buf_fini(&recs);
	return looked && !others;
}

static void test_namespaces(void)
{
	struct network *n = network_new();
	unsigned i;
	pid_t pid;

	TEST_IF(!geteuid(),
		"any number of network namespaces can follow one another, and those that ended are forgotten",
		"not root")
	{
		for (i = 0; i < 20; i++) {
			pid = kid_start(CLONE_NEWNET, 0);
			CHECK(is_looked_at(n, pid));
			kid_end(pid);
		}
	}
	network_free(n);
}

int main(void)
{
	test_memory();
	test_model();
	test_tables();
	test_namesakes();
	test_namespaces();
	return unit_end();
}
