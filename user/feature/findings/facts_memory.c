// SPDX-License-Identifier: Apache-2.0
/* Who holds memory that grows, or that there is none left of: the operator, and with --py-stacks the line of Python. */
#include "feature/findings/findings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "feature/devmem/devmem.h"
#include "feature/lines/lines.h"
#include "feature/memory/failed.h"
#include "feature/memory/memory.h"

struct sum {
	const struct mxbpf_mem_owner *first;
	int64_t live_bytes, grown_bytes;
};

/* What grows comes before what is large and does not. */
static bool is_more(const struct sum *a, const struct sum *b)
{
	if (!b)
		return a->live_bytes > 0;
	return a->grown_bytes != b->grown_bytes ? a->grown_bytes > b->grown_bytes : a->live_bytes > b->live_bytes;
}

static void findings_describe(const struct mdl *m, uint64_t name_id, uint64_t stack_id, char text[2 * FACTS_LINE_BYTES])
{
	size_t len, line_len = 0;
	const char *name = mdl_name(m, name_id, &len);
	const char *line = lines_of_program(m, stack_id, &line_len);

	snprintf(text, 2 * FACTS_LINE_BYTES, "%.*s%s%.*s", (int)(len < FACTS_LINE_BYTES ? len : FACTS_LINE_BYTES - 8),
		 name, line ? " at " : "", (int)line_len, line ? line : "");
}

/* Stacks with the same line of the program are added up, because a line may be reached in several ways. */
int facts_owner(const struct mdl *m, struct facts *f, uint32_t tgid)
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
		if (o->h.tgid != tgid || !o->cls)
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
		add_sat_any(&s->grown_bytes, o->grown_bytes);
	}
	for (i = 0; i < buf_count(&sums, struct sum); i++) {
		s = buf_at(&sums, struct sum, i);
		if (is_more(s, most))
			most = s;
	}
	if (most) {
		f->grown_owner.live_bytes = most->live_bytes;
		findings_describe(m, most->first->name_id, most->first->stack_id, f->grown_owner.text);
	}
	hash_fini(&index);
	buf_fini(&sums);
	return err;
}

static void describe_class(const struct mdl *m, unsigned cls, uint64_t name_id, uint64_t stack_id,
			   char text[2 * FACTS_LINE_BYTES])
{
	if (cls)
		findings_describe(m, name_id, stack_id, text);
	else
		snprintf(text, 2 * FACTS_LINE_BYTES, "the program, outside of operators,");
}

/* Holders come with the largest first. Those that look the same are one. */
static void add_held(const struct mdl *m, struct facts *f, const struct mxbpf_mem_holder *h)
{
	struct fact_owner one = {.live_bytes = h->bytes};
	unsigned i;

	if (h->bytes <= 0)
		return;
	describe_class(m, h->cls, h->name_id, h->stack_id, one.text);
	for (i = 0; i < FACTS_OPERATORS_MAX && f->failed.held[i].live_bytes; i++)
		if (!strcmp(f->failed.held[i].text, one.text)) {
			add_sat_any(&f->failed.held[i].live_bytes, one.live_bytes);
			return;
		}
	if (i < FACTS_OPERATORS_MAX)
		f->failed.held[i] = one;
}

void facts_failed(const struct mdl *m, const struct mdl_session *s, struct facts *f)
{
	const struct memory_failed *all = memory_failures(m);
	const size_t n = all ? buf_count(&all->list, struct memory_failure) : 0;
	const struct memory_failure *last = n ? buf_at(&all->list, const struct memory_failure, n - 1) : NULL;
	const struct mxbpf_gpu_used *gpu;
	unsigned i;

	if (!last)
		return;
	f->failed.n = all->n;
	f->failed.wanted_bytes = last->f.wanted_bytes;
	f->failed.uncounted = last->f.flags & MXBPF_ALLOC_UNCOUNTED;
	f->failed.total_bytes = !f->failed.uncounted	 ? last->f.total_bytes
				: last->f.live_bytes > 0 ? (uint64_t)last->f.live_bytes
							 : 0;
	f->failed.pool_bytes = last->f.pool_bytes;
	mdl_device_name(s, last->f.device, f->failed.device);
	gpu = devmem_at(m, s, last->f.h.tgid, last->f.device, last->f.h.ts_ns);
	f->failed.others_bytes = gpu ? gpu->others_bytes : 0;
	f->failed.others = gpu ? gpu->others : 0;
	describe_class(m, last->f.cls, last->f.name_id, last->f.stack_id, f->failed.text);
	for (i = 0; i < last->nholders; i++)
		add_held(m, f, &last->holders[i]);
}
