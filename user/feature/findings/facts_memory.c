// SPDX-License-Identifier: Apache-2.0
/* Who holds the memory that grows: the operator, and with --py-stacks the line of Python. */
#include "feature/findings/findings.h"

#include <errno.h>
#include <stdio.h>

#include "feature/lines/lines.h"
#include "feature/memory/memory.h"

struct sum {
	const struct mxbpf_mem_owner *first;
	int64_t live_bytes;
};

static void describe(const struct mdl *m, const struct sum *s, struct fact_owner *to)
{
	size_t len, line_len;
	const char *name = mdl_name(m, s->first->name_id, &len);
	const char *line = lines_of_program(m, s->first->stack_id, &line_len);

	to->live_bytes = s->live_bytes;
	snprintf(to->text, sizeof(to->text), "%.*s%s%.*s", (int)(len < FACTS_LINE_BYTES ? len : FACTS_LINE_BYTES - 8),
		 name, line ? " at " : "", (int)line_len, line ? line : "");
}

/* Stacks with the same line of the program are added up, because a line may be reached in several ways. */
int facts_owner(const struct mdl *m, struct facts *f)
{
	const struct mxbpf_mem_owner *o;
	const struct sum *most = NULL;
	struct hash index = {0};
	struct buf sums = {0};
	const char *line;
	size_t i, len;
	struct sum *s;
	bool added;
	int err = 0;

	for (i = 0; (o = memory_owner(m, i)); i++) {
		if (o->h.tgid != f->loop.tgid || !o->cls)
			continue;
		line = lines_of_program(m, o->stack_id, &len);
		s = mdl_item_put(&index, &sums, o->name_id, hash_text(HASH_SEED, line, len), sizeof(*s), &added);
		if (!s) {
			err = -ENOMEM;
			break;
		}
		if (added)
			s->first = o;
		add_sat_any(&s->live_bytes, o->live_bytes);
	}
	for (i = 0; i < buf_count(&sums, struct sum); i++) {
		s = buf_at(&sums, struct sum, i);
		if (s->live_bytes > (most ? most->live_bytes : 0))
			most = s;
	}
	if (most)
		describe(m, most, &f->grown_owner);
	hash_fini(&index);
	buf_fini(&sums);
	return err;
}
