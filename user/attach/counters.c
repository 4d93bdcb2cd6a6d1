// SPDX-License-Identifier: Apache-2.0
/*
 * Perf events for the threads of the target. A map entry keeps its event open, so this file keeps no fds, and closing
 * the map closes the events.
 */
#include "attach/counters.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "attach/priv.h"
#include "feature/counters/events.h"

void counters_choose(struct mxbpf_bpf *skel, unsigned mask)
{
	const bool on = mask;

	skel->rodata->cfg_counters = (__u8)__builtin_popcount(mask);
	bpf_program__set_autoload(skel->progs.on_thread_new, on);
	bpf_map__set_autocreate(skel->maps.counter_events, on);
	bpf_map__set_autocreate(skel->maps.counter_groups, on);
	bpf_map__set_autocreate(skel->maps.counter_starts, on);
	bpf_map__set_autocreate(skel->maps.counter_births, on);
}

/* Collects processes that have new threads. There are few at a time, so a linear search is enough. */
static int on_birth(void *ctx, void *data, size_t size)
{
	struct counters *c = ctx;
	uint32_t tgid = *(uint32_t *)data;
	size_t i, n = buf_count(&c->born, uint32_t);

	for (i = 0; i < n && *buf_at(&c->born, uint32_t, i) != tgid; i++)
		;
	return i == n ? buf_put(&c->born, &tgid, sizeof(tgid)) : 0;
}

int counters_open(struct counters *c, const struct mxbpf_bpf *skel, unsigned mask)
{
	c->mask = mask;
	if (!mask)
		return 0;
	c->events_fd = bpf_map__fd(skel->maps.counter_events);
	c->groups_fd = bpf_map__fd(skel->maps.counter_groups);
	c->tids = calloc(MXBPF_COUNTED_MAX, sizeof(*c->tids));
	if (!c->tids)
		return -ENOMEM;
	c->births = ring_buffer__new(bpf_map__fd(skel->maps.counter_births), on_birth, c, NULL);
	if (!c->births)
		return -errno;
	c->birth_link = bpf_program__attach_raw_tracepoint(skel->progs.on_thread_new, "task_newtask");
	return 0; /* without the link, threads born later have no counters; BPF counts such spans */
}

void counters_close(struct counters *c)
{
	uint32_t i;

	for (i = 0; c->tids && i < MXBPF_COUNTED_MAX * MXBPF_COUNTERS_MAX; i++)
		if (c->tids[i / MXBPF_COUNTERS_MAX])
			bpf_map_delete_elem(c->events_fd, &i);
	bpf_link__destroy(c->birth_link);
	ring_buffer__free(c->births);
	buf_fini(&c->born);
	free(c->tids);
	*c = (struct counters){0};
}

/* Returns true and the group of a thread if it has one. BPF removes the entry when the thread ends. */
static bool group_of(const struct counters *c, uint32_t tid, uint32_t *group)
{
	return !bpf_map_lookup_elem(c->groups_fd, &tid, group);
}

/* Returns a group that no thread uses, or MXBPF_COUNTED_MAX if all are in use. */
static uint32_t group_free(struct counters *c)
{
	uint32_t i, g, its;

	for (i = 0; i < MXBPF_COUNTED_MAX; i++) {
		g = (c->next + i) % MXBPF_COUNTED_MAX;
		if (c->tids[g] && group_of(c, c->tids[g], &its) && its == g)
			continue;
		c->next = g + 1;
		return g;
	}
	return MXBPF_COUNTED_MAX;
}

/* Opens the events of a thread. BPF sees the group only after all of its events are in the map. */
static int count_thread(struct counters *c, uint32_t tid)
{
	int fds[MXBPF_COUNTERS_MAX], n, i, err = 0;
	uint32_t g, at;

	if (group_of(c, tid, &g))
		return 0;
	g = group_free(c);
	if (g == MXBPF_COUNTED_MAX)
		return -E2BIG;
	n = ctr_open((pid_t)tid, c->mask, fds);
	if (n < 0)
		return n;
	for (i = 0; i < n; i++) {
		at = g * MXBPF_COUNTERS_MAX + (uint32_t)i;
		err = err ? err : bpf_map_update_elem(c->events_fd, &at, &fds[i], BPF_ANY);
		close(fds[i]);
	}
	if (!err)
		err = bpf_map_update_elem(c->groups_fd, &tid, &g, BPF_ANY);
	if (!err)
		c->tids[g] = tid;
	return err;
}

void counters_count(struct counters *c, pid_t tgid)
{
	char path[64];
	struct dirent *d;
	DIR *tasks;

	if (!c->mask)
		return;
	snprintf(path, sizeof(path), "/proc/%d/task", tgid);
	tasks = opendir(path);
	while (tasks && (d = readdir(tasks)))
		if (d->d_name[0] != '.')
			count_thread(c, (uint32_t)strtoul(d->d_name, NULL, 10));
	if (tasks)
		closedir(tasks);
}

int att_births_fd(const struct att *a)
{
	return a->counters.births ? ring_buffer__epoll_fd(a->counters.births) : -1;
}

void att_births_take(struct att *a)
{
	struct counters *c = &a->counters;
	size_t i;

	ring_buffer__consume(c->births);
	for (i = 0; i < buf_count(&c->born, uint32_t); i++)
		counters_count(c, (pid_t)*buf_at(&c->born, uint32_t, i));
	c->born.len = 0;
}
