// SPDX-License-Identifier: Apache-2.0
/* Requests between the two threads: they wait, are answered in the caller's thread, and go back to be sent. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "serve/priv.h"

void srv_list_init(struct srv_list *l)
{
	l->head = NULL;
	l->tail = &l->head;
}

void srv_list_add(struct srv_list *l, struct srv_ask *r)
{
	r->next = NULL;
	*l->tail = r;
	l->tail = &r->next;
}

static struct srv_ask *list_take(struct srv_list *l)
{
	struct srv_ask *r = l->head;

	if (r) {
		l->head = r->next;
		if (!l->head)
			l->tail = &l->head;
	}
	return r;
}

/* Adds one to the counter of an eventfd. If it is full, it is readable already. */
static void wake(int fd)
{
	const uint64_t one = 1;
	ssize_t ignored = write(fd, &one, sizeof(one));

	(void)ignored;
}

/* ---- in the server's thread */

static bool silent(const struct srv *s, uint64_t now)
{
	return s->o.silent_ns && now >= s->answer_ns + s->o.silent_ns;
}

bool srv_ask_wait(struct srv *s, struct srv_ask *r)
{
	bool may;

	pthread_mutex_lock(&s->lock);
	may = !s->stop && s->nwaiting < SRV_WAITING && !silent(s, clock_ns(CLOCK_MONOTONIC));
	if (may) {
		s->nwaiting++;
		r->number = ++s->number;
		srv_list_add(&s->waiting, r);
	}
	pthread_mutex_unlock(&s->lock);
	if (may)
		wake(s->ready_fd);
	return may;
}

uint64_t srv_ask_refuse(struct srv *s, bool all)
{
	struct srv_ask *r;
	uint64_t begins = 0;

	pthread_mutex_lock(&s->lock);
	if (all || silent(s, clock_ns(CLOCK_MONOTONIC))) {
		while ((r = list_take(&s->waiting))) {
			s->nwaiting--;
			r->a = (struct srv_reply){.status = MHD_HTTP_SERVICE_UNAVAILABLE};
			srv_list_add(&s->done, r);
		}
	} else if (s->waiting.head && s->o.silent_ns) {
		begins = s->answer_ns + s->o.silent_ns;
	}
	pthread_mutex_unlock(&s->lock);
	return begins;
}

struct srv_ask *srv_ask_done(struct srv *s)
{
	struct srv_ask *r;

	pthread_mutex_lock(&s->lock);
	r = list_take(&s->done);
	pthread_mutex_unlock(&s->lock);
	return r;
}

void srv_ask_free(struct srv *s, struct srv_ask *r)
{
	pthread_mutex_lock(&s->lock);
	s->held -= r->held;
	pthread_mutex_unlock(&s->lock);
	buf_fini(&r->a.body);
	free(r);
}

/* ---- in the caller's thread */

/* Takes the next request that had arrived when the round began. What came later is for the next round. */
static struct srv_ask *next(struct srv *s, uint64_t last, bool *full)
{
	struct srv_ask *r;

	pthread_mutex_lock(&s->lock);
	s->answer_ns = clock_ns(CLOCK_MONOTONIC);
	r = s->waiting.head && s->waiting.head->number <= last ? list_take(&s->waiting) : NULL;
	*full = s->held >= SRV_HELD_BYTES;
	pthread_mutex_unlock(&s->lock);
	return r;
}

static void answered(struct srv *s, struct srv_ask *r)
{
	r->held = r->a.body.len;
	pthread_mutex_lock(&s->lock);
	s->nwaiting--;
	s->held += r->held;
	srv_list_add(&s->done, r);
	pthread_mutex_unlock(&s->lock);
	wake(s->wake_fd);
}

/* Puts the requests that were left back in front of those that have come meanwhile. */
static void put_back(struct srv *s, struct srv_list *left)
{
	pthread_mutex_lock(&s->lock);
	s->answer_ns = clock_ns(CLOCK_MONOTONIC);
	if (left->head) {
		*left->tail = s->waiting.head;
		if (s->waiting.head)
			left->tail = s->waiting.tail;
		s->waiting = *left;
	}
	pthread_mutex_unlock(&s->lock);
	if (left->head)
		wake(s->wake_fd); /* it has to know when the silence begins */
}

static uint64_t begin_round(struct srv *s)
{
	uint64_t count, last;
	ssize_t ignored;

	pthread_mutex_lock(&s->lock);
	ignored = read(s->ready_fd, &count, sizeof(count));
	last = s->number;
	pthread_mutex_unlock(&s->lock);
	(void)ignored;
	return last;
}

void srv_answer(struct srv *s, srv_answer_fn fn, void *ctx)
{
	const uint64_t last = begin_round(s);
	struct srv_list left;
	struct srv_ask *r;
	bool full;

	srv_list_init(&left);
	while ((r = next(s, last, &full))) {
		r->a = (struct srv_reply){.status = full ? MHD_HTTP_SERVICE_UNAVAILABLE : 0};
		if (full || fn(ctx, &r->q, &r->a)) {
			answered(s, r);
		} else {
			buf_fini(&r->a.body);
			srv_list_add(&left, r);
		}
	}
	put_back(s, &left);
}

const char *srv_query(const struct srv_request *q, const char *name)
{
	const char *at = q->query, *value;

	while (*at) {
		value = at + strlen(at) + 1;
		if (!strcmp(at, name))
			return value;
		at = value + strlen(value) + 1;
	}
	return NULL;
}
