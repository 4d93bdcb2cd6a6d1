/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources of records. A source delivers batches of records from its own thread, and a hub passes them on to one
 * function. Each source counts its loss and reports how far it has delivered. If no source delivers late, the hub
 * passes on each batch as it comes. Otherwise it holds records until all sources with a watermark have delivered their
 * records of the same time, but not longer than SRC_WAIT_NS. A record that comes after later ones is passed on as well,
 * and counted as late.
 */
#ifndef SOURCE_SOURCE_H
#define SOURCE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "mxbpf_loss.h"

#define SRC_MAX	       8	     /* limit of sources per hub */
#define SRC_WAIT_NS    2000000000ull /* how long a record is held back, by the times in the records */
#define SRC_HELD_BYTES (64u << 20)   /* limit of held bytes of all sources; above it the hub passes everything on */

struct src;

/* The operations of a source. Those that say so may be NULL. */
struct src_ops {
	/* Starts delivering through src_deliver(). Returns 0, or -errno with e set. */
	int (*open)(struct src *s, struct err *e);
	/*
	 * Delivers everything that is left. After it returns, the source delivers no more. It is called only after
	 * open(). NULL: nothing is ever left.
	 */
	void (*flush)(struct src *s);
	/* Reads what was attempted, delivered (stored) and lost so far. Any thread may call it. */
	void (*loss)(const struct src *s, struct mxbpf_loss *loss);
	/*
	 * Every record that ended before this time was delivered; UINT64_MAX after the last one. Any delivering thread
	 * may call it. NULL: records come at any time. None waits for them, and none of them is late.
	 */
	uint64_t (*watermark)(const struct src *s);
	/* Called after flush(), or without open(). NULL: there is nothing to free. */
	void (*close)(struct src *s);
	bool late; /* records come so late that those of other sources must wait for them */
	/* The source has checked each record where it entered the process. The hub checks those of all other sources.
	 */
	bool checked;
};

struct src_hub;

struct src {
	const struct src_ops *ops;
	const char *name; /* in messages and files, such as "probes"; borrowed */
	void *ctx;	  /* belongs to the source */
	struct src_hub *hub;
	unsigned number;	    /* place in the hub, from 0 */
	uint64_t malformed;	    /* atomic, after flush: number of refused records; not 0 only if there is a bug */
	uint64_t late;		    /* atomic: records that came after later ones were passed on */
	uint64_t unkept;	    /* atomic: of its loss, records for which it had no memory */
	struct held *held, *newest; /* private to the hub: owned; the last one, NULL: none */
};

/*
 * Gets checked records of one source. It may change them, and they are freed afterwards. A hub that holds records makes
 * one call at a time. Any other hub calls from the thread of each source.
 */
typedef void (*src_fn)(void *ctx, unsigned number, void *recs, size_t bytes);

struct src_hub *src_hub_new(src_fn fn, void *ctx); /* NULL: out of memory */
/* Adds a source before src_open() or src_open_more(). The hub owns it. Returns NULL if there are SRC_MAX sources or
 * there is no memory. */
struct src *src_add(struct src_hub *h, const struct src_ops *ops, const char *name, void *ctx);
/* Opens all sources. Returns 0, or -errno with e set; then no source delivers. */
int src_open(struct src_hub *h, struct err *e);
/* Opens the sources that were added after src_open(). On failure those that could not be opened are gone. */
int src_open_more(struct src_hub *h, struct err *e);
/* Flushes all sources. When it returns, all records have been passed on. It is safe to call this twice. */
void src_flush(struct src_hub *h);
void src_hub_free(struct src_hub *h); /* after all sources have stopped; NULL is legal */

/*
 * For sources: delivers records of this source, from one thread at a time. src_deliver_names() is for records without a
 * time. They are passed on at once, because records of any source may use these names.
 */
void src_deliver(struct src *s, void *recs, size_t bytes);
void src_deliver_names(struct src *s, void *recs, size_t bytes);

unsigned src_count(const struct src_hub *h);
const struct src *src_at(const struct src_hub *h, unsigned i);
void src_loss(const struct src *s, struct mxbpf_loss *loss);	     /* from any thread; held records count as stored */
void src_loss_all(const struct src_hub *h, struct mxbpf_loss *loss); /* sum of all sources */
uint64_t src_late(const struct src *s);				     /* from any thread */

#endif
