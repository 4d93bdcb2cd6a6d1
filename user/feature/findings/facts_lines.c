// SPDX-License-Identifier: Apache-2.0
/* Lines of Python for the rules: where the workers work, where the loop waits, where slow iterations are slow. */
#include "feature/findings/findings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "feature/lines/lines.h"

/* Which looks a fact is about. */
enum about { ABOUT_WORKERS, ABOUT_DATA, ABOUT_WAIT, ABOUT_OUTSIDE, ABOUT_NABOUT };

struct tally {
	struct hash index; /* hash of the line, 0 -> 1 + place in lines */
	struct buf lines;  /* struct fact_line */
	uint64_t of;
};

static uint64_t hash_of(const char *text, size_t len)
{
	uint64_t h = 1469598103934665603ull;

	while (len--)
		h = (h ^ (uint8_t)*text++) * 1099511628211ull;
	return h;
}

static int count(struct tally *t, const char *text, size_t len, const struct mxbpf_agg_line *l)
{
	struct fact_line *line;
	bool added;

	line = mdl_item_put(&t->index, &t->lines, hash_of(text, len), 0, sizeof(*line), &added);
	if (!line)
		return -ENOMEM;
	if (added)
		snprintf(line->text, sizeof(line->text), "%.*s", (int)len, text);
	line->looks += l->count;
	line->asleep += l->sleeps ? l->count : 0;
	return 0;
}

static void take(struct tally *t, struct fact_line *to)
{
	size_t i;

	for (i = 0; i < buf_count(&t->lines, struct fact_line); i++)
		if (buf_at(&t->lines, struct fact_line, i)->looks > to->looks)
			*to = *buf_at(&t->lines, struct fact_line, i);
	to->of = t->of;
	hash_fini(&t->index);
	buf_fini(&t->lines);
}

/* A worker between two requests, or handing over a batch, has a frame of its loader's queue inside. */
static bool waits_for_work(const struct mdl *m, const struct mxbpf_agg_line *l)
{
	size_t len;
	const char *text = mdl_text(m, MXBPF_NAME_STACK, l->stack_id, &len);

	return text && (memmem(text, len, "multiprocessing/", 16) || memmem(text, len, "queue.py(", 9)) &&
	       memmem(text, len, ": get\n", 6);
}

static bool starts_with(const char *name, size_t len, const char *with)
{
	return len >= strlen(with) && !memcmp(name, with, strlen(with));
}

/* The process that the loop's thread is of. */
static uint32_t process_of(const struct facts *f, const struct mxbpf_agg_line *l, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (l[i].tid == f->loop.tid)
			return l[i].h.tgid;
	return f->loop.tgid;
}

static enum about about_of(const struct mdl *m, const struct facts *f, uint32_t tgid, const struct mxbpf_agg_line *l)
{
	size_t len;
	const char *name;

	if (!l->main)
		return ABOUT_NABOUT;
	if (l->h.tgid != tgid)
		return ABOUT_WORKERS;
	if (l->tid != f->loop.tid)
		return ABOUT_NABOUT;
	if (!l->cls)
		return ABOUT_OUTSIDE;
	if (l->cls == MXBPF_CLASS_DATA)
		return ABOUT_DATA;
	name = mdl_name(m, l->name_id, &len);
	if (starts_with(name, len, "enumerate(DataLoader)"))
		return ABOUT_DATA;
	return l->cls == MXBPF_CLASS_API && l->sleeps ? ABOUT_WAIT : ABOUT_NABOUT;
}

/* Whether a moment lies in an iteration, and whether in a slow one. The iterations are in order of time. */
static bool find_iteration(const struct mxbpf_iteration *it, size_t n, uint64_t ns, size_t *at)
{
	size_t low = 0, high = n, mid;

	while (low < high) {
		mid = (low + high) / 2;
		if (it[mid].h.ts_ns + it[mid].dur_ns <= ns)
			low = mid + 1;
		else
			high = mid;
	}
	*at = low;
	return low < n && it[low].h.ts_ns <= ns;
}

/* The line on which slow iterations spend most more of their time than others do. */
int facts_slow_line(const struct mdl *m, struct facts *f, const struct mxbpf_iteration *it, size_t n)
{
	struct tally slow = {0}, usual = {0};
	const struct mxbpf_agg_line one = {.count = 1};
	size_t nlooks, i, at, len;
	const struct lines_look *looks = lines_looks(m, &nlooks);
	const struct fact_line *line, *other;
	double more, most = 0;
	const uint64_t *place;
	const char *text;
	struct tally *to;
	int err = 0;

	for (i = 0; i < nlooks && !err; i++) {
		text = looks[i].tid == f->loop.tid ? lines_of_program(m, looks[i].stack_id, &len) : NULL;
		if (!text || !find_iteration(it, n, looks[i].ts_ns, &at))
			continue;
		to = facts_is_slow(f, &it[at]) ? &slow : &usual;
		to->of++;
		err = count(to, text, len, &one);
	}
	for (i = 0; i < buf_count(&slow.lines, struct fact_line); i++) {
		line = buf_at(&slow.lines, struct fact_line, i);
		place = hash_get(&usual.index, hash_of(line->text, strlen(line->text)), 0);
		other = place ? buf_at(&usual.lines, struct fact_line, *place - 1) : NULL;
		more = (double)line->looks / (double)slow.of - (other ? (double)other->looks / (double)usual.of : 0);
		if (more <= most)
			continue;
		most = f->slow_line_more = more;
		f->slow_line = *line;
		f->slow_line.of = slow.of;
	}
	hash_fini(&slow.index);
	hash_fini(&usual.index);
	buf_fini(&slow.lines);
	buf_fini(&usual.lines);
	return err;
}

int facts_lines(const struct mdl *m, struct facts *f)
{
	struct tally tallies[ABOUT_NABOUT] = {0};
	size_t n, i, len;
	const struct mxbpf_agg_line *l = lines_rows(m, &n);
	const uint32_t tgid = process_of(f, l, n);
	struct fact_line workers = {.text = ""};
	enum about about;
	const char *text;
	uint64_t at_work = 0;
	int err = 0;

	for (i = 0; i < n && !err; i++) {
		about = about_of(m, f, tgid, &l[i]);
		text = about < ABOUT_NABOUT ? lines_of_program(m, l[i].stack_id, &len) : NULL;
		if (!text)
			continue;
		tallies[about].of += l[i].count;
		if (about == ABOUT_WORKERS && waits_for_work(m, &l[i]))
			continue;
		at_work += about == ABOUT_WORKERS ? l[i].count : 0;
		err = count(&tallies[about], text, len, &l[i]);
	}
	f->data_worker_busy = tallies[ABOUT_WORKERS].of ? (double)at_work / (double)tallies[ABOUT_WORKERS].of : 0;
	take(&tallies[ABOUT_WORKERS], &workers);
	take(&tallies[ABOUT_DATA], &f->data_line);
	take(&tallies[ABOUT_WAIT], &f->wait_line);
	take(&tallies[ABOUT_OUTSIDE], &f->outside_line);
	f->data_workers = workers.looks;
	if (f->data_workers)
		f->data_line = workers;
	return err;
}
