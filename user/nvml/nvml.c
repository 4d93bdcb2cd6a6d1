// SPDX-License-Identifier: Apache-2.0
/* The thread that asks the driver, and what it has learned for whoever wants it. */
#include "nvml/nvml.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "nvml/priv.h"

#define EACH_NS	 1000000000ull
#define NAMES_NS 60000000000ull /* also the time after which a driver that was missing is looked for again */
#define OLD_NS	 5000000000ull	/* processes that were told earlier may have ended */
#define END_S	 1		/* how long a driver may take to return at the end */

struct nvml {
	pthread_t thread;
	struct nvml_driver driver; /* these three are the thread's */
	struct nvml_list own;
	uint64_t names_ns;    /* when names are read again */
	pthread_mutex_t lock; /* protects what follows */
	pthread_cond_t wake, answer;
	bool wanted, ends;
	uint64_t asked, answered;    /* number of the last request for fresh values, and of the last one served */
	struct nvml_list last, told; /* sums since the start: now, and when they were taken last */
	uint64_t last_ns;	     /* when `last` was filled; 0: nobody wants it */
};

static void nvml_look(struct nvml *n)
{
	const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	if (now_ns >= n->names_ns) {
		nvml_read_names(NVML_PROC, &n->own);
		n->names_ns = now_ns + NAMES_NS;
	}
	nvml_driver_look(&n->driver, &n->own, now_ns);
}

/* With the lock: waits until it is time to ask again, or nobody wants to know any more. */
static void rest(struct nvml *n)
{
	const uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + (n->driver.on ? EACH_NS : NAMES_NS);
	const struct timespec until = {(time_t)(until_ns / 1000000000), (long)(until_ns % 1000000000)};

	while (n->wanted && !n->ends && n->answered == n->asked && !pthread_cond_timedwait(&n->wake, &n->lock, &until))
		;
}

static void *nvml_run(void *ctx)
{
	struct nvml *n = ctx;
	bool asked = false, wanted;
	uint64_t now;

	pthread_mutex_lock(&n->lock);
	while (!n->ends) {
		wanted = n->wanted;
		now = n->asked;
		if (!wanted && !asked) {
			pthread_cond_wait(&n->wake, &n->lock);
			continue;
		}
		pthread_mutex_unlock(&n->lock);
		if (wanted)
			nvml_look(n);
		else
			nvml_driver_stop(&n->driver);
		asked = wanted;
		pthread_mutex_lock(&n->lock);
		n->last = n->own;
		n->last_ns = wanted ? clock_ns(CLOCK_MONOTONIC) : 0;
		n->answered = now;
		pthread_cond_broadcast(&n->answer);
		rest(n);
	}
	pthread_mutex_unlock(&n->lock);
	nvml_driver_stop(&n->driver);
	return NULL;
}

struct nvml *nvml_open(void)
{
	struct nvml *n = calloc(1, sizeof(*n));
	pthread_condattr_t attr;

	if (!n)
		return NULL;
	pthread_mutex_init(&n->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&n->wake, &attr);
	pthread_cond_init(&n->answer, &attr);
	pthread_condattr_destroy(&attr);
	if (!thread_start(&n->thread, nvml_run, n))
		return n;
	free(n);
	return NULL;
}

/* A thread that does not end keeps its memory and the library, which it uses. */
bool nvml_close(struct nvml *n)
{
	struct timespec until;

	if (!n)
		return true;
	pthread_mutex_lock(&n->lock);
	n->ends = true;
	pthread_cond_signal(&n->wake);
	pthread_mutex_unlock(&n->lock);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += END_S;
	if (pthread_timedjoin_np(n->thread, NULL, &until))
		return false;
	pthread_cond_destroy(&n->wake);
	pthread_cond_destroy(&n->answer);
	pthread_mutex_destroy(&n->lock);
	free(n);
	return true;
}

void nvml_take(struct nvml *n, bool wanted, struct nvml_list *to)
{
	unsigned i;

	to->n = to->nprocesses = to->ninstances = 0;
	if (!n)
		return;
	pthread_mutex_lock(&n->lock);
	if (n->wanted != wanted) {
		n->wanted = wanted;
		pthread_cond_signal(&n->wake);
	}
	*to = n->last;
	if (clock_ns(CLOCK_MONOTONIC) - n->last_ns > OLD_NS)
		to->nprocesses = 0;
	for (i = 0; i < n->told.n; i++) {
		to->gpus[i].seen_ns -= n->told.gpus[i].seen_ns;
		to->gpus[i].busy_ns -= n->told.gpus[i].busy_ns;
	}
	n->told = n->last;
	pthread_mutex_unlock(&n->lock);
}

void nvml_refresh(struct nvml *n, unsigned ms)
{
	const uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + ms * 1000000ull;
	const struct timespec until = {(time_t)(until_ns / 1000000000), (long)(until_ns % 1000000000)};
	uint64_t mine;

	if (!n)
		return;
	pthread_mutex_lock(&n->lock);
	n->wanted = true;
	mine = ++n->asked;
	pthread_cond_signal(&n->wake);
	while (n->answered < mine && !pthread_cond_timedwait(&n->answer, &n->lock, &until))
		;
	pthread_mutex_unlock(&n->lock);
}
