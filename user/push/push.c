// SPDX-License-Identifier: Apache-2.0
#include "push/push.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "push/http.h"

#define NS_PER_S 1000000000ull
#define STOP_NS	 NS_PER_S /* until a request has ended that is given up */

enum state { WELL, REFUSED, FAILED };

struct push {
	struct push_opts o; /* its texts but `what` are not borrowed any more */
	struct http *http;
	pthread_t thread;
	enum state state; /* of the last request. Only for the thread */
	struct http_answer answer;
	/* Under the lock. */
	pthread_mutex_t lock;
	pthread_cond_t changed; /* by CLOCK_MONOTONIC */
	struct buf waiting;	/* struct push_request; empty: none */
	bool ends, ended;
};

void push_batch_fini(struct buf *batch)
{
	struct push_request *q;
	size_t i;

	for (i = 0; i < buf_count(batch, *q); i++) {
		q = buf_at(batch, struct push_request, i);
		free(q->query);
		buf_fini(&q->body);
	}
	buf_fini(batch);
}

/* ---- the thread */

/* Says what is new. Of trouble that goes on nothing is said. */
static void push_enter(struct push *p, enum state state, const char *why)
{
	char text[PUSH_WHY_BYTES + 1024];

	if (state == p->state)
		return;
	if (state == WELL)
		snprintf(text, sizeof(text), "%s are sent to %s again", p->o.what, http_place(p->http));
	else
		snprintf(text, sizeof(text), "%s %s %s: %s%s", p->o.what,
			 state == FAILED ? "cannot be sent to" : "are refused in part by", http_place(p->http), why,
			 state == FAILED ? "; mxbpf tries again with the next" : "");
	p->state = state;
	p->o.tell(p->o.ctx, text, state == WELL);
}

static void read_answer(struct push *p, const struct http_answer *a)
{
	char why[PUSH_WHY_BYTES] = "";

	if (a->status < 200 || a->status > 299) {
		snprintf(why, sizeof(why), "the answer has the status %u%s", a->status,
			 a->status / 100 == 3	? ", a redirect, which mxbpf does not follow"
			 : a->status == 401	? " (who asks is not known)"
			 : a->status == 403	? " (not allowed)"
			 : a->status == 404	? " (nothing is at this path)"
			 : a->status / 100 == 5 ? " (an error of the receiver)"
						: "");
		push_enter(p, FAILED, why);
	} else if (p->o.refused && p->o.refused(a->body, a->len, why)) {
		push_enter(p, REFUSED, why);
	} else {
		push_enter(p, WELL, "");
	}
}

/* Returns false if the end does not wait for more. */
static bool send_all(struct push *p, const struct buf *batch)
{
	struct err e = {0};
	size_t i;

	for (i = 0; i < buf_count(batch, struct push_request); i++) {
		e = (struct err){0};
		if (!http_post(p->http, buf_at(batch, struct push_request, i), &p->answer, &e))
			read_answer(p, &p->answer);
		else if (e.code == -ECANCELED)
			return false;
		else
			push_enter(p, FAILED, e.why);
	}
	return true;
}

static void *push_run(void *arg)
{
	struct push *p = arg;
	struct buf batch;
	bool more = true;

	pthread_mutex_lock(&p->lock);
	while (more) {
		while (!p->waiting.len && !p->ends)
			pthread_cond_wait(&p->changed, &p->lock);
		batch = p->waiting;
		p->waiting = (struct buf){0};
		more = batch.len;
		pthread_mutex_unlock(&p->lock);
		more = more && send_all(p, &batch);
		push_batch_fini(&batch);
		pthread_mutex_lock(&p->lock);
	}
	p->ended = true;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* ---- its owner */

static void init_sync(struct push *p)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->changed, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&p->lock, NULL);
}

static void free_push(struct push *p)
{
	pthread_cond_destroy(&p->changed);
	pthread_mutex_destroy(&p->lock);
	push_batch_fini(&p->waiting);
	http_close(p->http);
	free(p);
}

int push_open(struct push **out, const struct push_opts *o, struct err *e)
{
	struct push *p = calloc(1, sizeof(*p));

	*out = NULL;
	if (!p)
		return err_set(e, ERR_RUNTIME, -ENOMEM, "out of memory");
	p->o = *o;
	init_sync(p);
	if (!http_open(&p->http, o, e) && thread_start(&p->thread, push_run, p))
		err_set(e, ERR_RUNTIME, -EAGAIN, "no thread can be started");
	if (e->code)
		free_push(p);
	else
		*out = p;
	return e->code;
}

const char *push_place(const struct push *p)
{
	return http_place(p->http);
}

void push_send(struct push *p, struct buf *batch)
{
	struct buf old;

	pthread_mutex_lock(&p->lock);
	old = p->waiting;
	p->waiting = *batch;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	*batch = (struct buf){0};
	push_batch_fini(&old);
}

/* With the lock held. Returns whether the thread has ended. */
static bool await_end(struct push *p, uint64_t ns)
{
	const uint64_t until = clock_ns(CLOCK_MONOTONIC) + ns;
	const struct timespec at = {(time_t)(until / NS_PER_S), (long)(until % NS_PER_S)};
	int err = 0;

	while (!p->ended && !err)
		err = pthread_cond_timedwait(&p->changed, &p->lock, &at);
	return p->ended;
}

void push_close(struct push *p, uint64_t grace_ns)
{
	bool ended;

	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->ends = true;
	pthread_cond_broadcast(&p->changed);
	ended = await_end(p, grace_ns);
	if (!ended) {
		http_stop(p->http);
		ended = await_end(p, STOP_NS);
	}
	pthread_mutex_unlock(&p->lock);
	if (!ended) { /* it waits in a library, and has all that it needs until the process ends */
		pthread_detach(p->thread);
		return;
	}
	pthread_join(p->thread, NULL);
	free_push(p);
}
