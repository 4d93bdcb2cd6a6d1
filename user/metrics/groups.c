// SPDX-License-Identifier: Apache-2.0
/*
 * Control groups of jobs. The session's model has those of its first process alone; here each job has those that its
 * processes are in, as many as there is room for.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "feature/machine/gauge.h"
#include "feature/machine/machine.h"
#include "feature/machine/read.h"
#include "metrics/priv.h"
#include "mxbpf_name.h"

#define PROC_TEXT_BYTES 4096
#define SCOPES		256 /* of a group, at most */

/* What the processes of a job in one control group have: that group, and those above it. */
struct met_group {
	uint64_t key; /* of the job and the groups */
	char *job;    /* owned: the label of the job */
	struct mach *of;
	struct hash last;  /* (gauge, scope) -> 1 + its last reading */
	struct hash names; /* scope -> char *, owned: the name of the group */
	struct buf texts;  /* struct mxbpf_name: the same names as records */
	struct buf recs;   /* struct mxbpf_gauge: the readings at both ends of this interval */
	uint64_t read_ns;  /* when it was read last; 0: never */
	bool seen;	   /* in this interval */
};

static void free_group(struct met_group *g)
{
	struct hash_entry *h;
	size_t pos = 0;

	while ((h = hash_next(&g->names, &pos)))
		free((char *)(uintptr_t)h->val);
	hash_fini(&g->names);
	hash_fini(&g->last);
	buf_fini(&g->recs);
	buf_fini(&g->texts);
	mach_close(g->of);
	free(g->job);
}

/* 0: the process has ended. */
static uint64_t groups_key_of(const struct met_process *p)
{
	char path[64], text[PROC_TEXT_BYTES];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/cgroup", p->tgid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	if (fd >= 0)
		close(fd);
	return n > 0 ? hash_text(hash_text(HASH_SEED, p->job, strlen(p->job)), text, (size_t)n) | 1 : 0;
}

static void take_name(struct met_group *g, const struct mxbpf_name *n)
{
	uint64_t *name = hash_put(&g->names, n->id, 0);

	if (!name || *name)
		return;
	*name = (uintptr_t)strndup(n->text, n->len);
	buf_put(&g->texts, n, n->h.size); /* without memory the group has no name in findings */
}

/* The first reading of a counter says only from where it rises. */
static void take_reading(struct met *m, struct met_group *g, const struct mxbpf_gauge *r)
{
	const uint64_t *name = hash_get(&g->names, r->scope, 0);
	uint64_t *last = hash_put(&g->last, r->id, r->scope), before;
	const struct mxbpf_gauge now = {
		.h = {.kind = MXBPF_GAUGE, .size = MXBPF_GAUGE_BYTES_MIN, .ts_ns = r->h.ts_ns},
		.value = r->value,
		.id = r->id,
		.scope = r->scope,
		.flags = r->flags,
	};
	struct mxbpf_gauge then = now;

	if (!last || !name || !*name)
		return;
	before = *last ? *last - 1 : r->value;
	*last = r->value + 1;
	if (g->read_ns) {
		then.value = before;
		then.h.ts_ns = g->read_ns;
		buf_put(&g->recs, &then, MXBPF_GAUGE_BYTES_MIN); /* without memory no finding is of it */
	}
	buf_put(&g->recs, &now, MXBPF_GAUGE_BYTES_MIN);
	met_take_gauge(m, g->job, (const char *)(uintptr_t)*name, r->id, r->value,
		       r->value > before ? r->value - before : 0);
}

static void take_readings(struct met *m, struct met_group *g)
{
	const struct mxbpf_rec *r;
	struct buf recs = {0};
	size_t at;

	g->recs.len = 0;
	if (mach_read(g->of, false, &recs))
		m->left_out++;
	for (at = 0; at < recs.len; at += r->size) {
		r = (const struct mxbpf_rec *)(const void *)(recs.data + at);
		if (r->kind == MXBPF_NAME)
			take_name(g, (const struct mxbpf_name *)r);
		else
			take_reading(m, g, (const struct mxbpf_gauge *)r);
	}
	g->read_ns = clock_ns(CLOCK_MONOTONIC);
	buf_fini(&recs);
}

static struct met_group *groups_find(const struct met *m, uint64_t key)
{
	size_t i;

	for (i = 0; i < buf_count(&m->groups, struct met_group); i++)
		if (buf_at(&m->groups, struct met_group, i)->key == key)
			return buf_at(&m->groups, struct met_group, i);
	return NULL;
}

static struct met_group *group_of(struct met *m, const struct met_process *p)
{
	const uint64_t key = groups_key_of(p);
	struct met_group new = {.key = key}, *g = key ? groups_find(m, key) : NULL;

	if (g || !key)
		return g;
	if (buf_count(&m->groups, struct met_group) < MET_GROUPS_MAX) {
		new.job = strdup(p->job);
		new.of = mach_open_groups((pid_t)p->tgid);
	}
	if (new.job &&new.of && !buf_put(&m->groups, &new, sizeof(new)))
		return groups_find(m, key);
	m->left_out++;
	free_group(&new);
	return NULL;
}

/* A process that ends leaves its group open until the next interval: what it did there still counts. */
static void forget_unseen(struct met *m)
{
	size_t n = buf_count(&m->groups, struct met_group), kept = 0, i;

	for (i = 0; i < n; i++) {
		struct met_group *g = buf_at(&m->groups, struct met_group, i);

		if (g->seen)
			*buf_at(&m->groups, struct met_group, kept++) = *g;
		else
			free_group(g);
	}
	m->groups.len = kept * sizeof(struct met_group);
}

void met_take_groups(struct met *m)
{
	struct met_group *g;
	size_t i;

	for (i = 0; i < buf_count(&m->groups, struct met_group); i++)
		buf_at(&m->groups, struct met_group, i)->seen = false;
	for (i = 0; i < buf_count(&m->processes, struct met_process); i++) {
		g = group_of(m, buf_at(&m->processes, struct met_process, i));
		if (g)
			g->seen = true;
	}
	for (i = 0; i < buf_count(&m->groups, struct met_group); i++)
		take_readings(m, buf_at(&m->groups, struct met_group, i));
	forget_unseen(m);
}

/* Adds the readings to a model. Each group numbers its scopes; `from` keeps those of several apart. */
static int feed(const struct met_group *g, uint16_t from, struct mdl *to)
{
	struct buf texts = {0};
	struct mxbpf_gauge r = {.id = 0};
	int err = buf_put(&texts, g->texts.data, g->texts.len);
	struct mxbpf_name *n;
	size_t at;

	for (at = 0; !err && at < texts.len; at += n->h.size) {
		n = (struct mxbpf_name *)(void *)(texts.data + at);
		n->id += from;
		err = mdl_fold(to, &n->h);
	}
	buf_fini(&texts);
	for (at = 0; !err && at < g->recs.len; at += MXBPF_GAUGE_BYTES_MIN) {
		memcpy(&r, g->recs.data + at, MXBPF_GAUGE_BYTES_MIN);
		r.scope = (uint16_t)(r.scope + from);
		err = mdl_fold(to, &r.h);
	}
	return err;
}

int met_feed_groups(const struct met *m, const char *job, struct mdl *to)
{
	uint16_t from = SCOPES;
	size_t i;
	int err = machine_drop_groups(to);

	for (i = 0; i < buf_count(&m->groups, struct met_group) && !err; i++) {
		const struct met_group *g = buf_at(&m->groups, struct met_group, i);

		if (strcmp(g->job, job))
			continue;
		err = feed(g, from, to);
		from = (uint16_t)(from + SCOPES);
	}
	return err;
}

void met_groups_fini(struct met *m)
{
	size_t i;

	for (i = 0; i < buf_count(&m->groups, struct met_group); i++)
		free_group(buf_at(&m->groups, struct met_group, i));
	buf_fini(&m->groups);
}
