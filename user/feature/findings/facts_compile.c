// SPDX-License-Identifier: Apache-2.0
/* Compilers that run in the program, and what the loop's thread does between its iterations. */
#include "feature/findings/findings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "feature/lines/lines.h"
#include "feature/steps/steps.h"

#define COMPILED_LEAST 3   /* samples in a compiler, or more, to say so */
#define FIRST_LEAST    0.3 /* of the time: what is compiled once, when a program starts */

static const char *compiler_of(const struct mdl *m, uint64_t stack_id)
{
	size_t len;
	const char *text = stack_id ? mdl_text(m, MXBPF_NAME_STACK, stack_id, &len) : NULL;

	return text ? lines_compiler(text, len) : NULL;
}

/* A thread with samples. */
struct thread {
	uint32_t tgid, tid;
	uint64_t all, compiles;
	const char *compiler;
};

static int sum_threads(const struct mdl *m, const struct facts *f, struct hash *index, struct buf *threads)
{
	size_t n, i;
	const struct mxbpf_agg_line *l = lines_rows(m, &n);
	const char *compiler;
	struct thread *t;
	bool added;

	for (i = 0; i < n; i++) {
		if (!l[i].rank && f->loop.tid && l[i].tid != f->loop.tid)
			continue; /* of other ranks, only main threads are sampled */
		t = mdl_item_put(index, threads, l[i].tid, l[i].h.tgid, sizeof(*t), &added);
		if (!t)
			return -ENOMEM;
		compiler = compiler_of(m, l[i].stack_id);
		t->tgid = l[i].h.tgid;
		t->tid = l[i].tid;
		add_sat(&t->all, l[i].count);
		add_sat(&t->compiles, compiler ? l[i].count : 0);
		t->compiler = compiler ? compiler : t->compiler;
	}
	return 0;
}

/* The line of the program that calls the compiler the most. */
static int find_caller(const struct mdl *m, const struct thread *t, struct fact_line *line)
{
	size_t n, i, len;
	const struct mxbpf_agg_line *l = lines_rows(m, &n);
	struct facts_tally tally = {.of = 0};
	const char *text;
	int err = 0;

	for (i = 0; !err && i < n; i++) {
		if (l[i].h.tgid != t->tgid || l[i].tid != t->tid || !compiler_of(m, l[i].stack_id))
			continue;
		text = lines_of_program(m, l[i].stack_id, &len);
		tally.of += l[i].count;
		err = text && lines_is_program(text, len) ? facts_tally_add(&tally, text, len, &l[i]) : 0;
	}
	*line = facts_tally_top(&tally);
	facts_tally_fini(&tally);
	return err;
}

/* Cuts "0/1: " in front of a guard, and the source behind it. */
static void take_guard(struct facts *f, const char *what, size_t what_len, const char *why, size_t why_len)
{
	const char *number = memmem(why, why_len, ": ", 2), *source = memmem(why, why_len, "  # ", 4);

	why_len = source ? (size_t)(source - why) : why_len;
	if (number && number < why + why_len && strspn(why, "0123456789/") == (size_t)(number - why)) {
		why_len -= (size_t)(number + 2 - why);
		why = number + 2;
	}
	while (why_len && why[why_len - 1] == ' ')
		why_len--;
	snprintf(f->compiling.what, sizeof(f->compiling.what), "%.*s", (int)what_len, what);
	snprintf(f->compiling.guard, sizeof(f->compiling.guard), "%.*s", (int)why_len, why);
}

/* What the thread compiles anew, from the outermost line of its stacks. */
static int find_guard(const struct mdl *m, const struct thread *t, struct facts *f)
{
	const size_t skip = sizeof(LINES_GUARD) - 1;
	size_t n, i, len, left;
	const struct mxbpf_agg_line *l = lines_rows(m, &n);
	struct hash seen = {0};
	const char *text, *because;
	uint64_t *count, most = 0;
	int err = 0;

	for (i = 0; !err && i < n; i++) {
		text = l[i].h.tgid == t->tgid && l[i].tid == t->tid ? mdl_text(m, MXBPF_NAME_STACK, l[i].stack_id, &len)
								    : NULL;
		text = text ? memmem(text, len, "\n" LINES_GUARD, skip + 1) : NULL;
		if (!text)
			continue;
		left = len - (size_t)(text + 1 + skip - mdl_text(m, MXBPF_NAME_STACK, l[i].stack_id, &len));
		text += 1 + skip;
		because = memmem(text, left, LINES_BECAUSE, sizeof(LINES_BECAUSE) - 1);
		if (!f->compiling.what[0])
			snprintf(f->compiling.what, sizeof(f->compiling.what), "%.*s",
				 (int)(because ? (size_t)(because - text) : left), text);
		count = because ? hash_put(&seen, hash_text(HASH_SEED, text, left), 0) : NULL;
		err = because && !count ? -ENOMEM : 0;
		if (!count)
			continue;
		f->compiling.anew += !*count;
		*count += l[i].count;
		if (*count <= most)
			continue;
		most = *count;
		take_guard(f, text, (size_t)(because - text), because + sizeof(LINES_BECAUSE) - 1,
			   left - (size_t)(because + sizeof(LINES_BECAUSE) - 1 - text));
	}
	hash_fini(&seen);
	return err;
}

/* Code is compiled anew: a guard fails, or the loop has begun before. */
static bool is_anew(const struct mdl *m, const struct thread *t, const struct facts *f)
{
	size_t n, i;
	const struct mxbpf_look *l = lines_looks(m, &n);
	unsigned later = 0;

	for (i = 0; f->loop.n && i < n; i++)
		later += l[i].h.tgid == t->tgid && l[i].tid == t->tid && l[i].h.ts_ns > f->loop.first_ns &&
			 compiler_of(m, l[i].stack_id);
	return f->compiling.anew || later >= COMPILED_LEAST;
}

int facts_compiling(const struct mdl *m, const struct mdl_session *s, struct facts *f)
{
	struct hash index = {0};
	struct buf threads = {0};
	const struct thread *t, *most = NULL;
	uint64_t all;
	size_t i;
	int err = sum_threads(m, f, &index, &threads);

	for (i = 0; i < buf_count(&threads, struct thread); i++) {
		t = buf_at(&threads, struct thread, i);
		if (t->compiles >= COMPILED_LEAST && (!most || t->compiles > most->compiles))
			most = t;
	}
	if (!err && most) {
		/* A thread may have lived in a part of the window. */
		all = s->paused_ns ? 0 : s->duration_ns / LINES_LOOK_NS / 2;
		all = most->all > all ? most->all : all;
		f->compiling.share = facts_share((double)most->compiles, (double)all);
		f->compiling.compiler = most->compiler;
		f->compiling.tgid = most->tgid;
		err = find_caller(m, most, &f->compiling.line);
		err = err ? err : find_guard(m, most, f);
		if (f->compiling.share < FIRST_LEAST && !is_anew(m, most, f))
			f->compiling.share = 0;
	}
	hash_fini(&index);
	buf_fini(&threads);
	return err;
}

int facts_rest(const struct mdl *m, struct facts *f, const struct mxbpf_iteration *it, size_t n)
{
	const struct mxbpf_agg_line one = {.count = 1};
	size_t nlooks, i, len;
	const struct mxbpf_look *l = lines_looks(m, &nlooks);
	struct facts_tally tally = {.of = 0};
	const char *text, *compiler;
	uint64_t compiles = 0;
	int err = 0;

	for (i = 0; !err && i < nlooks; i++) {
		if (l[i].h.tgid != f->loop.tgid || l[i].tid != f->loop.tid || steps_at(it, n, l[i].h.ts_ns))
			continue;
		tally.of++;
		compiler = compiler_of(m, l[i].stack_id);
		compiles += !!compiler;
		f->rest.compiler = compiler ? compiler : f->rest.compiler;
		text = lines_of_program(m, l[i].stack_id, &len);
		err = text && lines_is_program(text, len) ? facts_tally_add(&tally, text, len, &one) : 0;
	}
	f->rest.line = facts_tally_top(&tally);
	f->rest.compiles = facts_share((double)compiles, (double)tally.of);
	facts_tally_fini(&tally);
	return err;
}
