// SPDX-License-Identifier: Apache-2.0
/* The agent's client of CUPTI, seen from mxbpf. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/state.h"
#include "base/clock.h"

#define THREADS_NS  10000000ull /* interval between two lists of the threads */
#define BATCHES_MAX 512		/* batches taken at once */
#define THREADS_MAX (1u << 16)	/* threads of a process that are remembered */

/* After enough batches it returns an error, which ends ring_buffer__consume(). The batch is taken nevertheless. */
static int on_gpu_batch(void *ctx, void *data, size_t bytes)
{
	const struct mxbpf_agent_batch *b = data;
	struct agts *s = ctx;
	struct agt *a = bytes >= MXBPF_AGENT_BATCH_HEAD ? agt_at(s, b->process) : NULL;

	/* Without a receiver, the process rings the bell as if it had a GPU. */
	if (a && a->gpu_fn && !gate_gpu_batch(&a->gate, b, bytes))
		a->gpu_fn(a->gpu_ctx, b->gpu, b->ncalls);
	return ++s->gpu_batches % BATCHES_MAX ? 0 : -EAGAIN;
}

int agts_gpu_open(struct agts *s, struct err *e)
{
	s->gpu_ring = ring_buffer__new(bpf_map__fd(s->skel->maps.gpu_batches), on_gpu_batch, s, NULL);
	return s->gpu_ring
		       ? 0
		       : err_set(e, ERR_RUNTIME, -errno, "cannot read the ring buffer of the GPU: %s", strerror(errno));
}

void agt_gpu_close(struct agt *a)
{
	hash_fini(&a->gpu_threads);
}

static void sums_of(const struct mxbpf_gpu_shared *g, struct agt_gpu_sums *sums)
{
	*sums = (struct agt_gpu_sums){
		.records = g->records,
		.dropped = g->dropped,
		.scrapped = g->scrapped,
		.unreadable = g->unreadable,
		.flushes = g->flushes,
		.unknown = g->unknown,
		.no_name = g->no_name,
		.subscriptions = g->subscriptions,
		.held_ns = g->held_ns,
	};
}

/* Sets what mxbpf wants, and wakes the agent's thread, which sleeps until this word changes. */
static void set_want(struct agt *a, uint32_t want)
{
	SHARED_SET(&a->shared, gpu.want, want);
	shared_wake(&a->shared);
}

/*
 * Writes the options of the measurement, because a session of a killed mxbpf may have left others. The agent measures
 * nothing unless gpu.want asks for it.
 */
static void set_metrics(struct agt *a)
{
	struct mxbpf_gpu_metrics m = {.each = a->o.kernel_launches, .replay = a->o.kernel_replay};

	snprintf(m.pattern, sizeof(m.pattern), "%s", a->o.kernels ? a->o.kernels : "");
	shared_write(&a->shared, offsetof(struct mxbpf_agent_shared, gpu.metrics), &m, sizeof(m));
}

void agt_gpu_opened(struct agt *a)
{
	char library[sizeof(((struct mxbpf_gpu_shared *)0)->library)] = ""; /* all of it is written into the target */
	struct mxbpf_gpu_shared g;

	set_want(a, 0); /* clears what a killed mxbpf may have left */
	if (!a->o.gpu || gate_gpu(&a->gate, &g))
		return;
	sums_of(&g, &a->gpu_before);
	snprintf(library, sizeof(library), "%s", a->o.cupti ? a->o.cupti : "");
	shared_write(&a->shared, offsetof(struct mxbpf_agent_shared, gpu.library), library, sizeof(library));
	set_metrics(a);
}

void agt_gpu_tell(struct agt *a)
{
	if (!a->o.gpu || !agt_is_in(a))
		return;
	SHARED_SET(&a->shared, gpu.metrics.active, a->gpu_measures);
	set_want(a, a->gpu_want);
}

bool agt_gpu(struct agt *a, struct mxbpf_gpu_shared *to)
{
	if (!agt_is_in(a))
		return false;
	agt_check_bell(a);
	return !gate_gpu(&a->gate, to);
}

void agt_gpu_want(struct agt *a, uint32_t want)
{
	pthread_mutex_lock(&a->lock);
	a->gpu_want = want;
	agt_gpu_tell(a);
	pthread_mutex_unlock(&a->lock);
}

void agt_gpu_measure(struct agt *a, bool on)
{
	pthread_mutex_lock(&a->lock);
	a->gpu_measures = on;
	if (a->o.gpu && agt_is_in(a))
		SHARED_SET(&a->shared, gpu.metrics.active, on);
	pthread_mutex_unlock(&a->lock);
}

bool agt_alive(const struct agt *a)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/map_files", a->pid);
	return !access(path, F_OK);
}

void agt_receive_gpu(struct agt *a, agt_gpu_fn fn, void *ctx)
{
	a->gpu_fn = fn;
	a->gpu_ctx = ctx;
}

bool agts_take_gpu(struct agts *s)
{
	return ring_buffer__consume(s->gpu_ring) == -EAGAIN;
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
		if (tid > 0 && a->gpu_threads.len < THREADS_MAX)
			hash_put(&a->gpu_threads, (uint64_t)tid, 0);
	}
	if (dir)
		closedir(dir);
}

/* An id that no thread has means that CUPTI numbers threads in another way. */
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

static uint64_t since(uint64_t sum, uint64_t before)
{
	return sum > before ? sum - before : 0;
}

/* Breaks the gate if the sums are impossible: no GPU and no driver makes more than one record per nanosecond. */
static void check_sums(struct agt *a, struct agt_gpu_sums *sums)
{
	const uint64_t most = clock_ns(CLOCK_MONOTONIC) - a->opened_ns;

	if (sums->records <= most && sums->dropped <= most && sums->scrapped <= most && sums->unreadable <= most &&
	    sums->unknown <= most)
		return;
	gate_break(&a->gate, "its client of CUPTI counted more records than there was time for");
	*sums = (struct agt_gpu_sums){0};
}

/* Sums that a broken contract makes meaningless are 0. A sum that fell counts as one that did not change. */
void agt_gpu_count(struct agt *a, struct agt_gpu_sums *sums)
{
	const struct agt_gpu_sums *was = &a->gpu_before;
	struct mxbpf_gpu_shared g;

	*sums = (struct agt_gpu_sums){0};
	if (!agt_gpu(a, &g))
		return;
	sums_of(&g, sums);
	sums->records = since(sums->records, was->records);
	sums->dropped = since(sums->dropped, was->dropped);
	sums->scrapped = since(sums->scrapped, was->scrapped);
	sums->unreadable = since(sums->unreadable, was->unreadable);
	sums->unknown = since(sums->unknown, was->unknown);
	sums->no_name = since(sums->no_name, was->no_name);
	sums->subscriptions = since(sums->subscriptions, was->subscriptions);
	sums->held_ns = since(sums->held_ns, was->held_ns);
	sums->unsent = __atomic_load_n(&a->skel->bss->lost_gpu[a->number], __ATOMIC_RELAXED);
	check_sums(a, sums);
}

void agt_gpu_name(struct agt *a, uint32_t name, char to[MXBPF_GPU_NAME_BYTES])
{
	gate_gpu_name(&a->gate, name, to);
}
