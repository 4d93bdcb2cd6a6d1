/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends bytes to a URL by POST, in a thread of its own, so that a receiver that is slow, gone or wrong holds nobody up.
 * Only the newest batch waits: what was given before and was not sent yet is dropped. It knows neither what it sends
 * nor to whom.
 *
 * Nothing that is told has a user name, password, query or header of a request, because these may be secrets. Redirects
 * are not followed, and at most 64 KiB of an answer are read.
 */
#ifndef PUSH_PUSH_H
#define PUSH_PUSH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define PUSH_WHY_BYTES 256

struct push;

/* Says whether an answer with a status 2xx reports that something was refused, and then writes what: a clause. */
typedef bool (*push_refused_fn)(const void *answer, size_t len, char why[PUSH_WHY_BYTES]);

/* All texts are borrowed until push_open() returns, unless it is said. */
struct push_opts {
	const char *what;	    /* "metrics": for messages; a constant */
	const char *url;	    /* http or https */
	const char *const *headers; /* "Name: value", ends with NULL; NULL: none */
	const char *ca_file;	    /* certificates that are trusted; NULL: those of the system */
	uint64_t timeout_ns;	    /* of a request; 0: 10 s */
	push_refused_fn refused;    /* NULL: no answer with a status 2xx refuses anything. In the thread */
	/* A message: trouble that is new, or with `well` that it works again. In the thread. ctx is borrowed. */
	void (*tell)(void *ctx, const char *text, bool well);
	void *ctx;
};

struct push_request {
	char *query;	  /* owned: appended to the URL after ? or &; NULL: none */
	const char *type; /* Content-Type, a constant */
	struct buf body;
};

/* Returns 0, or -errno with e set: the URL is wrong, or libcurl cannot be loaded. */
int push_open(struct push **out, const struct push_opts *o, struct err *e);
/* Borrowed: the URL as it may be shown. */
const char *push_place(const struct push *p);
/* Takes a batch, a buffer of struct push_request, which is empty then. Returns at once. */
void push_send(struct push *p, struct buf *batch);
void push_batch_fini(struct buf *batch);
/* Waits for grace_ns at most until everything is sent, and then gives the rest up. NULL is legal. */
void push_close(struct push *p, uint64_t grace_ns);

#endif
