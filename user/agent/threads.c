// SPDX-License-Identifier: Apache-2.0
#include "agent/threads.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/target.h"

#define THREADS_MAX (1u << 16)

void threads_init(struct threads *t, pid_t pid)
{
	unsigned levels;

	tgt_peek_number(pid, pid, &levels);
	*t = (struct threads){.pid = pid, .other = levels > 1};
	pthread_mutex_init(&t->lock, NULL);
	threads_read(t);
}

void threads_fini(struct threads *t)
{
	hash_fini(&t->ours);
	hash_fini(&t->known);
	pthread_mutex_destroy(&t->lock);
}

/* Notes a pair of ids. Beyond the limit, threads keep the ids that the process itself knows them by. */
static void learn(struct threads *t, uint32_t its, uint32_t ours)
{
	uint64_t *at;

	if (!t->other || !its || !ours)
		return;
	pthread_mutex_lock(&t->lock);
	at = t->ours.len < THREADS_MAX ? hash_put(&t->ours, its, 0) : hash_get(&t->ours, its, 0);
	if (at)
		*at = ours;
	if (t->known.len < THREADS_MAX)
		hash_put(&t->known, ours, 0);
	pthread_mutex_unlock(&t->lock);
}

void threads_learn_ours(struct threads *t, uint32_t ours, uint32_t told)
{
	uint32_t its;
	unsigned levels;
	bool known;

	if (!t->other || !ours)
		return;
	pthread_mutex_lock(&t->lock);
	known = hash_get(&t->known, ours, 0);
	pthread_mutex_unlock(&t->lock);
	if (known)
		return;
	its = tgt_peek_number(t->pid, (pid_t)ours, &levels);
	learn(t, its ? its : told, ours);
}

void threads_read(struct threads *t)
{
	struct dirent *entry;
	unsigned levels;
	char path[48];
	pid_t tid;
	DIR *dir;

	if (!t->other)
		return;
	snprintf(path, sizeof(path), "/proc/%d/task", t->pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		tid = atoi(entry->d_name);
		if (tid > 0)
			learn(t, tgt_peek_number(t->pid, tid, &levels), (uint32_t)tid);
	}
	if (dir)
		closedir(dir);
}

uint32_t threads_ours(struct threads *t, uint32_t its)
{
	uint32_t ours = its;
	uint64_t *at;

	if (!t->other)
		return its;
	pthread_mutex_lock(&t->lock);
	at = hash_get(&t->ours, its, 0);
	if (at)
		ours = (uint32_t)*at;
	pthread_mutex_unlock(&t->lock);
	return ours;
}
