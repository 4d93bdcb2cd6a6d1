// SPDX-License-Identifier: Apache-2.0
/* Finds out what the ranks of a job wait for: in which collective each rank is, and where the others are. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fmt.h"
#include "cmd/now/now.h"
#include "feature/lines/lines.h"

#define RANKS_SHOWN 8

/* Without names, groups of equal size are taken for the same one. */
static bool same_group(const struct now_view *v, const struct now_view *other)
{
	return v->waits && other->waits && v->in.ranks == other->in.ranks && !strcmp(v->in.group, other->in.group);
}

static bool known(const struct now_view *v)
{
	return strcmp(v->in.name, NOW_COLLECTIVE) != 0;
}

/* A call between two ranks: its number is that of a counter of its own, and its partner makes another call. */
static bool of_two(const struct now_view *v)
{
	return !strcmp(v->in.name, "send") || !strcmp(v->in.name, "recv") || !strcmp(v->in.name, "coalesced");
}

/* Every rank of the job is in this group, so that a rank which is elsewhere is missing in it. */
static bool of_all(const struct now_view *v)
{
	const struct mdl_labels *l = mdl_labels_of(ses_about(v->ses), (uint32_t)tgt_pid(v->tgt));

	return l && l->numbers[MDL_WORLD_SIZE] == v->in.ranks;
}

bool now_differ(const struct now_view *v, const struct now_view *other)
{
	return v != other && same_group(v, other) && v->in.numbered && other->in.numbered &&
	       v->in.number == other->in.number && known(v) && known(other) && !of_two(v) && !of_two(other) &&
	       strcmp(v->in.name, other->in.name);
}

bool now_behind(const struct now_view *v, const struct now_view *other)
{
	if (v == other || !v->waits || of_two(v) || other->rank == MDL_NO_NUMBER)
		return false;
	if (!same_group(v, other) || of_two(other))
		return of_all(v);
	return now_differ(v, other) || (v->in.numbered && other->in.numbered && other->in.number < v->in.number);
}

const char *now_line(const struct now_view *v, size_t *len)
{
	const struct now_thread *t;
	size_t i;

	*len = 0;
	for (i = 0; (t = now_thread_at(v->now, i)); i++)
		if (t->tid == tgt_pid(v->tgt) && t->python)
			return lines_pick(t->python, strlen(t->python), len);
	return NULL;
}

static void print_rank(const struct now_view *v)
{
	if (v->rank != MDL_NO_NUMBER)
		printf("rank %" PRIu32 " (process %d)", v->rank, tgt_pid(v->tgt));
	else
		printf("process %d", tgt_pid(v->tgt));
}

static void print_line(const struct now_view *v)
{
	size_t len;
	const char *line = now_line(v, &len);
	char safe[256];

	if (!len)
		return;
	fmt_safe(safe, sizeof(safe), line, len);
	printf(", at %s", safe);
}

/* "rank 1, 2 and 5 more" */
static unsigned print_ranks(const struct now_view *v,
			    bool (*is)(const struct now_view *v, const struct now_view *other))
{
	const struct now_view *other;
	unsigned n = 0;
	size_t i;

	for (i = 0; (other = now_view_at(v->job, i)); i++)
		if (is(v, other) && n++ < RANKS_SHOWN)
			printf(n == 1 ? "rank %" PRIu32 : ", %" PRIu32, other->rank);
	if (n > RANKS_SHOWN)
		printf(" and %u more", n - RANKS_SHOWN);
	return n;
}

static unsigned job_count(const struct now_view *v, bool (*is)(const struct now_view *v, const struct now_view *other))
{
	unsigned n = 0;
	size_t i;

	for (i = 0; now_view_at(v->job, i); i++)
		n += is(v, now_view_at(v->job, i));
	return n;
}

/* The innermost probed call of the main thread. */
static const char *call_of(const struct now_view *v)
{
	const struct now_thread *t;
	size_t i, k;

	for (i = 0; (t = now_thread_at(v->now, i)); i++)
		for (k = 0; t->tid == tgt_pid(v->tgt) && k < buf_count(&t->frames, struct now_frame); k++)
			if (buf_at(&t->frames, struct now_frame, k)->named)
				return buf_at(&t->frames, struct now_frame, k)->call;
	return NULL;
}

static void print_wait(const struct now_view *v)
{
	char safe[256];

	printf(" waits in %s", v->in.name);
	if (v->in.numbered)
		printf(" number %" PRIu64, v->in.number);
	fmt_safe(safe, sizeof(safe), v->in.group, strlen(v->in.group));
	if (v->in.ranks && !of_all(v) && *safe)
		printf(" of group %s with %" PRIu32 " ranks", safe, v->in.ranks);
	else if (v->in.ranks && !of_all(v))
		printf(" of a group of %" PRIu32 " ranks", v->in.ranks);
	if (job_count(v, now_behind)) {
		printf(" for ");
		print_ranks(v, now_behind);
	}
	print_line(v);
	printf("\n");
}

static void print_place(const struct now_view *v)
{
	const char *call = call_of(v);
	char safe[128];

	printf(" is in no collective");
	print_line(v);
	if (call) {
		fmt_safe(safe, sizeof(safe), call, strlen(call));
		printf(", in %s", safe);
	}
	printf("\n");
}

static const struct now_view *first_that(const struct now_view *v,
					 bool (*is)(const struct now_view *v, const struct now_view *other))
{
	const struct now_view *other;
	size_t i;

	for (i = 0; (other = now_view_at(v->job, i)); i++)
		if (is(v, other))
			return other;
	return NULL;
}

/* Says it once, of the first rank that is in another collective than others. */
static void print_difference(const struct now_job *j)
{
	const struct now_view *v, *other;
	size_t i;

	for (i = 0; (v = now_view_at(j, i)); i++) {
		other = first_that(v, now_differ);
		if (!other)
			continue;
		printf("The ranks are in different collectives of number %" PRIu64 ": rank %" PRIu32
		       " is in %s, rank %" PRIu32 " in %s. They will wait for each other for ever.\n",
		       v->in.number, v->rank, v->in.name, other->rank, other->in.name);
		return;
	}
}

void now_print_job(const struct now_job *j)
{
	const struct now_view *v;
	size_t i;

	if (!now_view_at(j, 1))
		return;
	print_difference(j);
	for (i = 0; (v = now_view_at(j, i)); i++) {
		print_rank(v);
		if (v->waits)
			print_wait(v);
		else
			print_place(v);
	}
	printf("\n");
}
