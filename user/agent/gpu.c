// SPDX-License-Identifier: Apache-2.0
/* The agent's client of CUPTI, seen from mxbpf. */
#include <dirent.h>
#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/state.h"
#include "base/clock.h"

#define THREADS_NS 10000000ull /* interval between two lists of the threads */

static int on_gpu_batch(void *ctx, void *data, size_t bytes)
{
	const struct mxbpf_agent_batch *b = data;
	struct agt *a = ctx;

	if (bytes >= sizeof(*b) && b->what == MXBPF_AGENT_GPU && b->ncalls <= MXBPF_AGENT_GPU_BATCH)
		a->gpu_fn(a->gpu_ctx, b->gpu, b->ncalls);
	return 0;
}

int agt_gpu_open(struct agt *a, struct err *e)
{
	a->gpu_ring = ring_buffer__new(bpf_map__fd(a->skel->maps.gpu_batches), on_gpu_batch, a, NULL);
	return a->gpu_ring
		       ? 0
		       : err_set(e, ERR_RUNTIME, -errno, "cannot read the ring buffer of the GPU: %s", strerror(errno));
}

void agt_gpu_close(struct agt *a)
{
	ring_buffer__free(a->gpu_ring);
	a->gpu_ring = NULL;
	hash_fini(&a->gpu_threads);
}

static void sums_of(const struct mxbpf_gpu_shared *g, struct agt_gpu_sums *sums)
{
	*sums = (struct agt_gpu_sums){
		.records = __atomic_load_n(&g->records, __ATOMIC_ACQUIRE),
		.dropped = __atomic_load_n(&g->dropped, __ATOMIC_RELAXED),
		.scrapped = __atomic_load_n(&g->scrapped, __ATOMIC_RELAXED),
		.unknown = __atomic_load_n(&g->unknown, __ATOMIC_RELAXED),
		.no_name = __atomic_load_n(&g->no_name, __ATOMIC_RELAXED),
		.subscriptions = __atomic_load_n(&g->subscriptions, __ATOMIC_RELAXED),
		.held_ns = __atomic_load_n(&g->held_ns, __ATOMIC_RELAXED),
	};
}

/* Sleeping in the agent's thread ends when the word changes. */
static void set_want(struct mxbpf_gpu_shared *g, uint32_t want)
{
	__atomic_store_n(&g->want, want, __ATOMIC_RELEASE);
	syscall(SYS_futex, &g->want, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void agt_gpu_mapped(struct agt *a)
{
	struct mxbpf_gpu_shared *g = &a->shared->gpu;

	set_want(g, 0); /* clears what a killed mxbpf may have left */
	if (!a->o.gpu)
		return;
	sums_of(g, &a->gpu_before);
	snprintf(g->library, sizeof(g->library), "%s", a->o.cupti ? a->o.cupti : "");
}

void agt_gpu_tell(struct agt *a)
{
	if (a->o.gpu && agt_is_in(a))
		set_want(&a->shared->gpu, a->gpu_want);
}

const struct mxbpf_gpu_shared *agt_gpu(const struct agt *a)
{
	return agt_is_in(a) ? &a->shared->gpu : NULL;
}

void agt_gpu_want(struct agt *a, uint32_t want)
{
	pthread_mutex_lock(&a->lock);
	a->gpu_want = want;
	agt_gpu_tell(a);
	pthread_mutex_unlock(&a->lock);
}

bool agt_alive(const struct agt *a)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/map_files", a->pid);
	return !access(path, F_OK);
}

void agt_take_gpu(struct agt *a, agt_gpu_fn fn, void *ctx)
{
	a->gpu_fn = fn;
	a->gpu_ctx = ctx;
	ring_buffer__consume(a->gpu_ring);
}

/* ---- threads */

static void read_threads(struct agt *a)
{
	struct dirent *entry;
	char path[48];
	DIR *dir;
	int tid;

	snprintf(path, sizeof(path), "/proc/%d/task", a->pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		tid = atoi(entry->d_name);
		if (tid > 0)
			hash_put(&a->gpu_threads, (uint64_t)tid, 0);
	}
	if (dir)
		closedir(dir);
}

/* A number that is not that of a thread means that CUPTI numbers threads in another way. */
uint32_t agt_thread(struct agt *a, uint32_t its)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint32_t ours = threads_ours(&a->threads, its);

	if (hash_get(&a->gpu_threads, ours, 0))
		return ours;
	if (now - a->gpu_threads_ns < THREADS_NS)
		return 0;
	a->gpu_threads_ns = now;
	threads_read(&a->threads);
	read_threads(a);
	ours = threads_ours(&a->threads, its);
	return hash_get(&a->gpu_threads, ours, 0) ? ours : 0;
}

void agt_gpu_count(const struct agt *a, struct agt_gpu_sums *sums)
{
	const struct agt_gpu_sums *was = &a->gpu_before;

	*sums = (struct agt_gpu_sums){0};
	if (!agt_is_in(a))
		return;
	sums_of(&a->shared->gpu, sums);
	sums->records -= was->records;
	sums->dropped -= was->dropped;
	sums->scrapped -= was->scrapped;
	sums->unknown -= was->unknown;
	sums->no_name -= was->no_name;
	sums->subscriptions -= was->subscriptions;
	sums->held_ns -= was->held_ns;
	sums->unsent = __atomic_load_n(&a->skel->bss->lost_gpu, __ATOMIC_RELAXED);
}

const char *agt_gpu_name(const struct agt *a, uint32_t name)
{
	const char *texts = a->shared->gpu.texts;

	return name && name < MXBPF_GPU_TEXTS && memchr(texts + name, '\0', MXBPF_GPU_TEXTS - name) ? texts + name : "";
}
