/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where records come from. A source delivers batches of records from a thread of its own; a hub hands them on to one
 * function. Each source counts its own loss, and says how far it has delivered. As long as all
 * sources deliver in time, the hub hands on each batch as it comes. If one delivers late, the hub holds the records of
 * all of them back until that one has delivered what happened at the same time, but not for ever: a record that comes
 * after later ones were handed on is handed on as well, and counted as late for its source.
 */
#ifndef SOURCE_SOURCE_H
#define SOURCE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "mxbpf_loss.h"

#define SRC_MAX	       8	     /* sources of a hub */
#define SRC_WAIT_NS    2000000000ull /* how long a record is held back, by the records' own times */
#define SRC_IN_TIME_NS 200000000ull  /* later than this, records of a source without a watermark are late */
#define SRC_HELD_BYTES (64u << 20)   /* held back at most, of all sources; then what there is is handed on */

struct src;

/* What a kind of source does. A function may be NULL where it says so. */
struct src_ops {
	/* Delivers from now on, by src_deliver(). 0 or -errno with e set. */
	int (*open)(struct src *s, struct err *e);
	/* No more will happen: delivers what there is, and nothing after it returns. Only of one that was opened. NULL:
	 * nothing is left by then. */
	void (*flush)(struct src *s);
	/* What was attempted, delivered (stored) and lost until now. From any thread. */
	void (*loss)(const struct src *s, struct mxbpf_loss *loss);
	/* Every record that ended before this moment was delivered, UINT64_MAX behind the last one. From any thread
	 * that delivers. NULL: records come within SRC_IN_TIME_NS, in any order. */
	uint64_t (*watermark)(const struct src *s);
	/* After flush, or without ever having been opened. NULL: nothing to free. */
	void (*close)(struct src *s);
};

struct src_hub;

struct src {
	const struct src_ops *ops;
	const char *name; /* for people and in files: "probes"; borrowed */
	void *ctx;	  /* the source's own */
	struct src_hub *hub;
	unsigned number;    /* in the hub, from 0 */
	uint64_t malformed; /* after flush: records that were refused; 0 unless there is a bug */
	uint64_t late;	    /* atomic: records that came after later ones were handed on */
	/* private to the hub */
	struct held {
		char *data;
		size_t len, size;
	} held;
};

/*
 * Whole, checked records of one source, which it may change; they are freed afterwards. Never two calls at a time from
 * one hub that holds back; else from each source's thread.
 */
typedef void (*src_fn)(void *ctx, unsigned number, void *recs, size_t bytes);

struct src_hub *src_hub_new(src_fn fn, void *ctx); /* NULL: out of memory */
/* Before src_open(). The source is the hub's; NULL: there are SRC_MAX, or no memory. */
struct src *src_add(struct src_hub *h, const struct src_ops *ops, const char *name, void *ctx);
/* Opens all of them. 0, or -errno with e set: none delivers then. */
int src_open(struct src_hub *h, struct err *e);
/* Nothing more will happen: all that there is has been handed on when it returns. Twice is legal. */
void src_flush(struct src_hub *h);
void src_hub_free(struct src_hub *h); /* when no source delivers any more; NULL is legal */

/* For sources: records of this one. From one thread at a time. src_deliver_names: records that have no time, which are
 * handed on at once: records of any source may bear these names. */
void src_deliver(struct src *s, void *recs, size_t bytes);
void src_deliver_names(struct src *s, void *recs, size_t bytes);

unsigned src_count(const struct src_hub *h);
const struct src *src_at(const struct src_hub *h, unsigned i);
void src_loss(const struct src *s,
	      struct mxbpf_loss *loss); /* from any thread; records that are held back are stored */
void src_loss_all(const struct src_hub *h, struct mxbpf_loss *loss); /* the sum of all sources */
uint64_t src_late(const struct src *s);				     /* from any thread */

#endif
