// SPDX-License-Identifier: Apache-2.0
/* Finds the other ranks of a distributed job by reading /proc. A process that is no rank is looked at once. */
#include "feature/lines/load_ranks.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "target/labels.h"
#include "target/target.h"

#define ENV_BYTES  256
#define JUDGED_MAX 65536

enum verdict { NOT_JUDGED, NO_RANK, RANK };

struct ranks {
	struct tgt *own;
	const struct adp *adp;
	char meet[ADP_MEET_ENVS][ENV_BYTES], role[ENV_BYTES]; /* "": the variable is not set */
	struct hash judged;				      /* (pid, 0) -> enum verdict */
	struct hash numbers; /* (number of a rank, 0) -> its process; what descends from it has the same environment */
};

static void read_env(const struct tgt *t, const char *name, char text[ENV_BYTES])
{
	text[0] = '\0';
	if (name)
		tgt_env_text(t, name, text, ENV_BYTES);
}

/* No other living process has its number. The process of a rank is older than what descends from it. */
static bool is_first(struct ranks *r, const struct tgt *t)
{
	struct tgt_labels l;
	uint64_t *first;

	tgt_labels(t, &l);
	first = l.rank >= 0 ? hash_put(&r->numbers, (uint64_t)l.rank, 0) : NULL;
	if (first && *first && *first != (uint64_t)tgt_pid(t) && tgt_peek_parent((pid_t)*first))
		return false;
	if (first)
		*first = (uint64_t)tgt_pid(t);
	return true;
}

struct ranks *ranks_new(pid_t pid, const struct adp *adp)
{
	struct ranks *r = calloc(1, sizeof(*r));
	struct err e = {0};
	unsigned i;

	if (!r)
		return NULL;
	r->adp = adp;
	if (tgt_open(pid, &r->own, &e)) {
		free(r);
		return NULL;
	}
	for (i = 0; adp && i < ADP_MEET_ENVS; i++)
		read_env(r->own, adp->meet_env[i], r->meet[i]);
	read_env(r->own, adp ? adp->role_env : NULL, r->role);
	is_first(r, r->own);
	return r;
}

void ranks_free(struct ranks *r)
{
	if (!r)
		return;
	tgt_close(r->own);
	hash_fini(&r->judged);
	hash_fini(&r->numbers);
	free(r);
}

static bool has_meeting(const struct ranks *r)
{
	unsigned i;

	for (i = 0; i < ADP_MEET_ENVS; i++)
		if (!r->meet[i][0])
			return false;
	return true;
}

static bool same_but_for_digits(const char *a, const char *b)
{
	do {
		a += strspn(a, "0123456789");
		b += strspn(b, "0123456789");
		if (*a != *b)
			return false;
	} while (*a++ && *b++);
	return true;
}

static bool is_rank(const struct ranks *r, const struct tgt *other)
{
	char text[ENV_BYTES];
	unsigned i;

	read_env(other, r->adp ? r->adp->role_env : NULL, text);
	if (strcmp(text, r->role)) /* a server has no loop */
		return false;
	for (i = 0; r->adp && i < ADP_MEET_ENVS; i++) {
		read_env(other, r->adp->meet_env[i], text);
		if (strcmp(text, r->meet[i]))
			return false;
	}
	return has_meeting(r) || (tgt_peek_parent(tgt_pid(other)) == tgt_peek_parent(tgt_pid(r->own)) &&
				  same_but_for_digits(tgt_cmdline(other), tgt_cmdline(r->own)));
}

/*
 * A worker of a rank has its environment, and a launcher may have that of its ranks. So has a shell or another program
 * that starts a rank, but it runs something else.
 */
static bool is_family(const struct ranks *r, pid_t pid)
{
	const pid_t parent = tgt_peek_parent(pid), own = tgt_pid(r->own);
	struct tgt_labels one, other;

	if (parent == own || pid == tgt_peek_parent(own))
		return true;
	if (!tgt_peek_same_program(parent, own))
		return false;
	tgt_peek_labels(pid, &one);
	tgt_peek_labels(parent, &other);
	return one.rank >= 0 && one.rank == other.rank && one.rank_variable == other.rank_variable &&
	       !strcmp(one.job, other.job);
}

static enum verdict lines_judge(struct ranks *r, pid_t pid)
{
	struct tgt *other = NULL;
	struct err e = {0};
	bool rank;

	if (pid == tgt_pid(r->own) || !tgt_peek_same_program(pid, tgt_pid(r->own)) || is_family(r, pid) ||
	    tgt_open(pid, &other, &e))
		return NO_RANK;
	rank = tgt_pid(other) == pid && is_rank(r, other) && is_first(r, other);
	tgt_close(other);
	return rank ? RANK : NO_RANK;
}

struct walk {
	struct ranks *ranks;
	void (*fn)(void *ctx, pid_t pid);
	void *ctx;
};

static void see(void *ctx, pid_t pid)
{
	struct walk *w = ctx;
	uint64_t *at;

	if (w->ranks->judged.len >= JUDGED_MAX) { /* the numbers of processes that have ended */
		hash_fini(&w->ranks->judged);
		w->ranks->judged = (struct hash){0};
	}
	at = hash_put(&w->ranks->judged, (uint64_t)pid, 0);
	if (!at)
		return;
	if (*at == NOT_JUDGED)
		*at = lines_judge(w->ranks, pid);
	if (*at == RANK)
		w->fn(w->ctx, pid);
}

void ranks_each(struct ranks *r, bool thorough, void (*fn)(void *ctx, pid_t pid), void *ctx)
{
	struct walk w = {r, fn, ctx};
	const pid_t parent = tgt_peek_parent(tgt_pid(r->own));

	if (thorough && has_meeting(r))
		tgt_each_process(see, &w);
	else if (parent)
		tgt_each_child(parent, see, &w);
}

/* Ranks that meet at an address of the machine itself are all on it. */
static bool meets_here(const struct tgt *t)
{
	char text[ENV_BYTES];

	return tgt_env_text(t, "MASTER_ADDR", text, sizeof(text)) &&
	       (!strncmp(text, "127.", 4) || !strcmp(text, "localhost") || !strcmp(text, "::1"));
}

struct ranks_place ranks_place(const struct tgt *t)
{
	struct ranks_place p = {0};
	struct tgt_labels l;
	char text[ENV_BYTES];
	int n = 0;

	tgt_peek_labels(tgt_pid(t), &l);
	if (l.rank < 0 || l.rank >= UINT16_MAX)
		return p;
	p.number = (uint16_t)(1 + l.rank);
	if (tgt_env_text(t, "LOCAL_WORLD_SIZE", text, sizeof(text)))
		n = atoi(text);
	else if (meets_here(t))
		n = l.world_size;
	if (l.local_rank < 0 && n == l.world_size)
		l.local_rank = l.rank;
	if (n <= 0 || n > UINT8_MAX || l.local_rank < 0 || l.local_rank >= n || l.local_rank > l.rank)
		return p;
	p.local_ranks = (uint8_t)n;
	return p;
}
