// SPDX-License-Identifier: Apache-2.0
/* Every amount that a target can make grow has a limit, and mxbpf counts what exceeds it. */

#include "base/buf.h"
#include "base/hash.h"
#include "base/memory.h"
#include "model/feature.h"
#include "model/model.h"
#include "mxbpf_name.h"
#include "mxbpf_table.h"
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

int main(void)
{
	test_memory();
	test_model();
	return unit_end();
}
